//! Runs each kernel on each device, and the same closure in a loop; compares, counts, and says what did not run.
//!
//! Invariant: a device that is present and has an image in the program runs every kernel: one that the device refuses is a failure, not
//! a kernel less, unless it is listed in `refusals` with the reason that must be given. Without an image, which is so in a plain `cargo test`, only the host device runs them, and the suite says so.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use oxisycl::prelude::*;
use oxisycl::{BackendKind, Device, KernelId, float};

use crate::outcome::{Outcome, Tolerance};
use crate::refusals;

/// One kernel, or one litmus test. Its name says what it is about.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Env),
}

/// Lists the kernels of a file, each once; one that is left out is reported by the compiler as never used.
macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::harness::Test] =
            &[$($crate::harness::Test { name: stringify!($name), run: $name }),*];
    };
}
pub(crate) use kernels;

/// Work-items of a kernel that does not say how many it wants: several groups, the last of which is not full.
pub(crate) const N: usize = 1000;

/// A number that looks random, and is another one for each argument.
#[inline]
pub(crate) fn scramble(index: usize) -> u32 {
    let mut bits = (index as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (bits ^ (bits >> 27)) as u32
}

/// A number between 0 and 1 that looks random.
#[inline]
pub(crate) fn fraction(index: usize) -> f32 {
    (scramble(index) >> 8) as f32 / 16_777_216.0
}

/// What kernels run on.
pub(crate) struct Env {
    queue: Queue,
    is_strict: bool,
}

impl Env {
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Whether the device has an aspect.
    pub(crate) fn has(&self, aspect: Aspect) -> bool {
        self.queue.device().has(aspect)
    }

    /// Ends the test without a result.
    pub(crate) fn skip(&self, why: impl Into<String>) -> ! {
        panic::resume_unwind(Box::new(Skip(why.into())))
    }

    /// Runs the kernel for the indices below [`N`], each of its operations rounded as on the host, and compares bit for bit.
    #[track_caller]
    pub(crate) fn compare<T: Outcome>(&self, kernel: impl Fn(usize) -> T + Copy + Send + Sync + 'static) {
        let results = Buffer::from_vec(vec![T::NOTHING; N], N).expect("a buffer");
        let submitted = self.queue.submit(|cg| {
            let results = cg.access(&results, Write);
            cg.parallel_for(N, float::strict(move |item| results.set(item, kernel(item.index()))))
        });
        self.finish(submitted);
        let expected: Vec<T> = (0..N).map(kernel).collect();
        self.agree(&results.to_vec().expect("the results"), &expected, Tolerance::Exact);
    }

    /// Runs the kernel for the indices below [`N`], compiled as the build says.
    #[track_caller]
    pub(crate) fn compare_within<T: Outcome>(
        &self,
        tolerance: Tolerance,
        kernel: impl Fn(usize) -> T + Copy + Send + Sync + 'static,
    ) {
        let results = Buffer::from_vec(vec![T::NOTHING; N], N).expect("a buffer");
        let submitted = self.queue.submit(|cg| {
            let results = cg.access(&results, Write);
            cg.parallel_for(N, move |item| results.set(item, kernel(item.index())))
        });
        self.finish(submitted);
        let expected: Vec<T> = (0..N).map(kernel).collect();
        self.agree(&results.to_vec().expect("the results"), &expected, tolerance);
    }

    /// Runs the kernel once for each element of the input, all of which it may read.
    #[track_caller]
    pub(crate) fn compare_over<I: DeviceCopyable, T: Outcome>(
        &self,
        tolerance: Tolerance,
        input: Vec<I>,
        kernel: impl Fn(&[I], usize) -> T + Copy + Send + Sync + 'static,
    ) {
        let n = input.len();
        let expected: Vec<T> = (0..n).map(|index| kernel(&input, index)).collect();
        let input = Buffer::from_vec(input, n).expect("a buffer");
        let results = Buffer::from_vec(vec![T::NOTHING; n], n).expect("a buffer");
        let submitted = self.queue.submit(|cg| {
            let (input, results) = (cg.access(&input, Read), cg.access(&results, Write));
            cg.parallel_for(n, move |item| results.set(item, kernel(input.view(item).as_slice(), item.index())))
        });
        self.finish(submitted);
        self.agree(&results.to_vec().expect("the results"), &expected, tolerance);
    }

    /// Runs the kernel for the indices below `n` on memory that all work-items share, and compares what is there at the end. The
    /// kernel accesses it atomically, and the order of work-items does not matter.
    #[track_caller]
    pub(crate) fn compare_memory<T: Outcome>(
        &self,
        n: usize,
        initial: Vec<T>,
        kernel: impl Fn(*mut T, usize) + Copy + Send + Sync + 'static,
    ) {
        let mut expected = initial.clone();
        let pointer = expected.as_mut_ptr();
        (0..n).for_each(|index| kernel(pointer, index));
        let length = initial.len();
        let memory = Buffer::from_vec(initial, length).expect("a buffer");
        let submitted = self.queue.submit(|cg| {
            let memory = cg.access(&memory, ReadWrite);
            cg.parallel_for(n, move |item| kernel(memory.as_ptr(), item.index()))
        });
        self.finish(submitted);
        self.agree(&memory.to_vec().expect("the memory"), &expected, Tolerance::Exact);
    }

    /// Waits for a command that must succeed.
    #[track_caller]
    pub(crate) fn finish(&self, submitted: oxisycl::Result<Event>) {
        let waited = submitted.and_then(|event| event.wait());
        waited.unwrap_or_else(|error| panic!("{:?}: {error}", error.code()));
    }

    #[track_caller]
    pub(crate) fn agree<T: Outcome>(&self, found: &[T], expected: &[T], tolerance: Tolerance) {
        let distance = tolerance.distance(self.is_strict);
        let differ = |index: &usize| !found[*index].agrees(&expected[*index], distance);
        let wrong: Vec<usize> = (0..expected.len()).filter(differ).collect();
        if let Some(&first) = wrong.first() {
            panic!(
                "{} of {} results differ, the first at {first}: {:?} instead of {:?} ({tolerance:?})",
                wrong.len(),
                expected.len(),
                found[first],
                expected[first],
            );
        }
    }
}

struct Skip(String);

struct Arguments {
    device: String,
    is_strict: bool,
    filter: Vec<String>,
    is_list: bool,
}

impl Arguments {
    fn parse() -> Self {
        let mut parsed = Self { device: "all".to_owned(), is_strict: false, filter: Vec::new(), is_list: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value = || inline.clone().or_else(|| arguments.next()).unwrap_or_default();
            match name {
                "--device" => parsed.device = value(),
                "--strict" => parsed.is_strict = true,
                "--list" => parsed.is_list = true,
                // Meant for the standard harness.
                "--test-threads" | "--format" | "--color" | "--logfile" | "--skip" | "-Z" => drop(value()),
                _ if argument.starts_with('-') => {}
                _ => parsed.filter.push(argument),
            }
        }
        parsed
    }

    fn selects(&self, full_name: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|filter| full_name.contains(filter))
    }
}

/// The devices that were asked for and have code to run, with the names they are shown by.
fn devices(asked_for: &str) -> Vec<(String, Device)> {
    let has_images = !KernelId::all().expect("the images of this program can be read").is_empty();
    let mut counts = Vec::<BackendKind>::new();
    let mut chosen = Vec::new();
    for device in Device::all().expect("devices can be listed") {
        let backend = device.backend();
        let name = format!("{}:{}", backend.name(), counts.iter().filter(|kind| **kind == backend).count());
        counts.push(backend);
        if asked_for != "all" && asked_for != backend.name() {
            continue;
        }
        if let Some(reason) = device.unusable() {
            println!("{name} does not run: {reason}");
        } else if backend != BackendKind::Host && !has_images {
            println!("{name} does not run: this program was built without device code, `cargo sycl test` builds it");
        } else {
            chosen.push((name, device));
        }
    }
    chosen
}

/// Runs the kernels that the command line selects.
pub(crate) fn main(themes: &[(&str, &[Test])]) -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.is_list {
        return ExitCode::SUCCESS;
    }
    let panics = record_panics();
    let (mut n_passed, mut n_failed, mut n_skipped, mut n_refused) = (0, 0, 0, 0);
    for (device_name, device) in devices(&arguments.device) {
        let queue = Queue::new(&device).expect("a queue can be made");
        let env = Env { queue, is_strict: arguments.is_strict };
        let tests = themes.iter().flat_map(|(theme, tests)| tests.iter().map(move |test| (theme, test)));
        for (theme, test) in tests {
            let name = format!("{theme}::{}", test.name);
            if !arguments.selects(&name) {
                continue;
            }
            let outcome = run(test, &env, &panics);
            if let Some(reason) = refusals::expected(env.queue.device().backend(), &name) {
                match refusals::check(reason, outcome) {
                    Ok(()) => {
                        println!("{device_name} {name} ... refused, as it must be ({reason})");
                        n_refused += 1;
                    }
                    Err(message) => {
                        println!("{device_name} {name} ... FAILED\n    {device_name} {name}: {message}");
                        n_failed += 1;
                    }
                }
                continue;
            }
            match outcome {
                Ok(None) => {
                    println!("{device_name} {name} ... ok");
                    n_passed += 1;
                }
                Ok(Some(why)) => {
                    println!("{device_name} {name} ... skipped ({why})");
                    n_skipped += 1;
                }
                Err(messages) => {
                    println!("{device_name} {name} ... FAILED");
                    messages.iter().for_each(|message| println!("    {device_name} {name}: {message}"));
                    n_failed += 1;
                }
            }
        }
    }
    if n_skipped > 0 {
        println!("{n_skipped} skipped");
    }
    if n_refused > 0 {
        println!("{n_refused} refused");
    }
    println!("{n_passed} passed, {n_failed} failed");
    if n_failed == 0 && n_passed > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Panics = Arc<Mutex<Vec<String>>>;

/// `Ok` with the reason if the test was skipped.
fn run(test: &Test, env: &Env, panics: &Panics) -> Result<Option<String>, Vec<String>> {
    let lock = || panics.lock().unwrap_or_else(PoisonError::into_inner);
    lock().clear();
    match panic::catch_unwind(AssertUnwindSafe(|| (test.run)(env))) {
        Ok(()) => Ok(None),
        Err(payload) => match payload.downcast::<Skip>() {
            Ok(skip) => Ok(Some(skip.0)),
            Err(payload) => {
                let mut messages = std::mem::take(&mut *lock());
                if messages.is_empty() {
                    messages.push(text_of(&*payload).to_owned());
                }
                Err(messages)
            }
        },
    }
}

/// Collects the panics of all threads instead of printing them, so that they stand below the kernel that they are of.
fn record_panics() -> Panics {
    let panics = Panics::default();
    let record = panics.clone();
    panic::set_hook(Box::new(move |info| {
        let location = info.location().map_or_else(String::new, |location| format!(" at {location}"));
        let text = format!("panicked{location}: {}", text_of(info.payload()));
        record.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }));
    panics
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}
