//! What an image states about its code, kept as long as the code is loaded; and the logs of drivers that refuse code.

use oxisycl_image::{DeviceImage, ImageTarget, KernelEntry, PanicSite};

/// The kernels of a loaded image, and the places where they panic or print.
#[derive(Debug, Default)]
pub struct ImageFacts {
    kernels: Vec<KernelEntry>,
    /// The places, by their numbers in records.
    pub sites: Vec<PanicSite>,
    target: Option<ImageTarget>,
}

impl ImageFacts {
    /// The facts of an image.
    pub fn of(image: &DeviceImage) -> Self {
        Self { kernels: image.kernels.clone(), sites: image.sites.clone(), target: Some(image.target.clone()) }
    }

    /// The kernel with this symbol.
    pub fn kernel(&self, symbol: &str) -> Option<&KernelEntry> {
        self.kernels.iter().find(|kernel| kernel.symbol == symbol)
    }

    /// Whether the kernel of the image gets the address of a copy of its argument block.
    pub fn passes_by_address(&self, kernel: &KernelEntry) -> bool {
        self.target.as_ref().is_some_and(|target| target.passes_by_address(kernel.parameters))
    }
}

/// The text in a driver's log, which ends with a NUL byte.
pub fn log_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_ends_with_its_nul_byte() {
        assert_eq!(log_text(b"  error\n\0junk"), "error");
        assert_eq!(log_text(b"all"), "all");
    }
}
