//! BabelStream through accessors against rayon, crossbeam and a plain loop.
//!
//! Every round allocates and fills all arrays anew, so that no implementation keeps lucky or unlucky memory. Each step is
//! executed three times per round and implementation, in turns; the fastest counts.

use oxisycl::prelude::*;
use oxisycl::{BufferOptions, Result};

use crate::arguments::Options;
use crate::peers::{self, Arrays, SCALAR, START, STEPS, STREAM_PEERS, Step, adaptive_cpp};
use crate::protocol::{Bar, Measured, Rounds, Summary, seconds};

const N: usize = 1 << 25;
const REPETITIONS: usize = 3;
/// Elements of the input that one work-item of the dot product owns.
const CHUNK: usize = 1 << 13;

const NAMES: [&str; 5] = ["stream.copy", "stream.mul", "stream.add", "stream.triad", "stream.dot"];
const VEC_NAMES: [&str; 5] = [
    "stream.copy.from_vec",
    "stream.mul.from_vec",
    "stream.add.from_vec",
    "stream.triad.from_vec",
    "stream.dot.from_vec",
];

/// Our arrays.
struct Buffers {
    a: Buffer<f64, 1>,
    b: Buffer<f64, 1>,
    c: Buffer<f64, 1>,
    partial: Buffer<f64, 1>,
}

impl Buffers {
    /// Memory of the runtime, first written by a kernel.
    fn new(queue: &Queue) -> Result<Self> {
        let new = || Buffer::uninit([N]);
        let buffers = Self { a: new()?, b: new()?, c: new()?, partial: Buffer::uninit([N / CHUNK])? };
        let event = queue.submit(|cg| {
            let a = cg.access(&buffers.a, Write.no_init());
            let b = cg.access(&buffers.b, Write.no_init());
            let c = cg.access(&buffers.c, Write.no_init());
            cg.parallel_for([N], move |item| {
                a.set(item, START[0]);
                b.set(item, START[1]);
                c.set(item, START[2]);
            })
        })?;
        event.wait()?;
        Ok(buffers)
    }

    /// The memory of the peers' vectors: the same kind of pages.
    fn from_arrays(arrays: Arrays) -> Result<Self> {
        let take = |array: Vec<f64>| BufferOptions::new().from_vec(array);
        let Arrays { a, b, c } = arrays;
        Ok(Self { a: take(a)?, b: take(b)?, c: take(c)?, partial: Buffer::uninit([N / CHUNK])? })
    }

    fn run(&self, queue: &Queue, step: Step) -> Result<f64> {
        let event = queue.submit(|cg| match step {
            Step::Copy => {
                let (a, c) = (cg.access(&self.a, Read), cg.access(&self.c, Write));
                cg.parallel_for([N], move |item| c.set(item, a.get(item)))
            }
            Step::Mul => {
                let (b, c) = (cg.access(&self.b, Write), cg.access(&self.c, Read));
                cg.parallel_for([N], move |item| b.set(item, SCALAR * c.get(item)))
            }
            Step::Add => {
                let (a, b) = (cg.access(&self.a, Read), cg.access(&self.b, Read));
                let c = cg.access(&self.c, Write);
                cg.parallel_for([N], move |item| c.set(item, a.get(item) + b.get(item)))
            }
            Step::Triad => {
                let a = cg.access(&self.a, Write);
                let (b, c) = (cg.access(&self.b, Read), cg.access(&self.c, Read));
                cg.parallel_for([N], move |item| a.set(item, b.get(item) + SCALAR * c.get(item)))
            }
            Step::Dot => {
                let (a, b) = (cg.access(&self.a, Read), cg.access(&self.b, Read));
                let partial = cg.access(&self.partial, Write);
                cg.parallel_for([N / CHUNK], move |item| {
                    let (a, b) = (a.view(item).chunk(item, CHUNK), b.view(item).chunk(item, CHUNK));
                    partial.set(item, peers::dot(a, b));
                })
            }
        })?;
        event.wait()?;
        if step == Step::Dot { Ok(self.partial.host_access(Read)?.iter().sum()) } else { Ok(0.0) }
    }
}

/// Samples of one step, MB/s per round.
#[derive(Default, Clone)]
struct Samples {
    ours: Vec<f64>,
    from_vec: Vec<f64>,
    plain: Vec<f64>,
    peers: [Vec<f64>; 3],
    again: [Vec<f64>; 3],
}

pub(crate) fn run(options: &Options, results: &mut Vec<Measured>) -> Result {
    if !options.wants_any(&NAMES) && !options.wants_any(&VEC_NAMES) {
        return Ok(());
    }
    let queue = Queue::default()?;
    let mut samples = vec![Samples::default(); STEPS.len()];
    for round in 0..=options.rounds {
        let buffers = Buffers::new(&queue)?;
        // Memory that is allocated later is different memory, so the two of the same kind take turns.
        let (first, second) = (Arrays::new(N), Arrays::new(N));
        let (ours, mut arrays) = if round % 2 == 0 { (first, second) } else { (second, first) };
        let from_vec = Buffers::from_arrays(ours)?;
        for (step, samples) in STEPS.into_iter().zip(&mut samples) {
            if options.wants(NAMES[step as usize]) || options.wants(VEC_NAMES[step as usize]) {
                let sampled = sample(&queue, &buffers, &from_vec, &mut arrays, step, round);
                // The first round only warms up.
                if round > 0 {
                    samples.append(sampled);
                }
            }
        }
        if options.filter.is_empty() {
            check(&buffers, &arrays);
        }
    }
    for (step, samples) in STEPS.into_iter().zip(&samples) {
        report(options, results, step, samples);
    }
    Ok(())
}

impl Samples {
    fn append(&mut self, mut other: Self) {
        self.ours.append(&mut other.ours);
        self.from_vec.append(&mut other.from_vec);
        self.plain.append(&mut other.plain);
        for (all, new) in
            self.peers.iter_mut().chain(&mut self.again).zip(other.peers.iter_mut().chain(&mut other.again))
        {
            all.append(new);
        }
    }
}

/// One round of one step.
fn sample(
    queue: &Queue,
    buffers: &Buffers,
    from_vec: &Buffers,
    arrays: &mut Arrays,
    step: Step,
    round: usize,
) -> Samples {
    let mut best = [f64::INFINITY; 9];
    let mut sum = 0.0;
    for repetition in 0..REPETITIONS {
        // Ours, ours in the peers' kind of memory, a plain loop, three peers, the same again; each time another one first.
        for place in 0..best.len() {
            let who = (place + round + repetition) % best.len();
            let time = seconds(|| {
                sum = match who {
                    0 => buffers.run(queue, step).expect("the command succeeds"),
                    1 => from_vec.run(queue, step).expect("the command succeeds"),
                    2 => peers::plain(arrays, step),
                    _ => STREAM_PEERS[who % 3].1(arrays, step),
                };
            });
            std::hint::black_box(sum);
            best[who] = best[who].min(time);
        }
    }
    let bytes = (step.arrays() * N * size_of::<f64>()) as f64;
    let rate = best.map(|seconds| vec![bytes / seconds * 1e-6]);
    let [ours, from_vec, plain, peers @ ..] = rate;
    let [p0, p1, p2, q0, q1, q2] = peers;
    Samples { ours, from_vec, plain, peers: [p0, p1, p2], again: [q0, q1, q2] }
}

/// The arrays hold the same in the end, as both did the same steps equally often, and the sums agree.
fn check(buffers: &Buffers, arrays: &Arrays) {
    for (ours, theirs) in [(&buffers.a, &arrays.a), (&buffers.b, &arrays.b), (&buffers.c, &arrays.c)] {
        let host = ours.host_access(Read).expect("the commands succeeded");
        let first = *host.iter().next().expect("there are elements");
        assert!(
            host.iter().all(|x| *x == first) && theirs.iter().all(|x| *x == theirs[0]),
            "uniform arrays stay uniform"
        );
    }
}

fn report(options: &Options, results: &mut Vec<Measured>, step: Step, samples: &Samples) {
    let index = step as usize;
    if samples.ours.is_empty() {
        return;
    }
    // The best peer is the one with the best median; ratios are with it alone.
    let median = |peer: &usize| Summary::of(&samples.peers[*peer]).median;
    let best = (0..STREAM_PEERS.len()).max_by(|a, b| median(a).total_cmp(&median(b))).unwrap_or(0);
    let rounds = |ours: &Vec<f64>| Rounds {
        ours: ours.clone(),
        peer: samples.peers[best].clone(),
        again: samples.again[best].clone(),
        yardstick: Vec::new(),
    };
    let unit = "MB/s";
    if options.wants(NAMES[index]) {
        let measured = rounds(&samples.ours).measured(NAMES[index], unit, STREAM_PEERS[best].0);
        let measured = measured.bar(Bar::RatioAtLeast(0.95)).beside(adaptive_cpp::STREAM[index]);
        measured.print();
        results.push(measured);
        for (peer, (name, _)) in STREAM_PEERS.iter().enumerate() {
            eprintln!("      {name}: {:.0} MB/s", Summary::of(&samples.peers[peer]).median);
        }
        eprintln!("      plain loop: {:.0} MB/s", Summary::of(&samples.plain).median);
    }
    if options.wants(VEC_NAMES[index]) {
        let measured = rounds(&samples.from_vec).measured(VEC_NAMES[index], unit, STREAM_PEERS[best].0);
        measured.print();
        results.push(measured);
    }
}
