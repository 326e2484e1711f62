//! Links definitions of what the program refers to, until nothing is missing that can be found.

use std::collections::BTreeMap;

use crate::error::CompileError;
use crate::link::library::{self, Library};
use crate::llvm::{Linkage, Module, Value};
use crate::origin::formats_itself;
use crate::passes::panic_names;

/// The definitions to link now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// All definitions except functions that format values: most of them are only in panic messages, which the host formats.
    WithoutFormatting,
    Everything,
}

/// A symbol can be missing again after its definition was found to be unused and removed, but not often.
const MOST_SEARCHES: usize = 50;

/// The number of times that each symbol of a program was missing and found.
#[derive(Default)]
pub(crate) struct Searches(BTreeMap<String, usize>);

impl Searches {
    /// Counts one more search.
    fn add(&mut self, symbol: &str) -> Result<(), CompileError> {
        let count = self.0.entry(symbol.to_owned()).or_default();
        *count += 1;
        if *count > MOST_SEARCHES {
            return Err(CompileError::Kernel(format!("{symbol} is missing still after its module was linked")));
        }
        Ok(())
    }
}

/// Links one round of modules that define something missing. Returns whether there were any.
pub(crate) fn link_missing(
    module: &Module<'_>,
    library: &mut Library<'_>,
    searches: &mut Searches,
    scope: Scope,
) -> Result<bool, CompileError> {
    let mut needed: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for value in module.functions().into_iter().chain(module.globals()) {
        let name = value.name();
        let is_ours = name.starts_with("llvm.") || name.starts_with("oxisycl.");
        // The function that writes records is wanted before anything calls it.
        let is_wanted = value.is_used() || name == panic_names::RECORD;
        if is_ours || !value.is_declaration() || !is_wanted {
            continue;
        }
        if (scope == Scope::Everything || !formats_itself(name))
            && let Some(found) = library.find(name)?
        {
            searches.add(name)?;
            needed.entry(found).or_default().push(name.to_owned());
        }
    }
    for (&number, symbols) in &needed {
        // Its bodies are read as they are linked, and by the host's data layout, in which they were written. What differs, the address
        // space of variables, is for the target's `adapt`.
        let found = library.open(module.context(), number)?;
        symbols.iter().for_each(|symbol| library::share(&found, symbol));
        if scope == Scope::WithoutFormatting {
            declare_formatting(&found);
        }
        if module.function(panic_names::RECORD).is_some_and(Value::is_declaration)
            && let Some(record) = found.function(panic_names::RECORD)
        {
            // Else it would not be linked, since nothing uses it.
            record.set_linkage(Linkage::EXTERNAL);
        }
        module.link(found)?;
    }
    Ok(!needed.is_empty())
}

/// Removes the bodies of formatting functions of the standard library: they would be linked with the other definitions of their module.
fn declare_formatting(module: &Module<'_>) {
    for function in module.functions() {
        let name = function.name().to_owned();
        let is_shared = !function.is_declaration() && !function.linkage().is_local();
        // What is linked now must keep its body: it would be missing again, and linked again, without end.
        if is_shared && formats_itself(&name) && name.starts_with("_R") {
            let declaration = module.declare(&format!("{name}.declared"), function.held_type());
            function.replace_all_uses_with(declaration);
            // Its body was not read and, since nothing uses it now, never is.
            function.set_name(&format!("{name}.defined"));
            declaration.set_name(&name);
        }
    }
}
