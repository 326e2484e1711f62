//! Launches of kernels as graphs, whose parameters are set anew for each launch.
//!
//! A graph has a fixed number of kernels of one function. Turning nodes off makes its launch several times as long, and so does another
//! function in a node. So launches are split into runs of one function, and those into graphs of 16, 12, 8, 6, 4, 3, 2 and 1.
//!
//! Invariant: the context is current in all functions here but [`release`](Launcher::release).

use std::sync::Arc;

use oxisycl_backend::Command;
use oxisycl_backend::lane::Driver as _;
use oxisycl_types::DeviceLaunch;

use crate::device_state::DeviceState;
use crate::emitter::Emitter;
use crate::error::DriverError;
use crate::executable::{Executable, NodeLaunch};
use crate::execute::{self, GraphFitness, Launch};
use crate::families::{Families, N_SIZES};
use crate::lane::{Cuda, CudaLane, CudaTask, record_of};
use crate::launch_shape::LaunchShape;
use crate::module::{CudaKernel, CudaModule};
use crate::records::Slot;
use crate::sys::{RawEvent, RawFunction};

/// The most kernels of a graph.
pub(crate) const MAX_GRAPH_KERNELS: usize = 16;
/// After this many launches, a kernel gets an executable of one node, which takes 10 us to make.
const SINGLE_AFTER: u32 = 16;
/// After this many launches, a kernel gets larger executables. The largest takes 51 us to make.
const SEVERAL_AFTER: u32 = 32;

/// The most executables of one function and size, for graphs of several kernels and for smaller ones.
const MAX_TWINS: [usize; 2] = [8, 2];
/// The least number of kernels for which many executables are worth their memory.
const SEVERAL_KERNELS: usize = 4;

/// How many work-items of a multiprocessor make a wave.
const WAVE: u64 = 1024;

/// The sizes of the graphs, in kernels.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Sizes {
    /// For kernels that are launched often.
    #[default]
    Many,
    /// Small sizes for tests, which every kernel has from the first launch.
    ForTests,
}

impl Sizes {
    fn list(self) -> &'static [usize] {
        const MANY: [usize; N_SIZES] = [1, 2, 3, 4, 6, 8, 12, MAX_GRAPH_KERNELS];
        match self {
            Self::Many => &MANY,
            Self::ForTests => &[1, 3],
        }
    }
}

/// The graphs of one stream.
#[derive(Default)]
pub(crate) struct Launcher {
    pub(crate) sizes: Sizes,
    families: Families,
    /// The tasks that were launched and are not recorded in the ring yet.
    pub(crate) unrecorded: Option<Launched>,
    /// The error with which the driver refused to make a graph.
    refusal: Option<Refusal>,
}

/// Held tasks that were launched.
pub(crate) struct Launched {
    pub(crate) n_tasks: usize,
    /// An event that was recorded behind the tasks.
    pub(crate) fence: Option<RawEvent>,
    /// [`Batch::epoch`](crate::batch::Batch) at the launch.
    pub(crate) epoch: u64,
}

/// The driver's refusal to make graphs, until it is reported.
enum Refusal {
    New(DriverError),
    Reported,
}

impl Launcher {
    /// Launches tasks in their order, all of which are kernels. An error becomes the failure of its task.
    pub(crate) fn launch(&mut self, lane: &CudaLane, tasks: &[&CudaTask]) {
        let mut rest = tasks;
        while let Some(first) = rest.first() {
            let function = function_of(first);
            let n_alike = rest.iter().position(|task| function_of(task) != function).unwrap_or(rest.len());
            let (run, after) = rest.split_at(n_alike);
            self.launch_run(lane, run);
            rest = after;
        }
    }

    /// Launches tasks of one function.
    fn launch_run(&mut self, lane: &CudaLane, tasks: &[&CudaTask]) {
        let Some(family) = self.family_of(tasks) else {
            return tasks.iter().for_each(|task| launch_alone(lane, task));
        };
        let mut rest = tasks;
        while !rest.is_empty() {
            let size = self.size_for(family, rest.len());
            let (together, after) = rest.split_at(size.map_or(1, |size| self.sizes.list()[size]));
            if !size.is_some_and(|size| self.launch_together(lane, (family, size), together)) {
                together.iter().for_each(|task| launch_alone(lane, task));
            }
            rest = after;
        }
    }

    /// Counts launches of one function. Returns its family; `None` if the driver makes no graphs of it.
    fn family_of(&mut self, tasks: &[&CudaTask]) -> Option<usize> {
        if self.refusal.is_some() {
            return None;
        }
        self.families.count(function_of(tasks.first()?)?, tasks.len())
    }

    /// The index of the largest graph size that is at most `n_launches`. `None` if the kernel was launched too rarely.
    fn size_for(&self, family: usize, n_launches: usize) -> Option<usize> {
        let most = match (self.sizes, self.families.of[family].n_launches) {
            (Sizes::ForTests, _) | (Sizes::Many, SEVERAL_AFTER..) => n_launches,
            (Sizes::Many, SINGLE_AFTER..) => 1,
            _ => return None,
        };
        self.sizes.list().iter().rposition(|size| *size <= most)
    }

    /// Sets the launches of `tasks` in an executable of their family and size, and launches it. Returns false if they cannot be set.
    fn launch_together(&mut self, lane: &CudaLane, (family, size): (usize, usize), tasks: &[&CudaTask]) -> bool {
        let Some(first) = node_launch(tasks[0]) else { return false };
        let Some(executable) = self.executable(lane, (family, size), &first) else { return false };
        executable.lend_records(lane, tasks.iter().copied());
        let mut launches = tasks.iter().map(|task| node_launch(task)).enumerate();
        if !launches.all(|(index, launch)| launch.is_some_and(|launch| executable.set(index, &launch).is_ok())) {
            return false;
        }
        if let Err(error) = executable.launch(lane.stream.raw) {
            // It is not known how many of them were begun.
            tasks.iter().for_each(|task| task.set_error(error));
        }
        true
    }

    /// Launches a frequent kernel as a graph. Returns false if the driver has no part of it.
    pub(crate) fn launch_one(&mut self, lane: &CudaLane, task: &CudaTask) -> bool {
        if self.refusal.is_some() {
            return false;
        }
        let Some(first) = node_launch(task) else { return false };
        let Some(family) = self.families.count(first.function, 1) else { return false };
        let Some(size) = self.size_for(family, 1) else { return false };
        let Some(executable) = self.executable(lane, (family, size), &first) else { return false };
        executable.lend_records(lane, std::iter::once(task));
        let launch = NodeLaunch { launch: DeviceLaunch { record: record_address(task), ..first.launch }, ..first };
        executable.set(0, &launch).is_ok() && executable.launch(lane.stream.raw).is_ok()
    }

    /// An executable of a family and size, the first one whose last launch was reported. It is made if there is none. If there are many
    /// already, it is the one that was launched first. `None` if the driver refuses to make the first one: from then on no kernel is
    /// launched as a graph.
    #[inline]
    fn executable(
        &mut self,
        lane: &CudaLane,
        (family, size): (usize, usize),
        launch: &NodeLaunch<'_>,
    ) -> Option<&mut Executable> {
        let n_kernels = self.sizes.list()[size];
        let max_twins = MAX_TWINS[usize::from(n_kernels < SEVERAL_KERNELS)];
        let twins = &mut self.families.of[family].executables[size];
        let mut chosen = twins.iter().position(|twin| lane.is_reported(twin.last()));
        if chosen.is_none() && twins.len() < max_twins {
            match Executable::new(&lane.device, launch, n_kernels) {
                Ok(executable) => {
                    twins.push(executable);
                    chosen = Some(twins.len() - 1);
                }
                Err(error) if twins.is_empty() => self.refusal = Some(Refusal::New(error)),
                Err(_) => {}
            }
        }
        let oldest = || (0..twins.len()).min_by_key(|index| twins[*index].last());
        let index = chosen.or_else(oldest)?;
        twins.get_mut(index)
    }

    /// The error with which the driver refused to make a graph; returned once.
    pub(crate) fn take_refusal(&mut self) -> Option<DriverError> {
        let refusal = self.refusal.as_mut()?;
        match std::mem::replace(refusal, Refusal::Reported) {
            Refusal::New(error) => Some(error),
            Refusal::Reported => None,
        }
    }

    /// Removes and returns all executables of a module that is about to be unloaded.
    pub(crate) fn release(&mut self, module: &Arc<CudaModule>) -> Vec<Executable> {
        self.families.release(module)
    }

    /// Releases all executables.
    pub(crate) fn clear(&mut self) {
        self.families = Families::default();
    }
}

/// Whether a graph can launch the kernel with so many threads, `None` if it needs several grids.
#[inline]
pub(crate) fn fitness(device: &DeviceState, kernel: &CudaKernel, n_threads: Option<u64>) -> GraphFitness {
    match n_threads {
        // An executable that was made before the stack's limit was raised may have room for the old one. A copy of arguments stands before
        // its launch.
        Some(n_threads) if !kernel.entry.has_unbounded_stack && !kernel.by_address && !kernel.entry.may_print => {
            if n_threads <= device.n_processors * WAVE {
                GraphFitness::Small
            } else {
                GraphFitness::Large
            }
        }
        _ => GraphFitness::Unfit,
    }
}

/// The launch of a task as a node of a graph. `None` if the task is no launch, or one that a graph node cannot be.
pub(crate) fn node_launch(task: &CudaTask) -> Option<NodeLaunch<'_>> {
    let (Command::Kernel(command), Some(Launch { function, fitness })) = (&task.command, &task.launch) else {
        return None;
    };
    if *fitness == GraphFitness::Unfit {
        return None;
    }
    let kernel = Cuda::kernel_of(command)?;
    let shape = LaunchShape::of(kernel, command)?;
    let grid = shape.grid(shape.grids.only()?);
    let blocks = shape.blocks(&grid);
    let record = record_address(task);
    let call_stack = task.queue.device.context.stack.call_stack();
    let launch = DeviceLaunch { record, call_stack, ..grid.launch };
    let module = &kernel.module;
    let arguments = command.arguments.as_ptr().cast_mut().cast();
    Some(NodeLaunch {
        module,
        function: *function,
        grid: blocks,
        block: shape.block,
        shared: shape.shared(),
        launch,
        arguments,
    })
}

fn record_address(task: &CudaTask) -> u64 {
    record_of(task).map_or(0, Slot::address)
}

fn function_of(task: &CudaTask) -> Option<RawFunction> {
    task.launch.as_ref().map(|launch| launch.function)
}

fn launch_alone(lane: &CudaLane, task: &CudaTask) {
    let mut emitter = Emitter::new(&lane.device.context.driver, lane.stream.raw);
    if let Err(error) = execute::emit(task, &mut emitter) {
        task.set_error(error);
    }
}
