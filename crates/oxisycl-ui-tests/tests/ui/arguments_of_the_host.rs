//! Addresses of the host are no arguments of kernels, wherever they stand.
#![forbid(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use oxisycl::group::Local;
use oxisycl::prelude::*;

#[derive(Clone, Copy)]
struct Plain(#[allow(dead_code)] f32);

fn main() -> oxisycl::Result<()> {
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    let number = 1u32;
    queue.parallel_for_with(8, (x.read(), "text"), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, &number), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Plain(1.0)), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Rc::new(1u8)), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, u32::wrapping_neg as fn(u32) -> u32), |_, _| {})?;
    queue.parallel_for_with(8, [&x], |_, _| {})?;
    queue.parallel_for_with(8, x.host_access(Read)?, |_, _| {})?;
    queue.parallel_for_with(8, &raw const number, |_, _| {})?;
    queue.parallel_for_with(8, Box::new(|| ()) as Box<dyn Fn() + Send>, |_, _| {})?;
    queue.parallel_for_with(8, vec!["text"], |_, _| {})?;
    queue.parallel_for_with(8, Arc::new(Cell::new(1u8)), |_, _| {})?;
    queue.parallel_for_with(8, Some(vec![String::new()]), |_, _| {})?;
    queue.single_task_with(&[1u8, 2][..], |_, _| {})?;
    queue.parallel_for_with(8, Local::<u32, 8>::new(), |_, _| {})?;
    Ok(())
}
