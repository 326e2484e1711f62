//! Macros of OxiSYCL.
//!
//! Each macro is three steps: `parse` reads the input and its attributes, `model` checks it and keeps what the expansion
//! needs, `expand` writes the tokens. Invariant: a macro that reports an error emits nothing else, and reports everything
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
#[proc_macro_derive(KernelArg, attributes(oxisycl))]
pub fn derive_kernel_arg(input: TokenStream) -> TokenStream {
    kernel_arg::derive(input.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a function a kernel.
#[proc_macro_attribute]
pub fn kernel(options: TokenStream, function: TokenStream) -> TokenStream {
    kernel::attribute(options.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
