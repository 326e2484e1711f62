//! Without an identity, the old value is what there is if no work-item combines anything.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use oxisycl::reduction::reduction_without_identity;

fn main() -> oxisycl::Result<()> {
    let best = Buffer::from_vec(vec![0u32])?;
    Queue::default()?.submit(|cg| {
        let into = reduction_without_identity(cg.access(&best, Write), |a: u32, b: u32| a.max(b));
        cg.parallel_reduce(8, into, |item, best| best.combine(item.index() as u32))
    })?;
    Ok(())
}
