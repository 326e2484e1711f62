//! How often each byte occurs: the example's kernel beside local bins of rayon's folds.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::peers;
use crate::protocol::Measured;

#[path = "../../examples/16_histogram.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

const N: usize = 1 << 24;
const NAME: &str = "groups.histogram";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let text: Vec<u8> = (0..N / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let bytes = Buffer::from_slice(&text)?;
    let bins = Buffer::from_vec(vec![0; 256])?;
    let mut n_runs = 0;
    let mut theirs = Vec::new();
    let case = Case { name: NAME, unit: "GB/s", amount: N as f64 / 1e9, peer: "fold of local bins, rayon", bar: 0.9 };
    let mut ours = || {
        let counted = example::count(&setting.queue, &bytes, &bins).and_then(|event| event.wait());
        counted.expect("the command succeeds");
        n_runs += 1;
    };
    results.push(case.measure(setting.options.rounds, &mut ours, &mut || theirs = peers::count(&text)));
    let mut expected = vec![0_u32; 256];
    for byte in text {
        expected[usize::from(byte)] += 1;
    }
    assert_eq!(theirs, expected);
    // Ours adds to what is there.
    let expected: Vec<u32> = expected.iter().map(|n| n.wrapping_mul(n_runs)).collect();
    assert_eq!(bins.to_vec()?, expected);
    Ok(())
}
