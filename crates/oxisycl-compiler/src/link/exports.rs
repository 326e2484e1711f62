//! The symbols that native code of a kernel may refer to, because the final link of the program finds them.
//!
//! They are those of the standard library and of the library with OxiSYCL's device crate. Other crates' symbols may be gone by then. Where
//! link-time optimisation takes all names of Rust away, they are those of the functions that [`kept`] has another name for.

use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSymbol};
use rustc_hash::FxHashSet;

use crate::error::CompileError;
use crate::link::standard_library::{broken, open};
use crate::origin::kept;

/// Symbols that the final link finds. They are read when the first one is asked for.
#[derive(Debug, Default)]
pub(crate) struct Exports {
    libraries: Vec<PathBuf>,
    symbols: Option<FxHashSet<Vec<u8>>>,
    /// Whether functions with other names are all that the final link finds.
    pub(super) are_others_lost: bool,
}

impl Exports {
    /// The symbols of archives and dynamic libraries.
    pub(crate) fn of(libraries: Vec<PathBuf>) -> Self {
        Self { libraries, ..Self::default() }
    }

    /// What stays where the names of Rust's functions are lost.
    pub(crate) fn kept() -> Self {
        Self { are_others_lost: true, ..Self::default() }
    }

    /// These symbols.
    #[cfg(test)]
    pub(crate) fn of_symbols(symbols: &[&str]) -> Self {
        let symbols = symbols.iter().map(|symbol| symbol.as_bytes().to_vec()).collect();
        Self { symbols: Some(symbols), ..Self::default() }
    }

    /// Whether the final link finds a symbol.
    pub(crate) fn has(&mut self, symbol: &str) -> Result<bool, CompileError> {
        if self.are_others_lost {
            return Ok(kept(symbol).is_some());
        }
        let symbols = match &mut self.symbols {
            Some(symbols) => symbols,
            none => {
                let mut symbols = FxHashSet::default();
                self.libraries.iter().try_for_each(|library| add(library, &mut symbols))?;
                none.insert(symbols)
            }
        };
        Ok(symbols.contains(symbol.as_bytes()))
    }
}

/// Adds the symbols of a library.
fn add(path: &Path, symbols: &mut FxHashSet<Vec<u8>>) -> Result<(), CompileError> {
    let file = ReadCache::new(open(path)?);
    if path.extension().is_some_and(|extension| extension == "rlib") {
        let archive = ArchiveFile::parse(&file).map_err(|error| broken(path, &error))?;
        for symbol in archive.symbols().map_err(|error| broken(path, &error))?.into_iter().flatten() {
            symbols.insert(symbol.map_err(|error| broken(path, &error))?.name().to_vec());
        }
        return Ok(());
    }
    let library = object::File::parse(&file).map_err(|error| broken(path, &error))?;
    let defined = library.dynamic_symbols().filter(|symbol| symbol.is_definition());
    symbols.extend(defined.filter_map(|symbol| Some(symbol.name_bytes().ok()?.to_vec())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::standard_library::StandardLibrary;
    use crate::toolchain::Toolchain;

    #[test]
    fn the_standard_library_exports_less_than_its_archives_define() {
        let toolchain = Toolchain::of_the_tests();
        let archives = toolchain.standard_library().expect("it has a standard library");
        let standard = StandardLibrary::open(archives.clone()).expect("it can be read");
        let mut exports = Exports::of(standard.exporting().expect("the folder can be read"));
        let mut defined = Exports::of(archives);
        let mut both = |symbol: &str| [&mut exports, &mut defined].map(|of| of.has(symbol).expect("it can be read"));
        assert_eq!(both("rust_eh_personality"), [true, true]);
        assert_eq!(both("__udivti3"), [false, true], "each program has its own copy");
        assert_eq!(both("a symbol of no crate"), [false, false]);
    }

    #[test]
    fn where_names_are_lost_functions_with_another_name_stay() {
        let mut exports = Exports::kept();
        let mut has = |symbol: &str| exports.has(symbol).expect("nothing is read");
        assert!(has("_RNvNtCsgEmfK2I1SDS_4core9panicking9panic_fmt"));
        assert!(!has("_RNvNtCsgEmfK2I1SDS_4core9panicking18panic_bounds_check"));
    }

    #[test]
    fn a_library_that_cannot_be_read_is_an_error() {
        let mut exports = Exports::of(vec!["/nowhere/liba.rlib".into()]);
        assert!(exports.has("a").is_err());
    }
}
