//! What the state of a buffer's data costs. A ranged accessor may depend on the number of pages, and on the number of regions whose state
//! differs.

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, Result};

use crate::arguments::Options;
use crate::protocol::{Bar, Measured, Rounds, Summary, least, seconds};

/// Bytes of the buffer whose pages are counted; divisible by all page sizes below.
const BYTES: usize = 1_000_000;
/// Ranges that accessors name in turn; pages are never larger.
const RANGES: usize = 100;
/// Accessors per measurement.
const ACCESSORS: usize = 10_000;

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    let queue = Queue::default()?;
    pages(options, results, &queue)?;
    fragments(options, results, &queue)?;
    group_accessors(options, results, &queue)?;
    coalesce(options, results, &queue)
}

/// What one of many accessors to disjoint elements costs, all in one command group.
fn group_accessors(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    const COUNTS: [usize; 3] = [100, 1_000, 10_000];
    if !options.wants("state.group_accessors") {
        return Ok(());
    }
    let buffer = BufferOptions::new().page_size([1]).from_vec(vec![0u8; COUNTS[2]])?;
    let per_accessor = |count: usize| {
        let time = seconds(|| {
            let submitted = queue.submit(|cg| {
                let parts: Vec<_> =
                    (0..count).map(|offset| cg.access_range(&buffer, ReadWrite, [offset], [1])).collect();
                let last = parts[count - 1];
                cg.parallel_for([1], move |item| last.update(item, |x| x.wrapping_add(1)))
            });
            submitted.and_then(|event| event.wait()).expect("the command succeeds");
        });
        time * 1e6 / count as f64
    };
    for count in COUNTS {
        let (many, ten) = (|| least(|| per_accessor(count)), || least(|| per_accessor(10)));
        let rounds = Rounds::run(options.rounds, None, many, ten);
        let bar = if count == COUNTS[2] { Bar::AtMost(2.0) } else { Bar::Information };
        let measured = rounds.measured(&format!("state.group_accessors.{count}"), "us", "10 accessors").bar(bar);
        measured.print();
        results.push(measured);
    }
    Ok(())
}

/// The cost of a command over a whole buffer after each of its elements was written by another command. Measured are the first such
/// command, per piece, and later ones, when the pieces have become one.
fn coalesce(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    const COUNTS: [usize; 3] = [500, 5_000, 50_000];
    const LATER: usize = 100;
    if !options.wants("state.coalesce") {
        return Ok(());
    }
    for count in COUNTS {
        let buffer = fragmented(queue, count)?;
        let whole = || touch(queue, &buffer, count, 0);
        let mut first = Rounds::default();
        let mut later = Rounds::default();
        for _ in 0..options.rounds {
            (0..count).for_each(|element| touch(queue, &buffer, 1, element));
            queue.wait()?;
            first.ours.push(seconds(whole) * 1e6 / count as f64);
            queue.wait()?;
            let per_command =
                |commands: &dyn Fn()| seconds(|| (0..LATER).for_each(|_| commands())) * 1e6 / LATER as f64;
            later.ours.push(per_command(&whole));
            queue.wait()?;
            let unbroken = |first: &mut Vec<f64>, later: &mut Vec<f64>| -> Result {
                let fresh = BufferOptions::new().page_size([1]).from_vec(vec![0u8; count])?;
                let unbroken = || touch(queue, &fresh, count, 0);
                first.push(seconds(unbroken) * 1e6 / count as f64);
                queue.wait()?;
                later.push(per_command(&unbroken));
                queue.wait()?;
                Ok(())
            };
            unbroken(&mut first.peer, &mut later.peer)?;
            unbroken(&mut first.again, &mut later.again)?;
        }
        for (name, rounds) in [("first", &first), ("later", &later)] {
            let measured = rounds.measured(&format!("state.coalesce.{name}.{count}"), "us", "an unbroken buffer");
            measured.print();
            results.push(measured);
        }
    }
    Ok(())
}

/// Submits a command group with one accessor to `range` elements at `offset`, which writes one of them.
fn touch(queue: &Queue, buffer: &Buffer<u8, 1>, range: usize, offset: usize) {
    let submitted = queue.submit(|cg| {
        let part = cg.access_range(buffer, ReadWrite, [offset], [range]);
        cg.parallel_for([1], move |item| part.update(item, |x| x.wrapping_add(1)))
    });
    submitted.expect("the command is submitted");
}

fn pages(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    let range = BYTES / RANGES;
    let buffer = |pages: usize| BufferOptions::new().page_size([BYTES / pages]).from_vec(vec![0u8; BYTES]);
    let per_accessor = |buffer: &Buffer<u8, 1>| {
        let time = seconds(|| {
            for accessor in 0..ACCESSORS {
                touch(queue, buffer, range, accessor % RANGES * range);
            }
            queue.wait().expect("the commands succeed");
        });
        time * 1e6 / ACCESSORS as f64
    };
    let few = buffer(100)?;
    for (name, pages) in [("state.pages.10000", 10_000), ("state.pages", 1_000_000)] {
        if !options.wants(name) {
            continue;
        }
        let many = buffer(pages)?;
        let rounds =
            Rounds::run(options.rounds, None, || least(|| per_accessor(&many)), || least(|| per_accessor(&few)));
        let bar = if pages == 1_000_000 { Bar::RatioAtMost(2.0) } else { Bar::Information };
        let measured = rounds.measured(name, "us", "100 pages").bar(bar);
        measured.print();
        results.push(measured);
    }
    Ok(())
}

/// A buffer of which each of `count` elements was last written by another command.
fn fragmented(queue: &Queue, count: usize) -> Result<Buffer<u8, 1>> {
    let buffer = BufferOptions::new().page_size([1]).from_vec(vec![0u8; count])?;
    for element in 0..count {
        touch(queue, &buffer, 1, element);
    }
    queue.wait()?;
    Ok(buffer)
}

fn fragments(options: &Options, results: &mut Vec<Measured>, queue: &Queue) -> Result {
    if !options.wants("state.fragments") {
        return Ok(());
    }
    const COUNTS: [usize; 6] = [1, 10, 100, 1_000, 10_000, 100_000];
    let buffers: Vec<Buffer<u8, 1>> = COUNTS.iter().map(|count| fragmented(queue, *count)).collect::<Result<_>>()?;
    // Regions in an order that jumps; the same number of commands for every count.
    let per_accessor = |buffer: &Buffer<u8, 1>| {
        let count = buffer.size();
        let mut region = 0;
        let time = seconds(|| {
            for _ in 0..ACCESSORS {
                region = (region + 6_180_339) % count;
                touch(queue, buffer, 1, region);
            }
            queue.wait().expect("the commands succeed");
        });
        time * 1e6 / ACCESSORS as f64
    };
    let mut samples = vec![Rounds::default(); COUNTS.len()];
    for round in 0..=options.rounds {
        let ten = least(|| per_accessor(&buffers[1]));
        for (buffer, samples) in buffers.iter().zip(&mut samples) {
            let value = least(|| per_accessor(buffer));
            if round > 0 {
                samples.ours.push(value);
                samples.peer.push(ten);
            }
        }
        // The A/A of the curve's base.
        let again = least(|| per_accessor(&buffers[1]));
        if round > 0 {
            samples.iter_mut().for_each(|samples| samples.again.push(again));
        }
    }
    for (count, samples) in COUNTS.iter().zip(&samples) {
        // A single region is a chain, so that ten are the base of the curve.
        let measured = samples.measured(&format!("state.fragments.{count}"), "us", "10 regions");
        measured.print();
        results.push(measured);
    }
    let largest = Summary::of(&samples[COUNTS.len() - 1].ours).median;
    eprintln!("      {} regions: {largest:.2} us", COUNTS[COUNTS.len() - 1]);
    Ok(())
}
