//! What crosses for an argument is used for one launch only, so that safe code does not get it.
#![forbid(unsafe_code)]

use oxisycl::argument::Deconstruct;
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    queue.submit(|cg| {
        let _ = x.update().deconstruct(cg);
        cg.single_task(|_| {})
    })?;
    Ok(())
}
