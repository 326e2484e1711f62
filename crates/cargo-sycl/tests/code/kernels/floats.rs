//! Kernels that choose how strictly their floating-point operations are compiled.

use oxisycl::float::{Contract, Fast, Strict, contract, fast, strict, strict_task};
use oxisycl::math;
use oxisycl::prelude::*;

#[inline(never)]
fn product_and_sum(x: f32, y: f32) -> f32 {
    x * x + y
}

/// A kernel as a named type.
#[derive(Clone, Copy)]
struct Named<'cg>(Accessor<'cg, f32, 1, ReadWrite>);

impl<'wi> Kernel<Item<'wi, 1>> for Named<'_> {
    fn run(&self, item: Item<'wi, 1>) {
        self.0.update(item, |x| product_and_sum(x, 2.0));
    }
}

fn plain(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, move |item| data.update(item, |x| product_and_sum(x, 2.0)))
    })
}

fn strictly(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, strict(move |item| data.update(item, |x| product_and_sum(x, 2.0))))
    })
}

fn strictly_in_two_dimensions(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    let square = Buffer::from_vec_nd(buffer.to_vec()?, [8, 8])?;
    queue.submit(|cg| {
        let data = cg.access(&square, ReadWrite);
        cg.parallel_for([8, 8], strict(move |item| data.update(item, |x| product_and_sum(x, 2.0))))
    })
}

fn strictly_once(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.single_task(strict_task(move |task| {
            let cells = data.cells(task);
            cells[0].set(product_and_sum(cells[1].get(), 2.0));
        }))
    })
}

fn contracted(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, contract(move |item| data.update(item, |x| product_and_sum(x, 2.0))))
    })
}

fn quickly(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, fast(move |item| data.update(item, |x| x / 3.0 * 3.0 - x)))
    })
}

fn functions(x: f32) -> f32 {
    let angle = x.sin() + x.cos() + x.tan();
    let powers = x.exp() + x.exp2() + x.powf(0.3) + math::exp10(x) + math::powr(x, 0.3);
    let logarithms = x.ln() + x.log2() + x.log10();
    angle + powers + logarithms + x.sqrt() + math::rsqrt(x) + 1.0 / x + math::sincos(x).0 + f64::from(x).sin() as f32
}

fn plain_functions(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, move |item| data.update(item, functions))
    })
}

fn strict_functions(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, strict(move |item| data.update(item, functions)))
    })
}

fn fast_functions(queue: &Queue, buffer: &Buffer<f32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(64, fast(move |item| data.update(item, functions)))
    })
}

fn main() -> oxisycl::Result {
    let devices = Device::all()?;
    let host = devices.iter().find(|device| device.backend() == oxisycl::BackendKind::Host).expect("there is a host");
    let queue = Queue::new(host)?;
    let launches = [
        plain,
        strictly,
        strictly_in_two_dimensions,
        strictly_once,
        contracted,
        quickly,
        plain_functions,
        strict_functions,
        fast_functions,
    ];
    for launch in launches {
        let buffer = Buffer::from_vec((0..64).map(|i| 1.0 + i as f32 / 4096.0).collect())?;
        launch(&queue, &buffer)?.wait()?;
        println!("{}", buffer.to_vec()?.iter().map(|x| f64::from(*x)).sum::<f64>());
    }
    let buffer = Buffer::from_vec(vec![1.5f32; 64])?;
    queue
        .submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.launch(64, Strict(Named(data)))
        })?
        .wait()?;
    queue
        .submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.launch(64, Fast(Named(data)))
        })?
        .wait()?;
    queue
        .submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.launch(64, Contract(Named(data)))
        })?
        .wait()
}
