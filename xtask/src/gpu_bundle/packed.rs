//! Programs of a bundle as files: compressed, since device code is text, and most of what a program weighs.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::outcome::{Failure, Result};

/// Where a bundle has a program.
pub(super) fn path(bundle: &Path, name: &str) -> PathBuf {
    bundle.join("bin").join(format!("{name}.gz"))
}

/// Puts a program into a bundle.
pub(super) fn pack(program: &Path, bundle: &Path, name: &str) -> Result<()> {
    let to = path(bundle, name);
    let packed = (|| {
        let mut encoder = GzEncoder::new(File::create(&to)?, Compression::best());
        io::copy(&mut File::open(program)?, &mut encoder)?;
        encoder.finish()?.sync_all()
    })();
    packed.map_err(|error| Failure::new(format!("{}: {error}", to.display())))
}

/// Gets a program out of a bundle, to be run from a folder `bin` in the given one.
pub(super) fn unpack(bundle: &Path, name: &str, folder: &Path) -> Result<PathBuf> {
    let (from, bin) = (path(bundle, name), folder.join("bin"));
    let program = bin.join(name);
    let unpacked = (|| {
        fs::create_dir_all(&bin)?;
        let mut to = OpenOptions::new().write(true).create(true).truncate(true).mode(0o755).open(&program)?;
        io::copy(&mut GzDecoder::new(File::open(&from)?), &mut to)
    })();
    unpacked.map(|_| program).map_err(|error| Failure::new(format!("{}: {error}", from.display())))
}
