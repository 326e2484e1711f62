//! Finds the place where a kernel is launched, if it is a single one that the crate's own code shows.
//!
//! The functions that launch take the place of their caller as a hidden parameter. It is followed up through those that pass theirs on, to
//! the constant that a caller passes. What is not understood makes the place unknown: it is compared with the program's, so
//! that a wrong one would keep a kernel from running.

use std::collections::BTreeSet;

use oxisycl_image::SourceLocation;

use crate::analyses::definitions::Definitions;
use crate::kernel::Launch;
use crate::llvm::{Value, ValueKind};
use crate::origin;
use crate::passes::panics::location_of;

/// The place where the kernel with the vtable `table` is launched. `None` if it is unknown.
pub(super) fn of<'c>(table: Value<'c>, definitions: &Definitions<'c>) -> Option<Launch> {
    let mut search = Search { definitions, found: None, functions: BTreeSet::new() };
    for user in table.users() {
        // The place is the last argument of the function that makes the descriptor.
        let is_argument = user.callee().is_some() && user.arguments().contains(&table);
        let place = user.arguments().last().copied().filter(|_| is_argument)?;
        search.follow(place)?;
    }
    Some(Launch { location: search.found?, functions: search.functions })
}

struct Search<'a, 'c> {
    definitions: &'a Definitions<'c>,
    found: Option<SourceLocation>,
    functions: BTreeSet<String>,
}

impl<'c> Search<'_, 'c> {
    /// Follows the caller's place from `value` to a constant. `None` if it is unknown, or differs from the place that was found before.
    fn follow(&mut self, value: Value<'c>) -> Option<()> {
        match value.kind() {
            ValueKind::GlobalVariable => {
                let location = location_of(value)?;
                (*self.found.get_or_insert_with(|| location.clone()) == location).then_some(())
            }
            ValueKind::Instruction => {
                let is_caller = origin::gives_caller(value.callee()?.name());
                self.follow(value.arguments().first().copied().filter(|_| is_caller)?)
            }
            ValueKind::Argument => {
                let function = value.parent();
                if !self.functions.insert(function.name().to_owned()) {
                    return Some(());
                }
                let index = (0..function.parameter_count()).find(|index| function.parameter(*index) == value)?;
                let is_it = |value: &Value<'c>| value.kind() == ValueKind::Function && value.name() == function.name();
                self.definitions.users(function).into_iter().try_for_each(|user| {
                    let is_call =
                        user.callee().is_some_and(|callee| is_it(&callee)) && !user.arguments().iter().any(is_it);
                    self.follow(user.arguments().get(index as usize).copied().filter(|_| is_call)?)
                })
            }
            _ => None,
        }
    }
}
