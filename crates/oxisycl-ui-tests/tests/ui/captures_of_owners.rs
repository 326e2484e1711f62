//! A kernel captures values that can be copied, not owners of memory; elements belong into a buffer.
#![forbid(unsafe_code)]

use std::collections::HashMap;

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let name = String::from("saxpy");
    queue.single_task(move |_| println!("{name}"))?;
    let table = HashMap::from([(1u32, 2u32)]);
    queue.parallel_for(8, move |item| println!("{}", table[&(item.index() as u32)]))?;
    Ok(())
}
