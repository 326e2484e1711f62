//! Macros of OxiSYCL.
//!
//! Each macro is three steps. The first reads the input and its attributes: `derived` for derives, else `parse`. `model` checks it and keeps what
//! the expansion needs, and `expand` writes the tokens. Invariant: a macro that reports an error emits nothing else, and reports everything
//! that is wrong with the type at once. Does not know the layout of any type. What the tokens do not show is left to the trait bounds and
//! assertions in the expansion.
#![forbid(unsafe_code)]

mod derived;
mod device_copyable;
mod errors;
mod kernel;
mod kernel_arg;
mod options;
mod tokens;

use proc_macro::TokenStream;

/// Makes a struct or an enum usable as an element of buffers, local memory and private memory
/// (SYCL 2020 section 3.13.1, device copyable).
///
/// Implements the unsafe trait `DeviceCopyable`, and checks what makes that sound. Every field has to be `DeviceCopyable`. The type has to
/// be `Copy` (derive that too), and it has to have a size. Type parameters are required to be `DeviceCopyable` where the type is used.
/// Lifetime parameters, unions and types without data are refused.
///
/// The type is also an argument of kernels that crosses bit by bit. `#[oxisycl(element_only)]` leaves that out, for a type that crosses in
/// another way.
///
/// ```
/// use oxisycl::DeviceCopyable;
///
/// #[derive(Clone, Copy, DeviceCopyable)]
/// struct Particle {
///     position: [f32; 3],
///     charge: i32,
/// }
/// ```
///
/// The expansion names the trait as `::oxisycl::DeviceCopyable`. A crate that has it under another path says which:
///
/// ```
/// use oxisycl as sycl;
///
/// #[derive(Clone, Copy, sycl::DeviceCopyable)]
/// #[oxisycl(crate = sycl)]
/// struct Cell(u8);
/// ```
#[proc_macro_derive(DeviceCopyable, attributes(oxisycl))]
pub fn derive_device_copyable(input: TokenStream) -> TokenStream {
    device_copyable::derive(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a struct or an enum of arguments an argument of kernels.
///
/// The kernel gets a type with the same fields, whose types are what it gets for them. Its name is that of the type with `OnDevice` behind it.
///
/// ```
/// use oxisycl::BufferAccess;
/// use oxisycl::prelude::*;
///
/// #[derive(KernelArg)]
/// struct Lookup<'a> {
///     table: Vec<f32>,
///     numbers: BufferAccess<'a, f32, 1, ReadWrite>,
///     scale: f32,
/// }
///
/// impl LookupOnDevice<'_> {
///     fn run(&self, item: Item<1>) {
///         self.numbers.update(item, |x| self.scale * self.table[x as usize]);
///     }
/// }
///
/// # fn main() -> oxisycl::Result {
/// let numbers = Buffer::from_vec(vec![2.0, 0.0, 1.0])?;
/// let lookup = Lookup { table: vec![5.0, 6.0, 7.0], numbers: numbers.update(), scale: 10.0 };
/// Queue::default()?.parallel_for_with(3, lookup, |item, lookup| lookup.run(item))?;
/// assert_eq!(numbers.to_vec()?, [70.0, 50.0, 60.0]);
/// # Ok(())
/// # }
/// ```
///
/// The value is moved, and its fields are taken apart in the order of their declaration. If that fails for one, the others are dropped once, and
/// the error names the field. A type with a destructor cannot be moved out of: such a type is taken apart by hand.
///
/// # Parameters
///
/// A type parameter that is the type of a field stands for an argument. So does one in the type of a field that is a tuple, an array or an
/// [`Option`]. The device form has what the kernel gets in its place, without its bounds. Arguments that give the same so have the same device form.
///
/// ```
/// # use oxisycl::prelude::*;
/// #[derive(KernelArg)]
/// enum Source<A> {
///     Table(A),
///     Value(f32),
/// }
///
/// fn first(source: SourceOnDevice<'_, &[f32]>) -> f32 {
///     match source {
///         SourceOnDevice::Table(table) => table[0],
///         SourceOnDevice::Value(value) => value,
///     }
/// }
///
/// # fn main() -> oxisycl::Result {
/// let shared = std::sync::Arc::<[f32]>::from([1.0]);
/// let sources = (Source::Table(vec![2.0]), Source::Table(shared), Source::<()>::Value(3.0));
/// Queue::default()?.parallel_for_with(1, sources, |_, (vector, shared, _)| assert_eq!(first(vector), 2.0 * first(shared)))?;
/// # Ok(())
/// # }
/// ```
///
/// Other type parameters, such as that of a `Vec<T>`, are the same in the device form. They have to be `'static`, and keep their bounds. A number
/// of a type parameter's type is a [`Bits<T>`](https://docs.rs/oxisycl/latest/oxisycl/argument/struct.Bits.html).
///
/// The device form begins with a lifetime, which ends with the call of the kernel, unless it consists of parameters alone. It has none of the type's
/// lifetimes.
///
/// # Options
///
/// - `#[oxisycl(device = Name)]` names the device form.
/// - `#[oxisycl(device = Self)]`: the kernel gets the type itself, with its own lifetimes in the place of the type's. Each field has to be
///   its own device form, as numbers and accessors are.
/// - `#[oxisycl(by_hand)]`: the type implements [`Decompose`](https://docs.rs/oxisycl/latest/oxisycl/argument/trait.Decompose.html), which says
///   how it is taken apart, and has no lifetime parameters.
/// - `#[oxisycl(crate = path)]` says where the expansion finds this crate, as for `DeviceCopyable`.
///
/// ```
/// # use oxisycl::prelude::*;
/// #[derive(Clone, Copy, KernelArg)]
/// #[oxisycl(device = Self)]
/// struct Weights {
///     scale: f32,
///     bias: f32,
/// }
///
/// # fn main() -> oxisycl::Result {
/// let (weights, numbers) = (Weights { scale: 2.0, bias: 1.0 }, Buffer::from_vec(vec![3.0])?);
/// Queue::default()?.parallel_for_with(1, (weights, numbers.update()), |item, (weights, numbers)| {
///     let Weights { scale, bias } = weights;
///     numbers.update(item, |x| scale * x + bias)
/// })?;
/// assert_eq!(numbers.to_vec()?, [7.0]);
/// # Ok(())
/// # }
/// ```
///
/// A type that derives `DeviceCopyable` is an argument without this derive. Both go together with `#[oxisycl(element_only)]`. Unions are refused:
/// one that is plain data is passed in a `Bits`.
#[proc_macro_derive(KernelArg, attributes(oxisycl))]
pub fn derive_kernel_arg(input: TokenStream) -> TokenStream {
    kernel_arg::derive(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function over what kernels get a kernel.
///
/// The function of that name then takes arguments, and gives a call of the kernel. `launch_call` of a queue or of a command group launches it, or
/// `launch_single_call` if the first parameter is a `Single` and not an `Item`. Messages and traces have the function's name.
///
/// ```
/// use std::ops::{Add, Mul};
///
/// use oxisycl::prelude::*;
///
/// #[kernel]
/// fn axpy<T>(item: Item<1>, a: T, x: Accessor<T, 1, Read>, y: Accessor<T, 1, ReadWrite>)
/// where
///     T: DeviceCopyable + Add<Output = T> + Mul<Output = T>,
/// {
///     y.update(item, |y| a * x.get(item) + y);
/// }
///
/// # fn main() -> oxisycl::Result {
/// let (x, y) = (Buffer::from_vec(vec![1.0f32, 2.0])?, Buffer::from_vec(vec![0.5f32; 2])?);
/// Queue::default()?.launch_call(2, axpy(2.0f32, x.read(), y.update()))?;
/// assert_eq!(y.to_vec()?, [2.5, 4.5]);
/// # Ok(())
/// # }
/// ```
///
/// A parameter takes every argument of which a kernel gets its type: one of type `&[T]` takes a `Vec<T>` and an `Arc<[T]>`. The kernel is the same
/// for all of them. A parameter of numbers, such as `f32` or `[u8; 4]`, takes just that, so that a literal is enough.
///
/// Lifetimes may be left out. Those that have names are those of one call of the kernel. Type parameters have to be `'static`.
///
/// A type with the function's name has its code, for calls from other kernels:
///
/// ```
/// # use oxisycl::prelude::*;
/// #[kernel]
/// fn double(item: Item<1>, y: Accessor<f32, 1, ReadWrite>) {
///     y.update(item, |y| 2.0 * y);
/// }
///
/// #[kernel]
/// fn double_some(item: Item<1>, limit: f32, y: Accessor<f32, 1, ReadWrite>) {
///     if y.get(item) < limit {
///         double::body(item, y);
///     }
/// }
///
/// # fn main() -> oxisycl::Result {
/// let y = Buffer::from_vec(vec![1.0, 10.0])?;
/// Queue::default()?.launch_call(2, double_some(5.0, y.update()))?;
/// assert_eq!(y.to_vec()?, [2.0, 10.0]);
/// # Ok(())
/// # }
/// ```
///
/// Options state what the kernel needs of a device. A launch on another device fails with `KernelNotSupported`, before anything is enqueued.
///
/// - `#[kernel(device_has(Fp64, Atomic64))]`: the device has these aspects. `cargo sycl build` warns if the code needs another one.
/// - `#[kernel(work_group_size(16, 16))]`: work-groups have these extents, one for each dimension of the range. The range may be of any size.
/// - `#[kernel(sub_group_size(32))]`: sub-groups have that many work-items, a power of two. The device lists it in `sub_group_sizes`.
///
/// Sizes are numbers or constants.
///
/// The function is safe, returns nothing, and has at most 12 parameters after the first. `#[kernel(crate = path)]` says where the expansion finds
/// this crate.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, function: TokenStream) -> TokenStream {
    kernel::attribute(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
