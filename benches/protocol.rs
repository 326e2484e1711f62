//! How everything here is measured: rounds in which ours and the peer take turns, and what is made of them.
//!
//! Every round measures ours once and the peer twice, in alternating order. Each time the best of a few repetitions counts, which excludes
//! short disturbances. The report has medians over the rounds with minimum and maximum. They are those of our value, the peer's, and the
//! ratio of ours to the peer per round. It also has those of the peer against itself (A/A), which is the noise of the machine. A bar is
//! compared with medians, and so is the noise that may excuse a miss. This noise is the factor by which the median of A/A is off 1. Its
//! extremes are single rounds, which on a busy machine would excuse anything. Bars in microseconds scale with a yardstick that is measured
//! in every round, too. Its best value tells how fast the machine is, whatever else it does. A bar is scaled by it in both directions. A
//! machine that is slower than the one on which the bar was set gets a wider bar, and a faster machine a tighter one.

#[path = "verdict.rs"]
mod verdict;

use std::fmt;
use std::time::Instant;

use verdict::Verdict;

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Summary {
    /// Of at least one value.
    pub(crate) fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
        Self { median, min: sorted[0], max: sorted[sorted.len() - 1] }
    }

    /// Of the quotients of values that were measured in the same round.
    pub(crate) fn of_ratios(values: &[f64], others: &[f64]) -> Self {
        let ratios: Vec<f64> = values.iter().zip(others).map(|(value, other)| value / other).collect();
        Self::of(&ratios)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}..{})", short(self.median), short(self.min), short(self.max))
    }
}

/// Seconds that `f` takes.
pub(crate) fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

/// Resident memory of this process, in bytes; not a number where the system does not say.
pub(crate) fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes * 1024.0)
}

/// Repetitions of one measurement, of which the best counts.
const REPETITIONS: usize = 3;

/// The least of a few measurements.
pub(crate) fn least(mut measure: impl FnMut() -> f64) -> f64 {
    (0..REPETITIONS).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

/// What must be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    /// At most that many of the value's unit, on a machine as fast as the one on which the bar was set.
    ScaledAtMost(f64),
    /// At most that many of the value's unit.
    AtMost(f64),
    /// The ratio of ours to the peer is at least this.
    RatioAtLeast(f64),
    /// The ratio of ours to the peer is at most this.
    RatioAtMost(f64),
    /// None: for information.
    Information,
}

/// Something that is timed to know how fast the machine is just now.
pub(crate) struct Yardstick<'a> {
    /// The yardstick's best value, in microseconds, on the machine on which the bars were set.
    pub(crate) reference: f64,
    pub(crate) measure: &'a dyn Fn() -> f64,
}

/// The result of one case.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) value: Summary,
    pub(crate) peer: Option<Peer>,
    pub(crate) bar: Bar,
    /// How much slower the machine is than the one on which the bars were set.
    pub(crate) drift: Option<f64>,
    /// What another implementation needs for the same, in the same unit, for people to compare.
    pub(crate) beside: Option<String>,
}

/// What the peer reached in the same rounds.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) value: Summary,
    pub(crate) ratio: Summary,
    /// The peer against itself.
    pub(crate) noise: Summary,
}

/// Everything that was measured in the rounds of one case.
#[derive(Clone, Default)]
pub(crate) struct Rounds {
    pub(crate) ours: Vec<f64>,
    pub(crate) peer: Vec<f64>,
    pub(crate) again: Vec<f64>,
    pub(crate) yardstick: Vec<f64>,
}

impl Rounds {
    /// Runs the rounds, after one that does not count.
    pub(crate) fn run(
        n_rounds: usize,
        yardstick: Option<&Yardstick<'_>>,
        mut ours: impl FnMut() -> f64,
        mut peer: impl FnMut() -> f64,
    ) -> Self {
        let mut rounds = Self::default();
        ours();
        peer();
        for round in 0..n_rounds {
            if let Some(yardstick) = yardstick {
                rounds.yardstick.push(least(yardstick.measure));
            }
            // Whoever comes second finds the machine as the first one left it.
            if round % 2 == 0 {
                rounds.peer.push(peer());
                rounds.ours.push(ours());
                rounds.again.push(peer());
            } else {
                rounds.again.push(peer());
                rounds.ours.push(ours());
                rounds.peer.push(peer());
            }
        }
        rounds
    }

    /// The result, without bar.
    pub(crate) fn measured(&self, name: &str, unit: &'static str, peer: &str) -> Measured {
        Measured {
            name: name.to_owned(),
            unit,
            value: Summary::of(&self.ours),
            peer: Some(Peer {
                name: peer.to_owned(),
                value: Summary::of(&self.peer),
                ratio: Summary::of_ratios(&self.ours, &self.peer),
                noise: Summary::of_ratios(&self.again, &self.peer),
            }),
            bar: Bar::Information,
            drift: None,
            beside: None,
        }
    }

    /// How much slower the machine is than the one on which the bars were set.
    pub(crate) fn drift(&self, yardstick: &Yardstick<'_>) -> f64 {
        Summary::of(&self.yardstick).min / yardstick.reference
    }
}

impl Measured {
    /// A value that has no peer.
    pub(crate) fn alone(name: &str, unit: &'static str, values: &[f64], bar: Bar) -> Self {
        let value = Summary::of(values);
        Self { name: name.to_owned(), unit, value, peer: None, bar, drift: None, beside: None }
    }

    /// With a bar.
    pub(crate) fn bar(self, bar: Bar) -> Self {
        Self { bar, ..self }
    }

    /// With the figure of another implementation.
    pub(crate) fn beside(self, figure: impl Into<String>) -> Self {
        Self { beside: Some(figure.into()), ..self }
    }

    /// With the drift of the yardstick.
    pub(crate) fn drift(self, drift: f64) -> Self {
        Self { drift: Some(drift), ..self }
    }

    /// The factor by which the peer's median differs from its own, at least 1.
    fn noise(&self) -> f64 {
        self.peer.as_ref().map_or(1.0, |peer| peer.noise.median.max(1.0 / peer.noise.median))
    }

    /// The bar as it counts in this run.
    fn limit(&self) -> Option<f64> {
        match self.bar {
            Bar::ScaledAtMost(limit) => Some(limit * self.drift.unwrap_or(1.0)),
            Bar::AtMost(limit) | Bar::RatioAtLeast(limit) | Bar::RatioAtMost(limit) => Some(limit),
            Bar::Information => None,
        }
    }

    /// Whether the bar holds.
    pub(crate) fn verdict(&self) -> Verdict {
        let Some(limit) = self.limit() else { return Verdict::Information };
        let ratio = self.peer.as_ref().map_or(f64::NAN, |peer| peer.ratio.median);
        // By how much the bar is missed; at most 1 if it holds.
        let excess = match self.bar {
            Bar::RatioAtLeast(_) => limit / ratio,
            Bar::RatioAtMost(_) => ratio / limit,
            _ => self.value.median / limit,
        };
        Verdict::of(excess, self.noise())
    }

    /// One line for people who wait.
    pub(crate) fn print(&self) {
        eprintln!("  {}", self.row().iter().map(String::as_str).collect::<Vec<_>>().join("  "));
    }

    fn row(&self) -> [String; 8] {
        let range = Summary::to_string;
        let bar = match (self.bar, self.limit()) {
            (Bar::ScaledAtMost(bar), Some(limit)) if limit != bar => format!("<= {} (x{:.2})", short(bar), limit / bar),
            (Bar::ScaledAtMost(bar) | Bar::AtMost(bar), _) => format!("<= {} {}", short(bar), self.unit),
            (Bar::RatioAtLeast(bar), _) => format!("ratio >= {}", short(bar)),
            (Bar::RatioAtMost(bar), _) => format!("ratio <= {}", short(bar)),
            (Bar::Information, _) => String::new(),
        };
        let peer = |f: &dyn Fn(&Peer) -> String| self.peer.as_ref().map_or_else(|| "-".to_owned(), f);
        [
            self.name.clone(),
            format!("{} {}", range(&self.value), self.unit),
            peer(&|peer| format!("{} {}", short(peer.value.median), peer.name)),
            peer(&|peer| range(&peer.ratio)),
            peer(&|peer| range(&peer.noise)),
            self.beside.clone().unwrap_or_else(|| "-".to_owned()),
            bar,
            self.verdict().to_string(),
        ]
    }

    fn json(&self) -> String {
        let number = |value: Option<f64>| match value {
            Some(value) if value.is_finite() => format!("{value}"),
            _ => "null".to_owned(),
        };
        let peer = self.peer.as_ref();
        format!(
            "{{\"name\": \"{}\", \"value\": {}, \"unit\": \"{}\", \"peer\": {}, \"peer_value\": {}, \"ratio\": {}}}",
            self.name,
            number(Some(self.value.median)),
            self.unit,
            peer.map_or("null".to_owned(), |peer| format!("\"{}\"", peer.name)),
            number(peer.map(|peer| peer.value.median)),
            number(peer.map(|peer| peer.ratio.median)),
        )
    }
}

/// A number with as many digits as matter.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The results as a JSON list.
pub(crate) fn json(results: &[Measured]) -> String {
    let lines: Vec<String> = results.iter().map(|result| format!("  {}", result.json())).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

/// Prints the results as a table; `beside` is the head of the column with figures of another implementation. Whether all bars hold.
pub(crate) fn print_table(results: &[Measured], beside: &str) -> bool {
    let head = ["case", "ours (min..max)", "peer", "ours / peer", "A/A", beside, "bar", "verdict"];
    let rows: Vec<[String; 8]> =
        std::iter::once(head.map(str::to_owned)).chain(results.iter().map(Measured::row)).collect();
    let widths: [usize; 8] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    println!();
    for row in &rows {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", cells.join(" | ").trim_end());
    }
    let count = |verdict: Verdict| results.iter().filter(|result| result.verdict() == verdict).count();
    let [holding, within_noise, missed] = [Verdict::Holds, Verdict::WithinNoise, Verdict::Missed].map(count);
    println!("\n{}", closing(holding, within_noise, missed));
    missed == 0
}

/// How many bars hold. One that is missed by less than the noise does not.
fn closing(holding: usize, within_noise: usize, missed: usize) -> String {
    format!("{holding} of {} bars hold, {within_noise} within noise, {missed} MISSED", holding + within_noise + missed)
}
