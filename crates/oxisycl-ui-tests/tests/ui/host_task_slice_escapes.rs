//! A slice of a host task's accessor must not outlive the task.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use std::sync::Mutex;

fn main() -> oxisycl::Result<()> {
    static LAST: Mutex<Option<&'static [u32]>> = Mutex::new(None);
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access_host(&buffer, Read);
        cg.host_task(move |scope| {
            let data = Box::leak(Box::new(data));
            *LAST.lock().unwrap() = Some(data.slice(scope));
        })
    })?;
    Ok(())
}
