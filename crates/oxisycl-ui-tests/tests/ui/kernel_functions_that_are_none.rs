//! A kernel is a plain function over what kernels get, whose first parameter says how it is launched.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[kernel]
unsafe fn is_unsafe(_: Item<1>) {}

#[kernel]
fn returns(_: Item<1>) -> u32 {
    1
}

#[kernel]
fn takes_anything(_: Item<1>, _: impl Fn()) {}

#[kernel(max_registers(8))]
fn has_options(_: Item<1>) {}

#[kernel]
fn has_no_item(_: u32, _: f32) {}

fn main() {}
