//! Kernels may be types, with accessors in them, and generic.
#![forbid(unsafe_code)]

use oxisycl::SingleKernel;
use oxisycl::prelude::*;

#[derive(Clone, Copy)]
struct Axpy<'cg, T> {
    a: T,
    x: Accessor<'cg, T, 1, Read>,
    y: Accessor<'cg, T, 1, ReadWrite>,
}

impl<T> Kernel<Item<'_, 1>> for Axpy<'_, T>
where
    T: DeviceCopyable + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
{
    fn run(&self, item: Item<'_, 1>) {
        self.y.update(item, |y| self.a * self.x.get(item) + y);
    }
}

#[derive(Clone, Copy)]
struct Sum<'cg> {
    data: Accessor<'cg, f32, 1, Read>,
    sum: Accessor<'cg, f32, 1, Write>,
}

impl SingleKernel for Sum<'_> {
    fn run(&self, task: Single<'_>) {
        self.sum.set_at(task, 0, self.data.view(task).iter().sum());
    }
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let (x, y) = (Buffer::from_vec(vec![1.0f32; 8])?, Buffer::from_vec(vec![2.0f32; 8])?);
    let sum = Buffer::from_vec(vec![0.0f32])?;
    queue.submit(|cg| {
        let axpy = Axpy { a: 3.0, x: cg.access(&x, Read), y: cg.access(&y, ReadWrite) };
        cg.launch(8, axpy)
    })?;
    queue.submit(|cg| {
        let kernel = Sum { data: cg.access(&y, Read), sum: cg.access(&sum, Write) };
        cg.launch_single(kernel)
    })?;
    assert_eq!(sum.into_vec()?, [40.0]);
    Ok(())
}
