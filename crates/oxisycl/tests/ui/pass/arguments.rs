//! Arguments beside kernels: the legal twins of the programs about them that must not compile.
#![forbid(unsafe_code)]

use std::sync::Arc;

use oxisycl::argument::{Copied, Keep};
use oxisycl::group::Local;
use oxisycl::prelude::*;

#[derive(Clone, Copy, DeviceCopyable)]
struct Plain(#[allow(dead_code)] f32);

fn main() -> oxisycl::Result<()> {
    let (queue, x) = (Queue::default()?, Buffer::from_vec(vec![1.0f32; 8])?);
    let number = 1u32;
    queue.parallel_for_with(8, (x.read(), "text".to_owned()), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, number), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Plain(1.0)), |_, _| {})?;
    queue.parallel_for_with(8, (1u8, Arc::new(1u8)), |_, _| {})?;
    queue.parallel_for_with(8, [x.read()], |_, _| {})?;
    queue.parallel_for_with(8, Box::new(1u8), |_, _| {})?;
    queue.parallel_for_with(8, vec![1u8], |_, _| {})?;
    queue.parallel_for_with(8, Some(String::new()), |_, _| {})?;
    queue.parallel_for_with(8, Keep(Box::new(|| ()) as Box<dyn Fn() + Send>), |_, ()| {})?;
    queue.single_task_with(Copied(&[1u8, 2]), |_, _| {})?;
    queue.submit(|cg| {
        let x = cg.access(&x, ReadWrite);
        cg.parallel_for_with(8, x, |item, x| x.update(item, |x| x + 1.0))
    })?;
    queue.parallel_for_work_group_with(1, oxisycl::group::Fixed1::<8>, Local::<u32, 8>::new(), 1u8, |_, _, _| {})?;
    Ok(())
}
