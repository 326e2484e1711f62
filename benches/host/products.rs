//! Matrices: the product by `view[[y, x]]` and by rows, and Floyd-Warshall, which is many small launches.

use std::error::Error;

use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::beside::n_different;
use crate::case::Case;
use crate::protocol::Measured;
use crate::{Setting, finish};

/// Sides differ from run to run by up to that.
const SPREAD: usize = 8;
const BAR: f64 = 0.9;
const PEER: &str = "rows, rayon";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    product(setting, results, "plain.matmul", |queue, n, [a, b, c]| {
        finish(queue.submit(|cg| {
            let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write.no_init()));
            cg.parallel_for([n, n], move |item: Item<2>| {
                let (a, b) = (a.view(item), b.view(item));
                let Id([y, x]) = item.id();
                c.set(item, (0..n).map(|k| a[[y, k]] * b[[k, x]]).sum());
            })
        }));
    })?;
    product(setting, results, "plain.matmul.rows", |queue, n, [a, b, c]| {
        finish(queue.submit(|cg| {
            let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write.no_init()));
            cg.parallel_for([n, n], move |item: Item<2>| {
                let Id([y, x]) = item.id();
                let (a, b) = (a.view(item).row(y), b.view(item));
                c.set(item, a.iter().enumerate().map(|(k, a)| a * b.row(k)[x]).sum());
            })
        }));
    })?;
    floyd_warshall(setting, results)
}

type Matrix = Buffer<f32, 2>;

fn product(
    setting: &Setting,
    results: &mut Vec<Measured>,
    name: &str,
    multiply: impl Fn(&Queue, usize, [&Matrix; 3]),
) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(name) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 320 + random.below(SPREAD);
    let (left, right) = (random.floats(n * n), random.floats(n * n));
    let (a, b) = (Buffer::from_slice_nd(&left, [n, n])?, Buffer::from_slice_nd(&right, [n, n])?);
    let c = Buffer::uninit([n, n])?;
    let mut product = vec![0.0; n * n];
    let mut theirs = || {
        product.par_chunks_mut(n).enumerate().for_each(|(y, product)| {
            for x in 0..n {
                let mut sum = 0.0;
                for k in 0..n {
                    sum += left[y * n + k] * right[k * n + x];
                }
                product[x] = sum;
            }
        });
    };
    let case = Case { name, unit: "GFLOP/s", amount: 2e-9 * (n * n * n) as f64, peer: PEER, bar: BAR };
    let mut ours = || multiply(&setting.queue, n, [&a, &b, &c]);
    setting.measure(&case, &mut ours, &mut theirs, results);
    // In lanes, a product and a sum are rounded once.
    assert_eq!(n_different(&c.to_vec()?, &product, 1e-4), 0, "{name} of {n}: elements that differ");
    Ok(())
}

/// Lengths of the shortest ways, one launch for each place that ways may lead over.
fn floyd_warshall(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.floyd_warshall";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 192 + random.below(SPREAD);
    let mut lengths = random.floats(n * n);
    for (place, length) in lengths.iter_mut().enumerate() {
        *length = if place % (n + 1) == 0 { 0.0 } else { 50.0 + 50.0 * *length };
    }
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let mut ours = || found = shortest(&setting.queue, &lengths, n).expect("the commands succeed");
    let mut theirs = || {
        let (mut old, mut new) = (lengths.clone(), vec![0.0_f32; n * n]);
        for over in 0..n {
            new.par_chunks_mut(n).enumerate().for_each(|(from, new)| {
                for to in 0..n {
                    new[to] = old[from * n + to].min(old[from * n + over] + old[over * n + to]);
                }
            });
            std::mem::swap(&mut old, &mut new);
        }
        expected = old;
    };
    let case = Case { name: NAME, unit: "G/s", amount: (n * n * n) as f64 / 1e9, peer: PEER, bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(found, expected, "{NAME} of {n}");
    Ok(())
}

fn shortest(queue: &Queue, lengths: &[f32], n: usize) -> oxisycl::Result<Vec<f32>> {
    let (mut old, mut new) = (Buffer::from_slice_nd(lengths, [n, n])?, Buffer::<f32, 2>::uninit([n, n])?);
    for over in 0..n {
        queue.submit(|cg| {
            let (old, new) = (cg.access(&old, Read), cg.access(&new, Write.no_init()));
            cg.parallel_for([n, n], move |item: Item<2>| {
                let v = old.view(item);
                let Id([from, to]) = item.id();
                new.set(item, v[[from, to]].min(v[[from, over]] + v[[over, to]]));
            })
        })?;
        std::mem::swap(&mut old, &mut new);
    }
    old.to_vec()
}
