//! Binaries that drivers made of device images, kept on disk for later processes.
//!
//! One file for each entry, named after a hash of its key, with the whole key, the binary and a checksum in it. Invariants: a file
//! appears by a rename, so that other processes see all of it or nothing; whatever is not exactly the entry that is looked for (an
//! older version, another key with the same hash, damage, a file of another user) counts as absent, and is replaced by the next
//! write; the files together are not larger than the limit, those used last are kept longest. Nothing here fails a program: a
//! cache that cannot be read or written is an empty one.
//!
//! The folder belongs to the user and is closed to others, which is checked at every use; entries are trusted as far as the user's
//! other files are. Does not protect against another program of the same user.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use oxisycl_backend::DeviceInfo;
use oxisycl_image::DeviceImage;

mod key;

pub(crate) use key::EntryKey;

const MAGIC: &[u8; 8] = b"OXISYCLC";
/// A new version for every change of the bytes of an entry.
const VERSION: u32 = 1;
const HEADER_SIZE: usize = 40;
/// Files of writers that died are removed after this time.
const ABANDONED: Duration = Duration::from_secs(3600);

/// See the module documentation.
#[derive(Debug)]
pub(crate) struct DiskCache {
    folder: PathBuf,
    limit: u64,
}

impl DiskCache {
    /// A cache in that folder, which need not exist, of at most `limit` bytes.
    pub(crate) fn new(folder: &Path, limit: u64) -> Self {
        Self { folder: folder.to_owned(), limit }
    }

    /// The folder.
    #[cfg(test)]
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Most bytes that it takes up.
    #[cfg(test)]
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Makes the folder if it does not exist, and checks that it is the user's own.
    ///
    /// # Errors
    /// If it cannot be made, is no folder, or others could write to it or own it.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.folder)?;
        check_private(&fs::symlink_metadata(&self.folder)?, fs::Metadata::is_dir, "a folder")
    }

    /// The binary of that key, if it is there.
    pub(crate) fn read(&self, key: &EntryKey) -> Option<Vec<u8>> {
        self.prepare().ok()?;
        let mut file = open_own(&self.path(key)).ok()?;
        let size = file.metadata().ok()?.len();
        if size > self.limit {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?);
        // Not more than it had when it was asked, whoever is adding to it.
        (&mut file).take(size).read_to_end(&mut bytes).ok()?;
        let binary = decode(&bytes, key.text())?.to_vec();
        // It was used just now. Without this it only goes earlier.
        let _ = file.set_modified(SystemTime::now());
        Some(binary)
    }

    /// Keeps a binary, and removes old ones if there is no room.
    pub(crate) fn write(&self, key: &EntryKey, binary: &[u8]) {
        // A failed write is a cache without the entry.
        let _ = self.try_write(key, binary);
    }

    /// Forgets a binary that turned out to be of no use.
    pub(crate) fn remove(&self, key: &EntryKey) {
        if self.prepare().is_ok() {
            let _ = fs::remove_file(self.path(key));
        }
    }

    fn try_write(&self, key: &EntryKey, binary: &[u8]) -> io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let header = header(key.text(), binary);
        let size = header.len() as u64 + key.text().len() as u64 + binary.len() as u64;
        if size > self.limit {
            return Ok(());
        }
        self.prepare()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.folder.join(format!("{}.{}.{number}.tmp", key.file_name(), std::process::id()));
        let written = write_new(&temporary, &[&header, key.text().as_bytes(), binary])
            .and_then(|()| fs::rename(&temporary, self.path(key)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written?;
        self.make_room(&self.path(key))
    }

    /// Removes the entries that were not used for the longest time until the rest fits. `newest` stays.
    fn make_room(&self, newest: &Path) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut total = 0;
        for entry in fs::read_dir(&self.folder)?.flatten() {
            // Files that are gone by now were removed by another process.
            let Ok(metadata) = entry.metadata() else { continue };
            let path = entry.path();
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("bin") => {
                    total += metadata.len();
                    if path != newest {
                        entries.push((modified, metadata.len(), path));
                    }
                }
                Some("tmp") if modified.elapsed().is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        entries.sort();
        for (_, size, path) in entries {
            if total <= self.limit {
                break;
            }
            let _ = fs::remove_file(path);
            total -= size;
        }
        Ok(())
    }

    /// The file that is there while a driver makes the binary.
    pub(super) fn marker(&self, key: &EntryKey) -> PathBuf {
        self.folder.join(format!("{}.compiling", key.file_name()))
    }

    fn path(&self, key: &EntryKey) -> PathBuf {
        self.folder.join(format!("{}.bin", key.file_name()))
    }
}

/// Checks that the user owns it and nobody else can change it.
#[cfg(unix)]
fn check_private(metadata: &fs::Metadata, is_it: impl Fn(&fs::Metadata) -> bool, what: &str) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    if !is_it(metadata) {
        return Err(io::Error::other(format!("it is not {what}")));
    }
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    if metadata.uid() != user {
        let message = format!("user {} owns it, and not user {user}, whose process this is", metadata.uid());
        return Err(io::Error::other(message));
    }
    if metadata.mode() & 0o077 != 0 {
        let message = format!("its permissions are {:o}, which lets others in; 700 is needed", metadata.mode() & 0o777);
        return Err(io::Error::other(message));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(metadata: &fs::Metadata, is_it: impl Fn(&fs::Metadata) -> bool, what: &str) -> io::Result<()> {
    if is_it(metadata) { Ok(()) } else { Err(io::Error::other(format!("it is not {what}"))) }
}

/// Opens a file of the user's own, which may be a link to nothing else.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    check_private(&file.metadata()?, fs::Metadata::is_file, "a file")?;
    Ok(file)
}

/// Opens a marker of the user's own, which is made if it does not exist.
pub(super) fn open_marker(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    options.open(path)
}

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    parts.iter().try_for_each(|part| file.write_all(part))
}

/// Magic, version, a zero, the lengths of key and binary, and the checksum of both.
fn header(key: &str, binary: &[u8]) -> [u8; HEADER_SIZE] {
    let mut header = [0; HEADER_SIZE];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&(key.len() as u64).to_le_bytes());
    header[24..32].copy_from_slice(&(binary.len() as u64).to_le_bytes());
    let sum = key::hash(&[key.as_bytes(), binary]) as u64;
    header[32..].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The binary in the bytes of a file, if they are an entry of that key.
fn decode<'a>(bytes: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let (found, rest) = bytes.split_at_checked(HEADER_SIZE)?;
    let (found_key, binary) = rest.split_at_checked(key.len())?;
    (found_key == key.as_bytes() && found == header(key, binary)).then_some(binary)
}

#[cfg(all(test, unix))]
mod tests;
