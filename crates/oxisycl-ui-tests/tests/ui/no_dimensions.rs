//! Buffers have one, two or three dimensions.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let _buffer = Buffer::from_vec_nd(vec![1u32], Range([]))?;
    Ok(())
}
