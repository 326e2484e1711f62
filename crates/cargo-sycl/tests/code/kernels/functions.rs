//! A library with a kernel function that it launches, and the crates that use it.

use std::ops::Mul;

use oxisycl::prelude::*;

/// Multiplies each number by the one of its place.
#[kernel]
pub fn scaled<T: DeviceCopyable + Mul<Output = T>>(item: Item<1>, by: &[T], numbers: Accessor<T, 1, ReadWrite>) {
    numbers.update(item, |x| by[item.index()] * x);
}

/// Launches it for one type of numbers and one owner of the factors.
pub fn of_library(queue: &Queue) -> oxisycl::Result<Vec<f32>> {
    let numbers = Buffer::from_vec(vec![1.0f32, 2.0])?;
    queue.launch_call(2, scaled(vec![2.0f32, 3.0], numbers.update()))?;
    numbers.to_vec()
}
