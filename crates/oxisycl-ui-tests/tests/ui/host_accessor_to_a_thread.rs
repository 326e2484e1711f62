//! A host accessor stays on the thread that made it, so that a wait for ever is noticed.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let buffer = Buffer::from_vec(vec![0u32; 8])?;
    let host = buffer.host_access(Read)?;
    std::thread::spawn(move || println!("{}", host[0]));
    Ok(())
}
