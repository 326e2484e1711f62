//! Constants in the constant memory of devices.

use core::ops::Deref;

use super::{MultiPtr, space};
use crate::{DeviceCopyable, builtin};

/// A constant of the program that kernels read from the device's constant memory, if it has one. It is a static.
///
/// On NVIDIA GPUs this memory is fast where the work-items of a sub-group read the same element, and slow where each reads another one. Tables
/// that are read at many places at once are better as plain statics, which lie in global memory. All constants of a kernel have 64 KiB in all; what is
/// more lies in global memory. Elsewhere there is no difference.
///
/// ```
/// use oxisycl::multi_ptr::Constant;
/// use oxisycl::prelude::*;
///
/// static WEIGHTS: Constant<[f32; 4]> = Constant::new([0.5, 0.25, 0.125, 0.125]);
///
/// # fn main() -> oxisycl::Result {
/// let sums = Buffer::from_vec(vec![0.0f32; 8])?;
/// Queue::default()?.parallel_for_with(8, sums.write(), |item, sums| {
///     sums.set(item, WEIGHTS.iter().map(|weight| weight * item.index() as f32).sum())
/// })?;
/// assert_eq!(sums.to_vec()?[7], 7.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[repr(transparent)]
pub struct Constant<T>(T);

impl<T: DeviceCopyable> Constant<T> {
    /// Most bytes of a constant.
    pub const MAX_SIZE: usize = 64 << 10;

    /// A constant, which does not compile if it is larger than [`MAX_SIZE`](Self::MAX_SIZE).
    pub const fn new(value: T) -> Self {
        const { assert!(size_of::<T>() <= Self::MAX_SIZE, "constant memory has 64 KiB") };
        Self(value)
    }

    /// The address of the value.
    ///
    /// ```
    /// use oxisycl::multi_ptr::Constant;
    ///
    /// static TABLE: Constant<[u8; 3]> = Constant::new([1, 2, 3]);
    /// // SAFETY: the table has such an element.
    /// assert_eq!(unsafe { TABLE.multi_ptr().cast::<u8>().add(2).read() }, 3);
    /// ```
    #[inline(always)]
    pub fn multi_ptr(&'static self) -> MultiPtr<T, space::Constant> {
        MultiPtr::of(self.address().cast_mut())
    }

    /// Where the value is in the memory of constants.
    #[inline(always)]
    fn address(&self) -> *const T {
        builtin::as_constant((&raw const self.0).cast()).cast()
    }
}

impl<T: DeviceCopyable> Deref for Constant<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the value itself, or a copy of it that lives as long as the kernel. Nothing writes either.
        unsafe { &*self.address() }
    }
}
