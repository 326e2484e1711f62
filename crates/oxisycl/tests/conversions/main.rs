//! Buffers and images made of what other crates have, and given back. Each file is about the feature of one crate, and there only with it. Elements of
//! other crates are in the suite of kernels.

#[cfg(feature = "ndarray")]
mod arrays;
#[cfg(feature = "ndarray")]
mod image_arrays;
#[cfg(feature = "image")]
mod pictures;
#[cfg(feature = "image")]
mod pixels;
