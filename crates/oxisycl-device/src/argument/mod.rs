//! Arguments of kernels: values that stand beside a closure, and that a launch passes to each of its work-items (SYCL 2020 section 4.12.4).
//!
//! ```
//! use oxisycl::prelude::*;
//!
//! # fn main() -> oxisycl::Result {
//! let (x, y) = (Buffer::from_vec(vec![1.0f32; 8])?, Buffer::from_vec(vec![2.0f32; 8])?);
//! let queue = Queue::default()?;
//! queue.parallel_for_with(8, (3.0f32, x.read(), y.update()), |item, (a, x, y)| y.update(item, |y| a * x.get(item) + y))?;
//! assert_eq!(y.to_vec()?, [5.0; 8]);
//! # Ok(())
//! # }
//! ```
//!
//! An argument has three types. The host passes a [`KernelArg`], such as a `Vec<T>`. It is taken apart into bits that cross to the device, its
//! [`DeviceForm`]. Of these, each work-item makes what its kernel gets, a [`Value`], such as a `&[T]`.
//!
//! | the host passes | the kernel gets |
//! |---|---|
//! | numbers, `bool`, `char`, [`Id`](crate::Id), [`Range`](crate::Range), and what derives [`DeviceCopyable`](crate::DeviceCopyable) | the same |
//! | [`Bits`] of a type that implements `DeviceCopyable` by hand | the type |
//! | tuples of up to 12, arrays and [`Option`]s of arguments | the same of what the kernel gets of each |
//! | `buffer.read()`, `.write()`, `.update()`, `.atomic()`, `.with(mode)` | [`Accessor`](crate::Accessor) |
//! | the same with `.chunks(block)` | [`Chunked`](crate::Chunked) |
//! | an accessor of the command group, a placeholder | [`Accessor`](crate::Accessor) |
//! | `image.read()`, `.write()`, `.update()`, `.with(mode)` | [`UnsampledImageAccessor`](crate::images::UnsampledImageAccessor) |
//! | the same with `.chunks(block)` | [`ChunkedImageAccessor`](crate::images::ChunkedImageAccessor) |
//! | `sampled.read()` | [`SampledImageAccessor`](crate::images::SampledImageAccessor) |
//! | an accessor of an image, of the command group | the same |
//! | `Vec<T>`, `Box<[T]>`, `Arc<[T]>`, [`Copied`] | `&[T]` |
//! | `String`, `Box<str>`, `Arc<str>` | `&str` |
//! | `Box<T>`, `Arc<T>` | `&T` |
//! | a USM allocation by reference, a USM pointer | the USM pointer |
//! | a specialization constant of the group ([`Specialized`]), [`specialized`]`(value)` | its value, which the kernel may be compiled with |
//! | [`Keep`] | `()`; the value lives until the command has ended |
//! | a struct or an enum of arguments that derives [`KernelArg`](macro@KernelArg) | a type of the same fields, of what the kernel gets of each |
//! | a type of the user that says how, by [`Decompose`] | what it says |
//!
//! Arguments are taken apart in the order of their declaration. If that fails for one, the command group fails, and all values are dropped once.
//! Work-items make their values anew, each for itself. A value is moved into the kernel, which drops it.
//!
//! Functions with the attribute [`kernel`](macro@crate::kernel) are kernels that are called with their arguments.
//!
//! References, function pointers, trait objects and raw pointers are no arguments: they are addresses of the host.

mod bits;
mod bound;
mod call;
mod host;
mod images;
mod keep;
mod memory;
mod nests;
#[cfg(feature = "alloc")]
mod owners;
mod specialized;
mod stated;

use core::marker::PhantomData;

pub use oxisycl_macros::KernelArg;
pub use oxisycl_types::{ArgumentPart, ArgumentType};

use crate::item::Brand;

pub use bits::Bits;
pub(crate) use bits::plain_arguments;
#[doc(hidden)]
pub use bound::{Bound, RangeFormWith, SingleFormWith, values};
pub use call::Call;
#[doc(hidden)]
pub use call::{FirstParameter, PassedTo};
#[doc(hidden)]
pub use host::DeconstructTo;
pub use host::{Deconstruct, LaunchHost, Part};
pub use keep::{Copied, Keep};
#[doc(hidden)]
pub use stated::{
    HasDimensions, Stated, States, Unstated, has_dimensions, stated_aspects, stated_group, stated_sub_group,
};

#[doc(hidden)]
pub use images::{RawChunkedImage, RawImage, RawSampledImage};
#[doc(hidden)]
pub use memory::{RawAccessor, RawChunked, RawReference, RawSlice, RawText};
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use owners::BoxHost;
pub use specialized::{Specialized, SpecializedArgument, specialized};

/// What may be passed to a kernel. See the [module](self) for a list.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel",
    label = "not an argument of a kernel",
    note = "plain data: `#[derive(Clone, Copy, DeviceCopyable)]`",
    note = "a buffer or an image: `x.read()`, `x.write()` or `x.update()`",
    note = "memory of the host, by value: `Vec<T>`, `Box<[T]>`, `Arc<[T]>`, `String`"
)]
pub trait KernelArg {
    /// The bits that cross.
    type Sent: DeviceForm;
}

/// What crosses to a device for an argument, and what a kernel gets of it.
///
/// # Safety
/// The type holds no address, but for those that its [`Deconstruct`] makes for the device of a launch. Its layout is the same in host and
/// device code. `TYPE` describes it.
pub unsafe trait DeviceForm: Copy + Send + Sync + 'static {
    /// What the kernel gets. Ends with the call of the kernel.
    type Value<'k>;

    /// The type and its parts, for the list of a kernel's arguments.
    const TYPE: &'static ArgumentType;

    /// Whether the bits that cross are those of what the kernel gets, so that those of an array are copied at once. For this crate only.
    #[doc(hidden)]
    const IS_VALUE: bool = false;

    /// Makes what the kernel gets, once for each work-item, or for each group in forms for groups.
    ///
    /// # Safety
    /// Inside the launch that the argument was taken apart for.
    unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> Self::Value<'k>;
}

/// The bits that cross for an argument.
pub type Sent<A> = <A as KernelArg>::Sent;

/// What a kernel gets for an argument.
pub type Value<'k, A> = <Sent<A> as DeviceForm>::Value<'k>;

/// Proof of being inside a launch. `'k` ends with the call of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'k>(Brand<'k>);

impl Launch<'_> {
    /// # Safety
    /// Called by the code that runs a launch, with a lifetime that ends with the kernel's call.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        Self(PhantomData)
    }
}

/// How a type of the user is taken apart on the host and made anew on the device.
///
/// `#[derive(KernelArg)]` with `#[oxisycl(by_hand)]` makes the type an argument.
///
/// ```
/// use oxisycl::argument::{Decompose, KernelArg, Launch};
/// use oxisycl::prelude::*;
///
/// /// A polynomial, by its coefficients.
/// #[derive(KernelArg)]
/// #[oxisycl(by_hand)]
/// struct Polynomial(Vec<f32>);
/// /// The same in a kernel.
/// struct OnDevice<'k>(&'k [f32]);
///
/// impl OnDevice<'_> {
///     fn at(&self, x: f32) -> f32 {
///         self.0.iter().rev().fold(0.0, |sum, coefficient| x * sum + coefficient)
///     }
/// }
///
/// impl Decompose for Polynomial {
///     type Parts = Vec<f32>;
///     type Device<'k> = OnDevice<'k>;
///     type Error = std::convert::Infallible;
///     fn deconstruct(self) -> Result<Vec<f32>, Self::Error> {
///         Ok(self.0)
///     }
///     fn reconstruct<'k>(_: Launch<'k>, coefficients: &'k [f32]) -> OnDevice<'k> {
///         OnDevice(coefficients)
///     }
/// }
///
/// # fn main() -> oxisycl::Result {
/// let numbers = Buffer::from_vec(vec![0.0, 1.0, 2.0])?;
/// let arguments = (Polynomial(vec![1.0, 2.0, 3.0]), numbers.update());
/// Queue::default()?.parallel_for_with(3, arguments, |item, (p, numbers)| numbers.update(item, |x| p.at(x)))?;
/// assert_eq!(numbers.to_vec()?, [1.0, 6.0, 17.0]);
/// # Ok(())
/// # }
/// ```
pub trait Decompose: Sized + 'static {
    /// What crosses in its place.
    type Parts: KernelArg;
    /// What the kernel gets.
    type Device<'k>;
    /// Why it cannot be passed; [`Infallible`](core::convert::Infallible) if it always can.
    type Error: core::error::Error + Send + Sync + 'static;

    /// Takes the value apart, on the host, when the command group is recorded.
    ///
    /// # Errors
    /// Fails the command group with code `KernelArgument`. The error is the cause.
    fn deconstruct(self) -> Result<Self::Parts, Self::Error>;

    /// Makes what the kernel gets, once for each work-item, on the device.
    fn reconstruct<'k>(launch: Launch<'k>, parts: Value<'k, Self::Parts>) -> Self::Device<'k>;
}

/// What crosses for a type that says itself how it is taken apart.
#[repr(transparent)]
pub struct Rebuilt<P: Decompose>(Sent<P::Parts>, PhantomData<fn() -> P>);

impl<P: Decompose> Clone for Rebuilt<P> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: Decompose> Copy for Rebuilt<P> {}

impl<P: Decompose> core::fmt::Debug for Rebuilt<P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Rebuilt")
    }
}

// SAFETY: it is nothing but what crosses for the parts.
unsafe impl<P: Decompose> DeviceForm for Rebuilt<P> {
    type Value<'k> = P::Device<'k>;
    const TYPE: &'static ArgumentType = <Sent<P::Parts>>::TYPE;

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, launch: Launch<'k>) -> P::Device<'k> {
        // SAFETY: by the contract of this function.
        P::reconstruct(launch, unsafe { self.0.reconstruct(launch) })
    }
}

impl<P: Decompose> Rebuilt<P> {
    /// What crosses for `value`: it is taken apart, and then its parts are.
    ///
    /// # Errors
    /// Of the type itself, or of its parts.
    ///
    /// # Safety
    /// That of [`Deconstruct::deconstruct`].
    #[inline]
    pub unsafe fn deconstruct<H: LaunchHost>(value: P, host: &mut H) -> Result<Self, H::Error>
    where
        P::Parts: Deconstruct<H>,
    {
        let parts = value.deconstruct().map_err(|cause| host.refuse(cause))?;
        // SAFETY: by the contract of this function.
        Ok(Self(unsafe { parts.deconstruct(host) }?, PhantomData))
    }
}
