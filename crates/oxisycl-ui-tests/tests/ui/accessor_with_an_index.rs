//! An accessor alone gives no access, so it has no index.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0f32; 8])?);
    queue.submit(|cg| {
        let mut data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| data[item.index()] += 1.0)
    })?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        cg.parallel_for(8, move |item| println!("{}", data[item.index()]))
    })?;
    Ok(())
}
