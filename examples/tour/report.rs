//! What the terminal shows.

use std::fmt;
use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::time::Duration;

use oxisycl::observe::Counters;
use oxisycl::prelude::Device;

use crate::devices::short_name;
use crate::failure::Failure;
use crate::pipeline::{Cost, Outcome, Step};
use crate::reference::{BLUR_TOLERANCE, LEVEL_TOLERANCE};

/// Columns of a terminal, which only what the user names exceeds.
const WIDTH: usize = 80;

/// Standard output. Goes silent if its reader is gone, since the pictures are still to be written then.
pub(crate) struct Console {
    out: StdoutLock<'static>,
    is_open: bool,
    is_styled: bool,
}

impl Console {
    pub(crate) fn new() -> Self {
        let out = io::stdout().lock();
        let is_styled = out.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { out, is_open: true, is_styled }
    }

    pub(crate) fn line(&mut self, text: fmt::Arguments<'_>) -> Result<(), Failure> {
        if !self.is_open {
            return Ok(());
        }
        match writeln!(self.out, "{text}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.is_open = false,
            Err(error) => return Err(Failure::output(&error)),
            Ok(()) => {}
        }
        Ok(())
    }

    pub(crate) fn heading(&mut self, title: &str) -> Result<(), Failure> {
        let (on, off) = if self.is_styled { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
        self.line(format_args!("\n{on}{title}{off}"))
    }

    /// Items behind a title, with commas, in lines that fit the terminal.
    fn list(&mut self, title: &str, items: &[String]) -> Result<(), Failure> {
        let mut line = format!("  {title}");
        for (position, item) in items.iter().enumerate() {
            let comma = if position + 1 < items.len() { "," } else { "" };
            if line.chars().count() + 1 + item.chars().count() + comma.len() > WIDTH {
                self.line(format_args!("{line}"))?;
                line = "   ".to_owned();
            }
            line.push_str(&format!(" {item}{comma}"));
        }
        self.line(format_args!("{line}"))
    }

    /// Rows of cells, each column as wide as its widest cell. The columns from `n_left` on are numbers.
    fn table(&mut self, rows: &[Vec<String>], n_left: usize) -> Result<(), Failure> {
        let n_columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let length = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| cell.chars().count());
        let width = |column| rows.iter().map(|row| length(row, column)).max().unwrap_or(0);
        let widths: Vec<usize> = (0..n_columns).map(width).collect();
        for row in rows {
            let mut line = String::new();
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let cell = if column < n_left { format!("  {cell:<width$}") } else { format!("  {cell:>width$}") };
                line.push_str(&cell);
            }
            self.line(format_args!("{}", line.trim_end()))?;
        }
        Ok(())
    }
}

/// All devices, those that take part with a mark.
pub(crate) fn devices(console: &mut Console, all: &[Device], chosen: &[Device]) -> Result<(), Failure> {
    let row = |(i, device): (usize, &Device)| {
        let info = device.info();
        let mark = if chosen.contains(device) { "*" } else { " " };
        vec![
            format!("{mark} {i:>2}"),
            short_name(device).to_owned(),
            info.device_type.to_string(),
            device.name().to_owned(),
            format!("{} compute unit{}", info.max_compute_units, if info.max_compute_units == 1 { "" } else { "s" }),
            bytes(info.global_mem_size),
        ]
    };
    let mut rows: Vec<Vec<String>> = all.iter().enumerate().map(row).collect();
    let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let others: usize = [0, 1, 2, 4, 5].into_iter().map(widest).sum();
    // What is left of a line beside the other cells, and the two blanks in front of each.
    let most = WIDTH.saturating_sub(others + 6 * 2);
    rows.iter_mut().for_each(|row| row[3] = cut(&row[3], most));
    console.table(&rows, 4)
}

/// The beginning of a text that is longer than that.
fn cut(text: &str, most: usize) -> String {
    const MARK: &str = "..";
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(MARK.len())).collect();
    format!("{}{MARK}", kept.trim_end())
}

/// Who works on what.
pub(crate) fn bands(console: &mut Console, chosen: &[Device], outcome: &Outcome) -> Result<(), Failure> {
    let shares = chosen.iter().zip(&outcome.bands).map(|(device, band)| match band.is_empty() {
        true => format!("{} none", short_name(device)),
        false => format!("{} {}..{}", short_name(device), band.start, band.end),
    });
    let shares: Vec<String> = shares.collect();
    match outcome.n_strips {
        1 => console.list("rows:", &shares),
        n => console.list(&format!("in {n} strips; rows of the first:"), &shares),
    }
}

/// Time and moved bytes per device and step.
pub(crate) fn steps(
    console: &mut Console,
    chosen: &[Device],
    outcome: &Outcome,
    n_pixels: usize,
) -> Result<(), Failure> {
    console.heading("steps")?;
    let time = |cost: &Cost| cost.time.as_secs_f64();
    let sum = device_time(outcome).as_secs_f64();
    let head = ["device", "step", "time", "share", "from host", "between", "to host"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (device, costs) in chosen.iter().zip(&outcome.costs) {
        let mut name = short_name(device);
        for step in Step::ALL {
            let cost = &costs[step as usize];
            if cost.n_commands == 0 {
                continue;
            }
            let share = format!("{:.1} %", 100.0 * time(cost) / sum.max(f64::MIN_POSITIVE));
            let mut row = vec![name.to_owned(), step.name().to_owned(), duration(cost.time), share];
            row.extend(moved(&cost.moved));
            rows.push(row);
            name = "";
        }
    }
    let mut row = vec!["host".to_owned(), "fetching".to_owned(), duration(outcome.fetching.time), String::new()];
    row.extend(moved(&outcome.fetching.moved));
    rows.push(row);
    console.table(&rows, 2)?;
    let rate = n_pixels as f64 / sum.max(f64::MIN_POSITIVE) / 1e6;
    let seconds = duration(Duration::from_secs_f64(sum));
    console.line(format_args!("\n  {seconds} of device time, {rate:.0} million pixels per second of it"))
}

/// The time of all steps on all devices.
fn device_time(outcome: &Outcome) -> Duration {
    outcome.costs.iter().flatten().map(|cost| cost.time).sum()
}

fn moved(counters: &Counters) -> [String; 3] {
    let amount = |bytes_moved| if bytes_moved == 0 { "-".to_owned() } else { bytes(bytes_moved) };
    [amount(counters.bytes_to_device), amount(counters.bytes_between_devices), amount(counters.bytes_to_host)]
}

pub(crate) fn check(console: &mut Console, outcome: &Outcome) -> Result<(), Failure> {
    let Some(check) = &outcome.check else {
        return console.line(format_args!("  skipped"));
    };
    console.line(format_args!("  {} pixels agree with plain Rust", check.n_pixels))?;
    let plain = duration(check.plain);
    console.line(format_args!(
        "  plain Rust took {plain} on one thread, the devices {}",
        duration(device_time(outcome))
    ))?;
    console.line(format_args!("  luminance, histogram and curve are equal"))?;
    let differences = [
        format!("blur {:.6} (tolerance {BLUR_TOLERANCE})", check.blurred),
        format!("edges {} (tolerance {LEVEL_TOLERANCE})", check.edges),
        format!("result {} (tolerance {LEVEL_TOLERANCE})", check.result),
    ];
    console.list("greatest differences in levels:", &differences)
}

/// Files and what they show.
pub(crate) fn written(console: &mut Console, files: &[(&Path, &str)]) -> Result<(), Failure> {
    let rows: Vec<_> = files.iter().map(|(path, what)| vec![path.display().to_string(), (*what).to_owned()]).collect();
    console.table(&rows, 2)
}

/// A time with three digits.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    format!("{} {unit}", three_digits(value))
}

/// A size in the largest unit that keeps it at least one.
pub(crate) fn bytes(size: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let exponent = (size.max(1).ilog2() / 10).min(4);
    let value = size as f64 / f64::from(1u32 << 10).powi(exponent as i32);
    let text = if exponent == 0 { size.to_string() } else { three_digits(value) };
    format!("{text} {}", units[exponent as usize])
}

fn three_digits(value: f64) -> String {
    let digits = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$}")
}
