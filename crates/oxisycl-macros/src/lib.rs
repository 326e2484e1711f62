//! Derive macros of OxiSYCL.
//!
//! Each macro is three steps: `parse` reads the input and its attributes, `model` checks it and keeps what the expansion
//! needs, `expand` writes the tokens. Invariant: a macro that reports an error emits nothing else, and reports everything
//! that is wrong with the type at once. Does not know the layout of any type. What the tokens do not show is left to the trait bounds and
//! assertions in the expansion.
#![forbid(unsafe_code)]

mod device_copyable;

use proc_macro::TokenStream;

/// Makes a struct or an enum usable as an element of buffers, local memory and private memory
/// (SYCL 2020 section 3.13.1, device copyable).
///
/// Implements the unsafe trait `DeviceCopyable`, and checks what makes that sound. Every field has to be `DeviceCopyable`. The type has to
/// be `Copy` (derive that too), and it has to have a size. Type parameters are required to be `DeviceCopyable` where the type is used.
/// Lifetime parameters, unions and types without data are refused.
///
/// ```
/// # pub unsafe trait DeviceCopyable: Copy + Send + Sync + 'static {}
/// # unsafe impl DeviceCopyable for f32 {}
/// # unsafe impl DeviceCopyable for i32 {}
/// # unsafe impl<T: DeviceCopyable, const N: usize> DeviceCopyable for [T; N] {}
/// # use oxisycl_macros::DeviceCopyable;
/// #[derive(Clone, Copy, DeviceCopyable)]
/// # #[oxisycl(crate = crate)]
/// struct Particle {
///     position: [f32; 3],
///     charge: i32,
/// }
/// # fn main() {}
/// ```
///
/// The expansion names the trait as `::oxisycl::DeviceCopyable`. A crate that has it under another path says which:
///
/// ```
/// # mod oxisycl_device { pub unsafe trait DeviceCopyable: Copy + Send + Sync + 'static {} }
/// # unsafe impl oxisycl_device::DeviceCopyable for u8 {}
/// # use oxisycl_macros::DeviceCopyable;
/// #[derive(Clone, Copy, DeviceCopyable)]
/// #[oxisycl(crate = crate::oxisycl_device)]
/// struct Cell(u8);
/// # fn main() {}
/// ```
#[proc_macro_derive(DeviceCopyable, attributes(oxisycl))]
pub fn derive_device_copyable(input: TokenStream) -> TokenStream {
    device_copyable::derive(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
