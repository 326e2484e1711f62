//! Links code that kernels have in common once for all of them. The code of kernels that share their bitcode becomes device code with all
//! that it reaches. Each kernel's compilation only takes its part.
//!
//! Linking took 40 ms of the 75 to 110 ms per kernel, nearly all of it for common code. Images differ only in the names of private items: each
//! kernel's compilation links whatever is missing here, and everything if this failed. If there are few kernels, they are linked one by
//! one. The same holds if they reach so much that one of them will be refused.

use std::cell::RefCell;
use std::rc::Rc;

use crate::compile::Wanted;
use crate::error::CompileError;
use crate::instruments::{Instruments, PassTimes};
use crate::isolation::Isolation;
use crate::link::library::Library;
use crate::link::resolve::{self, Scope, Searches};
use crate::llvm::{Context, Linkage, Module};
use crate::pipeline::{self, Phase};
use crate::program::{self, KernelCode};
use crate::unit::Unit;

/// The fewest kernels for which common linking pays.
const MIN_KERNELS: usize = 4;
/// The most functions that kernels may reach, for all of them together, and for each further kernel. Kernels that run on devices reach
/// fewer.
const MANY_FUNCTIONS: usize = 1000;
const FUNCTIONS_OF_A_KERNEL: usize = 200;

/// The kernels of one target that share their bitcode.
pub(crate) struct Prelinked<'a> {
    target_idx: usize,
    /// The bitcode of the kernels in their crate.
    described: &'a Rc<Vec<u8>>,
    /// The bitcode of the kernels with all that they reach; `None` if it was not linked.
    linked: Option<Rc<Vec<u8>>>,
}

/// The opened module of each group of kernels, until it is taken.
pub(crate) type Opened<'c> = Vec<RefCell<Option<Module<'c>>>>;

/// Links common code of the kernels, and adds to the times of each target. `borrowed` is as in the options.
pub(crate) fn all<'a>(
    wanted: &[Wanted<'a>],
    borrowed: &[String],
    library: &mut Library<'_>,
    isolation: &mut dyn Isolation,
    times: &mut [PassTimes],
) -> Result<Vec<Prelinked<'a>>, CompileError> {
    let mut groups: Vec<(Prelinked<'a>, Vec<Wanted<'a>>)> = Vec::new();
    for one in wanted {
        let described = &one.described.code;
        // Kernels are in the order of their names, not of what they share.
        match groups.iter_mut().find(|(group, _)| is_of(group, one)) {
            Some((_, kernels)) => kernels.push(*one),
            None => groups.push((Prelinked { target_idx: one.target_idx, described, linked: None }, vec![*one])),
        }
    }
    let large: Vec<usize> = (0..groups.len()).filter(|group| groups[*group].1.len() >= MIN_KERNELS).collect();
    isolation.announce("kernels: linking part");
    let linked = isolation.run(large.len(), &mut |job| link(&groups[large[job]].1, borrowed, library))?;
    for (group, linked) in large.into_iter().zip(linked) {
        // Each kernel for which it fails reports the reason.
        let Ok(bytes) = linked else { continue };
        let group = &mut groups[group].0;
        if let Some((of_group, bitcode)) = PassTimes::decode_with(&bytes) {
            times[group.target_idx].merge(of_group);
            group.linked = Some(bitcode.to_vec()).filter(|bitcode| !bitcode.is_empty()).map(Rc::new);
        }
    }
    Ok(groups.into_iter().map(|(group, _)| group).collect())
}

fn is_of(group: &Prelinked<'_>, wanted: &Wanted<'_>) -> bool {
    group.target_idx == wanted.target_idx && Rc::ptr_eq(group.described, &wanted.described.code)
}

/// The bitcode of the kernels with all that they reach, after the times. Empty if they reach too much.
fn link(kernels: &[Wanted<'_>], borrowed: &[String], library: &mut Library<'_>) -> Result<Vec<u8>, CompileError> {
    let [Wanted { described, target, .. }, ..] = kernels else { return Ok(Vec::new()) };
    let (context, instruments) = (Context::new(), Instruments::default());
    let module = Module::empty(&context, program::NAME);
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let code = Module::lazy(&context, &described.code, "kernels")?;
    let entries: Vec<String> = kernels.iter().map(|kernel| kernel.described.kernel.entry.clone()).collect();
    set_linkage(&code, &entries, Linkage::EXTERNAL);
    instruments.time("link", || module.link(code))?;
    let mut unit = Unit { entries, borrowed, ..Unit::new(module, *target, &instruments) };
    if !link_all(&mut unit, library)? {
        return Ok(instruments.times().encode_with(&[]));
    }
    // As in the bitcode that kernels are described with. The record's function stays: nothing calls it yet.
    set_linkage(&unit.module, &unit.entries, Linkage::LINK_ONCE_ODR);
    pipeline::run(Phase::Share, &mut unit)?;
    unit.module.verify("linking kernels together")?;
    Ok(instruments.times().encode_with(&unit.module.to_bitcode()))
}

/// Links missing definitions until none is missing. Returns false if the kernels reach too much, or query CPU features.
fn link_all(unit: &mut Unit<'_, '_>, library: &mut Library<'_>) -> Result<bool, CompileError> {
    let mut searches = Searches::default();
    loop {
        pipeline::run(Phase::Adapt, unit)?;
        if !unit.caches.is_empty() {
            // Which of the kernels asks is known only of each by itself.
            return Ok(false);
        }
        let n_functions = unit.module.functions().into_iter().filter(|function| !function.is_declaration()).count();
        if n_functions > MANY_FUNCTIONS + FUNCTIONS_OF_A_KERNEL * unit.entries.len() {
            return Ok(false);
        }
        let Unit { module, target, instruments, .. } = &*unit;
        let scope = if target.runs_in_process() { Scope::Native } else { Scope::WithoutFormatting };
        let link = || resolve::link_missing(module, library, &mut searches, scope);
        if !instruments.time("link", link)? {
            return Ok(true);
        }
    }
}

fn set_linkage(module: &Module<'_>, entries: &[String], linkage: Linkage) {
    for entry in entries.iter().filter_map(|entry| module.function(entry)) {
        entry.set_linkage(linkage);
    }
}

/// Opens the linked modules, each in a context of its own, if each kernel is compiled in a copy of this process. The copies then find them
/// open.
pub(crate) fn open<'c>(
    prelinked: &[Prelinked<'_>],
    contexts: &'c [Context],
    is_separate: bool,
) -> Result<Opened<'c>, CompileError> {
    let open = |(group, context): (&Prelinked<'_>, &'c Context)| {
        let code = group.linked.as_ref().unwrap_or(group.described);
        Ok(RefCell::new(if is_separate { Some(Module::lazy(context, code, "kernels")?) } else { None }))
    };
    prelinked.iter().zip(contexts).map(open).collect()
}

/// The code of a kernel. Only the first kernel of a group gets the opened module.
pub(crate) fn take<'c>(wanted: &Wanted<'c>, prelinked: &'c [Prelinked<'c>], opened: &Opened<'c>) -> KernelCode<'c> {
    match prelinked.iter().position(|group| is_of(group, wanted)) {
        Some(group) => {
            let Prelinked { described, linked, .. } = &prelinked[group];
            let bitcode = linked.as_ref().unwrap_or(described);
            KernelCode { bitcode, opened: opened[group].take(), is_linked: linked.is_some() }
        }
        None => KernelCode { bitcode: &wanted.described.code, opened: None, is_linked: false },
    }
}
