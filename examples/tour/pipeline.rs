//! Runs the steps: which rows are on the devices at a time, which of them each device takes, and what that costs.
//!
//! A picture is worked on in strips of rows, so that any size fits into any device. Within a strip each device has a band.
//! Steps are submitted one after the other, each for all bands: what a band reads of its neighbours has then been submitted.

use std::ops::Range;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use oxisycl::observe::{self, Counters};
use oxisycl::prelude::*;

use crate::failure::Failure;
use crate::picture::Picture;
use crate::progress;
use crate::reference::Check;
use crate::steps::{self, HALO, LEVELS, Strip};

/// The granularity of bands and of copies between devices, in rows.
pub(crate) const PAGE_ROWS: usize = 16;
/// Pixels on the devices at a time, if their memory does not ask for fewer.
const STRIP_PIXELS: usize = 8 << 20;

/// The kinds of work, in the order of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Luminance,
    Histogram,
    Curve,
    BlurAlongRows,
    BlurAlongColumns,
    Edges,
    Tones,
}

impl Step {
    pub(crate) const ALL: [Self; 7] = [
        Self::Luminance,
        Self::Histogram,
        Self::Curve,
        Self::BlurAlongRows,
        Self::BlurAlongColumns,
        Self::Edges,
        Self::Tones,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Luminance => "luminance",
            Self::Histogram => "histogram",
            Self::Curve => "curve",
            Self::BlurAlongRows => "blur of rows",
            Self::BlurAlongColumns => "blur of columns",
            Self::Edges => "edges",
            Self::Tones => "tone mapping",
        }
    }
}

/// What one step cost on one device, over all strips.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cost {
    pub(crate) n_commands: usize,
    pub(crate) time: Duration,
    pub(crate) moved: Counters,
}

/// What became of a picture.
pub(crate) struct Outcome {
    pub(crate) result: Picture,
    pub(crate) edges: Vec<u8>,
    pub(crate) histogram: [u64; LEVELS],
    pub(crate) curve: [u8; LEVELS],
    /// Per device and step.
    pub(crate) costs: Vec<[Cost; Step::ALL.len()]>,
    /// Getting the results to the host.
    pub(crate) fetching: Cost,
    pub(crate) n_strips: usize,
    /// Per device, the rows of the first strip that it worked on.
    pub(crate) bands: Vec<Range<usize>>,
    pub(crate) check: Option<Check>,
    pub(crate) checking: Duration,
}

/// Runs all steps on `devices`, at least one.
pub(crate) fn run(picture: &Picture, devices: &[Device], check: bool) -> Result<Outcome, Failure> {
    let mut pipeline = Pipeline::new(picture, devices)?;
    let result = pipeline.run(check);
    pipeline.bar.finish_and_clear();
    if result.is_err() {
        // The first error tells enough. Waiting keeps those that follow from it, and pending work, out of the way.
        for queue in &pipeline.queues {
            let _ = queue.wait_and_throw();
        }
    }
    result
}

struct Pipeline<'p> {
    picture: &'p Picture,
    queues: Vec<Queue>,
    strips: Vec<Range<usize>>,
    costs: Vec<[Cost; Step::ALL.len()]>,
    /// Commands whose times are not in `costs` yet.
    running: Vec<(usize, Step, Event)>,
    bar: ProgressBar,
}

impl<'p> Pipeline<'p> {
    fn new(picture: &'p Picture, devices: &[Device]) -> Result<Self, Failure> {
        let make = |device| Queue::builder().device(device).profiling().handler(|_errors| {}).build();
        let queues = devices.iter().map(make).collect::<oxisycl::Result<Vec<Queue>>>()?;
        let strips = strips(picture, devices);
        let n_commands = if strips.len() == 1 { 6 } else { 7 } * strips.len() * queues.len() + 1;
        Ok(Self {
            picture,
            costs: vec![Default::default(); queues.len()],
            queues,
            strips,
            running: Vec::new(),
            bar: progress::bar(n_commands, picture.n_pixels()),
        })
    }

    fn run(&mut self, check: bool) -> Result<Outcome, Failure> {
        let n_devices = self.queues.len();
        // A page per device, so that the devices count at the same time.
        let options = BufferOptions::new().page_size([1, LEVELS]);
        let counts = options.from_vec_nd(vec![0u32; n_devices * LEVELS], [n_devices, LEVELS])?;
        let curve = Buffer::<u8, 1>::uninit(LEVELS)?;

        // The curve needs the whole histogram, so the strips come twice; a strip that is the only one stays.
        let mut last = None;
        for rows in self.strips.clone() {
            drop(last.take());
            let strip = self.upload(&rows)?;
            let own = rows.start - strip.begin..rows.end - strip.begin;
            self.submit(Step::Histogram, &strip.bands, |queue, device, band| {
                let band = band.start.max(own.start)..band.end.min(own.end);
                steps::histogram(queue, &strip.buffers, &band, &counts, device)
            })?;
            self.settle()?;
            last = Some(strip);
        }
        let first = 0..1;
        self.submit(Step::Curve, &[first], |queue, _, _| steps::curve(queue, &counts, &curve))?;

        let mut outcome = Outcome {
            result: self.picture.like(),
            edges: Vec::with_capacity(self.picture.n_pixels()),
            histogram: total(&counts.to_vec()?),
            curve: <[u8; LEVELS]>::try_from(curve.to_vec()?).unwrap_or([0; LEVELS]),
            costs: Vec::new(),
            fetching: Cost::default(),
            n_strips: self.strips.len(),
            bands: Vec::new(),
            check: None,
            checking: Duration::ZERO,
        };
        let mut checked = None;
        if check {
            let start = Instant::now();
            checked = Some(Check::new(self.picture, &outcome.histogram, &outcome.curve)?);
            outcome.checking += start.elapsed();
        }
        for rows in self.strips.clone() {
            let strip = match last.take().filter(|_| self.strips.len() == 1) {
                Some(strip) => strip,
                None => self.upload(&rows)?,
            };
            self.process(&strip, &curve)?;
            self.settle()?;
            self.fetch(&strip, &rows, &mut outcome)?;
            if let Some(check) = &mut checked {
                let start = Instant::now();
                let expected = check.expected(self.picture, &rows, &outcome.curve);
                check.compare(&strip.buffers, &expected, rows.start, strip.begin)?;
                outcome.checking += start.elapsed();
            }
            if outcome.bands.is_empty() {
                outcome.bands = strip.bands;
            }
        }
        outcome.costs = std::mem::take(&mut self.costs);
        outcome.check = checked;
        Ok(outcome)
    }

    /// Makes the buffers for `rows` and those around, and submits what every strip begins with.
    fn upload(&mut self, rows: &Range<usize>) -> Result<PlacedStrip, Failure> {
        let begin = rows.start.saturating_sub(HALO);
        let end = (rows.end + HALO).min(self.picture.height);
        let bands = bands(end - begin, self.queues.len());
        let buffers = Strip::new(self.picture.rows(begin..end), self.picture.width, &bands)?;
        let strip = PlacedStrip { buffers, begin, bands };
        self.submit(Step::Luminance, &strip.bands, |queue, device, band| {
            steps::luminance(queue, &strip.buffers, device, band)
        })?;
        Ok(strip)
    }

    fn process(&mut self, strip: &PlacedStrip, curve: &Buffer<u8, 1>) -> Result<(), Failure> {
        let PlacedStrip { buffers, bands, .. } = strip;
        self.submit(Step::BlurAlongRows, bands, |queue, _, band| steps::blur_along_rows(queue, buffers, band))?;
        self.submit(Step::BlurAlongColumns, bands, |queue, _, band| steps::blur_along_columns(queue, buffers, band))?;
        self.submit(Step::Edges, bands, |queue, _, band| steps::edges(queue, buffers, band))?;
        self.submit(Step::Tones, bands, |queue, device, band| steps::tones(queue, buffers, device, band, curve))
    }

    /// Submits a step for the bands of all devices. What has to be moved for it is known at once.
    fn submit(
        &mut self,
        step: Step,
        bands: &[Range<usize>],
        command: impl Fn(&Queue, usize, &Range<usize>) -> oxisycl::Result<Event>,
    ) -> Result<(), Failure> {
        for (device, band) in bands.iter().enumerate().filter(|(_, band)| !band.is_empty()) {
            let before = observe::counters();
            let event = command(&self.queues[device], device, band)?;
            let cost = &mut self.costs[device][step as usize];
            cost.moved = sum(cost.moved, observe::counters() - before);
            cost.n_commands += 1;
            self.running.push((device, step, event));
        }
        Ok(())
    }

    /// Waits for the commands submitted so far, and takes their times.
    fn settle(&mut self) -> Result<(), Failure> {
        for (device, step, event) in self.running.drain(..) {
            event.wait()?;
            let profile = event.profile()?;
            self.costs[device][step as usize].time += Duration::from_nanos(profile.end - profile.start);
            self.bar.inc(1);
        }
        Ok(())
    }

    /// Gets the results of a strip, without the rows that it has in common with its neighbours.
    fn fetch(&self, strip: &PlacedStrip, rows: &Range<usize>, outcome: &mut Outcome) -> Result<(), Failure> {
        let (start, before) = (Instant::now(), observe::counters());
        let (range, offset) = ([rows.len(), self.picture.width], [rows.start - strip.begin, 0]);
        let result = strip.buffers.result.host_access_range(Read, offset, range)?;
        let edges = strip.buffers.edges.host_access_range(Read, offset, range)?;
        // Whole rows follow each other without a gap.
        outcome.result.push_rows(result.to_slice().unwrap_or_default());
        outcome.edges.extend_from_slice(edges.to_slice().unwrap_or_default());
        outcome.fetching.time += start.elapsed();
        outcome.fetching.moved = sum(outcome.fetching.moved, observe::counters() - before);
        Ok(())
    }
}

/// A strip, the row of the picture where its buffers begin, and per device the rows that it works on.
struct PlacedStrip {
    buffers: Strip,
    begin: usize,
    bands: Vec<Range<usize>>,
}

/// The rows of the picture, in pieces that fit into the memory of every device.
fn strips(picture: &Picture, devices: &[Device]) -> Vec<Range<usize>> {
    let memory = devices.iter().map(|device| device.info().global_mem_size).min().unwrap_or(0);
    let fitting = usize::try_from(memory).unwrap_or(usize::MAX) / (4 * Strip::BYTES);
    let most_rows = fitting.min(STRIP_PIXELS) / picture.width;
    let rows = (most_rows.saturating_sub(2 * HALO) / PAGE_ROWS * PAGE_ROWS).max(PAGE_ROWS);
    let rows = if picture.height <= most_rows { picture.height } else { rows };
    (0..picture.height).step_by(rows).map(|begin| begin..picture.height.min(begin + rows)).collect()
}

/// Shares rows among devices, in whole pages. Some devices get none if there are too few.
fn bands(n_rows: usize, n_devices: usize) -> Vec<Range<usize>> {
    let n_pages = n_rows.div_ceil(PAGE_ROWS);
    let begin = |device: usize| n_rows.min(device * n_pages / n_devices * PAGE_ROWS);
    (0..n_devices).map(|device| begin(device)..begin(device + 1)).collect()
}

fn total(counts: &[u32]) -> [u64; LEVELS] {
    let mut total = [0; LEVELS];
    for (i, &count) in counts.iter().enumerate() {
        total[i % LEVELS] += u64::from(count);
    }
    total
}

/// Adds up what the report shows.
fn sum(a: Counters, b: Counters) -> Counters {
    let mut sum = a;
    sum.bytes_to_device += b.bytes_to_device;
    sum.bytes_to_host += b.bytes_to_host;
    sum.bytes_between_devices += b.bytes_between_devices;
    sum
}
