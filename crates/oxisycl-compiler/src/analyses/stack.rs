//! Whether the depth of a kernel's calls is known. Where they are recursive, or go through pointers, the stack of a work-item is unknown
//! before it runs. The backend then has to provide some.

use crate::llvm::{Value, ValueKind};
use rustc_hash::FxHashMap;

/// Whether the kernel's calls may go deeper than its code shows.
pub(crate) fn is_unbounded(kernel: Value<'_>) -> bool {
    // Whether all that a function calls was looked at; those that are not done yet called the one at hand.
    let mut is_done = FxHashMap::from_iter([(kernel, false)]);
    let Some(first) = callees(kernel) else { return true };
    let mut path = vec![(kernel, first)];
    while let Some((function, callees_left)) = path.last_mut() {
        let Some(callee) = callees_left.pop() else {
            is_done.insert(*function, true);
            path.pop();
            continue;
        };
        match is_done.get(&callee) {
            Some(true) => {}
            Some(false) => return true,
            None => {
                let Some(next) = callees(callee) else { return true };
                is_done.insert(callee, false);
                path.push((callee, next));
            }
        }
    }
    false
}

/// The functions with a body that a function calls; `None` if it has other calls than direct ones.
fn callees(function: Value<'_>) -> Option<Vec<Value<'_>>> {
    let mut callees = Vec::new();
    for callee in function.instructions().into_iter().filter_map(Value::callee) {
        match callee.kind() {
            ValueKind::Function if callee.is_declaration() => {}
            ValueKind::Function => callees.push(callee),
            ValueKind::InlineAsm => {}
            _ => return None,
        }
    }
    Some(callees)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    #[test]
    fn recursion_and_calls_through_pointers_have_no_bound() {
        let context = context();
        let text = "
            declare void @llvm.trap()
            define void @leaf() { call void @llvm.trap() ret void }
            define void @twice() { call void @leaf() call void @leaf() ret void }
            define void @plain() { call void @twice() call void @leaf() ret void }
            define void @itself() { call void @itself() ret void }
            define void @recursive() { call void @leaf() call void @there() ret void }
            define void @there() { call void @back() ret void }
            define void @back() { call void @there() ret void }
            define void @through(ptr %f) { call void %f() ret void }
            define void @deep(ptr %f) { call void @twice() call void @through(ptr %f) ret void }";
        let module = module(&context, text);
        for (name, expected) in [
            ("leaf", false),
            ("plain", false),
            ("itself", true),
            ("recursive", true),
            ("through", true),
            ("deep", true),
        ] {
            assert_eq!(is_unbounded(module.function(name).expect("a function")), expected, "{name}");
        }
    }
}
