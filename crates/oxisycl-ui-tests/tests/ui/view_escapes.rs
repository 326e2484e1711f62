//! A view of a read accessor must not outlive the call of the kernel.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::sync::Mutex;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let shared: &'static Mutex<Option<&u32>> = Box::leak(Box::new(Mutex::new(None)));
    queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        cg.parallel_for(8, move |item| *shared.lock().unwrap() = Some(data.at(item, 0)))
    })?;
    Ok(())
}
