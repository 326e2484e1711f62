//! A work-group has at least one work-item, along each dimension.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Fixed2};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.submit(|cg| cg.parallel_for_work_group(4, Fixed1::<0>, (), |_, ()| {}))?;
    queue.submit(|cg| cg.parallel_for_nd_range(([8, 8], Fixed2::<4, 0>), (), |_, ()| {}))?;
    Ok(())
}
