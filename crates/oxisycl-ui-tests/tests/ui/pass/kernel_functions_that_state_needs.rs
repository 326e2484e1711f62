//! Twins of the attributes that state nonsense.
#![forbid(unsafe_code)]
#![deny(warnings)]

use oxisycl::prelude::*;

#[kernel(device_has(Fp64))]
fn known_aspect(_: Item<1>) {}

#[kernel(device_has(Fp64, Fp16))]
fn two_aspects(_: Item<1>) {}

#[kernel(work_group_size(16), sub_group_size(16))]
fn two_kinds(_: Item<1>) {}

#[kernel(work_group_size(4, 1))]
fn an_extent(_: Item<2>) {}

#[kernel(work_group_size(SOME))]
fn a_size(_: Item<1>) {}

const SOME: usize = 8;

#[kernel(work_group_size(2, 3, 4))]
fn three_extents(_: Item<3>) {}

#[kernel(work_group_size(8, 8), crate = oxisycl)]
fn the_same_dimension<'k>(_: Item<'k, 2>) {}

#[kernel(device_has(Cpu))]
fn a_task(_: Single) {}

#[kernel(sub_group_size(SOME * 2))]
fn a_power_of_two(_: Item<1>) {}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    if queue.device().has(Aspect::Fp64) {
        queue.launch_call(1, known_aspect())?;
    }
    queue.launch_call([2, 2], an_extent())?;
    queue.launch_call(1, a_size())?;
    queue.launch_call([2, 2], the_same_dimension())?;
    let _ = (two_aspects(), two_kinds(), three_extents(), a_power_of_two());
    if queue.device().is_cpu() {
        queue.launch_single_call(a_task())?;
    }
    queue.wait()
}
