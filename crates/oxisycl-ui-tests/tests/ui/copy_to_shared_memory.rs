//! A copy writes to memory that the command owns, not to memory that others read.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::sync::Arc;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let shared: Arc<[u32]> = Arc::from([0; 8]);
    queue.copy_to_host(&buffer, shared)?;
    static TABLE: [u32; 8] = [0; 8];
    queue.copy_to_host(&buffer, &TABLE[..])?;
    Ok(())
}
