//! The record that all devices of a backend share: commands in the order of submission, and what ends because of what.
//!
//! Owns the commands until they end, and the rules by which one ends. A command never ends before its dependencies. It ends by itself,
//! without having run, if a dependency of kind `Data` failed. Invariants: a command is taken out of its entry once, so it ends once,
//! whichever thread is first. No lock is held while a kernel or a completion runs, since both may submit more. When a command ends that
//! waits for nothing is not decided here, but by the mode and the [`Recorder`](super::Recorder).

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::CompletionMode;
use super::faults::Faults;
use super::images::{Images, RecordedKernel};
use super::memory::{Allocations, carry_out, span};
use super::recorded::{CommandKind, CommandState, Place, Recorded};
use oxisycl_backend::{
    BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, Event, EventStatus, ExecutionTimes,
    FailureKind, Outcome, PitchedBox, QueueOptions, now,
};

/// What the devices of a backend share.
pub(super) struct Shared {
    /// Tells events of different backends apart.
    number: u64,
    /// The options of the queues so far, in the order of their numbers.
    pub(super) queues: Mutex<Vec<QueueOptions>>,
    pub(super) allocations: Mutex<Allocations>,
    pub(super) state: Mutex<State>,
    pub(super) command_faults: Faults,
    pub(super) allocation_faults: Faults,
    pub(super) images: Images,
    pub(super) executions: Executions,
    pub(super) reports: Reports,
}

/// What is notified of a command's end, and how it ended.
type Report = (Arc<dyn Completion>, Outcome);

/// Reports of commands that have ended, as far as they are out of the ordinary.
#[derive(Default)]
pub(super) struct Reports {
    pub(super) is_doubled: AtomicBool,
    /// Commands whose reports are held back.
    pub(super) held: Mutex<BTreeSet<usize>>,
    /// The reports of commands, once they have ended.
    waiting: Mutex<BTreeMap<usize, Report>>,
}

impl Reports {
    /// Reports a command, unless its report is held back. Whether it was reported.
    ///
    /// # Safety
    /// The contract of [`Completion::complete`] holds, but that a test may have a command reported twice.
    unsafe fn report(&self, index: usize, completion: Arc<dyn Completion>, outcome: Outcome) -> bool {
        if lock(&self.held).contains(&index) {
            lock(&self.waiting).insert(index, (completion, outcome));
            return false;
        }
        if self.is_doubled.load(Ordering::Relaxed) {
            // SAFETY: the runtime promises to ignore a second report; all else is by the contract of this function.
            unsafe { completion.clone().complete(outcome.clone()) };
        }
        // SAFETY: as above.
        unsafe { completion.complete(outcome) };
        true
    }

    /// Whether the report of a command that has ended is held back.
    pub(super) fn is_waiting(&self, index: usize) -> bool {
        lock(&self.waiting).contains_key(&index)
    }
}

/// The commands that the host has executed. They are no part of the record.
#[derive(Default)]
pub(super) struct Executions {
    state: Mutex<Executing>,
    released: Condvar,
}

#[derive(Default)]
struct Executing {
    n_begun: usize,
    is_held: bool,
}

impl Executions {
    pub(super) fn n_begun(&self) -> usize {
        lock(&self.state).n_begun
    }

    pub(super) fn hold(&self, is_held: bool) {
        lock(&self.state).is_held = is_held;
        self.released.notify_all();
    }

    /// Returns once executions are not held.
    fn begin(&self) {
        let mut state = lock(&self.state);
        state.n_begun += 1;
        while state.is_held {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The record.
pub(super) struct State {
    pub(super) mode: CompletionMode,
    /// Commands of which a dependency fails have run already, for nothing.
    pub(super) runs_ahead: bool,
    pub(super) entries: Vec<Entry>,
    /// Pending commands that wait for nothing.
    pub(super) ready: BTreeSet<usize>,
    pub(super) violations: Vec<String>,
    /// The devices that are loading images, for which they would wait for kernels.
    pub(super) loading: Vec<usize>,
}

/// One command of the record.
pub(super) struct Entry {
    pub(super) recorded: Recorded,
    event: Arc<RecordedEvent>,
    device_name: String,
    /// Until the command ends.
    work: Option<(Command, Arc<dyn Completion>)>,
    profiling: bool,
    /// Dependencies that have not ended.
    n_open: usize,
    followers: Vec<(usize, DependencyKind)>,
    /// Whether data of a dependency is lost, so that the command does not run.
    is_poisoned: bool,
    /// Whether its completion was called, and has returned.
    is_reported: bool,
}

/// A command on its way into the record.
pub(super) struct Submission<'a> {
    pub(super) device: usize,
    pub(super) device_name: &'a str,
    pub(super) queue: usize,
    pub(super) profiling: bool,
    /// Whether the command comes after the one that its queue was given before.
    pub(super) keeps_order: bool,
    pub(super) command: Command,
    pub(super) dependencies: &'a [Dependency],
    pub(super) completion: Arc<dyn Completion>,
}

struct RecordedEvent {
    /// The number of the backend.
    backend: u64,
    index: usize,
    has_ended: AtomicBool,
}

impl Event for RecordedEvent {
    fn status(&self) -> EventStatus {
        if self.has_ended.load(Ordering::Acquire) { EventStatus::Complete } else { EventStatus::Submitted }
    }
}

/// How a command is to end: carried out, with a failure, or without having run.
pub(super) enum Ending {
    Run,
    Fail(FailureKind),
    NotRun,
}

impl Shared {
    pub(super) fn new(mode: CompletionMode) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let state = State {
            mode,
            runs_ahead: false,
            entries: Vec::new(),
            ready: BTreeSet::new(),
            violations: Vec::new(),
            loading: Vec::new(),
        };
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            queues: Mutex::new(Vec::new()),
            allocations: Mutex::default(),
            state: Mutex::new(state),
            command_faults: Faults::default(),
            allocation_faults: Faults::default(),
            images: Images::default(),
            executions: Executions::default(),
            reports: Reports::default(),
        }
    }

    /// Notes a new queue, and returns its number.
    pub(super) fn add_queue(&self, options: &QueueOptions) -> usize {
        let mut queues = lock(&self.queues);
        queues.push(*options);
        queues.len() - 1
    }

    pub(super) fn refuses_allocation(&self) -> Option<u64> {
        self.allocation_faults.attempt()
    }

    pub(super) fn submit(&self, submission: Submission<'_>) -> Result<Arc<dyn Event>, BackendError> {
        let Submission { device, device_name, queue, profiling, keeps_order, command, dependencies, completion } =
            submission;
        if let Some(count) = self.command_faults.attempt() {
            let operation = command.operation();
            return Err(BackendError::InjectedFault { device: device_name.to_owned(), operation, count });
        }
        let mut edges = Vec::with_capacity(dependencies.len());
        for Dependency { event, kind } in dependencies {
            let event: &dyn Any = &**event;
            match event.downcast_ref::<RecordedEvent>() {
                Some(event) if event.backend == self.number => edges.push((event.index, *kind)),
                _ => {
                    return Err(BackendError::Unsupported {
                        device: device_name.to_owned(),
                        what: "an event of another backend as a dependency".to_owned(),
                    });
                }
            }
        }
        let mut recorded = self.describe(&command);
        (recorded.device, recorded.queue, recorded.dependencies) = (device, queue, edges);
        let mut state = lock(&self.state);
        let index = state.entries.len();
        let event = Arc::new(RecordedEvent { backend: self.number, index, has_ended: AtomicBool::new(false) });
        let (mut n_open, mut is_poisoned) = (0, false);
        let before = |entry: &Entry| entry.recorded.queue == queue;
        let before = if keeps_order { state.entries.iter().rposition(before) } else { None };
        let before = before.map(|before| (before, DependencyKind::Order));
        for (earlier, kind) in recorded.dependencies.iter().copied().chain(before) {
            let earlier = &mut state.entries[earlier];
            match earlier.recorded.state {
                CommandState::Pending => {
                    earlier.followers.push((index, kind));
                    n_open += 1;
                }
                CommandState::Failed => is_poisoned |= kind == DependencyKind::Data,
                CommandState::Succeeded => {}
            }
        }
        if state.loading.contains(&device) {
            state.check_not_loading(device, &recorded);
        }
        state.entries.push(Entry {
            recorded,
            event: event.clone(),
            device_name: device_name.to_owned(),
            work: Some((command, completion)),
            profiling,
            n_open,
            followers: Vec::new(),
            is_poisoned,
            is_reported: false,
        });
        let next = if n_open == 0 { state.arrive(index) } else { None };
        drop(state);
        if let Some(ending) = next {
            self.end(index, ending);
        }
        Ok(event)
    }

    /// Carries a command out that is no part of the record.
    pub(super) fn execute(&self, command: &Command, device_name: &str) -> Outcome {
        self.executions.begin();
        Outcome::ran(self.run(command).map_err(|kind| CommandFailure::new(command, device_name, kind)))
    }

    /// What is known of a command before it is submitted.
    fn describe(&self, command: &Command) -> Recorded {
        let (kind, label, extent) = match command {
            Command::Kernel(kernel) => (CommandKind::Kernel, kernel.descriptor.display_name(), kernel.range.extent),
            Command::Copy(copy) => (CommandKind::Copy, "copy", copy.extent),
            Command::Fill(fill) => (CommandKind::Fill, "fill", fill.extent),
            Command::Marker => (CommandKind::Marker, "marker", [0; 3]),
            Command::Prefetch { size, .. } => (CommandKind::Prefetch, "prefetch", [1, 1, *size]),
            Command::Advise { size, .. } => (CommandKind::Advise, "advise", [1, 1, *size]),
            Command::Native(native) => (CommandKind::Native, native.name(), [0; 3]),
        };
        let allocations = lock(&self.allocations);
        let place = |pitched: &PitchedBox| Place {
            memory: pitched.memory,
            offset: allocations.find(pitched.pointer as usize).map(|(base, _)| pitched.pointer as usize - base),
            row_pitch: pitched.row_pitch,
            slice_pitch: pitched.slice_pitch,
        };
        let (source, target) = match command {
            Command::Copy(copy) => (Some(place(&copy.source)), Some(place(&copy.target))),
            Command::Fill(fill) => (None, Some(place(&fill.target))),
            _ => (None, None),
        };
        let symbol = match command {
            Command::Kernel(kernel) => kernel.code.as_deref().and_then(RecordedKernel::symbol_of),
            _ => None,
        };
        Recorded {
            device: 0,
            queue: 0,
            kind,
            label: label.to_owned(),
            symbol,
            dependencies: Vec::new(),
            source,
            target,
            extent,
            state: CommandState::Pending,
        }
    }

    pub(super) fn is_ready(&self, index: usize) -> bool {
        lock(&self.state).ready.contains(&index)
    }

    #[track_caller]
    pub(super) fn assert_ready(&self, index: usize) {
        let state = lock(&self.state);
        let Some(entry) = state.entries.get(index) else { panic!("command {index} of {}", state.entries.len()) };
        if !state.ready.contains(&index) {
            let recorded = entry.recorded.clone();
            drop(state);
            panic!("command {index} cannot be ended now: {recorded:?}");
        }
    }

    /// Ends the oldest command that can end, if the backend works that way.
    pub(super) fn help(&self) -> bool {
        let first = {
            let state = lock(&self.state);
            if state.mode != CompletionMode::WhenHelped {
                return false;
            }
            state.ready.first().copied()
        };
        first.is_some_and(|index| self.end(index, Ending::Run))
    }

    /// Ends a command that waits for nothing, and everything that ends because of it. Returns false, and does nothing, if another
    /// thread was faster.
    pub(super) fn end(&self, index: usize, ending: Ending) -> bool {
        let mut was_first = false;
        // A loop instead of recursion, as chains may be long.
        let mut next = VecDeque::from([(index, ending)]);
        while let Some((index, ending)) = next.pop_front() {
            let taken = {
                let mut state = lock(&self.state);
                state.ready.remove(&index);
                let entry = &mut state.entries[index];
                entry.work.take().map(|work| (work, entry.device_name.clone(), entry.profiling))
            };
            let Some(((command, completion), device_name, profiling)) = taken else { continue };
            was_first = true;
            let start = now();
            let (has_run, result) = match ending {
                Ending::Run => (true, self.run(&command)),
                Ending::Fail(kind) => (true, Err(kind)),
                Ending::NotRun => (lock(&self.state).runs_ahead, Ok(())),
            };
            let times = (profiling && has_run).then(|| ExecutionTimes { start, end: now() });
            let result = result.map_err(|kind| CommandFailure::new(&command, device_name, kind));
            let outcome = Outcome { has_run, result, times, output: Vec::new() };
            lock(&self.state).mark_ended(index, &outcome, &mut next);
            drop(command);
            // SAFETY: the command was taken from its entry above, so that it ends once, and it has been carried out or will not be.
            unsafe { self.report(index, completion, outcome) };
        }
        was_first
    }

    /// Reports a command, and notes that, unless its report is held back.
    ///
    /// # Safety
    /// The contract of [`Reports::report`] holds.
    unsafe fn report(&self, index: usize, completion: Arc<dyn Completion>, outcome: Outcome) {
        // SAFETY: by the contract of this function.
        if unsafe { self.reports.report(index, completion, outcome) } {
            lock(&self.state).entries[index].is_reported = true;
        }
    }

    /// Reports a command now whose report was held back, if it has ended.
    pub(super) fn release_report(&self, index: usize) {
        lock(&self.reports.held).remove(&index);
        let waiting = lock(&self.reports.waiting).remove(&index);
        if let Some((completion, outcome)) = waiting {
            // SAFETY: taken from the list, into which `Reports::report` has put it once.
            unsafe { self.report(index, completion, outcome) };
        }
    }

    /// Commands that have ended and were not reported.
    pub(super) fn missing_reports(&self) -> Vec<usize> {
        let state = lock(&self.state);
        let entries = state.entries.iter().enumerate();
        let is_missing = |entry: &Entry| entry.recorded.state != CommandState::Pending && !entry.is_reported;
        entries.filter(|(_, entry)| is_missing(entry)).map(|(index, _)| index).collect()
    }

    /// Carries out a command, unless it uses memory that it must not.
    fn run(&self, command: &Command) -> Result<(), FailureKind> {
        let boxes: &[_] = match command {
            Command::Copy(copy) => &[(copy.source, copy.extent), (copy.target, copy.extent)],
            Command::Fill(fill) => &[(fill.target, bytes_of_fill(fill))],
            _ => &[],
        };
        for (pitched, extent) in boxes {
            let checked = lock(&self.allocations).check(pitched, *extent);
            if let Err(what) = checked {
                lock(&self.state).violations.push(format!("{command}: {what}"));
                return Err(FailureKind::Device(BackendError::Unsupported { device: "recording".to_owned(), what }));
            }
        }
        // SAFETY: the issuer of the command promised what `issue` demands until its completion, which comes after this. The check above has
        // shown that memory of the devices is still allocated.
        unsafe { carry_out(command) }
    }

    /// Notes pending copies and fills that use memory which is about to be freed.
    pub(super) fn note_free(&self, base: usize, size: usize) {
        let mut state = lock(&self.state);
        let State { entries, violations, .. } = &mut *state;
        for (index, entry) in entries.iter().enumerate() {
            let boxes = match &entry.work {
                Some((Command::Copy(copy), _)) => vec![(copy.source, copy.extent), (copy.target, copy.extent)],
                Some((Command::Fill(fill), _)) => vec![(fill.target, bytes_of_fill(fill))],
                _ => continue,
            };
            let overlaps = |(pitched, extent): &(PitchedBox, [usize; 3])| {
                let first = pitched.pointer as usize;
                first < base + size && base < first + span(pitched, *extent)
            };
            if boxes.iter().any(overlaps) {
                violations.push(format!("command {index} is pending while its memory is freed"));
            }
        }
    }
}

impl State {
    /// Everything that the command waits for has ended. Returns how it ends at once, if it does.
    fn arrive(&mut self, index: usize) -> Option<Ending> {
        let entry = &self.entries[index];
        if entry.is_poisoned {
            return Some(Ending::NotRun);
        }
        self.ready.insert(index);
        (self.mode == CompletionMode::AtOnce).then_some(Ending::Run)
    }

    fn mark_ended(&mut self, index: usize, outcome: &Outcome, next: &mut VecDeque<(usize, Ending)>) {
        let entry = &mut self.entries[index];
        let well = outcome.result.is_ok() && !entry.is_poisoned;
        entry.recorded.state = if well { CommandState::Succeeded } else { CommandState::Failed };
        entry.event.has_ended.store(true, Ordering::Release);
        for (follower, kind) in std::mem::take(&mut entry.followers) {
            let later = &mut self.entries[follower];
            later.is_poisoned |= kind == DependencyKind::Data && !well;
            later.n_open -= 1;
            if later.n_open == 0
                && let Some(ending) = self.arrive(follower)
            {
                next.push_back((follower, ending));
            }
        }
    }
}

fn bytes_of_fill(fill: &oxisycl_backend::FillCommand) -> [usize; 3] {
    let [slices, rows, elements] = fill.extent;
    [slices, rows, elements * fill.pattern.len()]
}

/// Locks, also after a panic of a test.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
