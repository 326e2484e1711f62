//! Crates outside the device library's dependents: compiled for the device when a kernel turns out to need them.
//!
//! A crate is known by the symbols of the library that rustc made of it for the host. Everything that other crates refer to is in there,
//! since they were compiled against its metadata. Invariant: a crate that no kernel needs costs reading its library's table of symbols, and
//! that only if there is any undefined symbol at all.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use object::read::ReadCache;
use object::read::archive::ArchiveFile;

use super::cache::hash_file;
use super::outcome::UsedCrate;
use crate::failure::Result;
use crate::settings::hex;
use crate::wrapper::device_pass::run_deferred;
use crate::wrapper::invocation::Invocation;
use crate::wrapper::sidecar::{Place, Sidecar};

/// The crates that may be needed, and those that are.
pub(crate) struct DeferredCrates<'a> {
    key: &'a str,
    crates: Vec<(&'a PathBuf, Place)>,
    /// The position of the crate that defines a symbol. Made when first asked for.
    defining: Option<HashMap<Vec<u8>, usize>>,
    used: Vec<usize>,
    /// The crates that copies of this process were given. Later copies know nothing of their bitcode, and have to be given it as well.
    used_by_copies: Vec<usize>,
    failed: Vec<usize>,
    /// Why crates could not be compiled for the device.
    pub(crate) warnings: Vec<String>,
}

impl<'a> DeferredCrates<'a> {
    /// The crates with these sidecars.
    pub(crate) fn new(sidecars: &'a [PathBuf], key: &'a str) -> Self {
        let crates = sidecars.iter().filter_map(|path| Some((path, Place::of_sidecar(path)?))).collect();
        Self {
            key,
            crates,
            defining: None,
            used: Vec::new(),
            used_by_copies: Vec::new(),
            failed: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Makes the table of symbols, for all copies of this process.
    pub(crate) fn prepare(&mut self) {
        let (crates, key) = (&self.crates, self.key);
        self.defining.get_or_insert_with(|| table(crates, key));
    }

    /// Bitcode that defines a symbol, made if it is missing. `None` if no crate has the symbol, its bitcode was given before, or the crate
    /// cannot be compiled for the device. Then the symbol is missing, and with it the kernels that need it.
    pub(crate) fn provide(&mut self, symbol: &str) -> Option<PathBuf> {
        self.prepare();
        let idx = *self.defining.as_ref()?.get(symbol.as_bytes())?;
        if self.used.contains(&idx) || self.failed.contains(&idx) {
            return None;
        }
        match bitcode(&self.crates[idx].1, self.key) {
            Ok(Some(path)) => {
                self.used.push(idx);
                return Some(path);
            }
            Ok(None) => {}
            Err(failure) => self.warnings.push(failure.to_string()),
        }
        self.failed.push(idx);
        None
    }

    /// The positions of the crates whose bitcode was given, in the order in which it was.
    pub(crate) fn used_positions(&self) -> &[usize] {
        &self.used
    }

    /// The positions of the crates that cannot be compiled for the device.
    pub(crate) fn failed_positions(&self) -> &[usize] {
        &self.failed
    }

    /// Adds what a copy of these found: more crates that were used, or that cannot be, and more warnings.
    pub(crate) fn add(&mut self, used: &[usize], failed: &[usize], warnings: Vec<String>) {
        // Later copies need not try again.
        for &position in failed {
            if position < self.crates.len() && !self.failed.contains(&position) {
                self.failed.push(position);
            }
        }

        for &position in used {
            if position < self.crates.len() && !self.used_by_copies.contains(&position) {
                self.used_by_copies.push(position);
            }
        }
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
        // Not in the order in which the copies ended.
        self.used_by_copies.sort_unstable();
        self.warnings.sort();
    }

    /// The crates whose bitcode was given, here or to a copy.
    pub(crate) fn used(&self) -> Result<Vec<UsedCrate>> {
        let by_copies = self.used_by_copies.iter().filter(|position| !self.used.contains(position));
        let used = self.used.iter().chain(by_copies).map(|&idx| {
            let (sidecar, place) = &self.crates[idx];
            Ok(UsedCrate { sidecar: name_of(sidecar), hash: hex(&hash_file(&place.deferred_bitcode(self.key))?) })
        });
        used.collect()
    }
}

/// Whether the crates that an image was made with have the same bitcode now.
pub(crate) fn are_as_they_were(used: &[UsedCrate], sidecars: &[PathBuf], key: &str) -> bool {
    used.iter().all(|used| {
        let place = sidecars.iter().find(|path| name_of(path) == used.sidecar).and_then(|path| Place::of_sidecar(path));
        let bitcode = place.and_then(|place| bitcode(&place, key).ok().flatten());
        bitcode.and_then(|path| hash_file(&path).ok()).is_some_and(|hash| hex(&hash) == used.hash)
    })
}

/// A crate's bitcode, made if it is missing; `None` if it cannot be made, because no build noted how.
fn bitcode(place: &Place, key: &str) -> Result<Option<PathBuf>> {
    match Sidecar::read(place, key)?.and_then(|sidecar| sidecar.deferred) {
        Some(deferred) => run_deferred(deferred, place, key).map(Some),
        None => Ok(None),
    }
}

fn name_of(sidecar: &Path) -> String {
    sidecar.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Which crate defines which symbol. A library that cannot be read defines nothing; its symbols stay undefined, and the kernels that
/// need them are reported.
fn table(crates: &[(&PathBuf, Place)], key: &str) -> HashMap<Vec<u8>, usize> {
    let mut defining = HashMap::new();
    for (idx, (_, place)) in crates.iter().enumerate() {
        let Some(library) = library(place, key) else { continue };
        // Only the table is read, not the code.
        let Ok(file) = fs::File::open(&library).map(ReadCache::new) else { continue };
        let Ok(archive) = ArchiveFile::parse(&file) else { continue };
        let Ok(Some(symbols)) = archive.symbols() else { continue };
        for symbol in symbols.flatten() {
            let name = symbol.name();
            // Object files of macOS have one more character before each name, which bitcode has not.
            let name = if cfg!(target_os = "macos") { name.strip_prefix(b"_").unwrap_or(name) } else { name };
            defining.entry(name.to_vec()).or_insert(idx);
        }
    }
    defining
}

/// The host's library of a crate.
fn library(place: &Place, key: &str) -> Option<PathBuf> {
    let (deferred, _) = Sidecar::read(place, key).ok()??.deferred?.moved_to(place);
    let arguments: Vec<_> = deferred.arguments.iter().map(Into::into).collect();
    let invocation = Invocation::parse(&arguments).ok()?;
    Some(deferred.directory.join(invocation.out_dir()?).join(format!("lib{}.rlib", invocation.stem())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn an_image_without_such_crates_is_as_it_was() {
        assert!(are_as_they_were(&[], &[], "k"));
    }

    #[test]
    fn an_image_with_a_crate_that_is_gone_is_made_again() {
        let used = UsedCrate { sidecar: "half-1.json".to_owned(), hash: "00".to_owned() };
        assert!(!are_as_they_were(&[used], &[], "k"));
    }

    #[test]
    fn a_symbol_that_nobody_defines_is_nobodys() {
        let scratch = Scratch::new("deferred");
        let sidecars = [scratch.path().join("half-1.json")];
        let mut crates = DeferredCrates::new(&sidecars, "k");
        assert_eq!(crates.provide("f"), None);
        assert_eq!(crates.used(), Ok(Vec::new()));
    }

    #[test]
    fn a_crate_that_a_copy_could_not_compile_is_not_tried_again() {
        let scratch = Scratch::new("deferred-failed");
        let sidecars = [scratch.path().join("half-1.json")];
        fs::write(&sidecars[0], "damaged").unwrap();
        let crates = || {
            let mut crates = DeferredCrates::new(&sidecars, "k");
            crates.defining = Some(HashMap::from([(b"f".to_vec(), 0)]));
            crates
        };
        let mut told = crates();
        told.add(&[], &[0, 7], vec!["by the copy".to_owned()]);
        assert_eq!((told.provide("f"), told.warnings.as_slice()), (None, &["by the copy".to_owned()][..]));
        assert_eq!(told.failed_positions(), [0]);
        let mut alone = crates();
        assert_eq!((alone.provide("f"), alone.warnings.len(), alone.failed_positions()), (None, 1, &[0][..]));
    }
}
