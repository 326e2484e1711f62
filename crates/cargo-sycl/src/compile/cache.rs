//! Images that were compiled before, for all of the user's builds, and the modules that their code was generated from.
//! Those of a link unit for a target are one entry. Those of each kernel are another one, which is written as soon as they are made.
//!
//! Entries are named by what they were made of. Invariant: an entry is whole or is not used. Nothing here fails a build: what cannot be
//! read is compiled again, and what cannot be written is not kept.

use std::collections::HashSet;
use std::fs;
use std::io::{BufReader, Read};
use std::path::Path;

use oxisycl_cache::CacheFolder;
use oxisycl_compiler::LoweredModule;
use oxisycl_image::DeviceImage;
use sha2::{Digest, Sha256};

use super::{Outcome, PrivateFolder, Request};
use crate::failure::{Failure, Result};
use crate::settings::{NATIVE, hex};

/// The most that all entries may have together, in bytes.
const CAPACITY: u64 = 512 << 20;

/// What the results for single kernels begin with, and the size of the hash after it.
const KERNEL_MAGIC: &[u8; 8] = b"OXIKERN1";
const HASH_SIZE: usize = 32;

/// The folder of entries.
#[derive(Debug)]
pub(crate) struct ImageCache(CacheFolder);

/// The name of the entry of a request's target: a hash of all that decides about the images, contents of files included.
pub(crate) fn key(request: &Request, target: &str) -> Result<String> {
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let ptxas = request.ptxas.as_ref().map(|path| path.to_string_lossy()).unwrap_or_default();
    for text in [&*request.key, &request.toolchain, target, &request.float, &ptxas] {
        part(text.as_bytes());
    }
    for name in &request.borrowed {
        part(name.as_bytes());
    }
    for sidecar in &request.deferred {
        part(sidecar.file_name().unwrap_or_default().as_encoded_bytes());
    }
    // An outcome of a program that may capture addresses of the host is none of one that may not.
    part(&[request.refuses_host_captures.into()]);
    // Images of devices are the same beside native code and without it.
    let is_native = target.starts_with(NATIVE);
    part(if is_native { request.lanes.as_bytes() } else { b"1" });
    part(&[request.has_lines, request.loses_names].map(|is_so| u8::from(is_native && is_so)));
    let exporting = if is_native { &*request.exporting } else { &[] };
    for file in request.modules.iter().chain(exporting) {
        part(&hash_file(file)?);
    }
    Ok(hex(&hasher.finalize()))
}

/// The hash of a file's content.
pub(crate) fn hash_file(path: &Path) -> Result<[u8; 32]> {
    let failed = |error| Failure::file(path, error);
    let mut file = fs::File::open(path).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer).map_err(failed)? {
            0 => return Ok(hasher.finalize().into()),
            n => hasher.update(&buffer[..n]),
        }
    }
}

impl ImageCache {
    /// The user's cache; `None` if there can be none. `cargo sycl doctor` says why.
    pub(crate) fn open() -> Option<Self> {
        PrivateFolder::of_user("images").ok().map(|folder| Self::in_folder(&folder, CAPACITY))
    }

    fn in_folder(folder: &PrivateFolder, capacity: u64) -> Self {
        Self(CacheFolder::new(folder.path(), capacity, ""))
    }

    /// A cache in a folder of a test.
    #[cfg(test)]
    pub(crate) fn at(folder: &Path) -> Self {
        Self::in_folder(&PrivateFolder::at(folder).unwrap(), CAPACITY)
    }

    /// The entry of this key, if there is a whole one of this user.
    pub(crate) fn get(&self, key: &str) -> Option<Outcome> {
        self.0.read(key, Outcome::decode)
    }

    /// The result for one kernel, kept under this key.
    pub(super) fn get_kernel(&self, key: &str) -> Option<Vec<u8>> {
        self.0.read(key, |bytes| {
            let (hash, result) = bytes.strip_prefix(KERNEL_MAGIC)?.split_at_checked(HASH_SIZE)?;
            (Sha256::digest(result).as_slice() == hash).then(|| result.to_vec())
        })
    }

    /// Keeps the result for one kernel. Room for it is made when the outcome of its build is kept.
    pub(super) fn put_kernel(&self, key: &str, result: &[u8]) {
        // What cannot be written is not kept.
        let _ = self.0.write(key, &[KERNEL_MAGIC, &Sha256::digest(result), result]);
    }

    /// The modules that the code of these images was generated from. `None` for images that were made elsewhere, or so long ago that their
    /// cache entry is gone. All bytes of an image identify it: which build it is of plays no part.
    pub(crate) fn modules(&self, images: &[&DeviceImage]) -> Vec<Option<LoweredModule>> {
        let mut found = vec![None; images.len()];
        let symbol = |image: &DeviceImage| image.kernels.first().map(|kernel| kernel.symbol.clone());
        let wanted: HashSet<String> = images.iter().filter_map(|image| symbol(image)).collect();
        for entry in self.0.entries() {
            let symbols = fs::File::open(&entry.path).ok().and_then(|file| Outcome::symbols(&mut BufReader::new(file)));
            if symbols.is_none_or(|symbols| symbols.iter().all(|symbol| !wanted.contains(symbol))) {
                continue;
            }
            let name = entry.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(outcome) = self.get(&name) else { continue };
            for (image, place) in images.iter().zip(&mut found) {
                if place.is_none() && outcome.images.contains(image) {
                    let symbol = symbol(image);
                    *place = outcome.modules.iter().find(|module| Some(&module.symbol) == symbol.as_ref()).cloned();
                }
            }
        }
        found
    }

    /// Keeps an entry, and removes the oldest if there are too many.
    pub(crate) fn put(&self, key: &str, bytes: &[u8]) {
        if let Ok(true) = self.0.write(key, &[bytes]) {
            self.0.make_room(key);
        }
    }

    /// How many entries there are, and their size in bytes.
    pub(crate) fn usage(&self) -> (usize, u64) {
        let entries = self.0.entries();
        (entries.len(), entries.iter().map(|entry| entry.size).sum())
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime};

    use super::super::outcome::tests::outcome;
    use super::*;
    use crate::files::tests::{Scratch, damaged};

    fn cache(scratch: &Scratch, capacity: u64) -> ImageCache {
        ImageCache::in_folder(&PrivateFolder::at(&scratch.path().join("oxisycl/images")).unwrap(), capacity)
    }

    pub(in crate::compile) fn request(module: PathBuf) -> Request {
        Request {
            rustc: "/bin/rustc".into(),
            toolchain: "c".to_owned(),
            key: "k".to_owned(),
            modules: vec![module],
            deferred: Vec::new(),
            borrowed: Vec::new(),
            targets: vec!["sm_70".to_owned()],
            float: "contract".to_owned(),
            lanes: "1".to_owned(),
            loses_names: false,
            has_lines: false,
            dump: None,
            time_passes: false,
            folder: "/t".into(),
            ptxas: None,
            is_kept: true,
            progress: None,
            refuses_host_captures: false,
            exporting: Vec::new(),
        }
    }

    #[test]
    fn entries_come_back_and_others_do_not() {
        let scratch = Scratch::new("cache-get");
        let cache = cache(&scratch, CAPACITY);
        assert_eq!(cache.get("a"), None);
        cache.put("a", &outcome().encode().unwrap());
        assert_eq!(cache.get("a"), Some(outcome()));
        assert_eq!(cache.get("b"), None);
        assert_eq!(cache.usage().0, 1);
    }

    #[test]
    fn results_for_kernels_come_back_and_damaged_ones_do_not() {
        let scratch = Scratch::new("cache-kernel");
        let cache = cache(&scratch, CAPACITY);
        cache.put_kernel("k", b"result");
        assert_eq!(cache.get_kernel("k"), Some(b"result".to_vec()));
        // The kinds do not mix.
        assert_eq!(cache.get("k"), None);
        cache.put("o", &outcome().encode().unwrap());
        assert_eq!(cache.get_kernel("o"), None);
        let whole = fs::read(cache.0.file("k")).unwrap();
        for number in 0..500 {
            let bytes = damaged(&whole, number);
            fs::write(cache.0.file("k"), &bytes).unwrap();
            assert_eq!(cache.get_kernel("k").is_some(), bytes == whole, "case {number}");
        }
    }

    #[test]
    fn a_damaged_entry_is_ignored_and_replaced() {
        let scratch = Scratch::new("cache-damaged");
        let cache = cache(&scratch, CAPACITY);
        for damage in [&b""[..], b"OXICACH1", b"something else of any length"] {
            fs::write(cache.0.file("a"), damage).unwrap();
            assert_eq!(cache.get("a"), None);
        }
        cache.put("a", &outcome().encode().unwrap());
        assert_eq!(cache.get("a"), Some(outcome()));
        let whole = outcome().encode().unwrap();
        for number in 0..500 {
            let bytes = damaged(&whole, number);
            fs::write(cache.0.file("a"), &bytes).unwrap();
            assert_eq!(cache.get("a").is_some(), bytes == whole, "case {number}");
        }
        cache.put("a", &whole);
        assert_eq!(cache.get("a"), Some(outcome()));
    }

    #[test]
    fn what_is_not_a_file_of_reasonable_size_is_not_read() {
        let scratch = Scratch::new("cache-foreign");
        let cache = cache(&scratch, 1 << 20);
        fs::create_dir(cache.0.file("folder")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", cache.0.file("link")).unwrap();
        // Takes no room on the disk.
        fs::File::create(cache.0.file("large")).unwrap().set_len(1 << 40).unwrap();
        for key in ["folder", "link", "large"] {
            assert_eq!(cache.get(key), None, "{key}");
        }
        cache.put("link", &outcome().encode().unwrap());
        assert_eq!(cache.get("link"), Some(outcome()));
    }

    /// The folder that a process of the next test works in, and which one it is.
    const CHILD: &str = "CARGO_SYCL_TEST_CACHE";

    #[test]
    fn processes_that_share_a_folder_see_whole_entries() {
        let bytes = outcome().encode().unwrap();
        if let Ok(folder) = std::env::var(CHILD) {
            let folder = PrivateFolder::at(folder.as_ref()).unwrap();
            // There is room for two of the four entries, so that they are removed all the time.
            let cache = ImageCache::in_folder(&folder, 2 * bytes.len() as u64);
            for round in 0..100 {
                let key = ["a", "b", "c", "d"][(round + std::process::id() as usize) % 4];
                if round % 7 == 0 {
                    fs::write(cache.0.file(key), &bytes[..bytes.len() / 2]).unwrap();
                }
                cache.put(key, &bytes);
                // Another process may have removed or damaged it, but nothing else can be there.
                assert!(cache.get(key).is_none_or(|found| found == outcome()));
            }
            return;
        }
        let scratch = Scratch::new("cache-processes");
        let folder = scratch.path().join("oxisycl/images");
        PrivateFolder::at(&folder).unwrap();
        let name = std::thread::current().name().unwrap().to_owned();
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", &name, "--nocapture"]).env(CHILD, &folder);
        let start = |_| command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let children: Vec<_> = (0..4).map(start).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let cache = cache(&scratch, 2 * bytes.len() as u64);
        cache.put("a", &bytes);
        assert_eq!(cache.get("a"), Some(outcome()));
        let (n_entries, size) = cache.usage();
        assert!(size <= cache.0.limit(), "{n_entries} entries of {size} bytes");
    }

    #[test]
    fn the_entry_that_was_not_used_for_longest_goes_first() {
        let scratch = Scratch::new("cache-full");
        let bytes = outcome().encode().unwrap();
        let cache = cache(&scratch, 2 * bytes.len() as u64);
        for (age, key) in [(3, "old but used"), (2, "old"), (1, "new")] {
            fs::write(cache.0.file(key), &bytes).unwrap();
            let file = fs::File::options().append(true).open(cache.0.file(key)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(60 * age)).unwrap();
        }
        assert!(cache.get("old but used").is_some());
        cache.put("newest", &bytes);
        let left: Vec<bool> =
            ["old but used", "old", "new", "newest"].iter().map(|key| cache.get(key).is_some()).collect();
        assert_eq!(left, [true, false, false, true]);
    }

    #[test]
    fn the_key_is_of_contents_and_not_of_names() {
        let scratch = Scratch::new("cache-key");
        let (a, b) = (scratch.path().join("a.bc"), scratch.path().join("b.bc"));
        fs::write(&a, "1").unwrap();
        fs::write(&b, "1").unwrap();
        let key = |request: Request| super::key(&request, &request.targets[0]);
        let of_a = key(request(a.clone())).unwrap();
        assert_eq!(key(request(b.clone())).unwrap(), of_a);
        fs::write(&b, "2").unwrap();
        assert_ne!(key(request(b)).unwrap(), of_a);
        assert_ne!(key(Request { targets: vec!["sm_90".to_owned()], ..request(a.clone()) }).unwrap(), of_a);
        assert_ne!(key(Request { float: "fast".to_owned(), ..request(a.clone()) }).unwrap(), of_a);
        assert_eq!(key(Request { lanes: "8".to_owned(), ..request(a.clone()) }).unwrap(), of_a);
        let native = |lanes: &str| Request {
            lanes: lanes.to_owned(),
            targets: vec![format!("{NATIVE}x")],
            ..request(a.clone())
        };
        assert_ne!(key(native("8")).unwrap(), key(native("1")).unwrap());
        let with_lines = |request: Request| Request { has_lines: true, ..request };
        assert_ne!(key(with_lines(native("1"))).unwrap(), key(native("1")).unwrap());
        assert_eq!(key(with_lines(request(a.clone()))).unwrap(), of_a);
        assert_ne!(key(Request { loses_names: true, ..native("1") }).unwrap(), key(native("1")).unwrap());
        assert_ne!(key(Request { borrowed: vec!["libm".to_owned()], ..request(a.clone()) }).unwrap(), of_a);
        assert_ne!(key(Request { refuses_host_captures: true, ..request(a.clone()) }).unwrap(), of_a);
        assert_ne!(key(Request { key: "l".to_owned(), ..request(a) }).unwrap(), of_a);
        assert!(key(request("/missing.bc".into())).is_err());
    }

    #[test]
    fn the_libraries_that_native_code_refers_to_are_of_no_device() {
        let scratch = Scratch::new("cache-exporting");
        let (module, library) = (scratch.path().join("a.bc"), scratch.path().join("liba.rlib"));
        fs::write(&module, "1").unwrap();
        let key = |target: &str, content: &str| {
            fs::write(&library, content).unwrap();
            super::key(&Request { exporting: vec![library.clone()], ..request(module.clone()) }, target).unwrap()
        };
        for (target, is_native) in [("sm_70", false), ("spirv1.2", false), ("host:t+x86-64-v3", true)] {
            let without = super::key(&request(module.clone()), target).unwrap();
            assert_eq!(key(target, "1") != without, is_native, "{target}");
            assert_eq!(key(target, "1") != key(target, "2"), is_native, "{target}");
        }
    }
}
