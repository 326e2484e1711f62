//! Arguments that are accessors of images.

use core::fmt;

use oxisycl_types::ArgumentType;

use super::memory::copied_bit_by_bit;
use super::{DeviceForm, KernelArg, Launch};
use crate::images::{ChunkedImageAccessor, PixelData, PixelFormat, SampledImageAccessor, UnsampledImageAccessor};
use crate::{Mode, Stores};

copied_bit_by_bit! {
    [V, const D: usize, M, F: Copy] RawImage<V, D, M, F>,
    [V, const D: usize, M, F: Copy] RawChunkedImage<V, D, M, F>,
    [V, const D: usize, F: Copy] RawSampledImage<V, D, F>,
}

/// What crosses for accessors: themselves, without the lifetime of a command group.
macro_rules! crossing {
    ($($(#[$doc:meta])* [$($generics:tt)*] [$($bounds:tt)*] $raw:ident of $accessor:ident<$($parameter:ident),*>;)*) => { $(
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $raw<$($generics)*>($accessor<'static, $($parameter),*>);

        impl<$($generics)*> $raw<$($parameter),*> {
            /// # Safety
            /// It is passed to a launch of the accessor's command group, and to no other.
            #[inline(always)]
            pub unsafe fn new(accessor: $accessor<'_, $($parameter),*>) -> Self {
                // SAFETY: by the contract of this function.
                Self(unsafe { accessor.with_brand() })
            }
        }

        // SAFETY: the runtime fills in the address for the device. The rest are numbers and formats. Both halves of a program come from one
        // run of rustc with one data layout, so that fields have the same order in both. `TYPE` names the type and its size.
        unsafe impl<$($bounds)*> DeviceForm for $raw<$($parameter),*> {
            type Value<'k> = $accessor<'k, $($parameter),*>;
            const TYPE: &'static ArgumentType =
                &ArgumentType::leaf(core::any::type_name::<$accessor<'static, $($parameter),*>>, size_of::<Self>());

            #[inline(always)]
            unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> Self::Value<'k> {
                // SAFETY: by the contract of this function, and that of `new`.
                unsafe { self.0.with_brand() }
            }
        }

        impl<$($bounds)*> KernelArg for $accessor<'_, $($parameter),*> {
            type Sent = $raw<$($parameter),*>;
        }

        impl<$($generics)*> fmt::Debug for $raw<$($parameter),*> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($raw))
            }
        }
    )* };
}

crossing! {
    /// What crosses for an accessor of an image.
    [V: 'static, const D: usize, M: 'static, F: 'static] [V: PixelData, const D: usize, M: Mode, F: PixelFormat]
    RawImage of UnsampledImageAccessor<V, D, M, F>;

    /// What crosses for an accessor of an image in blocks.
    [V: 'static, const D: usize, M: 'static, F: 'static] [V: PixelData, const D: usize, M: Stores, F: PixelFormat]
    RawChunkedImage of ChunkedImageAccessor<V, D, M, F>;

    /// What crosses for an accessor of an image that is sampled, with its sampler.
    [V: 'static, const D: usize, F: 'static] [V: PixelData, const D: usize, F: PixelFormat]
    RawSampledImage of SampledImageAccessor<V, D, F>;
}
