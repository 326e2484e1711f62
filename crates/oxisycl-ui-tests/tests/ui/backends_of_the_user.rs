//! The runtime believes what memories, devices and queues say, so that making them is `unsafe`.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, Event, Memory, Queue, UsmKind,
};

struct Nowhere;

impl Memory for Nowhere {
    fn allocate(&self, _: UsmKind, _: Layout, _: bool) -> Result<NonNull<u8>, BackendError> {
        Ok(NonNull::<AtomicU32>::dangling().cast())
    }
    unsafe fn free(&self, _: NonNull<u8>, _: UsmKind, _: Layout) {}
}

struct AtOnce;

impl Queue for AtOnce {
    unsafe fn issue(
        &self,
        _: Command,
        _: &[Dependency],
        _: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        std::process::abort()
    }
}

fn main() {}
