//! Host tasks take their captures by value and borrow slices; helpers are functions over scope and accessor.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;
use oxisycl::{HostScope, HostTaskAccessor};

fn increment<'cg>(scope: HostScope<'_, 'cg>, data: &mut HostTaskAccessor<'cg, u32, 1, ReadWrite>) {
    data.slice_mut(scope).iter_mut().for_each(|x| *x += 1);
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (input, output) = (Buffer::from_elements(0..8u32)?, Buffer::from_vec(vec![0u32; 8])?);
    let names = vec!["a".to_owned(), "b".to_owned()];
    queue.submit(|cg| {
        let input = cg.access_host(&input, Read);
        let mut output = cg.access_host(&output, ReadWrite);
        cg.host_task(move |scope| {
            output.slice_mut(scope).copy_from_slice(input.slice(scope));
            increment(scope, &mut output);
            *output.at_mut(scope, 0) = names.len() as u32;
            // Slices may be used by threads that end before the task.
            let (slice, rest) = output.slice_mut(scope).split_at_mut(4);
            std::thread::scope(|threads| {
                threads.spawn(|| slice[1] = 100);
                threads.spawn(|| rest[0] = 200);
            });
        })
    })?;
    assert_eq!(output.into_vec()?, [2, 100, 3, 4, 200, 6, 7, 8]);
    Ok(())
}
