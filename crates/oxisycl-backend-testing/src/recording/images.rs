//! Device images on recording devices: which were loaded, and which loads fail or take long, as the test says.
//!
//! Code is not looked at. A kernel of an image runs as the native code of its descriptor, so that its effects can be seen.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use oxisycl_image::{DeviceImage, encode};

use super::recorded::{CommandKind, CommandState, Recorded};
use super::shared::{self, Shared, lock};
use oxisycl_backend::{BackendError, KernelGroupLimits, KernelInfo, LoadedKernel, Module};

/// An image that a device was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedLoad {
    /// The device, by its position in [`RecordingBackend::devices`](super::RecordingBackend::devices).
    pub device: usize,
    /// The image.
    pub image: DeviceImage,
    /// Whether it came with a binary.
    pub from_binary: bool,
}

/// What the devices of a backend share.
#[derive(Default)]
pub(super) struct Images {
    state: Mutex<State>,
    released: Condvar,
    n_modules: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    loads: Vec<RecordedLoad>,
    refusals: VecDeque<BackendError>,
    is_held: bool,
    limits: Option<KernelGroupLimits>,
}

impl Images {
    pub(super) fn load(
        &self,
        device: usize,
        image: &DeviceImage,
        from_binary: bool,
        has_binary: bool,
    ) -> Result<Arc<dyn Module>, BackendError> {
        let mut state = lock(&self.state);
        state.loads.push(RecordedLoad { device, image: image.clone(), from_binary });
        while state.is_held {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = state.refusals.pop_front() {
            return Err(error);
        }
        self.n_modules.fetch_add(1, Ordering::Relaxed);
        let group_limits = state.limits.unwrap_or(KernelInfo::NOTHING.group_limits);
        let info = KernelInfo { group_limits, ..KernelInfo::NOTHING };
        let module = LoadedImage { image: image.clone(), has_binary, info, n_modules: self.n_modules.clone() };
        Ok(Arc::new(RecordedModule(Arc::new(module))))
    }

    pub(super) fn check_binary(&self, image: &DeviceImage, binary: &[u8]) -> Result<(), BackendError> {
        if binary == binary_of(image) {
            return Ok(());
        }
        Err(BackendError::Driver { call: "load_binary", code: 1, name: "not the binary of this image".to_owned() })
    }

    pub(super) fn loads(&self) -> Vec<RecordedLoad> {
        lock(&self.state).loads.clone()
    }

    pub(super) fn refuse(&self, error: BackendError) {
        lock(&self.state).refusals.push_back(error);
    }

    pub(super) fn limit(&self, limits: KernelGroupLimits) {
        lock(&self.state).limits = Some(limits);
    }

    pub(super) fn hold(&self, is_held: bool) {
        lock(&self.state).is_held = is_held;
        self.released.notify_all();
    }

    pub(super) fn n_modules(&self) -> usize {
        self.n_modules.load(Ordering::Relaxed)
    }
}

impl shared::State {
    /// Notes that an image is loaded on a device while the command is pending, if that may run a kernel.
    pub(super) fn check_not_loading(&mut self, device: usize, command: &Recorded) {
        let may_run_kernel = matches!(command.kind, CommandKind::Kernel | CommandKind::Fill | CommandKind::Native);
        if may_run_kernel && command.device == device && command.state == CommandState::Pending {
            self.violations.push(format!("an image was loaded while \"{}\" was pending", command.label));
        }
    }
}

/// An image is being loaded as long as this exists.
pub(super) struct Loading<'s> {
    shared: &'s Shared,
    device: usize,
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        let loading = &mut lock(&self.shared.state).loading;
        let position = loading.iter().position(|device| *device == self.device);
        position.map(|position| loading.swap_remove(position));
    }
}

impl Shared {
    /// Notes that a device loads an image that it would wait for kernels for.
    pub(super) fn begin_load(&self, device: usize) -> Loading<'_> {
        let mut state = lock(&self.state);
        for index in 0..state.entries.len() {
            let command = state.entries[index].recorded.clone();
            state.check_not_loading(device, &command);
        }
        state.loading.push(device);
        Loading { shared: self, device }
    }
}

/// Something that differs from image to image, and from its code.
fn binary_of(image: &DeviceImage) -> Vec<u8> {
    let mut binary = encode(image).unwrap_or_default();
    binary.reverse();
    binary
}

struct LoadedImage {
    image: DeviceImage,
    has_binary: bool,
    info: KernelInfo,
    n_modules: Arc<AtomicUsize>,
}

impl Drop for LoadedImage {
    fn drop(&mut self) {
        self.n_modules.fetch_sub(1, Ordering::Relaxed);
    }
}

struct RecordedModule(Arc<LoadedImage>);

impl Module for RecordedModule {
    fn kernel(&self, symbol: &str) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        if !self.0.image.kernels.iter().any(|kernel| kernel.symbol == symbol) {
            return Err(BackendError::Driver { call: "kernel", code: 2, name: format!("no kernel \"{symbol}\"") });
        }
        Ok(Arc::new(RecordedKernel { symbol: symbol.to_owned(), module: self.0.clone() }))
    }

    fn binary(&self) -> Option<Vec<u8>> {
        self.0.has_binary.then(|| binary_of(&self.0.image))
    }
}

/// A kernel of a loaded image.
#[derive(Debug)]
pub(super) struct RecordedKernel {
    symbol: String,
    module: Arc<LoadedImage>,
}

impl RecordedKernel {
    pub(super) fn symbol_of(kernel: &dyn LoadedKernel) -> Option<String> {
        let kernel: &dyn Any = kernel;
        kernel.downcast_ref::<Self>().map(|kernel| kernel.symbol.clone())
    }
}

impl LoadedKernel for RecordedKernel {
    fn info(&self) -> &KernelInfo {
        &self.module.info
    }
}

impl std::fmt::Debug for LoadedImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadedImage").field("target", &self.image.target).finish_non_exhaustive()
    }
}
