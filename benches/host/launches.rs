//! Launches that do next to nothing, one behind the other: what it costs to have native entries.

use oxisycl::prelude::*;

use crate::beside::Result;
use crate::protocol::Measured;
use crate::{Mode, Setting, entries, finish};

const NAME: &str = "host.launch";
/// Work-items of a launch.
const ITEMS: usize = 16;
/// Launches of a run.
const LAUNCHES: usize = 1000;

pub(crate) fn run(setting: &Setting, _results: &mut Vec<Measured>) -> Result {
    if setting.mode != Mode::Entry || !setting.options.wants(NAME) {
        return Ok(());
    }
    let numbers = Buffer::from_vec(vec![0_u64; ITEMS])?;
    let launch = || {
        setting.queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for(ITEMS, move |item| numbers.update(item, |number| number + 1))
        })
    };
    let mut n_runs = 0;
    let mut ours = || {
        (1..LAUNCHES).for_each(|_| drop(launch().expect("the command is submitted")));
        finish(launch());
        n_runs += 1;
    };
    entries::serve(NAME, &mut ours, &mut || {});
    let expected = n_runs * LAUNCHES as u64;
    assert!(numbers.to_vec()?.iter().all(|number| *number == expected), "{NAME}: each launch adds one");
    Ok(())
}
