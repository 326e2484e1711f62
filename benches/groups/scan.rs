//! Running totals: the example's three launches beside two passes over chunks.

use std::error::Error;

use oxisycl::prelude::*;

use crate::Setting;
use crate::case::Case;
use crate::peers;
use crate::protocol::Measured;

#[path = "../../examples/18_block_scan.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

const N: usize = 1 << 24;
const NAME: &str = "groups.scan";

pub(crate) fn run(setting: &Setting, results: &mut Vec<Measured>) -> Result<(), Box<dyn Error>> {
    if !setting.options.wants(NAME) {
        return Ok(());
    }
    let mut random = setting.random();
    let start: Vec<u32> = (0..N).map(|_| random.next() as u32).collect();
    let numbers = Buffer::from_slice(&start)?;
    let totals = Buffer::uninit(N)?;
    let mut theirs = vec![0; N];
    let case =
        Case { name: NAME, unit: "G/s", amount: N as f64 / 1e9, peer: "two passes over chunks, rayon", bar: 0.95 };
    let mut ours = || {
        let scanned = example::scan(&setting.queue, &numbers, &totals).and_then(|event| event.wait());
        scanned.expect("the commands succeed");
    };
    results.push(case.measure(setting.options.rounds, &mut ours, &mut || peers::scan(&start, &mut theirs)));
    let mut total = 0_u32;
    for ((number, found), theirs) in start.into_iter().zip(totals.to_vec()?).zip(theirs) {
        total = total.wrapping_add(number);
        assert_eq!([found, theirs], [total; 2]);
    }
    Ok(())
}
