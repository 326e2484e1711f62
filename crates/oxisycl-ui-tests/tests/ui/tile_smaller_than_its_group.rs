//! Each work-item gets an element of its own, so that a tile has one for each.
#![forbid(unsafe_code)]

use oxisycl::group::{Fixed2, Local, Private};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        let memory = (Local::<u32, 31>::new(), Private::new(0u32));
        cg.parallel_for_work_group([1, 1], Fixed2::<4, 8>, memory, |mut group, (mut tile, mut own)| {
            group.for_each((&mut own, &mut tile), |_, (own, slot)| *slot = *own);
        })
    })?;
    Ok(())
}
