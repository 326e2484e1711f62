//! Arguments beside kernels: the legal twins of the programs about them that must not compile.
#![forbid(unsafe_code)]

use std::num::Wrapping;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::argument::{Copied, Keep};
use oxisycl::group::{Fixed1, Local};
use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
struct Plain(#[allow(dead_code)] f32);

/// Line by line what `arguments_of_the_host.rs` passes, with the least change that makes it an argument.
fn twins_of_addresses_of_the_host() -> oxisycl::Result<()> {
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    let number = 1u32;
    queue.parallel_for_with(8, (x.read(), String::from("text")), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, number), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Plain(1.0)), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Arc::new(1u8)), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, u32::wrapping_neg(number)), |_, _| {})?;
    queue.parallel_for_with(8, [x.read()], |_, _| {})?;
    queue.parallel_for_with(8, &x.placeholder(Read), |_, _| {})?;
    queue.parallel_for_with(8, Copied(&[number]), |_, _| {})?;
    queue.parallel_for_with(8, Keep(Box::new(|| ()) as Box<dyn Fn() + Send>), |_, ()| {})?;
    queue.parallel_for_with(8, vec!['t'], |_, _| {})?;
    queue.parallel_for_with(8, Arc::new(Wrapping(1u8)), |_, _| {})?;
    queue.parallel_for_with(8, Some([String::new()]), |_, _| {})?;
    queue.single_task_with(Copied(&[1u8, 2][..]), |_, _| {})?;
    queue.parallel_for_work_group_with(1, Fixed1::<8>, Local::<u32, 8>::new(), 1u8, |_, _, _| {})?;
    Ok(())
}

/// What `argument_leaves_its_kernel.rs` does with the memory, done with a number of it.
fn twin_of_an_argument_that_leaves() -> oxisycl::Result<()> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let queue = Queue::default()?;
    queue.parallel_for_with(8, vec![1u32; 8], |_, table| NUMBER.store(table[0], Ordering::Relaxed))?;
    Ok(())
}

fn main() -> oxisycl::Result<()> {
    twins_of_addresses_of_the_host()?;
    twin_of_an_argument_that_leaves()?;
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    let shared = queue.malloc_shared::<u32>(8)?;
    // Pointers of the device library, and memory of one value.
    queue.parallel_for_with(8, (shared.pointer(), Box::new(1u8), vec![1u8]), |_, _| {})?;
    queue.submit(|cg| {
        let x = cg.access(&x, ReadWrite);
        cg.parallel_for_with(8, x, |item, x| x.update(item, |x| x + 1.0))
    })?;
    queue.wait()
}
