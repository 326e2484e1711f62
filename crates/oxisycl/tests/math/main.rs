//! The accuracy of `oxisycl::math` and of Rust's methods in kernels, on every device that is present. The device library is also tested as
//! native code, since its functions must be tested where there is no GPU.
//!
//! The largest error of each function is printed (`cargo test --test math -- --nocapture`) and compared with the limit of the OpenCL C
//! specification. The limits are the tables of ULP values for the full profile, to which SYCL 2020 section 4.17.5 refers. Built by
//! `cargo sycl test`, GPUs are tested as well.
//!
//! The reference is computed in `f64`. For `f32` it comes from the platform's library and the crate `pxfm`, whose errors are below 2^-28
//! ULP of `f32`. For `f64` it comes from `pxfm` alone, which is correctly rounded or nearly so. A measured error is then off by at most
//! about half a ULP.
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
