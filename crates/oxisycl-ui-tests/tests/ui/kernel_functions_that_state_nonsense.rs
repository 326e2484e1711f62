//! Attributes state aspects that exist, and sizes of at least one, each once.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[kernel(device_has(Fp63))]
fn unknown_aspect(_: Item<1>) {}

#[kernel(device_has(Fp64, Fp64))]
fn aspect_twice(_: Item<1>) {}

#[kernel(device_has())]
fn no_aspect(_: Item<1>) {}

#[kernel(work_group_size(16), work_group_size(16))]
fn size_twice(_: Item<1>) {}

#[kernel(work_group_size(4, 0))]
fn no_extent(_: Item<2>) {}

#[kernel(work_group_size(1, 2, 3, 4))]
fn too_many_extents(_: Item<3>) {}

#[kernel(sub_group_size(8, 16))]
fn two_sizes(_: Item<1>) {}

fn main() {}
