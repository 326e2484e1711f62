//! A kernel function takes only what gives its parameters, and is launched as its first parameter says.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[kernel]
fn fill(item: Item<1>, value: f32, y: Accessor<f32, 1, Write>) {
    y.set(item, value);
}

#[kernel]
fn table(_: Item<1>, _: &[f32]) {}

#[kernel]
fn task(_: Single) {}

fn main() -> oxisycl::Result<()> {
    let (queue, y) = (Queue::default()?, Buffer::from_vec(vec![1.0f32])?);
    queue.launch_call(1, fill(1.0, y.read()))?;
    queue.launch_call(1, table(vec![1.0f64]))?;
    queue.launch_call(1, task())?;
    queue.launch_call([1, 1], fill(1.0, y.write()))?;
    Ok(())
}
