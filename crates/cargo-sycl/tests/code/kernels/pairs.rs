//! Kernels that gain by two work-items in each thread of a GPU, and kernels that must not have them.

use oxisycl::prelude::*;

type Column = Buffer<f64, 1>;

fn main() -> oxisycl::Result {
    let n = 1001;
    let [a, b, c] = [1.0, 2.0, 0.0].map(|x: f64| Buffer::from_vec(vec![x; n]));
    let (a, b, c) = (a?, b?, c?);
    let queue = Queue::builder().build()?;
    copy(&queue, &a, &c)?;
    triad(&queue, [&a, &b, &c], 0.4)?;
    triad_of_arguments(&queue, [&a, &b, &c], 0.4)?;
    own_check(&queue, &a, &b)?;
    sum(&queue, &b, &a)?;
    let (from, to) = (Buffer::from_vec_nd(a.to_vec()?, [7, 143])?, Buffer::from_vec_nd(vec![0.0; n], [7, 143])?);
    in_two_dimensions(&queue, &from, &to)?;
    assert_eq!(to.to_vec()?, vec![4.0 * 2.4; n]);
    Ok(())
}

fn copy(queue: &Queue, from: &Column, to: &Column) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
        cg.parallel_for(from.size(), move |item| to.set(item, from.get(item)))
    })
}

fn triad(queue: &Queue, [a, b, c]: [&Column; 3], s: f64) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Write.no_init()), cg.access(b, Read), cg.access(c, Read));
        cg.parallel_for(a.size(), move |item| a.set(item, b.get(item) + s * c.get(item)))
    })
}

/// The kernel of a triad, which gets what it needs as arguments.
fn triad_of_arguments(queue: &Queue, [a, b, c]: [&Column; 3], s: f64) -> oxisycl::Result<Event> {
    let arguments = (a.with(Write.no_init()), b.read(), c.read(), s);
    queue.parallel_for_with(a.size(), arguments, |item, (a, b, c, s)| a.set(item, b.get(item) + s * c.get(item)))
}

/// A check that each work-item makes for itself: in a panic record the position would be the one of the first.
fn own_check(queue: &Queue, from: &Column, to: &Column) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
        cg.parallel_for(from.size(), move |item| {
            assert!(item.index() != usize::MAX);
            to.set(item, from.get(item));
        })
    })
}

/// A loop, which hides loads behind its own work.
fn sum(queue: &Queue, from: &Column, to: &Column) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
        let n = from.size() / 250;
        cg.parallel_for(to.size(), move |item| {
            let view = from.view(item);
            to.set(item, (0..n).map(|i| view[i]).sum());
        })
    })
}

/// More than one dimension, where neighbours are not what a thread's second work-item would be.
fn in_two_dimensions(queue: &Queue, from: &Buffer<f64, 2>, to: &Buffer<f64, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
        cg.parallel_for(from.range(), move |item| to.set(item, from.get(item)))
    })
}
