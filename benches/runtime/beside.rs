//! What arguments beside a kernel cost, compared with the same kernel that captures them.

use oxisycl::Result;
use oxisycl::prelude::*;

use crate::arguments::Options;
use crate::protocol::{Bar, Measured, Rounds, least, seconds};

/// Launches per measurement.
const LAUNCHES: usize = 20_000;
/// Elements of a triad.
const N: usize = 1 << 24;
const REPETITIONS: usize = 5;

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    let queue = Queue::builder().in_order().build()?;
    submissions(options, results, &queue)?;
    triad(options, results, &queue)
}

/// Measures both, where less is better.
fn measure(
    options: &Options,
    results: &mut Vec<Measured>,
    (name, unit, bar): (&str, &'static str, Bar),
    arguments: &mut dyn FnMut() -> f64,
    captures: &mut dyn FnMut() -> f64,
) {
    let rounds = Rounds::run(options.rounds, None, || least(&mut *arguments), || least(&mut *captures));
    let measured = rounds.measured(name, unit, "the same with captures").bar(bar);
    measured.print();
    results.push(measured);
}

/// An empty kernel with a number and two buffers.
fn submissions(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    const NAME: &str = "submit.arguments";
    if !options.wants(NAME) {
        return Ok(());
    }
    let (x, y) = (Buffer::from_vec(vec![0.0f32])?, Buffer::from_vec(vec![0.0f32])?);
    let per_launch = |submit: &dyn Fn() -> Result<Event>| {
        let time = seconds(|| {
            for _ in 0..LAUNCHES {
                submit().expect("the command is submitted");
            }
            queue.wait().expect("the commands succeed");
        });
        time * 1e6 / LAUNCHES as f64
    };
    let mut arguments = || per_launch(&|| queue.parallel_for_with(1, (2.0f32, x.read(), y.update()), |_, _| {}));
    let mut captures = || {
        per_launch(&|| {
            queue.submit(|cg| {
                let (a, x, y) = (2.0f32, cg.access(&x, Read), cg.access(&y, ReadWrite));
                cg.parallel_for(1, move |_| {
                    let _ = (a, x, y);
                })
            })
        })
    };
    measure(options, results, (NAME, "us", Bar::RatioAtMost(1.03)), &mut arguments, &mut captures);
    Ok(())
}

/// The triad of streams.
fn triad(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    const NAME: &str = "stream.triad.arguments";
    if !options.wants(NAME) {
        return Ok(());
    }
    let [a, b, c] = [0.0f64, 0.2, 0.3].map(|value| Buffer::from_vec(vec![value; N]));
    let (a, b, c, scalar) = (a?, b?, c?, 0.4);
    let each = |submit: &dyn Fn() -> Result<Event>| {
        let time = seconds(|| {
            for _ in 0..REPETITIONS {
                submit().and_then(|event| event.wait()).expect("the command succeeds");
            }
        });
        time * 1e3 / REPETITIONS as f64
    };
    let mut arguments = || {
        each(&|| {
            queue.parallel_for_with(N, (scalar, a.write(), b.read(), c.read()), |item, (scalar, a, b, c)| {
                a.set(item, b.get(item) + scalar * c.get(item))
            })
        })
    };
    let mut captures = || {
        each(&|| {
            queue.submit(|cg| {
                let (a, b, c) = (cg.access(&a, Write), cg.access(&b, Read), cg.access(&c, Read));
                cg.parallel_for(N, move |item| a.set(item, b.get(item) + scalar * c.get(item)))
            })
        })
    };
    measure(options, results, (NAME, "ms", Bar::RatioAtMost(1.01)), &mut arguments, &mut captures);
    Ok(())
}
