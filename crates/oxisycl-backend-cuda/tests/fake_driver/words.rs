//! Words of host memory that kernels of the fake driver change.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl_backend::{Command, Device, LoadedKernel, UsmKind};
use oxisycl_backend_testing::contract::Affine;

use crate::support::{launch, line};

/// Four words.
pub(crate) struct Words {
    device: Arc<dyn Device>,
    first: NonNull<u8>,
}

// SAFETY: memory of the host, which is used as atomics alone while commands run.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    const LAYOUT: Layout = Layout::new::<[u32; 4]>();

    /// All of them are 0.
    pub(crate) fn new(device: &Arc<dyn Device>) -> Self {
        let first = device.memory().allocate(UsmKind::Host, Self::LAYOUT, true).expect("there is memory");
        Self { device: device.clone(), first }
    }

    pub(crate) fn at(&self, index: usize) -> &AtomicU32 {
        // SAFETY: one of the four words, which are alive; kernels of the fake driver write them from threads that the tests wait for.
        unsafe { self.first.cast::<AtomicU32>().add(index).as_ref() }
    }

    /// `word = word * factor + summand`.
    pub(crate) fn affine(&self, code: &Arc<dyn LoadedKernel>, factor: u32, summand: u32) -> Command {
        launch(code, "affine", &self.arguments(factor, summand), line(1))
    }

    pub(crate) fn arguments(&self, factor: u32, summand: u32) -> Affine {
        Affine { values: self.first.as_ptr().cast(), factor, summand }
    }

    /// A kernel that changes nothing.
    pub(crate) fn same(&self, code: &Arc<dyn LoadedKernel>) -> Command {
        self.affine(code, 1, 0)
    }

    /// A kernel that runs until [`open`](Self::open) is called.
    pub(crate) fn gate(&self, code: &Arc<dyn LoadedKernel>) -> Command {
        launch(code, "gate", &(self.at(3).as_ptr() as usize), line(1))
    }

    pub(crate) fn open(&self) {
        self.at(3).store(1, Ordering::Release);
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; the tests wait for their commands.
        unsafe { self.device.memory().free(self.first, UsmKind::Host, Self::LAYOUT) };
    }
}
