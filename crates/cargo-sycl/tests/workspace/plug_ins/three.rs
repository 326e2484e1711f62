//! Squares numbers by a generic function of a crate that knows `oxisycl` alone, and reads them.

use oxisycl::prelude::*;

#[unsafe(no_mangle)]
pub fn sum_of_squares(numbers: &Buffer<f32, 1>) -> f32 {
    let copy: Vec<f32> = numbers.host_access(Read).unwrap().iter().copied().collect();
    kernels::mapped(copy, |x| x * x).iter().sum()
}
