//! Links what the program refers to, until nothing is missing that can be found.

use std::collections::BTreeSet;

use crate::CompileError;
use crate::library::Library;
use crate::llvm::Module;

/// Links one round of modules that define something missing. Returns whether there were any.
pub(crate) fn link_missing(
    module: &Module<'_>,
    library: &mut Library,
    triple: &str,
    layout: &str,
) -> Result<bool, CompileError> {
    let mut needed = BTreeSet::new();
    for value in module.functions().into_iter().chain(module.globals()) {
        let name = value.name();
        if value.is_declaration() && !name.starts_with("llvm.") && !name.starts_with("oxisycl.") && value.is_used() {
            needed.extend(library.find(module.context(), name)?);
        }
    }
    for &number in &needed {
        let found = library.open(module.context(), number)?;
        found.set_target(triple, layout);
        module.link(found)?;
    }
    Ok(!needed.is_empty())
}
