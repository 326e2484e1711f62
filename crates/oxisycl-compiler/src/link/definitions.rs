//! Replaces functions that the program declares or defines by functions of a table in LLVM assembly.

use crate::error::CompileError;
use crate::llvm::{Attribute, Linkage, Module};

/// Replaces each function for which `body` returns the name of a function in `table`. A function with another type than the table's stays:
/// it is of another version than the table was written for.
pub(crate) fn replace(
    module: &Module<'_>,
    table: &str,
    body: impl Fn(&str) -> Option<String>,
) -> Result<(), CompileError> {
    let found: Vec<_> =
        module.functions().into_iter().filter_map(|function| Some((function, body(function.name())?))).collect();
    if found.is_empty() {
        return Ok(());
    }
    let context = module.context();
    let bodies = Module::from_text(context, table, "table")?;
    for function in bodies.functions().into_iter().filter(|function| !function.is_declaration()) {
        function.set_linkage(Linkage::LINK_ONCE_ODR);
        function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
    }
    for (function, name) in found {
        if bodies.function(&name).is_some_and(|body| body.held_type() == function.held_type()) {
            function.replace_all_uses_with(module.declare(&name, function.held_type()));
            function.delete_function();
        }
    }
    module.link(bodies)
}
