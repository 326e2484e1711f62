//! Device images on simulated devices that require them.
//!
//! No compiler makes code for such a device, so the code of an image is ignored. A kernel that an image has runs as the
//! program's own. That is enough to test what finds and chooses images.

use std::sync::Arc;

use oxisycl_backend::{BackendError, LoadedKernel, Module};
use oxisycl_image::DeviceImage;

/// The symbols of an image.
pub(crate) struct SimulatedModule {
    symbols: Vec<String>,
}

#[derive(Debug)]
struct SimulatedKernel;

impl SimulatedModule {
    pub(crate) fn new(image: &DeviceImage) -> Self {
        Self { symbols: image.kernels.iter().map(|kernel| kernel.symbol.clone()).collect() }
    }
}

impl Module for SimulatedModule {
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        if self.symbols.iter().any(|known| known == symbol) {
            return Ok(Arc::new(SimulatedKernel));
        }
        Err(BackendError::Driver { call: "kernel", code: 0, name: format!("no kernel \"{symbol}\"") })
    }
}

impl LoadedKernel for SimulatedKernel {}
