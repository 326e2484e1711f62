//! How often each byte occurs. Every work-item adds to the bins of all, or counts a chunk of its own first, or groups have bins.

use std::error::Error;

use oxisycl::prelude::*;
use rayon::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::protocol::Measured;

#[path = "../../examples/16_histogram.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

const BAR: f64 = 0.7;
const BINS: usize = 256;
/// Bytes that a work-item counts alone.
const CHUNK: usize = 1024;

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    histogram(setting, results, "plain.histogram", with_shared_bins)?;
    histogram(setting, results, "plain.histogram.own", with_own_bins)?;
    histogram(setting, results, "plain.histogram.groups", example::count)
}

fn with_shared_bins(queue: &Queue, text: &Buffer<u8, 1>, bins: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let n = text.range();
        let (text, bins) = (cg.access(text, Read), cg.access(bins, Atomic));
        cg.parallel_for(n, move |item: Item<1>| {
            bins.fetch_add(item, usize::from(text.get(item)), 1);
        })
    })
}

fn with_own_bins(queue: &Queue, text: &Buffer<u8, 1>, bins: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let n_chunks = text.range().size().div_ceil(CHUNK);
        let (text, bins) = (cg.access(text, Read), cg.access(bins, Atomic));
        cg.parallel_for(n_chunks, move |item: Item<1>| {
            let mut own = [0; BINS];
            for byte in text.view(item).chunk(item, CHUNK) {
                own[usize::from(*byte)] += 1;
            }
            for (bin, n) in own.into_iter().enumerate() {
                if n > 0 {
                    bins.fetch_add(item, bin, n);
                }
            }
        })
    })
}

fn fold(text: &[u8]) -> Vec<u32> {
    let bins = text.par_chunks(1 << 16).fold(
        || vec![0; BINS],
        |mut bins, text| {
            for byte in text {
                bins[usize::from(*byte)] += 1;
            }
            bins
        },
    );
    bins.reduce(|| vec![0; BINS], |a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect())
}

fn histogram(
    setting: &Setting,
    results: &mut Vec<Measured>,
    name: &str,
    count: impl Fn(&Queue, &Buffer<u8, 1>, &Buffer<u32, 1>) -> oxisycl::Result<Event>,
) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(name) {
        return Ok(());
    }
    let mut random = setting.random();
    let n = (1 << 22) + random.below(CHUNK);
    let bytes: Vec<u8> = (0..n).map(|_| random.next() as u8).collect();
    let text = Buffer::from_slice(&bytes)?;
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    let mut ours = || {
        let counted = || {
            let bins = Buffer::from_vec(vec![0; BINS])?;
            count(&setting.queue, &text, &bins)?;
            bins.to_vec()
        };
        found = counted().expect("the command succeeds");
    };
    let case = Case { name, unit: "GB/s", amount: n as f64 / 1e9, peer: "fold of bins, rayon", bar: BAR };
    setting.measure(&case, &mut ours, &mut || expected = fold(&bytes), results);
    assert_eq!(found, expected, "{name} of {n}");
    Ok(())
}
