//! A matrix product whose inner loops read windows of views, against the same blocked loop over slices, shared out by rayon.
//! For information: it shows what the bounds of safe two-dimensional access cost.

use oxisycl::prelude::*;
use oxisycl::{Id, Result};
use rayon::prelude::*;

use crate::arguments::Options;
use crate::protocol::{Measured, Rounds, seconds};

const N: usize = 512;
/// The block of the product that stays in registers, and the depth of the windows.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
const DEPTH: usize = 64;

const NAME: &str = "host.gemm_window";

type Sums = [[f32; COLUMNS]; ROWS];

/// Adds the products of one column of `a` and one row of `b`.
#[inline(always)]
fn step(sums: &mut Sums, a: [f32; ROWS], b: &[f32; COLUMNS]) {
    for (sums, a) in sums.iter_mut().zip(a) {
        for (sum, b) in sums.iter_mut().zip(b) {
            *sum += a * b;
        }
    }
}

fn with_windows(queue: &Queue, a: &Buffer<f32, 2>, b: &Buffer<f32, 2>, c: &Buffer<f32, 2>) -> Result {
    let event = queue.submit(|cg| {
        let (a, b) = (cg.access(a, Read), cg.access(b, Read));
        let c = cg.access_chunks(c, Write, [ROWS, COLUMNS]);
        cg.parallel_for(c.n_blocks(), move |item| {
            let block = c.block(item);
            let Id([y, x]) = block.origin();
            let mut sums = Sums::default();
            for k in (0..N).step_by(DEPTH) {
                let a = a.view(item).window::<ROWS, DEPTH>([y, k]);
                let b = b.view(item).window::<DEPTH, COLUMNS>([k, x]);
                for k in 0..DEPTH {
                    step(&mut sums, std::array::from_fn(|row| a[[row, k]]), b.row(k));
                }
            }
            for (y, sums) in sums.iter().enumerate() {
                for (x, sum) in sums.iter().enumerate() {
                    block.set([y, x], *sum);
                }
            }
        })
    })?;
    event.wait()
}

fn with_slices(a: &[f32], b: &[f32], c: &mut [f32]) {
    c.par_chunks_mut(ROWS * N).zip(a.par_chunks(ROWS * N)).for_each(|(c, a)| {
        for x in (0..N).step_by(COLUMNS) {
            let mut sums = Sums::default();
            for k in 0..N {
                let column = std::array::from_fn(|row| a[row * N + k]);
                if let Some(row) = b[k * N + x..].first_chunk() {
                    step(&mut sums, column, row);
                }
            }
            for (c, sums) in c.chunks_exact_mut(N).zip(&sums) {
                c[x..x + COLUMNS].copy_from_slice(sums);
            }
        }
    });
}

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    if !options.wants(NAME) {
        return Ok(());
    }
    let queue = Queue::default()?;
    let matrix = |seed: usize| -> Vec<f32> { (0..N * N).map(|i| ((i * seed) % 17) as f32 * 0.25).collect() };
    let (a, b) = (matrix(7), matrix(11));
    let mut c = vec![0f32; N * N];
    let [left, right, product] =
        [Buffer::from_slice_nd(&a, [N, N])?, Buffer::from_slice_nd(&b, [N, N])?, Buffer::from_slice_nd(&c, [N, N])?];
    let gflops = |seconds: f64| 2.0 * (N * N * N) as f64 / seconds * 1e-9;
    let rounds = Rounds::run(
        options.rounds,
        None,
        || gflops(seconds(|| with_windows(&queue, &left, &right, &product).expect("the command succeeds"))),
        || gflops(seconds(|| with_slices(&a, &b, &mut c))),
    );
    assert_eq!(product.to_vec()?, c, "both add the products in the same order");
    let measured = rounds.measured(NAME, "GFLOP/s", "blocked loop, rayon");
    measured.print();
    results.push(measured);
    Ok(())
}
