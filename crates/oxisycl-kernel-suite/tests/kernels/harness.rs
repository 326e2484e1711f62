//! Runs each kernel on each device, and the same closure in a loop, and compares: a trial of `libtest-mimic` each, called
//! `device theme::name`.
//!
//! Invariant: a device that is present and has an image in the program runs every kernel. A kernel that the device refuses is a failure,
//! unless `refusals` lists it with the reason that must be given. Without an image, which is so in a plain `cargo test`, only the host
//! device runs them, and the suite says so.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use libtest_mimic::{Completion, Failed, Trial};

use oxisycl::prelude::*;
use oxisycl::{BackendKind, Device, KernelId, float, observe};

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

    /// Ends the test, which is reported as ignored.
    pub(crate) fn skip(&self, why: impl Into<String>) -> ! {
        panic::resume_unwind(Box::new(Skip(why.into())))
    }

    /// Runs the kernel for the indices below [`N`], each of its operations rounded as on the host, and compares bit for bit.
    #[track_caller]
    pub(crate) fn compare<T: Outcome>(&self, kernel: impl Fn(usize) -> T + Copy + Send + Sync + 'static) {
        let results = Buffer::from_vec(vec![T::NOTHING; N]).expect("a buffer");
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
        let results = Buffer::from_vec(vec![T::NOTHING; N]).expect("a buffer");
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
        let input = Buffer::from_vec_nd(input, n).expect("a buffer");
        let results = Buffer::from_vec(vec![T::NOTHING; n]).expect("a buffer");
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
        let memory = Buffer::from_vec_nd(initial, length).expect("a buffer");
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

/// What is ours of the command line, and what is for `libtest-mimic`.
struct Arguments {
    device: String,
    is_strict: bool,
    /// How often each kernel runs, of whose launches a trace then has the times.
    repeat: usize,
    others: Vec<String>,
}

impl Arguments {
    fn parse() -> Self {
        let mut arguments = std::env::args();
        let program = arguments.next().unwrap_or_default();
        let mut parsed = Self { device: "all".to_owned(), is_strict: false, repeat: 1, others: vec![program] };
        while let Some(argument) = arguments.next() {
            match argument.split_once('=') {
                Some(("--device", value)) => parsed.device = value.to_owned(),
                _ if argument == "--device" => parsed.device = arguments.next().unwrap_or_default(),
                _ if argument == "--strict" => parsed.is_strict = true,
                _ if argument == "--repeat" => {
                    let times = arguments.next().and_then(|times| times.parse().ok());
                    parsed.repeat = times.filter(|times| *times > 0).expect("--repeat: a number above zero");
                }
                _ => parsed.others.push(argument),
            }
        }
        parsed
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
            eprintln!("{name} does not run: {reason}");
        } else if backend != BackendKind::Host && !has_images {
            eprintln!("{name} does not run: this program was built without device code, `cargo sycl test` builds it");
        } else {
            chosen.push((name, device));
        }
    }
    chosen
}

/// Runs the kernels that the command line selects, one after another. Fails if no device can run them.
pub(crate) fn main(themes: &[(&str, &[Test])]) -> ExitCode {
    let arguments = Arguments::parse();
    let devices = devices(&arguments.device);
    if devices.is_empty() {
        println!("there is no {} device with code to run", arguments.device);
        return ExitCode::FAILURE;
    }
    let mut settings = libtest_mimic::Arguments::from_iter(&arguments.others);
    // A panic belongs to the kernel that runs.
    settings.test_threads = Some(1);
    let panics = record_panics();
    let mut trials = Vec::new();
    for (device_name, device) in devices {
        // Made by the first kernel that runs, so that a list of the kernels needs none.
        let env = Arc::new(OnceLock::<Env>::new());
        for (theme, test) in themes.iter().flat_map(|(theme, tests)| tests.iter().map(move |test| (theme, test))) {
            let (name, run) = (format!("{theme}::{}", test.name), test.run);
            let (env, device, panics) = (env.clone(), device.clone(), panics.clone());
            let Arguments { is_strict, repeat, .. } = arguments;
            trials.push(Trial::ignorable_test(format!("{device_name} {name}"), move || {
                let queue = || Queue::new(&device).expect("a queue can be made");
                let env = env.get_or_init(|| Env { queue: queue(), is_strict });
                judge(env, &name, run_one(run, env, &panics, repeat))
            }));
        }
    }
    let before = observe::counters();
    let conclusion = libtest_mimic::run(&settings, trials);
    let done = observe::counters() - before;
    if done.native_kernels > 0 {
        eprintln!("{} of {} launches ran native code", done.native_kernels, done.kernels);
    }
    conclusion.exit_code()
}

/// What the outcome means for a kernel that the device can run, or is listed as one that it must refuse.
fn judge(env: &Env, name: &str, outcome: Result<Option<String>, Vec<String>>) -> Result<Completion, Failed> {
    if let Some(reason) = refusals::expected(env.queue.device().backend(), name) {
        refusals::check(reason, outcome)?;
        return Ok(Completion::ignored_with(format!("refused, as it must be: {reason}")));
    }
    match outcome {
        Ok(None) => Ok(Completion::Completed),
        Ok(Some(why)) => Ok(Completion::ignored_with(why)),
        Err(messages) => Err(messages.join("\n").into()),
    }
}

type Panics = Arc<Mutex<Vec<String>>>;

/// `Ok` with the reason if the test was skipped.
fn run_one(run: fn(&Env), env: &Env, panics: &Panics, repeat: usize) -> Result<Option<String>, Vec<String>> {
    let lock = || panics.lock().unwrap_or_else(PoisonError::into_inner);
    lock().clear();
    match panic::catch_unwind(AssertUnwindSafe(|| (0..repeat).for_each(|_| run(env)))) {
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
