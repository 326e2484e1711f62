//! Look-up and loading on devices that only record.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use oxisycl_backend::{BackendError, Device, DeviceInfo};
use oxisycl_backend_testing::recording::{Recorder, RecordingBackend, RecordingConfig};
use oxisycl_image::{
    Argument, DeviceImage, Form, ImageTarget, KernelDescriptor, KernelEntry, KernelId, ParameterLayout, SourceLocation,
    UnsupportedKernel, encode_bundle,
};
use oxisycl_types::{Aspect, ErrorCode, HostChunk, LaunchRange};

use super::index::Image;
use super::*;

mod bundles;
mod loading;
mod lookup;
// Miri has no link units.
#[cfg(all(target_os = "linux", not(miri)))]
mod native;
mod variants;

/// What a recording device says of itself.
pub(super) fn device_info() -> DeviceInfo {
    Fixture::new(RecordingConfig::new(1)).devices[0].info().clone()
}

/// The programs, devices and recorder of a test.
struct Fixture {
    programs: Programs,
    devices: Vec<Arc<dyn Device>>,
    recorder: Recorder,
}

impl Fixture {
    fn new(config: RecordingConfig) -> Self {
        let backend = RecordingBackend::new(config);
        Self { programs: Programs::new(), devices: backend.devices(), recorder: backend.recorder() }
    }

    /// One device that takes PTX for `sm_80`.
    fn gpu() -> Self {
        Self::new(RecordingConfig::new(1).with_images(&[ptx(80)]))
    }

    fn register(&self, images: &[DeviceImage]) -> Bundle {
        self.register_bytes(encode_bundle(images).unwrap())
    }

    fn register_bytes(&self, bytes: Vec<u8>) -> Bundle {
        let bundle = Bundle(bytes);
        // SAFETY: tests keep bundles until they have unregistered them or drop `programs` without another look-up; the recording
        // backend runs no code.
        unsafe { self.programs.register(bundle.0.as_ptr(), bundle.0.len()) };
        bundle
    }

    fn unregister(&self, bundle: Bundle) {
        self.programs.unregister(bundle.0.as_ptr(), bundle.0.len());
    }

    fn kernel(&self, descriptor: &KernelDescriptor) -> Result<Arc<dyn LoadedKernel>> {
        self.programs.kernel(&self.devices[0], descriptor)
    }

    /// The targets of the images that were loaded.
    fn loads(&self) -> Vec<String> {
        self.recorder.loads().iter().map(|load| load.image.target.to_string()).collect()
    }

    #[track_caller]
    fn error(&self, descriptor: &KernelDescriptor) -> (ErrorCode, String) {
        let error = self.kernel(descriptor).unwrap_err();
        (error.code(), error.to_string())
    }
}

/// Bytes that are registered. Their heap does not move with the vector.
struct Bundle(Vec<u8>);

struct First;
struct Second;

fn ptx(sm: u32) -> ImageTarget {
    ImageTarget::Ptx { sm }
}

unsafe fn entry(_: *const u8, _: &LaunchRange, _: &HostChunk) {}

fn descriptor<K: 'static>(name: &'static str) -> KernelDescriptor {
    KernelDescriptor {
        id: KernelId { type_id: std::any::TypeId::of::<K>(), form: Form::Range(1) },
        type_name: std::any::type_name::<K>(),
        name: Some(name),
        location: Location::caller(),
        parameters: ParameterLayout { size: 16, align: 8 },
        arguments: None,
        stated: oxisycl_image::StatedNeeds::NONE,
        host_entry: entry,
    }
}

/// The device's half of the same kernel.
fn entry_of<K: 'static>(symbol: &str) -> KernelEntry {
    let descriptor = descriptor::<K>("");
    KernelEntry::new(
        symbol,
        KernelKey::new(descriptor.id.type_id, descriptor.id.form).type_id,
        descriptor.id.form,
        descriptor.parameters,
        descriptor.type_name,
    )
}

fn image(target: ImageTarget, kernels: Vec<KernelEntry>) -> DeviceImage {
    let code = format!("code for {target}").into_bytes();
    let (build_options, unsupported, sites) = (String::new(), Vec::new(), Vec::new());
    DeviceImage { target, kernels, build_options, unsupported, sites, code }
}

fn first_image(sm: u32) -> DeviceImage {
    image(ptx(sm), vec![entry_of::<First>("first")])
}
