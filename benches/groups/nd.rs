//! Kernels over nd-ranges on the host: without barriers beside the same over a range, and what a barrier costs beyond the arithmetic between.

use std::error::Error;

use oxisycl::group::Fixed1;
use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::processor::times;
use crate::protocol::{Bar, Measured, Rounds, least};
use crate::random::Random;

const ITEMS: usize = 1 << 20;
const GROUP: usize = 256;
const STEPS: usize = 16;
/// Nanoseconds that a barrier may cost a work-item.
const BARRIER: f64 = 40.0;

/// One of the steps, of which each depends on the one before.
#[inline(always)]
fn step(x: f32) -> f32 {
    x * 0.999 + 0.125
}

fn all_steps(mut x: f32) -> f32 {
    (0..STEPS).for_each(|_| x = step(x));
    x
}

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    without_barriers(setting, results)?;
    barriers(setting, results)
}

/// Whether `found` has what all steps make of `start`, at some places of the run's seed.
fn check(random: &mut Random, found: &[f32], start: &[f32]) {
    for _ in 0..1000 {
        let place = random.below(ITEMS);
        let (found, expected) = (found[place], all_steps(start[place]));
        // In lanes, a product and a sum are rounded once.
        assert!((found - expected).abs() < 1e-5, "place {place}: {found} instead of {expected}");
    }
}

fn without_barriers(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "groups.nd.no_barrier";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let start = random.floats(ITEMS);
    let input = Buffer::from_slice(&start)?;
    let (ours, theirs) = (Buffer::uninit(ITEMS)?, Buffer::uninit(ITEMS)?);
    let mut nd_range = || {
        let submitted = setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&ours, Write));
            cg.parallel_for_nd_range((ITEMS, Fixed1::<GROUP>), (), move |item, ()| {
                output.set(item.global(), all_steps(input.get(item.global())));
            })
        });
        submitted.and_then(|event| event.wait()).expect("the command succeeds");
    };
    let mut range = || {
        let submitted = setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&theirs, Write));
            cg.parallel_for(ITEMS, move |item| output.set(item, all_steps(input.get(item))))
        });
        submitted.and_then(|event| event.wait()).expect("the command succeeds");
    };
    let case = Case { name: NAME, unit: "G/s", amount: ITEMS as f64 / 1e9, peer: "parallel_for", bar: 0.98 };
    results.push(case.measure(setting.options.rounds, &mut nd_range, &mut range));
    for found in [ours.to_vec()?, theirs.to_vec()?] {
        check(&mut random, &found, &start);
    }
    Ok(())
}

fn barriers(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    const NAME: &str = "groups.nd.barrier";
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let start = random.floats(ITEMS);
    let input = Buffer::from_slice(&start)?;
    let output = Buffer::uninit(ITEMS)?;
    let with = || {
        let submitted = setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_nd_range((ITEMS, Fixed1::<GROUP>), (), move |mut item, ()| {
                let mut x = input.get(item.global());
                for _ in 0..STEPS {
                    x = step(x);
                    // SAFETY: all come to it.
                    unsafe { item.unchecked() }.barrier();
                }
                output.set(item.global(), x);
            })
        });
        submitted.and_then(|event| event.wait()).expect("the command succeeds");
    };
    let without = || {
        let submitted = setting.queue.submit(|cg| {
            let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
            cg.parallel_for_nd_range((ITEMS, Fixed1::<GROUP>), (), move |item, ()| {
                output.set(item.global(), all_steps(input.get(item.global())));
            })
        });
        submitted.and_then(|event| event.wait()).expect("the command succeeds");
    };
    let of_each = |f: &dyn Fn()| least(|| times(f).processor) * 1e9 / (ITEMS * STEPS) as f64;
    let rounds = Rounds::run(setting.options.rounds, None, || of_each(&with) - of_each(&without), || of_each(&without));
    with();
    check(&mut random, &output.to_vec()?, &start);
    let measured = rounds.measured(NAME, "ns", "the arithmetic alone").bar(Bar::AtMost(BARRIER));
    measured.print();
    results.push(measured);
    Ok(())
}
