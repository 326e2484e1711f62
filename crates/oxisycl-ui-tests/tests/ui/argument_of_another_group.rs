//! An accessor is an argument of the kernels of its own command group.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    queue.submit(|outer| {
        let x = outer.access(&x, ReadWrite);
        queue.submit(|inner| inner.parallel_for_with(8, x, |item, x| x.update(item, |x| x + 1.0)))
    })?;
    Ok(())
}
