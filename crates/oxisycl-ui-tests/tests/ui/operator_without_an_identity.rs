//! An exclusive scan needs a first value.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Private};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<32>, Private::new(1u32), |mut group, mut own| {
            group.exclusive_scan(&mut own, |a: u32, b: u32| a.max(b));
        })
    })?;
    Ok(())
}
