//! Vectors and mathematical arrays (SYCL 2020 sections 4.14.2 and 4.14.3), in kernels and on the host.
//!
//! [`Vector<T, N>`](Vector) is SYCL's `vec`: 1, 2, 3, 4, 8 or 16 numbers with the alignment of device vectors. [`Float4`] and the like are
//! names of its types. [`MArray<T, N>`](MArray) is SYCL's `marray`: any number of elements of any type, with the layout of an array.
//!
//! Operators work on each element, and a scalar operand stands for all elements. An operator does what it does for the element: sums of
//! integers overflow as they do for integers, with a panic in debug builds. `==` compares whole values; [`Vector::eq_mask`] and its
//! siblings compare elements. The functions of [`math`](crate::math) take vectors and arrays, too.
//!
//! ```
//! use oxisycl_device::math;
//! use oxisycl_device::vector::{Float3, Float4, Int4, swizzle};
//!
//! let a = Float4::new(1.0, 2.0, 3.0, 4.0);
//! let b = 2.0 * a + Float4::splat(1.0);
//! assert_eq!(b, Float4::new(3.0, 5.0, 7.0, 9.0));
//! assert_eq!(b.lt_mask(Float4::splat(6.0)), Int4::new(-1, -1, 0, 0));
//! assert_eq!(math::sqrt(a)[3], 2.0);
//!
//! let mut c = swizzle!(a, wzyx);
//! swizzle!(c, xw = swizzle!(c, wx));
//! assert_eq!(c, Float4::new(1.0, 3.0, 2.0, 4.0));
//! assert_eq!(Float4::from((Float3::splat(0.5), 1.0)).to_array(), [0.5, 0.5, 0.5, 1.0]);
//! ```
//!
//! # Swizzles
//!
//! Methods name single elements ([`Vector::x`]) and halves ([`lo`](Vector::lo)). The macro [`swizzle!`] names any others. Each of the 1360
//! ways to name four elements as a method would be compiled with every program. The macro costs only what is used, and checks the name
//! when the program is built. [`Vector::swizzle`] takes indices that are computed.
//!
//! # Layout
//!
//! A vector has the size and alignment of `N` elements, a vector of three those of four. The alignment is at most 64 bytes. It is the same
//! on the host and on devices. Vectors of three have padding: uninitialised memory may hold them ([`bytemuck::AnyBitPattern`]), but their
//! bytes are not all initialised. The others are [`bytemuck::Pod`].

mod aliases;
mod comparison;
mod components;
mod convert;
mod element;
mod functions;
mod marray;
mod memory;
mod operators;
mod storage;
mod swizzle;
mod traits;

#[cfg(test)]
mod tests;

#[doc(inline)]
pub use crate::swizzle;
pub use aliases::*;
pub use convert::Rounding;
pub use element::VectorElement;
pub use marray::MArray;
pub use storage::Vector;
#[doc(hidden)]
pub use swizzle::{SwizzleName, swizzle_length};
