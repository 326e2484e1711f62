//! The entries of a cache.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::private::{create_own, make_private, open_own};

/// Files of writers that died are removed after this time.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The extension of files that are being written.
const TEMPORARY: &str = "tmp";

/// A folder of entries. Its methods make the folder when it does not exist, and do nothing where it is not private.
#[derive(Debug)]
pub struct CacheFolder {
    path: PathBuf,
    limit: u64,
    extension: &'static str,
}

/// What the folder says of an entry without reading it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The entry's file.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// When it was last read or written.
    pub used: SystemTime,
}

impl CacheFolder {
    /// A folder whose entries have at most `limit` bytes together. Their files have that extension, or none if it is empty.
    pub fn new(path: &Path, limit: u64, extension: &'static str) -> Self {
        Self { path: path.to_owned(), limit, extension }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The most bytes of all entries.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Makes the folder if it does not exist.
    ///
    /// # Errors
    /// The errors of [`make_private`].
    pub fn prepare(&self) -> io::Result<()> {
        make_private(&self.path)
    }

    /// The file of an entry.
    pub fn file(&self, name: &str) -> PathBuf {
        let name = if self.extension.is_empty() { name.to_owned() } else { format!("{name}.{}", self.extension) };
        self.path.join(name)
    }

    /// What `decode` makes of an entry; `None` if there is none that is this user's and not larger than the limit. An entry that `decode` accepts
    /// counts as used now.
    pub fn read<T>(&self, name: &str, decode: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        self.prepare().ok()?;
        let mut file = open_own(&self.file(name)).ok()?;
        let size = file.metadata().ok()?.len();
        if size > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        // A writer that appends meanwhile makes the entry no longer.
        (&mut file).take(size).read_to_end(&mut bytes).ok()?;
        let found = decode(&bytes)?;
        // Without this it is removed earlier, and nothing else.
        let _ = file.set_modified(SystemTime::now());
        Some(found)
    }

    /// Replaces an entry by these bytes in one step; `false` if they are larger than the limit.
    ///
    /// # Errors
    /// If the folder is not private or the file cannot be written. Then the entry is what it was.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> io::Result<bool> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if parts.iter().map(|part| part.len() as u64).sum::<u64>() > self.limit {
            return Ok(false);
        }
        self.prepare()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.path.join(format!("{name}.{}.{number}.{TEMPORARY}", std::process::id()));
        let written = create_own(&temporary)
            .and_then(|mut file| parts.iter().try_for_each(|part| file.write_all(part)))
            .and_then(|()| fs::rename(&temporary, self.file(name)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map(|()| true)
    }

    /// Removes an entry.
    pub fn remove(&self, name: &str) {
        if self.prepare().is_ok() {
            let _ = fs::remove_file(self.file(name));
        }
    }

    /// Removes the entries that were not used for the longest time until the rest fits. The entry `newest` stays, which may be as old as another
    /// one by the clock. Removes files of writers that died, too.
    pub fn make_room(&self, newest: &str) {
        let newest = self.file(newest);
        for entry in self.files(TEMPORARY) {
            if entry.used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(entry.path);
            }
        }
        let mut entries = self.entries();
        let mut total: u64 = entries.iter().map(|entry| entry.size).sum();
        entries.retain(|entry| entry.path != newest);
        entries.sort_by_key(|entry| entry.used);
        for entry in entries {
            if total <= self.limit {
                return;
            }
            // Another process may have removed it first.
            let _ = fs::remove_file(&entry.path);
            total -= entry.size;
        }
    }

    /// All entries, in no order.
    pub fn entries(&self) -> Vec<Entry> {
        self.files(self.extension)
    }

    fn files(&self, extension: &str) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.path) else { return Vec::new() };
        let entry = |file: fs::DirEntry| {
            let path = file.path();
            if path.extension().unwrap_or_default() != extension {
                return None;
            }
            let metadata = file.metadata().ok().filter(fs::Metadata::is_file)?;
            Some(Entry { path, size: metadata.len(), used: metadata.modified().ok()? })
        };
        files.flatten().filter_map(entry).collect()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder that is gone after the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("oxisycl-cache-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn cache(&self, limit: u64) -> CacheFolder {
            CacheFolder::new(&self.0.join("cache"), limit, "bin")
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn content(cache: &CacheFolder, name: &str) -> Option<Vec<u8>> {
        cache.read(name, |bytes| Some(bytes.to_vec()))
    }

    #[test]
    fn an_entry_is_its_parts_and_is_replaced_as_a_whole() {
        let scratch = Scratch::new("entry");
        let cache = scratch.cache(100);
        assert_eq!(content(&cache, "a"), None);
        assert!(cache.write("a", &[b"one", b"", b"two"]).unwrap());
        assert_eq!(content(&cache, "a").unwrap(), b"onetwo");
        assert!(cache.write("a", &[b"x"]).unwrap() && !cache.write("a", &[&[0; 101]]).unwrap());
        assert_eq!(content(&cache, "a").unwrap(), b"x");
        assert_eq!(cache.entries().len(), 1);
        assert_eq!(fs::metadata(cache.file("a")).unwrap().permissions().mode() & 0o777, 0o600);
        cache.remove("a");
        assert!(content(&cache, "a").is_none() && cache.entries().is_empty());
    }

    #[test]
    fn nothing_is_read_or_written_in_a_folder_that_others_can_use() {
        let scratch = Scratch::new("open");
        let cache = scratch.cache(100);
        cache.write("a", &[b"a"]).unwrap();
        fs::set_permissions(cache.path(), Permissions::from_mode(0o750)).unwrap();
        assert_eq!(content(&cache, "a"), None);
        assert_eq!(cache.write("b", &[b"b"]).unwrap_err().to_string(), "expected mode 700, found 750");
        fs::set_permissions(cache.path(), Permissions::from_mode(0o700)).unwrap();
        let link = scratch.0.join("link");
        symlink(cache.path(), &link).unwrap();
        let error = make_private(&link).unwrap_err();
        assert_eq!(error.to_string(), "expected a folder, found another kind of file");
        assert_eq!(content(&cache, "a").unwrap(), b"a");
    }

    #[test]
    fn links_folders_large_files_and_files_that_others_can_write_to_are_no_entries() {
        let scratch = Scratch::new("foreign");
        let cache = scratch.cache(100);
        cache.prepare().unwrap();
        fs::create_dir(cache.file("folder")).unwrap();
        symlink("/dev/zero", cache.file("link")).unwrap();
        File::create(cache.file("large")).unwrap().set_len(1 << 40).unwrap();
        cache.write("open", &[b"a"]).unwrap();
        fs::set_permissions(cache.file("open"), Permissions::from_mode(0o622)).unwrap();
        for name in ["folder", "link", "large", "open"] {
            assert_eq!(content(&cache, name), None, "{name}");
        }
        for name in ["link", "large", "open"] {
            assert!(cache.write(name, &[b"new"]).unwrap());
            assert_eq!(content(&cache, name).unwrap(), b"new", "{name}");
        }
    }

    #[test]
    fn entries_that_were_not_used_for_longest_and_abandoned_files_are_removed() {
        let scratch = Scratch::new("room");
        let cache = scratch.cache(30);
        let hour = Duration::from_secs(3600);
        for (age, name) in [(5, "old but used"), (4, "old"), (3, "refused"), (2, "new")] {
            cache.write(name, &[&[0; 10]]).unwrap();
            File::options()
                .append(true)
                .open(cache.file(name))
                .unwrap()
                .set_modified(SystemTime::now() - hour * age)
                .unwrap();
        }
        assert!(content(&cache, "old but used").is_some());
        // What its reader does not accept is not used.
        assert_eq!(cache.read("refused", |_| None::<()>), None);
        let (half, left) = (cache.path().join("x.1.0.tmp"), cache.path().join("y.1.0.tmp"));
        fs::write(&half, "half").unwrap();
        File::create(&left).unwrap().set_modified(SystemTime::now() - hour * 2).unwrap();
        let other = cache.path().join("z.compiling");
        fs::write(&other, "not an entry").unwrap();
        cache.write("newest", &[&[0; 10]]).unwrap();
        cache.make_room("newest");
        let there: Vec<&str> = ["old but used", "old", "refused", "new", "newest"]
            .into_iter()
            .filter(|name| cache.file(name).exists())
            .collect();
        assert_eq!(there, ["old but used", "new", "newest"]);
        assert!(half.exists() && !left.exists() && other.exists());
    }

    #[test]
    fn an_empty_extension_means_files_without_one() {
        let scratch = Scratch::new("bare");
        let cache = CacheFolder::new(&scratch.0.join("cache"), 100, "");
        cache.write("a", &[b"a"]).unwrap();
        fs::write(cache.path().join("b.bin"), "b").unwrap();
        assert!(cache.path().join("a").is_file() && cache.entries().len() == 1);
    }
}
