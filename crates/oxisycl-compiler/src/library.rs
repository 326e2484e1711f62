//! Bitcode that is linked where something in it is used: the crates of the program, and the standard library.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection};

use crate::CompileError;
use crate::llvm::{Context, Linkage, Module};
use crate::stage::dependencies;

/// Gives the bitcode of a crate that defines a symbol, if there is one that is not among the modules.
pub type Provider<'p> = dyn FnMut(&str) -> Result<Option<PathBuf>, CompileError> + 'p;

/// Modules, and which of them defines what. The standard library's archives are opened when a symbol is in none of the crates: most
/// kernels need nothing of them, since their generic functions are in the crates that use them.
#[derive(Default)]
pub(crate) struct Library<'p> {
    modules: Vec<Stored>,
    /// Symbol to module. The first one that defines a symbol wins.
    index: BTreeMap<String, usize>,
    /// Asked for symbols that no module defines.
    provider: Option<&'p mut Provider<'p>>,
    /// Not yet opened.
    archives: Vec<PathBuf>,
    /// How often each symbol was searched for.
    searches: BTreeMap<String, usize>,
}

struct Stored {
    name: String,
    bitcode: Vec<u8>,
    /// Its debug information is of a kind that would turn device code into debug code.
    is_standard: bool,
}

impl<'p> Library<'p> {
    /// Modules that are yet to come, some of them from `provider`.
    pub(crate) fn new(provider: &'p mut Provider<'p>) -> Self {
        Self { provider: Some(provider), ..Self::default() }
    }

    /// The standard library.
    pub(crate) fn set_archives(&mut self, archives: Vec<PathBuf>) {
        self.archives = archives;
    }

    /// Adds the bitcode of a crate. `on_function` sees the symbol of every function.
    pub(crate) fn add_crate(
        &mut self,
        context: &Context,
        path: &Path,
        bitcode: Vec<u8>,
        on_function: impl FnMut(&str),
    ) -> Result<(), CompileError> {
        self.add(context, path.display().to_string(), bitcode, false, on_function)
    }

    /// Adds the bitcode in the objects of an archive of the standard library. Objects without any are left out.
    fn add_archive(&mut self, context: &Context, path: &Path) -> Result<(), CompileError> {
        let broken = |what: &dyn std::fmt::Display| CompileError::Toolchain(format!("{}: {what}", path.display()));
        let bytes = read(path)?;
        let archive = ArchiveFile::parse(&*bytes).map_err(|error| broken(&error))?;
        for member in archive.members() {
            let member = member.map_err(|error| broken(&error))?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let data = member.data(&*bytes).map_err(|error| broken(&error))?;
            if !data.starts_with(b"\x7fELF") {
                continue;
            }
            let file = object::File::parse(data).map_err(|error| broken(&error))?;
            let Some(section) = file.section_by_name(".llvmbc") else { continue };
            let bitcode = section.data().map_err(|error| broken(&error))?.to_vec();
            if !bitcode.is_empty() {
                self.add(context, format!("{}({name})", path.display()), bitcode, true, |_| {})?;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        context: &Context,
        name: String,
        bitcode: Vec<u8>,
        is_standard: bool,
        mut on_function: impl FnMut(&str),
    ) -> Result<(), CompileError> {
        let module = Module::from_bitcode(context, &bitcode, &name, true)?;
        let number = self.modules.len();
        module.functions().into_iter().for_each(|function| on_function(function.name()));
        for value in module.functions().into_iter().chain(module.globals()) {
            if !value.is_declaration() && !value.linkage().is_local() && value.linkage() != Linkage::APPENDING {
                self.index.entry(value.name().to_owned()).or_insert(number);
            }
        }
        self.modules.push(Stored { name, bitcode, is_standard });
        Ok(())
    }

    /// The module that defines the symbol.
    pub(crate) fn find(&mut self, context: &Context, symbol: &str) -> Result<Option<usize>, CompileError> {
        if !self.index.contains_key(symbol)
            && let Some(provider) = &mut self.provider
            && let Some(path) = provider(symbol)?
        {
            self.add_crate(context, &path, read(&path)?, |_| {})?;
        }
        if !self.index.contains_key(symbol) {
            for archive in std::mem::take(&mut self.archives) {
                self.add_archive(context, &archive)?;
            }
        }
        Ok(self.index.get(symbol).copied())
    }

    /// Counts a search for a symbol that was found. Returns how often it was searched for.
    pub(crate) fn count_search(&mut self, symbol: &str) -> usize {
        let count = self.searches.entry(symbol.to_owned()).or_default();
        *count += 1;
        *count
    }

    /// The module, with every definition linked only where it is used.
    pub(crate) fn open<'c>(&self, context: &'c Context, number: usize) -> Result<Module<'c>, CompileError> {
        let stored = &self.modules[number];
        let module = Module::from_bitcode(context, &stored.bitcode, &stored.name, false)?;
        if stored.is_standard {
            module.strip_debug_info();
            dependencies::mark_standard_library(&module);
        }
        link_where_used(&module);
        Ok(module)
    }
}

/// Gives every definition a linkage with which it is linked only where it is used.
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
