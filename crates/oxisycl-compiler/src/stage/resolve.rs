//! Links what the program refers to, until nothing is missing that can be found.

use std::collections::BTreeSet;

use crate::CompileError;
use crate::library::Library;
use crate::llvm::{Machine, Module};
use crate::symbols::path;

/// What to link now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// All but functions that format values: most are only in panic messages, which the host formats.
    WithoutFormatting,
    Everything,
}

/// Links one round of modules that define something missing. Returns whether there were any.
pub(crate) fn link_missing(
    module: &Module<'_>,
    library: &mut Library<'_>,
    target: &Machine,
    scope: Scope,
) -> Result<bool, CompileError> {
    let mut needed = BTreeSet::new();
    for value in module.functions().into_iter().chain(module.globals()) {
        let name = value.name();
        let is_ours = name.starts_with("llvm.") || name.starts_with("oxisycl.");
        if is_ours || !value.is_declaration() || !value.is_used() {
            continue;
        }
        if scope == Scope::Everything || !path(name).contains("core::fmt::") {
            needed.extend(library.find(module.context(), name)?);
        }
    }
    let layout = target.data_layout();
    for &number in &needed {
        let found = library.open(module.context(), number)?;
        found.set_target(target.triple(), &layout);
        module.link(found)?;
    }
    Ok(!needed.is_empty())
}
