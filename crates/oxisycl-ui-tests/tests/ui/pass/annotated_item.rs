//! The type of the item may be written.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let buffer = Buffer::from_vec_nd(vec![0u32; 8], [2, 2, 2])?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for([2, 2, 2], move |item: Item<3>| data.set(item, item.get(0) as u32))
    })?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.single_task(move |task: Single<'_>| data.set_at(task, [0, 0, 0], data.get_at(task, [1, 1, 1])))
    })?;
    assert_eq!(buffer.into_vec()?, [1, 0, 0, 0, 1, 1, 1, 1]);
    Ok(())
}
