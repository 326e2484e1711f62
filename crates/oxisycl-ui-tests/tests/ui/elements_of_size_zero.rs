//! Elements have a size.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let _nothing = Buffer::from_vec(vec![[0u32; 0]; 2])?;
    let _nothing = Queue::default()?.malloc_shared::<[u32; 0]>(2)?;
    Ok(())
}
