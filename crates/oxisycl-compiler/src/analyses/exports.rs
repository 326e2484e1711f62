//! Whether optimised native code of a kernel can be linked into the program a second time.
//!
//! Code and constants may be copied. A static that changes, or whose address the kernel gives away, exists once in a program. A symbol of
//! Rust is found by the final link only if the standard library exports it. Changes nothing.

use std::collections::{BTreeSet, VecDeque};

use rustc_hash::FxHashSet;

use crate::analyses::legality::Calls;
use crate::llvm::{Module, Opcode, Value, ValueKind};
use crate::origin;
use crate::refused::Refused;

/// Whether a symbol is one of Rust's. Others are foreign names, which the final link has to know anyway.
pub(crate) fn is_of_rust(symbol: &str) -> bool {
    symbol.starts_with("_R") || symbol.starts_with("_ZN")
}

/// The reason why a kernel gets no native code of its own. `missing` are the symbols that neither the program nor the standard library
/// makes known. `captures_addresses` says whether the kernel may have got addresses of statics.
pub(crate) fn refusal(
    module: &Module<'_>,
    entry: &str,
    calls: &Calls,
    missing: &BTreeSet<String>,
    captures_addresses: bool,
) -> Option<String> {
    let values = module.globals().into_iter().chain(module.functions());
    values.filter(|value| value.is_used() && !value.name().starts_with("llvm.")).find_map(|value| {
        let reason = reason(value, missing, captures_addresses)?;
        Some(calls.explain(entry, Refused::new(reason).within(value)))
    })
}

fn reason(value: Value<'_>, missing: &BTreeSet<String>, captures_addresses: bool) -> Option<String> {
    let name = origin::shown_name(value.name());
    if value.is_declaration() {
        return missing.contains(value.name()).then(|| format!("it needs `{name}`, which the program does not export"));
    }
    if value.kind() != ValueKind::GlobalVariable {
        return None;
    }
    if value.is_thread_local() {
        return Some(format!("it uses the thread-local variable `{name}`, which native code of a kernel cannot share"));
    }
    if !value.is_constant_global() {
        return Some(format!(
            "it uses the static `{name}`, which changes and which native code of a kernel cannot share"
        ));
    }
    // Constants without names have no address that anything could rely on.
    let gives_away = is_of_rust(value.name()) && gives_away(value, captures_addresses);
    gives_away.then(|| format!("it uses the address of the static `{name}`, of which its native code has a copy"))
}

/// Whether the address of a static goes anywhere but into loads of the kernel, and comparisons with itself.
fn gives_away(global: Value<'_>, captures_addresses: bool) -> bool {
    let mut seen = FxHashSet::default();
    let mut queue = VecDeque::from([global]);
    while let Some(address) = queue.pop_front() {
        for user in address.users() {
            let is_moved = user.is(Opcode::GET_ELEMENT_PTR)
                || user.is(Opcode::PHI)
                || user.is(Opcode::SELECT)
                || user.expression() == Some(Opcode::GET_ELEMENT_PTR);
            let is_compared = user.is(Opcode::INTEGER_COMPARISON) && !captures_addresses;
            let is_source =
                user.callee().is_some_and(|callee| callee.name().starts_with("llvm.mem") && user.operand(0) != address);
            if is_moved {
                if seen.insert(user) {
                    queue.push_back(user);
                }
            } else if !user.is(Opcode::LOAD) && !is_compared && !is_source {
                return true;
            }
        }
    }
    false
}
