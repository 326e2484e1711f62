//! Kernels over work-groups, the examples': native entries beside plain ones, whose phases are loops that LLVM makes vectors of, or not.

use std::error::Error;

use oxisycl::prelude::*;

use crate::matrices::Matrices;
use crate::protocol::Measured;
use crate::{Mode, Setting, entries, finish};

#[path = "../../examples/19_reduction.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod reduction;
#[path = "../../examples/18_block_scan.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod scan;
#[path = "../../examples/17_bitonic_sort.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod sort;
#[path = "../../examples/15_stencil.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod stencil;

/// Rows and columns of the stencil's output, and numbers of the others.
const SIDE: usize = 1024;
const N: usize = 1 << 20;
/// The numbers that are sorted together.
const BLOCK: usize = 256;

pub(crate) fn run(setting: &Setting, _results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if setting.mode != Mode::Entry {
        return Ok(());
    }
    let queue = &setting.queue;
    let mut random = setting.random();
    let matrices = Matrices::new(&mut random)?;
    measure(setting, "host.gemm.scoped", || matrices.multiply(queue), || matrices.check_ours(&mut setting.random()));

    let field = random.floats((SIDE + 2) * (SIDE + 2));
    let input = Buffer::from_slice_nd(&field, [SIDE + 2, SIDE + 2])?;
    let output = Buffer::uninit([SIDE, SIDE])?;
    let mean = |place: usize| {
        let at = |y: usize, x: usize| f64::from(field[(place / SIDE + y) * (SIDE + 2) + place % SIDE + x]);
        0.25 * (at(0, 1) + at(2, 1) + at(1, 0) + at(1, 2))
    };
    measure(
        setting,
        "host.stencil.scoped",
        || finish(stencil::smooth(queue, &input, &output)),
        || {
            let near = |(place, &found): (usize, &f32)| (f64::from(found) - mean(place)).abs() < 1e-6;
            assert!(output.to_vec()?.iter().enumerate().all(near));
            Ok(())
        },
    );

    let start: Vec<u32> = (0..N).map(|_| random.next() as u32).collect();
    let sorted = Buffer::from_slice(&start)?;
    measure(
        setting,
        "host.sort.scoped",
        || finish(sort::sort_blocks(queue, &sorted)),
        || {
            let mut expected = start.clone();
            expected.chunks_mut(BLOCK).for_each(<[u32]>::sort_unstable);
            assert_eq!(sorted.to_vec()?, expected);
            Ok(())
        },
    );

    let (numbers, totals) = (Buffer::from_slice(&start)?, Buffer::uninit(N)?);
    measure(
        setting,
        "host.scan.scoped",
        || finish(scan::scan(queue, &numbers, &totals)),
        || {
            let mut total = 0_u32;
            let mut next = |number: &u32| {
                total = total.wrapping_add(*number);
                total
            };
            assert_eq!(totals.to_vec()?, start.iter().map(&mut next).collect::<Vec<_>>());
            Ok(())
        },
    );

    // Small, so that the sum of all runs fits.
    let small: Vec<u64> = start.iter().map(|number| u64::from(*number & 0xff)).collect();
    let of_all: u64 = small.iter().sum();
    let (small, sum) = (Buffer::from_vec(small)?, Buffer::from_vec(vec![0])?);
    measure(
        setting,
        "host.sum.scoped",
        || finish(reduction::add_up(queue, &small, &sum)),
        || {
            let sum = sum.to_vec()?[0];
            assert!(sum > 0 && sum % of_all == 0, "{sum} is no multiple of {of_all}");
            Ok(())
        },
    );
    Ok(())
}

/// Runs a case as the process of one entry is told, and checks what it made.
fn measure(setting: &Setting, name: &str, mut ours: impl FnMut(), mut check: impl FnMut() -> oxisycl::Result) {
    if setting.options.wants(name) {
        entries::serve(name, &mut ours, &mut || check().expect("results can be read"));
    }
}
