//! Kernel functions that state what they need, all of it or a part.

use oxisycl::prelude::*;

#[kernel(device_has(Fp64), work_group_size(4, 8), sub_group_size(32))]
fn stated(item: Item<2>, numbers: Accessor<f64, 2, ReadWrite>) {
    numbers.update(item, |x| x * 2.5);
}

#[kernel(device_has(QueueProfiling))]
fn incomplete(item: Item<1>, numbers: Accessor<f64, 1, ReadWrite>) {
    let factor = 2.5;
    numbers.update(item, |x| x * factor);
}

#[kernel(work_group_size(64))]
fn of_groups_alone(item: Item<1>, numbers: Accessor<f64, 1, ReadWrite>) {
    numbers.update(item, |x| x + 2.5);
}

#[kernel(sub_group_size(16))]
fn in_sixteens(item: Item<1>, numbers: Accessor<f64, 1, ReadWrite>) {
    numbers.update(item, |x| x - 2.5);
}

fn main() -> oxisycl::Result {
    let queue = Queue::builder().build()?;
    let (plane, line) = (Buffer::from_vec_nd(vec![1.0; 4], [2, 2])?, Buffer::from_vec(vec![1.0; 4])?);
    if queue.device().has(Aspect::Fp64) && queue.device().info().sub_group_sizes.contains(&32) {
        queue.launch_call([2, 2], stated(plane.update()))?;
    }
    queue.launch_call(4, incomplete(line.update()))?;
    queue.launch_call(4, of_groups_alone(line.update()))?;
    if queue.device().info().sub_group_sizes.contains(&16) {
        queue.launch_call(4, in_sixteens(line.update()))?;
    }
    println!("{:?}", line.to_vec()?);
    Ok(())
}
