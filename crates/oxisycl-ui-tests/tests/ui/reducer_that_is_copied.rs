//! What a work-item gives is counted once.
#![forbid(unsafe_code)]

use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;

fn main() -> oxisycl::Result<()> {
    let sum = Buffer::from_vec(vec![0u32])?;
    Queue::default()?.submit(|cg| {
        let into = reduction(cg.access(&sum, ReadWrite), Sum);
        cg.parallel_reduce(8, into, |_, sum| {
            let mut copy = *sum;
            copy += 1;
        })
    })?;
    Ok(())
}
