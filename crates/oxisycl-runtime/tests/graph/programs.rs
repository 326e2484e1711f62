//! Random programs: whatever order the devices end commands in, the data is that of running the program step by step.

use std::collections::BTreeSet;
use std::sync::Arc;

use oxisycl_backend::{Command, CopyCommand, MemoryId, PitchedBox};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingConfig};
use oxisycl_runtime::Error;
use oxisycl_runtime::graph::Node;
use oxisycl_runtime::schedule::HostAccess;
use oxisycl_runtime::state::Region;
use oxisycl_types::AccessMode::{Read, ReadWrite, Write};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Buffer, Change, Part, World};

const N_DEVICES: usize = 3;
const N_BUFFERS: usize = 2;
/// Steps of a program. Under Miri forty take half a minute.
const MOST_STEPS: usize = if cfg!(miri) { 16 } else { 40 };

/// A box of the index space, before it is cut to the buffer.
type Corners = [(usize, usize); 3];

#[derive(Clone, Copy, Debug)]
enum Access {
    Read,
    /// Adds.
    Update,
    /// Stores to all elements of its box.
    Discard,
}

#[derive(Clone, Debug)]
enum Step {
    /// A kernel with up to two accessors.
    Kernel { device: usize, accesses: Vec<(usize, Corners, Access)>, by_copies: bool },
    /// A host accessor that lives for a number of steps.
    Host { buffer: usize, part: Corners, access: Access, steps: usize },
    /// Ends the ready command that the number selects.
    End(usize),
    /// Ends everything.
    EndAll,
}

#[derive(Clone, Debug)]
struct Program {
    extents: [[usize; 3]; N_BUFFERS],
    pages: [Option<[usize; 3]>; N_BUFFERS],
    peer_copies: bool,
    steps: Vec<Step>,
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Read), Just(Access::Update), Just(Access::Discard)]
}

fn corners() -> impl Strategy<Value = Corners> {
    [(0..5usize, 1..5usize), (0..5usize, 1..5usize), (0..7usize, 1..7usize)]
}

fn step() -> impl Strategy<Value = Step> {
    let accesses = proptest::collection::vec((0..N_BUFFERS, corners(), access()), 1..3);
    prop_oneof![
        5 => (0..N_DEVICES, accesses, any::<bool>())
            .prop_map(|(device, accesses, by_copies)| Step::Kernel { device, accesses, by_copies }),
        1 => (0..N_BUFFERS, corners(), access(), 0..4usize)
            .prop_map(|(buffer, part, access, steps)| Step::Host { buffer, part, access, steps }),
        6 => any::<usize>().prop_map(Step::End),
        1 => Just(Step::EndAll),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let extent = [1..4usize, 1..5usize, 1..8usize];
    let page = proptest::option::of([1..3usize, 1..3usize, 1..4usize]);
    let buffers = ([extent.clone(), extent], [page.clone(), page]);
    (buffers, any::<bool>(), proptest::collection::vec(step(), 1..MOST_STEPS))
        .prop_map(|((extents, pages), peer_copies, steps)| Program { extents, pages, peer_copies, steps })
}

/// The elements of one buffer as they must be after each step.
struct Model {
    extent: [usize; 3],
    numbers: Vec<u32>,
}

impl Model {
    fn new(extent: [usize; 3]) -> Self {
        Self { extent, numbers: (0..extent.iter().product::<usize>() as u32).collect() }
    }

    fn cut(&self, part: Corners) -> Region {
        let begin = [0, 1, 2].map(|d| part[d].0.min(self.extent[d] - 1));
        Region::new(begin, [0, 1, 2].map(|d| (begin[d] + part[d].1).min(self.extent[d])))
    }

    fn positions(&self, region: &Region) -> Vec<usize> {
        let [_, rows, columns] = self.extent;
        let mut positions = Vec::new();
        for x in region.begin[0]..region.end[0] {
            for y in region.begin[1]..region.end[1] {
                positions.extend((region.begin[2]..region.end[2]).map(|z| (x * rows + y) * columns + z));
            }
        }
        positions
    }

    fn apply(&mut self, region: &Region, change: Change) {
        for position in self.positions(region) {
            let number = &mut self.numbers[position];
            *number = match change {
                Change::Nothing => *number,
                Change::Set(value) => value,
                Change::Add(value) => number.wrapping_add(value),
            };
        }
    }
}

/// A command group that was accepted, and what it does to buffers.
struct Submitted {
    node: Arc<Node>,
    changes: Vec<(usize, Region, Change)>,
}

/// A host accessor that is held, and what was in its box when it was taken.
struct Held {
    access: HostAccess,
    numbers: Vec<(usize, u32)>,
    steps: usize,
}

struct Run {
    world: World,
    queues: Vec<crate::support::TestQueue>,
    buffers: Vec<Buffer>,
    models: Vec<Model>,
    held: Vec<Held>,
    nodes: Vec<Arc<Node>>,
    n_changes: u32,
}

impl Run {
    fn new(program: &Program) -> Self {
        let config = RecordingConfig::new(N_DEVICES);
        let world = World::with(if program.peer_copies { config } else { config.without_peer_copies() });
        let queues = (0..N_DEVICES).map(|device| match device {
            0 => world.in_order_queue(0),
            1 => world.queue_in(&world.other_context(), 1, oxisycl_backend::QueueOptions::default()),
            _ => world.queue(device),
        });
        Self {
            queues: queues.collect(),
            buffers: (0..N_BUFFERS).map(|n| Buffer::with(program.extents[n], program.pages[n]).initialized()).collect(),
            models: program.extents.iter().map(|extent| Model::new(*extent)).collect(),
            held: Vec::new(),
            nodes: Vec::new(),
            n_changes: 0,
            world,
        }
    }

    /// Submits a kernel, or a row-wise copy for the first accessor that stores to all of its box.
    fn submit(
        &mut self,
        device: usize,
        accesses: &[(usize, Corners, Access)],
        by_copies: bool,
    ) -> Result<Submitted, Error> {
        let mut group = self.queues[device].group();
        let mut changes: Vec<(usize, Region, Change)> = Vec::new();
        for &(buffer, part, access) in accesses {
            let region = self.models[buffer].cut(part);
            // Accessors of one group must not overlap.
            if changes.iter().any(|(other, there, _)| *other == buffer && there.overlaps(&region)) {
                continue;
            }
            self.n_changes += 1;
            let is_stored = changes.iter().any(|(_, _, change)| matches!(change, Change::Set(_)));
            let (mode, no_init, change) = match access {
                Access::Read => (Read, false, Change::Nothing),
                Access::Update | Access::Discard if by_copies && is_stored => (ReadWrite, false, Change::Nothing),
                Access::Update => (ReadWrite, false, Change::Add(self.n_changes)),
                Access::Discard => (Write, true, Change::Set(self.n_changes)),
            };
            group = group.access(self.buffers[buffer].region(region), mode, no_init, change);
            changes.push((buffer, region, change));
        }
        let stored = changes.iter().copied().find(|(_, _, change)| matches!(change, Change::Set(_)));
        let node = match stored {
            Some((buffer, region, Change::Set(value))) if by_copies => {
                // Only the copies do something.
                for (_, _, change) in changes.iter_mut().filter(|(_, _, change)| matches!(change, Change::Add(_))) {
                    *change = Change::Nothing;
                }
                let numbers = vec![value; self.models[buffer].extent[2]];
                for command in self.row_copies(device, buffer, &region, &numbers) {
                    group = group.command(command);
                }
                group.hold(numbers).submit()?
            }
            _ => group.try_kernel("kernel")?,
        };
        Ok(Submitted { node, changes })
    }

    /// One copy per row of a box, from a row of numbers on the host.
    fn row_copies(&self, device: usize, buffer: usize, region: &Region, numbers: &[u32]) -> Vec<Command> {
        let core = &self.buffers[buffer].0.core;
        let state = core.lock();
        let memory = self.world.memory(device);
        let position = state.find(memory).expect("the accessor made an allocation");
        let base = state.allocation(position).pointer.as_ptr();
        let [_, rows, columns] = self.models[buffer].extent;
        let row = |memory, pointer| PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 };
        let mut commands = Vec::new();
        for x in region.begin[0]..region.end[0] {
            for y in region.begin[1]..region.end[1] {
                let first = ((x * rows + y) * columns + region.begin[2]) * 4;
                commands.push(Command::from(CopyCommand {
                    source: row(MemoryId::HOST, numbers.as_ptr().cast_mut().cast()),
                    target: row(memory, base.wrapping_add(first)),
                    extent: [1, 1, region.extent()[2] * 4],
                }));
            }
        }
        commands
    }

    /// Takes a host accessor if this thread does not hold one that it would wait for, and looks at the numbers.
    fn host(&mut self, buffer: usize, part: Corners, access: Access, steps: usize) -> Result<(), TestCaseError> {
        let region = self.models[buffer].cut(part);
        let Part { view, region } = self.buffers[buffer].region(region);
        let (mode, no_init) = match access {
            Access::Read => (Read, false),
            Access::Update => (ReadWrite, false),
            Access::Discard => (Write, true),
        };
        let access_now = self.world.at_once(|| HostAccess::new(&view, &region, mode, no_init));
        let Ok(held) = access_now else {
            prop_assert!(!self.held.is_empty(), "nothing keeps the accessor from being granted");
            return Ok(());
        };
        let numbers = held.pointer().cast::<u32>();
        for position in self.models[buffer].positions(&region) {
            let expected = self.models[buffer].numbers[position];
            match access {
                Access::Discard => {}
                // SAFETY: an element of the accessor's box, which the accessor keeps free of writers.
                _ => prop_assert_eq!(unsafe { numbers.add(position).read() }, expected, "at {}", position),
            }
        }
        if let Access::Update | Access::Discard = access {
            self.n_changes += 1;
            for position in self.models[buffer].positions(&region) {
                // SAFETY: as above; the accessor may write.
                unsafe { numbers.add(position).write(self.n_changes) };
            }
            self.models[buffer].apply(&region, Change::Set(self.n_changes));
        }
        let positions = self.models[buffer].positions(&region);
        // SAFETY: elements of the accessor's box.
        let numbers =
            positions.into_iter().map(|position| (position, unsafe { numbers.add(position).read() })).collect();
        self.held.push(Held { access: held, numbers, steps });
        Ok(())
    }

    /// Nothing changes what a host accessor covers.
    fn check_held(&self) -> Result<(), TestCaseError> {
        for held in &self.held {
            for &(position, expected) in &held.numbers {
                // SAFETY: an element of the accessor's box.
                let found = unsafe { held.access.pointer().cast::<u32>().add(position).read() };
                prop_assert_eq!(found, expected);
            }
        }
        Ok(())
    }

    fn end(&self, choice: usize) {
        let ready = self.world.recorder.ready();
        if let Some(index) = ready.get(choice % ready.len().max(1)) {
            self.world.recorder.complete(*index);
        }
    }
}

fn run(program: &Program) -> Result<(), TestCaseError> {
    let mut run = Run::new(program);
    for step in &program.steps {
        match step {
            Step::Kernel { device, accesses, by_copies } => {
                let submitted = run.submit(*device, accesses, *by_copies).expect("nothing fails");
                for (buffer, region, change) in &submitted.changes {
                    run.models[*buffer].apply(region, *change);
                }
                run.nodes.push(submitted.node);
            }
            Step::Host { buffer, part, access, steps } => run.host(*buffer, *part, *access, *steps)?,
            Step::End(choice) => run.end(*choice),
            Step::EndAll => run.world.recorder.complete_all(),
        }
        run.check_held()?;
        run.held.retain_mut(|held| {
            held.steps = held.steps.saturating_sub(1);
            held.steps > 0
        });
    }
    run.held.clear();
    // In an order that the program has not chosen, backwards.
    while let Some(index) = run.world.recorder.ready().pop() {
        run.world.recorder.complete(index);
    }
    for node in &run.nodes {
        prop_assert!(node.has_succeeded(), "{node:?} did not end well: {:?}", node.failure());
    }
    for (buffer, model) in run.buffers.iter().zip(&run.models) {
        prop_assert_eq!(&buffer.read(&run.world), &model.numbers);
    }
    prop_assert_eq!(run.world.recorder.violations(), Vec::<String>::new());
    Ok(())
}

#[test]
fn random_programs_give_the_data_of_sequential_execution() {
    let cases = std::env::var("OXISYCL_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&program(), |program| run(&program)).unwrap_or_else(|error| panic!("{error}"));
}

/// Random programs in which commands, copies and hand-overs fail: everything ends, and what can still be read is right.
#[test]
fn random_failures_leave_nothing_pending_and_no_wrong_data() {
    let cases = std::env::var("OXISYCL_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let faults = proptest::collection::vec((0..40usize, any::<bool>()), 1..5);
    TestRunner::new(config)
        .run(&(program(), faults), |(program, faults)| run_with_faults(&program, &faults))
        .unwrap_or_else(|error| panic!("{error}"));
}

fn run_with_faults(program: &Program, faults: &[(usize, bool)]) -> Result<(), TestCaseError> {
    let mut run = Run::new(program);
    let (lost, refused): (Vec<_>, Vec<_>) = faults.iter().copied().partition(|(_, is_refused)| !is_refused);
    let lost: BTreeSet<usize> = lost.into_iter().map(|(index, _)| index).collect();
    for (nth, _) in refused {
        run.world.recorder.refuse_command(nth as u64 + 1);
    }
    let recorder = run.world.recorder.clone();
    let end = |choice: usize| {
        let ready = recorder.ready();
        match ready.get(choice % ready.len().max(1)) {
            Some(index) if lost.contains(index) => recorder.lose(*index),
            Some(index) => recorder.complete(*index),
            None => {}
        }
    };
    let mut submitted = Vec::new();
    for (number, step) in program.steps.iter().enumerate() {
        match step {
            Step::Kernel { device, accesses, by_copies } => {
                submitted.extend(run.submit(*device, accesses, *by_copies).ok());
            }
            Step::Host { .. } | Step::End(_) => end(number * 7),
            Step::EndAll => (0..100).for_each(&end),
        }
    }
    while !run.world.recorder.ready().is_empty() {
        end(submitted.len() * 3);
    }
    prop_assert_eq!(run.world.recorder.pending(), Vec::<usize>::new());
    for Submitted { node, changes } in &submitted {
        prop_assert!(node.is_complete(), "{node:?} never ended");
        for (buffer, region, change) in changes.iter().filter(|_| node.has_succeeded()) {
            run.models[*buffer].apply(region, *change);
        }
    }
    for queue in &run.queues {
        prop_assert!(queue.queue.is_idle());
    }
    run.world.recorder.set_mode(CompletionMode::AtOnce);
    for (buffer, model) in run.buffers.iter().zip(&run.models) {
        let Part { view, region } = buffer.into();
        // What can be read is what the commands that ran have left there.
        for position in model.positions(&region) {
            let [_, rows, columns] = model.extent;
            let at = [position / columns / rows, position / columns % rows, position % columns];
            if let Ok(access) = HostAccess::new(&view, &Region::new(at, at.map(|n| n + 1)), Read, false) {
                // SAFETY: the element of the accessor.
                let found = unsafe { access.pointer().cast::<u32>().add(position).read() };
                prop_assert_eq!(found, model.numbers[position], "at {:?}", at);
            }
        }
        drop(HostAccess::new(&view, &region, Write, true));
        prop_assert!(HostAccess::new(&view, &region, Read, false).is_ok(), "an overwritten buffer can be read");
    }
    prop_assert_eq!(run.world.recorder.violations(), Vec::<String>::new());
    Ok(())
}
