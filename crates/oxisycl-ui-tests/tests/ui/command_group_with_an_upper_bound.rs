//! Kernels outlive `submit`: no lifetime of the caller may bound a command group's from above.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn double<'cg, 'local: 'cg>(cg: &mut Handler<'cg>, buffer: &Buffer<u32, 1>, factor: &'local u32) -> oxisycl::Result {
    let data = cg.access(buffer, ReadWrite);
    cg.parallel_for(8, move |item| data.update(item, |x| x * factor))
}

fn main() -> oxisycl::Result<()> {
    let (queue, buffer) = (Queue::default()?, Buffer::from_vec(vec![0u32; 8])?);
    let factor = 2;
    queue.submit(|cg| double(cg, &buffer, &factor))?;
    Ok(())
}
