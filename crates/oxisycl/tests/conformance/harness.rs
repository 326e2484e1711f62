//! Makes a trial of `libtest-mimic` of each test on each kind of device, and runs them one after another.
//!
//! Invariants: tests share nothing but the process's counters, which are quiet between two tests, so a test that leaves commands
//! or memory behind fails. A test counts for a device only if it asked for that device; one that does not is listed as `once` and
//! runs once. Does not know what is tested.

use std::any::Any;
use std::cell::Cell;
use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Completion, Failed, Trial};
use oxisycl::kernel_bundle::{Executable, KernelBundle};
use oxisycl::observe::{Counters, counters};
use oxisycl::simulated::{SimulatedConfig, SimulatedControl, Simulator};
use oxisycl::{BackendKind, Device, KernelId, Queue};

/// A test may take that long.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// What a test submitted and dropped must be gone after that long.
const QUIET_LIMIT: Duration = Duration::from_secs(5);

/// One test. Its name says what holds.
#[derive(Clone, Copy)]
pub(crate) struct Test {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
}

/// What a test is about.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// A device, which it must use.
    OnDevice(fn(&Env)),
    /// The process, or devices that it makes itself: whatever device is tested, it would be the same test.
    Once(fn()),
}

/// Lists the tests of a file, each once, those without a device under test after `once:`. One that is left out is reported by the
/// compiler as never used.
macro_rules! tests {
    ($($name:ident),* $(,)? $(; once: $($once:ident),* $(,)?)?) => {
        pub(crate) const TESTS: &[$crate::harness::Test] = &[
            $($crate::harness::Test { name: stringify!($name), run: $crate::harness::Run::OnDevice($name) },)*
            $($($crate::harness::Test { name: stringify!($once), run: $crate::harness::Run::Once($once) },)*)?
        ];
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
    /// Whether the test has asked for the device under test.
    is_used: Cell<bool>,
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
        let is_controlled = kind.name == SIMULATED;
        Self { devices, simulator, is_controlled, seed, may_leak: Cell::new(false), is_used: Cell::new(false) }
    }

    /// The device under test.
    pub(crate) fn device(&self) -> &Device {
        self.is_used.set(true);
        &self.devices[0]
    }

    /// The device under test, if its memory is not the host's, else the test is ignored.
    pub(crate) fn device_apart(&self) -> &Device {
        if self.is_host() {
            self.skip("the device's memory is the host's");
        }
        self.device()
    }

    /// A new out-of-order queue on the device under test, if its memory is not the host's, else the test is ignored.
    pub(crate) fn queue_apart(&self) -> Queue {
        queue_on(self.device_apart())
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
        self.is_used.set(true);
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
        self.devices[0].backend() == BackendKind::Host
    }

    /// The device under test and one that copies from and to its memory directly. The test is ignored if there is none.
    pub(crate) fn neighbours(&self) -> [&Device; 2] {
        let is_of_its_platform = |other: &&Device| other.platform() == self.devices[0].platform();
        match self.devices[1..3].iter().find(is_of_its_platform) {
            Some(other) => [self.device(), other],
            None => self.skip("no second device is of the platform of the device under test"),
        }
    }

    /// The number of transfers that bring data from one device to another. It is two, by way of the host, where neither device can copy
    /// from or to the other's memory. That is the case with a GPU and a simulated device.
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

    /// Ends the test, which is reported as ignored.
    pub(crate) fn skip(&self, why: impl Into<String>) -> ! {
        panic::resume_unwind(Box::new(Skip(why.into())))
    }
}

/// Whether data go from one device to the other by one transfer: within a platform, and from and to the host's memory.
fn copies_directly(from: &Device, to: &Device) -> bool {
    let is_host = |device: &Device| device.backend() == BackendKind::Host;
    is_host(from) || is_host(to) || from.platform() == to.platform()
}

/// Whether the queue's device keeps the order itself. A command may then have run on what a failed one left behind, before the failure is
/// known (semantics, 5.5).
pub(crate) fn runs_ahead(queue: &Queue) -> bool {
    matches!(queue.device().backend(), BackendKind::Cuda | BackendKind::OpenCl)
}

/// A new out-of-order queue.
pub(crate) fn queue_on(device: &Device) -> Queue {
    Queue::new(device).expect("a queue can be made")
}

struct Skip(String);

/// What is ours of the command line, and what is for `libtest-mimic`.
struct Arguments {
    device: String,
    seed: u64,
    last_first: bool,
    others: Vec<String>,
}

impl Arguments {
    fn parse() -> Self {
        let mut arguments = std::env::args();
        let program = arguments.next().unwrap_or_default();
        let mut parsed = Self { device: "all".to_owned(), seed: 1, last_first: false, others: vec![program] };
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
                "--last-first" => parsed.last_first = true,
                _ => parsed.others.push(argument),
            }
        }
        parsed
    }
}

fn usage(problem: &str) -> ! {
    eprintln!(
        "{problem}\nusage: conformance [--device {}|all] [--seed N] [--last-first] [FILTER] [--exact]",
        KINDS.join("|")
    );
    std::process::exit(2)
}

/// Three simulated devices of one platform.
const SIMULATED: &str = "simulated";
/// A simulated device, and two of another platform with which it exchanges data only by way of the host, as a GPU does.
const APART: &str = "apart";
/// The first kind, and the one with which the tests without a device under test run.
const HOST: &str = "host";
const KINDS: [&str; 5] = [HOST, SIMULATED, APART, "cuda", "opencl"];

/// What is tested.
struct Kind {
    name: &'static str,
    /// Root devices of the process, or none for kinds that are made for each test.
    roots: Vec<Device>,
    /// Whether the devices have their kernels.
    load: Once,
}

impl Kind {
    /// Loads all kernels, once: tests keep kernels running while they launch others for the first time.
    fn load(&self, last_first: bool) {
        self.load.call_once(|| {
            for root in &self.roots {
                if last_first {
                    load_last_first(root);
                }
                root.load_kernels().expect("a device takes its kernels");
            }
        });
    }
}

/// Loads kernels in another order than [`Device::load_kernels`]. Drivers compile one kernel at a time in each process. So of two processes, each finds in the
/// cache what the other one has compiled.
fn load_last_first(root: &Device) {
    let Ok(queue) = Queue::new(root) else { return };
    for kernel in KernelId::all().unwrap_or_default().into_iter().rev() {
        let builder = KernelBundle::<Executable>::builder(queue.context()).with_devices(std::slice::from_ref(root));
        // What cannot be loaded is told by what follows.
        let _ = builder.with_kernels(&[kernel]).get();
    }
}

/// What was asked for and can be tested here.
fn kinds(device: &str) -> Vec<Kind> {
    if device != "all" && !KINDS.contains(&device) {
        usage(&format!("unknown device \"{device}\""));
    }
    let present = Device::all().expect("devices can be listed");
    for device in &present {
        if let Some(reason) = device.unusable() {
            eprintln!("{} device \"{}\" is left out: {reason}", device.backend(), device.name());
        }
    }
    let has_images = !KernelId::all().expect("the images of this program can be read").is_empty();
    let asked_for = KINDS.into_iter().filter(|name| device == "all" || *name == device);
    let kinds = asked_for.map(|name| {
        let is_tested = |device: &&Device| device.backend().name() == name && device.unusable().is_none();
        let mut roots: Vec<Device> = present.iter().filter(is_tested).cloned().collect();
        if device == "all" && !has_images && roots.iter().any(|root| !root.image_targets().is_empty()) {
            eprintln!("{name} is left out: this program was built without device code, `cargo sycl test` builds it");
            roots.clear();
        }
        Kind { name, roots, load: Once::new() }
    });
    kinds.filter(|kind| [SIMULATED, APART].contains(&kind.name) || !kind.roots.is_empty()).collect()
}

/// Runs the tests that the command line selects.
pub(crate) fn main(areas: &[(&str, &[Test])]) -> ExitCode {
    let arguments = Arguments::parse();
    let kinds = kinds(&arguments.device);
    if kinds.is_empty() {
        println!("there is no {} device", arguments.device);
        return ExitCode::FAILURE;
    }
    let mut settings = libtest_mimic::Arguments::from_iter(&arguments.others);
    // Tests compare counters of the process.
    settings.test_threads = Some(1);
    let Arguments { seed, last_first, .. } = arguments;
    let harness = Arc::new(Harness { panics: record_panics(), current: watch(), seed, last_first });
    let tests = || areas.iter().flat_map(|(area, tests)| tests.iter().map(move |test| (area, test)));
    let mut trials = Vec::new();
    for kind in kinds.into_iter().map(Arc::new) {
        for (area, test) in tests() {
            let (harness, kind) = (harness.clone(), kind.clone());
            match test.run {
                Run::OnDevice(run) => {
                    let name = format!("{} {area}::{}", kind.name, test.name);
                    let trial = move |name: &str| harness.run_on_device(name, &kind, run);
                    trials.push(Trial::ignorable_test(name.clone(), move || trial(&name)));
                }
                Run::Once(run) if kind.name == HOST => {
                    let name = format!("once {area}::{}", test.name);
                    let trial = move |name: &str| harness.run(name, || (), |()| run(), |()| Ok(true));
                    trials.push(Trial::ignorable_test(name.clone(), move || trial(&name)));
                }
                Run::Once(_) => {}
            }
        }
    }
    libtest_mimic::run(&settings, trials).exit_code()
}

type Panics = Arc<Mutex<Vec<String>>>;
type Current = Arc<Mutex<Option<(String, Instant)>>>;

/// What all tests are run with.
struct Harness {
    panics: Panics,
    current: Current,
    seed: u64,
    last_first: bool,
}

impl Harness {
    fn run_on_device(&self, name: &str, kind: &Kind, run: fn(&Env)) -> Result<Completion, Failed> {
        kind.load(self.last_first);
        let ended_well = |env: &Env| {
            if env.is_used.get() {
                Ok(!env.may_leak.get())
            } else {
                Err("never asked for the device under test: list it after `once:`".to_owned())
            }
        };
        self.run(name, || Env::new(kind, self.seed), run, ended_well)
    }

    /// Runs one test. `ended_well` looks at a test that did not panic, and says whether it must leave nothing behind.
    fn run<E>(
        &self,
        name: &str,
        make_env: impl FnOnce() -> E,
        run: impl FnOnce(&E),
        ended_well: impl FnOnce(&E) -> Result<bool, String>,
    ) -> Result<Completion, Failed> {
        lock(&self.panics).clear();
        *lock(&self.current) = Some((name.to_owned(), Instant::now()));
        let before = counters();
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            let env = make_env();
            run(&env);
            ended_well(&env)
        }));
        // What a failed test leaves behind is no second failure.
        let is_quiet = match result {
            Ok(Ok(false)) => Ok(()),
            _ => wait_until_quiet(&before),
        };
        *lock(&self.current) = None;
        match result {
            Ok(ended_well) => match ended_well.and(is_quiet) {
                Ok(()) => Ok(Completion::Completed),
                Err(message) => Err(message.into()),
            },
            Err(payload) => match payload.downcast::<Skip>() {
                Ok(skip) => Ok(Completion::ignored_with(skip.0)),
                Err(payload) => {
                    let messages = std::mem::take(&mut *lock(&self.panics));
                    Err(if messages.is_empty() { text_of(&*payload).into() } else { messages.join("\n").into() })
                }
            },
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
fn watch() -> Current {
    let current = Current::default();
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
