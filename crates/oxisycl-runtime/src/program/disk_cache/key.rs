//! What makes two entries of the disk cache the same.

use xxhash_rust::xxh3::Xxh3;

use super::{DeviceImage, DeviceInfo};

/// Everything that a binary depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntryKey {
    text: String,
    file_name: String,
}

impl EntryKey {
    /// The key of an image for a device, whose backend adds `binary_key`.
    pub(crate) fn new(device: &DeviceInfo, binary_key: String, image: &DeviceImage) -> Self {
        let mut names = String::new();
        for kernel in &image.kernels {
            names.push_str(&kernel.symbol);
            names.push('\n');
        }
        let content = hash(&[&image.code, names.as_bytes()]);
        // Quoted, so that no two lists of values give one text.
        let text = format!(
            "{:?}",
            [
                env!("CARGO_PKG_VERSION"),
                &device.vendor,
                &device.name,
                &device.driver_version,
                &device.backend_version,
                &binary_key,
                &image.target.to_string(),
                &image.build_options,
                &image.code.len().to_string(),
                &format!("{content:032x}"),
            ]
        );
        let file_name = format!("{:032x}", hash(&[text.as_bytes()]));
        Self { text, file_name }
    }

    /// All of it, as it stands in the file.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The name of its file without the extension.
    pub(super) fn file_name(&self) -> &str {
        &self.file_name
    }
}

/// XXH3 in 128 bits over the parts and their lengths, equal in every process. It finds damage and tells contents apart. It does not protect
/// against contents that were chosen to collide: their author can write to the cache itself.
pub(in crate::program) fn hash(parts: &[&[u8]]) -> u128 {
    let mut state = Xxh3::new();
    for part in parts {
        state.update(part);
        state.update(&(part.len() as u64).to_le_bytes());
    }
    state.digest128()
}
