//! The module that becomes images, step by step.
//!
//! Each method of [`Program`] is one step between bitcode and code; `compile` says in which order they run. A step runs stages, and
//! keeps what later steps need of them. The first steps are for all kernels at once, then each kernel becomes a program of its own
//! ([`Program::reduce_to`]). Invariant: between two steps the module is well formed.

use std::collections::HashMap;
use std::path::PathBuf;

use oxisycl_image::{
    DeviceImage, Form, ImageTarget, KernelEntry, PanicSite, ParameterLayout, SourceLocation, UnsupportedKernel,
};

use crate::compile::{FloatPolicy, Options, Request, build_options};
use crate::library::{Library, link_where_used, read};
use crate::llvm::{self, Builder, Context, Linkage, Module, PassTuning, Value};
use crate::stage::resolve::Scope;
use crate::stage::{
    approximate, builtins, checks, conditions, dependencies, features, float, functions, kernels, layout, legality,
    native, pairs, panics, resolve, sanitize, wide_integers, x86,
};
use crate::target::Target;
use crate::{CompileError, Toolchain};

/// What LLVM does before it knows the whole program: inlining and simplification, and no transformation of loops yet.
const SIMPLIFY: &str = "globaldce,strip-nonlinetable-debuginfo,thinlto-pre-link<O3>";
const SIMPLIFY_AGAIN: &str = "function(instcombine<no-verify-fixpoint>,simplifycfg)";
const OPTIMISE: &str = "default<O3>,globaldce";
/// After panics were lowered: what only their messages needed is dead.
const CLEAN_UP: &str = "function(sroa,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";
/// How often conditions are followed; more depth only costs speed.
const MAX_NESTED_CONDITIONS: usize = 8;
const TUNING: PassTuning = PassTuning::DEVICE;

/// The kernels of a link unit, and the code that they reach.
pub(crate) struct Program<'c, 'a> {
    module: Module<'c>,
    kernels: Vec<kernels::Kernel>,
    target: &'a dyn Target,
    image_target: &'a ImageTarget,
    options: &'a Options,
    /// The folder for assembly after each step.
    dump: Option<PathBuf>,
    /// The functions that a driver launches, in the order of `kernels`, once they were added.
    functions: Vec<Value<'c>>,
    /// Who called whom before anything was inlined.
    calls: legality::Calls,
    /// What the kernel was linked with, once it is alone.
    dependencies: dependencies::Dependencies,
    /// How strictly the kernel's operations are compiled, once it is alone.
    float: FloatPolicy,
    sites: panics::Sites,
    /// Whether each position of the kernel's grid runs two work-items.
    is_paired: bool,
    /// How often code was linked to what was there.
    round: u32,
}

/// Kernels with code, and those that the target cannot run.
pub(crate) struct SortedOut<'c> {
    functions: Vec<Value<'c>>,
    entries: Vec<KernelEntry>,
    unsupported: Vec<UnsupportedKernel>,
}

impl SortedOut<'_> {
    pub(crate) fn are_all_unsupported(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<'c, 'a> Program<'c, 'a> {
    /// Finds the kernels, and links their entries.
    pub(crate) fn gather(
        context: &'c Context,
        toolchain: &Toolchain,
        request: &'a Request,
        target: &'a dyn Target,
        library: &mut Library<'_>,
    ) -> Result<Self, CompileError> {
        let layout = target.machine().data_layout();
        let module = Module::empty(context, "program");
        module.set_target(target.machine().triple(), &layout);
        let mut found: Vec<kernels::Kernel> = Vec::new();
        // In how many modules a function is.
        let mut names: HashMap<String, u32> = HashMap::new();
        for path in &request.modules {
            let bitcode = read(path)?;
            let mut launches = false;
            library.add_crate(context, path, bitcode.clone(), |symbol| {
                launches |= kernels::is_description(symbol);
                *names.entry(symbol.to_owned()).or_default() += 1;
            })?;
            if !launches {
                continue;
            }
            let unit = Module::from_bitcode(context, &bitcode, &path.display().to_string(), false)?;
            let new = kernels::find(context, &bitcode, &unit)?;
            link_where_used(&unit);
            for kernel in &new {
                let entry = unit.function(&kernel.entry).expect("the search has just named it");
                entry.set_linkage(llvm::Linkage::EXTERNAL);
            }
            unit.set_target(target.machine().triple(), &layout);
            module.link(unit)?;
            found.extend(new);
        }
        library.set_archives(toolchain.standard_library()?);
        for kernel in &mut found {
            kernel.launch.take_if(|launch| launch.functions.iter().any(|function| names.get(function) != Some(&1)));
        }
        found.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        found.dedup_by(|later, kernel| {
            let is_same = later.symbol == kernel.symbol;
            let place = |kernel: &kernels::Kernel| kernel.launch.as_ref().map(|launch| launch.location.clone());
            // Launched by several crates.
            if is_same && place(later) != place(kernel) {
                kernel.launch = None;
            }
            is_same
        });
        let program = Self {
            module,
            kernels: found,
            target,
            image_target: &request.target,
            options: &request.options,
            dump: request.options.dump.clone(),
            functions: Vec::new(),
            calls: legality::Calls::default(),
            dependencies: dependencies::Dependencies::default(),
            float: request.options.float,
            sites: panics::Sites::default(),
            is_paired: false,
            round: 0,
        };
        program.dump("0-linked")?;
        Ok(program)
    }

    /// A program of one module, which has the kernels' entries.
    #[cfg(test)]
    pub(crate) fn of_module(
        module: Module<'c>,
        kernels: Vec<kernels::Kernel>,
        target: &'a dyn Target,
        image_target: &'a ImageTarget,
        options: &'a Options,
    ) -> Self {
        let (calls, sites) = (legality::Calls::default(), panics::Sites::default());
        let (functions, dump) = (Vec::new(), None);
        let (dependencies, float) = (dependencies::Dependencies::default(), options.float);
        Self {
            module,
            kernels,
            target,
            image_target,
            options,
            dump,
            functions,
            calls,
            dependencies,
            float,
            sites,
            is_paired: false,
            round: 0,
        }
    }

    /// The module as it is after the last step.
    #[cfg(test)]
    pub(crate) fn module(&self) -> &Module<'c> {
        &self.module
    }

    /// Sorted by symbol.
    pub(crate) fn kernels(&self) -> &[kernels::Kernel] {
        &self.kernels
    }

    /// Turns host code into device code, and links what it refers to until nothing is missing that `scope` allows. Returns whether
    /// there is code that was not there before.
    pub(crate) fn link(&mut self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        if self.round > 0 && !self.link_missing(library, scope)? {
            return Ok(false);
        }
        let machine = Some(self.target.machine());
        loop {
            let module = &self.module;
            builtins::replace(module, self.target.builtins())?;
            features::deny(module);
            native::replace(module)?;
            x86::lower(module)?;
            wide_integers::call_conversions(module);
            functions::replace_all(module);
            panics::hook(module);
            // Nothing calls the record's function before panics are lowered.
            let is_entry = |name: &str| {
                name == panics::RECORD && self.round == 0 || self.kernels.iter().any(|kernel| kernel.entry == name)
            };
            let is_kernel = |name: &str| self.kernels.iter().any(|kernel| kernel.symbol == name);
            sanitize::sanitize(module, &is_entry, &is_kernel);
            sanitize::drop_library_checks(module);
            self.target.adapt(module);
            module.run(sanitize::LOWER_INVOKES, machine, &TUNING)?;
            sanitize::remove_personalities(module);
            module.run("globaldce", machine, &TUNING)?;
            if self.round == 0 {
                // So that it is linked once, and not with each kernel.
                panics::declare_record(module);
            }
            if !self.link_missing(library, scope)? {
                break;
            }
        }
        self.round += 1;
        self.module.verify("linking")?;
        self.dump(&format!("1-resolved-{}", self.round))?;
        Ok(true)
    }

    fn link_missing(&self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        resolve::link_missing(&self.module, library, self.target.machine(), scope)
    }

    /// Makes the functions that a driver launches. From here on nothing else is visible from outside.
    pub(crate) fn add_kernels(&mut self) -> Result<(), CompileError> {
        for kernel in &self.kernels {
            let function = self.target.add_kernel(&self.module, kernel)?;
            let entry = self.module.function(&kernel.entry).expect("a kernel was made of it");
            llvm::describe(&self.module, function, entry);
            self.functions.push(function);
            entry.set_linkage(Linkage::INTERNAL);
        }
        Ok(())
    }

    /// The same program again, before it is [reduced](Self::reduce_to).
    pub(crate) fn copy(&self) -> Self {
        let module = self.module.clone();
        let functions =
            self.kernels.iter().map(|kernel| module.function(&kernel.symbol).expect("it was added")).collect();
        let (kernels, dump) = (self.kernels.clone(), self.dump.clone());
        let (calls, sites) = (legality::Calls::default(), panics::Sites::default());
        let dependencies = dependencies::Dependencies::default();
        Self { module, kernels, functions, dump, calls, dependencies, sites, ..*self }
    }

    /// Leaves one of the kernels, and what it reaches.
    pub(crate) fn reduce_to(&mut self, kernel: usize) -> Result<(), CompileError> {
        for (position, function) in self.functions.iter().enumerate() {
            if position != kernel {
                function.delete_function();
            }
        }
        self.functions = vec![self.functions[kernel]];
        self.kernels = vec![self.kernels.swap_remove(kernel)];
        self.dump = self.dump.take().map(|folder| folder.join(&self.kernels[0].symbol));
        self.clean()?;
        if !panics::may_begin(&self.module) {
            panics::drop_record(&self.module);
            self.clean()?;
        }
        Ok(())
    }

    /// The reduced program in the form in which each position of the grid runs two work-items, if it may be the better one.
    pub(crate) fn paired(&self) -> Option<Self> {
        let is_line = matches!(self.kernels[0].form, Form::Range(1));
        (is_line && pairs::may_gain(&self.module)).then(|| Self { is_paired: true, ..self.copy() })
    }

    /// Whether the optimised kernel is one to which two work-items for each position are of use.
    pub(crate) fn gains_by_pairs(&self) -> bool {
        pairs::gains(self.functions[0])
    }

    /// Whether an optimised kernel with two work-items for each position does what it does with one.
    pub(crate) fn is_soundly_paired(&self) -> bool {
        pairs::is_sound(&self.module, self.functions[0])
    }

    pub(crate) fn optimise(&mut self) -> Result<(), CompileError> {
        self.calls.add(&self.module);
        self.dependencies.add(&self.module);
        pairs::decide(&self.module, self.is_paired);
        let machine = Some(self.target.machine());
        float::keep_library_apart(&self.module);
        if self.target.inlines_everything() {
            sanitize::inline_everything(&self.module, &self.functions);
        }
        self.module.run(SIMPLIFY, machine, &TUNING)?;
        sanitize::inline_cold(&self.module);
        // Inner conditions first: what encloses them becomes simple by that.
        for _ in 0..MAX_NESTED_CONDITIONS {
            if !conditions::follow_branches(&self.module) {
                break;
            }
            self.module.run(SIMPLIFY_AGAIN, machine, &TUNING)?;
        }
        if self.round == 1 {
            let policies = float::policies(&self.module, &self.functions, self.options.float);
            // Not again: by then code of the library is part of the functions. What comes later formats values.
            float::apply_policies(&self.functions, &policies);
            self.float = policies.first().copied().unwrap_or(self.float);
            if self.float == FloatPolicy::Fast {
                approximate::call_imprecise_functions(&self.module, self.target.builtins())?;
            }
        }
        self.dependencies.settle(&self.module);
        float::unite_with_library(&self.module);
        if self.target.inlines_everything() {
            // Those of the library, which were kept apart.
            sanitize::inline_everything(&self.module, &self.functions);
        }
        self.module.run(OPTIMISE, machine, &TUNING)?;
        panics::check_recorders(&self.module)?;
        self.dump(&format!("2-optimised-{}", self.round))
    }

    /// Makes records of panics, and removes what only their messages needed.
    pub(crate) fn lower_panics(&mut self) -> Result<(), CompileError> {
        let Self { module, target, sites, .. } = self;
        let launch = |builder: &Builder<'c>| builtins::launch(module, builder);
        panics::lower(module, sites, &launch, &|builder| target.end_work_item(module, builder));
        module.run(CLEAN_UP, Some(target.machine()), &TUNING)
    }

    /// Why the target cannot run a kernel, as far as that is known without its code.
    pub(crate) fn refusal(&self, kernel: usize) -> Option<String> {
        let kernel = &self.kernels[kernel];
        let (size, limit) = (kernel.parameters.size, self.target.max_arguments(kernel.parameters.align));
        let too_large = || kernel.with_place(&format!("its captures are {size} bytes, the limit is {limit}"));
        kernel.refused_capture().or_else(|| (size > limit).then(too_large))
    }

    /// Decides about each kernel, and deletes those that the target cannot run.
    pub(crate) fn sort_out(&mut self) -> Result<SortedOut<'c>, CompileError> {
        let mut sorted = SortedOut { functions: Vec::new(), entries: Vec::new(), unsupported: Vec::new() };
        let is_ours = |name: &str| self.target.is_own_global(name);
        self.target.expand(&self.module)?;
        let kernels = std::mem::take(&mut self.kernels);
        for (kernel, function) in kernels.into_iter().zip(std::mem::take(&mut self.functions)) {
            let mut findings = legality::examine(function, &kernel.entry, &self.calls, &is_ours);
            if findings.unsupported.is_none() {
                match self.target.examine(&self.module, &kernel.symbol) {
                    Ok(requirements) => findings.requirements.extend(requirements),
                    Err(refused) => findings.unsupported = Some(self.calls.explain(&kernel.entry, refused)),
                }
            }
            if let Some(reason) = findings.unsupported {
                sorted.unsupported.push(kernel.unsupported(reason));
                function.delete_function();
            } else {
                sorted.functions.push(function);
                let library = std::mem::take(&mut self.dependencies).into_names();
                sorted.entries.push(KernelEntry { is_paired: self.is_paired, ..entry_of(kernel, findings, library) });
            }
        }
        self.clean()?;
        Ok(sorted)
    }

    /// Turns optimised code into code that the target's code generator takes.
    pub(crate) fn legalize(&self, kernels: &SortedOut<'c>) -> Result<(), CompileError> {
        builtins::lower_launch(&self.module, &kernels.functions, || self.target.launch_slot(&self.module));
        pairs::separate(&self.module);
        checks::merge(&self.module, &kernels.functions);
        self.target.legalize(&self.module);
        self.clean()?;
        layout::move_endings_back(&self.module);
        self.module.verify("lowering")?;
        self.dump("3-lowered")
    }

    /// Generates code. LLVM may end the process on code that it cannot handle.
    pub(crate) fn emit(&self, kernels: &SortedOut<'c>, toolchain: &Toolchain) -> Result<Vec<u8>, CompileError> {
        let nothing = ParameterLayout { size: 0, align: 1 };
        let largest = kernels.entries.iter().map(|kernel| kernel.parameters).max_by_key(|parameters| parameters.size);
        let arguments = largest.unwrap_or(nothing);
        if self.target.names_lines() {
            return self.target.emit(&self.module.with_line_directives()?, arguments, toolchain);
        }
        self.module.strip_debug_info();
        self.target.emit(&self.module, arguments, toolchain)
    }

    /// The image of the kernel. `toolchain` is what it was compiled by.
    pub(crate) fn image(&mut self, kernels: SortedOut<'c>, code: Vec<u8>, toolchain: &Toolchain) -> DeviceImage {
        let SortedOut { entries, unsupported, .. } = kernels;
        let sites: Vec<PanicSite> = std::mem::take(&mut self.sites.list);
        let (target, build_options) =
            (self.target.image_target(self.image_target, &code), build_options(toolchain, self.float));
        DeviceImage { target, kernels: entries, build_options, unsupported, sites, code }
    }

    fn clean(&self) -> Result<(), CompileError> {
        self.module.run("globaldce", Some(self.target.machine()), &TUNING)
    }

    /// Writes the module for people to read.
    fn dump(&self, stage: &str) -> Result<(), CompileError> {
        let Some(folder) = &self.dump else { return Ok(()) };
        let path = folder.join(format!("{stage}.ll"));
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, self.module.to_string()));
        written.map_err(|error| CompileError::File { path, error })
    }
}

fn entry_of(kernel: kernels::Kernel, findings: legality::Findings, library: Vec<String>) -> KernelEntry {
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
