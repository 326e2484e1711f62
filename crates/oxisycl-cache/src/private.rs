//! Folders and files of this process's user that others cannot change.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a folder for this user alone if it does not exist, and checks that no other user can use it.
///
/// # Errors
/// If it cannot be made, is no folder (a link to one is none), is another user's, or lets other users in.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    let metadata = fs::symlink_metadata(folder)?;
    if !metadata.is_dir() {
        return Err(io::Error::other("expected a folder, found another kind of file"));
    }
    check_owner(&metadata)?;
    check_mode(&metadata, 0o700, 0o077)
}

/// Opens a file of the user's own for reading. A link is refused, and so is a file that others can write to.
pub(crate) fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("expected a file, found something else"));
    }
    check_owner(&metadata)?;
    check_mode(&metadata, 0o600, 0o022)?;
    Ok(file)
}

/// Creates a file for this user alone. It must not exist.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn check_owner(metadata: &Metadata) -> io::Result<()> {
    // SAFETY: the call has no preconditions.
    let user = unsafe { libc::geteuid() };
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    if owner == user {
        return Ok(());
    }
    Err(io::Error::other(format!("expected user {user} as its owner, found {owner}")))
}

/// Checks that none of the bits `refused` is set.
#[cfg(unix)]
fn check_mode(metadata: &Metadata, expected: u32, refused: u32) -> io::Result<()> {
    let found = std::os::unix::fs::MetadataExt::mode(metadata) & 0o777;
    if found & refused == 0 {
        return Ok(());
    }
    Err(io::Error::other(format!("expected mode {expected:o}, found {found:o}")))
}

/// Elsewhere a user's own folder has no mode to check.
#[cfg(not(unix))]
fn check_owner(_: &Metadata) -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
fn check_mode(_: &Metadata, _: u32, _: u32) -> io::Result<()> {
    Ok(())
}
