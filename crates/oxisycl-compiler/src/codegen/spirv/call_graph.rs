//! The cycles of calls among functions.
//!
//! SPIR-V has no recursion. Calls of formatting functions are the exception, by their addresses or not. There is a copy of the code for each
//! depth. Within a message the deepest ends with an error of formatting, and the message says so. Elsewhere it panics: nothing else
//! would tell an error from one of the value's own.

use super::function_pointers::{chooses_formatter, has_depth};
use super::implicit_parameters::ImplicitParameters;
use crate::llvm::{Value, ValueKind};
pub(super) use crate::passes::formatting_depth::DEEPEST;
use crate::passes::panic_names;
use crate::refused::{Refused, noted_limit};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// The kind of message that a function formats values for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Within {
    NoMessage,
    Print,
    Panic,
}

/// A function with the context of its call: while a panic or a print is recorded, or neither.
///
/// A function that formats a panic's message can panic itself. The launch's record is taken by then, so such a panic records nothing. A
/// would-be cycle of calls ends there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Callable<'c> {
    pub(super) function: Value<'c>,
    pub(super) within: Within,
}

impl<'c> Callable<'c> {
    pub(super) fn kernel(function: Value<'c>) -> Self {
        Self { function, within: Within::NoMessage }
    }

    /// A called function in the same context; `None` if the call does nothing.
    pub(super) fn callee(self, function: Value<'c>) -> Option<Self> {
        let (records, prints) = (panic_names::is_record(function.name()), panic_names::is_print(function.name()));
        let within = match self.within {
            Within::Panic if records => return None,
            _ if records => Within::Panic,
            Within::NoMessage if prints => Within::Print,
            within => within,
        };
        Some(Self { function, within })
    }

    /// Whether the deepest copy of the function panics.
    pub(super) fn may_panic_too_deep(self) -> bool {
        self.within == Within::NoMessage && has_depth(self.function)
    }

    /// The called functions that have a body.
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

/// The functions that a kernel reaches, their calls, and the cycles among them.
#[derive(Default)]
pub(super) struct Components<'c> {
    callees: FxHashMap<Callable<'c>, Vec<Callable<'c>>>,
    /// The number of the cycle, for each function in one.
    cycles: FxHashMap<Callable<'c>, usize>,
    implicit_parameters: FxHashMap<Callable<'c>, ImplicitParameters>,
    /// The function that is called where formatting is too deep outside of a message.
    pub(super) too_deep: Option<Value<'c>>,
}

impl<'c> Components<'c> {
    /// Analyses everything that a kernel reaches. `own` returns what the code of a function itself needs. Formatting that is too deep calls
    /// `too_deep`; without that, only formatting within messages has cycles.
    pub(super) fn of(
        kernel: Value<'c>,
        too_deep: Option<Value<'c>>,
        own: &dyn Fn(Value<'c>) -> ImplicitParameters,
    ) -> Result<Self, Refused> {
        let mut components = Self { too_deep, ..Self::default() };
        let mut reached = Vec::new();
        components.reach(Callable::kernel(kernel), &mut reached);
        components.find_cycles(&reached)?;
        if let Some(panic) = too_deep {
            let panics = |called: &Callable<'c>| components.cycles.contains_key(called) && called.may_panic_too_deep();
            let deep: Vec<_> = reached.iter().copied().filter(panics).collect();
            for called in deep {
                let panic = Callable { function: panic, ..called };
                components.reach(panic, &mut reached);
                components.callees.entry(called).or_default().push(panic);
            }
        }
        let needs: FxHashMap<_, _> = reached.iter().map(|&called| (called, own(called.function))).collect();
        for &called in &reached {
            let behind = components.behind(called, &|_| true);
            let all = behind.iter().fold(needs[&called], |all, other| all.with(needs[other]));
            components.implicit_parameters.insert(called, all);
        }
        Ok(components)
    }

    /// Adds a function, and the functions that it calls, to the reached ones.
    fn reach(&mut self, called: Callable<'c>, reached: &mut Vec<Callable<'c>>) {
        let mut next = VecDeque::from([called]);
        while let Some(called) = next.pop_front() {
            if !reached.contains(&called) {
                reached.push(called);
                let callees = called.callees();
                next.extend(&callees);
                self.callees.insert(called, callees);
            }
        }
    }

    fn find_cycles(&mut self, reached: &[Callable<'c>]) -> Result<(), Refused> {
        for &called in reached {
            let has_end = |callee: Callable<'c>| {
                has_depth(callee.function) && (self.too_deep.is_some() || callee.within != Within::NoMessage)
            };
            // Without calls of formatting functions there has to be no way back.
            if self.behind(called, &|callee| !has_end(callee)).contains(&called) {
                let limit = noted_limit(called.function).map(|limit| format!("; {limit}")).unwrap_or_default();
                let refused = Refused::new(format!("recursion: devices of this kind have no stack of calls{limit}"));
                return Err(refused.within(called.function));
            }
            let behind = self.behind(called, &|_| true);
            if behind.contains(&called) && !self.cycles.contains_key(&called) {
                let number = self.cycles.len();
                let cycle = behind.iter().filter(|&&other| self.behind(other, &|_| true).contains(&called));
                let cycle: Vec<_> = cycle.copied().collect();
                self.cycles.extend(cycle.into_iter().map(|member| (member, number)));
            }
        }
        Ok(())
    }

    /// The implicit parameters of a function: those that it and its callees need.
    pub(super) fn implicit_parameters(&self, called: Callable<'c>) -> ImplicitParameters {
        self.implicit_parameters.get(&called).copied().unwrap_or_default()
    }

    /// The depth of a callee in its cycle, when the caller has the depth `depth` in its own.
    pub(super) fn depth(&self, (caller, depth): (Callable<'c>, u32), callee: Callable<'c>) -> u32 {
        match (self.cycles.get(&caller), self.cycles.get(&callee)) {
            // What is called by its address was counted when that was looked at.
            (Some(outer), Some(inner)) if outer == inner && chooses_formatter(caller.function) => depth,
            (Some(outer), Some(inner)) if outer == inner => depth + u32::from(has_depth(callee.function)),
            _ => 0,
        }
    }

    /// The functions that are reached by one or more calls of functions that `enters` allows.
    fn behind(&self, called: Callable<'c>, enters: &dyn Fn(Callable<'c>) -> bool) -> FxHashSet<Callable<'c>> {
        let mut behind = FxHashSet::default();
        let mut queue = vec![called];
        while let Some(next) = queue.pop() {
            let callees = &self.callees[&next];
            queue.extend(callees.iter().filter(|&&callee| enters(callee) && behind.insert(callee)));
        }
        behind
    }
}
