//! Graphs: linear chains of kernels that one call puts on a stream.
//!
//! Invariant: handles are numbers that are never used again. A call with a handle of a destroyed object is an error.
//! Chains are the only graphs that can be instantiated, and kernels their only nodes.

use std::collections::HashMap;
use std::ffi::{c_uint, c_ulonglong, c_void};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::device::sticky;
use crate::kernels::{Kernel, RAN_IN_GRAPHS, signature};
use crate::loads::Launched;
use crate::stream::Stream;
use crate::{Code, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, SUCCESS, begin_in_context, config, put};

/// A node's kernel, whose parameters were copied.
#[derive(Clone)]
struct Node {
    handle: usize,
    /// Nodes of the same graph.
    dependencies: Vec<usize>,
    context: usize,
    function: usize,
    kernel: Arc<Kernel>,
}

/// What `cuGraphInstantiateWithFlags` makes.
struct Exec {
    /// The graph it was made of, which may be destroyed.
    graph: usize,
    /// In the order in which they run.
    nodes: Vec<Node>,
    n_launches: u64,
    ended: Arc<Ended>,
}

/// Launches of one executable graph that have ended. They run one after the other, on whatever streams.
#[derive(Default)]
struct Ended {
    n_launches: Mutex<u64>,
    changed: Condvar,
}

impl Ended {
    /// Waits for the launches before the one with this number, unless the device is lost.
    fn wait_for_turn(&self, number: u64, context: usize) {
        let mut ended = self.n_launches.lock().unwrap();
        while *ended < number && sticky(context) == SUCCESS {
            ended = self.changed.wait_timeout(ended, Duration::from_millis(10)).unwrap().0;
        }
    }

    fn add(&self) {
        *self.n_launches.lock().unwrap() += 1;
        self.changed.notify_all();
    }
}

/// How a launch fails with some of its kernels on the stream.
struct Failure {
    skip: u64,
    n_kernels: u64,
    code: Code,
}

#[derive(Default)]
struct State {
    last_handle: usize,
    graphs: HashMap<usize, Vec<Node>>,
    execs: HashMap<usize, Exec>,
    failures: Vec<Failure>,
}

impl State {
    /// A number that is no address, and no handle of another object here.
    fn next_handle(&mut self) -> usize {
        self.last_handle += 1;
        self.last_handle
    }

    /// How the launch that begins fails, if it does.
    fn next_failure(&mut self) -> Option<Failure> {
        let failure = self.failures.first_mut()?;
        if failure.skip > 0 {
            failure.skip -= 1;
            return None;
        }
        Some(self.failures.remove(0))
    }
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

fn with_state<T>(use_state: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap();
    use_state(state.get_or_insert_default())
}

fn code_of(result: Result<(), Code>) -> Code {
    result.err().unwrap_or(SUCCESS)
}

/// Lets `cuGraphLaunch` fail once, after `skip` launches that succeed: only its first `n_kernels` kernels get on the stream.
#[unsafe(no_mangle)]
pub extern "C" fn fake_fail_within_graph(skip: u64, n_kernels: u64, code: Code) {
    with_state(|state| state.failures.push(Failure { skip, n_kernels, code }));
}

/// How many graphs there are.
#[unsafe(no_mangle)]
pub extern "C" fn fake_graphs() -> i64 {
    with_state(|state| state.graphs.len() as i64)
}

/// How many executable graphs there are.
#[unsafe(no_mangle)]
pub extern "C" fn fake_graph_execs() -> i64 {
    with_state(|state| state.execs.len() as i64)
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[repr(C)]
pub struct KernelNodeParams {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: usize,
    context: usize,
}

const _: () = assert!(size_of::<KernelNodeParams>() == 72);

impl KernelNodeParams {
    /// The kernel with copies of its parameters, and its context.
    ///
    /// # Safety
    /// There is one pointer for each parameter, as the driver API asks.
    unsafe fn read(&self, current: usize) -> Result<(Arc<Kernel>, usize), Code> {
        if !self.extra.is_null() || self.kernel != 0 {
            return Err(NOT_SUPPORTED);
        }
        // SAFETY: by the contract of this function.
        let kernel = unsafe { Kernel::new(self.function, self.grid, self.block, self.parameters) }?;
        Ok((Arc::new(kernel), if self.context == 0 { current } else { self.context }))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGraphCreate(graph: *mut usize, flags: c_uint) -> Code {
    begin_in_context!(cuGraphCreate);
    if flags != 0 {
        return INVALID_VALUE;
    }
    let made = with_state(|state| {
        let handle = state.next_handle();
        state.graphs.insert(handle, Vec::new());
        handle
    });
    unsafe { put(graph, made) };
    SUCCESS
}

/// Ends the graph and its nodes. What was instantiated from it stays.
#[unsafe(no_mangle)]
pub extern "system" fn cuGraphDestroy(graph: usize) -> Code {
    begin_in_context!(cuGraphDestroy);
    let removed = with_state(|state| state.graphs.remove(&graph));
    code_of(removed.map(drop).ok_or(INVALID_HANDLE))
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGraphAddKernelNode_v2(
    node: *mut usize,
    graph: usize,
    dependencies: *const usize,
    n_dependencies: usize,
    parameters: *const KernelNodeParams,
) -> Code {
    let current = begin_in_context!(cuGraphAddKernelNode_v2);
    let dependencies = match n_dependencies {
        0 => Vec::new(),
        _ if dependencies.is_null() => return INVALID_VALUE,
        n => unsafe { std::slice::from_raw_parts(dependencies, n) }.to_vec(),
    };
    let parameters = unsafe { &*parameters };
    code_of(with_state(|state| {
        let handle = state.next_handle();
        let nodes = state.graphs.get_mut(&graph).ok_or(INVALID_HANDLE)?;
        if !dependencies.iter().all(|dependency| nodes.iter().any(|node| node.handle == *dependency)) {
            return Err(INVALID_HANDLE);
        }
        let (kernel, context) = unsafe { parameters.read(current) }?;
        nodes.push(Node { handle, dependencies, context, function: parameters.function, kernel });
        unsafe { put(node, handle) };
        Ok(())
    }))
}

/// Refuses graphs that are no chain, and kernels of several contexts, as not supported.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, flags: c_ulonglong) -> Code {
    begin_in_context!(cuGraphInstantiateWithFlags);
    if flags != 0 {
        return NOT_SUPPORTED;
    }
    code_of(with_state(|state| {
        let nodes = state.graphs.get(&graph).ok_or(INVALID_HANDLE)?.clone();
        // Dependencies are older than their dependents. So the first node has none, and a chain is in the order of addition.
        let is_link = |pair: &[Node]| pair[1].dependencies == [pair[0].handle] && pair[1].context == pair[0].context;
        if !nodes.windows(2).all(is_link) {
            return Err(NOT_SUPPORTED);
        }
        nodes.iter().try_for_each(|node| signature(node.function).map(drop))?;
        let handle = state.next_handle();
        state.execs.insert(handle, Exec { graph, nodes, n_launches: 0, ended: Arc::default() });
        unsafe { put(exec, handle) };
        Ok(())
    }))
}

/// Changes what later launches run.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGraphExecKernelNodeSetParams_v2(
    exec: usize,
    node: usize,
    parameters: *const KernelNodeParams,
) -> Code {
    let current = begin_in_context!(cuGraphExecKernelNodeSetParams_v2);
    let parameters = unsafe { &*parameters };
    code_of(with_state(|state| {
        let exec = state.execs.get_mut(&exec).ok_or(INVALID_HANDLE)?;
        let is_alive = |nodes: &Vec<Node>| nodes.iter().any(|alive| alive.handle == node);
        if !state.graphs.get(&exec.graph).is_some_and(is_alive) {
            return Err(INVALID_HANDLE);
        }
        // A node that was added to the graph later is none of the executable graph.
        let node = exec.nodes.iter_mut().find(|known| known.handle == node).ok_or(INVALID_HANDLE)?;
        let (mut kernel, context) = unsafe { parameters.read(current) }?;
        if parameters.function == node.function && config(|config| config.reuses_functions) {
            // The node's code stays, and gets the parameters of the other kernel if that is another one.
            Arc::make_mut(&mut kernel).name = node.kernel.name;
        }
        if context != node.context {
            return Err(INVALID_VALUE);
        }
        if node.kernel.parameters.first() != kernel.parameters.first() {
            // For tests: the driver copies what differs to the device.
            crate::count("changed launch");
        }
        (node.function, node.kernel) = (parameters.function, kernel);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn cuGraphLaunch(exec: usize, stream: usize) -> Code {
    begin_in_context!(cuGraphLaunch);
    // SAFETY: as the driver API asks.
    let stream = unsafe { Stream::of(stream) };
    let kernels: Result<Vec<_>, Code> = with_state(|state| {
        let nodes = &state.execs.get(&exec).ok_or(INVALID_HANDLE)?.nodes;
        let kernel = |node: &Node| {
            signature(node.function)?;
            // A stream of this library works for its own context only.
            if node.context == stream.context { Ok(node.kernel.clone()) } else { Err(INVALID_HANDLE) }
        };
        nodes.iter().map(kernel).collect()
    });
    let mut kernels = match kernels {
        Ok(kernels) => kernels,
        Err(code) => return code,
    };
    // Without the lock, because only the end of other work makes room.
    stream.wait_for_room();
    let launched = Launched::new();
    code_of(with_state(|state| {
        let failure = state.next_failure();
        let exec = state.execs.get_mut(&exec).ok_or(INVALID_HANDLE)?;
        if let Some(failure) = &failure {
            kernels.truncate(failure.n_kernels as usize);
        }
        let (number, ended, context) = (exec.n_launches, exec.ended.clone(), stream.context);
        exec.n_launches += 1;
        stream.push(move || {
            let _launched = launched;
            ended.wait_for_turn(number, context);
            let run = |kernel: &Arc<Kernel>| kernel.run_and_count(&RAN_IN_GRAPHS);
            if let Some(code) = kernels.iter().map(run).find(|code| *code != SUCCESS) {
                // Later launches see that the device is lost.
                return code;
            }
            ended.add();
            SUCCESS
        });
        failure.map_or(Ok(()), |failure| Err(failure.code))
    }))
}

/// Ends the handle. What was launched goes on.
#[unsafe(no_mangle)]
pub extern "system" fn cuGraphExecDestroy(exec: usize) -> Code {
    begin_in_context!(cuGraphExecDestroy);
    let removed = with_state(|state| state.execs.remove(&exec));
    code_of(removed.map(drop).ok_or(INVALID_HANDLE))
}
