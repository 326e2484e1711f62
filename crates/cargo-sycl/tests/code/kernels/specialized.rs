//! Kernels with specialization constants, in each form of launch, for the places in their code that a runtime can replace.

use oxisycl::argument::specialized;
use oxisycl::group::Fixed1;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;
use oxisycl::specialization::SpecId;

type Numbers = Buffer<f32, 1>;

#[derive(Clone, Copy, DeviceCopyable)]
struct Shape {
    radius: u32,
    weights: [f32; 3],
    is_open: bool,
    scale: f64,
    /// A number that is there for some values only.
    edge: Option<u16>,
}

static RADIUS: SpecId<usize> = SpecId::new(1);
static SHAPE: SpecId<Shape> =
    SpecId::new(Shape { radius: 1, weights: [1.0, 2.0, 4.0], is_open: false, scale: 2.0, edge: None });

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec(vec![1.0f32; 64])?;
    captured(&queue, &numbers)?;
    structured(&queue, &numbers)?;
    passed(&queue, &numbers)?;
    in_groups(&queue, &numbers)?;
    in_items(&queue, &numbers)?;
    reduced(&queue, &numbers)?;
    plain(&queue, &numbers)?;
    numbers.to_vec()?;
    Ok(())
}

fn captured(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (radius, numbers, other) = (cg.constant(&RADIUS), cg.access(numbers, ReadWrite), 5usize);
        cg.parallel_for(64, move |item| {
            let sum = (0..radius.get()).fold(0.0, |sum, i| sum + (i * i) as f32);
            numbers.update(item, |x| x + sum + other as f32)
        })
    })
}

fn structured(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (shape, numbers) = (cg.constant(&SHAPE), cg.access(numbers, ReadWrite));
        cg.parallel_for(64, move |item| {
            let Shape { radius, weights: [a, b, c], is_open, scale, edge } = shape.get();
            let base = if is_open { a + b * radius as f32 } else { c * f32::from(edge.unwrap_or(3)) };
            numbers.update(item, |x| (f64::from(x + base) * scale) as f32)
        })
    })
}

fn passed(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    let arguments = (specialized(3u32), 7u32, [specialized(2.5f32), specialized(3.5)], numbers.update());
    queue.parallel_for_with(64, arguments, |item, (n, plain, [a, b], numbers)| {
        numbers.update(item, |x| (0..n).fold(x, |x, _| a * x + b) + plain as f32)
    })
}

fn in_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (radius, numbers) = (cg.constant(&RADIUS), cg.access(numbers, ReadWrite));
        cg.parallel_for_work_group(2, Fixed1::<32>, (), move |mut group, ()| {
            group.for_each((), move |item, ()| numbers.update(item.global(), |x| x + radius.get() as f32))
        })
    })
}

fn in_items(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let range = NdRange::new(Range::new([64]), Range::new([32]));
        let arguments = (specialized(9u16), numbers.update());
        cg.parallel_for_nd_range_with(range, (), arguments, |item, (), (n, numbers)| {
            numbers.update(item.global(), |x| x + f32::from(n))
        })
    })
}

fn reduced(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let into = reduction(cg.access_range(numbers, ReadWrite, 0, 1), Sum);
        let power = specialized(4u32);
        cg.parallel_reduce_with(64, into, power, |item, sum, power| {
            *sum += (0..power).fold(1.0, |product, _| product * item.index() as f32)
        })
    })
}

/// Without a specialization constant.
fn plain(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.parallel_for_with(64, (3u32, numbers.update()), |item, (n, numbers)| {
        numbers.update(item, |x| (0..n).fold(x, |x, _| 2.0 * x))
    })
}
