//! Twins of the kernel functions that are refused.
#![forbid(unsafe_code)]
#![deny(warnings)]

use oxisycl::prelude::*;

#[kernel]
fn is_safe(_: Item<1>) {}

#[kernel]
fn returns_nothing(_: Item<1>) -> () {}

#[kernel]
fn takes_anything<T: Copy>(_: Item<1>, _: T) {}

#[kernel(crate = oxisycl)]
fn has_options(_: Item<1>) {}

#[kernel]
fn has_an_item(_: Item<1>, _: f32) {}

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
    queue.launch_call(1, fill(2.0, y.write()))?;
    assert_eq!(y.to_vec()?, [2.0]);
    queue.launch_call(1, table(vec![1.0f32]))?;
    queue.launch_single_call(task())?;
    queue.launch_call(1, is_safe())?;
    queue.launch_call(1, returns_nothing())?;
    queue.launch_call(1, takes_anything(1u8))?;
    queue.launch_call(1, has_options())?;
    queue.launch_call(1, has_an_item(1.0))?;
    queue.wait()
}
