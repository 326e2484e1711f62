//! A work-item must not leave its item where another one finds it.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::sync::Mutex;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let shared: &'static Mutex<Option<Item<1>>> = Box::leak(Box::new(Mutex::new(None)));
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(8, move |item| {
            if let Some(other) = shared.lock().unwrap().replace(item) {
                data.set(other, 1);
            }
        })
    })?;
    Ok(())
}
