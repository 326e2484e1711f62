//! A reducer has the assigning operator of its own operator, and no other.
#![forbid(unsafe_code)]

use oxisycl::operator::Max;
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;

fn main() -> oxisycl::Result<()> {
    let largest = Buffer::from_vec(vec![0u32])?;
    Queue::default()?.submit(|cg| {
        let into = reduction(cg.access(&largest, ReadWrite), Max);
        cg.parallel_reduce(8, into, |_, largest| *largest += 1)
    })?;
    Ok(())
}
