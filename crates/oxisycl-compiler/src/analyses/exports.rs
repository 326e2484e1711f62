//! Whether optimised native code of a kernel can be linked into the program a second time.
//!
//! Code and unnamed constants may be copied. A static exists once in a program, and so does its address. A symbol of Rust is found by the final
//! link only if the standard library exports it. Changes nothing.

use std::collections::BTreeSet;

use crate::analyses::legality::Calls;
use crate::llvm::{Module, Value, ValueKind};
use crate::origin;
use crate::refused::Refused;

/// Whether a symbol is one of Rust's. Others are foreign names, which the final link has to know anyway.
pub(crate) fn is_of_rust(symbol: &str) -> bool {
    symbol.starts_with("_R") || symbol.starts_with("_ZN")
}

/// The reason why a kernel gets no native code of its own. `missing` are the symbols that neither the program nor the standard library
/// makes known.
pub(crate) fn refusal(module: &Module<'_>, entry: &str, calls: &Calls, missing: &BTreeSet<String>) -> Option<String> {
    let values = module.globals().into_iter().chain(module.functions());
    values.filter(|value| value.is_used() && !value.name().starts_with("llvm.")).find_map(|value| {
        let reason = reason(value, missing)?;
        Some(calls.explain(entry, Refused::new(reason).within(value)))
    })
}

fn reason(value: Value<'_>, missing: &BTreeSet<String>) -> Option<String> {
    let name = origin::shown_name(value.name());
    if value.is_declaration() {
        return missing.contains(value.name()).then(|| format!("it needs `{name}`, which the program does not export"));
    }
    if value.kind() != ValueKind::GlobalVariable || value.is_constant_global() {
        return None;
    }
    let (kind, advice) = match value.is_thread_local() {
        true => ("thread-local variable", ""),
        false => ("static", "; a table that does not change may be a `const`"),
    };
    Some(format!(
        "it uses the {kind} `{name}`, which exists once and which native code of a kernel cannot share{advice}"
    ))
}
