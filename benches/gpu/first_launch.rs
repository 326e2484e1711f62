//! What it costs to submit kernels that are new to the device while another one runs.
//!
//! The driver loads code only once no kernel runs. Here the running kernel ends by a flag of the host, after all new ones were submitted. A
//! `submit` that waited for the driver would never return. A kernel is new once in a process: all rounds have the figure of the first.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use oxisycl::Result;
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::usm::UsmSlice;

use crate::Measured;
use crate::cases::FIRST_LAUNCH;

/// How long the running kernel runs at least.
const RUNNING: Duration = Duration::from_secs(1);
/// Microseconds that all submissions may take.
const ALLOWED: f64 = 20_000.0;
/// In how much time something that is loaded is to start, and to end, while a new kernel waits.
const STARTS_WITHIN: Duration = Duration::from_millis(10);

pub(crate) fn measure(device: &Device, measured: &mut Measured<'_>) -> Result {
    static FIRST: OnceLock<f64> = OnceLock::new();
    measured.add_pair(FIRST_LAUNCH, || {
        if FIRST.get().is_none() {
            loaded_ones_start(device)?;
            let _ = FIRST.set(submissions(device)?);
        }
        Ok([FIRST.get().copied().unwrap_or(f64::NAN), ALLOWED])
    })
}

/// A kernel that runs until the host lets it end.
struct Running {
    flag: UsmSlice<u32>,
    event: Event,
}

impl Running {
    fn start(queue: &Queue) -> Result<Self> {
        let mut flag = queue.malloc_host::<u32>(1)?;
        // SAFETY: no command uses the memory yet.
        unsafe { flag.as_mut_slice() }?[0] = 0;
        let pointer = flag.pointer();
        let event = queue.single_task(move |_| {
            // SAFETY: the allocation outlives the command; each access of it is volatile.
            while unsafe { pointer.as_ptr().read_volatile() } == 0 {}
        })?;
        Ok(Self { flag, event })
    }

    fn end(&self) -> Result {
        assert!(!self.event.is_complete(), "nothing else ends it");
        // SAFETY: the allocation is alive, and the kernel only looks at it.
        unsafe { self.flag.as_ptr().write_volatile(1) };
        self.event.wait()
    }
}

/// A kernel of its own for each number.
fn new<const N: u32>(queue: &Queue, sum: &Buffer<u32, 1>) -> Result<Event> {
    queue.submit(|cg| {
        let sum = cg.access(sum, Atomic);
        cg.single_task(move |task| _ = sum.fetch_add(task, 0, N + 1))
    })
}

type New = fn(&Queue, &Buffer<u32, 1>) -> Result<Event>;

/// All kernels whose numbers end with one of the digits.
macro_rules! kernels {
    ($($digit:literal)*) => { [$(kernels!($digit: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)),*] };
    ($digit:literal: $($tens:literal)*) => { [$(new::<{ 10 * $tens + $digit }>),*] };
}

/// One for each round, and those that are submitted together.
const KERNELS: [[New; 17]; 10] = kernels!(0 1 2 3 4 5 6 7 8 9);
/// How often something that is loaded starts beside a new kernel.
const ROUNDS: usize = 100;
const MANY: usize = 64;

/// Microseconds of submitting 64 new kernels.
fn submissions(device: &Device) -> Result<f64> {
    let (busy, queue) = (Queue::new(device)?, Queue::new(device)?);
    let sum = Buffer::from_vec(vec![0u32])?;
    // Neither this kernel nor the buffer's way to the device is to be measured.
    queue.submit(|cg| {
        let sum = cg.access(&sum, ReadWrite);
        cg.single_task(move |task| sum.set_at(task, 0, 0))
    })?;
    queue.wait()?;
    let running = Running::start(&busy)?;
    let (began, before) = (Instant::now(), counters());
    let mut events = Vec::new();
    for kernel in &KERNELS.as_flattened()[..MANY] {
        events.push(kernel(&queue, &sum)?);
    }
    let time = began.elapsed();
    assert_eq!((counters() - before).loads, 0, "no load waits for the kernel");
    std::thread::sleep(RUNNING.saturating_sub(began.elapsed()));
    running.end()?;
    events.iter().try_for_each(Event::wait)?;
    assert_eq!((counters() - before).loads, MANY as u64);
    Ok(time.as_secs_f64() * 1e6)
}

/// While a new kernel waits for one that runs, a loaded kernel and a copy start in time. Each does in each round, in turn as the first.
fn loaded_ones_start(device: &Device) -> Result {
    let [busy, queue, other] = [(); 3].map(|()| Queue::new(device));
    let (busy, queue, other) = (busy?, queue?, other?);
    let (sum, numbers) = (Buffer::from_vec(vec![0u32])?, Buffer::from_vec(vec![0u32; 1024])?);
    let mut memory = other.malloc_device::<u32>(1024)?;
    memory.copy_from_slice(&other, &[7; 1024])?;
    let loaded = || -> Result<Duration> {
        let began = Instant::now();
        let event = other.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for(1024, move |item| numbers.update(item, |x| x + 1))
        });
        event?.wait()?;
        Ok(began.elapsed())
    };
    let copied = || -> Result<Duration> {
        let began = Instant::now();
        let copied = memory.to_vec(&other)?;
        let time = began.elapsed();
        assert_eq!(copied, [7; 1024]);
        Ok(time)
    };
    loaded()?;
    copied()?;
    let mut times = Vec::new();
    for (round, kernel) in KERNELS.as_flattened()[MANY..].iter().take(ROUNDS).enumerate() {
        let running = Running::start(&busy)?;
        let event = kernel(&queue, &sum)?;
        // In turn before and after the time from which on commands are held back.
        std::thread::sleep(Duration::from_micros(500 * (round / 2 % 6) as u64));
        let pair = if round % 2 == 0 { [loaded()?, copied()?] } else { [copied()?, loaded()?] };
        times.extend(pair);
        assert!(!event.is_complete(), "it is not loaded");
        running.end()?;
        event.wait()?;
    }
    assert_eq!(times.len(), 2 * ROUNDS);
    assert_eq!(numbers.to_vec()?, [1 + ROUNDS as u32; 1024]);
    let in_time = times.chunks(2).filter(|pair| pair.iter().all(|time| *time <= STARTS_WITHIN)).count();
    let verdict = if in_time == ROUNDS { "holds" } else { "MISSED" };
    println!(
        "gpu.first_launch: behind a running kernel and beside a new one, a loaded kernel and a copy each ended within {STARTS_WITHIN:?} in \
         {in_time} of {ROUNDS} rounds, in {:?} at most: {verdict}",
        times.iter().max().unwrap_or(&Duration::ZERO)
    );
    Ok(())
}
