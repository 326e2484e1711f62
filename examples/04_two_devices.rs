//! Two devices share one buffer. Each works on its half, and then reads what the other wrote: the runtime moves only that.
//!
//! The devices are simulated, with memory of their own, so that the example runs on every machine.
//!
//! `cargo run --example 04_two_devices`

use oxisycl::observe;
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};

const LENGTH: usize = 1024;
const HALF: usize = LENGTH / 2;

fn main() -> oxisycl::Result<()> {
    let simulator = Simulator::new(SimulatedConfig::new(2))?;
    let queues = simulator.devices().iter().map(Queue::new).collect::<oxisycl::Result<Vec<_>>>()?;

    // The state of the data is kept per page. With one page for each half the two kernels do not wait for each other.
    let data = BufferOptions::new().page_size(HALF).uninit::<u32>(LENGTH)?;
    for (i, queue) in queues.iter().enumerate() {
        queue.submit(|cg| {
            let half = cg.access_range(&data, Write.no_init(), i * HALF, HALF);
            cg.parallel_for(HALF, move |item| half.set(item, (i * HALF + item.index()) as u32))
        })?;
    }

    let before = observe::counters();
    let sums = BufferOptions::new().page_size(1).uninit::<u32>(2)?;
    for (i, queue) in queues.iter().enumerate() {
        queue.submit(|cg| {
            let other = cg.access_range(&data, Read, (1 - i) * HALF, HALF);
            let sum = cg.access_range(&sums, Write.no_init(), i, 1);
            cg.parallel_for(1, move |item| sum.set(item, other.view(item).as_slice().iter().sum()))
        })?;
    }
    let sums = sums.to_vec()?;
    let moved = observe::counters() - before;

    let expected: u32 = (0..LENGTH as u32).sum();
    assert_eq!(sums[0] + sums[1], expected);
    assert_eq!(moved.bytes_between_devices as usize, LENGTH * size_of::<u32>());
    println!("{} and {} found {} and {}", queues[0].device().name(), queues[1].device().name(), sums[1], sums[0]);
    println!(
        "{} bytes went from device to device in {} copies",
        moved.bytes_between_devices, moved.transfers_between_devices
    );
    Ok(())
}
