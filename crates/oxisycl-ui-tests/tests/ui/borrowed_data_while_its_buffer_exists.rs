//! Data that a buffer writes back is borrowed until then.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let mut data = vec![0u32; 8];
    let buffer = Buffer::from_slice_mut_nd(&mut data, 8)?;
    queue.fill(&buffer, 1)?;
    println!("{}", data[0]);
    buffer.finish()
}
