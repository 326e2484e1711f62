//! Arrays of `ndarray` in kernels: a matrix product, compared with `dot` on the host. No element is copied on the way into the buffers and back.
//!
//! `cargo run --example 08_ndarray --features ndarray`

use ndarray::{Array2, Axis};
use oxisycl::prelude::*;

const ROWS: usize = 30;
const INNER: usize = 20;
const COLUMNS: usize = 40;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let a = Array2::from_shape_fn([ROWS, INNER], |(row, k)| (row + 2 * k) as f64);
    let b = Array2::from_shape_fn([INNER, COLUMNS], |(k, column)| (3 * k) as f64 - column as f64);
    let expected = a.dot(&b);

    // A buffer takes over an array's memory; of a view it has a copy.
    let (a, b) = (Buffer::from_array(a)?, Buffer::from_array_view(b.view())?);
    let product = Buffer::from_array(Array2::<f64>::zeros([ROWS, COLUMNS]))?;
    queue.submit(|cg| {
        let (a, b, product) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&product, Write));
        cg.parallel_for([ROWS, COLUMNS], move |item: Item<2>| {
            let (a, b) = (a.view(item), b.view(item));
            let [row, column] = [item.get(0), item.get(1)];
            product.set(item, (0..INNER).map(|k| a[[row, k]] * b[[k, column]]).sum());
        })
    })?;

    // The host sees a buffer as an array, and gets it as one in the end.
    let sums = product.host_access(Read)?.array_view().sum_axis(Axis(1));
    let product = product.into_array()?;
    assert_eq!(product, expected);
    assert_eq!(sums, expected.sum_axis(Axis(1)));
    println!("a product of {ROWS} x {COLUMNS} is that of ndarray; its first row sums to {}", sums[0]);
    Ok(())
}
