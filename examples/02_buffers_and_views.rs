//! Buffers in two dimensions, read at any index through a view: the transposed matrix, then a product with it.
//!
//! No command says what it waits for. The second reads what the first writes, and that is enough.
//!
//! `cargo run --example 02_buffers_and_views`

use oxisycl::prelude::*;

const ROWS: usize = 60;
const COLUMNS: usize = 40;

/// The scalar product of two rows. Views go into functions like slices do.
fn dot(a: View<'_, f64, 2>, row: usize, b: View<'_, f64, 2>, column: usize) -> f64 {
    (0..a.range()[1]).map(|k| a[[row, k]] * b[[k, column]]).sum()
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let a = Buffer::from_vec_nd((0..ROWS * COLUMNS).map(|i| (i % 7) as f64).collect(), [ROWS, COLUMNS])?;
    let transposed = Buffer::<f64, 2>::uninit([COLUMNS, ROWS])?;
    let product = Buffer::<f64, 2>::uninit([ROWS, ROWS])?;

    queue.submit(|cg| {
        // `no_init`: every element is written, so no old contents are needed.
        let (a, transposed) = (cg.access(&a, Read), cg.access(&transposed, Write.no_init()));
        cg.parallel_for([COLUMNS, ROWS], move |item: Item<2>| {
            let a = a.view(item);
            transposed.set(item, a[[item.get(1), item.get(0)]]);
        })
    })?;
    queue.submit(|cg| {
        let (a, b) = (cg.access(&a, Read), cg.access(&transposed, Read));
        let product = cg.access(&product, Write.no_init());
        cg.parallel_for([ROWS, ROWS], move |item: Item<2>| {
            product.set(item, dot(a.view(item), item.get(0), b.view(item), item.get(1)));
        })
    })?;

    // On the host a buffer is used through a host accessor.
    let (a, product) = (a.host_access(Read)?, product.host_access(Read)?);
    for i in 0..ROWS {
        for j in 0..ROWS {
            let expected: f64 = (0..COLUMNS).map(|k| a[[i, k]] * a[[j, k]]).sum();
            assert_eq!(product[[i, j]], expected);
            assert_eq!(product[[i, j]], product[[j, i]]);
        }
    }
    println!("a matrix of {ROWS} x {COLUMNS} times its transpose is symmetric; element [0, 0] is {}", product[[0, 0]]);
    Ok(())
}
