//! Placeholders become accessors of any group, and helpers may be generic over the mode.
#![forbid(unsafe_code)]

use oxisycl::ModeFor;
use oxisycl::prelude::*;

fn require<'cg, M: ModeFor<u32>>(cg: &mut Handler<'cg>, buffer: &Buffer<u32, 1>, mode: M) -> Accessor<'cg, u32, 1, M> {
    cg.access(buffer, mode)
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let buffer = Buffer::from_vec(vec![1u32; 8])?;
    let placeholder = buffer.placeholder(ReadWrite);
    for _ in 0..3 {
        queue.submit(|cg| {
            let data = cg.require(&placeholder);
            cg.parallel_for(8, move |item| data.update(item, |x| x * 2))
        })?;
    }
    queue.submit(|cg| {
        let counts = require(cg, &buffer, Atomic);
        cg.parallel_for(100, move |item| _ = counts.fetch_add(item, item.index() % 8, 1))
    })?;
    drop(placeholder);
    assert_eq!(buffer.into_vec()?.iter().sum::<u32>(), 164);
    Ok(())
}
