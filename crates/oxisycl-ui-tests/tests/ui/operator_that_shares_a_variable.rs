//! Each work-item of a device has its own variables of group scope, so an operator shares none.
#![forbid(unsafe_code)]

use std::cell::Cell;

use oxisycl::group::{Fixed1, Private};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<32>, Private::new(1u32), |mut group, own| {
            let calls = Cell::new(0);
            group.reduce(&own, |a, b| {
                calls.set(calls.get() + 1);
                a + b
            });
        })
    })?;
    Ok(())
}
