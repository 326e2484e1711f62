//! Doubles what another plug-in has written.

use oxisycl::prelude::*;

#[unsafe(no_mangle)]
pub fn double(queue: &Queue, numbers: &Buffer<f32, 1>) -> Event {
    let submitted = queue.submit(|cg| {
        let view = cg.access(numbers, ReadWrite);
        cg.parallel_for(numbers.range(), move |item| view.update(item, |x| x * 2.0))
    });
    submitted.unwrap()
}
