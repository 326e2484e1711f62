//! What a work-item that ended would have passed is zeros, so every bit pattern has to be a value. So it is for sub-groups and for whole groups.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Private};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<32>, Private::new('a'), |mut group, mut own| {
            group.sub_groups::<32>().shift_left(&mut own, 1);
            group.reduce(&own, char::max);
            group.inclusive_scan(&mut own, char::max);
            group.broadcast(&own, 0);
            group.joint_reduce(&['a', 'b'][..], 'a', char::max);
        })
    })?;
    Ok(())
}
