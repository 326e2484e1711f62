//! The peers in plain Rust, shared out by rayon: the loops that one would write without OxiSYCL.

use rayon::prelude::*;

const TILE: usize = 16;

/// The product of square matrices by tiles, the algorithm of the kernel.
pub(crate) fn multiply(n: usize, left: &[f32], right: &[f32], product: &mut [f32]) {
    product.par_chunks_mut(TILE * n).enumerate().for_each(|(row, product)| {
        for column in 0..n / TILE {
            let (mut a, mut b, mut sums) = ([0.0; TILE * TILE], [0.0; TILE * TILE], [0.0; TILE * TILE]);
            for step in 0..n / TILE {
                for y in 0..TILE {
                    a[y * TILE..][..TILE].copy_from_slice(&left[(row * TILE + y) * n + step * TILE..][..TILE]);
                    b[y * TILE..][..TILE].copy_from_slice(&right[(step * TILE + y) * n + column * TILE..][..TILE]);
                }
                for y in 0..TILE {
                    for x in 0..TILE {
                        for k in 0..TILE {
                            sums[y * TILE + x] += a[y * TILE + k] * b[k * TILE + x];
                        }
                    }
                }
            }
            for y in 0..TILE {
                product[y * n + column * TILE..][..TILE].copy_from_slice(&sums[y * TILE..][..TILE]);
            }
        }
    });
}

/// Means of neighbours, row by row. The input has a border.
pub(crate) fn smooth(n: usize, input: &[f32], output: &mut [f32]) {
    output.par_chunks_mut(n).enumerate().for_each(|(y, output)| {
        let row = |y: usize| &input[y * (n + 2)..][..n + 2];
        let (above, own, below) = (row(y), row(y + 1), row(y + 2));
        for x in 0..n {
            output[x] = 0.25 * (own[x] + own[x + 2] + (above[x + 1] + below[x + 1]));
        }
    });
}

/// Local bins, in runs of as many bytes as one load brings.
pub(crate) fn count(bytes: &[u8]) -> Vec<u32> {
    let bins = bytes.par_chunks(1 << 16).fold(
        || [0_u32; 256],
        |mut bins, part| {
            let (runs, rest) = part.as_chunks::<16>();
            for run in runs {
                for byte in run {
                    bins[usize::from(*byte)] += 1;
                }
            }
            for byte in rest {
                bins[usize::from(*byte)] += 1;
            }
            bins
        },
    );
    let add = |mut a: [u32; 256], b: [u32; 256]| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        a
    };
    bins.reduce(|| [0; 256], add).to_vec()
}

/// Sums of chunks, then totals from the sum before each on.
pub(crate) fn scan(numbers: &[u32], totals: &mut [u32]) {
    const CHUNK: usize = 1 << 14;
    let sum = |chunk: &[u32]| chunk.iter().fold(0_u32, |sum, x| sum.wrapping_add(*x));
    let mut sums: Vec<u32> = numbers.par_chunks(CHUNK).map(sum).collect();
    let mut before = 0_u32;
    for sum in &mut sums {
        (*sum, before) = (before, before.wrapping_add(*sum));
    }
    numbers.par_chunks(CHUNK).zip(totals.par_chunks_mut(CHUNK)).zip(sums).for_each(|((numbers, totals), mut total)| {
        for (to, number) in totals.iter_mut().zip(numbers) {
            total = total.wrapping_add(*number);
            *to = total;
        }
    });
}

/// Elements of a chunk of a sum.
const CHUNK: usize = 1 << 16;

macro_rules! sums {
    ($t:ty, $sum:ident) => {
        /// The sum of chunks with eight accumulators each.
        pub(crate) fn $sum(values: &[$t]) -> $t {
            let of_chunk = |chunk: &[$t]| {
                let (eights, rest) = chunk.as_chunks::<8>();
                let mut sums = [0.0; 8];
                for eight in eights {
                    for (sum, value) in sums.iter_mut().zip(eight) {
                        *sum += value;
                    }
                }
                sums.iter().chain(rest).sum::<$t>()
            };
            values.par_chunks(CHUNK).map(of_chunk).sum()
        }
    };
}

sums!(f32, sum_f32);
sums!(f64, sum_f64);

/// The scalar product, as the sums.
pub(crate) fn dot_f32(x: &[f32], y: &[f32]) -> f32 {
    let of_chunk = |(x, y): (&[f32], &[f32])| {
        let ((xs, x_rest), (ys, y_rest)) = (x.as_chunks::<8>(), y.as_chunks::<8>());
        let mut sums = [0.0; 8];
        for (x, y) in xs.iter().zip(ys) {
            for i in 0..8 {
                sums[i] += x[i] * y[i];
            }
        }
        sums.iter().sum::<f32>() + x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum::<f32>()
    };
    x.par_chunks(CHUNK).zip(y.par_chunks(CHUNK)).map(of_chunk).sum()
}
