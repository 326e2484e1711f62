//! The compilation of one kernel to an image, step by step.
//!
//! Each method of [`Program`] is one step between bitcode and code; `compile` says in which order they run. A step runs phases of the
//! [`pipeline`], and decides between them. Each kernel is a program of its own.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Instant;

use oxisycl_image::{
    DeviceImage, Form, GroupNeeds, ImageTarget, KernelEntry, PanicSite, SourceLocation, SpecializedLoad,
    UnsupportedKernel,
};
use oxisycl_types::Aspect;

use crate::analyses::early_refusal::{self, Extent};
use crate::analyses::{exports, group_scope, legality};
use crate::builtin_table::{self, WIDE_LOAD, WIDE_STORE};
use crate::codegen::Target;
use crate::error::CompileError;
use crate::instruments::Instruments;
use crate::kernel::{Described, Kernel, entry_was_lost};
use crate::link::library::Library;
use crate::link::resolve::{self, Scope, Searches};
use crate::llvm::{Context, Layout, Linkage, Module, TypeKind};
use crate::options::{FloatPolicy, Lanes, Options};
use crate::passes::{arena, early_exits, float_policy, libcalls, native_code, thread_coarsening};
use crate::pipeline::{self, Phase};
use crate::refused::Refused;
use crate::spmd::outcome::{AS_FAST, Outcome};
use crate::toolchain::Toolchain;
use crate::unit::Unit;

/// The name of the module in its assembly.
pub(crate) const NAME: &str = "program";

/// A kernel, and the code that it reaches.
pub(crate) struct Program<'c, 'a> {
    unit: Unit<'c, 'a>,
    kernel: Kernel,
    image_target: &'a ImageTarget,
    options: &'a Options,
    searches: Searches,
    /// The reason why the target cannot run the kernel, if it was found before optimisation.
    early_refusal: Option<String>,
    /// Whether all that the kernel reaches is linked and is device code, so that the first [`link`](Self::link) has nothing to do.
    is_linked: bool,
}

/// The code that contains a kernel's entry.
pub(crate) struct KernelCode<'c> {
    /// The bitcode of the code's module.
    pub(crate) bitcode: &'c Rc<Vec<u8>>,
    /// The opened module of the bitcode, if there is one.
    pub(crate) opened: Option<Module<'c>>,
    /// Whether the code is device code, with all that kernels reach in other modules.
    pub(crate) is_linked: bool,
}

/// The decision about a kernel.
pub(crate) enum Decision {
    /// The kernel has code.
    Runs(Box<KernelEntry>),
    /// The target cannot run it.
    IsRefused(UnsupportedKernel),
}

impl Decision {
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::IsRefused(_))
    }
}

impl<'c, 'a> Program<'c, 'a> {
    /// A program with the kernel's entry, and the functions that it reaches in `code`.
    pub(crate) fn of_kernel(
        context: &'c Context,
        described: &Described,
        code: KernelCode<'c>,
        target: &'a dyn Target,
        image_target: &'a ImageTarget,
        options: &'a Options,
        instruments: &'a Instruments,
    ) -> Result<Self, CompileError> {
        let module = Module::empty(context, NAME);
        module.set_target(target.machine().triple(), &target.machine().data_layout());
        let kernel = described.kernel.clone();
        let KernelCode { bitcode, opened, is_linked } = code;
        let code = opened.map_or_else(|| Module::lazy(context, bitcode, "kernels"), Ok)?;
        let entry = code.function(&kernel.entry);
        entry.ok_or_else(|| entry_was_lost(&kernel))?.set_linkage(Linkage::EXTERNAL);
        instruments.time("link", || module.link(code))?;
        instruments.dump("linked", &module)?;
        let mut program = Self::of_module(module, kernel, target, image_target, options, instruments);
        program.is_linked = is_linked;
        Ok(program)
    }

    /// A program from one module, which has the kernel's entry.
    pub(crate) fn of_module(
        module: Module<'c>,
        kernel: Kernel,
        target: &'a dyn Target,
        image_target: &'a ImageTarget,
        options: &'a Options,
        instruments: &'a Instruments,
    ) -> Self {
        let entries = vec![kernel.entry.clone()];
        let unit = Unit {
            kernel: Some(kernel.clone()),
            entries,
            float: options.float,
            borrowed: &options.borrowed,
            lanes: options.lanes,
            ..Unit::new(module, target, instruments)
        };
        let searches = Searches::default();
        Self { unit, kernel, image_target, options, searches, early_refusal: None, is_linked: false }
    }

    /// The module after the last step.
    pub(crate) fn module(&self) -> &Module<'c> {
        &self.unit.module
    }

    /// Turns host code into device code, and links definitions until nothing is missing that `scope` allows. Returns whether new code was
    /// linked.
    pub(crate) fn link(&mut self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        if self.unit.target.runs_in_process() {
            return self.link_native(library);
        }
        if self.unit.round > 0 && !self.link_missing(library, scope)? {
            return Ok(false);
        }
        let is_first = self.unit.is_first();
        let mut was_excessive = false;
        let mut is_linked = is_first && self.is_linked;
        while !is_linked {
            pipeline::run(Phase::Adapt, &mut self.unit)?;
            if is_first && !was_excessive && early_refusal::is_excessive(self.module()) {
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
                let oversize = early_refusal::oversize(self.module(), early_refusal::MAX_INSTRUCTIONS);
                self.early_refusal = oversize.map(|reason| self.kernel.with_place(&reason));
            }
        }
        for name in std::mem::take(&mut self.unit.caches) {
            if library.is_cache(&name)? {
                self.unit.caches.insert(name);
            }
        }
        self.unit.round += 1;
        self.module().verify("linking")?;
        Ok(true)
    }

    /// Links what native code needs beside what the final link finds, once.
    fn link_native(&mut self, library: &mut Library<'_>) -> Result<bool, CompileError> {
        if !self.unit.is_first() {
            return Ok(false);
        }
        pipeline::run(Phase::Adapt, &mut self.unit)?;
        while self.link_missing(library, Scope::Native)? {
            pipeline::run(Phase::Adapt, &mut self.unit)?;
            // Else much of the standard library would be copied before its size is looked at.
            if self.options.loses_names && early_refusal::is_excessive(self.module()) {
                let reason = "it calls too much that native code would have to copy, since link-time optimisation takes the names away";
                self.early_refusal = Some(self.kernel.with_place(reason));
                return Ok(true);
            }
        }
        let (module, of_build) = (self.module(), self.unit.float);
        let entry = module.function(&self.kernel.entry);
        let float = entry.map_or(of_build, |entry| float_policy::policy(module, entry, of_build));
        if !self.unit.lanes.is_one() && float != FloatPolicy::Strict {
            libcalls::declare_for_lanes(self.module());
            while self.link_missing(library, Scope::Native)? {
                pipeline::run(Phase::Adapt, &mut self.unit)?;
            }
        }
        let processor = native_code::other_processor(self.module(), &self.kernel.entry);
        let reason = processor
            .map(|processor| format!("its code in the program is for the processor {processor} already"))
            .or_else(|| early_refusal::oversize(self.module(), early_refusal::MAX_INSTRUCTIONS));
        self.early_refusal = reason.map(|reason| self.kernel.with_place(&reason));
        self.unit.round += 1;
        self.module().verify("linking")?;
        Ok(true)
    }

    fn link_missing(&mut self, library: &mut Library<'_>, scope: Scope) -> Result<bool, CompileError> {
        let Self { unit: Unit { module, instruments, .. }, searches, .. } = self;
        let has_more = instruments.time("link", || resolve::link_missing(module, library, searches, scope))?;
        if has_more {
            instruments.dump("linked", module)?;
        }
        Ok(has_more)
    }

    /// All data that the program's result depends on from here on, except code that is linked later and the compiler itself.
    pub(crate) fn content(&self) -> Vec<u8> {
        let Options { float, .. } = self.options;
        // Code of devices is the same for any number.
        let lanes = if self.unit.target.runs_in_process() { self.unit.lanes } else { Lanes::default() };
        let (caches, unknown) = (&self.unit.caches, &self.searches.unknown);
        let how = [self.has_native_lines(), self.unit.target.runs_in_process() && self.options.loses_names];
        let description =
            format!("{} {float} {lanes} {how:?} {:?} {caches:?} {unknown:?}", self.image_target, self.kernel);
        let length = (description.len() as u64).to_le_bytes();
        [&length, description.as_bytes(), &*self.module().to_bitcode()].concat()
    }

    /// Whether debug information is part of the code, and not only what the compiler knows places by.
    fn has_native_lines(&self) -> bool {
        self.options.has_lines && self.unit.target.runs_in_process()
    }

    /// Whether code was linked after the first optimisation of the program.
    pub(crate) fn was_linked_later(&self) -> bool {
        self.unit.round > 1
    }

    /// Adds the function that a driver launches. From here on no other function is visible from outside.
    pub(crate) fn add_kernel(&mut self) -> Result<(), CompileError> {
        pipeline::run(Phase::Entry, &mut self.unit)
    }

    /// The refusal of a kernel that reaches so much that it was not linked completely, or is not worth optimising.
    pub(crate) fn early_refusal(&mut self) -> Option<Decision> {
        let reason = self.early_refusal.take()?;
        Some(Decision::IsRefused(self.kernel.unsupported(reason)))
    }

    /// Checks for an early refusal if the kernel reaches very much.
    fn look_ahead(&mut self, extent: Extent) -> Result<(), CompileError> {
        let Self { unit: Unit { module, target, calls, instruments, .. }, kernel, .. } = self;
        if early_refusal::is_excessive(module) {
            let is_own = |name: &str| target.is_own_global(name);
            self.early_refusal = instruments.time("early-refusal", || {
                calls.add(module);
                early_refusal::refusal(module, &kernel.entry, extent, target.machine(), calls, &is_own)
            })?;
        }
        Ok(())
    }

    /// A copy of the program in which each position of the grid runs two work-items, if that may be the better form.
    pub(crate) fn paired(&self) -> Option<Self> {
        // Whose groups no kernel states: paired ones have half as many threads.
        let is_line = matches!(self.kernel.form, Form::Range(1)) && self.kernel.group == [0; 3];
        // Each work-item has an arena of its own.
        let may_gain = is_line
            && !self.unit.target.runs_in_process()
            && thread_coarsening::may_gain(self.module())
            && !arena::is_wanted(self.module());
        may_gain.then(|| Self {
            unit: Unit { is_paired: true, ..self.unit.copy() },
            kernel: self.kernel.clone(),
            searches: Searches::default(),
            early_refusal: None,
            ..*self
        })
    }

    /// Whether the optimised kernel would gain from two work-items for each position.
    pub(crate) fn gains_by_pairs(&self) -> bool {
        self.unit.function.is_some_and(thread_coarsening::gains)
    }

    /// Whether an optimised kernel with two work-items for each position behaves as with one.
    pub(crate) fn is_soundly_paired(&self) -> bool {
        self.unit.function.is_some_and(|function| thread_coarsening::is_sound(self.module(), function))
    }

    /// Optimises the linked code, and lowers its panics.
    pub(crate) fn optimise(&mut self) -> Result<(), CompileError> {
        pipeline::run(Phase::Optimise, &mut self.unit)?;
        pipeline::run(Phase::LowerPanics, &mut self.unit)
    }

    /// Decides whether the target can run the kernel, and deletes it if not.
    pub(crate) fn decide(&mut self) -> Result<Decision, CompileError> {
        if self.unit.target.runs_in_process() {
            return Ok(self.decide_native());
        }
        pipeline::run(Phase::Expand, &mut self.unit)?;
        let kernel = self.kernel.clone();
        let unit = &mut self.unit;
        let function = unit.function.ok_or_else(|| entry_was_lost(&kernel))?;
        let is_ours =
            |name: &str| unit.target.is_own_global(name) || [early_exits::WORD, early_exits::PASSED].contains(&name);
        let mut findings =
            unit.instruments.time("legality", || legality::examine(function, &kernel.entry, &unit.calls, &is_ours));
        if findings.unsupported.is_none()
            && findings.requirements.contains(Aspect::ExtOxisyclAtomic128.name())
            && !unit.target.has_wide_atomics()
        {
            const REASON: &str = "atomic loads and stores of 128 bits, which the target has not; use values of 64 bits";
            let user = [WIDE_LOAD, WIDE_STORE].into_iter().find_map(|name| {
                let builtin = unit.module.function(&format!("{}{name}", builtin_table::PREFIX))?;
                Some(Refused::new(REASON).within(builtin))
            });
            findings.unsupported = user.map(|refused| unit.calls.explain(&kernel.entry, refused));
        }
        if findings.unsupported.is_none() {
            match unit.target.examine(&unit.module, &kernel.symbol) {
                Ok(requirements) => findings.requirements.extend(requirements),
                Err(refused) => findings.unsupported = Some(unit.calls.explain(&kernel.entry, refused)),
            }
        }
        if findings.unsupported.is_none() && matches!(kernel.form, Form::Group(_)) {
            let [allocates, calls] =
                [&mut unit.allocates_at_group_scope, &mut unit.calls_at_group_scope].map(Option::take);
            let unproved = unit.unproved.take().or(allocates).or_else(|| group_scope::refusal(function, calls));
            findings.unsupported = unproved.map(|reason| kernel.with_place(&reason));
        }
        match findings.unsupported.take() {
            Some(reason) => {
                unit.function = None;
                function.delete_function();
                Ok(Decision::IsRefused(kernel.unsupported(reason)))
            }
            None => {
                let library = std::mem::take(&mut unit.dependencies).into_names();
                let (is_paired, unstated) = (unit.is_paired, unstated(&kernel, &findings));
                Ok(Decision::Runs(Box::new(KernelEntry { is_paired, unstated, ..entry_of(kernel, findings, library) })))
            }
        }
    }

    /// Decides whether optimised native code can be linked into the program.
    fn decide_native(&self) -> Decision {
        let Self { unit: Unit { module, calls, unproved, .. }, kernel, searches, .. } = self;
        let waits = unproved.as_deref().map(|reason| kernel.with_place(reason));
        let refusal = waits.or_else(|| exports::refusal(module, &kernel.entry, calls, &searches.unknown));
        match refusal.or_else(|| self.gains_nothing()) {
            Some(reason) => Decision::IsRefused(kernel.unsupported(reason)),
            None => {
                let findings = legality::Findings { may_panic: true, may_print: true, ..legality::Findings::default() };
                Decision::Runs(Box::new(entry_of(kernel.clone(), findings, Vec::new())))
            }
        }
    }

    /// Why rustc's own code of a kernel is as good, if the compiler may choose.
    ///
    /// Code of one item after the other is that of another optimiser, and now and then much slower. So there has to be a reason for it.
    fn gains_nothing(&self) -> Option<String> {
        let Unit { module, lanes, item_loops, is_parted, .. } = &self.unit;
        if *lanes != Lanes::Auto || *is_parted || native_code::uses_level(module) {
            return None;
        }
        let reasons = item_loops.iter().map(|outcome| match outcome {
            Outcome::Scalar(reason) => Some(reason),
            Outcome::Vector { .. } | Outcome::Llvms { .. } => None,
        });
        let reasons = reasons.collect::<Option<Vec<_>>>()?;
        Some(format!("{AS_FAST}its work-items run one by one: {}", reasons.first()?))
    }

    /// Lowers optimised code to code that the target's code generator accepts.
    pub(crate) fn legalize(&mut self) -> Result<(), CompileError> {
        pipeline::run(Phase::Legalize, &mut self.unit)?;
        self.module().verify("lowering")?;
        let Unit { module, instruments, .. } = &self.unit;
        instruments.write("lowered.ll", || module.to_string())
    }

    /// Generates code. LLVM may end the process on code that it cannot handle.
    pub(crate) fn emit(&self, toolchain: &Toolchain) -> Result<Vec<u8>, CompileError> {
        let arguments = self.kernel.parameters;
        let Unit { module, target, instruments, .. } = &self.unit;
        let lines = if target.names_lines() { Some(module.with_line_directives()?) } else { None };
        if target.runs_in_process() && self.options.loses_names {
            native_code::call_kept(module);
        }
        if lines.is_none() && !self.has_native_lines() {
            module.strip_debug_info();
        }
        let start = Instant::now();
        let code = instruments.time("emit", || target.emit(lines.as_ref().unwrap_or(module), arguments, toolchain))?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        instruments.write("emitted.txt", || format!("{} bytes of code in {milliseconds:.1} ms\n", code.len()))?;
        Ok(code)
    }

    /// Alternative code of the kernel, for devices with an aspect that makes it faster. To be called after [`emit`](Self::emit).
    pub(crate) fn emit_for_aspect(&self, toolchain: &Toolchain) -> Result<Option<(Aspect, Vec<u8>)>, CompileError> {
        let Unit { module, target, instruments, .. } = &self.unit;
        instruments.time("emit-for-aspect", || target.emit_for_aspect(module, toolchain))
    }

    /// The image of the kernel. `toolchain` is the one that compiled it.
    pub(crate) fn image(&mut self, decision: Decision, code: Vec<u8>, toolchain: &Toolchain) -> DeviceImage {
        let (kernels, unsupported) = match decision {
            Decision::Runs(mut kernel) => {
                kernel.groups.static_local_bytes = static_local_bytes(self.module());
                kernel.groups.bytes_of_element = self.unit.bytes_of_element;
                kernel.specialized = SpecializedLoad::find_for(self.image_target, &code);
                (vec![*kernel], Vec::new())
            }
            Decision::IsRefused(kernel) => (Vec::new(), vec![kernel]),
        };
        let sites: Vec<PanicSite> = std::mem::take(&mut self.unit.sites.list);
        let target = self.unit.target.image_target(self.image_target, &code);
        let mut build_options = toolchain.build_options(self.unit.float);
        for outcome in &self.unit.item_loops {
            build_options += &format!("; {outcome}");
        }
        DeviceImage { target, kernels, build_options, unsupported, sites, code }
    }
}

/// Bytes of the variables in local memory that the compiler made.
fn static_local_bytes(module: &Module<'_>) -> u32 {
    // On all targets.
    const LOCAL: u32 = 3;
    let layout = Layout::of(module);
    let own = module
        .globals()
        .into_iter()
        .filter(|global| global.initializer().is_some() && global.value_type().kind() == TypeKind::Pointer(LOCAL));
    own.map(|global| layout.size(global.held_type()).next_multiple_of(8) as u32).sum()
}

/// What the code of a kernel needs that it does not state, although it states something of the kind.
fn unstated(kernel: &Kernel, findings: &legality::Findings) -> Vec<String> {
    let stated: Vec<&str> = kernel.aspects.iter().map(Aspect::name).collect();
    if stated.is_empty() {
        return Vec::new();
    }
    let unstated = findings.requirements.iter().filter(|aspect| !stated.contains(aspect));
    let reason = |aspect: &&str| {
        let reason = format!("it needs the aspect {aspect}, which its `device_has` does not state");
        match findings.places.get(aspect) {
            Some(place) => format!("{reason} (at {place})"),
            None => kernel.with_place(&reason),
        }
    };
    unstated.map(reason).collect()
}

fn entry_of(kernel: Kernel, findings: legality::Findings, library: Vec<String>) -> KernelEntry {
    let is_of_groups = matches!(kernel.form, Form::Group(_));
    let aspects: Vec<String> = kernel.aspects.iter().map(|aspect| aspect.name().to_owned()).collect();
    let needed = findings.requirements.into_iter().map(str::to_owned);
    let requirements: BTreeSet<String> = needed.chain(aspects.iter().cloned()).collect();
    KernelEntry {
        symbol: kernel.symbol,
        type_id: kernel.type_id,
        form: kernel.form,
        parameters: kernel.parameters,
        type_name: kernel.type_name,
        launch: kernel.launch.map(|launch| launch.location),
        location: kernel.place.unwrap_or(SourceLocation { file: String::new(), line: 1, column: 1 }),
        requirements: requirements.into_iter().collect(),
        aspects,
        unstated: Vec::new(),
        library,
        arguments: kernel.arguments,
        specialized: Vec::new(),
        may_panic: findings.may_panic,
        may_print: findings.may_print,
        is_paired: false,
        has_unbounded_stack: findings.has_unbounded_stack,
        groups: GroupNeeds {
            local: kernel.group,
            sub_group: kernel.sub_group,
            static_local_bytes: 0,
            bytes_of_element: 0,
            uses_local_memory: is_of_groups && findings.uses_local_memory,
            has_barriers: findings.has_barriers,
        },
    }
}
