//! The archives of the standard library: the object that defines a symbol, and the object's bitcode.
//!
//! Only the archives' own tables of symbols are read at first. They are of machine code. For an object that is needed, its bitcode decides
//! ([`Library`](crate::link::library::Library)), and an object without bitcode defines nothing for a device.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use object::read::archive::{ArchiveFile, ArchiveOffset};
use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection};

use crate::error::CompileError;

/// The standard library's archives, with the symbols that their objects define.
#[derive(Debug, Default)]
pub(crate) struct StandardLibrary {
    archives: Vec<PathBuf>,
    /// The object that defines each symbol. If several archives define it, the first one counts.
    defining: FxHashMap<Vec<u8>, Member>,
}

/// An object of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Member {
    archive: usize,
    offset: u64,
}

impl StandardLibrary {
    /// Reads the symbol tables. An archive without one defines nothing.
    pub(crate) fn open(archives: Vec<PathBuf>) -> Result<Self, CompileError> {
        let mut defining = FxHashMap::default();
        for (number, path) in archives.iter().enumerate() {
            let file = ReadCache::new(open(path)?);
            let archive = ArchiveFile::parse(&file).map_err(|error| broken(path, &error))?;
            for symbol in archive.symbols().map_err(|error| broken(path, &error))?.into_iter().flatten() {
                let symbol = symbol.map_err(|error| broken(path, &error))?;
                let member = Member { archive: number, offset: symbol.offset().0 };
                defining.entry(symbol.name().to_vec()).or_insert(member);
            }
        }
        Ok(Self { archives, defining })
    }

    /// The object that defines the symbol in the host's code.
    pub(crate) fn find(&self, symbol: &str) -> Option<Member> {
        self.defining.get(symbol.as_bytes()).copied()
    }

    /// The standard library as a dynamic library, which exports less than the archives define. Without one, the archives.
    pub(crate) fn exporting(&self) -> Result<Vec<PathBuf>, CompileError> {
        let folder = self.archives.first().and_then(|archive| archive.parent());
        let dynamic = folder.map(dynamic_library).transpose()?.flatten();
        Ok(dynamic.map_or_else(|| self.archives.clone(), |library| vec![library]))
    }

    /// The name of an object, and its bitcode if it has any.
    pub(crate) fn bitcode(&self, member: Member) -> Result<(String, Option<Vec<u8>>), CompileError> {
        let path = &self.archives[member.archive];
        let file = ReadCache::new(open(path)?);
        let archive = ArchiveFile::parse(&file).map_err(|error| broken(path, &error))?;
        let found = archive.member(ArchiveOffset(member.offset)).map_err(|error| broken(path, &error))?;
        let name = format!("{}({})", path.display(), String::from_utf8_lossy(found.name()));
        let data = found.data(&file).map_err(|error| broken(path, &error))?;
        Ok((name, bitcode_in(data).map_err(|error| broken(path, &error))?))
    }
}

/// The standard library in a folder, as a dynamic library.
fn dynamic_library(folder: &Path) -> Result<Option<PathBuf>, CompileError> {
    let failed = |error| CompileError::File { path: folder.to_owned(), error };
    let names = std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".so")
    };
    let mut found: Vec<PathBuf> = names.into_iter().map(|entry| entry.path()).filter(is_it).collect();
    found.sort();
    Ok(found.into_iter().next())
}

/// The bitcode in an object file.
fn bitcode_in<'d>(data: impl ReadRef<'d>) -> object::Result<Option<Vec<u8>>> {
    let Ok(b"\x7fELF") = data.read_bytes_at(0, 4) else { return Ok(None) };
    let file = object::File::parse(data)?;
    let Some(section) = file.section_by_name(".llvmbc") else { return Ok(None) };
    Ok(Some(section.data()?.to_vec()).filter(|bitcode| !bitcode.is_empty()))
}

pub(super) fn open(path: &Path) -> Result<File, CompileError> {
    File::open(path).map_err(|error| CompileError::File { path: path.to_owned(), error })
}

pub(super) fn broken(path: &Path, what: &dyn std::fmt::Display) -> CompileError {
    CompileError::Toolchain(format!("{}: {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolchain::Toolchain;

    #[test]
    fn what_the_standard_library_defines_is_found_with_its_bitcode() {
        let toolchain = Toolchain::of_the_tests();
        let archives = toolchain.standard_library().expect("it has a standard library");
        let library = StandardLibrary::open(archives).expect("it can be read");
        let member = library.find("memcmp").or_else(|| library.find("__divti3")).expect("the runtime library is there");
        let (name, bitcode) = library.bitcode(member).expect("it can be read");
        assert!(name.contains("compiler_builtins"), "{name}");
        assert!(bitcode.is_some_and(|bitcode| bitcode.starts_with(b"BC\xC0\xDE")), "{name}");
        assert_eq!(library.find("a symbol of no crate"), None);
    }

    #[test]
    fn an_object_without_bitcode_has_none_and_a_damaged_archive_is_an_error() {
        assert_eq!(bitcode_in(&b"text"[..]), Ok(None));
        assert!(bitcode_in(&b"\x7fELF"[..]).is_err());
        let path = std::env::temp_dir().join(format!("oxisycl-archive-{}.rlib", std::process::id()));
        std::fs::write(&path, "!<arch>\nnothing that an archive holds").expect("a file");
        let error = StandardLibrary::open(vec![path.clone()]).expect_err("it is damaged").to_string();
        let _ = std::fs::remove_file(&path);
        assert!(error.contains(".rlib: "), "{error}");
    }
}
