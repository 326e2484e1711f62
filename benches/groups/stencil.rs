//! The mean of four neighbours: the example's kernel beside a plain loop.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::peers;
use crate::protocol::Measured;

#[path = "../../examples/15_stencil.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

const N: usize = 4096;
/// A row of the input.
const ROW: usize = N + 2;
const NAME: &str = "groups.stencil";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let field = random.floats(ROW * ROW);
    let input = Buffer::from_slice_nd(&field, [ROW, ROW])?;
    let output = Buffer::<f32, 2>::uninit([N, N])?;
    let mut means = vec![0.0; N * N];
    let case = Case { name: NAME, unit: "G/s", amount: (N * N) as f64 / 1e9, peer: "plain loop, rayon", bar: 0.87 };
    let mut ours = || {
        let smoothed = example::smooth(&setting.queue, &input, &output).and_then(|event| event.wait());
        smoothed.expect("the command succeeds");
    };
    results.push(case.measure(setting.options.rounds, &mut ours, &mut || peers::smooth(N, &field, &mut means)));
    let found = output.to_vec()?;
    for _ in 0..1000 {
        let (y, x) = (random.below(N), random.below(N));
        let at = |y: usize, x: usize| f64::from(field[y * ROW + x]);
        let expected = 0.25 * (at(y, x + 1) + at(y + 2, x + 1) + at(y + 1, x) + at(y + 1, x + 2));
        for found in [found[y * N + x], means[y * N + x]] {
            assert!((f64::from(found) - expected).abs() < 1e-6, "{found} in row {y}, column {x}, {expected} expected");
        }
    }
    Ok(())
}
