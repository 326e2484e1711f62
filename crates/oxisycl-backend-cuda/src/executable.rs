//! Linear graphs of one kernel's launches, made executable, whose parameters are set anew for each launch.
//!
//! Invariants:
//! - All nodes of an executable have one function, for ever: to give a node another one costs more than a graph saves.
//! - An executable holds the module of its function, so that a handle which is compared with it is not another kernel's.
//! - The graph lives as long as its executable: the driver knows the nodes by it.
//! - The context is current in all functions here but `drop`.
//! - A record of an executable is lent to one task at a time. The next launch may have it when the tasks of the last one are reported.
//!
//! For each launch the driver copies what has changed in the parameters of a node, from the first byte that differs to the last. That takes
//! 0.5 us a node where it is more than some words, and nearly nothing where it is one (`benches/LOG.md`). So a node always has the same
//! panic record, where that is possible.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use oxisycl_backend::BackendError;
use oxisycl_backend::lane::{Driver as _, Position};
use oxisycl_types::DeviceLaunch;
use smallvec::SmallVec;

use crate::device_state::DeviceState;
use crate::error::DriverError;
use crate::lane::{Cuda, CudaLane, CudaTask};
use crate::module::CudaModule;
use crate::records::Slot;
use crate::sys::{
    KernelNodeParameters, RawContext, RawFunction, RawGraph, RawGraphExec, RawGraphNode, RawStream, code,
};

/// A linear graph of launches, made executable.
pub(crate) struct Executable {
    device: Arc<DeviceState>,
    graph: RawGraph,
    raw: RawGraphExec,
    nodes: SmallVec<[RawGraphNode; 4]>,
    /// The module of the nodes' function.
    module: Arc<CudaModule>,
    /// The nodes' panic records; none if the kernel has none.
    records: SmallVec<[Slot; 16]>,
    /// The last task of the last launch.
    last: Position,
}

/// A launch as a node of a graph.
pub(crate) struct NodeLaunch<'t> {
    pub(crate) module: &'t Arc<CudaModule>,
    /// The kernel.
    pub(crate) function: RawFunction,
    /// In blocks.
    pub(crate) grid: [u32; 3],
    /// In work-items.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic local memory of a block.
    pub(crate) shared: u32,
    pub(crate) launch: DeviceLaunch,
    /// The bytes of the kernel's captures.
    pub(crate) arguments: *mut c_void,
}

impl NodeLaunch<'_> {
    /// Calls `call` with the parameters of a node.
    fn with_parameters<R>(&self, call: impl FnOnce(&KernelNodeParameters) -> R) -> R {
        let mut launch = self.launch;
        let mut parameters = [(&raw mut launch).cast::<c_void>(), self.arguments];
        call(&KernelNodeParameters {
            function: self.function,
            grid: self.grid,
            block: self.block,
            shared: self.shared,
            parameters: parameters.as_mut_ptr(),
            extra: ptr::null_mut(),
            kernel: ptr::null_mut(),
            context: RawContext::NULL,
        })
    }
}

/// The error for a function that older drivers lack.
fn lacking(call: &'static str) -> DriverError {
    DriverError { call, code: code::NOT_FOUND }
}

/// Takes `n` records from the device's pool, at most 64.
fn take_slots(device: &DeviceState, n: usize) -> Result<SmallVec<[Slot; 16]>, BackendError> {
    let mut records = Vec::new();
    device.lanes.records.take(&mut records, Cuda::FIRST_RECORDS, |n| Cuda::records(device, n))?;
    let rest = records.split_off(n.min(records.len()));
    device.lanes.records.give_back(&rest);
    Ok(records.into_iter().collect())
}

impl Executable {
    /// Makes a graph of `n_nodes` nodes, each of which is `launch`, and instantiates it.
    pub(crate) fn new(device: &Arc<DeviceState>, launch: &NodeLaunch<'_>, n_nodes: usize) -> Result<Self, DriverError> {
        let driver = &device.context.driver;
        // Without records of its own a launch only takes longer.
        let records = if launch.launch.record == 0 { None } else { take_slots(device, n_nodes).ok() };
        let mut made = Self {
            device: device.clone(),
            graph: RawGraph::NULL,
            raw: RawGraphExec::NULL,
            nodes: SmallVec::with_capacity(n_nodes),
            module: launch.module.clone(),
            records: records.unwrap_or_default(),
            last: Position::default(),
        };
        // SAFETY: the context is current.
        unsafe { driver.graph_create(&raw mut made.graph, 0) }.unwrap_or(Err(lacking("cuGraphCreate")))?;
        for _ in 0..n_nodes {
            let mut raw = RawGraphNode::NULL;
            let dependencies = made.nodes.last().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the graph is the one made above, and the node is of this graph. The parameters are those of a launch of the function,
            // and the driver copies them.
            let added = launch.with_parameters(|parameters| unsafe {
                let n_dependencies = usize::from(!dependencies.is_null());
                driver.graph_add_kernel_node(&raw mut raw, made.graph, dependencies, n_dependencies, parameters)
            });
            added.unwrap_or(Err(lacking("cuGraphAddKernelNode_v2")))?;
            made.nodes.push(raw);
        }
        // SAFETY: as above.
        let executable = unsafe { driver.graph_instantiate(&raw mut made.raw, made.graph, 0) };
        executable.unwrap_or(Err(lacking("cuGraphInstantiateWithFlags")))?;
        Ok(made)
    }

    /// The last task of the last launch, or the position before the first task.
    pub(crate) fn last(&self) -> Position {
        self.last
    }

    /// Lends the nodes' records to the tasks that are about to be launched, as many as there are nodes. If tasks of the last launch are not
    /// reported yet, they keep their own ones.
    #[inline]
    pub(crate) fn lend_records<'t>(&mut self, lane: &CudaLane, tasks: impl Iterator<Item = &'t CudaTask>) {
        let is_free = self.last == Position::default() || lane.is_reported(self.last);
        let mut records = self.records.iter().filter(|_| is_free);
        for task in tasks {
            self.last = task.place().position;
            records.next().into_iter().for_each(|record| task.issued.lend(*record));
        }
    }

    /// Sets the launch of node `index` for later launches of the graph. It must be of the executable's function. Earlier launches are not
    /// affected.
    #[inline]
    pub(crate) fn set(&self, index: usize, launch: &NodeLaunch<'_>) -> Result<(), DriverError> {
        // SAFETY: executable and node are alive, the context is current. The function is kept loaded by `module`. The driver copies the
        // parameters: as many bytes as the function's image promises.
        let set = launch.with_parameters(|parameters| unsafe {
            self.device.context.driver.graph_exec_kernel_node_set_params(self.raw, self.nodes[index], parameters)
        });
        set.unwrap_or(Err(lacking("cuGraphExecKernelNodeSetParams_v2")))
    }

    pub(crate) fn launch(&self, stream: RawStream) -> Result<(), DriverError> {
        // SAFETY: executable and stream are alive, and their context is current. What the kernels use is valid by the promise of those that
        // issued them.
        unsafe { self.device.context.driver.graph_launch(self.raw, stream) }.unwrap_or(Err(lacking("cuGraphLaunch")))
    }
}

impl Executable {
    /// Whether the kernel is one of the module.
    pub(crate) fn holds(&self, module: &Arc<CudaModule>) -> bool {
        Arc::ptr_eq(&self.module, module)
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let context = &self.device.context;
        if context.is_foreign() {
            return;
        }
        // On a lost device, a kernel may still write.
        if !context.is_lost() {
            self.device.lanes.records.give_back(&self.records);
        }
        if let Ok(_entered) = context.enter_anyway() {
            let driver = &context.driver;
            if self.raw != RawGraphExec::NULL {
                // SAFETY: made by `new`, and not used after this. What runs of it goes on.
                let _ = unsafe { driver.graph_exec_destroy(self.raw) };
            }
            if self.graph != RawGraph::NULL {
                // SAFETY: as above.
                let _ = unsafe { driver.graph_destroy(self.graph) };
            }
        }
    }
}
