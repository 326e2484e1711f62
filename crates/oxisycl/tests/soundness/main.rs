//! Tries what safe programs must not be able to do to memory. Each misuse that the compiler cannot see is refused at run time, or does no
//! harm. What the compiler refuses is in `ui`.
//!
//! All of this is safe code. It runs under Miri, which sees what merely happens to work.
#![forbid(unsafe_code)]

mod arguments;
mod faults;
mod groups;
mod images;
mod kernels;
mod leaks;
mod overlap;
mod owners;
mod races;
mod writeback;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, SimulatedControl, Simulator};

/// The host device and a simulated one.
fn devices() -> Vec<Device> {
    vec![host(), simulated(1).0.remove(0)]
}

fn host() -> Device {
    Device::select(oxisycl::selector::cpu_selector).unwrap()
}

fn simulated(n_devices: usize) -> (Vec<Device>, SimulatedControl) {
    let simulator = Simulator::new(SimulatedConfig::new(n_devices)).unwrap();
    (simulator.devices(), simulator.control())
}

/// A simulated device whose commands take a while.
fn slow(milliseconds: u64) -> Device {
    let config = SimulatedConfig::new(1).latency(Duration::from_millis(milliseconds));
    Simulator::new(config).unwrap().devices().remove(0)
}

fn filled(n_elements: usize) -> Buffer<u32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

/// Adds one to every element.
fn add_one(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + 1))
    })
}

/// A kernel that fails, on a buffer.
fn fail(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let _data = cg.access(buffer, ReadWrite);
        cg.single_task(|_| std::panic::resume_unwind(Box::new("on purpose")))
    })
}

#[track_caller]
fn refused<T>(result: oxisycl::Result<T>, code: ErrorCode, text: &str) {
    let Err(error) = result else { panic!("accepted, expected {code}: {text}") };
    let message = format!("{error:?}");
    assert!(error.code() == code && message.contains(text), "expected {code}: {text:?}, got {message}");
}

/// Holds a host task or kernel back.
struct Gate(AtomicBool);

impl Gate {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    fn pass(&self) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn open(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// For another round, when nothing waits for it.
    fn close(&self) {
        self.0.store(false, Ordering::Release);
    }
}

#[track_caller]
fn eventually(condition: impl Fn() -> bool) {
    for _ in 0..if cfg!(miri) { 1_000_000 } else { 100_000 } {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    panic!("not within 20 s");
}
