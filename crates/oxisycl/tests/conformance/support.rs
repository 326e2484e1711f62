//! What tests of several areas use: kernels of one line, gates that hold commands back, counting, random numbers.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use oxisycl::observe::{Counters, counters};
use oxisycl::prelude::*;
use oxisycl::{EventStatus, Result};

/// `0, 1, 2, ..`
pub(crate) fn iota(n: usize) -> Vec<i32> {
    (0..n as i32).collect()
}

/// What `f` changed in the process's counters, and its result.
pub(crate) fn counted<R>(f: impl FnOnce() -> R) -> (Counters, R) {
    let before = counters();
    let result = f();
    (counters() - before, result)
}

/// The code of the error that a call must give.
#[track_caller]
pub(crate) fn code<T>(result: Result<T>) -> ErrorCode {
    match result {
        Ok(_) => panic!("an error was expected"),
        Err(error) => error.code(),
    }
}

/// For [`update`]. A function is of one type wherever it is named, and so is the kernel; each closure makes a kernel of its own.
pub(crate) fn plus_one(x: i32) -> i32 {
    x + 1
}

/// For [`update`], for the reason of [`plus_one`].
pub(crate) fn doubled(x: i32) -> i32 {
    x * 2
}

/// For [`update`], for the reason of [`plus_one`].
pub(crate) fn negated(x: i32) -> i32 {
    -x
}

/// Submits a kernel that replaces each element by `f` of it.
pub(crate) fn update<const D: usize>(
    queue: &Queue,
    buffer: &Buffer<i32, D>,
    f: impl Fn(i32) -> i32 + Copy + Send + Sync + 'static,
) -> Event {
    let submitted = queue.submit(|cg| {
        let data = cg.access(buffer, ReadWrite);
        cg.parallel_for(buffer.range(), move |item| data.update(item, f))
    });
    submitted.unwrap()
}

/// Submits a kernel that replaces each element of a part by `f` of it.
pub(crate) fn update_range<const D: usize>(
    queue: &Queue,
    buffer: &Buffer<i32, D>,
    offset: impl Into<Id<D>>,
    range: impl Into<Range<D>>,
    f: impl Fn(i32) -> i32 + Copy + Send + Sync + 'static,
) -> Event {
    let range = range.into();
    let submitted = queue.submit(|cg| {
        let data = cg.access_range(buffer, ReadWrite, offset, range);
        cg.parallel_for(range, move |item| data.update(item, f))
    });
    submitted.unwrap()
}

/// Submits a kernel that stores each element's row-major position plus `base`, without moving old data.
pub(crate) fn write_positions<const D: usize>(queue: &Queue, buffer: &Buffer<i32, D>, base: i32) -> Event {
    let submitted = queue.submit(|cg| {
        let data = cg.access(buffer, Write.no_init());
        cg.parallel_for(buffer.range(), move |item| data.set(item, base + item.linear_id() as i32))
    });
    submitted.unwrap()
}

/// Submits a kernel that has read access to the whole buffer and does nothing.
pub(crate) fn touch<const D: usize>(queue: &Queue, buffer: &Buffer<i32, D>) -> Event {
    touch_range(queue, buffer, [0; D], buffer.range())
}

/// Submits a kernel that has read access to a part and does nothing.
pub(crate) fn touch_range<const D: usize>(
    queue: &Queue,
    buffer: &Buffer<i32, D>,
    offset: impl Into<Id<D>>,
    range: impl Into<Range<D>>,
) -> Event {
    let submitted = queue.submit(|cg| {
        cg.access_range(buffer, Read, offset, range);
        cg.single_task(|_| {})
    });
    submitted.unwrap()
}

/// What a kernel on the queue's device reads from the buffer.
pub(crate) fn read_on<const D: usize>(queue: &Queue, buffer: &Buffer<i32, D>) -> Vec<i32> {
    let seen = Buffer::<i32, D>::uninit(buffer.range()).unwrap();
    let submitted = queue.submit(|cg| {
        let (from, to) = (cg.access(buffer, Read), cg.access(&seen, Write.no_init()));
        cg.parallel_for(buffer.range(), move |item| to.set(item, from.get(item)))
    });
    submitted.unwrap();
    seen.to_vec().unwrap()
}

/// A host task that holds back whatever depends on it until it is opened or dropped.
pub(crate) struct Gate {
    open: Option<mpsc::Sender<()>>,
    event: Event,
}

impl Gate {
    /// A gate with the accessors that `record` makes.
    pub(crate) fn new(queue: &Queue, record: impl for<'cg> FnOnce(&mut Handler<'cg>)) -> Self {
        let (open, is_open) = mpsc::channel::<()>();
        let submitted = queue.submit(|cg| {
            record(cg);
            cg.host_task(move |_| {
                let _ = is_open.recv();
            })
        });
        Self { open: Some(open), event: submitted.unwrap() }
    }

    /// A gate that writes the whole buffer, without moving its data to the host.
    pub(crate) fn writing<T: DeviceCopyable, const D: usize>(queue: &Queue, buffer: &Buffer<T, D>) -> Self {
        Self::new(queue, |cg| {
            cg.access(buffer, ReadWrite);
        })
    }

    pub(crate) fn event(&self) -> &Event {
        &self.event
    }

    /// Lets everything go on.
    pub(crate) fn open(mut self) {
        self.open = None;
    }

    /// Lets everything go on some time later.
    pub(crate) fn open_later(mut self) {
        let open = self.open.take();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(open);
        });
    }
}

/// Fails unless the command ends soon although nobody waits for it.
#[track_caller]
pub(crate) fn assert_completes(event: &Event) {
    let began = Instant::now();
    while !event.is_complete() {
        assert!(began.elapsed() < Duration::from_secs(20), "the command is held back");
        std::thread::sleep(Duration::from_micros(100));
    }
    assert_eq!(event.status(), EventStatus::Complete);
}

/// Fails if the command ends although something holds it back.
#[track_caller]
pub(crate) fn assert_held_back(event: &Event) {
    assert!(!event.is_complete(), "the command was not held back");
    std::thread::sleep(Duration::from_millis(5));
    assert!(!event.is_complete(), "the command was not held back");
}

/// Random numbers (SplitMix64).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// A begin and a length of at least one, inside `extent`.
    pub(crate) fn interval(&mut self, extent: usize) -> (usize, usize) {
        let begin = self.below(extent);
        (begin, 1 + self.below(extent - begin))
    }
}
