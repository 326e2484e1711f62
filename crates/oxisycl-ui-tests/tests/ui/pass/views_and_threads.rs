//! What is only read may be shared with threads inside a kernel on the host.
#![forbid(unsafe_code)]

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (input, output) = (Buffer::from_elements(0..8u32)?, Buffer::from_vec(vec![0u32; 1])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        cg.single_task(move |task| {
            let view = input.view(task);
            let sum = std::thread::scope(|threads| {
                let (low, high) = view.as_slice().split_at(4);
                let low = threads.spawn(move || low.iter().sum::<u32>());
                let high = threads.spawn(move || high.iter().sum::<u32>() + view[0]);
                low.join().unwrap() + high.join().unwrap()
            });
            output.set_at(task, 0, sum);
        })
    })?;
    assert_eq!(output.into_vec()?, [28]);
    Ok(())
}
