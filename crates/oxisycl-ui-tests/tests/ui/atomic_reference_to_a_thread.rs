//! A reference for atomic operations must not be shared with a thread: in local memory its operations are plain on the host.
#![forbid(unsafe_code)]

use oxisycl::atomic::Relaxed;
use oxisycl::group::{Atomically, Fixed1, Local};
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    Queue::default()?.submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<8>, Local::<u32, 8>::new(), |mut group, mut tile| {
            group.for_each(Atomically(&mut tile), |_, elements| {
                let element = elements.atomic_ref(0);
                std::thread::scope(|scope| {
                    scope.spawn(move || element.fetch_add(1, Relaxed));
                    element.fetch_add(1, Relaxed);
                });
            });
        })
    })?;
    Ok(())
}
