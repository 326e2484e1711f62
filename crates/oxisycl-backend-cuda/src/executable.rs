//! Linear graphs of one kernel's launches, made executable, whose parameters are set anew for each launch.
//!
//! Invariants:
//! - All nodes of an executable have one function, for ever: to give a node another one costs more than a graph saves.
//! - An executable holds the module of its function, so that a handle which is compared with it is not another kernel's.
//! - The graph lives as long as its executable: the driver knows the nodes by it.
//! - The context is current in all functions here but `drop`.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use oxisycl_types::DeviceLaunch;
use smallvec::SmallVec;

use crate::context::Context;
use crate::error::DriverError;
use crate::module::CudaModule;
use crate::sys::{
    KernelNodeParameters, RawContext, RawFunction, RawGraph, RawGraphExec, RawGraphNode, RawStream, code,
};

/// A linear graph of launches, made executable.
pub(crate) struct Executable {
    context: Arc<Context>,
    graph: RawGraph,
    raw: RawGraphExec,
    nodes: SmallVec<[RawGraphNode; 4]>,
    /// The module of the nodes' function.
    module: Arc<CudaModule>,
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

impl Executable {
    /// Makes a graph of `n_nodes` nodes, each of which is `launch`, and instantiates it.
    pub(crate) fn new(context: &Arc<Context>, launch: &NodeLaunch<'_>, n_nodes: usize) -> Result<Self, DriverError> {
        let driver = &context.driver;
        let mut made = Self {
            context: context.clone(),
            graph: RawGraph::NULL,
            raw: RawGraphExec::NULL,
            nodes: SmallVec::with_capacity(n_nodes),
            module: launch.module.clone(),
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

    /// Sets the launch of node `index` for later launches of the graph. It must be of the executable's function. Earlier launches are not
    /// affected.
    #[inline]
    pub(crate) fn set(&self, index: usize, launch: &NodeLaunch<'_>) -> Result<(), DriverError> {
        // SAFETY: executable and node are alive, the context is current. The function is kept loaded by `module`. The driver copies the
        // parameters: as many bytes as the function's image promises.
        let set = launch.with_parameters(|parameters| unsafe {
            self.context.driver.graph_exec_kernel_node_set_params(self.raw, self.nodes[index], parameters)
        });
        set.unwrap_or(Err(lacking("cuGraphExecKernelNodeSetParams_v2")))
    }

    pub(crate) fn launch(&self, stream: RawStream) -> Result<(), DriverError> {
        // SAFETY: executable and stream are alive, and their context is current. What the kernels use is valid by the promise of those that
        // issued them.
        unsafe { self.context.driver.graph_launch(self.raw, stream) }.unwrap_or(Err(lacking("cuGraphLaunch")))
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
