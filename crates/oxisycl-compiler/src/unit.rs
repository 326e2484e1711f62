//! A module on its way through the passes, and what earlier passes leave for later ones.

use std::collections::BTreeSet;

use crate::analyses::dependencies::Dependencies;
use crate::analyses::legality::Calls;
use crate::codegen::Target;
use crate::error::CompileError;
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::llvm::{Module, PassTuning, Value};
use crate::options::FloatPolicy;
use crate::passes::panic_names;
use crate::passes::panics::Sites;

/// A module on its way through the passes.
pub(crate) struct Unit<'c, 'a> {
    pub(crate) module: Module<'c>,
    pub(crate) target: &'a dyn Target,
    pub(crate) instruments: &'a Instruments,
    /// The kernel; `None` while the code of several kernels is linked together.
    pub(crate) kernel: Option<Kernel>,
    /// The symbols of the kernels' entries.
    pub(crate) entries: Vec<String>,
    /// The function that a driver launches, once it was added.
    pub(crate) function: Option<Value<'c>>,
    /// Which function calls which, before anything was inlined.
    pub(crate) calls: Calls,
    /// The library functions that the kernel was linked with.
    pub(crate) dependencies: Dependencies,
    /// How strictly the kernel's operations are compiled.
    pub(crate) float: FloatPolicy,
    /// See [`Options`](crate::Options).
    pub(crate) borrowed: &'a [String],
    /// Where the kernel panics or prints.
    pub(crate) sites: Sites,
    /// Statics that hold what the program made of questions about the processor.
    pub(crate) caches: BTreeSet<String>,
    /// Whether each position of the kernel's grid runs two work-items.
    pub(crate) is_paired: bool,
    /// The largest value that the kernel's algorithms over groups combine, in bytes.
    pub(crate) bytes_of_element: u32,
    /// Why the kernel is refused, if not all work-items of a group come to what the library marked.
    pub(crate) unproved: Option<String>,
    /// How often code was linked to what was there.
    pub(crate) round: u32,
}

impl<'c, 'a> Unit<'c, 'a> {
    /// A module that nothing was done to.
    pub(crate) fn new(module: Module<'c>, target: &'a dyn Target, instruments: &'a Instruments) -> Self {
        Self {
            module,
            target,
            instruments,
            kernel: None,
            entries: Vec::new(),
            function: None,
            calls: Calls::default(),
            dependencies: Dependencies::default(),
            float: FloatPolicy::default(),
            borrowed: &[],
            sites: Sites::default(),
            caches: BTreeSet::new(),
            is_paired: false,
            bytes_of_element: 0,
            unproved: None,
            round: 0,
        }
    }

    /// The module in a unit of its own, before it is optimised.
    pub(crate) fn copy(&self) -> Self {
        let module = self.module.clone();
        let function = self.kernel.as_ref().and_then(|kernel| module.function(&kernel.symbol));
        Self {
            kernel: self.kernel.clone(),
            entries: self.entries.clone(),
            function,
            float: self.float,
            borrowed: self.borrowed,
            caches: self.caches.clone(),
            is_paired: self.is_paired,
            round: self.round,
            ..Self::new(module, self.target, self.instruments)
        }
    }

    /// Whether nothing was linked yet to what was optimised.
    pub(crate) fn is_first(&self) -> bool {
        self.round == 0
    }

    /// Whether a function stays visible. Nothing calls the record's function before panics are lowered.
    pub(crate) fn is_entry(&self, name: &str) -> bool {
        name == panic_names::RECORD && self.is_first() || self.entries.iter().any(|entry| entry == name)
    }

    /// Whether a function is the one that a driver launches.
    pub(crate) fn is_kernel(&self, name: &str) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.symbol == name)
    }

    /// Runs passes of LLVM, by their names.
    pub(crate) fn run_llvm(&self, passes: &str) -> Result<(), CompileError> {
        self.module.run(passes, Some(self.target.machine()), &PassTuning::DEVICE)
    }
}
