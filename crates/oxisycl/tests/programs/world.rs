//! The devices, queues and buffers of a random program, and the steps that its threads submit.

use std::fmt::Write as _;
use std::sync::Mutex;

use oxisycl::BufferOptions;
use oxisycl::prelude::*;
use oxisycl::simulated::{Operation, SimulatedConfig, SimulatedControl, Simulator};

use crate::support::Random;
use crate::view::{Access, Pages, Part, Use, View, cut, overlap};
use crate::{N_BUFFERS, N_DEVICES};

/// What a command does to the named elements of its last use.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Nothing; data becomes current elsewhere.
    Nothing,
    /// `to[i] = to[i] * 3 + number + sum of from[i % from.len()]`, where the target is not read if the access is `Write` or `Discard`.
    Combine(u32),
    /// Element `i` of the first use becomes element `i` of the last.
    Copy,
    Fill(u32),
    /// The host's data replaces all of it.
    Store(Vec<u32>),
    /// The kernel panics at its first element.
    Panic,
    /// The host saw these values.
    See(Vec<u32>),
}

/// A step that was submitted, and how it ended.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) uses: Vec<Use>,
    pub(crate) effect: Effect,
    /// The simulated device that it was submitted to.
    pub(crate) device: Option<usize>,
    /// What it has the device do, beside transfers.
    pub(crate) operation: Option<Operation>,
    /// Steps that it was told to come after.
    pub(crate) after: Vec<usize>,
    /// Two of its accessors overlap and one writes: it must be refused.
    pub(crate) is_refused: bool,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The call returned the error.
    Refused(Error),
    Submitted(Event),
    /// The step was over when the call returned.
    Done,
}

pub(crate) struct Shared {
    pub(crate) steps: Vec<Step>,
}

/// An operation that fails: the device, and which one of its class.
pub(crate) type Fault = (usize, Operation, u64);

pub(crate) struct World {
    pub(crate) queues: Vec<Queue>,
    pub(crate) control: SimulatedControl,
    pub(crate) faults: Vec<Fault>,
    pub(crate) views: Vec<View>,
    pub(crate) extents: [[usize; 3]; N_BUFFERS],
    pub(crate) shared: Mutex<Shared>,
}

/// An accessor of the command that reads or writes.
macro_rules! accessor {
    ($cg:expr, $view:expr, $mode:expr, $part:expr) => {
        $cg.access_range(&$view.handle, $mode, $part.offset, $part.range)
    };
}

impl World {
    pub(crate) fn new(random: &mut Random) -> Self {
        let config = SimulatedConfig::new(N_DEVICES).shuffled(random.next()).peer_copies(random.below(4) > 0);
        let simulator = Simulator::new(config).unwrap();
        let control = simulator.control();
        let faults = faults(random);
        for &(device, operation, nth) in &faults {
            control.fail_next(device, operation, nth);
        }
        let mut devices = simulator.devices();
        devices.push(Device::select(oxisycl::selector::cpu_selector).unwrap());
        let queue = |(i, device): (usize, &Device)| {
            let builder = Queue::builder().device(device).handler(|_| {});
            if i == 1 { builder.in_order() } else { builder }.build().unwrap()
        };
        let queues = devices.iter().enumerate().map(queue).collect();
        let mut views = Vec::new();
        let planes = [[4, 4], [2, 8], [1, 16], [3, 5], [2, 3]];
        let extents = std::array::from_fn(|_| {
            let [rows, columns] = planes[random.below(planes.len())];
            [1 + random.below(4), rows, columns]
        });
        for (buffer, &extent) in extents.iter().enumerate() {
            let page = (random.below(3) > 0).then(|| extent.map(|n| 1 + random.below(n)));
            let options = page.map_or(BufferOptions::new(), |page| BufferOptions::new().page_size(page));
            let n = extent.iter().product();
            let handle =
                options.from_vec_nd((0..n as u32).map(|i| start(buffer, i as usize)).collect(), extent).unwrap();
            let pages = page.map_or(Pages::Of(extent), Pages::Of);
            views.push(View { buffer, handle: handle.clone(), extent, first: 0, pages });
            // Whole planes are contiguous. Devices need sub-buffers to begin at a multiple of 64 bytes.
            let plane = extent[1] * extent[2];
            let (mut begin, mut length) = random.interval(extent[0]);
            while !(begin * plane).is_multiple_of(16) {
                (begin, length) = (begin - 1, length + 1);
            }
            let (offset, range) = ([begin, 0, 0], [length, extent[1], extent[2]]);
            let pages = page.map_or(Pages::View, Pages::Of);
            let sub_buffer = handle.sub_buffer(offset, range).unwrap();
            let first = begin * plane;
            views.push(View { buffer, handle: sub_buffer.clone(), extent: range, first, pages });
            let line = [1, 1, n];
            views.push(View {
                buffer,
                handle: handle.reinterpret(line).unwrap(),
                extent: line,
                first: 0,
                pages: Pages::Unknown,
            });
            let line = [range.iter().product(), 1, 1];
            let handle = sub_buffer.reinterpret(line).unwrap();
            views.push(View { buffer, handle, extent: line, first, pages: Pages::Unknown });
        }
        Self { queues, control, faults, views, extents, shared: Mutex::new(Shared { steps: Vec::new() }) }
    }

    pub(crate) fn use_of(&self, view: &View, part: Part, access: Access) -> Use {
        view.use_of(part, access, self.extents[view.buffer])
    }

    /// Submits one random step; the lock makes its place in the order known.
    pub(crate) fn step(&self, thread: usize, random: &mut Random) {
        let view = |random: &mut Random| self.views[random.below(self.views.len())].clone();
        let (target, source) = (view(random), view(random));
        let queue_number = random.below(self.queues.len());
        let queue = &self.queues[queue_number];
        let (to, from) = (target.part(random), source.part(random));
        let access = [Access::ReadWrite, Access::Write, Access::Discard][random.below(3)];
        let number = random.below(1000) as u32;
        let kind = random.below(16);
        let mut shared = self.shared.lock().unwrap();
        let earlier = shared.steps.len();
        let mut after = Vec::new();
        // Host accessors come after nothing but what uses their data.
        if earlier > 0 && !(11..=14).contains(&kind) && random.below(6) == 0 {
            let step = random.below(earlier);
            if matches!(shared.steps[step].outcome, Outcome::Submitted(_)) {
                after.push(step);
            }
        }
        let events: Vec<Event> = after
            .iter()
            .filter_map(|&step| match &shared.steps[step].outcome {
                Outcome::Submitted(event) => Some(event.clone()),
                _ => None,
            })
            .collect();
        let device = queue.device().name();
        let mut text = format!("thread {thread} on {device}, after {after:?}: ");
        let describe = |view: &View, part: &Part| {
            format!(
                "buffer {} {:?} from {} at {:?} range {:?}",
                view.buffer, view.extent, view.first, part.offset, part.range
            )
        };
        let (uses, effect, outcome) = match kind {
            // A kernel with up to three accessors that read.
            0..=5 => {
                let n_sources = random.below(4);
                let sources: Vec<(View, Part)> = (0..n_sources)
                    .map(|_| {
                        let source = view(random);
                        let part = source.part(random);
                        (source, part)
                    })
                    .collect();
                let panics = random.below(7) == 0;
                let _ = write!(text, "kernel {access:?} {}", describe(&target, &to));
                for (source, part) in &sources {
                    let _ = write!(text, ", reads {}", describe(source, part));
                }
                let mut uses: Vec<Use> =
                    sources.iter().map(|(view, part)| self.use_of(view, *part, Access::Read)).collect();
                uses.push(self.use_of(&target, to, access));
                let submitted = kernel(queue, &events, &sources, (&target, to, access), number, panics);
                (uses, if panics { Effect::Panic } else { Effect::Combine(number) }, outcome(submitted))
            }
            6 | 7 => {
                let n = from.size().min(to.size());
                let (from, to) = if from.size() <= to.size() { (from, to) } else { (cut(from, n), to) };
                let _ = write!(text, "copy {} to {}", describe(&source, &from), describe(&target, &to));
                let from_use = self.use_of(&source, from, Access::Read);
                let to_use =
                    self.use_of(&target, to, if from.size() == to.size() { Access::Discard } else { Access::Write });
                let submitted = queue.submit(|cg| {
                    cg.depends_on_all(&events);
                    let from = accessor!(cg, source, Read, from);
                    let to = accessor!(cg, target, Write, to);
                    cg.copy(from, to)
                });
                (vec![from_use, to_use], Effect::Copy, outcome(submitted))
            }
            8 => {
                let _ = write!(text, "fill {}", describe(&target, &to));
                let submitted = queue.submit(|cg| {
                    cg.depends_on_all(&events);
                    let data = accessor!(cg, target, Write, to);
                    cg.fill(data, number)
                });
                (vec![self.use_of(&target, to, Access::Discard)], Effect::Fill(number), outcome(submitted))
            }
            9 | 10 => {
                let panics = random.below(5) == 0;
                let _ = write!(text, "host task {}", describe(&target, &to));
                let submitted = queue.submit(|cg| {
                    cg.depends_on_all(&events);
                    let mut data = cg.access_host_range(&target.handle, ReadWrite, to.offset, to.range);
                    cg.host_task(move |scope| {
                        for z in 0..to.range[0] {
                            for y in 0..to.range[1] {
                                for x in 0..to.range[2] {
                                    assert!(!panics, "on purpose");
                                    let element = data.at_mut(scope, [z, y, x]);
                                    *element = element.wrapping_mul(3).wrapping_add(number);
                                }
                            }
                        }
                    })
                });
                let effect = if panics { Effect::Panic } else { Effect::Combine(number) };
                (vec![self.use_of(&target, to, Access::ReadWrite)], effect, outcome(submitted))
            }
            11 | 12 => {
                let _ = write!(text, "host reads {}", describe(&target, &to));
                let uses = vec![self.use_of(&target, to, Access::Read)];
                match target.handle.host_access_range(Read, to.offset, to.range) {
                    Ok(host) => (uses, Effect::See(host.iter().copied().collect()), Outcome::Done),
                    Err(error) => (uses, Effect::Nothing, Outcome::Refused(error)),
                }
            }
            13 | 14 => {
                let _ = write!(text, "host writes {access:?} {}", describe(&target, &to));
                let uses = vec![self.use_of(&target, to, access)];
                let values: Vec<u32> = (0..to.size() as u32).map(|i| number * 7 + i).collect();
                let value = |at: Id<3>| values[(at[0] * to.range[1] + at[1]) * to.range[2] + at[2]];
                let written = match access {
                    Access::Discard => {
                        target.handle.host_access_range(Write.no_init(), to.offset, to.range).map(|mut host| {
                            // What is submitted meanwhile waits for the accessor.
                            std::thread::yield_now();
                            host.for_each_mut(|at, element| *element = value(at));
                        })
                    }
                    _ => target.handle.host_access_range(ReadWrite, to.offset, to.range).map(|mut host| {
                        host.for_each_mut(|at, element| *element = value(at));
                    }),
                };
                match written {
                    Ok(()) => (uses, Effect::Store(values), Outcome::Done),
                    Err(error) => (uses, Effect::Nothing, Outcome::Refused(error)),
                }
            }
            _ => {
                let _ = write!(text, "update_host of buffer {} from {}", target.buffer, target.first);
                let uses = vec![self.use_of(&target, target.whole(), Access::Read)];
                let submitted = queue.submit(|cg| {
                    cg.depends_on_all(&events);
                    cg.update_host(&target.handle)
                });
                (uses, Effect::Nothing, outcome(submitted))
            }
        };
        let is_refused = overlap(&uses);
        let operation = match kind {
            0..=5 => Some(Operation::Launch),
            6 | 7 => Some(Operation::Copy),
            8 => Some(Operation::Fill),
            15 => Some(Operation::Other),
            _ => None,
        };
        let device = (queue_number < N_DEVICES).then_some(queue_number);
        shared.steps.push(Step { text, uses, effect, device, operation, after, is_refused, outcome });
        drop(shared);
        // Else the thread that has just had the lock mostly gets it again.
        std::thread::yield_now();
    }
}

/// What fails in a program: in half of them nothing, else up to three operations.
pub(crate) fn faults(random: &mut Random) -> Vec<Fault> {
    const OPERATIONS: [Operation; 8] = [
        Operation::Launch,
        Operation::Launch,
        Operation::Copy,
        Operation::Copy,
        Operation::Copy,
        Operation::Fill,
        Operation::Allocate,
        Operation::Other,
    ];
    let n = [0, 0, 0, 1, 2, 3][random.below(6)];
    let mut fault = || {
        let operation = OPERATIONS[random.below(OPERATIONS.len())];
        // About as many as a device does of them in a program.
        let most = match operation {
            Operation::Launch | Operation::Allocate => 4,
            Operation::Copy => 12,
            _ => 2,
        };
        (random.below(N_DEVICES), operation, 1 + random.below(most) as u64)
    };
    (0..n).map(|_| fault()).collect()
}

/// The value of an element before the first step.
pub(crate) fn start(buffer: usize, i: usize) -> u32 {
    (buffer * 100_000 + i * 7 + 1) as u32
}

pub(crate) fn outcome(submitted: oxisycl::Result<Event>) -> Outcome {
    submitted.map_or_else(Outcome::Refused, Outcome::Submitted)
}

/// `target[i] = target[i] * 3 + number + sum of source[i % source.len()]`, with the sources as far as there are any.
pub(crate) fn kernel(
    queue: &Queue,
    events: &[Event],
    sources: &[(View, Part)],
    (target, to, access): (&View, Part, Access),
    number: u32,
    panics: bool,
) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        cg.depends_on_all(events);
        // A kernel has a fixed number of captures: what is missing is the first source once more, with no weight.
        let read: Vec<_> = sources.iter().map(|(view, part)| (accessor!(cg, view, Read, part), part.range)).collect();
        let read: [Option<_>; 3] = std::array::from_fn(|i| read.get(i).copied());
        let sum = move |item: Item<3>| {
            let linear = item.linear_id();
            read.iter().flatten().fold(number, |sum, (source, range)| {
                let i = linear % range.iter().product::<usize>();
                let at = [i / (range[1] * range[2]), i / range[2] % range[1], i % range[2]];
                sum.wrapping_add(source.view(item)[at])
            })
        };
        let check = move |item: Item<3>| assert!(!panics || item.linear_id() > 0, "on purpose");
        match access {
            Access::ReadWrite | Access::Read => {
                let data = accessor!(cg, target, ReadWrite, to);
                cg.parallel_for(to.range, move |item| {
                    check(item);
                    data.update(item, |x| x.wrapping_mul(3).wrapping_add(sum(item)));
                })
            }
            Access::Write => {
                let data = accessor!(cg, target, Write, to);
                cg.parallel_for(to.range, move |item| {
                    check(item);
                    data.set(item, sum(item));
                })
            }
            Access::Discard => {
                let data = accessor!(cg, target, Write.no_init(), to);
                cg.parallel_for(to.range, move |item| {
                    check(item);
                    data.set(item, sum(item));
                })
            }
        }
    })
}
