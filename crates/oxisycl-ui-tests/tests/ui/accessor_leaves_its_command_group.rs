//! An accessor must not leave the closure that recorded it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let mut stolen = None;
    queue.submit(|cg| {
        stolen = Some(cg.access(&buffer, Read));
        Ok(())
    })?;
    Ok(())
}
