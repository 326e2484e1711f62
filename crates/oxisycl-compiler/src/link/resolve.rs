//! Links definitions of what the program refers to, until nothing is missing that can be found.

use std::collections::{BTreeMap, BTreeSet};

use crate::analyses::exports::is_of_rust;
use crate::error::CompileError;
use crate::link::library::{self, Library};
use crate::llvm::{Linkage, Module, Value, ValueKind};
use crate::origin::formats_itself;
use crate::passes::{libcalls, panic_names};

/// The definitions to link now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// All definitions except functions that format values: most of them are only in panic messages, which the host formats.
    WithoutFormatting,
    Everything,
    /// Definitions for native code: what the final link finds is not copied.
    Native,
}

/// Parts of the names of functions that the standard library has instances of, and that do next to nothing. Optimised code of rustc's has
/// instances of its own, which are inlined. Code that is not optimised calls those of the standard library.
const SMALL: [&str; 1] = ["27TrustedRandomAccessNoCoerce4size"];

/// A symbol can be missing again after its definition was found to be unused and removed, but not often.
const MOST_SEARCHES: usize = 50;

/// The searches for symbols of a program.
#[derive(Default)]
pub(crate) struct Searches {
    /// The number of times that each symbol was missing and found.
    found: BTreeMap<String, usize>,
    /// The symbols that native code would need, and that neither a crate nor the final link makes known.
    pub(crate) unknown: BTreeSet<String>,
}

impl Searches {
    /// Counts one more search.
    fn add(&mut self, symbol: &str) -> Result<(), CompileError> {
        let count = self.found.entry(symbol.to_owned()).or_default();
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
        let is_wanted = value.is_used() || name == panic_names::RECORD || libcalls::is_for_lanes(name);
        if is_ours || !value.is_declaration() || !is_wanted {
            continue;
        }
        let is_linked_later = match scope {
            Scope::WithoutFormatting => formats_itself(name),
            Scope::Everything => false,
            Scope::Native if libcalls::is_copied(name) || is_small(name) => false,
            Scope::Native => !is_of_rust(name) || library.is_exported(name)?,
        };
        if is_linked_later {
            continue;
        }
        if scope == Scope::Native && library.is_lost(name) {
            searches.unknown.insert(name.to_owned());
            continue;
        }
        if let Some(found) = library.find(name)? {
            searches.add(name)?;
            needed.entry(found).or_default().push(name.to_owned());
        } else if scope == Scope::Native && !(is_small(name) && library.is_exported(name)?) {
            searches.unknown.insert(name.to_owned());
        }
    }
    for (&number, symbols) in &needed {
        // Its bodies are read as they are linked, and by the host's data layout, in which they were written. What differs, the address
        // space of variables, is for the target's `adapt`.
        let found = library.open(module.context(), number)?;
        symbols.iter().for_each(|symbol| library::share(&found, symbol));
        match scope {
            // What is linked now must keep its body: it would be missing again, and linked again, without end.
            Scope::WithoutFormatting => declare(&found, &|name| formats_itself(name) && name.starts_with("_R")),
            Scope::Everything => {}
            Scope::Native => {
                let exported = exported_definitions(&found, library)?;
                declare(&found, &|name| exported.contains(name));
            }
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

fn is_small(name: &str) -> bool {
    SMALL.iter().any(|part| name.contains(part))
}

/// Removes definitions of the module that are not wanted now: they would be linked with the other definitions that refer to them.
fn declare(module: &Module<'_>, is_unwanted: &dyn Fn(&str) -> bool) {
    for value in module.functions().into_iter().chain(module.globals()) {
        let name = value.name().to_owned();
        if value.is_declaration() || value.linkage().is_local() || !is_unwanted(&name) {
            continue;
        }
        let other = format!("{name}.declared");
        let declaration = match value.kind() {
            ValueKind::Function => module.declare(&other, value.held_type()),
            _ => module.add_global(&other, value.held_type(), 0),
        };
        value.replace_all_uses_with(declaration);
        // Its body was not read and, since nothing uses it now, never is.
        value.set_name(&format!("{name}.defined"));
        declaration.set_name(&name);
    }
}

/// The definitions of a module that the final link finds. Thread-local variables are left out, whose declarations would be of another kind.
fn exported_definitions(module: &Module<'_>, library: &mut Library<'_>) -> Result<BTreeSet<String>, CompileError> {
    let mut exported = BTreeSet::new();
    for value in module.functions().into_iter().chain(module.globals()) {
        let is_thread_local = value.kind() == ValueKind::GlobalVariable && value.is_thread_local();
        if !value.is_declaration()
            && is_of_rust(value.name())
            && !is_thread_local
            && !is_small(value.name())
            && library.is_exported(value.name())?
        {
            exported.insert(value.name().to_owned());
        }
    }
    Ok(exported)
}
