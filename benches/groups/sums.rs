//! Sums and scalar products: the fixed tree of reductions beside chunks with eight accumulators.

use std::error::Error;

use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;

use crate::Setting;
use crate::case::Case;
use crate::peers;
use crate::protocol::Measured;

const N: usize = 1 << 27;
const PEER: &str = "chunks with 8 accumulators, rayon";

/// How far both may be from the sum in `f64`, as a part of the sum of magnitudes. That sum is exact for f32 and nearly so for f64.
const TOLERANCE: f64 = 1e-6;

macro_rules! case {
    ($setting:ident, $results:ident, $t:ty, $name:literal, $add:path) => {{
        const NAME: &str = concat!("groups.sum.", $name);
        if $setting.options.wants(NAME) {
            let (values, exact) = values::<$t>($setting, |x| x as $t);
            let buffer = Buffer::from_vec(values.clone())?;
            let (mut ours, mut theirs) = (0.0, 0.0);
            let case = Case { name: NAME, unit: "G/s", amount: N as f64 / 1e9, peer: PEER, bar: 0.95 };
            let mut run = || {
                let sum = $setting.queue.reduce(&buffer, Sum).and_then(|sum| sum.get());
                ours = f64::from(sum.expect("the command succeeds"));
            };
            $results.push(case.measure($setting.options.rounds, &mut run, &mut || theirs = f64::from($add(&values))));
            check(NAME, [ours, theirs], exact);
        }
    }};
}

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    case!(setting, results, f32, "f32", peers::sum_f32);
    case!(setting, results, f64, "f64", peers::sum_f64);
    const NAME: &str = "groups.dot";
    if setting.options.wants(NAME) {
        let (x, _) = values::<f32>(setting, |x| x as f32);
        let y: Vec<f32> = x.iter().rev().copied().collect();
        let exact = x.iter().zip(&y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum();
        let (of_x, of_y, sum) = (Buffer::from_slice(&x)?, Buffer::from_slice(&y)?, Buffer::from_vec(vec![0.0f32])?);
        let case = Case { name: NAME, unit: "G/s", amount: N as f64 / 1e9, peer: PEER, bar: 0.95 };
        let mut run = || {
            let event = setting.queue.submit(|cg| {
                let (x, y) = (cg.access(&of_x, Read), cg.access(&of_y, Read));
                let into = reduction(cg.access(&sum, Write), Sum);
                cg.parallel_reduce(N, into, move |item, sum| *sum += x.get(item) * y.get(item))
            });
            event.and_then(|event| event.wait()).expect("the command succeeds");
        };
        let mut theirs = 0.0;
        results
            .push(case.measure(setting.options.rounds, &mut run, &mut || theirs = f64::from(peers::dot_f32(&x, &y))));
        check(NAME, [f64::from(sum.to_vec()?[0]), theirs], exact);
    }
    Ok(())
}

/// Numbers of the seed between 0 and 1, and their sum.
fn values<T>(setting: &Setting, of: impl Fn(f64) -> T) -> (Vec<T>, f64)
where
    T: Copy + Into<f64>,
{
    let mut random = setting.random();
    let values: Vec<T> = (0..N).map(|_| of((random.next() >> 11) as f64 / (1u64 << 53) as f64)).collect();
    let exact = values.iter().map(|x| (*x).into()).sum();
    (values, exact)
}

fn check(name: &str, found: [f64; 2], exact: f64) {
    for found in found {
        assert!((found - exact).abs() <= exact.abs() * TOLERANCE, "{name}: {found}, and {exact} in f64");
    }
}
