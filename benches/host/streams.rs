//! Large arrays that are written once: a copy, and a product by a number. The peer is the best of rayon, crossbeam, and one loop or `memcpy`.

use std::error::Error;

use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::processor::{Times, times};
use crate::protocol::{Bar, Measured, Rounds, Summary};
use crate::{Mode, Setting, entries, finish};

const N: usize = 1 << 25;
/// Elements of one task of the peers that have tasks.
const CHUNK: usize = 1 << 16;
const FACTOR: f64 = 0.4;
const BAR: f64 = 0.95;
/// Repetitions of one measurement, of which the best counts.
const REPETITIONS: usize = 3;

/// A form of a peer: writes all of the second.
type Peer = (&'static str, fn(&[f64], &mut [f64]));

const COPY: [Peer; 4] = [
    ("par_iter, rayon", |from, to| to.par_iter_mut().zip(from).for_each(|(to, from)| *to = *from)),
    ("par_chunks, rayon", |from, to| {
        to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| to.copy_from_slice(from));
    }),
    ("scope, crossbeam", |from, to| scoped(from, to, |from, to| to.copy_from_slice(from))),
    ("memcpy", |from, to| to.copy_from_slice(from)),
];

const MULTIPLY: [Peer; 4] = [
    ("par_iter, rayon", |from, to| to.par_iter_mut().zip(from).for_each(|(to, from)| *to = FACTOR * from)),
    ("par_chunks, rayon", |from, to| {
        to.par_chunks_mut(CHUNK).zip(from.par_chunks(CHUNK)).for_each(|(to, from)| multiply(from, to));
    }),
    ("scope, crossbeam", |from, to| scoped(from, to, multiply)),
    ("one loop", multiply),
];

fn multiply(from: &[f64], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = FACTOR * from);
}

/// A thread for each of rayon's.
fn scoped(from: &[f64], to: &mut [f64], f: fn(&[f64], &mut [f64])) {
    let part = from.len().div_ceil(rayon::current_num_threads());
    let scope = crossbeam_utils::thread::scope(|scope| {
        for (from, to) in from.chunks(part).zip(to.chunks_mut(part)) {
            scope.spawn(move |_| f(from, to));
        }
    });
    scope.expect("no thread panics");
}

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    stream(setting, results, "plain.stream.copy", COPY, |queue, from, to| {
        finish(queue.submit(|cg| {
            let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
            cg.parallel_for(N, move |item| to.set(item, from.get(item)))
        }));
    })?;
    stream(setting, results, "plain.stream.mul", MULTIPLY, |queue, from, to| {
        finish(queue.submit(|cg| {
            let (from, to) = (cg.access(from, Read), cg.access(to, Write.no_init()));
            cg.parallel_for(N, move |item| to.set(item, FACTOR * from.get(item)))
        }));
    })
}

fn stream<const PEERS: usize>(
    setting: &Setting,
    results: &mut Vec<Measured>,
    name: &str,
    peers: [Peer; PEERS],
    ours: impl Fn(&Queue, &Buffer<f64, 1>, &Buffer<f64, 1>),
) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(name) {
        return Ok(());
    }
    let mut random = setting.random();
    let numbers: Vec<f64> = (0..N).map(|_| (random.next() >> 11) as f64).collect();
    let (from, to) = (Buffer::from_slice(&numbers)?, Buffer::uninit(N)?);
    let mut written = vec![0.0; N];
    if setting.mode == Mode::Entry {
        let mut peer = || peers[0].1(&numbers, &mut written);
        entries::serve(name, &mut || ours(&setting.queue, &from, &to), &mut peer);
        assert_eq!(to.to_vec()?, written, "{name}");
        return Ok(());
    }
    // Ours, all peers, and all peers again.
    let mut rates = vec![Vec::new(); 1 + 2 * PEERS];
    let mut walls = rates.clone();
    for round in 0..=setting.options.rounds {
        for place in 0..rates.len() {
            let who = (place + round) % rates.len();
            let run = || match who {
                0 => ours(&setting.queue, &from, &to),
                _ => peers[(who - 1) % PEERS].1(&numbers, &mut written),
            };
            let Times { processor, wall } = least(run);
            // The first round only warms up.
            if round > 0 {
                rates[who].push((2 * N * size_of::<f64>()) as f64 / processor / 1e9);
                walls[who].push(wall * 1e3);
            }
        }
    }
    let median = |peer: &usize| Summary::of(&rates[1 + peer]).median;
    let best = (0..PEERS).max_by(|a, b| median(a).total_cmp(&median(b))).expect("there are peers");
    for (peer, (name, _)) in peers.iter().enumerate() {
        eprintln!("      {name}: {:.1} GB/s", median(&peer));
    }
    let [peer, again] = [1 + best, 1 + PEERS + best].map(|who| rates[who].clone());
    let rounds = Rounds { ours: rates[0].clone(), peer, again, yardstick: Vec::new() };
    let [our_wall, peer_wall] = [0, 1 + best].map(|who| Summary::of(&walls[who]).median);
    let measured = rounds.measured(name, "GB/s", peers[best].0).bar(Bar::RatioAtLeast(BAR));
    let measured = measured.beside(format!("{our_wall:.1} / {peer_wall:.1} ms"));
    measured.print();
    results.push(measured);
    assert_eq!(to.to_vec()?, written, "{name}");
    Ok(())
}

/// The least processor time, and the time that passed meanwhile.
fn least(mut f: impl FnMut()) -> Times {
    let all = (0..REPETITIONS).map(|_| times(&mut f));
    all.min_by(|a, b| a.processor.total_cmp(&b.processor)).expect("there are repetitions")
}
