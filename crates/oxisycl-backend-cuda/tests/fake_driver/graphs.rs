//! What the fake driver's graphs do. The backend's tests rely on it.

use std::ffi::{c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::fake::Fake;

const INVALID_VALUE: i32 = 1;
const INVALID_HANDLE: i32 = 400;
const NOT_READY: i32 = 600;
const NOT_SUPPORTED: i32 = 801;

/// A handle of the driver.
type Handle = *mut c_void;

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[repr(C)]
struct NodeParams {
    function: Handle,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
    kernel: Handle,
    context: Handle,
}

/// The first parameter of a kernel, for one work-item.
const ONE_ITEM: [u64; 13] = [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1 | 1 << 32, 1];

/// What one kernel runs with: a pointer, and the two factors of `affine`.
#[derive(Clone, Copy)]
struct Arguments {
    launch: [u64; 13],
    own: [u64; 2],
}

/// A function of the driver.
macro_rules! driver {
    ($on:expr, $name:ident($($argument:expr => $kind:ty),*)) => {{
        type Call = unsafe extern "system" fn($($kind),*) -> i32;
        // SAFETY: the symbol has this type in the library's sources.
        let call = unsafe { $on.fake.call::<Call>(stringify!($name)) };
        let call = call.expect(stringify!($name));
        // SAFETY: the tests pass what the driver API asks for.
        unsafe { call($($argument),*) }
    }};
}

/// A device whose context is current, and its functions.
struct Api {
    fake: Fake,
    module: Handle,
}

impl Api {
    fn new() -> Self {
        let mut api = Self { fake: Fake::new(), module: null_mut() };
        let mut context = null_mut();
        assert_eq!(driver!(api, cuDevicePrimaryCtxRetain(&raw mut context => *mut Handle, 0 => c_int)), 0);
        assert_eq!(driver!(api, cuCtxPushCurrent_v2(context => Handle)), 0);
        api.module = api.load();
        api
    }

    fn load(&self) -> Handle {
        let text = c".version 7.0\n.entry affine()\n.entry gate()\n.entry empty()\n";
        let mut module = null_mut();
        let code = driver!(self, cuModuleLoadDataEx(&raw mut module => *mut Handle, text.as_ptr().cast() => *const c_void,
            0 => c_uint, null_mut() => *mut c_int, null_mut() => *mut *mut c_void));
        assert_eq!(code, 0);
        module
    }

    fn function(&self, name: &str) -> Handle {
        let name = std::ffi::CString::new(name).expect("no NUL byte");
        let mut function = null_mut();
        let code = driver!(self, cuModuleGetFunction(&raw mut function => *mut Handle, self.module => Handle,
            name.as_ptr() => *const std::ffi::c_char));
        assert_eq!(code, 0);
        function
    }

    fn stream(&self) -> Handle {
        let mut stream = null_mut();
        let code = driver!(self, cuStreamCreateWithPriority(&raw mut stream => *mut Handle, 1 => c_uint, 0 => c_int));
        assert_eq!(code, 0);
        stream
    }

    /// A number that kernels can change, and that begins as zero.
    fn number(&self) -> &'static AtomicU32 {
        let mut pointer = null_mut::<c_void>();
        let code = driver!(self, cuMemHostAlloc(&raw mut pointer => *mut *mut c_void, 4 => usize, 0 => c_uint));
        assert_eq!(code, 0);
        // SAFETY: just allocated, and never freed.
        let number = unsafe { &*pointer.cast::<AtomicU32>() };
        number.store(0, Ordering::Release);
        number
    }

    fn launch_directly(&self, function: Handle, arguments: &Arguments, stream: Handle) -> i32 {
        let mut parameters = pointers(arguments);
        driver!(self, cuLaunchKernel(function => Handle, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint, 1 => c_uint,
            1 => c_uint, 0 => c_uint, stream => Handle, parameters.as_mut_ptr() => *mut *mut c_void,
            null_mut() => *mut *mut c_void))
    }

    fn synchronize(&self, stream: Handle) -> i32 {
        driver!(self, cuStreamSynchronize(stream => Handle))
    }

    fn is_busy(&self, stream: Handle) -> bool {
        driver!(self, cuStreamQuery(stream => Handle)) == NOT_READY
    }

    fn graph(&self) -> Handle {
        let mut graph = null_mut();
        assert_eq!(driver!(self, cuGraphCreate(&raw mut graph => *mut Handle, 0 => c_uint)), 0);
        graph
    }

    fn destroy_graph(&self, graph: Handle) -> i32 {
        driver!(self, cuGraphDestroy(graph => Handle))
    }

    fn add(&self, graph: Handle, after: &[Handle], params: &NodeParams) -> Result<Handle, i32> {
        let mut node = null_mut();
        let code = driver!(self, cuGraphAddKernelNode_v2(&raw mut node => *mut Handle, graph => Handle,
            after.as_ptr() => *const Handle, after.len() => usize, params => *const NodeParams));
        if code == 0 { Ok(node) } else { Err(code) }
    }

    fn instantiate(&self, graph: Handle) -> Result<Handle, i32> {
        let mut exec = null_mut();
        let code = driver!(self, cuGraphInstantiateWithFlags(&raw mut exec => *mut Handle, graph => Handle, 0 => u64));
        if code == 0 { Ok(exec) } else { Err(code) }
    }

    fn set(&self, exec: Handle, node: Handle, params: &NodeParams) -> i32 {
        driver!(self, cuGraphExecKernelNodeSetParams_v2(exec => Handle, node => Handle, params => *const NodeParams))
    }

    fn launch(&self, exec: Handle, stream: Handle) -> i32 {
        driver!(self, cuGraphLaunch(exec => Handle, stream => Handle))
    }

    fn destroy_exec(&self, exec: Handle) -> i32 {
        driver!(self, cuGraphExecDestroy(exec => Handle))
    }

    /// A graph of launches of one function, one after the other, and its nodes.
    fn chain(&self, function: Handle, launches: &[Arguments]) -> (Handle, Vec<Handle>) {
        let (graph, mut nodes) = (self.graph(), Vec::<Handle>::new());
        for arguments in launches {
            let mut parameters = pointers(arguments);
            let after = nodes.last().copied();
            nodes.push(self.add(graph, after.as_slice(), &params(function, &mut parameters)).expect("a node"));
        }
        (graph, nodes)
    }
}

fn pointers(arguments: &Arguments) -> [*mut c_void; 2] {
    [(&raw const arguments.launch).cast_mut().cast(), (&raw const arguments.own).cast_mut().cast()]
}

fn params(function: Handle, parameters: &mut [*mut c_void; 2]) -> NodeParams {
    NodeParams {
        function,
        grid: [1; 3],
        block: [1; 3],
        shared: 0,
        parameters: parameters.as_mut_ptr(),
        extra: null_mut(),
        kernel: null_mut(),
        context: null_mut(),
    }
}

/// Arguments of `affine`: the number becomes itself times `factor` plus `summand`.
fn affine(number: &AtomicU32, factor: u64, summand: u64) -> Arguments {
    Arguments { launch: ONE_ITEM, own: [number.as_ptr() as u64, factor | summand << 32] }
}

/// Arguments of `gate`: the kernel runs until the byte is true.
fn gate(byte: &AtomicBool) -> Arguments {
    Arguments { launch: ONE_ITEM, own: [byte.as_ptr() as u64, 0] }
}

#[test]
fn the_kernels_of_a_graph_run_in_the_order_of_its_chain() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let (graph, _) = api.chain(function, &[affine(number, 2, 3), affine(number, 5, 1), affine(number, 1, 4)]);
    let exec = api.instantiate(graph).expect("a chain");
    assert_eq!(api.destroy_graph(graph), 0);
    assert_eq!(api.launch_directly(function, &affine(number, 0, 1), stream), 0);
    assert_eq!((api.launch(exec, stream), api.synchronize(stream)), (0, 0));
    assert_eq!(number.load(Ordering::Acquire), (2 + 3) * 5 + 1 + 4);
    assert_eq!(api.fake.ran(), [1, 3]);
    assert_eq!((api.fake.count("cuGraphLaunch"), api.fake.count("cuLaunchKernel")), (1, 1));
    assert_eq!(api.fake.held_graphs(), [0, 1]);
    assert_eq!(api.destroy_exec(exec), 0);
    assert_eq!(api.fake.held_graphs(), [0, 0]);
}

#[test]
fn parameters_are_copied_when_they_are_set_and_count_for_later_launches_only() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let (graph, nodes) = api.chain(function, &[affine(number, 10, 1)]);
    let exec = api.instantiate(graph).expect("a chain");
    api.fake.set("paused", 1);
    assert_eq!(api.launch(exec, stream), 0);
    for summand in [2, 3] {
        let mut arguments = affine(number, 10, summand);
        assert_eq!(api.set(exec, nodes[0], &params(function, &mut pointers(&arguments))), 0);
        // What the driver must not read any more.
        arguments.own[1] = 7 << 32;
        std::hint::black_box(&mut arguments);
        assert_eq!(api.launch(exec, stream), 0);
    }
    assert_eq!((api.destroy_exec(exec), api.destroy_graph(graph)), (0, 0));
    assert_eq!((api.is_busy(stream), api.fake.ran()), (true, [0, 0]));
    api.fake.set("paused", 0);
    assert_eq!(api.synchronize(stream), 0);
    assert_eq!(number.load(Ordering::Acquire), 123);
}

#[test]
fn launches_of_one_executable_graph_wait_for_each_other_on_whatever_streams() {
    static GATE: AtomicBool = AtomicBool::new(false);
    let api = Api::new();
    let (first, second, number) = (api.stream(), api.stream(), api.number());
    let (graph, nodes) = api.chain(api.function("gate"), &[gate(&GATE)]);
    let exec = api.instantiate(graph).expect("a chain");
    assert_eq!(api.launch(exec, first), 0);
    let arguments = affine(number, 1, 5);
    assert_eq!(api.set(exec, nodes[0], &params(api.function("affine"), &mut pointers(&arguments))), 0);
    assert_eq!(api.launch(exec, second), 0);
    // Another executable graph does not wait.
    let (other, third) = (api.instantiate(api.chain(api.function("affine"), &[affine(number, 1, 1)]).0), api.stream());
    assert_eq!((api.launch(other.expect("a chain"), third), api.synchronize(third)), (0, 0));
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((number.load(Ordering::Acquire), api.is_busy(second)), (1, true));
    GATE.store(true, Ordering::Release);
    assert_eq!((api.synchronize(second), number.load(Ordering::Acquire)), (0, 6));
}

#[test]
fn handles_that_were_destroyed_or_belong_to_another_graph_are_refused() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let arguments = affine(number, 1, 1);
    let mut parameters = pointers(&arguments);
    let params = params(function, &mut parameters);
    let (graph, nodes) = api.chain(function, &[arguments]);
    let (other_graph, other_nodes) = api.chain(function, &[arguments]);
    let exec = api.instantiate(graph).expect("a chain");
    let late = api.add(graph, &nodes, &params).expect("a node");
    assert_eq!(api.set(exec, nodes[0], &params), 0);
    for node in [other_nodes[0], late, graph, exec, null_mut()] {
        assert_eq!(api.set(exec, node, &params), INVALID_HANDLE);
    }
    assert_eq!(api.add(graph, &other_nodes, &params), Err(INVALID_HANDLE));
    assert_eq!(api.add(exec, &[], &params), Err(INVALID_HANDLE));
    assert_eq!(api.instantiate(exec), Err(INVALID_HANDLE));
    assert_eq!(api.launch(graph, stream), INVALID_HANDLE);
    assert_eq!((api.destroy_graph(exec), api.destroy_exec(graph)), (INVALID_HANDLE, INVALID_HANDLE));
    assert_eq!((api.destroy_graph(graph), api.destroy_graph(graph)), (0, INVALID_HANDLE));
    assert_eq!(api.instantiate(graph), Err(INVALID_HANDLE));
    assert_eq!(api.set(exec, nodes[0], &params), INVALID_HANDLE);
    assert_eq!((api.destroy_exec(exec), api.destroy_exec(exec)), (0, INVALID_HANDLE));
    assert_eq!(api.launch(exec, stream), INVALID_HANDLE);
    assert_eq!(api.set(exec, other_nodes[0], &params), INVALID_HANDLE);
    assert_eq!((api.destroy_graph(other_graph), api.synchronize(stream), api.fake.ran()), (0, 0, [0, 0]));
}

#[test]
fn a_stream_of_another_device_is_refused() {
    let api = Api::new();
    api.fake.set("devices", 2);
    let (graph, _) = api.chain(api.function("affine"), &[affine(api.number(), 1, 1)]);
    let exec = api.instantiate(graph).expect("a chain");
    let mut context = null_mut();
    assert_eq!(driver!(api, cuDevicePrimaryCtxRetain(&raw mut context => *mut Handle, 1 => c_int)), 0);
    assert_eq!(driver!(api, cuCtxPushCurrent_v2(context => Handle)), 0);
    let stream = api.stream();
    assert_eq!((api.launch(exec, stream), api.synchronize(stream), api.fake.ran()), (INVALID_HANDLE, 0, [0, 0]));
}

#[test]
fn graphs_that_are_no_chain_are_refused() {
    let api = Api::new();
    let arguments = affine(api.number(), 1, 1);
    let mut parameters = pointers(&arguments);
    let params = params(api.function("affine"), &mut parameters);
    // Two beginnings, and two nodes after one.
    let (graph, _) = api.chain(params.function, &[arguments, arguments]);
    api.add(graph, &[], &params).expect("a node");
    assert_eq!(api.instantiate(graph), Err(NOT_SUPPORTED));
    let (graph, forked) = api.chain(params.function, &[arguments, arguments]);
    api.add(graph, &forked[..1], &params).expect("a node");
    assert_eq!(api.instantiate(graph), Err(NOT_SUPPORTED));
    assert_eq!(driver!(api, cuGraphCreate(&mut null_mut() => *mut Handle, 1 => c_uint)), INVALID_VALUE);
}

#[test]
fn launches_that_the_driver_refuses_are_refused_in_nodes_and_leave_them_as_they_were() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let (graph, nodes) = api.chain(function, &[affine(number, 1, 1)]);
    let exec = api.instantiate(graph).expect("a chain");
    let wrong = affine(number, 1, 100);
    let refused = |change: &dyn Fn(&mut NodeParams)| {
        let mut parameters = pointers(&wrong);
        let mut params = params(function, &mut parameters);
        change(&mut params);
        let code = api.set(exec, nodes[0], &params);
        assert_eq!(api.add(graph, &nodes, &params).err().unwrap_or(0), code, "the two calls differ");
        code
    };
    assert_eq!(refused(&|params| params.block = [1025, 1, 1]), INVALID_VALUE);
    assert_eq!(refused(&|params| params.grid[1] = 0), INVALID_VALUE);
    assert_eq!(refused(&|params| params.grid[2] = 65_536), INVALID_VALUE);
    assert_eq!(refused(&|params| params.parameters = null_mut()), INVALID_VALUE);
    assert_eq!(refused(&|params| params.extra = params.parameters), NOT_SUPPORTED);
    assert_eq!(refused(&|params| params.function = null_mut()), INVALID_HANDLE);
    let other_context = 2 as Handle;
    let mut parameters = pointers(&wrong);
    let in_other_context = NodeParams { context: other_context, ..params(function, &mut parameters) };
    assert_eq!(api.set(exec, nodes[0], &in_other_context), INVALID_VALUE);
    assert_eq!((api.launch(exec, stream), api.synchronize(stream)), (0, 0));
    assert_eq!(number.load(Ordering::Acquire), 1);
}

#[test]
fn functions_of_unloaded_modules_are_refused() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let arguments = affine(number, 1, 1);
    let mut parameters = pointers(&arguments);
    let (graph, nodes) = api.chain(function, &[arguments]);
    let exec = api.instantiate(graph).expect("a chain");
    let (other_module, unloaded) = (api.load(), api.module);
    let api = Api { module: other_module, ..api };
    // The same kernel of another module stays.
    let other_function = api.function("affine");
    assert_ne!(function, other_function);
    assert_eq!(api.launch(exec, stream), 0);
    assert_eq!(driver!(api, cuModuleUnload(unloaded => Handle)), 0);
    assert_eq!(api.launch_directly(function, &arguments, stream), INVALID_HANDLE);
    assert_eq!(api.launch(exec, stream), INVALID_HANDLE);
    assert_eq!(api.instantiate(graph), Err(INVALID_HANDLE));
    assert_eq!(api.set(exec, nodes[0], &params(function, &mut parameters)), INVALID_HANDLE);
    assert_eq!(api.add(graph, &nodes, &params(function, &mut parameters)), Err(INVALID_HANDLE));
    assert_eq!(api.set(exec, nodes[0], &params(other_function, &mut parameters)), 0);
    assert_eq!((api.launch(exec, stream), api.synchronize(stream)), (0, 0));
    assert_eq!((number.load(Ordering::Acquire), api.fake.ran()), (2, [0, 2]));
}

#[test]
fn a_launch_can_fail_before_its_first_kernel_or_after_some() {
    let api = Api::new();
    let (function, stream, number) = (api.function("affine"), api.stream(), api.number());
    let (graph, _) = api.chain(function, &[affine(number, 1, 1), affine(number, 1, 10), affine(number, 1, 100)]);
    let exec = api.instantiate(graph).expect("a chain");
    api.fake.fail("cuGraphLaunch", 0, INVALID_VALUE);
    api.fake.fail_within_graph(1, 2, 999);
    let launched = || {
        let before = number.load(Ordering::Acquire);
        let code = api.launch(exec, stream);
        assert_eq!(api.synchronize(stream), 0);
        (code, number.load(Ordering::Acquire) - before)
    };
    assert_eq!([launched(), launched(), launched(), launched()], [(1, 0), (0, 111), (999, 11), (0, 111)]);
    assert_eq!((api.fake.count("cuGraphLaunch"), api.fake.ran()), (4, [0, 8]));
}

#[test]
fn every_call_can_fail() {
    let api = Api::new();
    let (function, number) = (api.function("affine"), api.number());
    let arguments = affine(number, 1, 1);
    let mut parameters = pointers(&arguments);
    let (graph, nodes) = api.chain(function, &[arguments]);
    let exec = api.instantiate(graph).expect("a chain");
    let calls = ["Create", "AddKernelNode_v2", "InstantiateWithFlags", "ExecKernelNodeSetParams_v2", "Destroy"]
        .map(|call| format!("cuGraph{call}"));
    calls.iter().for_each(|call| api.fake.fail(call, 0, 999));
    api.fake.fail("cuGraphExecDestroy", 0, 999);
    assert_eq!(driver!(api, cuGraphCreate(&mut null_mut() => *mut Handle, 0 => c_uint)), 999);
    assert_eq!(api.add(graph, &nodes, &params(function, &mut parameters)), Err(999));
    assert_eq!(api.instantiate(graph), Err(999));
    assert_eq!(api.set(exec, nodes[0], &params(function, &mut parameters)), 999);
    assert_eq!((api.destroy_exec(exec), api.destroy_graph(graph)), (999, 999));
    assert_eq!(calls.map(|call| api.fake.count(&call)), [2, 2, 2, 1, 1]);
    assert_eq!(api.fake.held_graphs(), [1, 1]);
}

#[test]
fn an_old_driver_has_no_graphs() {
    let has = |fake: &Fake, name: &str| {
        // SAFETY: the address is only looked at.
        unsafe { fake.call::<*const c_void>(name) }.is_some_and(|address| !address.is_null())
    };
    let (old, new) = (Fake::old(), Fake::new());
    for call in [
        "cuGraphCreate",
        "cuGraphDestroy",
        "cuGraphAddKernelNode_v2",
        "cuGraphInstantiateWithFlags",
        "cuGraphExecKernelNodeSetParams_v2",
        "cuGraphLaunch",
        "cuGraphExecDestroy",
    ] {
        assert_eq!((has(&old, call), has(&new, call)), (false, true), "{call}");
    }
    assert!(has(&old, "cuLaunchKernel") && old.ran() == [0, 0]);
}
