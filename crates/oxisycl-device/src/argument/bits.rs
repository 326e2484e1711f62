//! Plain data as arguments.

use oxisycl_types::ArgumentType;

use super::{Deconstruct, DeviceForm, KernelArg, Launch, LaunchHost};
use crate::DeviceCopyable;

/// A value that crosses bit by bit. Everything that derives `DeviceCopyable` does so without it.
///
/// A type that implements [`DeviceCopyable`] by hand is passed and captured inside a `Bits`. If it has addresses, only its author knows that
/// they mean something on the device.
///
/// ```
/// use oxisycl::argument::Bits;
/// use oxisycl::prelude::*;
///
/// /// One of two numbers.
/// #[derive(Clone, Copy)]
/// union Word {
///     float: f32,
///     bits: u32,
/// }
/// // SAFETY: both are plain data of the same size, without addresses.
/// unsafe impl DeviceCopyable for Word {}
///
/// # fn main() -> oxisycl::Result {
/// let numbers = Buffer::from_vec(vec![0; 2])?;
/// let word = Word { float: 1.0 };
/// // SAFETY: any bits are a `u32`.
/// let kernel = |item: Item<1>, (word, numbers): (Word, Accessor<u32, 1, Write>)| numbers.set(item, unsafe { word.bits });
/// Queue::default()?.parallel_for_with(2, (Bits(word), numbers.write()), kernel)?;
/// assert_eq!(numbers.to_vec()?, [0x3f80_0000; 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(transparent)]
pub struct Bits<T: DeviceCopyable>(pub T);

// SAFETY: the value is device copyable, which says that it may cross.
unsafe impl<T: DeviceCopyable> DeviceForm for Bits<T> {
    type Value<'k> = T;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(core::any::type_name::<T>, size_of::<T>());
    const IS_VALUE: bool = true;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> T {
        self.0
    }
}

impl<T: DeviceCopyable> KernelArg for Bits<T> {
    type Sent = Self;
}

impl<H: LaunchHost, T: DeviceCopyable> Deconstruct<H> for Bits<T> {
    #[inline(always)]
    unsafe fn deconstruct(self, _host: &mut H) -> Result<Self, H::Error> {
        Ok(self)
    }
}

/// Makes plain types arguments that cross bit by bit.
macro_rules! plain_arguments {
    ($([$($parameters:tt)*] $t:ty),* $(,)?) => { $(
        impl<$($parameters)*> $crate::argument::KernelArg for $t {
            type Sent = $crate::argument::Bits<Self>;
        }
        impl<Host: $crate::argument::LaunchHost, $($parameters)*> $crate::argument::Deconstruct<Host> for $t {
            #[inline(always)]
            unsafe fn deconstruct(
                self,
                _host: &mut Host,
            ) -> ::core::result::Result<$crate::argument::Bits<Self>, Host::Error> {
                ::core::result::Result::Ok($crate::argument::Bits(self))
            }
        }
    )* };
}
pub(crate) use plain_arguments;

plain_arguments! {
    [T: DeviceCopyable] core::num::Wrapping<T>,
    [const D: usize] crate::Id<D>,
    [const D: usize] crate::Range<D>,
}
