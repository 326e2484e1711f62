//! A kernel captures no address of local memory.
#![forbid(unsafe_code)]

use oxisycl::multi_ptr::{MultiPtr, space};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let local = MultiPtr::<u32, space::Local>::null();
    Queue::default()?.single_task(move |_| assert!(local.is_null()))?;
    Ok(())
}
