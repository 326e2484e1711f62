//! The call graph of a module, and its cycles.
//!
//! A call through a pointer may be one of any function of that type whose address is used. In code that formats this is most calls, and types
//! tell little there. [`Calls::without_formatting`] leaves these out, which is right as long as all that they lead to is the library's: its values
//! have an end. [`leads_back_to_user`] says where that is not so.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::llvm::{Module, TypeKind, Value, ValueKind};
use crate::origin::{self, Origin};
use crate::passes::{panic_names, panics};

/// The functions with a body, and the functions that each may call.
pub(crate) struct Calls<'c> {
    callees: FxHashMap<Value<'c>, Vec<Value<'c>>>,
}

impl<'c> Calls<'c> {
    /// The call graph without calls through pointers of the library's formatting functions, and without calls of these by address.
    pub(crate) fn without_formatting(module: &Module<'c>) -> Self {
        Self::made(module, &|function| !formats_for_library(function))
    }

    /// The complete call graph.
    pub(crate) fn all(module: &Module<'c>) -> Self {
        Self::made(module, &|_| true)
    }

    /// The call graph, in which calls through pointers count only by and of functions for which `counts` returns true.
    fn made(module: &Module<'c>, counts: &dyn Fn(Value<'c>) -> bool) -> Self {
        let functions: Vec<_> = module.functions().into_iter().filter(|function| !function.is_declaration()).collect();
        let is_taken = |function: &Value<'c>| counts(*function) && is_pointed_to(*function);
        let pointed_to: Vec<_> = functions.iter().copied().filter(is_taken).collect();
        let none: &[Value<'c>] = &[];
        let candidates = |function: Value<'c>| if counts(function) { &pointed_to } else { none };
        let of = |&function: &Value<'c>| (function, callees(function, candidates(function)));
        Self { callees: functions.iter().map(of).collect() }
    }

    pub(crate) fn functions(&self) -> impl Iterator<Item = Value<'c>> + '_ {
        self.callees.keys().copied()
    }

    pub(crate) fn of_function(&self, function: Value<'c>) -> &[Value<'c>] {
        self.callees.get(&function).map_or(&[], Vec::as_slice)
    }

    /// The call graph without the functions that `left_out` selects.
    pub(crate) fn without(&self, left_out: &dyn Fn(Value<'c>) -> bool) -> Self {
        let kept = |callees: &[Value<'c>]| callees.iter().copied().filter(|callee| !left_out(*callee)).collect();
        Self { callees: self.callees.iter().map(|(function, callees)| (*function, kept(callees))).collect() }
    }

    /// The functions that a function reaches by one or more calls.
    pub(crate) fn behind(&self, function: Value<'c>) -> FxHashSet<Value<'c>> {
        let mut behind = FxHashSet::default();
        let mut next = VecDeque::from([function]);
        while let Some(caller) = next.pop_front() {
            next.extend(self.of_function(caller).iter().copied().filter(|callee| behind.insert(*callee)));
        }
        behind
    }

    /// Whether a function can be called again before it has returned.
    pub(crate) fn comes_back(&self, function: Value<'c>) -> bool {
        self.behind(function).contains(&function)
    }
}

/// The functions with a body that a function may call. Through a pointer it may call any function of that type.
fn callees<'c>(function: Value<'c>, pointed_to: &[Value<'c>]) -> Vec<Value<'c>> {
    let mut callees = Vec::new();
    let mut called_types = Vec::new();
    for call in function.instructions() {
        let Some(callee) = call.callee().filter(|_| !panics::fails_again(call)) else { continue };
        match callee.kind() {
            ValueKind::Function if callee.is_declaration() => {}
            ValueKind::Function => callees.push(callee),
            ValueKind::InlineAsm => {}
            _ => called_types.push(call.called_type()),
        }
    }
    callees.extend(pointed_to.iter().filter(|other| called_types.contains(&other.held_type())));
    callees
}

/// Whether a function's address is used for more than calls.
fn is_pointed_to(function: Value<'_>) -> bool {
    function.users().into_iter().any(|user| user.callee() != Some(function) || user.arguments().contains(&function))
}

/// Whether a function formats values.
pub(crate) fn formats(function: Value<'_>) -> bool {
    origin::formats(function.name()) || tells(function)
}

/// Whether a function of the standard library or of OxiSYCL formats values. A user's formatting function counts as any other code.
pub(crate) fn formats_for_library(function: Value<'_>) -> bool {
    origin::library_formats(function.name()) || tells(function)
}

/// Whether a function records a panic or a print for the host.
pub(crate) fn tells(function: Value<'_>) -> bool {
    panic_names::is_record(function.name()) || panic_names::is_print(function.name())
}

/// Whether a function formats values, and returns `true` if that failed.
pub(crate) fn can_fail_to_format(function: Value<'_>) -> bool {
    function.held_type().result().kind() == TypeKind::Integer(1) && origin::formats(function.name())
}

/// Whether a function contains user code. Inlined code counts by its place, such as a closure in the library's function that calls it.
pub(crate) fn has_users_code(function: Value<'_>) -> bool {
    if tells(function) {
        return false;
    }
    let is_users = |instruction: Value<'_>| {
        instruction.places().iter().any(|place| !origin::is_library_file(&place.file, &place.folder))
    };
    !matches!(origin::of(function.name()), Origin::Standard | Origin::Device)
        || function.instructions().into_iter().any(is_users)
}

/// Whether formatting functions can call user code.
pub(crate) fn leads_back_to_user(calls: &Calls<'_>) -> bool {
    let mut looked_at = FxHashSet::default();
    for formatter in calls.functions().filter(|function| formats(*function)) {
        if looked_at.contains(&formatter) {
            continue;
        }
        let behind = calls.behind(formatter);
        if !behind.contains(&formatter) {
            continue;
        }
        let cycle: Vec<_> = behind.into_iter().filter(|other| calls.behind(*other).contains(&formatter)).collect();
        if cycle.iter().any(|member| has_users_code(*member)) {
            return true;
        }
        looked_at.extend(cycle);
    }
    false
}
