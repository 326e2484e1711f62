//! Neighbours on grids by `view[[z, y, x]]` and `view[[y, x]]`: a stencil in three dimensions, Jacobi's iteration, and the game of life.

use std::error::Error;

use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::case::Case;
use crate::protocol::Measured;
use crate::random::Random;
use crate::{Setting, finish};

const BAR: f64 = 0.9;
const PEER: &str = "rows, rayon";
/// Sides differ from run to run by up to that.
const SPREAD: usize = 8;
/// Steps of Jacobi's iteration.
const STEPS: usize = 20;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    stencil(setting, results)?;
    inner_stencil(setting, results)?;
    jacobi(setting, results)?;
    life(setting, results)
}

/// Numbers from 0 to 1.
fn numbers(n: usize, random: &mut Random) -> Vec<f64> {
    (0..n).map(|_| (random.next() >> 11) as f64 / (1u64 << 53) as f64).collect()
}

/// The border stays as it is.
fn stencil(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.stencil";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 160 + random.below(SPREAD);
    let field = numbers(n * n * n, &mut random);
    let (input, output) = (Buffer::from_slice_nd(&field, [n, n, n])?, Buffer::<f64, 3>::uninit([n, n, n])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write.no_init()));
            cg.parallel_for([n, n, n], move |item: Item<3>| {
                let v = input.view(item);
                let Id([z, y, x]) = item.id();
                let on_border = z == 0 || y == 0 || x == 0 || z == n - 1 || y == n - 1 || x == n - 1;
                let mean = if on_border {
                    v[[z, y, x]]
                } else {
                    let around = v[[z - 1, y, x]]
                        + v[[z + 1, y, x]]
                        + v[[z, y - 1, x]]
                        + v[[z, y + 1, x]]
                        + v[[z, y, x - 1]]
                        + v[[z, y, x + 1]];
                    0.5 * v[[z, y, x]] + around / 12.0
                };
                output.set(item, mean);
            })
        }));
    };
    let at = |z: usize, y: usize, x: usize| field[(z * n + y) * n + x];
    let mut means = vec![0.0; n * n * n];
    let mut theirs = || {
        means.par_chunks_mut(n).enumerate().for_each(|(row, means)| {
            let (z, y) = (row / n, row % n);
            for (x, mean) in means.iter_mut().enumerate() {
                let on_border = z == 0 || y == 0 || x == 0 || z == n - 1 || y == n - 1 || x == n - 1;
                *mean = if on_border {
                    at(z, y, x)
                } else {
                    let around = at(z - 1, y, x)
                        + at(z + 1, y, x)
                        + at(z, y - 1, x)
                        + at(z, y + 1, x)
                        + at(z, y, x - 1)
                        + at(z, y, x + 1);
                    0.5 * at(z, y, x) + around / 12.0
                };
            }
        });
    };
    let case = Case { name: NAME, unit: "G/s", amount: (n * n * n) as f64 / 1e9, peer: PEER, bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, means, "{NAME} of {n}");
    Ok(())
}

/// Without border, so that no work-item has a branch.
fn inner_stencil(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.stencil.inner";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 160 + random.below(SPREAD);
    let m = n - 2;
    let field = numbers(n * n * n, &mut random);
    let (input, output) = (Buffer::from_slice_nd(&field, [n, n, n])?, Buffer::<f64, 3>::uninit([m, m, m])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write.no_init()));
            cg.parallel_for([m, m, m], move |item: Item<3>| {
                let v = input.view(item);
                let [z, y, x] = item.id().0.map(|own| own + 1);
                let sum = v[[z, y, x]]
                    + v[[z - 1, y, x]]
                    + v[[z + 1, y, x]]
                    + v[[z, y - 1, x]]
                    + v[[z, y + 1, x]]
                    + v[[z, y, x - 1]]
                    + v[[z, y, x + 1]];
                output.set(item, sum);
            })
        }));
    };
    let at = |z: usize, y: usize, x: usize| field[(z * n + y) * n + x];
    let mut sums = vec![0.0; m * m * m];
    let mut theirs = || {
        sums.par_chunks_mut(m).enumerate().for_each(|(row, sums)| {
            let (z, y) = (row / m + 1, row % m + 1);
            for x in 1..=m {
                sums[x - 1] = at(z, y, x)
                    + at(z - 1, y, x)
                    + at(z + 1, y, x)
                    + at(z, y - 1, x)
                    + at(z, y + 1, x)
                    + at(z, y, x - 1)
                    + at(z, y, x + 1);
            }
        });
    };
    let case = Case { name: NAME, unit: "G/s", amount: (m * m * m) as f64 / 1e9, peer: PEER, bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, sums, "{NAME} of {n}");
    Ok(())
}

fn jacobi(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.jacobi";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 512 + random.below(SPREAD);
    let field = numbers(n * n, &mut random);
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let mut ours = || found = iterate(&setting.queue, &field, n).expect("the commands succeed");
    let mut theirs = || {
        let (mut old, mut new) = (field.clone(), vec![0.0; n * n]);
        for _ in 0..STEPS {
            new.par_chunks_mut(n).enumerate().for_each(|(y, new)| {
                for x in 0..n {
                    new[x] = if y == 0 || x == 0 || y == n - 1 || x == n - 1 {
                        old[y * n + x]
                    } else {
                        0.25 * (old[(y - 1) * n + x] + old[(y + 1) * n + x] + old[y * n + x - 1] + old[y * n + x + 1])
                    };
                }
            });
            std::mem::swap(&mut old, &mut new);
        }
        expected = old;
    };
    let amount = (STEPS * n * n) as f64 / 1e9;
    let case = Case { name: NAME, unit: "G/s", amount, peer: PEER, bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(found, expected, "{NAME} of {n}");
    Ok(())
}

fn iterate(queue: &Queue, field: &[f64], n: usize) -> oxisycl::Result<Vec<f64>> {
    let (mut old, mut new) = (Buffer::from_slice_nd(field, [n, n])?, Buffer::<f64, 2>::uninit([n, n])?);
    for _ in 0..STEPS {
        queue.submit(|cg| {
            let (old, new) = (cg.access(&old, Read), cg.access(&new, Write.no_init()));
            cg.parallel_for([n, n], move |item: Item<2>| {
                let v = old.view(item);
                let Id([y, x]) = item.id();
                let mean = if y == 0 || x == 0 || y == n - 1 || x == n - 1 {
                    v[[y, x]]
                } else {
                    0.25 * (v[[y - 1, x]] + v[[y + 1, x]] + v[[y, x - 1]] + v[[y, x + 1]])
                };
                new.set(item, mean);
            })
        })?;
        std::mem::swap(&mut old, &mut new);
    }
    old.to_vec()
}

/// Whether a cell lives on.
fn lives(n_neighbours: u8, lived: u8) -> u8 {
    u8::from(n_neighbours == 3 || (n_neighbours == 2 && lived == 1))
}

/// On a torus.
fn life(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "plain.life";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = 1024 + random.below(SPREAD);
    let cells: Vec<u8> = (0..n * n).map(|_| u8::from(random.next().is_multiple_of(3))).collect();
    let (input, output) = (Buffer::from_slice_nd(&cells, [n, n])?, Buffer::<u8, 2>::uninit([n, n])?);
    let mut ours = || {
        finish(setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write.no_init()));
            cg.parallel_for([n, n], move |item: Item<2>| {
                let v = input.view(item);
                let Id([y, x]) = item.id();
                let (up, down, left, right) = ((y + n - 1) % n, (y + 1) % n, (x + n - 1) % n, (x + 1) % n);
                let above = v[[up, left]] + v[[up, x]] + v[[up, right]];
                let below = v[[down, left]] + v[[down, x]] + v[[down, right]];
                output.set(item, lives(above + v[[y, left]] + v[[y, right]] + below, v[[y, x]]));
            })
        }));
    };
    let mut next = vec![0; n * n];
    let mut theirs = || {
        next.par_chunks_mut(n).enumerate().for_each(|(y, next)| {
            let row = |y: usize| &cells[y % n * n..][..n];
            let (up, own, down) = (row(y + n - 1), row(y), row(y + 1));
            for x in 0..n {
                let (left, right) = ((x + n - 1) % n, (x + 1) % n);
                let above = up[left] + up[x] + up[right];
                let below = down[left] + down[x] + down[right];
                next[x] = lives(above + own[left] + own[right] + below, own[x]);
            }
        });
    };
    let case = Case { name: NAME, unit: "G/s", amount: (n * n) as f64 / 1e9, peer: PEER, bar: BAR };
    setting.measure(&case, &mut ours, &mut theirs, results);
    assert_eq!(output.to_vec()?, next, "{NAME} of {n}");
    Ok(())
}
