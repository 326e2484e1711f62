//! An algorithm is one of the whole group, and stands between phases.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Private};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<32>, (Private::new(1u32), Private::new(1u32)), |mut group, (mut a, b)| {
            group.for_each(&mut a, |_, a| *a = group.reduce(&b, Sum));
        })
    })?;
    Ok(())
}
