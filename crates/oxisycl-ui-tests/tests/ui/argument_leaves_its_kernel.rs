//! What a kernel gets for an argument ends with the kernel's call.
#![forbid(unsafe_code)]

use std::sync::Mutex;

use oxisycl::prelude::*;

static TABLE: Mutex<&[u32]> = Mutex::new(&[]);

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.parallel_for_with(8, vec![1u32; 8], |_, table| *TABLE.lock().unwrap() = table)?;
    Ok(())
}
