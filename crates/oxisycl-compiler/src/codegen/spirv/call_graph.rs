//! Which functions call each other in cycles.
//!
//! SPIR-V has no recursion. Calls of formatting functions are the exception, by their addresses or not: a message shows values within
//! values, but only so deep, so that there is a copy of the code for each depth, and the deepest ends with an error of formatting.

use super::function_pointers::{chooses_formatter, has_depth};
use super::implicit_parameters::Hidden;
use crate::llvm::{Value, ValueKind};
use crate::passes::panic_names;
use crate::refused::Refused;
use rustc_hash::{FxHashMap, FxHashSet};

/// How deep values within values are formatted.
pub(super) const DEEPEST: u32 = 5;

/// A function as it is called: whether that happens while a panic is recorded.
///
/// What formats a message can panic in its turn. The launch's record is taken by then, so that such a panic records nothing, and what would
/// be a cycle of calls ends there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Callable<'c> {
    pub(super) function: Value<'c>,
    pub(super) is_recorded: bool,
}

impl<'c> Callable<'c> {
    pub(super) fn kernel(function: Value<'c>) -> Self {
        Self { function, is_recorded: false }
    }

    /// A function that this one calls; `None` if the call does nothing.
    pub(super) fn callee(self, function: Value<'c>) -> Option<Self> {
        let records = panic_names::is_record(function.name());
        (!(records && self.is_recorded)).then_some(Self { function, is_recorded: self.is_recorded || records })
    }

    /// The functions with a body that are called.
    fn callees(self) -> Vec<Self> {
        let mut callees: Vec<Self> = Vec::new();
        for callee in self.function.instructions().into_iter().filter_map(Value::callee) {
            if callee.kind() == ValueKind::Function && !callee.is_declaration() {
                callees.extend(self.callee(callee).filter(|callee| !callees.contains(callee)));
            }
        }
        callees
    }
}

/// The functions that a kernel reaches, who calls whom, and the cycles that they are in.
#[derive(Default)]
pub(super) struct Components<'c> {
    callees: FxHashMap<Callable<'c>, Vec<Callable<'c>>>,
    /// For functions in a cycle, a number of that cycle.
    cycles: FxHashMap<Callable<'c>, usize>,
    hidden: FxHashMap<Callable<'c>, Hidden>,
}

impl<'c> Components<'c> {
    /// Of everything that a kernel reaches. `own` tells what the code of a function itself needs.
    pub(super) fn of(kernel: Value<'c>, own: &dyn Fn(Value<'c>) -> Hidden) -> Result<Self, Refused> {
        let mut components = Self::default();
        let mut reached = vec![Callable::kernel(kernel)];
        let mut at = 0;
        while let Some(&called) = reached.get(at) {
            at += 1;
            let callees = called.callees();
            reached.extend(callees.iter().filter(|callee| !reached.contains(callee)).copied().collect::<Vec<_>>());
            components.callees.insert(called, callees);
        }
        let needs: FxHashMap<_, _> = reached.iter().map(|&called| (called, own(called.function))).collect();
        for &called in &reached {
            let behind = components.behind(called, &|_| true);
            let all = behind.iter().chain([&called]).fold(Hidden::default(), |all, other| all.with(needs[other]));
            components.hidden.insert(called, all);
            // Without calls of formatting functions there has to be no way back.
            if components.behind(called, &|callee| !has_depth(callee)).contains(&called) {
                let refused = Refused::new("recursion: devices of this kind have no stack of calls");
                return Err(refused.within(called.function));
            }
            if behind.contains(&called) && !components.cycles.contains_key(&called) {
                let number = components.cycles.len();
                let cycle = behind.iter().filter(|&&other| components.behind(other, &|_| true).contains(&called));
                let cycle: Vec<_> = cycle.copied().collect();
                components.cycles.extend(cycle.into_iter().map(|member| (member, number)));
            }
        }
        Ok(components)
    }

    /// What a function needs, and what it calls.
    pub(super) fn hidden(&self, called: Callable<'c>) -> Hidden {
        self.hidden.get(&called).copied().unwrap_or_default()
    }

    /// How deep a callee is in its cycle, when the caller is so deep in its own.
    pub(super) fn depth(&self, (caller, depth): (Callable<'c>, u32), callee: Callable<'c>) -> u32 {
        match (self.cycles.get(&caller), self.cycles.get(&callee)) {
            // What is called by its address was counted when that was looked at.
            (Some(outer), Some(inner)) if outer == inner && chooses_formatter(caller.function) => depth,
            (Some(outer), Some(inner)) if outer == inner => depth + u32::from(has_depth(callee.function)),
            _ => 0,
        }
    }

    /// What a function reaches by one or more calls of functions that `enters` allows.
    fn behind(&self, called: Callable<'c>, enters: &dyn Fn(Value<'c>) -> bool) -> FxHashSet<Callable<'c>> {
        let mut behind = FxHashSet::default();
        let mut queue = vec![called];
        while let Some(next) = queue.pop() {
            let callees = &self.callees[&next];
            queue.extend(callees.iter().filter(|&&callee| enters(callee.function) && behind.insert(callee)));
        }
        behind
    }
}
