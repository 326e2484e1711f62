#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

fn submit(queue: &Queue) -> oxisycl::Result<Event> {
    let mut kept = None;
    queue.submit(|cg| cg.parallel_for_work_group(4, Fixed1::<8>, Local::<u32, 8>::new(), |_, tile| kept = Some(tile)))
}

fn main() {}
