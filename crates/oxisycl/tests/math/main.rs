//! The accuracy of `oxisycl::math` and of Rust's methods in kernels, on every device that is present, and of the device library as native
//! code: where there is no GPU, that is how its functions are tested.
//!
//! The largest error of each function is held against the limit of the OpenCL C specification (tables of ULP values, full profile), to
//! which SYCL 2020 section 4.17.5 refers, and printed: `cargo test --test math -- --nocapture`. Built by `cargo sycl test`, GPUs are tested
//! as well.
//!
//! The reference is computed in `f64`: for `f32` by the platform's library and the crate `pxfm`, whose errors are below 2^-28 ULP of `f32`;
//! for `f64` by `pxfm` alone, which is correctly rounded or nearly so, so that a measured error is off by at most about half a ULP.
//!
//! `OXISYCL_TEST_MATH_INPUTS` sets the number of inputs per function, 2^20 by default. The test in
//! `exhaustive` takes 2^16 inputs of functions with one argument. With `OXISYCL_TEST_MATH_EXHAUSTIVE=FILE` it takes all 2^32 and appends a
//! line of JSON per function to the file. `OXISYCL_TEST_MATH_FUNCTIONS=sin,cos` names those that it tests.

mod edges;
mod exhaustive;
mod fast;
mod inputs;
mod measure;
mod methods;
mod on_devices;
mod other_functions;
mod several_arguments;
mod unary;
