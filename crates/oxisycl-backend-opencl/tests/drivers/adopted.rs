//! Driver queues, events and programs that other code has made.

use std::alloc::Layout;
use std::ptr;
use std::sync::Arc;

use libloading::Library;
use oxisycl_backend::{
    BackendError, Command, CopyCommand, Dependency, DependencyKind, Device, MemoryId, NativeHandle, Queue,
    QueueOptions, Source, UsmKind,
};
use oxisycl_backend_opencl::sys::{Code, Functions, Handle, code};
use oxisycl_backend_opencl::{SharingKind, native_context, native_device, native_events};
use oxisycl_backend_testing::contract::Affine;

use crate::support::{devices, eventually, in_order, issue, kernels, launch, launch_with, out_of_order, row, succeed};

crate::suite::tests![
    commands_on_a_borrowed_queue_come_between_the_user_s_own_work,
    a_borrowed_queue_has_the_properties_of_the_driver_s,
    commands_of_all_queues_wait_for_a_native_event,
    the_events_of_a_command_are_the_caller_s_own,
    handles_that_are_not_the_device_s_are_refused_with_their_values,
    a_program_of_other_code_is_retained_if_it_is_built_for_the_device,
];

const REFERENCES_OF_EVENT: u32 = 0x11D2;
const REFERENCES_OF_QUEUE: u32 = 0x1092;
const OUT_OF_ORDER: u64 = code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
const PROFILING: u64 = code::QUEUE_PROFILING_ENABLE;

/// Other code that uses the context of a device.
struct User {
    functions: Functions,
    library: Library,
    context: Handle,
    device: Handle,
}

impl User {
    fn new(device: &Arc<dyn Device>) -> Self {
        // SAFETY: the loader that the backend has loaded.
        let functions = unsafe { Functions::load(None) }.expect("the loader");
        let name = if cfg!(windows) { "OpenCL.dll" } else { "libOpenCL.so.1" };
        // SAFETY: as above.
        let library = unsafe { Library::new(name) }.expect("the loader");
        let (context, device) = (native_context(&**device), native_device(&**device));
        Self { functions, library, context: context.expect("a context"), device: device.expect("a device") }
    }

    fn queue(&self, properties: u64) -> Handle {
        let list = [code::QUEUE_PROPERTIES, properties, 0];
        let mut code = 0;
        // SAFETY: a live context and device, and a list that ends with zero.
        let queue = unsafe {
            let create = self.functions.clCreateCommandQueueWithProperties;
            create(self.context, self.device, list.as_ptr(), &raw mut code)
        };
        assert_eq!(code, 0);
        queue
    }

    /// An event that happens when [`set`](Self::set) is called.
    fn event(&self) -> Handle {
        let mut code = 0;
        // SAFETY: the type is that of `cl.h`, and the context is live.
        let event = unsafe {
            let create =
                self.library.get::<unsafe extern "system" fn(Handle, *mut Code) -> Handle>(b"clCreateUserEvent");
            create.expect("the call")(self.context, &raw mut code)
        };
        assert_eq!(code, 0);
        event
    }

    fn set(&self, event: Handle, status: Code) {
        // SAFETY: the type is that of `cl.h`, and the event is live.
        let code = unsafe {
            let set = self.library.get::<unsafe extern "system" fn(Handle, Code) -> Code>(b"clSetUserEventStatus");
            set.expect("the call")(event, status)
        };
        assert_eq!(code, 0);
    }

    fn release(&self, event: Handle) {
        // SAFETY: the event is the user's.
        assert_eq!(unsafe { (self.functions.clReleaseEvent)(event) }, 0);
    }

    /// Lets what comes later on the queue wait for the event.
    fn block(&self, queue: Handle, event: Handle) {
        // SAFETY: live handles.
        let barrier =
            unsafe { (self.functions.clEnqueueBarrierWithWaitList)(queue, 1, &raw const event, ptr::null_mut()) };
        assert_eq!(barrier, 0);
    }

    fn fill(&self, queue: Handle, target: *mut u8, value: u32, bytes: usize) {
        // SAFETY: a live queue, and memory of its context, which the test keeps. The pattern is copied.
        let code = unsafe {
            let fill = self.functions.clEnqueueSVMMemFill;
            fill(queue, target.cast(), (&raw const value).cast(), 4, bytes, 0, ptr::null(), ptr::null_mut())
        };
        assert_eq!(code, 0);
    }

    fn number(&self, of: Handle, what: u32) -> u32 {
        let ask = if what != REFERENCES_OF_QUEUE {
            self.functions.clGetEventInfo
        } else {
            self.functions.clGetCommandQueueInfo
        };
        let mut number = 0u32;
        // SAFETY: a live object, and a number of the size that is said.
        assert_eq!(unsafe { ask(of, what, 4, (&raw mut number).cast(), ptr::null_mut()) }, 0);
        number
    }
}

fn adopt(device: &Arc<dyn Device>, queue: Handle, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
    // SAFETY: null, or a live queue.
    let queue = unsafe { device.adopt_queue(queue, options) }?;
    oxisycl_backend::poller::start(&queue.info()).expect("a thread");
    Ok(queue)
}

/// A command that waits for the event.
fn wait_for(queue: &Arc<dyn Queue>, event: Handle) -> Command {
    // SAFETY: a live event.
    unsafe { queue.native_wait(event) }.expect("an event of the context")
}

fn commands_on_a_borrowed_queue_come_between_the_user_s_own_work() {
    const LEN: usize = 100_000;
    for device in devices(SharingKind::Svm) {
        let [affine] = kernels(&device, ["affine"]);
        let user = User::new(&device);
        let raw = user.queue(0);
        let queue = adopt(&device, raw, &QueueOptions::default()).expect("a queue of the device");
        assert!(queue.info().keeps_order);
        assert_eq!(queue.native_handle(NativeHandle::Queue), Some(raw));
        let layout = Layout::array::<u32>(LEN).expect("a layout");
        let memory = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
        let kernel = |factor, summand| {
            let arguments = Affine { values: memory.as_ptr().cast(), factor, summand };
            launch_with(&affine, "affine", &arguments, LEN)
        };
        let gate = user.event();
        user.block(raw, gate);
        // Nothing to do, but behind the user's work.
        let (marker, first) = issue(&queue, Command::Marker, &[]);
        for round in 0..20 {
            issue(&queue, kernel(5, round), &[]);
            user.fill(raw, memory.as_ptr(), 100 + round, layout.size());
            issue(&queue, kernel(3, 7), &[]);
        }
        let mut found = vec![0u32; LEN];
        let (near, host) =
            (row(device.info().memory.id, memory.as_ptr()), row(MemoryId::HOST, found.as_mut_ptr().cast()));
        let copy = Command::from(CopyCommand { source: near, target: host, extent: [1, 1, layout.size()] });
        let (_, copied) = issue(&queue, copy, &[]);
        succeed(&in_order(&device), launch(&kernels(&device, ["empty"])[0], "empty", 1));
        assert!(!first.has_ended() && !copied.has_ended());
        assert!(native_events(&*marker).is_some_and(|events| events.len() == 1));
        user.set(gate, code::COMPLETE);
        copied.wait().result.expect("the command runs");
        first.wait().result.expect("the command runs");
        // Any other order gives other numbers.
        assert!((0..).zip(&found).all(|(i, found)| *found == 3 * 119 + 7 + i), "{:?}", &found[..8]);
        drop((queue, marker));
        // The queue is the user's still.
        user.fill(raw, memory.as_ptr(), 9, layout.size());
        // SAFETY: the user's queue, whose commands have ended. Memory was allocated above.
        unsafe {
            assert_eq!((user.functions.clFinish)(raw), 0);
            assert_eq!((user.functions.clReleaseCommandQueue)(raw), 0);
            device.memory().free(memory, UsmKind::Device, layout);
        }
        user.release(gate);
    }
}

fn a_borrowed_queue_has_the_properties_of_the_driver_s() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let user = User::new(&device);
        let options = QueueOptions { profiling: true, ..QueueOptions::default() };
        let [plain, timed] = [OUT_OF_ORDER, PROFILING].map(|properties| user.queue(properties));
        let error = adopt(&device, plain, &options).err().expect("an error");
        assert!(matches!(&error, BackendError::Unsupported { what, .. } if what.contains("profiling")), "{error}");
        assert_eq!(user.number(plain, REFERENCES_OF_QUEUE), 1, "an error keeps nothing");
        let queue = adopt(&device, plain, &QueueOptions { in_order: true, ..QueueOptions::default() });
        let queue = queue.expect("a queue of the device");
        assert!(!queue.info().keeps_order, "the driver's queue is out of order");
        assert_eq!(user.number(plain, REFERENCES_OF_QUEUE), 2);
        succeed(&queue, launch(&empty, "empty", 1));
        let queue = adopt(&device, timed, &options).expect("a queue of the device");
        assert!(queue.info().keeps_order);
        let (_, probe) = issue(&queue, launch(&empty, "empty", 1), &[]);
        assert!(probe.wait().times.is_some());
    }
}

fn commands_of_all_queues_wait_for_a_native_event() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let user = User::new(&device);
        for (waiting, using) in [(in_order(&device), out_of_order(&device)), (out_of_order(&device), in_order(&device))]
        {
            let gate = user.event();
            let (event, waits) = issue(&waiting, wait_for(&waiting, gate), &[]);
            let dependency = Dependency { event, kind: DependencyKind::Data };
            let (_, behind) = issue(&using, launch(&empty, "empty", 1), &[dependency]);
            succeed(&in_order(&device), launch(&empty, "empty", 1));
            assert!(!waits.has_ended() && !behind.has_ended());
            user.set(gate, code::COMPLETE);
            behind.wait().result.expect("the command runs");
            waits.wait().result.expect("the command runs");
            eventually("the event is released", || user.number(gate, REFERENCES_OF_EVENT) == 1);
            user.release(gate);
        }
    }
}

fn the_events_of_a_command_are_the_caller_s_own() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        let user = User::new(&device);
        assert_eq!(device.native_handle(NativeHandle::Context), Some(user.context));
        assert_eq!(device.native_handle(NativeHandle::Device), Some(user.device));
        assert_eq!(device.native_handle(NativeHandle::Queue), None);
        for queue in [in_order(&device), out_of_order(&device)] {
            let gate = user.event();
            let (event, waits) = issue(&queue, wait_for(&queue, gate), &[]);
            let dependency = Dependency { event, kind: DependencyKind::Data };
            let (event, probe) = issue(&queue, launch(&empty, "empty", 1), &[dependency]);
            let events = event.native_events().expect("the driver has the command");
            let status = |event| user.number(event, code::EVENT_COMMAND_EXECUTION_STATUS).cast_signed();
            assert!(!events.is_empty() && events.iter().all(|event| status(*event) > code::COMPLETE));
            assert!(events.iter().all(|event| user.number(*event, REFERENCES_OF_EVENT) >= 2));
            user.set(gate, code::COMPLETE);
            for end in [waits, probe] {
                end.wait().result.expect("the command runs");
            }
            assert_eq!(event.native_events().expect("the command is over"), []);
            drop((event, queue));
            for event in events {
                // What the backend had is gone.
                assert_eq!(status(event), code::COMPLETE);
                user.release(event);
            }
            user.release(gate);
        }
    }
}

fn handles_that_are_not_the_device_s_are_refused_with_their_values() {
    for device in devices(SharingKind::Best) {
        let user = User::new(&device);
        let adopted = |queue| adopt(&device, queue, &QueueOptions::default()).err().expect("an error").to_string();
        let device_name = &device.info().name;
        let expected = format!("expected a queue of context {:p} and device {:p}", user.context, user.device);
        let of = |found: String| format!("device \"{device_name}\" cannot take the native queue {found}: {expected}");
        assert_eq!(adopted(ptr::null_mut()), of("0x0".to_owned()));
        // A context of the user's own.
        let mut code = 0;
        // SAFETY: a live device; no properties and no callback.
        let other = unsafe {
            let create = user.functions.clCreateContext;
            create(ptr::null(), 1, &raw const user.device, ptr::null(), ptr::null_mut(), &raw mut code)
        };
        assert_eq!(code, 0);
        let foreign = User { context: other, ..User::new(&device) };
        let (queue, event) = (foreign.queue(0), foreign.event());
        let found = format!("{queue:p} of context {other:p} and device {:p}", user.device);
        assert_eq!(adopted(queue), of(found));

        let own = in_order(&device);
        // SAFETY: null, or a live event.
        let waited = |event| unsafe { own.native_wait(event) }.expect_err("an error").to_string();
        let expected = format!("expected an event of context {:p} that has not failed", user.context);
        let of = |found: String| format!("device \"{device_name}\" cannot take the native event {found}: {expected}");
        assert_eq!(waited(ptr::null_mut()), of("0x0".to_owned()));
        assert_eq!(waited(event), of(format!("{event:p} of context {other:p}")));
        foreign.set(event, code::COMPLETE);
        let failed = user.event();
        user.set(failed, code::INVALID_VALUE);
        let message = waited(failed);
        assert!(message.contains("which has failed with CL_INVALID_VALUE"), "{message}");
        [event, failed].iter().for_each(|event| user.release(*event));
        let (_, probe) = issue(&own, Command::Marker, &[]);
        probe.wait().result.expect("the device is as before");
    }
}

fn a_program_of_other_code_is_retained_if_it_is_built_for_the_device() {
    for device in devices(SharingKind::Best) {
        let user = User::new(&device);
        let program = |context: Handle| {
            let text = b"kernel void put(global uint *x) { x[get_global_id(0)] = 7; }";
            let (pointer, size, mut code) = (text.as_ptr().cast(), text.len(), 0);
            // SAFETY: a live context, and one text of as many bytes as are said.
            let program = unsafe {
                let create = user.functions.clCreateProgramWithSource;
                create(context, 1, &raw const pointer, &raw const size, &raw mut code)
            };
            assert_eq!(code, 0);
            program
        };
        // SAFETY: null, or a live program.
        let load = |program| unsafe { device.load_source(&Source::Native(program)) };
        let refused = |program| load(program).err().expect("an error").to_string();
        let expected =
            format!("expected a program of context {:p} that is built for device {:p}", user.context, user.device);
        let device_name = &device.info().name;
        let of = |found: String| format!("device \"{device_name}\" cannot take the native module {found}: {expected}");
        assert_eq!(refused(ptr::null_mut()), of("0x0".to_owned()));
        let own = program(user.context);
        assert_eq!(refused(own), of(format!("{own:p}, which is not built for it")));
        let mut code = 0;
        // SAFETY: a live device; no properties and no callback.
        let other = unsafe {
            let create = user.functions.clCreateContext;
            create(ptr::null(), 1, &raw const user.device, ptr::null(), ptr::null_mut(), &raw mut code)
        };
        assert_eq!(code, 0);
        let foreign = program(other);
        assert_eq!(refused(foreign), of(format!("{foreign:p} of context {other:p}")));

        // SAFETY: a live program and device; without a callback, the call returns when it is built.
        let built = unsafe {
            let build = user.functions.clBuildProgram;
            build(own, 1, &raw const user.device, c"".as_ptr(), ptr::null(), ptr::null_mut())
        };
        assert_eq!(built, 0);
        let module = load(own).expect("a built program");
        assert_eq!(module.native_handle(), own);
        // SAFETY: live programs and a context of this test's own, each given back once.
        unsafe {
            (user.functions.clReleaseProgram)(own);
            (user.functions.clReleaseProgram)(foreign);
            (user.functions.clReleaseContext)(other);
        }
        let kernel = module.kernel("put").expect("the driver answers").expect("it has the kernel");
        assert!(!kernel.native_handle().is_null());
        assert!(module.kernel("get").expect("the driver answers").is_none());
    }
}
