//! Rounds of one case, by processor time, with the time that passed beside.

use crate::processor::{Times, times};
use crate::protocol::{Bar, Measured, Rounds, Summary};

/// Repetitions of one measurement, of which the best counts.
const REPETITIONS: usize = 3;

/// A case with one peer.
pub(crate) struct Case<'a> {
    pub(crate) name: &'a str,
    pub(crate) unit: &'static str,
    /// What is done, in the unit without its second.
    pub(crate) amount: f64,
    pub(crate) peer: &'a str,
    /// The least ratio to the peer.
    pub(crate) bar: f64,
}

/// The least processor time, and the time that passed meanwhile.
fn least(f: &mut dyn FnMut()) -> Times {
    let all = (0..REPETITIONS).map(|_| times(&mut *f));
    all.min_by(|a, b| a.processor.total_cmp(&b.processor)).expect("there are repetitions")
}

impl Case<'_> {
    pub(crate) fn measure(&self, n_rounds: usize, ours: &mut dyn FnMut(), peer: &mut dyn FnMut()) -> Measured {
        let mut wall = [Vec::new(), Vec::new()];
        let [our_wall, peer_wall] = &mut wall;
        let rate = |times: Times, wall: &mut Vec<f64>| {
            wall.push(times.wall * 1e3);
            self.amount / times.processor
        };
        let rounds = Rounds::run(n_rounds, None, || rate(least(ours), our_wall), || rate(least(peer), peer_wall));
        let measured = rounds.measured(self.name, self.unit, self.peer).bar(Bar::RatioAtLeast(self.bar));
        let [our_wall, peer_wall] = wall.map(|wall| Summary::of(&wall).median);
        let measured = measured.beside(format!("{our_wall:.1} / {peer_wall:.1} ms"));
        measured.print();
        measured
    }
}
