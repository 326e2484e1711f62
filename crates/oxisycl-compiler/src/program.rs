//! The module that becomes an image, step by step.
//!
//! Each method of [`Program`] is one step between bitcode and code; `compile` says in which order they run. A step runs stages, and
//! keeps what later steps need of them. Each kernel is a program of its own. Invariant: between two steps the module is well formed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, PanicSite, SourceLocation, UnsupportedKernel};
use oxisycl_types::Aspect;

use crate::analyses::early_refusal::Extent;
use crate::analyses::{dependencies, early_refusal, legality};
use crate::codegen::Target;
use crate::compile::build_options;
use crate::error::CompileError;
use crate::kernel::{Described, Kernel};
use crate::link::library::Library;
use crate::link::resolve;
use crate::link::resolve::{Scope, Searches};
use crate::llvm::{self, Builder, Context, Linkage, Module, PassTuning, Value};
use crate::options::{FloatPolicy, Options};
use crate::passes::{
    arena, bounds_check_merging, branch_correlation, builtins, cold_blocks, cpu_features, fast_math, float_atomics,
    float_policy, frames, int128, libcalls, native, panic_names, panics, private_atomics, recursion, strip_host_abi,
    thread_coarsening, x86,
};
use crate::toolchain::Toolchain;

/// What LLVM does before it knows the whole program: inlining and simplification, and no transformation of loops yet.
const SIMPLIFY: &str = "globaldce,strip-nonlinetable-debuginfo,thinlto-pre-link<O3>";
const SIMPLIFY_AGAIN: &str = "function(instcombine<no-verify-fixpoint>,simplifycfg)";
/// After panics were lowered: what only their messages needed is dead.
const CLEAN_UP: &str = "function(sroa,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";
/// How often conditions are followed; more depth only costs speed.
const MAX_NESTED_CONDITIONS: usize = 8;
const TUNING: PassTuning = PassTuning::DEVICE;
/// What the module is called in its assembly.
pub(crate) const NAME: &str = "program";

/// A kernel, and the code that it reaches.
pub(crate) struct Program<'c, 'a> {
    module: Module<'c>,
    kernel: Kernel,
    target: &'a dyn Target,
    image_target: &'a ImageTarget,
    options: &'a Options,
    /// The folder for assembly after each step.
    dump: Option<PathBuf>,
    /// The function that a driver launches, once it was added.
    function: Option<Value<'c>>,
    /// Who called whom before anything was inlined.
    calls: legality::Calls,
    /// What the kernel was linked with.
    dependencies: dependencies::Dependencies,
    /// How strictly the kernel's operations are compiled.
    float: FloatPolicy,
    sites: panics::Sites,
    searches: Searches,
    /// Statics that hold what the program made of questions about the processor.
    caches: BTreeSet<String>,
    /// Whether each position of the kernel's grid runs two work-items.
    is_paired: bool,
    /// How often code was linked to what was there.
    round: u32,
    /// Why the target cannot run it, if that was seen before anything was optimised.
    early_refusal: Option<String>,
    /// Whether all that the kernel reaches is there and is device code: what the first [`link`](Self::link) is for was done before.
    is_linked: bool,
}

/// The code that a kernel's entry is in.
pub(crate) struct KernelCode<'c> {
    /// Its bitcode.
    pub(crate) bitcode: &'c Rc<Vec<u8>>,
    /// The module, if it was opened before.
    pub(crate) opened: Option<Module<'c>>,
    /// Whether it is device code, with all that kernels reach in other modules.
    pub(crate) is_linked: bool,
}

/// What was decided about a kernel.
pub(crate) enum Decision<'c> {
    /// It has code, with the function that a driver launches.
    Runs(Value<'c>, KernelEntry),
    /// The target cannot run it.
    IsRefused(UnsupportedKernel),
}

impl Decision<'_> {
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::IsRefused(_))
    }
}

impl<'c, 'a> Program<'c, 'a> {
    /// Links the kernel's entry, and what it reaches in `code`.
    pub(crate) fn of_kernel(
        context: &'c Context,
        described: &Described,
        code: KernelCode<'c>,
        target: &'a dyn Target,
        image_target: &'a ImageTarget,
        options: &'a Options,
    ) -> Result<Self, CompileError> {
        let module = Module::empty(context, NAME);
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        let kernel = described.kernel.clone();
        let KernelCode { bitcode, opened, is_linked } = code;
        let code = opened.map_or_else(|| Module::lazy(context, bitcode, "kernels"), Ok)?;
        let entry = code.function(&kernel.entry);
        entry.ok_or_else(|| entry_was_lost(&kernel))?.set_linkage(Linkage::EXTERNAL);
        module.link(code)?;
        let mut program = Self::of_module(module, kernel, target, image_target, options);
        program.is_linked = is_linked;
        let folder = |dump: &PathBuf| dump.join(image_target.to_string()).join(&program.kernel.symbol);
        program.dump = options.dump.as_ref().map(folder);
        program.dump("0-linked")?;
        Ok(program)
    }

    /// A program of one module, which has the kernel's entry.
    pub(crate) fn of_module(
        module: Module<'c>,
        kernel: Kernel,
        target: &'a dyn Target,
        image_target: &'a ImageTarget,
        options: &'a Options,
    ) -> Self {
        Self {
            module,
            kernel,
            target,
            image_target,
            options,
            dump: None,
            function: None,
            calls: legality::Calls::default(),
            dependencies: dependencies::Dependencies::default(),
            float: options.float,
            sites: panics::Sites::default(),
            searches: Searches::default(),
            caches: BTreeSet::new(),
            is_paired: false,
            round: 0,
            early_refusal: None,
            is_linked: false,
        }
    }

    /// The module as it is after the last step.
    pub(crate) fn module(&self) -> &Module<'c> {
        &self.module
    }

    /// Turns host code into device code, and links what it refers to until nothing is missing that `scope` allows. Returns whether
    /// there is code that was not there before.
    pub(crate) fn link(&mut self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        if self.round > 0 && !self.link_missing(library, scope)? {
            return Ok(false);
        }
        let is_first = self.round == 0;
        let mut was_excessive = false;
        let mut is_linked = is_first && self.is_linked;
        while !is_linked {
            // Nothing calls the record's function before panics are lowered.
            let is_entry = |name: &str| name == panic_names::RECORD && is_first || name == self.kernel.entry;
            let is_kernel = |name: &str| name == self.kernel.symbol;
            make_device_code(&self.module, self.target, &is_entry, &is_kernel, is_first, &mut self.caches)?;
            if is_first && !was_excessive && early_refusal::is_excessive(&self.module) {
                was_excessive = true;
                self.look_ahead(Extent::Part)?;
                if self.early_refusal.is_some() {
                    return Ok(true);
                }
            }
            is_linked = !self.link_missing(library, scope)?;
        }
        if is_first {
            self.look_ahead(Extent::Linked)?;
            if self.early_refusal.is_none() {
                let oversize = early_refusal::oversize(&self.module, early_refusal::MAX_INSTRUCTIONS);
                self.early_refusal = oversize.map(|reason| self.kernel.with_place(&reason));
            }
        }
        self.round += 1;
        self.module.verify("linking")?;
        self.dump(&format!("1-resolved-{}", self.round))?;
        Ok(true)
    }

    fn link_missing(&mut self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        resolve::link_missing(&self.module, library, &mut self.searches, scope)
    }

    /// All that decides about what becomes of the program from here on, but for what is linked later and the compiler itself.
    pub(crate) fn content(&self) -> Vec<u8> {
        let Options { float, .. } = self.options;
        let description = format!("{} {float} {:?} {:?}", self.image_target, self.kernel, self.caches);
        let length = (description.len() as u64).to_le_bytes();
        [&length, description.as_bytes(), &*self.module.to_bitcode()].concat()
    }

    /// Whether anything was linked after the program was optimised for the first time.
    pub(crate) fn was_linked_later(&self) -> bool {
        self.round > 1
    }

    /// Makes the function that a driver launches. From here on nothing else is visible from outside.
    pub(crate) fn add_kernel(&mut self) -> Result<(), CompileError> {
        let function = self.target.add_kernel(&self.module, &self.kernel)?;
        let entry = self.module.function(&self.kernel.entry).ok_or_else(|| entry_was_lost(&self.kernel))?;
        llvm::describe(&self.module, function, entry);
        entry.set_linkage(Linkage::INTERNAL);
        self.function = Some(function);
        self.clean()?;
        if !panics::may_begin(&self.module) {
            panics::drop_record(&self.module);
            self.clean()?;
        }
        Ok(())
    }

    /// The refusal of a kernel that reaches so much that all of it was not linked, or is not worth to be optimised.
    pub(crate) fn early_refusal(&mut self) -> Option<Decision<'c>> {
        let reason = self.early_refusal.take()?;
        Some(Decision::IsRefused(self.kernel.unsupported(reason)))
    }

    /// Looks for an early refusal if the kernel reaches very much.
    fn look_ahead(&mut self, extent: Extent) -> Result<(), CompileError> {
        if early_refusal::is_excessive(&self.module) {
            self.calls.add(&self.module);
            let is_own = |name: &str| self.target.is_own_global(name);
            let Self { module, kernel, calls, target, .. } = self;
            self.early_refusal =
                early_refusal::refusal(module, &kernel.entry, extent, target.machine(), calls, &is_own)?;
        }
        Ok(())
    }

    /// The program in the form in which each position of the grid runs two work-items, if it may be the better one.
    pub(crate) fn paired(&self) -> Option<Self> {
        let is_line = matches!(self.kernel.form, Form::Range(1));
        // Each work-item has an arena of its own.
        let may_gain = is_line && thread_coarsening::may_gain(&self.module) && !arena::is_wanted(&self.module);
        may_gain.then(|| Self { is_paired: true, ..self.copy() })
    }

    /// The same program again, before it is optimised.
    fn copy(&self) -> Self {
        let module = self.module.clone();
        let function = module.function(&self.kernel.symbol);
        Self {
            module,
            kernel: self.kernel.clone(),
            function,
            dump: self.dump.clone(),
            calls: legality::Calls::default(),
            dependencies: dependencies::Dependencies::default(),
            sites: panics::Sites::default(),
            searches: Searches::default(),
            caches: self.caches.clone(),
            early_refusal: None,
            ..*self
        }
    }

    /// Whether the optimised kernel is one to which two work-items for each position are of use.
    pub(crate) fn gains_by_pairs(&self) -> bool {
        self.function.is_some_and(thread_coarsening::gains)
    }

    /// Whether an optimised kernel with two work-items for each position does what it does with one.
    pub(crate) fn is_soundly_paired(&self) -> bool {
        self.function.is_some_and(|function| thread_coarsening::is_sound(&self.module, function))
    }

    pub(crate) fn optimise(&mut self) -> Result<(), CompileError> {
        self.calls.add(&self.module);
        self.dependencies.add(&self.module);
        thread_coarsening::decide(&self.module, self.is_paired);
        let machine = Some(self.target.machine());
        float_policy::keep_library_apart(&self.module);
        if self.target.inlines_everything() {
            strip_host_abi::inline_everything(&self.module, self.function.as_slice());
        }
        self.module.run(SIMPLIFY, machine, &TUNING)?;
        strip_host_abi::inline_cold(&self.module);
        arena::provide(&self.module, self.function)?;
        cpu_features::forget(&self.module, &self.caches);
        private_atomics::make_plain(&self.module)?;
        self.dump(&format!("2-optimised-{}.1-simplified", self.round))?;
        // Inner conditions first: what encloses them becomes simple by that.
        for _ in 0..MAX_NESTED_CONDITIONS {
            if !branch_correlation::follow_branches(&self.module) {
                break;
            }
            self.module.run(SIMPLIFY_AGAIN, machine, &TUNING)?;
        }
        self.dump(&format!("2-optimised-{}.2-conditions", self.round))?;
        if self.round == 1 {
            let policies = float_policy::policies(&self.module, self.function.as_slice(), self.options.float);
            // Not again: by then code of the library is part of the functions. What comes later formats values.
            float_policy::apply_policies(self.function.as_slice(), &policies);
            self.float = policies.first().copied().unwrap_or(self.float);
            if self.float == FloatPolicy::Fast {
                fast_math::call_imprecise_functions(&self.module, self.target.builtins())?;
            }
            float_atomics::define(&self.module, self.float)?;
        }
        self.dependencies.settle(&self.module);
        float_policy::unite_with_library(&self.module);
        if self.target.inlines_everything() {
            // Those of the library, which were kept apart.
            strip_host_abi::inline_everything(&self.module, self.function.as_slice());
        }
        self.dump(&format!("2-optimised-{}.3-float", self.round))?;
        self.module.run(&format!("{},globaldce", self.target.optimisation()), machine, &TUNING)?;
        // Of what was inlined only now.
        private_atomics::make_plain(&self.module)?;
        panics::check_recorders(&self.module)?;
        self.dump(&format!("2-optimised-{}", self.round))
    }

    /// Has recursive functions look for stack, makes records of panics, and removes what only their messages needed.
    pub(crate) fn lower_panics(&mut self) -> Result<(), CompileError> {
        if self.target.stack_limit_space().is_some() {
            recursion::add_checks(&self.module);
            self.dump(&format!("2-optimised-{}.then-1-recursion", self.round))?;
        } else if frames::flatten(&self.module)? {
            self.dump(&format!("2-optimised-{}.then-1-recursion", self.round))?;
        }
        let Self { module, target, sites, .. } = self;
        let launch = |builder: &Builder<'c>| builtins::launch(module, builder);
        panics::lower(module, sites, &launch, &|builder| target.end_work_item(module, builder));
        module.run(CLEAN_UP, Some(target.machine()), &TUNING)?;
        self.dump(&format!("2-optimised-{}.then-2-panics", self.round))
    }

    /// Decides about the kernel, and deletes it if the target cannot run it.
    pub(crate) fn decide(&mut self) -> Result<Decision<'c>, CompileError> {
        let is_ours = |name: &str| self.target.is_own_global(name);
        self.target.expand(&self.module)?;
        self.dump("3-lowered.1-expanded")?;
        let kernel = self.kernel.clone();
        let function = self.function.take().ok_or_else(|| entry_was_lost(&kernel))?;
        let mut findings = legality::examine(function, &kernel.entry, &self.calls, &is_ours);
        if findings.unsupported.is_none() {
            match self.target.examine(&self.module, &kernel.symbol) {
                Ok(requirements) => findings.requirements.extend(requirements),
                Err(refused) => findings.unsupported = Some(self.calls.explain(&kernel.entry, refused)),
            }
        }
        let decision = match findings.unsupported.take() {
            Some(reason) => {
                function.delete_function();
                Decision::IsRefused(kernel.unsupported(reason))
            }
            None => {
                let library = std::mem::take(&mut self.dependencies).into_names();
                let entry = KernelEntry { is_paired: self.is_paired, ..entry_of(kernel, findings, library) };
                Decision::Runs(function, entry)
            }
        };
        self.clean()?;
        Ok(decision)
    }

    /// Turns optimised code into code that the target's code generator takes.
    pub(crate) fn legalize(&self, kernel: Value<'c>) -> Result<(), CompileError> {
        if let Some(group_memory) = self.target.stack_limit_space() {
            recursion::lower(&self.module, kernel, group_memory);
        }
        builtins::lower_launch(&self.module, &[kernel], || self.target.launch_slot(&self.module));
        self.dump("3-lowered.2-launch")?;
        thread_coarsening::separate(&self.module);
        bounds_check_merging::merge(&self.module, &[kernel]);
        self.dump("3-lowered.3-checks")?;
        self.target.legalize(&self.module);
        self.dump("3-lowered.4-legalized")?;
        self.clean()?;
        cold_blocks::move_endings_back(&self.module);
        self.module.verify("lowering")?;
        self.dump("3-lowered")
    }

    /// Generates code. LLVM may end the process on code that it cannot handle.
    pub(crate) fn emit(&self, toolchain: &Toolchain) -> Result<Vec<u8>, CompileError> {
        let arguments = self.kernel.parameters;
        let lines = if self.target.names_lines() { Some(self.module.with_line_directives()?) } else { None };
        if lines.is_none() {
            self.module.strip_debug_info();
        }
        let start = Instant::now();
        let code = self.target.emit(lines.as_ref().unwrap_or(&self.module), arguments, toolchain)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        self.write("4-emitted.txt", || format!("{} bytes of code in {milliseconds:.1} ms\n", code.len()))?;
        Ok(code)
    }

    /// Other code of the same kernel, for devices with an aspect that it gains by. To be called after [`emit`](Self::emit).
    pub(crate) fn emit_for_aspect(&self, toolchain: &Toolchain) -> Result<Option<(Aspect, Vec<u8>)>, CompileError> {
        self.target.emit_for_aspect(&self.module, toolchain)
    }

    /// The image of the kernel. `toolchain` is what it was compiled by.
    pub(crate) fn image(&mut self, decision: Decision<'c>, code: Vec<u8>, toolchain: &Toolchain) -> DeviceImage {
        let (kernels, unsupported) = match decision {
            Decision::Runs(_, kernel) => (vec![kernel], Vec::new()),
            Decision::IsRefused(kernel) => (Vec::new(), vec![kernel]),
        };
        let sites: Vec<PanicSite> = std::mem::take(&mut self.sites.list);
        let (target, build_options) =
            (self.target.image_target(self.image_target, &code), build_options(toolchain, self.float));
        DeviceImage { target, kernels, build_options, unsupported, sites, code }
    }

    fn clean(&self) -> Result<(), CompileError> {
        self.module.run("globaldce", Some(self.target.machine()), &TUNING)
    }

    /// Writes the module for people to read. Within a stage, names sort in the order of the steps.
    fn dump(&self, stage: &str) -> Result<(), CompileError> {
        self.write(&format!("{stage}.ll"), || self.module.to_string())
    }

    /// Writes a file beside those of the stages, if they are wanted.
    fn write(&self, name: &str, text: impl FnOnce() -> String) -> Result<(), CompileError> {
        let Some(folder) = &self.dump else { return Ok(()) };
        let path = folder.join(name);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text()));
        written.map_err(|error| CompileError::File { path, error })
    }
}

/// Turns the host code in a module into device code, as far as it is there. `is_first` is for code to which nothing was linked yet after it
/// was optimised. Adds to `caches` as [`cpu_features::caches`] does.
pub(crate) fn make_device_code(
    module: &Module<'_>,
    target: &dyn Target,
    is_entry: &dyn Fn(&str) -> bool,
    is_kernel: &dyn Fn(&str) -> bool,
    is_first: bool,
    caches: &mut BTreeSet<String>,
) -> Result<(), CompileError> {
    let machine = Some(target.machine());
    builtins::replace(module, target.builtins())?;
    cpu_features::caches(module, caches);
    cpu_features::deny(module);
    native::replace(module)?;
    x86::lower(module)?;
    int128::call_conversions(module);
    libcalls::replace_all(module);
    panics::hook(module);
    strip_host_abi::sanitize(module, is_entry, is_kernel);
    strip_host_abi::drop_library_checks(module);
    target.adapt(module);
    module.run(strip_host_abi::LOWER_INVOKES, machine, &TUNING)?;
    strip_host_abi::remove_personalities(module);
    module.run("globaldce", machine, &TUNING)?;
    if is_first {
        // So that it is linked once, and not with each kernel.
        panics::declare_record(module);
    }
    Ok(())
}

fn entry_was_lost(kernel: &Kernel) -> CompileError {
    CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name))
}

fn entry_of(kernel: Kernel, findings: legality::Findings, library: Vec<String>) -> KernelEntry {
    KernelEntry {
        symbol: kernel.symbol,
        type_id: kernel.type_id,
        form: kernel.form,
        parameters: kernel.parameters,
        type_name: kernel.type_name,
        launch: kernel.launch.map(|launch| launch.location),
        location: kernel.place.unwrap_or(SourceLocation { file: String::new(), line: 1, column: 1 }),
        requirements: findings.requirements.into_iter().map(str::to_owned).collect(),
        library,
        may_panic: findings.may_panic,
        may_print: findings.may_print,
        is_paired: false,
        has_unbounded_stack: findings.has_unbounded_stack,
    }
}
