//! Loops over elements of buffers in two and three dimensions: by indices, and in the same order by rows.

use oxisycl::prelude::*;

fn product_by_indices(queue: &Queue, [a, b, c]: [&Buffer<f32, 2>; 3]) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write));
        cg.parallel_for(c.range(), move |item: Item<2>| {
            let (a, b) = (a.view(item), b.view(item));
            let Id([y, x]) = item.id();
            let mut sum = 0.0;
            for k in 0..a.range()[1] {
                sum += a[[y, k]] * b[[k, x]];
            }
            c.set(item, sum);
        })
    })
}

fn product_by_sums(queue: &Queue, [a, b, c]: [&Buffer<f32, 2>; 3]) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write));
        cg.parallel_for(c.range(), move |item: Item<2>| {
            let (a, b) = (a.view(item), b.view(item));
            let Id([y, x]) = item.id();
            c.set(item, (0..a.range()[1]).map(|k| a[[y, k]] * b[[k, x]]).sum());
        })
    })
}

fn product_by_rows(queue: &Queue, [a, b, c]: [&Buffer<f32, 2>; 3]) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write));
        cg.parallel_for(c.range(), move |item: Item<2>| {
            let Id([y, x]) = item.id();
            let (a, b) = (a.view(item).row(y), b.view(item));
            c.set(item, a.iter().enumerate().map(|(k, a)| a * b.row(k)[x]).sum());
        })
    })
}

fn line_by_indices(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let space = space.view(item);
            let Id([z, y]) = item.id();
            let mut sum = 0.0;
            for x in 0..space.range()[2] {
                sum += space[[z, y, x]];
            }
            sums.set(item, sum);
        })
    })
}

fn line_by_sums(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let space = space.view(item);
            let Id([z, y]) = item.id();
            sums.set(item, (0..space.range()[2]).map(|x| space[[z, y, x]]).sum());
        })
    })
}

fn line_by_rows(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let Id([z, y]) = item.id();
            sums.set(item, space.view(item).row(z, y).iter().sum());
        })
    })
}

fn planes_by_indices(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let space = space.view(item);
            let Id([y, x]) = item.id();
            let mut sum = 0.0;
            for z in 0..space.range()[0] {
                sum += space[[z, y, x]];
            }
            sums.set(item, sum);
        })
    })
}

fn planes_by_sums(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let space = space.view(item);
            let Id([y, x]) = item.id();
            sums.set(item, (0..space.range()[0]).map(|z| space[[z, y, x]]).sum());
        })
    })
}

fn planes_by_rows(queue: &Queue, space: &Buffer<f32, 3>, sums: &Buffer<f32, 2>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let (space, sums) = (cg.access(space, Read), cg.access(sums, Write));
        cg.parallel_for(sums.range(), move |item: Item<2>| {
            let space = space.view(item);
            let Id([y, x]) = item.id();
            sums.set(item, (0..space.range()[0]).map(|z| space.row(z, y)[x]).sum());
        })
    })
}

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let [a, b, c] = [1.0, 2.0, 0.0].map(|x| Buffer::from_vec_nd(vec![x; 64], [8, 8]).expect("64 elements"));
    let space = Buffer::from_vec_nd(vec![3.0; 512], [8, 8, 8])?;
    product_by_indices(&queue, [&a, &b, &c])?;
    product_by_sums(&queue, [&a, &b, &c])?;
    product_by_rows(&queue, [&a, &b, &c])?;
    line_by_indices(&queue, &space, &c)?;
    line_by_sums(&queue, &space, &c)?;
    line_by_rows(&queue, &space, &c)?;
    planes_by_indices(&queue, &space, &c)?;
    planes_by_sums(&queue, &space, &c)?;
    planes_by_rows(&queue, &space, &c)?;
    println!("{:?}", c.into_vec()?[0]);
    Ok(())
}
