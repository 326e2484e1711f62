//! The data-state and dependency rules of the AdaptiveCpp runtime specification against a naive model, under random programs on
//! three simulated devices.
//!
//! The model keeps the value, the last writer and the memories with the newest bytes of every element. It also keeps the last writer of
//! another part of the element's page with `no_init`, and all readers since both. An image is a buffer of one page whose accessors name all
//! of it. A program is checked in two ways. It runs freely, and every transferred byte is compared with the model's prediction (S-R19 to
//! S-R30). It also runs held back by a gate, and every command's dependencies are compared with the model's conflicts (S-R32 to S-R38).
//! `OXISYCL_TEST_CASES` sets the number of programs, `OXISYCL_TEST_SEED` the seed that they follow from.

mod memory;
mod naive;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::sync::Arc;

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use memory::Memory;
use naive::Model;
use support::{Gate, alone, setting};

const N_DEVICES: usize = 3;
/// The host's memory in the model; devices are 0 to 2.
const HOST: usize = N_DEVICES;
/// Buffers and images of a program.
const N_MEMORIES: usize = 3;

/// What holds the elements, and how it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Buffer,
    /// Over a vector, or uninitialised.
    Image,
    /// An image with a copy of a slice.
    Copied,
    /// An image over borrowed memory, whose rows have that many elements between them.
    Borrowed {
        gap: usize,
    },
}

#[derive(Clone, Debug)]
struct Spec {
    kind: Kind,
    extent: [usize; 2],
    page: Option<[usize; 2]>,
    is_initialized: bool,
}

impl Spec {
    fn is_image(&self) -> bool {
        self.kind != Kind::Buffer
    }

    fn first_values(&self) -> Vec<u32> {
        (0..(self.extent[0] * self.extent[1]) as u32).map(|i| i * 7 + 1).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Read,
    Write,
    Update,
    Discard,
}

/// A box of elements, before it is cut to the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    begin: [usize; 2],
    extent: [usize; 2],
}

#[derive(Clone, Debug)]
enum Op {
    /// A kernel on a device with one accessor, which names all of an image.
    Kernel { device: usize, memory: usize, part: Part, access: Access },
    /// A kernel that writes to one what a sampler reads of the other, which is an image.
    Sample { device: usize, source: usize, target: usize },
    /// A host accessor; only in programs that run freely.
    Host { memory: usize, part: Part, access: Access },
    /// Copies a part of one buffer over the begin of another, on a device. All is copied if one is an image.
    Copy { device: usize, source: usize, part: Part, target: usize },
    /// Stores one value everywhere.
    Fill { device: usize, memory: usize },
    /// Copies all to memory of the host, or from there; only in programs that run freely.
    HostCopy { device: usize, memory: usize, is_read: bool },
    /// Makes the host's data current; only in programs that run freely.
    UpdateHost { device: usize, memory: usize },
}

type Program = (Vec<Spec>, Vec<Op>, u64);

fn part() -> impl Strategy<Value = Part> {
    (0..8usize, 0..8usize, 0..9usize, 0..9usize).prop_map(|(a, b, c, d)| Part { begin: [a, b], extent: [c, d] })
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Update), Just(Access::Discard)]
}

fn extent() -> impl Strategy<Value = [usize; 2]> {
    (1..9usize, 1..9usize).prop_map(|(rows, columns)| [rows, columns])
}

fn buffer() -> impl Strategy<Value = Spec> {
    let page = proptest::option::of((1..5usize, 1..5usize).prop_map(|(a, b)| [a, b]));
    (extent(), page, any::<bool>()).prop_map(|(extent, page, is_initialized)| Spec {
        kind: Kind::Buffer,
        extent,
        page,
        is_initialized,
    })
}

fn image() -> impl Strategy<Value = Spec> {
    let kind = prop_oneof![Just(Kind::Image), Just(Kind::Copied), (0..3usize).prop_map(|gap| Kind::Borrowed { gap })];
    (extent(), kind, any::<bool>()).prop_map(|(extent, kind, is_initialized)| Spec {
        kind,
        extent,
        page: None,
        is_initialized: is_initialized || kind != Kind::Image,
    })
}

/// A buffer, an image and one of both kinds. Those of one extent can be copied as a whole.
fn memories() -> impl Strategy<Value = Vec<Spec>> {
    let any_kind = prop_oneof![buffer(), image()];
    (buffer(), image(), any_kind, 0..4usize).prop_map(|(buffer, mut image, mut third, alike)| {
        if alike & 1 != 0 {
            image.extent = buffer.extent;
        }
        if alike & 2 != 0 {
            third.extent = image.extent;
        }
        vec![buffer, image, third]
    })
}

fn op() -> impl Strategy<Value = Op> {
    let (device, memory) = (0..N_DEVICES, 0..N_MEMORIES);
    let two = (0..N_MEMORIES, 1..N_MEMORIES).prop_map(|(source, step)| (source, (source + step) % N_MEMORIES));
    prop_oneof![
        8 => (device.clone(), memory.clone(), part(), access())
            .prop_map(|(device, memory, part, access)| Op::Kernel { device, memory, part, access }),
        2 => (device.clone(), two.clone())
            .prop_map(|(device, (source, target))| Op::Sample { device, source, target }),
        3 => (memory.clone(), part(), access()).prop_map(|(memory, part, access)| Op::Host { memory, part, access }),
        3 => (device.clone(), two, part())
            .prop_map(|(device, (source, target), part)| Op::Copy { device, source, part, target }),
        1 => (device.clone(), memory.clone()).prop_map(|(device, memory)| Op::Fill { device, memory }),
        1 => (device.clone(), memory.clone(), any::<bool>())
            .prop_map(|(device, memory, is_read)| Op::HostCopy { device, memory, is_read }),
        1 => (device, memory).prop_map(|(device, memory)| Op::UpdateHost { device, memory }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    (memories(), proptest::collection::vec(op(), 1..32), any::<u64>())
}

/// What a copy reads and writes. None if it would copy nothing, an error if the two do not fit.
fn copy_parts(models: &[Model], source: usize, part: Part, target: usize) -> Option<Result<(Part, Part), ()>> {
    let (source, target) = (&models[source], &models[target]);
    if source.spec.is_image() || target.spec.is_image() {
        let is_same = match source.spec.is_image() && target.spec.is_image() {
            true => source.spec.extent == target.spec.extent,
            false => source.values.len() == target.values.len(),
        };
        return Some(is_same.then_some((source.whole(), target.whole())).ok_or(()));
    }
    let from = source.cut(part);
    let to = target.cut(Part { begin: [0, 0], extent: from.extent });
    (from.extent == to.extent && from.extent[0] * from.extent[1] > 0).then_some(Ok((from, to)))
}

/// The part that both have at their begins.
fn common_part(models: &[Model], source: usize, target: usize) -> Part {
    let extent = [0, 1].map(|d| models[source].spec.extent[d].min(models[target].spec.extent[d]));
    Part { begin: [0, 0], extent }
}

fn fill_value(id: usize) -> u32 {
    id as u32 * 1000 + 999
}

fn simulator(seed: u64) -> Simulator {
    Simulator::new(SimulatedConfig::new(N_DEVICES).shuffled(seed)).unwrap()
}

/// A program in the making: what is modelled, and the real memories and queues.
struct Run<'a> {
    models: Vec<Model>,
    memories: Vec<Memory<'a>>,
    queues: Vec<Queue>,
}

impl<'a> Run<'a> {
    fn new(specs: &[Spec], simulator: &Simulator, host: &'a mut [Vec<u32>]) -> Self {
        Self {
            models: specs.iter().map(Model::new).collect(),
            memories: specs.iter().zip(host).map(|(spec, memory)| Memory::new(spec, memory)).collect(),
            queues: simulator.devices().iter().map(|device| Queue::new(device).unwrap()).collect(),
        }
    }

    /// Models a command on devices and submits it. Gives its event, what it depends on and the number of elements that move. None for
    /// what is no such command, or does nothing.
    fn submit(
        &mut self,
        id: usize,
        op: &Op,
        gate: Option<&Event>,
    ) -> Result<Option<(Event, BTreeSet<usize>, usize)>, TestCaseError> {
        let Self { models, memories, queues } = self;
        let (mut dependencies, mut n_moved) = (BTreeSet::new(), 0);
        let mut access = |model: &mut Model, device: usize, part: Part, access: Access| {
            let (found, moved) = model.access(id, device, part, access);
            dependencies.extend(found);
            n_moved += moved;
        };
        let event = match *op {
            Op::Kernel { device, memory, part, access: mode } => {
                let part = models[memory].named(part);
                access(&mut models[memory], device, part, mode);
                models[memory].apply(id, part, mode);
                memories[memory].kernel(&queues[device], id, part, mode, gate)
            }
            Op::Sample { device, source, target } => {
                let part = common_part(models, source, target);
                let Some(event) = memories[source].sample(&queues[device], &memories[target], part, gate) else {
                    return Ok(None);
                };
                let (whole, named) = (models[source].whole(), models[target].named(part));
                access(&mut models[source], device, whole, Access::Read);
                access(&mut models[target], device, named, Access::Write);
                let content = models[source].content(part);
                models[target].take(part, &content);
                event
            }
            Op::Copy { device, source, part, target } => {
                let Some(parts) = copy_parts(models, source, part, target) else { return Ok(None) };
                let (from, to) = parts.unwrap_or((part, part));
                let event = memories[source].copy_to(&queues[device], &memories[target], from, to, gate);
                if parts.is_err() {
                    prop_assert_eq!(event.map_err(|error| error.code()).err(), Some(ErrorCode::Invalid));
                    return Ok(None);
                }
                access(&mut models[source], device, from, Access::Read);
                // A copy replaces all of its target.
                access(&mut models[target], device, to, Access::Discard);
                let content = models[source].content(from);
                models[target].take(to, &content);
                event.unwrap()
            }
            Op::Fill { device, memory } => {
                let whole = models[memory].whole();
                access(&mut models[memory], device, whole, Access::Discard);
                let content = vec![(fill_value(id), true); models[memory].values.len()];
                models[memory].take(whole, &content);
                memories[memory].fill(&queues[device], fill_value(id), gate)
            }
            Op::Host { .. } | Op::HostCopy { .. } | Op::UpdateHost { .. } => return Ok(None),
        };
        Ok(Some((event, dependencies, n_moved)))
    }

    /// Models what the host does itself, or waits for, and does it. Returns the number of elements that move.
    fn on_host(&mut self, id: usize, op: &Op) -> Result<usize, TestCaseError> {
        let Self { models, memories, queues } = self;
        match *op {
            Op::Host { memory, part, access } => {
                let model = &mut models[memory];
                let part = model.named(part);
                let moved = model.access(id, HOST, part, access).1;
                if access == Access::Read {
                    check_on_host(&memories[memory], model, part)?;
                } else {
                    model.apply(id, part, access);
                    let content: Vec<_> = model.content(part).into_iter().map(|(value, _)| (value, true)).collect();
                    model.take(part, &content);
                    let values: Vec<u32> = content.into_iter().map(|(value, _)| value).collect();
                    memories[memory].write_on_host(part, access == Access::Discard, &values);
                }
                Ok(moved)
            }
            Op::HostCopy { device, memory, is_read } => {
                let model = &mut models[memory];
                let whole = model.whole();
                let access = if is_read { Access::Read } else { Access::Discard };
                let moved = model.access(id, device, whole, access).1;
                if is_read {
                    let found = memories[memory].copy_to_host(&queues[device], model.values.len());
                    compare(&found, &model.content(whole))?;
                } else {
                    model.apply(id, whole, access);
                    memories[memory].copy_from_host(&queues[device], model.values.clone());
                }
                // The copy itself moves all of them once.
                Ok(moved + model.values.len())
            }
            Op::UpdateHost { device, memory } => {
                let whole = models[memory].whole();
                let moved = models[memory].access(id, HOST, whole, Access::Read).1;
                memories[memory].update_host(&queues[device]);
                Ok(moved)
            }
            Op::Kernel { .. } | Op::Sample { .. } | Op::Copy { .. } | Op::Fill { .. } => Ok(0),
        }
    }
}

/// What was found is what the model has, where anybody wrote anything.
fn compare(found: &[u32], expected: &[(u32, bool)]) -> Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (i, (&found, &(expected, is_known))) in found.iter().zip(expected).enumerate() {
        if is_known {
            prop_assert_eq!(found, expected, "element {}", i);
        }
    }
    Ok(())
}

fn check_on_host(memory: &Memory<'_>, model: &Model, part: Part) -> Result<(), TestCaseError> {
    compare(&memory.read_on_host(part), &model.content(part))
}

/// Runs a program with images over the memory of `host`. Gives the model at the end.
fn run_over((specs, ops, seed): &Program, host: &mut [Vec<u32>]) -> Result<Vec<Model>, TestCaseError> {
    let simulator = simulator(*seed);
    let mut run = Run::new(specs, &simulator, host);
    for (id, op) in ops.iter().enumerate() {
        let before = oxisycl::observe::counters();
        let moved = run.on_host(id, op)? + run.submit(id, op, None)?.map_or(0, |(_, _, moved)| moved);
        let bytes = (oxisycl::observe::counters() - before).transferred_bytes();
        prop_assert_eq!(bytes, moved as u64 * 4, "bytes moved for op {} ({:?})", id, op);
    }
    let Run { models, memories, queues } = run;
    for (memory, model) in memories.iter().zip(&models) {
        check_on_host(memory, model, model.whole())?;
    }
    memories.into_iter().for_each(Memory::end);
    for queue in &queues {
        prop_assert!(queue.wait().is_ok());
    }
    Ok(models)
}

fn run_freely(program: &Program) -> Result<(), TestCaseError> {
    let _alone = alone();
    let mut host: Vec<Vec<u32>> = program.0.iter().map(memory::host_memory).collect();
    let models = run_over(program, &mut host)?;
    for (model, host) in models.iter().zip(&host).filter(|(_, host)| !host.is_empty()) {
        let Some(pixels) = memory::pixels_of(&model.spec, host) else {
            return Err(TestCaseError::fail("write-back changed what lies between rows"));
        };
        compare(&pixels, &model.content(model.whole()))?;
    }
    Ok(())
}

/// Also if a test returns early: memories that are dropped wait for their commands.
struct OpenedAtTheEnd(Arc<Gate>);

impl Drop for OpenedAtTheEnd {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Every command waits behind a host task, so that none has ended when its dependencies are looked at.
fn check_dependencies((specs, ops, seed): &Program) -> Result<(), TestCaseError> {
    let _alone = alone();
    let simulator = simulator(*seed);
    let mut host: Vec<Vec<u32>> = specs.iter().map(memory::host_memory).collect();
    let mut run = Run::new(specs, &simulator, &mut host);
    let opened = OpenedAtTheEnd(Arc::new(Gate::new()));
    let gate = run.queues[0].submit(|cg| {
        let closed = opened.0.clone();
        cg.host_task(move |_| closed.pass())
    });
    let gate = gate.unwrap();
    let mut events: Vec<Option<Event>> = Vec::new();
    let mut wrong = None;
    for (id, op) in ops.iter().enumerate() {
        let Some((event, expected, _)) = run.submit(id, op, Some(&gate))? else {
            events.push(None);
            continue;
        };
        let dependencies = event.dependencies();
        let is_dependency = |i: &usize| events[*i].as_ref().is_some_and(|event| dependencies.contains(event));
        let found: BTreeSet<usize> = (0..id).filter(is_dependency).collect();
        events.push(Some(event));
        if found != expected {
            wrong = Some((id, found, expected));
            break;
        }
    }
    drop(opened);
    for queue in &run.queues {
        prop_assert!(queue.wait().is_ok());
    }
    if let Some((id, found, expected)) = wrong {
        prop_assert_eq!(found, expected, "dependencies of op {} ({:?})", id, ops[id]);
    }
    Ok(())
}

fn check(test: impl Fn(&Program) -> Result<(), TestCaseError>) {
    let (cases, seed) = (setting("OXISYCL_TEST_CASES", 400), setting("OXISYCL_TEST_SEED", 1));
    println!("{cases} programs from seed {seed}");
    let config =
        Config { cases: cases as u32, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    if let Err(failure) = TestRunner::new_with_rng(config, rng).run(&program(), |program| test(&program)) {
        panic!("{failure}");
    }
}

#[test]
fn random_programs_give_the_models_data_and_move_exactly_its_bytes() {
    check(run_freely);
}

#[test]
fn random_programs_have_exactly_the_models_dependencies() {
    check(check_dependencies);
}
