//! A closure that is stored before it is launched needs `kernel(..)` or an annotated item.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        let set = move |item| data.set(item, 1);
        cg.parallel_for(8, set)
    })?;
    Ok(())
}
