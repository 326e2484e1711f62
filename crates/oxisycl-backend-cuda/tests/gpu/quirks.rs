//! Reproducers of what the driver gets wrong, by its own calls, without the backend's remedies. Each fails once the driver is repaired.

use std::alloc::Layout;
use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use oxisycl_backend::{
    ArgumentBlock, Command, Device, FillCommand, FillPattern, KernelCommand, PitchedBox, Queue, UsmKind,
};
use oxisycl_backend_cuda::{native_context, native_streams};
use oxisycl_backend_testing::suite::skip;
use oxisycl_types::LaunchRange;

use crate::{Probe, devices, in_order, kernels, lose_in_child, succeed};

oxisycl_backend_testing::suite::tests![
    freeing_memory_waits_for_running_kernels,
    copies_of_unknown_memory_wait_for_the_device,
    a_crash_costs_the_process_all_devices,
];

/// So long a kernel runs while a call of the driver waits for it. The call takes less than a millisecond by itself.
const WHILE_CLOSED: Duration = Duration::from_millis(300);
/// More bytes than the driver copies to memory of its own at once.
const SIZE: usize = 64 << 20;

/// A kernel that runs on a queue until it is opened.
struct Running {
    device: Arc<dyn Device>,
    queue: Arc<dyn Queue>,
    is_open: NonNull<AtomicBool>,
    probe: Arc<Probe>,
}

const LAYOUT: Layout = Layout::new::<AtomicBool>();

impl Running {
    fn new(device: &Arc<dyn Device>) -> Self {
        let queue = in_order(device);
        // Launched at once from here on.
        native_streams(&*queue).expect("a queue of this backend");
        let [gate] = kernels(device, ["gate"]);
        let is_open = device.memory().allocate(UsmKind::Host, LAYOUT, true).expect("there is memory").cast();
        let probe = Arc::new(Probe::default());
        let arguments = ArgumentBlock::new(&(is_open.as_ptr() as u64));
        let [_, _, descriptor] = oxisycl_backend_testing::contract::native();
        let range = LaunchRange::SINGLE;
        let command =
            Command::from(KernelCommand { descriptor, code: Some(gate), native: None, arguments, range, group: None });
        // SAFETY: the byte is freed after the kernel has ended.
        unsafe { queue.issue(command, &[], probe.clone()) }.expect("the command is accepted");
        Self { device: device.clone(), queue, is_open, probe }
    }

    /// Makes `call` on a thread, with the context current, while the kernel runs. Returns whether it took until the kernel was let end.
    fn is_waited_for(&self, call: impl FnOnce(&Library) + Send) -> bool {
        // SAFETY: the driver, which is loaded already.
        let library = unsafe { Library::new("libcuda.so.1") }.expect("the driver");
        let context = native_context(&*self.device).expect("a device of this backend") as usize;
        let has_returned = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // SAFETY: the call has this type, and the context lives as long as the device.
                unsafe {
                    let set: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> c_int> =
                        library.get(b"cuCtxSetCurrent\0").expect("the call");
                    assert_eq!(set(ptr::with_exposed_provenance_mut(context)), 0);
                }
                call(&library);
                has_returned.store(true, Ordering::Release);
            });
            let began = Instant::now();
            while began.elapsed() < WHILE_CLOSED && !has_returned.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            let is_waiting = !has_returned.load(Ordering::Acquire);
            // SAFETY: the byte lives as long as `self`.
            unsafe { self.is_open.as_ref() }.store(true, Ordering::Release);
            is_waiting
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { self.is_open.as_ref() }.store(true, Ordering::Release);
        self.probe.wait();
        // SAFETY: allocated by `new`, and the kernel has ended.
        unsafe { self.device.memory().free(self.is_open.cast(), UsmKind::Host, LAYOUT) };
    }
}

fn freeing_memory_waits_for_running_kernels() {
    let device = devices().remove(0);
    let running = Running::new(&device);
    let is_waited_for = running.is_waited_for(|library| {
        let mut memory = 0u64;
        // SAFETY: the calls have these types; the memory is allocated and freed here.
        unsafe {
            let allocate: Symbol<'_, unsafe extern "C" fn(*mut u64, usize) -> c_int> =
                library.get(b"cuMemAlloc_v2\0").expect("the call");
            let free: Symbol<'_, unsafe extern "C" fn(u64) -> c_int> =
                library.get(b"cuMemFree_v2\0").expect("the call");
            assert_eq!((allocate(&raw mut memory, SIZE), free(memory)), (0, 0));
        }
    });
    assert!(is_waited_for, "memory is freed while a kernel runs: the quirk waiting-free is repaired");
}

fn copies_of_unknown_memory_wait_for_the_device() {
    let device = devices().remove(0);
    let layout = Layout::from_size_align(SIZE, 256).expect("a layout");
    let memory = device.memory().allocate(UsmKind::Device, layout, false).expect("there is memory");
    let target = memory.as_ptr() as u64;
    let running = Running::new(&device);
    let stream = native_streams(&*running.queue).expect("a queue of this backend")[0] as usize;
    let bytes = vec![1u8; SIZE];
    let is_waited_for = running.is_waited_for(|library| {
        // SAFETY: the call has this type; both ends have that size, and are used by nothing else until the stream is empty.
        unsafe {
            let copy: Symbol<'_, unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int> =
                library.get(b"cuMemcpyAsync\0").expect("the call");
            let stream = ptr::with_exposed_provenance_mut(stream);
            assert_eq!(copy(target, bytes.as_ptr() as u64, SIZE, stream), 0);
        }
    });
    // Comes after the copy.
    let target = PitchedBox { memory: device.info().memory.id, pointer: memory.as_ptr(), row_pitch: 0, slice_pitch: 0 };
    let pattern = FillPattern::from_slice(&[2]);
    succeed(&running.queue, Command::from(FillCommand { target, pattern, extent: [1, 1, 1] }));
    drop(running);
    // SAFETY: allocated above, and the copy has ended.
    unsafe { device.memory().free(memory, UsmKind::Device, layout) };
    assert!(is_waited_for, "the copy does not wait for the kernel before it: the quirk waiting-copies is repaired");
}

fn a_crash_costs_the_process_all_devices() {
    if devices().len() < 2 {
        skip("needs two devices");
    }
    let text = lose_in_child();
    assert!(!text.contains("goes on"), "another device goes on: the quirk shared-loss is repaired\n{text}");
}
