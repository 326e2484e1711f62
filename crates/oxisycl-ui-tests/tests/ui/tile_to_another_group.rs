#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

fn submit(queue: &Queue) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let kept: &_ = Box::leak(Box::new(std::sync::Mutex::new(None)));
        cg.parallel_for_work_group(4, Fixed1::<8>, Local::<u32, 8>::new(), move |_, tile| {
            *kept.lock().unwrap() = Some(tile);
        })
    })
}

fn main() {}
