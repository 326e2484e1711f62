//! Bodies of the builtins for atomic operations, which all targets share.
//!
//! A body has the operation once for each order and scope, and chooses by its arguments. In a kernel they are constants, so that one
//! operation stays where a call was inlined. Scopes have names of their own here, which [`atomics`](super::atomics) replaces by the
//! target's. LLVM's scope of the whole system stands for the atomics of `core`, which are narrowed to the device.

use std::fmt::Write;

/// The names of scopes by their numbers.
const SCOPES: [&str; 3] = [WORK_GROUP, DEVICE, SYSTEM];
pub(crate) const WORK_GROUP: &str = "workgroup";
pub(crate) const DEVICE: &str = "device";
pub(crate) const SYSTEM: &str = "system";

/// The names of orders by their numbers.
const ORDERS: [&str; 5] = ["monotonic", "acquire", "release", "acq_rel", "seq_cst"];
const STRONGEST: &str = "seq_cst";

/// The memory operation of a builtin.
#[derive(Clone, Copy)]
enum Operation {
    Fence,
    Load,
    Store,
    CompareExchange,
    /// `atomicrmw`, with the name of its operation in LLVM.
    Change(&'static str),
}

/// The name of a builtin's type in LLVM, and its size.
fn type_of(name: &str) -> Option<(&'static str, u32)> {
    Some(match name {
        "u32" | "i32" => ("i32", 4),
        "u64" | "i64" => ("i64", 8),
        "f32" => ("float", 4),
        "f64" => ("double", 8),
        _ => return None,
    })
}

/// The operation of a builtin, the name of its type in LLVM, and its size.
fn parse(builtin: &str) -> Option<(Operation, &'static str, u32)> {
    let name = builtin.strip_prefix("atomic_")?;
    if name == "fence" {
        return Some((Operation::Fence, "", 0));
    }
    let (operation, type_name) = name.rsplit_once('_')?;
    let (of, size) = type_of(type_name)?;
    let operation = match (operation, &type_name[..1]) {
        ("load", _) => Operation::Load,
        ("store", _) => Operation::Store,
        ("compare_exchange", _) => Operation::CompareExchange,
        ("exchange", _) => Operation::Change("xchg"),
        ("add", "f") => Operation::Change("fadd"),
        ("add", _) => Operation::Change("add"),
        ("and", _) => Operation::Change("and"),
        ("or", _) => Operation::Change("or"),
        ("xor", _) => Operation::Change("xor"),
        ("min", "u") => Operation::Change("umin"),
        ("max", "u") => Operation::Change("umax"),
        ("min", "i") => Operation::Change("min"),
        ("max", "i") => Operation::Change("max"),
        _ => return None,
    };
    Some((operation, of, size))
}

/// A function `symbol` with the operation of a builtin, in LLVM assembly. `None` if the builtin is no atomic operation.
pub(crate) fn body(builtin: &str, symbol: &str) -> Option<String> {
    let (operation, of, size) = parse(builtin)?;
    let (result, parameters) = match operation {
        Operation::Fence => ("void", String::new()),
        Operation::Load => (of, "ptr %p, ".to_owned()),
        Operation::Store => ("void", format!("ptr %p, {of} %v, ")),
        Operation::CompareExchange => (of, format!("ptr %p, {of} %current, {of} %v, ")),
        Operation::Change(_) => (of, format!("ptr %p, {of} %v, ")),
    };
    // The places of the orders that a failed exchange, which only loads, can have.
    let (failure, failures) = match operation {
        Operation::CompareExchange => ("i32 %failure, ", &[0, 1, 4][..]),
        _ => ("", &[0][..]),
    };
    let mut text = format!("define {result} @{symbol}({parameters}i32 %order, {failure}i32 %scope) {{\n");
    text += "  %scopes = shl i32 %scope, 6\n";
    text += if failure.is_empty() {
        "  %key = or i32 %order, %scopes\n"
    } else {
        "  %failures = shl i32 %failure, 3\n  %orders = or i32 %order, %failures\n  %key = or i32 %orders, %scopes\n"
    };
    text += "  switch i32 %key, label %other [";
    let mut blocks = String::new();
    for (scope_number, scope) in SCOPES.iter().enumerate() {
        for failure_number in failures {
            for (order_number, order) in ORDERS.iter().enumerate() {
                let key = order_number + 8 * failure_number + 64 * scope_number;
                let orders = (*order, ORDERS[*failure_number]);
                let _ = write!(text, " i32 {key}, label %at{key}");
                let _ = writeln!(blocks, "at{key}:");
                blocks += &ending(operation, (of, size), orders, scope).replace("%old", &format!("%old{key}"));
            }
        }
    }
    let strongest = ending(operation, (of, size), (STRONGEST, STRONGEST), SYSTEM);
    let _ = write!(text, " ]\nother:\n{strongest}{blocks}}}\n");
    Some(text)
}

/// The operation and the return at the end of a block. Orders that a load or a store cannot have become the strongest one; the device
/// library asks for none of these.
fn ending(operation: Operation, (of, size): (&str, u32), (order, failure): (&str, &str), scope: &str) -> String {
    let in_scope = format!("syncscope(\"{scope}\")");
    match operation {
        Operation::Fence if order == "monotonic" => "  ret void\n".to_owned(),
        Operation::Fence => format!("  fence {in_scope} {order}\n  ret void\n"),
        Operation::Load => {
            let can_load = !matches!(order, "release" | "acq_rel");
            let order = if can_load { order } else { STRONGEST };
            format!("  %old = load atomic {of}, ptr %p {in_scope} {order}, align {size}\n  ret {of} %old\n")
        }
        Operation::Store => {
            let can_store = !matches!(order, "acquire" | "acq_rel");
            let order = if can_store { order } else { STRONGEST };
            format!("  store atomic {of} %v, ptr %p {in_scope} {order}, align {size}\n  ret void\n")
        }
        Operation::CompareExchange => format!(
            "  %old.pair = cmpxchg ptr %p, {of} %current, {of} %v {in_scope} {order} {failure}\n  \
             %old = extractvalue {{ {of}, i1 }} %old.pair, 0\n  ret {of} %old\n"
        ),
        Operation::Change(name) => {
            format!("  %old = atomicrmw {name} ptr %p, {of} %v {in_scope} {order}\n  ret {of} %old\n")
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
