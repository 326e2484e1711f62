//! Linear graphs of kernels, made executable, whose parameters are set anew for each launch.
//!
//! Invariants:
//! - An executable holds the modules of its kernels, so that a handle which it compares is not another kernel's.
//! - The graph lives as long as its executable: the driver knows the nodes by it.
//! - The context is current in all functions here but `drop`.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use oxisycl_backend::Command;
use oxisycl_backend::lane::Driver as _;
use oxisycl_types::DeviceLaunch;
use smallvec::SmallVec;

use crate::context::Context;
use crate::error::DriverError;
use crate::execute::Launch;
use crate::lane::{Cuda, CudaTask};
use crate::module::CudaModule;
use crate::records::Slot;
use crate::sys::{
    KernelNodeParameters, RawContext, RawFunction, RawGraph, RawGraphExec, RawGraphNode, RawStream, code,
};

/// As many work-items of a multiprocessor make a wave.
const WAVE: u64 = 1024;

/// A linear graph of kernels, made executable.
pub(crate) struct Executable {
    context: Arc<Context>,
    graph: RawGraph,
    raw: RawGraphExec,
    nodes: SmallVec<[Node; 4]>,
    /// That of the function with which the graph was made, which its nodes keep.
    first: Arc<CudaModule>,
}

struct Node {
    raw: RawGraphNode,
    function: RawFunction,
    /// That of the function.
    module: Arc<CudaModule>,
}

/// A launch as a node of a graph has it.
pub(crate) struct NodeLaunch<'t> {
    module: &'t Arc<CudaModule>,
    function: RawFunction,
    grid: [u32; 3],
    block: [u32; 3],
    launch: DeviceLaunch,
    arguments: *mut c_void,
}

impl<'t> NodeLaunch<'t> {
    /// `None` for what is no launch of a small kernel.
    pub(crate) fn of(task: &'t CudaTask) -> Option<Self> {
        let (Command::Kernel(command), Some(Launch { function, shape }), None) =
            (&task.command, &task.launch, &task.print)
        else {
            return None;
        };
        let device = &task.queue.device;
        let grid = shape.grids.only()?;
        let blocks = shape.blocks(&grid);
        let n_items = |sizes: [u32; 3]| sizes.into_iter().map(u64::from).product::<u64>();
        if n_items(blocks).saturating_mul(n_items(shape.block)) > device.n_processors * WAVE {
            return None;
        }
        let record = task.record().map_or(0, Slot::address);
        let launch = DeviceLaunch { record, call_stack: device.context.stack.call_stack(), ..grid.launch };
        let kernel = Cuda::kernel_of(command)?;
        // An executable that was made before the stack's limit was raised may have room for the old one.
        if kernel.has_unbounded_stack {
            return None;
        }
        let module = &kernel.module;
        let arguments = command.arguments.as_ptr().cast_mut().cast();
        Some(Self { module, function: *function, grid: blocks, block: shape.block, launch, arguments })
    }

    /// Calls `call` with the parameters of a node.
    fn with_parameters<R>(&self, call: impl FnOnce(&KernelNodeParameters) -> R) -> R {
        let mut launch = self.launch;
        let mut parameters = [(&raw mut launch).cast::<c_void>(), self.arguments];
        call(&KernelNodeParameters {
            function: self.function,
            grid: self.grid,
            block: self.block,
            shared: 0,
            parameters: parameters.as_mut_ptr(),
            extra: ptr::null_mut(),
            kernel: ptr::null_mut(),
            context: RawContext::NULL,
        })
    }
}

/// What a driver lacks that knows no such graphs.
fn lacking(call: &'static str) -> DriverError {
    DriverError { call, code: code::NOT_FOUND }
}

impl Executable {
    /// A graph of so many nodes, each of which is `launch`.
    pub(crate) fn new(context: &Arc<Context>, launch: &NodeLaunch<'_>, n_nodes: usize) -> Result<Self, DriverError> {
        let driver = &context.driver;
        let mut made = Self {
            context: context.clone(),
            graph: RawGraph::NULL,
            raw: RawGraphExec::NULL,
            nodes: SmallVec::with_capacity(n_nodes),
            first: launch.module.clone(),
        };
        // SAFETY: the context is current.
        unsafe { driver.graph_create(&raw mut made.graph, 0) }.unwrap_or(Err(lacking("cuGraphCreate")))?;
        for _ in 0..n_nodes {
            let mut raw = RawGraphNode::NULL;
            let before = made.nodes.last().map(|node| node.raw);
            let dependencies = before.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the graph is the one made above, the node of it; the parameters are those of a launch of the function, which the
            // driver copies.
            let added = launch.with_parameters(|parameters| unsafe {
                let n_dependencies = usize::from(before.is_some());
                driver.graph_add_kernel_node(&raw mut raw, made.graph, dependencies, n_dependencies, parameters)
            });
            added.unwrap_or(Err(lacking("cuGraphAddKernelNode_v2")))?;
            made.nodes.push(Node { raw, function: launch.function, module: launch.module.clone() });
        }
        // SAFETY: as above.
        let executable = unsafe { driver.graph_instantiate(&raw mut made.raw, made.graph, 0) };
        executable.unwrap_or(Err(lacking("cuGraphInstantiateWithFlags")))?;
        Ok(made)
    }

    /// Sets the launch of a node, for the launches of the graph from now on.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, launch: &NodeLaunch<'_>) -> Result<(), DriverError> {
        let node = &mut self.nodes[index];
        let driver = &self.context.driver;
        // SAFETY: executable and node are alive, the context is current. The function is kept loaded by the task, and from then on by the
        // node. The driver copies the parameters: as many bytes as the function's image promises.
        let set = launch.with_parameters(|parameters| unsafe {
            driver.graph_exec_kernel_node_set_params(self.raw, node.raw, parameters)
        });
        set.unwrap_or(Err(lacking("cuGraphExecKernelNodeSetParams_v2")))?;
        if node.function != launch.function {
            node.function = launch.function;
            node.module = launch.module.clone();
        }
        Ok(())
    }

    pub(crate) fn launch(&self, stream: RawStream) -> Result<(), DriverError> {
        // SAFETY: executable and stream are alive, and their context is current. What the kernels use is valid by the promise of those that
        // enqueued them.
        unsafe { self.context.driver.graph_launch(self.raw, stream) }.unwrap_or(Err(lacking("cuGraphLaunch")))
    }
}

impl Executable {
    /// Whether its first kernel is that of the launch.
    pub(crate) fn begins_with(&self, launch: &NodeLaunch<'_>) -> bool {
        self.nodes[0].function == launch.function
    }

    /// Whether it has a kernel of the module.
    pub(crate) fn holds(&self, module: &Arc<CudaModule>) -> bool {
        Arc::ptr_eq(&self.first, module) || self.nodes.iter().any(|node| Arc::ptr_eq(&node.module, module))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        if self.context.is_foreign() {
            return;
        }
        if let Ok(_entered) = self.context.enter_anyway() {
            let driver = &self.context.driver;
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
