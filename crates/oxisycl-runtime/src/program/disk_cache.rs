//! Binaries that drivers made of device images, kept on disk for later processes.
//!
//! One file for each entry, named after a hash of its key, with the whole key, the binary and a checksum in it.
//! Invariant: a file that is not exactly the entry counts as absent, and is replaced by the next write. It may be of an
//! older version, of another key with the same hash, or damaged. Nothing here fails a program: a cache that cannot be
//! read or written is an empty one.
//!
//! [`CacheFolder`] has the folder, which is closed to other users, and removes old entries. Entries are trusted as far as the user's other files
//! are. Does not protect against another program of the same user.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use oxisycl_backend::DeviceInfo;
use oxisycl_cache::CacheFolder;
use oxisycl_image::DeviceImage;

mod key;

pub(crate) use key::EntryKey;
pub(super) use key::hash;

const MAGIC: &[u8; 8] = b"OXISYCLC";
/// A new version for every change of the bytes of an entry.
const VERSION: u32 = 2;
const HEADER_SIZE: usize = 40;
/// The folder with binaries that drivers made of images.
#[derive(Debug)]
pub(crate) struct DiskCache(CacheFolder);

impl DiskCache {
    /// A cache in that folder, which need not exist, of at most `limit` bytes.
    pub(crate) fn new(folder: &Path, limit: u64) -> Self {
        Self(CacheFolder::new(folder, limit, "bin"))
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Most bytes that it takes up.
    pub(crate) fn limit(&self) -> u64 {
        self.0.limit()
    }

    /// Makes the folder if it does not exist, and checks that it is the user's own.
    ///
    /// # Errors
    /// If it cannot be made, is no folder, or others could write to it or own it.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        self.0.prepare()
    }

    /// The binary of that key, if it is there.
    pub(crate) fn read(&self, key: &EntryKey) -> Option<Vec<u8>> {
        self.0.read(key.file_name(), |bytes| decode(bytes, key.text()).map(<[u8]>::to_vec))
    }

    /// Keeps a binary, and removes old ones if there is no room.
    pub(crate) fn write(&self, key: &EntryKey, binary: &[u8]) {
        let header = header(key.text(), binary);
        // A failed write is a cache without the entry.
        if let Ok(true) = self.0.write(key.file_name(), &[&header, key.text().as_bytes(), binary]) {
            self.0.make_room(key.file_name());
        }
    }

    /// Forgets a binary that turned out to be of no use.
    pub(crate) fn remove(&self, key: &EntryKey) {
        self.0.remove(key.file_name());
    }

    /// The file that is there while a driver makes the binary.
    pub(super) fn marker(&self, key: &EntryKey) -> PathBuf {
        self.0.path().join(format!("{}.compiling", key.file_name()))
    }
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
