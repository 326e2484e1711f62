//! What native commands own, and what is made of a driver's handles, on the GPU of a driver without any. The CUDA backend's tests have that
//! driver.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
mod fake_gpu;
mod support;

use std::ffi::{CStr, c_void};
use std::ptr;

use libloading::{Library, Symbol};
use oxisycl::BackendKind;
use oxisycl::interop::{NativeContext, NativeDevice, NativeEvent, NativeQueue};
use oxisycl::observe::counters;
use oxisycl::prelude::*;

use child_process::{role, run};
use fake_gpu::Driver;
use support::{eventually, in_order, watchdog};

/// What this program does when its test starts it again.
#[test]
fn child() {
    let _limit = watchdog();
    match role().as_deref() {
        None => {}
        Some("owner") => own_memory(),
        Some("stream") => use_stream(),
        Some("event") => wait_for_event(),
        Some("handles") => refuse_handles(),
        Some("out") => give_out_handles(),
        Some("memory") => use_memory_of_other_code(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Memory is given back by a call that takes the locks of its queue. They are held while a native command is issued.
#[test]
fn a_native_command_may_own_memory_on_queues_in_and_out_of_order() {
    let driver = Driver::new();
    run("owner", &[driver.variable()]).succeeded();
}

fn own_memory() {
    let gpu = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda).unwrap();
    for queue in [in_order(&gpu), Queue::new(&gpu).unwrap()] {
        let before = counters();
        let left = || {
            let since = counters() - before;
            since.usm_allocations - since.usm_frees
        };
        let mut memory = Some(queue.malloc_device::<u32>(100).unwrap());
        let buffer = Buffer::from_vec(vec![1u32; 4]).unwrap();
        let owner = queue.submit(|cg| {
            let memory = memory.take();
            // SAFETY: nothing is put on the queue.
            unsafe {
                cg.native_command(move |_| {
                    assert_eq!(memory.as_ref().map(oxisycl::usm::UsmSlice::len), Some(100));
                    Ok(())
                })
            }
        });
        let owner = owner.unwrap();
        // Behind it on the same queue.
        let later = queue.submit(|cg| {
            let data = cg.access(&buffer, Write);
            cg.fill(data, 2)
        });
        owner.wait().unwrap();
        later.unwrap().wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [2; 4]);
        eventually("the memory is freed", || left() == 0);
        queue.wait().unwrap();
    }
}

fn gpu() -> Device {
    Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda).unwrap()
}

type Handle = *mut c_void;

/// Other code that uses the driver, on a thread with the primary context of the device.
struct User(Library);

impl User {
    fn new() -> Self {
        // SAFETY: the driver without a GPU, which the backend has loaded.
        let user = Self(unsafe { Library::new("libcuda.so.1") }.unwrap());
        let mut context = ptr::null_mut();
        // SAFETY: the driver's types; writes a handle.
        unsafe {
            let retain = user.symbol::<unsafe extern "system" fn(*mut Handle, i32) -> i32>("cuDevicePrimaryCtxRetain");
            assert_eq!(retain(&raw mut context, 0), 0);
            assert_eq!(user.symbol::<unsafe extern "system" fn(Handle) -> i32>("cuCtxSetCurrent")(context), 0);
        }
        user
    }

    /// # Safety
    /// `F` is the type of a pointer to the function of that name.
    unsafe fn symbol<F>(&self, name: &str) -> Symbol<'_, F> {
        // SAFETY: the caller knows the type.
        unsafe { self.0.get(name.as_bytes()) }.unwrap()
    }

    /// Begins or ends a time in which no stream goes on.
    fn pause(&self, is_paused: bool) {
        // SAFETY: the type is that of the library's sources.
        unsafe {
            self.symbol::<unsafe extern "C" fn(*const i8, i64)>("fake_set")(c"paused".as_ptr(), i64::from(is_paused));
        }
    }

    fn stream(&self) -> Handle {
        let mut stream = ptr::null_mut();
        // SAFETY: the driver's type; writes a handle.
        unsafe {
            type Create = unsafe extern "system" fn(*mut Handle, u32, i32) -> i32;
            assert_eq!(self.symbol::<Create>("cuStreamCreateWithPriority")(&raw mut stream, 1, 0), 0);
        }
        stream
    }

    fn event(&self, stream: Handle) -> Handle {
        let mut event = ptr::null_mut();
        // SAFETY: the driver's types, and a live stream; writes a handle.
        unsafe {
            type Create = unsafe extern "system" fn(*mut Handle, u32) -> i32;
            assert_eq!(self.symbol::<Create>("cuEventCreate")(&raw mut event, 2), 0);
            type Record = unsafe extern "system" fn(Handle, Handle) -> i32;
            assert_eq!(self.symbol::<Record>("cuEventRecord")(event, stream), 0);
        }
        event
    }

    /// Sets `len` words of the device.
    fn memset(&self, stream: Handle, target: *mut u32, value: u32, len: usize) {
        // SAFETY: the driver's type, a live stream, and memory that the test keeps.
        unsafe {
            type Memset = unsafe extern "system" fn(u64, u32, usize, Handle) -> i32;
            assert_eq!(self.symbol::<Memset>("cuMemsetD32Async")(target as u64, value, len, stream), 0);
        }
    }

    fn count(&self, call: &CStr) -> u64 {
        // SAFETY: the type is that of the library's sources.
        unsafe { self.symbol::<unsafe extern "C" fn(*const i8) -> u64>("fake_count")(call.as_ptr()) }
    }
}

#[test]
fn a_queue_is_made_of_a_stream_and_leaves_it_to_its_owner() {
    let driver = Driver::new();
    run("stream", &[driver.variable()]).succeeded();
}

fn use_stream() {
    const LEN: usize = 100;
    let (gpu, user) = (gpu(), User::new());
    let stream = user.stream();
    let n_destroyed = user.count(c"cuStreamDestroy_v2");
    // SAFETY: a live stream of the device's primary context, which is never destroyed.
    let queue = unsafe { Queue::from_native(&gpu, NativeQueue::Cuda(stream)) }.unwrap();
    assert!(queue.is_in_order() && *queue.device() == gpu);
    let memory = queue.malloc_device::<u32>(LEN).unwrap();
    let [first, last] = [0; 2].map(|_| queue.malloc_host::<u32>(LEN).unwrap());
    user.pause(true);
    user.memset(stream, memory.as_ptr(), 7, LEN);
    let marker = queue.submit_barrier([]).unwrap();
    let copy = |to: *mut u32| {
        // SAFETY: both live until the queue is idle, and what changes them is on the same stream.
        queue.submit(|cg| unsafe { cg.memcpy(to.cast(), memory.as_ptr().cast(), 4 * LEN) }).unwrap()
    };
    copy(first.as_ptr());
    user.memset(stream, memory.as_ptr(), 9, LEN);
    copy(last.as_ptr());
    assert!(!marker.is_complete() && !queue.is_idle());
    user.pause(false);
    queue.wait().unwrap();
    // SAFETY: memory of the host, which nothing writes any more.
    let found = [first.as_ptr(), last.as_ptr()].map(|words| unsafe { std::slice::from_raw_parts(words, LEN) });
    assert_eq!(found, [&[7; LEN], &[9; LEN]]);
    drop((memory, first, last, queue));
    assert_eq!(user.count(c"cuStreamDestroy_v2"), n_destroyed);
}

#[test]
fn command_groups_and_the_host_wait_for_a_driver_s_event() {
    let driver = Driver::new();
    // Without the cache no kernel is loaded because an earlier run has launched it.
    run("event", &[driver.variable(), ("OXISYCL_CACHE_SIZE", "0")]).succeeded();
}

fn wait_for_event() {
    let (gpu, user) = (gpu(), User::new());
    let empty = fake_gpu::kernel("empty", "", |_: Item<'_, 1>| {});
    let own_context = Context::new(std::slice::from_ref(&gpu)).unwrap();
    let in_own_context = Queue::builder().device(&gpu).context(&own_context).build().unwrap();
    for queue in [in_order(&gpu), Queue::new(&gpu).unwrap(), in_own_context] {
        user.pause(true);
        let stream = user.stream();
        let recorded = user.event(stream);
        // SAFETY: a live event, which is never destroyed.
        let event = unsafe { Event::from_native(&queue, NativeEvent::Cuda(recorded)) }.unwrap();
        // The event may wait for a kernel whose code the driver does not have yet.
        assert_eq!(gpu.load_kernels().unwrap(), 1);
        let buffer = Buffer::from_vec(vec![1_u32; 4]).unwrap();
        let later = queue.submit(|cg| {
            cg.depends_on(&event);
            let data = cg.access(&buffer, Write);
            cg.fill(data, 2)
        });
        let later = later.unwrap();
        let launched = queue.submit(|cg| {
            cg.depends_on(&event);
            cg.parallel_for(1, empty)
        });
        let launched = launched.unwrap();
        assert!(!event.is_complete() && !later.is_complete() && !launched.is_complete());
        assert!(later.dependencies().contains(&event));
        user.pause(false);
        later.wait().unwrap();
        launched.wait().unwrap();
        assert!(event.is_complete());
        event.wait().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [2; 4]);
    }
}

#[test]
fn handles_that_are_not_a_device_s_are_refused_before_anything_is_enqueued() {
    let driver = Driver::new();
    run("handles", &[driver.variable()]).succeeded();
}

fn refuse_handles() {
    let (gpu, user) = (gpu(), User::new());
    let host = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Host).unwrap();
    let (stream, per_thread) = (user.stream(), ptr::without_provenance_mut(2));
    let event = user.event(stream);
    // SAFETY: null, or live handles.
    let queue = |device: &Device, native| unsafe { Queue::from_native(device, native) }.unwrap_err();
    // SAFETY: as above.
    let wait = |queue: &Queue, native| unsafe { Event::from_native(queue, native) }.unwrap_err();
    let on_gpu = in_order(&gpu);
    let mismatched = [
        (queue(&host, NativeQueue::Cuda(stream)), &host, "native queue", stream),
        (queue(&gpu, NativeQueue::OpenCl(stream)), &gpu, "native queue", stream),
        (wait(&in_order(&host), NativeEvent::Cuda(event)), &host, "native event", event),
        (wait(&on_gpu, NativeEvent::OpenCl(event)), &gpu, "native event", event),
    ];
    for (error, device, what, handle) in mismatched {
        assert_eq!(error.code(), ErrorCode::BackendMismatch);
        let (name, backend, text) = (device.name(), device.backend(), error.to_string());
        let expected = format!("device \"{name}\" of backend {backend} cannot take the {what} {handle:p} of backend");
        assert!(text.starts_with(&expected), "{text}");
    }
    let wrong = [
        (queue(&gpu, NativeQueue::Cuda(ptr::null_mut())), "native queue 0x0"),
        (queue(&gpu, NativeQueue::Cuda(per_thread)), "native queue 0x2, which is another stream on each thread"),
        (wait(&on_gpu, NativeEvent::Cuda(ptr::null_mut())), "native event 0x0"),
    ];
    for (error, what) in wrong {
        assert_eq!(error.code(), ErrorCode::Invalid);
        let (name, text) = (gpu.name(), error.to_string());
        assert!(text.starts_with(&format!("device \"{name}\" cannot take the {what}: expected ")), "{text}");
    }
    assert!(on_gpu.is_idle());
}

#[test]
fn handles_of_all_objects_are_given_out() {
    let driver = Driver::new();
    run("out", &[driver.variable()]).succeeded();
}

fn give_out_handles() {
    let gpu = gpu();
    let (in_order, out_of_order) = (in_order(&gpu), Queue::new(&gpu).unwrap());
    assert_eq!(gpu.native_device().unwrap(), NativeDevice::Cuda(0));
    assert_eq!(Device::from_native(NativeDevice::Cuda(0)).unwrap(), gpu);
    let error = Device::from_native(NativeDevice::Cuda(7)).unwrap_err();
    assert_eq!((error.code(), error.to_string().contains("Cuda(7)")), (ErrorCode::Invalid, true));
    let user = User::new();
    let mut current = ptr::null_mut();
    // SAFETY: the driver's type; writes a handle.
    unsafe { user.symbol::<unsafe extern "system" fn(*mut Handle) -> i32>("cuCtxGetCurrent")(&raw mut current) };
    assert_eq!(gpu.native_context().unwrap(), NativeContext::Cuda(current));
    for (queue, other) in [(&in_order, &out_of_order), (&out_of_order, &in_order)] {
        let NativeQueue::Cuda(stream) = queue.native_queue().unwrap() else { panic!("a stream") };
        assert!(!stream.is_null());
        let (buffer, held) = (Buffer::from_vec(vec![1_u32; 4]).unwrap(), Buffer::from_vec(vec![1_u32; 4]).unwrap());
        user.pause(true);
        let filled = queue.fill(&buffer, 2).unwrap();
        let [event] = filled.native_events().unwrap()[..] else { panic!("one event") };
        // SAFETY: a live event, which is never destroyed.
        let waits = unsafe { Event::from_native(other, event) }.unwrap();
        assert!(!waits.is_complete());
        user.pause(false);
        waits.wait().unwrap();
        filled.wait().unwrap();
        assert_eq!((filled.native_events().unwrap(), Event::default().native_events().unwrap()), (vec![], vec![]));
        // The driver does not have what waits for the host.
        let host = held.host_access(Read).unwrap();
        let delayed = queue.fill(&held, 2).unwrap();
        let error = delayed.native_events().unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains("does not have the command"), "{error}");
        drop(host);
        delayed.wait().unwrap();
    }
    let host = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Host).unwrap();
    let queue = Queue::new(&host).unwrap();
    let event = queue.submit_barrier([]).unwrap();
    let missing = [
        (host.native_device().unwrap_err(), "device"),
        (host.native_context().unwrap_err(), "context"),
        (queue.native_queue().unwrap_err(), "queue"),
        (event.native_events().unwrap_err(), "event"),
    ];
    for (error, what) in missing {
        assert_eq!(error.code(), ErrorCode::BackendMismatch);
        assert!(error.to_string().ends_with(&format!("of backend host has no native {what}")), "{error}");
    }
}

#[test]
fn a_buffer_is_made_over_memory_of_other_code() {
    let driver = Driver::new();
    run("memory", &[driver.variable()]).succeeded();
}

fn use_memory_of_other_code() {
    const LEN: usize = 100;
    let (gpu, user) = (gpu(), User::new());
    let (stream, mut address) = (user.stream(), 0_u64);
    // SAFETY: the driver's type; writes an address.
    let allocated = unsafe {
        user.symbol::<unsafe extern "system" fn(*mut u64, usize) -> i32>("cuMemAlloc_v2")(&raw mut address, 4 * LEN)
    };
    assert_eq!(allocated, 0);
    let memory = ptr::with_exposed_provenance_mut::<u32>(address as usize);
    user.memset(stream, memory, 7, LEN);
    // SAFETY: a live stream, which is never destroyed.
    let queue = unsafe { Queue::from_native(&gpu, NativeQueue::Cuda(stream)) }.unwrap();
    // SAFETY: memory of the device's primary context, which lives as long as the buffer. What fills it is on the queue's stream.
    let buffer = unsafe { oxisycl::BufferOptions::<1>::new().from_usm_pointer(memory, LEN, &gpu, true) }.unwrap();
    let copied = Buffer::from_vec(vec![0_u32; LEN]).unwrap();
    queue.copy(&buffer, &copied).unwrap();
    assert_eq!(copied.to_vec().unwrap(), vec![7; LEN]);
    queue.fill(&buffer, 9).unwrap().wait().unwrap();
    drop((buffer, copied));
    // Other code sees what the buffer's commands have done, also without the buffer.
    // SAFETY: as above.
    let again = unsafe { oxisycl::BufferOptions::<1>::new().from_usm_pointer(memory, LEN, &gpu, true) }.unwrap();
    assert_eq!(again.to_vec().unwrap(), vec![9; LEN]);
    drop(again);
    queue.wait().unwrap();
    // SAFETY: the driver's type, and memory that nothing uses any more.
    let freed = unsafe { user.symbol::<unsafe extern "system" fn(u64) -> i32>("cuMemFree_v2")(address) };
    assert_eq!(freed, 0, "no buffer has freed it");
}
