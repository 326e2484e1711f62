//! A work-item of an nd-range must not leave its thread.
#![forbid(unsafe_code)]

use oxisycl::group::Fixed1;
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    queue.parallel_for_nd_range((64, Fixed1::<16>), (), |item, ()| {
        std::thread::scope(|threads| {
            threads.spawn(|| println!("{}", item.global_linear_id()));
        });
    })?;
    Ok(())
}
