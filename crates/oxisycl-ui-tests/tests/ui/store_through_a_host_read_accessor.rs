//! A host accessor for reading lends no mutable elements.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let buffer = Buffer::from_vec(vec![0u32; 8])?;
    let host = buffer.host_access(Read)?;
    host[0] = 1;
    Ok(())
}
