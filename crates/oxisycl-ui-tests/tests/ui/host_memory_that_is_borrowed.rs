//! A copy command owns the host memory it reads: it outlives the call.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let source = vec![1u32; 8];
    queue.copy_from_host(&source, &buffer)?;
    queue.copy_from_host(&source[..], &buffer)?;
    Ok(())
}
