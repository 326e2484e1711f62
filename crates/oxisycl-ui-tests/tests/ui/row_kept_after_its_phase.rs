#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::prelude::*;

fn submit(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, 8>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<8>, memory, move |mut group, (mut tile, mut values)| {
            let mut kept: Option<&mut [u32]> = None;
            group.for_each(oxisycl::group::Rows(&mut tile, 1), |_, row| kept = Some(row));
            let _ = (numbers, &mut group, &mut values, &mut tile);
        })
    })
}

fn main() {}
