//! The data-state and dependency rules of the AdaptiveCpp runtime specification against a naive model, under random programs on
//! three simulated devices.
//!
//! The model keeps the value, the last writer and the memories with the newest bytes of every element. It also keeps the last writer of
//! another part of the element's page with `no_init`, and all readers since both. A program is checked in two ways. It runs freely, and
//! every transferred byte is compared with the model's prediction (S-R19 to S-R30). It also runs held back by a gate, and every command's
//! dependencies are compared with the model's conflicts (S-R32 to S-R38). `OXISYCL_TEST_CASES` sets the number of programs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const N_DEVICES: usize = 3;
/// The host's memory in the model; devices are 0 to 2.
const HOST: usize = N_DEVICES;

#[derive(Clone, Debug)]
struct BufferSpec {
    extent: [usize; 2],
    page: Option<[usize; 2]>,
    is_initialized: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Read,
    Write,
    Update,
    Discard,
}

/// A box of elements, before it is cut to the buffer.
#[derive(Clone, Copy, Debug)]
struct Part {
    begin: [usize; 2],
    extent: [usize; 2],
}

#[derive(Clone, Debug)]
enum Op {
    /// A kernel on a device with one accessor.
    Kernel { device: usize, buffer: usize, part: Part, access: Access },
    /// A host accessor; only in programs that run freely.
    Host { buffer: usize, part: Part, access: Access },
    /// Copies a part of one buffer over the begin of another, on a device.
    Copy { device: usize, source: usize, part: Part, target: usize },
    /// Makes the host's data current.
    UpdateHost { device: usize, buffer: usize },
}

type Program = (Vec<BufferSpec>, Vec<Op>, u64);

fn part() -> impl Strategy<Value = Part> {
    (0..8usize, 0..8usize, 0..9usize, 0..9usize).prop_map(|(a, b, c, d)| Part { begin: [a, b], extent: [c, d] })
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![Just(Access::Read), Just(Access::Write), Just(Access::Update), Just(Access::Discard)]
}

fn buffer_spec() -> impl Strategy<Value = BufferSpec> {
    let page = proptest::option::of((1..5usize, 1..5usize).prop_map(|(a, b)| [a, b]));
    (1..9usize, 1..9usize, page, any::<bool>()).prop_map(|(rows, columns, page, is_initialized)| BufferSpec {
        extent: [rows, columns],
        page,
        is_initialized,
    })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..N_DEVICES, 0..2usize, part(), access())
            .prop_map(|(device, buffer, part, access)| Op::Kernel { device, buffer, part, access }),
        2 => (0..2usize, part(), access()).prop_map(|(buffer, part, access)| Op::Host { buffer, part, access }),
        1 => (0..N_DEVICES, 0..2usize, part())
            .prop_map(|(device, source, part)| Op::Copy { device, source, part, target: 1 - source }),
        1 => (0..N_DEVICES, 0..2usize).prop_map(|(device, buffer)| Op::UpdateHost { device, buffer }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let buffers = proptest::collection::vec(buffer_spec(), 2);
    (buffers, proptest::collection::vec(op(), 1..24), any::<u64>())
}

/// The commands that use an element.
#[derive(Clone, Default)]
struct Users {
    writer: Option<usize>,
    /// Who wrote to other elements of the page only.
    neighbour: Option<usize>,
    readers: BTreeSet<usize>,
}

struct ModelBuffer {
    spec: BufferSpec,
    values: Vec<u32>,
    /// Per element, whether its value is known: somebody wrote it.
    known: Vec<bool>,
    /// Per element, the memories with its newest value; none if nobody ever wrote it.
    current: Vec<BTreeSet<usize>>,
    users: Vec<Users>,
}

impl ModelBuffer {
    fn new(spec: &BufferSpec) -> Self {
        let n = spec.extent[0] * spec.extent[1];
        let values = (0..n as u32).map(|i| if spec.is_initialized { i * 7 + 1 } else { 0 }).collect();
        let current = vec![if spec.is_initialized { BTreeSet::from([HOST]) } else { BTreeSet::new() }; n];
        Self {
            spec: spec.clone(),
            values,
            known: vec![spec.is_initialized; n],
            current,
            users: vec![Users::default(); n],
        }
    }

    fn page_size(spec: &BufferSpec) -> [usize; 2] {
        spec.page.unwrap_or(spec.extent)
    }

    fn grid(spec: &BufferSpec) -> [usize; 2] {
        let page = Self::page_size(spec);
        [0, 1].map(|d| spec.extent[d].div_ceil(page[d]))
    }

    /// `part` cut to the buffer.
    fn cut(&self, part: Part) -> Part {
        let begin = [0, 1].map(|d| part.begin[d].min(self.spec.extent[d] - 1));
        let extent = [0, 1].map(|d| part.extent[d].min(self.spec.extent[d] - begin[d]));
        Part { begin, extent }
    }

    fn elements(&self, part: Part) -> Vec<usize> {
        let columns = self.spec.extent[1];
        let rows = part.begin[0]..part.begin[0] + part.extent[0];
        rows.flat_map(|y| (part.begin[1]..part.begin[1] + part.extent[1]).map(move |x| y * columns + x)).collect()
    }

    fn page_of(&self, element: usize) -> usize {
        let (page, grid) = (Self::page_size(&self.spec), Self::grid(&self.spec));
        let (y, x) = (element / self.spec.extent[1], element % self.spec.extent[1]);
        (y / page[0]) * grid[1] + x / page[1]
    }

    fn pages_of(&self, part: Part) -> BTreeSet<usize> {
        self.elements(part).into_iter().map(|element| self.page_of(element)).collect()
    }

    /// Applies an access of command `id` in `memory`. Returns the commands it depends on and the number of elements it moves.
    fn access(&mut self, id: usize, memory: usize, part: Part, access: Access) -> (BTreeSet<usize>, usize) {
        let mut dependencies = BTreeSet::new();
        let mut moved = 0;
        let pages = self.pages_of(part);
        let writes = access != Access::Read;
        let named: BTreeSet<usize> = self.elements(part).into_iter().collect();
        for element in 0..self.values.len() {
            if !pages.contains(&self.page_of(element)) {
                continue;
            }
            let users = &mut self.users[element];
            dependencies.extend(users.writer.into_iter().chain(users.neighbour));
            if !writes {
                if users.writer != Some(id) {
                    users.readers.insert(id);
                }
            } else {
                dependencies.append(&mut users.readers);
                if access == Access::Discard && !named.contains(&element) {
                    users.neighbour = Some(id);
                } else {
                    (users.writer, users.neighbour) = (Some(id), None);
                }
            }
            if access == Access::Discard {
                if named.contains(&element) {
                    self.current[element] = BTreeSet::from([memory]);
                }
                continue;
            }
            let current = &mut self.current[element];
            if !current.is_empty() && current.insert(memory) {
                moved += 1;
            }
            if writes {
                *current = BTreeSet::from([memory]);
            }
        }
        dependencies.remove(&id);
        (dependencies, moved)
    }

    fn apply(&mut self, id: usize, part: Part, access: Access) {
        for element in self.elements(part) {
            let value = &mut self.values[element];
            match access {
                Access::Read => {}
                Access::Update => *value = value.wrapping_mul(31).wrapping_add(id as u32),
                Access::Write | Access::Discard => {
                    *value = id as u32 * 1000 + element as u32;
                    self.known[element] = true;
                }
            }
        }
    }
}

/// Counters are those of the process, so programs run one at a time.
fn exclusive() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn make_buffer(spec: &BufferSpec) -> Buffer<u32, 2> {
    let mut options = BufferOptions::new();
    if let Some(page) = spec.page {
        options = options.page_size(page);
    }
    let n = spec.extent[0] * spec.extent[1];
    if spec.is_initialized {
        options.from_vec_nd((0..n as u32).map(|i| i * 7 + 1).collect(), spec.extent).unwrap()
    } else {
        options.uninit(spec.extent).unwrap()
    }
}

/// Submits the kernel of an access. A reading kernel has no effect but what it requires.
fn submit_kernel(
    queue: &Queue,
    buffer: &Buffer<u32, 2>,
    id: usize,
    part: Part,
    access: Access,
    gate: Option<&Event>,
) -> Event {
    let columns = buffer.range()[1];
    let [y0, x0] = part.begin;
    let id = id as u32;
    let value = move |item: Item<2>| id * 1000 + ((item.get(0) + y0) * columns + item.get(1) + x0) as u32;
    let event = queue.submit(|cg| {
        if let Some(gate) = gate {
            cg.depends_on(gate);
        }
        match access {
            Access::Read => {
                let a = cg.access_range(buffer, Read, part.begin, part.extent);
                cg.parallel_for(part.extent, move |item| {
                    std::hint::black_box(a.get(item));
                })
            }
            Access::Update => {
                let a = cg.access_range(buffer, ReadWrite, part.begin, part.extent);
                cg.parallel_for(part.extent, move |item| a.update(item, |x| x.wrapping_mul(31).wrapping_add(id)))
            }
            Access::Write => {
                let a = cg.access_range(buffer, Write, part.begin, part.extent);
                cg.parallel_for(part.extent, move |item| a.set(item, value(item)))
            }
            Access::Discard => {
                let a = cg.access_range(buffer, Write.no_init(), part.begin, part.extent);
                cg.parallel_for(part.extent, move |item| a.set(item, value(item)))
            }
        }
    });
    event.unwrap()
}

/// `part` of the source and a part of the target of the same shape at its begin, if there is one.
fn copy_parts(models: &[ModelBuffer], source: usize, part: Part, target: usize) -> Option<(Part, Part)> {
    let from = models[source].cut(part);
    let to = models[target].cut(Part { begin: [0, 0], extent: from.extent });
    (from.extent == to.extent && from.extent[0] * from.extent[1] > 0).then_some((from, to))
}

fn simulator(seed: u64) -> Simulator {
    Simulator::new(SimulatedConfig::new(N_DEVICES).shuffled(seed)).unwrap()
}

fn run_freely((specs, ops, seed): &Program) -> Result<(), TestCaseError> {
    let _exclusive = exclusive();
    let simulator = simulator(*seed);
    let queues: Vec<Queue> = simulator.devices().iter().map(|device| Queue::new(device).unwrap()).collect();
    let buffers: Vec<_> = specs.iter().map(make_buffer).collect();
    let mut models: Vec<_> = specs.iter().map(ModelBuffer::new).collect();
    for (id, op) in ops.iter().enumerate() {
        let before = oxisycl::observe::counters();
        let mut moved = 0;
        match *op {
            Op::Kernel { device, buffer, part, access } => {
                let part = models[buffer].cut(part);
                moved += models[buffer].access(id, device, part, access).1;
                models[buffer].apply(id, part, access);
                submit_kernel(&queues[device], &buffers[buffer], id, part, access, None);
            }
            Op::Host { buffer, part, access } => {
                let part = models[buffer].cut(part);
                moved += models[buffer].access(id, HOST, part, access).1;
                if access == Access::Read {
                    check_on_host(&buffers[buffer], &models[buffer], part)?;
                } else {
                    models[buffer].apply(id, part, access);
                    for element in models[buffer].elements(part) {
                        models[buffer].known[element] = true;
                    }
                    write_on_host(&buffers[buffer], &models[buffer], part, access);
                }
            }
            Op::Copy { device, source, part, target } => {
                let Some((from, to)) = copy_parts(&models, source, part, target) else { continue };
                let elements = models[source].elements(from);
                // What is copied from elements that nobody wrote is unknown; such programs are not followed further.
                if elements.iter().any(|&element| !models[source].known[element]) {
                    return Ok(());
                }
                moved += models[source].access(id, device, from, Access::Read).1;
                // A copy replaces all of its target.
                moved += models[target].access(id, device, to, Access::Discard).1;
                let values: Vec<u32> = elements.iter().map(|&element| models[source].values[element]).collect();
                for (element, value) in models[target].elements(to).into_iter().zip(values) {
                    models[target].values[element] = value;
                    models[target].known[element] = true;
                }
                let (source, target) = (&buffers[source], &buffers[target]);
                let copied = queues[device].submit(|cg| {
                    let a = cg.access_range(source, Read, from.begin, from.extent);
                    let b = cg.access_range(target, Write, to.begin, to.extent);
                    cg.copy(a, b)
                });
                copied.unwrap();
            }
            Op::UpdateHost { device, buffer } => {
                let whole = Part { begin: [0, 0], extent: models[buffer].spec.extent };
                moved += models[buffer].access(id, HOST, whole, Access::Read).1;
                queues[device].update_host(&buffers[buffer]).unwrap();
            }
        }
        let bytes = (oxisycl::observe::counters() - before).transferred_bytes();
        prop_assert_eq!(bytes, moved as u64 * 4, "bytes moved for op {} ({:?})", id, op);
    }
    for (buffer, model) in buffers.iter().zip(&models) {
        check_on_host(buffer, model, Part { begin: [0, 0], extent: model.spec.extent })?;
    }
    for queue in &queues {
        prop_assert!(queue.wait().is_ok());
    }
    Ok(())
}

/// What the host reads is what the model has, where anybody wrote anything.
fn check_on_host(buffer: &Buffer<u32, 2>, model: &ModelBuffer, part: Part) -> Result<(), TestCaseError> {
    let host = buffer.host_access_range(Read, part.begin, part.extent).unwrap();
    for (element, &value) in model.elements(part).into_iter().zip(host.iter()) {
        if model.known[element] {
            prop_assert_eq!(value, model.values[element], "element {}", element);
        }
    }
    Ok(())
}

fn write_on_host(buffer: &Buffer<u32, 2>, model: &ModelBuffer, part: Part, access: Access) {
    let columns = model.spec.extent[1];
    let value = |index: Id<2>| model.values[(index[0] + part.begin[0]) * columns + index[1] + part.begin[1]];
    if access == Access::Discard {
        let mut host = buffer.host_access_range(Write.no_init(), part.begin, part.extent).unwrap();
        host.for_each_mut(|index, element| *element = value(index));
    } else {
        let mut host = buffer.host_access_range(ReadWrite, part.begin, part.extent).unwrap();
        host.for_each_mut(|index, element| *element = value(index));
    }
}

/// Every command waits behind a host task, so that none has ended when its dependencies are looked at.
fn check_dependencies((specs, ops, seed): &Program) -> Result<(), TestCaseError> {
    let _exclusive = exclusive();
    let simulator = simulator(*seed);
    let queues: Vec<Queue> = simulator.devices().iter().map(|device| Queue::new(device).unwrap()).collect();
    let buffers: Vec<_> = specs.iter().map(make_buffer).collect();
    let mut models: Vec<_> = specs.iter().map(ModelBuffer::new).collect();
    let is_open = Arc::new(AtomicBool::new(false));
    let gate = queues[0].submit(|cg| {
        let is_open = is_open.clone();
        cg.host_task(move |_| {
            while !is_open.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    });
    let gate = gate.unwrap();
    let mut events: Vec<Option<Event>> = Vec::new();
    let mut wrong = None;
    for (id, op) in ops.iter().enumerate() {
        let Op::Kernel { device, buffer, part, access } = *op else {
            events.push(None);
            continue;
        };
        let part = models[buffer].cut(part);
        let (expected, _) = models[buffer].access(id, device, part, access);
        let event = submit_kernel(&queues[device], &buffers[buffer], id, part, access, Some(&gate));
        let dependencies = event.dependencies();
        let is_dependency = |i: &usize| events[*i].as_ref().is_some_and(|event| dependencies.contains(event));
        let found: BTreeSet<usize> = (0..id).filter(is_dependency).collect();
        events.push(Some(event));
        if found != expected {
            wrong = Some((id, found, expected));
            break;
        }
    }
    is_open.store(true, Ordering::Release);
    for queue in &queues {
        prop_assert!(queue.wait().is_ok());
    }
    if let Some((id, found, expected)) = wrong {
        prop_assert_eq!(found, expected, "dependencies of op {} ({:?})", id, ops[id]);
    }
    Ok(())
}

fn check(test: impl Fn(&Program) -> Result<(), TestCaseError>) {
    let cases = std::env::var("OXISYCL_TEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(400);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() };
    if let Err(failure) = TestRunner::new(config).run(&program(), |program| test(&program)) {
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
