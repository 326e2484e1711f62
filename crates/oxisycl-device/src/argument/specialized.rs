//! Values that kernels may be compiled with.
//!
//! Invariant: such a value crosses like any other one, so that code which does not know of it is right. A compiler that does finds it by its type, and
//! a runtime may compile the kernel once more with the value as a constant.

use oxisycl_types::ArgumentType;

use super::{Deconstruct, DeviceForm, KernelArg, Launch, LaunchHost};
use crate::DeviceCopyable;

/// The value of a specialization constant in a command group, to be captured by its kernel or passed to it. As an argument, the kernel gets the value.
///
/// NVIDIA GPUs and OpenCL devices run code that is compiled for the value, which costs time at the first launch with it.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Specialized<T: DeviceCopyable>(T);

impl<T: DeviceCopyable> Specialized<T> {
    #[doc(hidden)]
    #[inline(always)]
    pub fn of(value: T) -> Self {
        Self(value)
    }

    /// The value.
    #[inline(always)]
    pub fn get(self) -> T {
        self.0
    }
}

// SAFETY: the value is device copyable, which says that it may cross.
unsafe impl<T: DeviceCopyable> DeviceForm for Specialized<T> {
    type Value<'k> = T;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<Self>, size_of::<T>());
    const IS_VALUE: bool = true;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> T {
        self.0
    }
}

impl<T: DeviceCopyable> KernelArg for Specialized<T> {
    type Sent = Self;
}

impl<H: LaunchHost, T: DeviceCopyable> Deconstruct<H> for Specialized<T> {
    #[inline(always)]
    unsafe fn deconstruct(self, _host: &mut H) -> Result<Self, H::Error> {
        Ok(self)
    }
}

/// An argument that a kernel may be compiled with, as [`specialized`] makes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SpecializedArgument<T>(pub T);

/// Passes a value that the kernel may be compiled with. It needs no name.
///
/// The kernel is compiled anew at the second launch with the same value, so that values which change with each launch cost nothing.
///
/// ```
/// use oxisycl::argument::specialized;
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
/// Queue::default()?.parallel_for_with(3, (specialized(5), numbers.update()), |item, (n, numbers)| {
///     numbers.update(item, |x| (0..n).fold(x, |x, _| 2 * x))
/// })?;
/// assert_eq!(numbers.to_vec()?, [32, 64, 96]);
/// # Ok(())
/// # }
/// ```
pub fn specialized<T: DeviceCopyable>(value: T) -> SpecializedArgument<T> {
    SpecializedArgument(value)
}

impl<T: DeviceCopyable> KernelArg for SpecializedArgument<T> {
    type Sent = Specialized<T>;
}
