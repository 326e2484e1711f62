//! Which functions call each other in cycles.
//!
//! SPIR-V has no recursion. Calls of formatting functions by their addresses are the exception: a message shows values within values, but
//! only so deep, so that there is a copy of the code for each depth, and the deepest ends with an error of formatting.

use std::collections::{HashMap, HashSet};

use super::Refused;
use super::hidden::Hidden;
use super::indirect::chooses_formatter;
use crate::llvm::{Value, ValueKind};

/// How deep values within values are formatted.
pub(super) const DEEPEST: u32 = 5;

/// The functions that a kernel reaches, who calls whom, and the cycles that they are in.
#[derive(Default)]
pub(super) struct Components<'c> {
    callees: HashMap<Value<'c>, Vec<Value<'c>>>,
    /// For functions in a cycle, a number of that cycle.
    cycles: HashMap<Value<'c>, usize>,
    hidden: HashMap<Value<'c>, Hidden>,
}

impl<'c> Components<'c> {
    /// Of everything that a kernel reaches. `own` tells what the code of a function itself needs.
    pub(super) fn of(kernel: Value<'c>, own: &dyn Fn(Value<'c>) -> Hidden) -> Result<Self, Refused> {
        let mut components = Self::default();
        let mut reached = vec![kernel];
        let mut at = 0;
        while let Some(&function) = reached.get(at) {
            at += 1;
            let callees = callees(function);
            reached.extend(callees.iter().filter(|callee| !reached.contains(callee)).copied().collect::<Vec<_>>());
            components.callees.insert(function, callees);
        }
        let needs: HashMap<_, _> = reached.iter().map(|&function| (function, own(function))).collect();
        for &function in &reached {
            let behind = components.behind(function, &|_| true);
            let all = behind.iter().chain([&function]).fold(Hidden::default(), |all, other| all.with(needs[other]));
            components.hidden.insert(function, all);
            // Without calls of formatting functions there has to be no way back.
            if components.behind(function, &|callee| !chooses_formatter(callee)).contains(&function) {
                return Err(Refused::new("recursion: devices of this kind have no stack of calls").within(function));
            }
            if behind.contains(&function) && !components.cycles.contains_key(&function) {
                let number = components.cycles.len();
                let cycle = behind.iter().filter(|&&other| components.behind(other, &|_| true).contains(&function));
                let cycle: Vec<_> = cycle.copied().collect();
                components.cycles.extend(cycle.into_iter().map(|member| (member, number)));
            }
        }
        Ok(components)
    }

    /// What a function needs, and what it calls.
    pub(super) fn hidden(&self, function: Value<'c>) -> Hidden {
        self.hidden.get(&function).copied().unwrap_or_default()
    }

    /// How deep a callee is in its cycle, when the caller is so deep in its own.
    pub(super) fn depth(&self, (caller, depth): (Value<'c>, u32), callee: Value<'c>) -> u32 {
        match (self.cycles.get(&caller), self.cycles.get(&callee)) {
            (Some(outer), Some(inner)) if outer == inner => depth + u32::from(chooses_formatter(callee)),
            _ => 0,
        }
    }

    /// What a function reaches by one or more calls of functions that `enters` allows.
    fn behind(&self, function: Value<'c>, enters: &dyn Fn(Value<'c>) -> bool) -> HashSet<Value<'c>> {
        let mut behind = HashSet::new();
        let mut queue = vec![function];
        while let Some(next) = queue.pop() {
            let callees = &self.callees[&next];
            queue.extend(callees.iter().filter(|&&callee| enters(callee) && behind.insert(callee)));
        }
        behind
    }
}

/// The functions with a body that a function calls.
fn callees(function: Value<'_>) -> Vec<Value<'_>> {
    let mut callees: Vec<Value<'_>> = Vec::new();
    for callee in function.instructions().into_iter().filter_map(Value::callee) {
        if callee.kind() == ValueKind::Function && !callee.is_declaration() && !callees.contains(&callee) {
            callees.push(callee);
        }
    }
    callees
}
