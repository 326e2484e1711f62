//! What tests can rely on when they use the recording backend.

use std::alloc::Layout;
use std::sync::{Arc, Mutex};

use oxisycl_backend::{
    Backend, BackendError, Command, Completion, CopyCommand, Dependency, DependencyKind, Device, Event, EventStatus,
    FailureKind, FillCommand, FillPattern, MemoryId, Outcome, PitchedBox, Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_testing::harness::help_once;
use oxisycl_backend_testing::recording::{
    CommandKind, CommandState, CompletionMode, Place, Recorder, RecordingBackend, RecordingConfig,
};

/// Remembers in which order commands completed, and whether they ran without a failure.
#[derive(Default)]
struct Log(Mutex<Vec<(usize, bool)>>);

impl Log {
    fn entries(&self) -> Vec<(usize, bool)> {
        self.0.lock().unwrap().clone()
    }
}

struct Entry {
    log: Arc<Log>,
    number: usize,
}

impl Completion for Entry {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        self.log.0.lock().unwrap().push((self.number, outcome.has_run && outcome.result.is_ok()));
    }
}

struct Setup {
    recorder: Recorder,
    devices: Vec<Arc<dyn Device>>,
    queue: Arc<dyn Queue>,
    log: Arc<Log>,
}

fn setup(config: RecordingConfig) -> Setup {
    let backend = RecordingBackend::new(config);
    let devices = backend.devices();
    let queue = devices[0].create_queue(&QueueOptions::default()).unwrap();
    Setup { recorder: backend.recorder(), devices, queue, log: Arc::default() }
}

impl Setup {
    fn try_issue(&self, command: Command, dependencies: &[Dependency]) -> Result<Arc<dyn Event>, BackendError> {
        let entry = Arc::new(Entry { log: self.log.clone(), number: self.recorder.len() });
        // SAFETY: markers use no memory; what copies and fills here use lives until the end of the test.
        unsafe { self.queue.issue(command, dependencies, entry) }
    }

    fn issue(&self, command: Command, dependencies: &[Dependency]) -> Arc<dyn Event> {
        self.try_issue(command, dependencies).unwrap()
    }

    fn marker(&self, dependencies: &[Dependency]) -> Arc<dyn Event> {
        self.issue(Command::Marker, dependencies)
    }
}

fn data(event: &Arc<dyn Event>) -> Dependency {
    Dependency { event: event.clone(), kind: DependencyKind::Data }
}

fn order(event: &Arc<dyn Event>) -> Dependency {
    Dependency { event: event.clone(), kind: DependencyKind::Order }
}

#[test]
fn commands_end_when_they_are_told_to_and_not_before() {
    let setup = setup(RecordingConfig::new(1));
    let first = setup.marker(&[]);
    let second = setup.marker(&[data(&first), order(&first)]);
    assert_eq!(setup.recorder.pending(), [0, 1]);
    assert_eq!(setup.recorder.ready(), [0]);
    assert_eq!(second.status(), EventStatus::Submitted);
    assert!(!help_once(&*setup.queue));
    setup.recorder.complete(0);
    assert_eq!((first.status(), second.status()), (EventStatus::Complete, EventStatus::Submitted));
    assert_eq!(setup.recorder.ready(), [1]);
    setup.recorder.complete(1);
    assert_eq!(setup.log.entries(), [(0, true), (1, true)]);
    assert_eq!(
        setup.recorder.command(1).dependencies,
        [(0, DependencyKind::Data), (0, DependencyKind::Order)],
        "dependencies are recorded as they were passed"
    );
}

#[test]
#[should_panic(expected = "command 1 cannot be ended now")]
fn ending_a_command_before_its_dependency_is_a_mistake_of_the_test() {
    let setup = setup(RecordingConfig::new(1));
    let first = setup.marker(&[]);
    setup.marker(&[order(&first)]);
    setup.recorder.complete(1);
}

#[test]
#[should_panic(expected = "command 0 cannot be ended now")]
fn ending_a_command_twice_is_a_mistake_of_the_test() {
    let setup = setup(RecordingConfig::new(1));
    setup.marker(&[]);
    setup.recorder.complete(0);
    setup.recorder.complete(0);
}

#[test]
fn a_command_with_a_failed_data_dependency_ends_by_itself_after_its_other_dependencies() {
    let setup = setup(RecordingConfig::new(1));
    let first = setup.marker(&[]);
    let second = setup.marker(&[]);
    let third = setup.marker(&[data(&first), order(&second)]);
    setup.marker(&[order(&third)]);
    setup.recorder.lose(0);
    assert_eq!(setup.recorder.pending(), [1, 2, 3]);
    setup.recorder.complete(1);
    assert_eq!(setup.log.entries(), [(0, false), (1, true), (2, false)]);
    assert_eq!(setup.recorder.command(2).state, CommandState::Failed);
    // The dependency only has to end: the command can run.
    assert_eq!(setup.recorder.ready(), [3]);
    let fourth = setup.marker(&[data(&third)]);
    assert_eq!(fourth.status(), EventStatus::Complete, "what will not run does not wait");
}

#[test]
fn all_commands_end_in_the_order_of_submission_without_recursion() {
    let setup = setup(RecordingConfig::new(1));
    // Miri is thousands of times slower, and would not run out of stack either.
    let n_commands = if cfg!(miri) { 100 } else { 100_000 };
    let mut last = setup.marker(&[]);
    for _ in 1..n_commands {
        last = setup.marker(&[data(&last)]);
    }
    setup.recorder.lose(0);
    let entries = setup.log.entries();
    assert_eq!(entries.len(), n_commands);
    assert!(entries.iter().enumerate().all(|(index, entry)| *entry == (index, false)));
}

#[test]
fn a_refused_command_leaves_nothing_behind() {
    let setup = setup(RecordingConfig::new(1));
    setup.recorder.refuse_command(2);
    setup.marker(&[]);
    assert!(matches!(setup.try_issue(Command::Marker, &[]), Err(BackendError::InjectedFault { count: 2, .. })));
    setup.marker(&[]);
    setup.recorder.complete_all();
    assert_eq!(setup.log.entries(), [(0, true), (1, true)]);
}

#[test]
fn events_of_another_backend_are_refused() {
    let other = setup(RecordingConfig::new(1));
    let event = other.marker(&[]);
    let setup = setup(RecordingConfig::new(1));
    assert!(matches!(setup.try_issue(Command::Marker, &[data(&event)]), Err(BackendError::Unsupported { .. })));
}

#[test]
fn copies_and_fills_are_described_by_their_places_and_carried_out_when_they_end() {
    let setup = setup(RecordingConfig::new(1));
    let device = &setup.devices[0];
    let (memory, id) = (device.memory(), device.info().memory.id);
    let layout = Layout::from_size_align(64, 8).unwrap();
    let pointer = memory.allocate(UsmKind::Device, layout, false).unwrap();
    let pitched = |offset| PitchedBox {
        memory: id,
        pointer: pointer.as_ptr().wrapping_add(offset),
        row_pitch: 16,
        slice_pitch: 64,
    };
    let fill = FillCommand { target: pitched(4), pattern: FillPattern::from_slice(&[7, 8]), extent: [1, 2, 3] };
    let filled = setup.issue(Command::from(fill), &[]);
    let mut host = [0u8; 8];
    let target = PitchedBox { memory: MemoryId::HOST, pointer: host.as_mut_ptr(), row_pitch: 4, slice_pitch: 8 };
    let copy = CopyCommand { source: pitched(20), target, extent: [1, 1, 8] };
    setup.issue(Command::from(copy), &[data(&filled)]);

    let [fill, copy] = [0, 1].map(|index| setup.recorder.command(index));
    let place = |offset| Place { memory: id, offset: Some(offset), row_pitch: 16, slice_pitch: 64 };
    assert_eq!((fill.kind, fill.target, fill.extent), (CommandKind::Fill, Some(place(4)), [1, 2, 3]));
    assert_eq!((copy.source, copy.target.unwrap().offset), (Some(place(20)), None));
    assert_eq!((copy.route(), copy.bytes()), (Some((id, MemoryId::HOST)), 8));
    assert_eq!(host, [0; 8]);
    setup.recorder.complete_all();
    assert_eq!(host, [7, 8, 7, 8, 7, 8, 0xA5, 0xA5]);
    assert_eq!(setup.recorder.n_allocations(id), 1);
    // SAFETY: allocated above, and no command is pending.
    unsafe { memory.free(pointer, UsmKind::Device, layout) };
    assert_eq!(setup.recorder.n_allocations(id), 0);
    assert!(setup.recorder.violations().is_empty());
}

#[test]
fn memory_that_is_freed_too_early_is_reported_and_not_used() {
    let setup = setup(RecordingConfig::new(1));
    let device = &setup.devices[0];
    let (memory, id) = (device.memory(), device.info().memory.id);
    let layout = Layout::from_size_align(64, 8).unwrap();
    let pointer = memory.allocate(UsmKind::Device, layout, true).unwrap();
    let target = PitchedBox { memory: id, pointer: pointer.as_ptr(), row_pitch: 64, slice_pitch: 64 };
    let fill = FillCommand { target, pattern: FillPattern::from_slice(&[1]), extent: [1, 1, 64] };
    setup.issue(Command::from(fill), &[]);
    // SAFETY: the recorder finds out that the command has lost its memory, and does not carry it out.
    unsafe { memory.free(pointer, UsmKind::Device, layout) };
    assert_eq!(setup.recorder.violations(), ["command 0 is pending while its memory is freed"]);
    setup.recorder.complete(0);
    assert_eq!(setup.log.entries(), [(0, false)]);
    assert_eq!(setup.recorder.violations().len(), 2);
}

#[test]
fn a_copy_beyond_an_allocation_is_reported_and_fails() {
    let setup = setup(RecordingConfig::new(2));
    let (memories, ids) =
        ([0, 1].map(|index| setup.devices[index].memory()), [0, 1].map(|index| setup.devices[index].info().memory.id));
    let layout = Layout::from_size_align(64, 8).unwrap();
    let pointers = memories.map(|memory| memory.allocate(UsmKind::Device, layout, true).unwrap());
    let place = |index: usize, offset| PitchedBox {
        memory: ids[index],
        pointer: pointers[index].as_ptr().wrapping_add(offset),
        row_pitch: 64,
        slice_pitch: 64,
    };
    let copy = |source, target| Command::from(CopyCommand { source, target, extent: [1, 1, 32] });
    setup.issue(copy(place(0, 0), place(1, 32)), &[]);
    setup.issue(copy(place(0, 40), place(1, 0)), &[]);
    setup.issue(copy(PitchedBox { memory: ids[1], ..place(0, 0) }, place(1, 0)), &[]);
    setup.recorder.complete_all();
    assert_eq!(setup.log.entries(), [(0, true), (1, false), (2, false)]);
    assert_eq!(setup.recorder.violations().len(), 2);
    for index in 0..2 {
        // SAFETY: allocated above, and no command is pending.
        unsafe { memories[index].free(pointers[index], UsmKind::Device, layout) };
    }
}

#[test]
fn modes_can_change_while_commands_are_pending() {
    let setup = setup(RecordingConfig::new(1));
    let first = setup.marker(&[]);
    setup.recorder.set_mode(CompletionMode::AtOnce);
    setup.marker(&[data(&first)]);
    setup.marker(&[]);
    assert_eq!(setup.log.entries(), [(2, true)]);
    setup.recorder.complete(0);
    assert_eq!(setup.log.entries(), [(2, true), (0, true), (1, true)]);
    setup.recorder.set_mode(CompletionMode::WhenHelped);
    setup.marker(&[]);
    assert_eq!(setup.recorder.pending(), [3]);
    assert!(help_once(&*setup.queue));
    assert!(!help_once(&*setup.queue));
}

#[test]
fn a_failure_can_be_of_any_kind() {
    let setup = setup(RecordingConfig::new(1));
    let event = setup.marker(&[]);
    let kind = FailureKind::Panic { message: "no".to_owned(), location: None, item: None };
    setup.recorder.fail(0, kind);
    assert_eq!(event.status(), EventStatus::Complete);
    assert_eq!(setup.log.entries(), [(0, false)]);
}

#[test]
fn devices_have_memories_of_their_own_and_the_host_device_has_the_hosts() {
    let backend = RecordingBackend::new(RecordingConfig::new(2).with_host());
    assert_eq!(backend.platforms().unwrap()[0].devices().len(), 3);
    let devices = backend.devices();
    let memories: Vec<MemoryId> = devices.iter().map(|device| device.info().memory.id).collect();
    assert_eq!(memories[0], MemoryId::HOST);
    assert_ne!(memories[1], memories[2]);
    assert!(
        devices[1].info().can_copy(memories[2], memories[1]) && devices[1].info().can_copy(MemoryId::HOST, memories[2])
    );
    assert!(
        devices[0].info().can_copy(MemoryId::HOST, MemoryId::HOST)
            && !devices[0].info().can_copy(MemoryId::HOST, memories[1])
    );

    let apart = RecordingBackend::new(RecordingConfig::new(2).without_peer_copies());
    let devices = apart.devices();
    let memories: Vec<MemoryId> = devices.iter().map(|device| device.info().memory.id).collect();
    assert!(
        devices[0].info().can_copy(memories[0], MemoryId::HOST)
            && !devices[0].info().can_copy(memories[0], memories[1])
    );
    apart.recorder().refuse_allocation(1);
    let layout = Layout::new::<u64>();
    assert!(devices[0].memory().allocate(UsmKind::Device, layout, true).is_err());
}
