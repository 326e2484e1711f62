//! Owners of memory of the host as arguments. This crate allocates nothing and frees nothing: it only names their types.

extern crate alloc;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Deconstruct, KernelArg, LaunchHost, RawReference, RawSlice, RawText};
use crate::DeviceCopyable;

impl<T: DeviceCopyable> KernelArg for Vec<T> {
    type Sent = RawSlice<T>;
}
impl<T: DeviceCopyable> KernelArg for Box<[T]> {
    type Sent = RawSlice<T>;
}
impl<T: DeviceCopyable> KernelArg for Arc<[T]> {
    type Sent = RawSlice<T>;
}
impl KernelArg for String {
    type Sent = RawText;
}
impl KernelArg for Box<str> {
    type Sent = RawText;
}
impl KernelArg for Arc<str> {
    type Sent = RawText;
}
impl<T: DeviceCopyable> KernelArg for Box<T> {
    type Sent = RawReference<T>;
}
impl<T: DeviceCopyable> KernelArg for Arc<T> {
    type Sent = RawReference<T>;
}

/// A host that passes boxes. For the rules of coherence a `Box<T>` is like its `T`. A host in another crate cannot implement
/// [`Deconstruct`] for it.
#[doc(hidden)]
pub trait BoxHost: LaunchHost {
    /// What [`Deconstruct::deconstruct`] of the box is.
    ///
    /// # Safety
    /// That of [`Deconstruct::deconstruct`].
    unsafe fn pass_box<T: DeviceCopyable>(&mut self, value: Box<T>) -> Result<RawReference<T>, Self::Error>;
}

impl<H: BoxHost, T: DeviceCopyable> Deconstruct<H> for Box<T> {
    unsafe fn deconstruct(self, host: &mut H) -> Result<RawReference<T>, H::Error> {
        // SAFETY: by the contract of this function.
        unsafe { host.pass_box(self) }
    }
}
