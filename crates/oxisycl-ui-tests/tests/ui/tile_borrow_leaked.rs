#![forbid(unsafe_code)]

use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::prelude::*;

fn submit(queue: &Queue, numbers: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, 8>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<8>, memory, move |mut group, (mut tile, mut values)| {
            let leaked: &mut oxisycl::group::Tile<u32, 8> = Box::leak(Box::new(tile));
            let shared: &oxisycl::group::Tile<u32, 8> = leaked;
            group.for_each(&mut *leaked, move |_, own| *own = 1);
            group.for_each(shared, move |_, _| ());
            let _ = (numbers, &mut group, &mut values);
        })
    })
}

fn main() {}
