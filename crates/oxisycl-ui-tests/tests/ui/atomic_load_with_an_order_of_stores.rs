//! A load cannot have the order of a store, nor a store that of a load.
#![forbid(unsafe_code)]

use oxisycl::atomic::{AcqRel, Acquire, Relaxed, Release};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let counts = cg.access(&buffer, Atomic);
        cg.parallel_for(8, move |item: Item<1>| {
            let count = counts.atomic_ref(item, 0);
            count.load(Release);
            count.store(1, Acquire);
            let _ = count.compare_exchange(1, 2, Relaxed, AcqRel);
        })
    })?;
    Ok(())
}
