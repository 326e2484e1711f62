//! A sub-group has a power of two of work-items, at most 64.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Private};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<96>, Private::new(1u32), |mut group, mut own| {
            group.sub_groups::<48>().reduce(&mut own, Sum);
        })
    })?;
    Ok(())
}
