//! The place of a kernel in the user's source.
//!
//! A kernel's entry is generic code of OxiSYCL. The nearest function that it leads to in a file of the user's is the closure, or the method
//! of a named kernel. Only debug information knows its place.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use oxisycl_image::SourceLocation;

use crate::analyses::definitions::Definitions;
use crate::kernel::CodePlace;
use crate::llvm::{Node, Place, Value, ValueKind};
use crate::origin;

/// How many functions are searched for a kernel: a user's function is at most a few calls away.
const MAX_FUNCTIONS: usize = 64;

/// How many functions are searched for a closure that a kernel captured: it may be called anywhere in the kernel.
const MAX_FUNCTIONS_TO_CLOSURE: usize = 4096;

/// The place of the kernel with this entry, if it is known.
pub(crate) fn of_kernel<'c>(entry: Value<'c>, definitions: &Definitions<'c>) -> Option<SourceLocation> {
    find(entry, definitions, MAX_FUNCTIONS, |function| {
        let place = Place::of_function(Node::of_function(function)?)?;
        origin::is_users_file(&place.file, &place.folder).then(|| place.location())
    })
}

/// The code of a closure with that type, if a kernel calls it. A closure that is only captured has no code.
pub(crate) fn code_of_closure<'c>(
    entry: Value<'c>,
    closure: Node<'c>,
    definitions: &Definitions<'c>,
) -> Option<Value<'c>> {
    let name = origin::closure_code(&closure.name())?;
    find(entry, definitions, MAX_FUNCTIONS_TO_CLOSURE, |function| {
        let described = Node::of_function(function)?;
        (described.name() == name && described.scope() == closure.scope()).then_some(function)
    })
}

/// The place of a closure's code, in a file of any author.
pub(crate) fn of_code(function: Value<'_>) -> Option<CodePlace> {
    Place::of_function(Node::of_function(function)?).map(code_place)
}

/// The place where a variable that a closure captures is declared. `function` is the closure's code.
pub(crate) fn of_variable(function: Value<'_>, name: &str) -> Option<CodePlace> {
    let instructions = function.instructions().into_iter();
    let (_, place) = instructions.flat_map(Value::variables).find(|(variable, _)| variable == name)?;
    (place.line > 0).then(|| code_place(place))
}

fn code_place(place: Place<'_>) -> CodePlace {
    CodePlace { is_users: origin::is_users_file(&place.file, &place.folder), location: place.location() }
}

/// The first result of `found` among up to `n_functions` functions that `entry` leads to, nearest first.
fn find<'c, T>(
    entry: Value<'c>,
    definitions: &Definitions<'c>,
    n_functions: usize,
    found: impl Fn(Value<'c>) -> Option<T>,
) -> Option<T> {
    let mut seen = FxHashSet::from_iter([entry]);
    let mut queue = VecDeque::from([entry]);
    while let Some(function) = queue.pop_front() {
        if let Some(found) = found(function) {
            return Some(found);
        }
        for callee in function.instructions().into_iter().filter_map(Value::callee) {
            let callee = if callee.kind() == ValueKind::Function { definitions.definition(callee) } else { callee };
            let is_code = callee.kind() == ValueKind::Function && !callee.is_declaration();
            if is_code && seen.len() < n_functions && seen.insert(callee) {
                queue.push_back(callee);
            }
        }
    }
    None
}
