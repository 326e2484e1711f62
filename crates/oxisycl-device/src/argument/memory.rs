//! Arguments that are addresses on the device: accessors, and memory of the host that the command gets.

use core::ptr::NonNull;

use oxisycl_types::ArgumentType;

use super::{Copied, DeviceForm, Keep, KernelArg, Launch};
use crate::slices::slice;
use crate::{Accessor, Chunked, DeviceCopyable};

macro_rules! copied_bit_by_bit {
    ($([$($parameters:tt)*] $t:ty),* $(,)?) => { $(
        impl<$($parameters)*> Clone for $t {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<$($parameters)*> Copy for $t {}
    )* };
}
pub(super) use copied_bit_by_bit;

copied_bit_by_bit! {
    [T, const D: usize, M] RawAccessor<T, D, M>,
    [T, const D: usize, M] RawChunked<T, D, M>,
    [T] RawSlice<T>,
    [T] RawReference<T>,
}

/// What crosses for an accessor.
#[repr(transparent)]
pub struct RawAccessor<T: 'static, const D: usize, M: 'static>(Accessor<'static, T, D, M>);

impl<T, const D: usize, M> RawAccessor<T, D, M> {
    /// # Safety
    /// It is passed to a launch of the accessor's command group, and to no other.
    #[inline(always)]
    pub unsafe fn new(accessor: Accessor<'_, T, D, M>) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { accessor.with_brand() })
    }
}

// SAFETY: the runtime fills in the address for the device. Both halves of a program come from one run of rustc with one data layout, so that
// fields have the same order in both.
unsafe impl<T: DeviceCopyable, const D: usize, M: 'static> DeviceForm for RawAccessor<T, D, M> {
    type Value<'k> = Accessor<'k, T, D, M>;
    const TYPE: &'static ArgumentType =
        &ArgumentType::leaf(core::any::type_name::<Accessor<'static, T, D, M>>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> Accessor<'k, T, D, M> {
        // SAFETY: by the contract of this function, and that of `new`.
        unsafe { self.0.with_brand() }
    }
}

impl<T: DeviceCopyable, const D: usize, M: 'static> KernelArg for Accessor<'_, T, D, M> {
    type Sent = RawAccessor<T, D, M>;
}

/// What crosses for an accessor in blocks.
#[repr(transparent)]
pub struct RawChunked<T: 'static, const D: usize, M: 'static>(Chunked<'static, T, D, M>);

impl<T, const D: usize, M> RawChunked<T, D, M> {
    /// # Safety
    /// It is passed to a launch of the accessor's command group, and to no other.
    #[inline(always)]
    pub unsafe fn new(chunked: Chunked<'_, T, D, M>) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { chunked.with_brand() })
    }
}

// SAFETY: as for accessors.
unsafe impl<T: DeviceCopyable, const D: usize, M: 'static> DeviceForm for RawChunked<T, D, M> {
    type Value<'k> = Chunked<'k, T, D, M>;
    const TYPE: &'static ArgumentType =
        &ArgumentType::leaf(core::any::type_name::<Chunked<'static, T, D, M>>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> Chunked<'k, T, D, M> {
        // SAFETY: by the contract of this function, and that of `new`.
        unsafe { self.0.with_brand() }
    }
}

impl<T: DeviceCopyable, const D: usize, M: 'static> KernelArg for Chunked<'_, T, D, M> {
    type Sent = RawChunked<T, D, M>;
}

/// What crosses for a slice: its address on the device, and its length.
pub struct RawSlice<T> {
    first: NonNull<T>,
    len: usize,
}

impl<T> RawSlice<T> {
    /// # Safety
    /// For each launch that it is passed to, `first` is aligned and the address of `len` values on the device, which nothing writes.
    #[inline(always)]
    pub unsafe fn new(first: NonNull<T>, len: usize) -> Self {
        Self { first, len }
    }
}

// SAFETY: an address, which only a launch that it was made for uses. Its values are only read.
unsafe impl<T: Sync> Send for RawSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for RawSlice<T> {}

// SAFETY: the runtime fills in the address for the device. The layout is the same as for accessors.
unsafe impl<T: DeviceCopyable> DeviceForm for RawSlice<T> {
    type Value<'k> = &'k [T];
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<[T]>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> &'k [T] {
        // SAFETY: by the contract of `new`.
        unsafe { slice(self.first.as_ptr(), self.len) }
    }
}

/// What crosses for a text.
#[derive(Clone, Copy)]
pub struct RawText(RawSlice<u8>);

impl RawText {
    /// # Safety
    /// The bytes are UTF-8.
    #[inline(always)]
    pub unsafe fn new(bytes: RawSlice<u8>) -> Self {
        Self(bytes)
    }
}

// SAFETY: as for slices.
unsafe impl DeviceForm for RawText {
    type Value<'k> = &'k str;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<str>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> &'k str {
        // SAFETY: by the contract of this function, and that of `new`.
        unsafe { core::str::from_utf8_unchecked(self.0.reconstruct(launch)) }
    }
}

/// What crosses for one value behind an address.
pub struct RawReference<T>(NonNull<T>);

impl<T> RawReference<T> {
    /// The first of at least one value.
    ///
    /// # Safety
    /// `slice` has a value.
    #[inline(always)]
    pub unsafe fn first_of(slice: RawSlice<T>) -> Self {
        Self(slice.first)
    }
}

// SAFETY: as for slices.
unsafe impl<T: Sync> Send for RawReference<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for RawReference<T> {}

// SAFETY: as for slices.
unsafe impl<T: DeviceCopyable> DeviceForm for RawReference<T> {
    type Value<'k> = &'k T;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<&'static T>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> &'k T {
        // SAFETY: by the contract of the slice that it was made of.
        unsafe { self.0.as_ref() }
    }
}

impl<T: DeviceCopyable> KernelArg for Copied<'_, T> {
    type Sent = RawSlice<T>;
}

impl<T: Send + 'static> KernelArg for Keep<T> {
    type Sent = ();
}

/// There is nothing to show but addresses of a device.
mod debug {
    use core::fmt;

    use super::{RawAccessor, RawChunked, RawReference, RawSlice, RawText};

    macro_rules! opaque {
        ($([$($parameters:tt)*] $t:ty: $name:literal),* $(,)?) => { $(
            impl<$($parameters)*> fmt::Debug for $t {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str($name)
                }
            }
        )* };
    }

    opaque! {
        [T, const D: usize, M] RawAccessor<T, D, M>: "RawAccessor",
        [T, const D: usize, M] RawChunked<T, D, M>: "RawChunked",
        [T] RawSlice<T>: "RawSlice",
        [T] RawReference<T>: "RawReference",
        [] RawText: "RawText",
    }
}

/// The size of what crosses does not depend on the elements.
const _: () = assert!(size_of::<Option<RawSlice<u64>>>() == size_of::<RawSlice<u8>>());
