//! A module in the pipeline, and the results of earlier passes that later ones need.

use std::collections::BTreeSet;

use crate::analyses::dependencies::Dependencies;
use crate::analyses::legality::Calls;
use crate::codegen::Target;
use crate::error::CompileError;
use crate::instruments::Instruments;
use crate::kernel::Kernel;
use crate::llvm::{Module, Value};
use crate::options::{FloatPolicy, Lanes};
use crate::passes::panic_names;
use crate::passes::panics::Sites;
use crate::spmd::outcome::Outcome;

/// A module in the pipeline.
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
    /// The call graph before anything was inlined.
    pub(crate) calls: Calls,
    /// The library functions that the kernel was linked with.
    pub(crate) dependencies: Dependencies,
    /// The floating-point policy of the kernel.
    pub(crate) float: FloatPolicy,
    /// The [`Options::borrowed`](crate::Options::borrowed) of the build.
    pub(crate) borrowed: &'a [String],
    /// The places where the kernel panics or prints.
    pub(crate) sites: Sites,
    /// Statics that cache answers of queries for CPU features.
    pub(crate) caches: BTreeSet<String>,
    /// Whether each position of the kernel's grid runs two work-items.
    pub(crate) is_paired: bool,
    /// The largest value that the kernel's algorithms over groups combine, in bytes.
    pub(crate) bytes_of_element: u32,
    /// The reason why the kernel is refused. It is not proved that all work-items of a group reach a place that the library marked.
    pub(crate) unproved: Option<String>,
    /// The reason why a kernel over groups is refused that allocates at group scope.
    pub(crate) allocates_at_group_scope: Option<String>,
    /// The reason why a kernel over groups is refused if work-items meet in it: what it calls at group scope.
    pub(crate) calls_at_group_scope: Option<String>,
    /// The [`Options::lanes`](crate::Options::lanes) of the build.
    pub(crate) lanes: Lanes,
    /// What became of the kernel's item loops, if they were to be vectorised.
    pub(crate) item_loops: Vec<Outcome>,
    /// Whether the kernel is parted at its barriers, so that no work-item needs a stack.
    pub(crate) is_parted: bool,
    /// How often code was linked into the module.
    pub(crate) round: u32,
}

impl<'c, 'a> Unit<'c, 'a> {
    /// A unit with a module that no pass has changed.
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
            allocates_at_group_scope: None,
            calls_at_group_scope: None,
            lanes: Lanes::default(),
            item_loops: Vec::new(),
            is_parted: false,
            round: 0,
        }
    }

    /// A copy of the unit, before it is optimised.
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
            lanes: self.lanes,
            round: self.round,
            ..Self::new(module, self.target, self.instruments)
        }
    }

    /// Whether no code was linked after the first optimisation.
    pub(crate) fn is_first(&self) -> bool {
        self.round == 0
    }

    /// Whether a function stays visible. The function that writes records counts, since nothing calls it before panics are lowered.
    pub(crate) fn is_entry(&self, name: &str) -> bool {
        name == panic_names::RECORD && self.is_first() || self.entries.iter().any(|entry| entry == name)
    }

    /// Whether a function is the one that a driver launches.
    pub(crate) fn is_kernel(&self, name: &str) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.symbol == name)
    }

    /// Runs passes of LLVM, by their names.
    pub(crate) fn run_llvm(&self, passes: &str) -> Result<(), CompileError> {
        self.module.run(passes, Some(self.target.machine()), &self.target.tuning())
    }
}
