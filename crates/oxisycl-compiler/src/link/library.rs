//! A library of bitcode, whose definitions are linked where they are used: the crates of the program, and the standard library.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analyses::dependencies;
use crate::error::CompileError;
use crate::link::exports::Exports;
use crate::link::standard_library::{Member, StandardLibrary};
use crate::llvm::pass_lists::DROP_TYPES;
use crate::llvm::{Context, Linkage, Module, PassTuning};
use crate::origin::is_of_runtime;
use crate::passes::cpu_features;

/// Returns the bitcode of a crate that defines a symbol, if such a crate is not among the modules yet.
pub type Provider<'p> = dyn FnMut(&str) -> Result<Option<PathBuf>, CompileError> + 'p;

/// A library of modules, indexed by the symbols that they define. Invariant: the module of a symbol does not depend on earlier searches.
#[derive(Default)]
pub(crate) struct Library<'p> {
    modules: Vec<Stored>,
    /// The module of each symbol of a crate. The first module that defines a symbol wins.
    index: BTreeMap<String, usize>,
    /// The module of each private symbol of a crate. Crates that were compiled against the host's metadata may refer to them. The reason:
    /// rustc inlines functions of optimised crates into others, with the private items in them.
    private: BTreeMap<String, usize>,
    /// Called for symbols that no crate defines.
    provider: Option<&'p mut Provider<'p>>,
    /// Searched last. Most kernels need little of it, since their generic functions are in the crates that use them.
    standard: StandardLibrary,
    /// What the final link finds.
    exports: Exports,
    /// The modules of the standard library that were read so far: number and symbols; `None` for those without bitcode.
    members: FxHashMap<Member, Option<(usize, BTreeSet<String>)>>,
}

struct Stored {
    name: String,
    bitcode: Rc<Vec<u8>>,
    /// Whether the module is the standard library's. The kind of its debug information would turn device code into debug code.
    is_standard: bool,
}

impl<'p> Library<'p> {
    /// An empty library. Modules are added later, some of them from `provider`.
    pub(crate) fn new(provider: &'p mut Provider<'p>) -> Self {
        Self { provider: Some(provider), ..Self::default() }
    }

    /// A library without modules, for a program whose final link finds these symbols.
    #[cfg(test)]
    pub(crate) fn exporting(symbols: &[&str]) -> Self {
        Self { exports: Exports::of_symbols(symbols), ..Self::default() }
    }

    /// A library without modules, for a program whose final link loses names.
    #[cfg(test)]
    pub(crate) fn losing_names() -> Self {
        Self { exports: Exports::kept(), ..Self::default() }
    }

    /// Sets the standard library. `exporting` are the other libraries whose symbols native code may refer to; `None` if the final link loses the
    /// names of all of them.
    pub(crate) fn set_standard_library(
        &mut self,
        standard: StandardLibrary,
        exporting: Option<&[PathBuf]>,
    ) -> Result<(), CompileError> {
        self.exports = match exporting {
            Some(exporting) => Exports::of([&*standard.exporting()?, exporting].concat()),
            None => Exports::kept(),
        };
        self.standard = standard;
        Ok(())
    }

    /// Adds the bitcode of a crate, and the module that was read from it.
    pub(crate) fn add_crate(&mut self, path: &Path, bitcode: &Rc<Vec<u8>>, module: &Module<'_>) {
        let number = self.modules.len();
        for symbol in symbols(module) {
            self.index.entry(symbol).or_insert(number);
        }
        for symbol in private_symbols(module) {
            self.private.entry(symbol).or_insert(number);
        }
        let name = path.display().to_string();
        self.modules.push(Stored { name, bitcode: Rc::clone(bitcode), is_standard: false });
    }

    /// Reduces the debug information of each crate to source lines, except the first crate, which no other refers to. Types are most of
    /// what is read for each link.
    pub(crate) fn drop_types(&mut self) -> Result<(), CompileError> {
        for stored in self.modules.iter_mut().skip(1).filter(|stored| !stored.is_standard) {
            let context = Context::new();
            let module = Module::from_bitcode(&context, &stored.bitcode, &stored.name)?;
            module.run(DROP_TYPES, None, &PassTuning::DEVICE)?;
            stored.bitcode = Rc::new(module.to_bitcode());
        }
        Ok(())
    }

    /// The number of the module that defines the symbol.
    pub(crate) fn find(&mut self, symbol: &str) -> Result<Option<usize>, CompileError> {
        if !self.index.contains_key(symbol)
            && let Some(provider) = &mut self.provider
            && let Some(path) = provider(symbol)?
        {
            let bitcode = Rc::new(read(&path)?);
            let context = Context::new();
            let module = Module::lazy(&context, &bitcode, &path.display().to_string())?;
            self.add_crate(&path, &bitcode, &module);
        }
        if let Some(number) = self.index.get(symbol).or_else(|| self.private.get(symbol)) {
            return Ok(Some(*number));
        }
        let Some(member) = self.standard.find(symbol) else { return Ok(None) };
        if !self.members.contains_key(&member) {
            let found = self.add_member(member)?;
            self.members.insert(member, found);
        }
        let found = self.members.get(&member).and_then(Option::as_ref);
        Ok(found.filter(|(_, symbols)| symbols.contains(symbol)).map(|(number, _)| *number))
    }

    /// Whether the final link does not find a symbol that must not be copied either.
    pub(crate) fn is_lost(&self, symbol: &str) -> bool {
        self.exports.are_others_lost && is_of_runtime(symbol)
    }

    /// Whether the final link of the program finds a symbol of Rust.
    pub(crate) fn is_exported(&mut self, symbol: &str) -> Result<bool, CompileError> {
        self.exports.has(symbol)
    }

    /// Whether all crates of the program that were read so far use the static `name` as a [cache](cpu_features).
    pub(crate) fn is_cache(&self, name: &str) -> Result<bool, CompileError> {
        let context = Context::new();
        let names_it = |stored: &&Stored| {
            let context = Context::new();
            let module = Module::lazy(&context, &stored.bitcode, &stored.name);
            module.map_or(true, |module| module.global(name).is_some())
        };
        let crates = self.modules.iter().filter(|stored| !stored.is_standard).filter(names_it);
        let modules = crates.map(|stored| Module::from_bitcode(&context, &stored.bitcode, &stored.name));
        cpu_features::is_cache(modules, name)
    }

    fn add_member(&mut self, member: Member) -> Result<Option<(usize, BTreeSet<String>)>, CompileError> {
        let (name, bitcode) = self.standard.bitcode(member)?;
        let Some(bitcode) = bitcode.map(Rc::new) else { return Ok(None) };
        let context = Context::new();
        let found = symbols(&Module::lazy(&context, &bitcode, &name)?).collect();
        self.modules.push(Stored { name, bitcode, is_standard: true });
        Ok(Some((self.modules.len() - 1, found)))
    }

    /// Opens a module so that each definition is linked only where it is used.
    pub(crate) fn open<'c>(&self, context: &'c Context, number: usize) -> Result<Module<'c>, CompileError> {
        let stored = &self.modules[number];
        let module = Module::lazy(context, &stored.bitcode, &stored.name)?;
        if stored.is_standard {
            module.strip_debug_info();
            dependencies::mark_standard_library(&module);
        }
        link_where_used(&module);
        Ok(module)
    }
}

/// The public definitions of a module.
fn symbols(module: &Module<'_>) -> impl Iterator<Item = String> {
    let values = module.functions().into_iter().chain(module.globals());
    let shared = values.filter(|value| {
        !value.is_declaration() && !value.linkage().is_local() && value.linkage() != Linkage::APPENDING
    });
    shared.map(|value| value.name().to_owned())
}

/// The private definitions of a module, except unnamed ones. A static that is not constant is left out, since each image would have its
/// own.
fn private_symbols(module: &Module<'_>) -> impl Iterator<Item = String> {
    let constants = module.globals().into_iter().filter(|global| global.is_constant_global());
    let values = module.functions().into_iter().chain(constants);
    let named = |name: &str| name.starts_with("_ZN") || name.starts_with("_R");
    let private =
        values.filter(move |value| !value.is_declaration() && value.linkage().is_local() && named(value.name()));
    private.map(|value| value.name().to_owned())
}

/// Makes a private definition of the module public.
pub(crate) fn share(module: &Module<'_>, symbol: &str) {
    let value = module.function(symbol).or_else(|| module.global(symbol));
    if let Some(value) = value.filter(|value| !value.is_declaration() && value.linkage().is_local()) {
        value.clear_placement();
        value.set_linkage(Linkage::LINK_ONCE_ODR);
    }
}

/// Sets linkages with which each definition is linked only where it is used.
pub(crate) fn link_where_used(module: &Module<'_>) {
    for value in module.functions().into_iter().chain(module.globals()) {
        let linkage = value.linkage();
        if !value.is_declaration() && !linkage.is_local() && linkage != Linkage::APPENDING {
            value.clear_placement();
            value.set_linkage(Linkage::LINK_ONCE_ODR);
        }
    }
    // Lists of what must be kept, or run at the start: nothing of that is meant for a device.
    for name in ["llvm.used", "llvm.compiler.used", "llvm.global_ctors", "llvm.global_dtors"] {
        if let Some(list) = module.global(name) {
            list.delete_global();
        }
    }
    module.clear_inline_assembly();
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, CompileError> {
    std::fs::read(path).map_err(|error| CompileError::File { path: PathBuf::from(path), error })
}
