//! The size of work-groups has the dimensions of the kernel's range, and a single task has no groups.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

#[kernel(work_group_size(8, 8))]
fn another_dimension(_: Item<1>) {}

#[kernel(work_group_size(8))]
fn no_range(_: Single) {}

fn main() {}
