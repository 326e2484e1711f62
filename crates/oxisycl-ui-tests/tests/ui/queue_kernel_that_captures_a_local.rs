//! The shortcuts of a queue take kernels that capture nothing borrowed.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let total = std::sync::atomic::AtomicU32::new(0);
    queue.parallel_for(8, |_| _ = total.fetch_add(1, std::sync::atomic::Ordering::Relaxed))?;
    queue.wait()
}
