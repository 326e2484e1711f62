//! An accessor gives nothing in the closure that records the command: its dependencies are not met yet.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        let first = data[[0]];
        let second = data.at([1]);
        cg.single_task(move |_| assert_eq!(first, second))
    })?;
    Ok(())
}
