//! Runs the list of tests one after another on each kind of device.
//!
//! Invariant: tests share nothing but the process's counters, which are quiet between two tests: a test that leaves commands
//! or memory behind fails. Does not know what is tested.

use std::any::Any;
use std::cell::Cell;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use oxisycl::observe::{Counters, counters};
use oxisycl::simulated::{SimulatedConfig, SimulatedControl, Simulator};
use oxisycl::{BackendKind, Device, KernelId, Queue};

/// A test may take that long.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// What a test submitted and dropped must be gone after that long.
const QUIET_LIMIT: Duration = Duration::from_secs(5);

/// One test. Its name says what holds.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&Env),
}

/// Lists the tests of a file, each once; one that is left out is reported by the compiler as never used.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub(crate) const TESTS: &[$crate::harness::Test] =
            &[$($crate::harness::Test { name: stringify!($name), run: $name }),*];
    };
}
pub(crate) use tests;

/// What a test runs on.
pub(crate) struct Env {
    /// At least three, each with a memory of its own.
    devices: Vec<Device>,
    simulator: Simulator,
    /// Whether the device under test is one of the simulator's.
    is_controlled: bool,
    seed: u64,
    may_leak: Cell<bool>,
}

impl Env {
    fn new(kind: &Kind, seed: u64) -> Self {
        // Ready commands run in a shuffled order, so that a missing dependency shows.
        let simulate = |n| Simulator::new(SimulatedConfig::new(n).shuffled(seed)).expect("a simulator can be made");
        let simulator = simulate(3);
        let mut devices = match kind.name {
            SIMULATED => Vec::new(),
            APART => simulate(1).devices(),
            _ => kind.roots.clone(),
        };
        devices.extend(simulator.devices());
        Self { devices, simulator, is_controlled: kind.name == SIMULATED, seed, may_leak: Cell::new(false) }
    }

    /// The device under test.
    pub(crate) fn device(&self) -> &Device {
        &self.devices[0]
    }

    /// A device with another memory.
    pub(crate) fn other_device(&self) -> &Device {
        &self.devices[1]
    }

    /// A device with yet another memory.
    pub(crate) fn third_device(&self) -> &Device {
        &self.devices[2]
    }

    /// The three devices, the one under test first.
    pub(crate) fn devices(&self) -> &[Device] {
        &self.devices[..3]
    }

    /// A new out-of-order queue on the device under test.
    pub(crate) fn queue(&self) -> Queue {
        queue_on(self.device())
    }

    /// A new out-of-order queue on the second device.
    pub(crate) fn other_queue(&self) -> Queue {
        queue_on(self.other_device())
    }

    /// A new out-of-order queue on the third device.
    pub(crate) fn third_queue(&self) -> Queue {
        queue_on(self.third_device())
    }

    /// A new in-order queue on the device under test.
    pub(crate) fn in_order_queue(&self) -> Queue {
        Queue::builder().device(self.device()).in_order().build().expect("a queue can be made")
    }

    /// Whether the device under test is the host, whose memory needs no transfer.
    pub(crate) fn is_host(&self) -> bool {
        self.device().backend() == BackendKind::Host
    }

    /// Two devices that copy from and to each other's memory: the one under test and one beside it, if there is such a one, else two of the
    /// simulator's. The test ends without a result if there are none.
    pub(crate) fn neighbours(&self) -> [&Device; 2] {
        let is_platform_of = |one: &Device, other: &Device| one.platform() == other.platform();
        let pairs = [[0, 1], [0, 2], [1, 2]].map(|pair| pair.map(|index| &self.devices[index]));
        let found = pairs.into_iter().find(|[one, other]| is_platform_of(one, other));
        found.unwrap_or_else(|| self.skip("no two devices are of one platform"))
    }

    /// The transfers that bring data from one device to another: one, or two by way of the host where neither device can
    /// copy from or to the other's memory, as is the case with a GPU and a simulated device.
    pub(crate) fn hops(&self, from: &Device, to: &Device) -> u64 {
        self.hops_in_turn(from, [to])[0]
    }

    /// The transfers that bring data, which only `from` has, to each of the other devices, one after the other. A device that has
    /// them by then is a source as well, and so is the host after a detour.
    pub(crate) fn hops_in_turn<const N: usize>(&self, from: &Device, to: [&Device; N]) -> [u64; N] {
        let (mut sources, mut is_on_host) = (vec![from], false);
        to.map(|to| {
            let is_reached = is_on_host || sources.iter().any(|source| copies_directly(source, to));
            sources.push(to);
            is_on_host |= !is_reached;
            if is_reached { 1 } else { 2 }
        })
    }

    /// Disturbs the device under test, if it is simulated beside the others.
    pub(crate) fn control(&self) -> Option<SimulatedControl> {
        self.is_controlled.then(|| self.simulator.control())
    }

    /// For random programs.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The test forgets something on purpose.
    pub(crate) fn allow_leaks(&self) {
        self.may_leak.set(true);
    }

    /// Ends the test without a result.
    pub(crate) fn skip(&self, why: impl Into<String>) -> ! {
        panic::resume_unwind(Box::new(Skip(why.into())))
    }
}

/// Whether data go from one device to the other by one transfer: within a platform, and from and to the host's memory.
fn copies_directly(from: &Device, to: &Device) -> bool {
    let is_host = |device: &Device| device.backend() == BackendKind::Host;
    is_host(from) || is_host(to) || from.platform() == to.platform()
}

/// Whether the queue's device keeps the order itself, so that a command may have run on what a failed one left behind before the
/// failure is known (semantics, 5.5).
pub(crate) fn runs_ahead(queue: &Queue) -> bool {
    matches!(queue.device().backend(), BackendKind::Cuda | BackendKind::OpenCl)
}

/// A new out-of-order queue.
pub(crate) fn queue_on(device: &Device) -> Queue {
    Queue::new(device).expect("a queue can be made")
}

struct Skip(String);

enum Outcome {
    Passed,
    Skipped(String),
    Failed(Vec<String>),
}

struct Arguments {
    device: String,
    seed: u64,
    filter: Vec<String>,
    is_list: bool,
}

impl Arguments {
    fn parse() -> Self {
        let mut parsed = Self { device: "all".to_owned(), seed: 1, filter: Vec::new(), is_list: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            let mut value = || inline.clone().or_else(|| arguments.next()).unwrap_or_default();
            match name {
                "--device" => parsed.device = value(),
                "--seed" => match value().parse() {
                    Ok(seed) => parsed.seed = seed,
                    Err(error) => usage(&format!("--seed: {error}")),
                },
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

fn usage(problem: &str) -> ! {
    eprintln!("{problem}\nusage: conformance [--device {}|all] [--seed N] [FILTER]", KINDS.join("|"));
    std::process::exit(2)
}

/// Three simulated devices of one platform.
const SIMULATED: &str = "simulated";
/// A simulated device, and two of another platform with which it exchanges data only by way of the host, as a GPU does.
const APART: &str = "apart";
const KINDS: [&str; 5] = ["host", SIMULATED, APART, "cuda", "opencl"];

/// What is tested.
struct Kind {
    name: &'static str,
    /// Root devices of the process, or none for kinds that are made for each test.
    roots: Vec<Device>,
}

/// What was asked for and can be tested here.
fn kinds(device: &str) -> Vec<Kind> {
    if device != "all" && !KINDS.contains(&device) {
        usage(&format!("unknown device \"{device}\""));
    }
    let present = Device::all().expect("devices can be listed");
    for device in &present {
        if let Some(reason) = device.unusable() {
            println!("{} device \"{}\" is left out: {reason}", device.backend(), device.name());
        }
    }
    let has_images = !KernelId::all().expect("the images of this program can be read").is_empty();
    let asked_for = KINDS.into_iter().filter(|name| device == "all" || *name == device);
    let kinds = asked_for.map(|name| {
        let is_tested = |device: &&Device| device.backend().name() == name && device.unusable().is_none();
        let mut roots: Vec<Device> = present.iter().filter(is_tested).cloned().collect();
        if device == "all" && !has_images && roots.iter().any(|root| !root.image_targets().is_empty()) {
            println!("{name} is left out: this program was built without device code, `cargo sycl test` builds it");
            roots.clear();
        }
        Kind { name, roots }
    });
    kinds.filter(|kind| [SIMULATED, APART].contains(&kind.name) || !kind.roots.is_empty()).collect()
}

/// Runs the tests that the command line selects.
pub(crate) fn main(areas: &[(&str, &[Test])]) -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.is_list {
        return ExitCode::SUCCESS;
    }
    let panics = record_panics();
    let kinds = kinds(&arguments.device);
    if kinds.is_empty() {
        println!("there is no {} device\n0 passed, 0 failed", arguments.device);
        return ExitCode::FAILURE;
    }
    let current = watch();
    let (mut n_passed, mut n_failed, mut n_skipped) = (0, 0, 0);
    for kind in &kinds {
        let device = kind.name;
        // Tests keep kernels running while they launch others for the first time.
        for root in &kind.roots {
            root.load_kernels().expect("a device takes its kernels");
        }
        for (area, tests) in areas {
            for test in *tests {
                let name = format!("{area}::{}", test.name);
                if !arguments.selects(&name) {
                    continue;
                }
                print!("{device} {name} ... ");
                let _ = std::io::stdout().flush();
                *lock(&current) = Some((format!("{device} {name}"), Instant::now()));
                let outcome = run(test, || Env::new(kind, arguments.seed), &panics);
                *lock(&current) = None;
                match outcome {
                    Outcome::Passed => {
                        println!("ok");
                        n_passed += 1;
                    }
                    Outcome::Skipped(why) => {
                        println!("skipped ({why})");
                        n_skipped += 1;
                    }
                    Outcome::Failed(messages) => {
                        println!("FAILED");
                        for message in messages {
                            println!("    {device} {name}: {message}");
                        }
                        n_failed += 1;
                    }
                }
            }
        }
    }
    if n_skipped > 0 {
        println!("{n_skipped} skipped");
    }
    println!("{n_passed} passed, {n_failed} failed");
    if n_failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

type Panics = Arc<Mutex<Vec<String>>>;

fn run(test: &Test, make_env: impl FnOnce() -> Env, panics: &Panics) -> Outcome {
    lock(panics).clear();
    let before = counters();
    let mut may_leak = false;
    let result = panic::catch_unwind(AssertUnwindSafe(|| {
        let env = make_env();
        let result = panic::catch_unwind(AssertUnwindSafe(|| (test.run)(&env)));
        may_leak = env.may_leak.get();
        result
    }));
    let payload = match result.and_then(|result| result) {
        Ok(()) if may_leak => return Outcome::Passed,
        Ok(()) => {
            return match wait_until_quiet(&before) {
                Ok(()) => Outcome::Passed,
                Err(message) => Outcome::Failed(vec![message]),
            };
        }
        Err(payload) => payload,
    };
    // What a failed test leaves behind is no second failure.
    let _ = wait_until_quiet(&before);
    match payload.downcast::<Skip>() {
        Ok(skip) => Outcome::Skipped(skip.0),
        Err(payload) => {
            let mut messages = std::mem::take(&mut *lock(panics));
            if messages.is_empty() {
                messages.push(text_of(&*payload).to_owned());
            }
            Outcome::Failed(messages)
        }
    }
}

/// Waits until everything that was submitted since `before` has ended and all memory of it is freed.
fn wait_until_quiet(before: &Counters) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let since = counters() - *before;
        let nodes = since.live_nodes();
        let buffers = since.buffer_allocations.saturating_sub(since.buffer_frees);
        let usm = since.usm_allocations.saturating_sub(since.usm_frees);
        if (nodes, buffers, usm) == (0, 0, 0) {
            return Ok(());
        }
        if began.elapsed() > QUIET_LIMIT {
            return Err(format!(
                "left {nodes} commands, {buffers} allocations of buffers and {usm} usm allocations behind"
            ));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Collects the panics of all threads instead of printing them: a test may provoke some.
fn record_panics() -> Panics {
    let panics = Panics::default();
    let record = panics.clone();
    panic::set_hook(Box::new(move |info| {
        let location = info.location().map_or_else(String::new, |location| format!(" at {location}"));
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("a thread");
        lock(&record).push(format!("{thread} panicked{location}: {}", text_of(info.payload())));
    }));
    panics
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic without a text")
}

/// Ends the process if the test that is named in the result takes too long.
fn watch() -> Arc<Mutex<Option<(String, Instant)>>> {
    let current = Arc::new(Mutex::new(None::<(String, Instant)>));
    let watched = current.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(250));
            if let Some((name, began)) = &*lock(&watched)
                && began.elapsed() > TIME_LIMIT
            {
                println!("FAILED\n    {name}: still running after {} s", TIME_LIMIT.as_secs());
                let _ = std::io::stdout().flush();
                std::process::abort();
            }
        }
    });
    current
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
