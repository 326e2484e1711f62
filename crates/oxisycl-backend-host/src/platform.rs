//! The platform of the host: one device.

use std::sync::Arc;

use oxisycl_backend::{Device, Platform, PlatformInfo};
use oxisycl_types::BackendKind;

pub(crate) struct HostPlatform {
    info: PlatformInfo,
    device: Arc<dyn Device>,
}

impl HostPlatform {
    pub(crate) fn new(device: Arc<dyn Device>) -> Self {
        let info = PlatformInfo {
            backend: BackendKind::Host,
            name: "OxiSYCL host".to_owned(),
            vendor: "OxiSYCL".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Self { info, device }
    }
}

impl Platform for HostPlatform {
    fn info(&self) -> &PlatformInfo {
        &self.info
    }

    fn devices(&self) -> Vec<Arc<dyn Device>> {
        vec![Arc::clone(&self.device)]
    }
}
