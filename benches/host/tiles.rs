//! The product of matrices by tiles as a kernel over an nd-range, whose work-items meet at barriers, beside OpenCL C.
//!
//! Elements are small whole numbers. No sum is rounded, so both sides have the same bits, whether or not they fuse products and sums.

use oxisycl::group::{Fixed2, Local};
use oxisycl::prelude::*;

use crate::beside::{Figure, Result, TRIALS, copied};
use crate::protocol::Measured;
use crate::{Setting, finish};

const NAME: &str = "host.gemm.nd";
const TILE: usize = 16;
/// Kernels of the peer and their tiles, of which the fastest counts.
const PEERS: [(&str, usize); 3] = [("gemm8", 8), ("gemm", 16), ("gemm32", 32)];
/// What divides the sides: each tile does.
const STEP: usize = 32;

type Matrix = Buffer<f32, 2>;

fn multiply(queue: &Queue, a: &Matrix, b: &Matrix, c: &Matrix) -> oxisycl::Result<Event> {
    let (Range([_, depth]), range) = (a.range(), c.range());
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(a, Read), cg.access(b, Read), cg.access(c, Write.no_init()));
        let tile = Local::<f32, { TILE * TILE }>::new();
        cg.parallel_for_nd_range((range, Fixed2::<TILE, TILE>), (tile, tile), move |mut item, (left, right)| {
            let (a, b) = (a.view(item.global()), b.view(item.global()));
            let (Id([row, column]), Id([y, x])) = (item.global_id(), item.local_id());
            let mut sum = 0.0;
            for step in 0..depth / TILE {
                // SAFETY: each work-item writes its own elements before a barrier, and all only read until the next one.
                unsafe {
                    left.set(y * TILE + x, a[[row, step * TILE + x]]);
                    right.set(y * TILE + x, b[[step * TILE + y, column]]);
                    item.group().barrier();
                    for k in 0..TILE {
                        sum += left.get(y * TILE + k) * right.get(k * TILE + x);
                    }
                    item.group().barrier();
                }
            }
            c.set(item.global(), sum);
        })
    })
}

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result {
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let side = STEP * (8 + random.below(4));
    let mut matrix = || -> Vec<f32> { (0..side * side).map(|_| random.below(17) as f32 - 8.0).collect() };
    let (left, right) = (matrix(), matrix());
    let [a, b] = [&left, &right].map(|values| Buffer::from_slice_nd(values, [side, side]));
    let (a, b, c) = (a?, b?, Buffer::uninit([side, side])?);
    let mut ours = || finish(multiply(&setting.queue, &a, &b, &c));
    let figure = Figure { name: NAME, amount: side.pow(3) as f64 / 1e6, bar: 0.83 };
    figure.measure(setting, &mut ours, results, |mut peers| {
        let found = c.to_vec()?;
        for (place, element) in found.iter().enumerate() {
            let (row, column) = (&left[place / side * side..][..side], right[place % side..].iter().step_by(side));
            assert_eq!(*element, row.iter().zip(column).map(|(a, b)| a * b).sum(), "{NAME} of {side}, place {place}");
        }
        let Some(reference) = peers.opencl() else { return Ok(()) };
        let (a, b) = (copied(reference, &left, 0)?, copied(reference, &right, 0)?);
        let mut theirs = reference.memory::<f32>(side * side)?;
        let mut kernels = Vec::new();
        for (name, tile) in PEERS {
            let kernel = reference.kernel(name)?;
            for (index, memory) in (0..).zip([&a, &b, &theirs]) {
                kernel.set_memory(index, memory)?;
            }
            kernel.set(3, side as u64)?;
            let group = Some([tile, tile]);
            let times =
                (0..TRIALS).map(|_| kernel.time([side, side], group)).collect::<std::result::Result<Vec<_>, _>>()?;
            kernels.push((times.into_iter().fold(f64::INFINITY, f64::min), kernel, group, tile));
        }
        let best = kernels.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let (_, kernel, group, tile) = best.ok_or("the peer has no kernel")?;
        peers.compare(&format!("OpenCL C, tiles of {tile} x {tile}"), &mut || {
            kernel.time([side, side], *group).expect("the peer's kernel runs");
        });
        assert!(found == theirs.elements(), "{NAME} of {side}: bits that differ");
        Ok(())
    })
}
