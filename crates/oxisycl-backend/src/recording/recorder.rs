//! The list of recorded commands, and the control over how they end.

use std::any::Any;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::CompletionMode;
use super::memory::{Allocations, carry_out, span};
use crate::{
    BackendError, Command, CommandFailure, Completion, Dependency, DependencyKind, Event, EventStatus, ExecutionTimes,
    FailureKind, MemoryId, Outcome, Rectangle,
};

/// What a recorded command does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandKind {
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A marker.
    Marker,
    /// A hint that memory will be used.
    Prefetch,
    /// A hint on how memory is used.
    Advise,
}

/// Where a recorded command stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandState {
    /// Not ended.
    Pending,
    /// Ended well.
    Succeeded,
    /// Ended with a failure of its own or of a dependency.
    Failed,
}

/// A box of bytes that a recorded command uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The memory that it lies in.
    pub memory: MemoryId,
    /// Bytes from the beginning of the allocation, if it lies in one of the backend.
    pub offset: Option<usize>,
    /// Bytes from one row to the next.
    pub row_pitch: usize,
    /// Bytes from one slice to the next.
    pub slice_pitch: usize,
}

/// One command, in the order of submission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recorded {
    /// The device, by its position in [`RecordingBackend::devices`](super::RecordingBackend::devices).
    pub device: usize,
    /// The queue, by the order in which the backend's queues were made.
    pub queue: usize,
    /// What it does.
    pub kind: CommandKind,
    /// The name of the kernel; else the name of the kind.
    pub label: String,
    /// The commands it waits for, by their position in the record, as they were passed.
    pub dependencies: Vec<(usize, DependencyKind)>,
    /// What a copy reads.
    pub source: Option<Place>,
    /// What a copy or a fill writes.
    pub target: Option<Place>,
    /// Slices, rows and bytes of a copy; slices, rows and elements of a fill; the range of a kernel.
    pub extent: [usize; 3],
    /// Where it stands.
    pub state: CommandState,
}

impl Recorded {
    /// The commands it waits for without their kinds.
    pub fn waits_for(&self) -> Vec<usize> {
        self.dependencies.iter().map(|(index, _)| *index).collect()
    }

    /// Number of bytes that a copy moves.
    pub fn bytes(&self) -> usize {
        self.extent.iter().product()
    }

    /// The memories that a copy reads and writes.
    pub fn route(&self) -> Option<(MemoryId, MemoryId)> {
        Some((self.source?.memory, self.target?.memory))
    }
}

/// Sees the commands of one [`RecordingBackend`](super::RecordingBackend) and ends them. Copies are the same recorder.
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

impl Recorder {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// All commands so far.
    pub fn commands(&self) -> Vec<Recorded> {
        lock(&self.0.state).entries.iter().map(|entry| entry.recorded.clone()).collect()
    }

    /// The number of commands so far; also the index of the next one.
    pub fn len(&self) -> usize {
        lock(&self.0.state).entries.len()
    }

    /// Whether there were no commands yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One command.
    #[track_caller]
    pub fn command(&self, index: usize) -> Recorded {
        let state = lock(&self.0.state);
        let n = state.entries.len();
        state.entries.get(index).unwrap_or_else(|| panic!("command {index} of {n}")).recorded.clone()
    }

    /// Commands that have not ended.
    pub fn pending(&self) -> Vec<usize> {
        let state = lock(&self.0.state);
        let is_pending = |&index: &usize| state.entries[index].recorded.state == CommandState::Pending;
        (0..state.entries.len()).filter(is_pending).collect()
    }

    /// Commands that have not ended although everything they wait for has.
    pub fn ready(&self) -> Vec<usize> {
        lock(&self.0.state).ready.iter().copied().collect()
    }

    /// Carries a command out and ends it: well, unless it is a kernel that panics. Panics if the command has ended, or if
    /// something that it waits for has not.
    #[track_caller]
    pub fn complete(&self, index: usize) {
        self.0.assert_ready(index);
        self.0.end(index, Ok(()));
    }

    /// [`complete`](Self::complete), unless the command has ended or waits for something. Returns whether it ended the command.
    pub fn try_complete(&self, index: usize) -> bool {
        self.0.is_ready(index) && self.0.end(index, Ok(()))
    }

    /// Carries out and ends commands in the order of submission until none is left, those included that are submitted meanwhile.
    pub fn complete_all(&self) {
        loop {
            let first = lock(&self.0.state).ready.first().copied();
            match first {
                Some(index) => drop(self.0.end(index, Ok(()))),
                None => return,
            }
        }
    }

    /// Ends a command with a failure, without carrying it out. Panics as [`complete`](Self::complete) does.
    #[track_caller]
    pub fn fail(&self, index: usize, kind: FailureKind) {
        self.0.assert_ready(index);
        self.0.end(index, Err(kind));
    }

    /// [`fail`](Self::fail) with a failure of the device.
    #[track_caller]
    pub fn lose(&self, index: usize) {
        let error = BackendError::DeviceLost { device: "recording".to_owned(), reason: "the test says so".to_owned() };
        self.fail(index, FailureKind::Device(error));
    }

    /// When commands end from now on. Those that are pending wait to be ended as before, or for their dependencies.
    pub fn set_mode(&self, mode: CompletionMode) {
        lock(&self.0.state).mode = mode;
    }

    /// The `nth` command from now is refused: its `enqueue` returns an error. 1 is the next one.
    pub fn refuse_command(&self, nth: u64) {
        self.0.command_faults.plan(nth);
    }

    /// The `nth` allocation from now is refused. 1 is the next one.
    pub fn refuse_allocation(&self, nth: u64) {
        self.0.allocation_faults.plan(nth);
    }

    /// Number of live allocations in a memory.
    pub fn n_allocations(&self, memory: MemoryId) -> usize {
        lock(&self.0.allocations).count(memory)
    }

    /// What commands did that they must not: memory used that is not theirs, or freed while a pending copy or fill needs it.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.0.state).violations.clone()
    }
}

/// Which of the next operations fail.
#[derive(Default)]
pub(super) struct Faults {
    n_done: AtomicU64,
    planned: Mutex<Vec<u64>>,
}

impl Faults {
    fn plan(&self, nth: u64) {
        lock(&self.planned).push(self.n_done.load(Ordering::Relaxed) + nth.max(1));
    }

    /// Counts an operation. Returns its number if it has to fail.
    fn attempt(&self) -> Option<u64> {
        let mut planned = lock(&self.planned);
        let count = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        let before = planned.len();
        planned.retain(|nth| *nth != count);
        (planned.len() < before).then_some(count)
    }
}

/// What the devices of a backend share.
pub(super) struct Shared {
    /// Tells events of different backends apart.
    number: u64,
    pub(super) n_queues: AtomicUsize,
    pub(super) allocations: Mutex<Allocations>,
    state: Mutex<State>,
    clock: AtomicU64,
    command_faults: Faults,
    allocation_faults: Faults,
}

struct State {
    mode: CompletionMode,
    entries: Vec<Entry>,
    /// Pending commands that wait for nothing.
    ready: BTreeSet<usize>,
    violations: Vec<String>,
}

struct Entry {
    recorded: Recorded,
    event: Arc<RecordedEvent>,
    device_name: String,
    /// Until the command ends.
    work: Option<(Command, Arc<dyn Completion>)>,
    profiling: bool,
    /// Dependencies that have not ended.
    n_open: usize,
    followers: Vec<(usize, DependencyKind)>,
    /// While pending, why the command cannot run; then, why it failed.
    failure: Option<CommandFailure>,
}

/// A command on its way into the record.
pub(super) struct Submission<'a> {
    pub(super) device: usize,
    pub(super) device_name: &'a str,
    pub(super) queue: usize,
    pub(super) profiling: bool,
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

/// How a command is to end.
type Ending = Result<(), FailureKind>;

impl Shared {
    pub(super) fn new(mode: CompletionMode) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let state = State { mode, entries: Vec::new(), ready: BTreeSet::new(), violations: Vec::new() };
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            n_queues: AtomicUsize::new(0),
            allocations: Mutex::default(),
            state: Mutex::new(state),
            clock: AtomicU64::new(1),
            command_faults: Faults::default(),
            allocation_faults: Faults::default(),
        }
    }

    /// A clock that ticks whenever it is read.
    pub(super) fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn refuses_allocation(&self) -> Option<u64> {
        self.allocation_faults.attempt()
    }

    pub(super) fn submit(&self, submission: Submission<'_>) -> Result<Arc<dyn Event>, BackendError> {
        let Submission { device, device_name, queue, profiling, command, dependencies, completion } = submission;
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
        let (mut n_open, mut failure) = (0, None);
        for &(earlier, kind) in &recorded.dependencies {
            let earlier = &mut state.entries[earlier];
            match earlier.recorded.state {
                CommandState::Pending => {
                    earlier.followers.push((index, kind));
                    n_open += 1;
                }
                CommandState::Failed if kind == DependencyKind::Data => failure = failure.or(earlier.failure.clone()),
                _ => {}
            }
        }
        state.entries.push(Entry {
            recorded,
            event: event.clone(),
            device_name: device_name.to_owned(),
            work: Some((command, completion)),
            profiling,
            n_open,
            followers: Vec::new(),
            failure,
        });
        let next = if n_open == 0 { state.arrive(index) } else { None };
        drop(state);
        if let Some(ending) = next {
            self.end(index, ending);
        }
        Ok(event)
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
        };
        let allocations = lock(&self.allocations);
        let place = |rectangle: &Rectangle| Place {
            memory: rectangle.memory,
            offset: allocations.find(rectangle.pointer as usize).map(|(base, _)| rectangle.pointer as usize - base),
            row_pitch: rectangle.row_pitch,
            slice_pitch: rectangle.slice_pitch,
        };
        let (source, target) = match command {
            Command::Copy(copy) => (Some(place(&copy.source)), Some(place(&copy.target))),
            Command::Fill(fill) => (None, Some(place(&fill.target))),
            _ => (None, None),
        };
        Recorded {
            device: 0,
            queue: 0,
            kind,
            label: label.to_owned(),
            dependencies: Vec::new(),
            source,
            target,
            extent,
            state: CommandState::Pending,
        }
    }

    fn is_ready(&self, index: usize) -> bool {
        lock(&self.state).ready.contains(&index)
    }

    #[track_caller]
    fn assert_ready(&self, index: usize) {
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
        first.is_some_and(|index| self.end(index, Ok(())))
    }

    /// Ends a command that waits for nothing, and everything that ends because of it. Returns false, and does nothing, if another
    /// thread was faster.
    fn end(&self, index: usize, ending: Ending) -> bool {
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
            let was_run = ending.is_ok();
            let start = self.now();
            let ending = ending.and_then(|()| self.run(&command));
            let times = (profiling && was_run).then(|| ExecutionTimes { start, end: self.now() });
            let result = ending.map_err(|kind| match kind {
                FailureKind::Dependency(cause) => CommandFailure::dependency(&command, device_name, &cause),
                kind => CommandFailure::new(&command, device_name, kind),
            });
            lock(&self.state).mark_ended(index, result.as_ref().err(), &mut next);
            drop(command);
            completion.complete(Outcome { result, times });
        }
        was_first
    }

    /// Carries out a command, unless it uses memory that it must not.
    fn run(&self, command: &Command) -> Ending {
        let boxes: &[_] = match command {
            Command::Copy(copy) => &[(copy.source, copy.extent), (copy.target, copy.extent)],
            Command::Fill(fill) => &[(fill.target, bytes_of_fill(fill))],
            _ => &[],
        };
        for (rectangle, extent) in boxes {
            let checked = lock(&self.allocations).check(rectangle, *extent);
            if let Err(what) = checked {
                lock(&self.state).violations.push(format!("{command}: {what}"));
                return Err(FailureKind::Device(BackendError::Unsupported { device: "recording".to_owned(), what }));
            }
        }
        // SAFETY: whoever enqueued the command promised what `enqueue` demands until its completion, which comes after this; that
        // memory of the devices is still allocated was checked above.
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
            let overlaps = |(rectangle, extent): &(Rectangle, [usize; 3])| {
                let first = rectangle.pointer as usize;
                first < base + size && base < first + span(rectangle, *extent)
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
        if let Some(cause) = &entry.failure {
            return Some(Err(FailureKind::Dependency(cause.clone())));
        }
        self.ready.insert(index);
        (self.mode == CompletionMode::AtOnce).then_some(Ok(()))
    }

    fn mark_ended(&mut self, index: usize, failure: Option<&CommandFailure>, next: &mut VecDeque<(usize, Ending)>) {
        let entry = &mut self.entries[index];
        entry.recorded.state = if failure.is_some() { CommandState::Failed } else { CommandState::Succeeded };
        entry.failure = failure.cloned();
        entry.event.has_ended.store(true, Ordering::Release);
        for (follower, kind) in std::mem::take(&mut entry.followers) {
            let later = &mut self.entries[follower];
            if kind == DependencyKind::Data && later.failure.is_none() {
                later.failure = failure.cloned();
            }
            later.n_open -= 1;
            if later.n_open == 0
                && let Some(ending) = self.arrive(follower)
            {
                next.push_back((follower, ending));
            }
        }
    }
}

fn bytes_of_fill(fill: &crate::FillCommand) -> [usize; 3] {
    let [slices, rows, elements] = fill.extent;
    [slices, rows, elements * fill.pattern.len()]
}

/// Locks, also after a panic of a test.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
