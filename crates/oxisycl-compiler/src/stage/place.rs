//! Where in the user's source a kernel is.
//!
//! A kernel's entry is generic code of OxiSYCL. The nearest function that it leads to and that is in a file of the user's is the
//! closure, or the method of a named kernel; only debug information knows its place.

use std::collections::VecDeque;

use oxisycl_image::SourceLocation;

use crate::llvm::{Context, Node, Value, ValueKind};
use crate::stage::legality::is_users;

/// How many functions are looked at: a user's function is at most a few calls away.
const MAX_FUNCTIONS: usize = 64;

/// The place of the kernel with this entry, if it is known.
pub(crate) fn of_kernel<'c>(context: &'c Context, entry: Value<'c>) -> Option<SourceLocation> {
    let mut seen = vec![entry];
    let mut queue = VecDeque::from([entry]);
    while let Some(function) = queue.pop_front() {
        if let Some((place, folder)) = Node::of_function(context, function).and_then(Node::place)
            && is_users(&format!("{folder}/{}", place.file))
        {
            return Some(place);
        }
        for callee in function.instructions().into_iter().filter_map(Value::callee) {
            let is_new = callee.kind() == ValueKind::Function && !callee.is_declaration() && !seen.contains(&callee);
            if is_new && seen.len() < MAX_FUNCTIONS {
                seen.push(callee);
                queue.push_back(callee);
            }
        }
    }
    None
}
