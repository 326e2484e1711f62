//! Arguments that are accessors of images.

use core::fmt;

use oxisycl_types::ArgumentType;

use super::memory::copied_bit_by_bit;
use super::{DeviceForm, KernelArg, Launch};
use crate::Mode;
use crate::images::{PixelData, PixelFormat, SampledImageAccessor, UnsampledImageAccessor};

copied_bit_by_bit! {
    [V, const D: usize, M, F: Copy] RawImage<V, D, M, F>,
    [V, const D: usize, F: Copy] RawSampledImage<V, D, F>,
}

/// What crosses for an accessor of an image.
#[repr(transparent)]
pub struct RawImage<V: 'static, const D: usize, M: 'static, F: 'static>(UnsampledImageAccessor<'static, V, D, M, F>);

impl<V, const D: usize, M, F> RawImage<V, D, M, F> {
    /// # Safety
    /// It is passed to a launch of the accessor's command group, and to no other.
    #[inline(always)]
    pub unsafe fn new(accessor: UnsampledImageAccessor<'_, V, D, M, F>) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { accessor.with_brand() })
    }
}

// SAFETY: the runtime fills in the address for the device. The rest are numbers and formats.
unsafe impl<V: PixelData, const D: usize, M: Mode, F: PixelFormat> DeviceForm for RawImage<V, D, M, F> {
    type Value<'k> = UnsampledImageAccessor<'k, V, D, M, F>;
    const TYPE: &'static ArgumentType =
        &ArgumentType::leaf(core::any::type_name::<UnsampledImageAccessor<'static, V, D, M, F>>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> UnsampledImageAccessor<'k, V, D, M, F> {
        // SAFETY: by the contract of this function, and that of `new`.
        unsafe { self.0.with_brand() }
    }
}

impl<V: PixelData, const D: usize, M: Mode, F: PixelFormat> KernelArg for UnsampledImageAccessor<'_, V, D, M, F> {
    type Sent = RawImage<V, D, M, F>;
}

/// What crosses for an accessor of an image that is sampled, with its sampler.
#[repr(transparent)]
pub struct RawSampledImage<V: 'static, const D: usize, F: 'static>(SampledImageAccessor<'static, V, D, F>);

impl<V, const D: usize, F> RawSampledImage<V, D, F> {
    /// # Safety
    /// It is passed to a launch of the accessor's command group, and to no other.
    #[inline(always)]
    pub unsafe fn new(accessor: SampledImageAccessor<'_, V, D, F>) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { accessor.with_brand() })
    }
}

// SAFETY: as for images without a sampler.
unsafe impl<V: PixelData, const D: usize, F: PixelFormat> DeviceForm for RawSampledImage<V, D, F> {
    type Value<'k> = SampledImageAccessor<'k, V, D, F>;
    const TYPE: &'static ArgumentType =
        &ArgumentType::leaf(core::any::type_name::<SampledImageAccessor<'static, V, D, F>>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> SampledImageAccessor<'k, V, D, F> {
        // SAFETY: by the contract of this function, and that of `new`.
        unsafe { self.0.with_brand() }
    }
}

impl<V: PixelData, const D: usize, F: PixelFormat> KernelArg for SampledImageAccessor<'_, V, D, F> {
    type Sent = RawSampledImage<V, D, F>;
}

impl<V, const D: usize, M, F> fmt::Debug for RawImage<V, D, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawImage")
    }
}

impl<V, const D: usize, F> fmt::Debug for RawSampledImage<V, D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RawSampledImage")
    }
}
