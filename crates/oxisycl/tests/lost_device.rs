//! How programs meet a GPU that a kernel's illegal address has lost. Every call that needs the device names that kernel, and nothing hangs.
//! Work that needs other devices goes on.
//!
//! On two GPUs of a driver without any, which the CUDA backend's tests have. It is loaded by the system's name of the driver, so that a process
//! of its own is needed for each test.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
mod fake_gpu;
mod support;

use std::error::Error as _;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, mpsc};

use oxisycl::prelude::*;
use oxisycl::{BackendKind, FinalData};

use child_process::{role, run};
use fake_gpu::kernel;
use support::watchdog;

const N: usize = 64;
/// Kernels are held where that gains, and always.
const BATCHING: [(&str, &str); 2] = [("OXISYCL_BATCHING", "1"), ("OXISYCL_BATCHING", "always")];

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("loses_one") => lose_one(),
        Some("loses_all") => lose_all(),
        Some(other) => panic!("no role {other}"),
    }
}

#[test]
fn every_call_on_a_lost_device_names_the_kernel_and_nothing_hangs_and_another_device_goes_on() {
    for batching in BATCHING {
        let ended = run("loses_one", &[fake_gpu::Driver::new().variable(), batching]).succeeded();
        // One line, for the data that could not be brought back to their slice; the other errors were returned or went to a handler.
        let reports = ended.reports();
        assert!(reports.len() == 1 && reports[0].contains("kernel \"crash\""), "{ended:#?}");
    }
}

#[test]
fn devices_that_the_driver_gives_up_with_another_one_name_its_kernel() {
    for batching in BATCHING {
        run("loses_all", &[fake_gpu::Driver::new().variable(), batching]).succeeded();
    }
}

/// The driver's two GPUs, with its setting `lost_together`.
fn gpus(lost_together: i64) -> [Device; 2] {
    // SAFETY: the library of this test, which the parent has put in the driver's place; its initialisers do nothing.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the symbol has this type in the library's sources.
    let set = unsafe { driver.get::<unsafe extern "C" fn(*const c_char, i64)>(b"fake_set\0") }.unwrap();
    let set = |key: &CStr, value| {
        // SAFETY: as above, with a string that ends.
        unsafe { set(key.as_ptr(), value) }
    };
    set(c"devices", 2);
    set(c"lost_together", lost_together);
    let gpus = Device::all().unwrap().into_iter().filter(|device| device.backend() == BackendKind::Cuda);
    gpus.collect::<Vec<_>>().try_into().unwrap()
}

/// The error says, itself or by its sources, that the device was lost and by which kernel.
#[track_caller]
fn names_the_kernel(error: &Error) {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text += &format!("\ncaused by {error}");
        source = error.source();
    }
    let expected = ["kernel \"crash\"", "is lost", "CUDA_ERROR_ILLEGAL_ADDRESS"];
    assert!(expected.iter().all(|expected| text.contains(expected)), "{text}");
}

/// The call, or the command that it submitted, fails because the device is lost.
#[track_caller]
fn fails(submitted: Result<Event, Error>) {
    names_the_kernel(&submitted.and_then(|event| event.wait()).unwrap_err());
}

/// Submits the kernel that loses the device.
fn crash<K>(queue: &Queue, kernel: K) -> Event
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
{
    let submitted = queue.submit(|cg| {
        cg.name("crash");
        cg.parallel_for(1, kernel)
    });
    submitted.unwrap()
}

fn lose_one() {
    let _limit = watchdog();
    let [first, second] = gpus(0);
    let (crashing, empty) = (kernel("crash", "", |_| {}), kernel("empty", "", |_| _ = std::hint::black_box(1)));
    let asynchronous = Arc::new(Mutex::new(Vec::new()));
    let list = asynchronous.clone();
    let queue =
        Queue::builder().device(&first).handler(move |errors| list.lock().unwrap().extend(errors)).build().unwrap();
    let in_order = Queue::builder().device(&first).in_order().build().unwrap();
    let other = Queue::new(&second).unwrap();

    // What is only on the device when it is lost: a buffer, two with an end, and an allocation.
    let kept = Buffer::from_vec(vec![1_u32; N]).unwrap();
    let mut slice = vec![1_u32; N];
    let borrowed = Buffer::from_slice_mut_nd(&mut slice, N).unwrap();
    let delivered = Buffer::from_vec(vec![1_u32; N]).unwrap();
    let (sender, receiver) = mpsc::channel();
    delivered.set_final_data(FinalData::call(move |data| sender.send(data).unwrap()));
    for buffer in [&kept, &*borrowed, &delivered] {
        queue.fill(buffer, 5).unwrap().wait().unwrap();
    }
    let usm = queue.malloc_device::<u32>(N).unwrap();
    // What the host and the other device have.
    let elsewhere = Buffer::from_vec(vec![7_u32; N]).unwrap();
    other.fill(&elsewhere, 8).unwrap().wait().unwrap();

    let crashed = crash(&queue, crashing);
    let dependent = queue.submit(|cg| {
        cg.depends_on(&crashed);
        cg.parallel_for(1, empty)
    });
    match queue.wait() {
        Err(error) => names_the_kernel(&error),
        // The submission was the first that told it, if the loss was known by then.
        Ok(()) => assert!(dependent.is_err(), "the loss is told once"),
    }
    names_the_kernel(&crashed.wait().unwrap_err());
    fails(dependent);

    // Every later call, on queues that were there and new ones.
    fails(queue.parallel_for(1, empty));
    fails(in_order.parallel_for(1, empty));
    fails(queue.fill(&kept, 1));
    fails(in_order.copy(&elsewhere, &kept));
    names_the_kernel(&queue.malloc_device::<u32>(N).unwrap_err());
    names_the_kernel(&Queue::new(&first).and_then(|queue| queue.fill(&elsewhere, 1)?.wait()).unwrap_err());
    names_the_kernel(&kept.to_vec().unwrap_err());
    fails(other.copy(&kept, &elsewhere));

    // Drops.
    drop((usm, kept));
    drop(delivered);
    names_the_kernel(&receiver.recv().unwrap().unwrap_err());
    drop(borrowed);
    assert_eq!(slice, [1; N], "half of the data, or other data");
    queue.throw_asynchronous();
    in_order.take_errors().iter().for_each(names_the_kernel);
    other.take_errors().iter().for_each(names_the_kernel);
    drop((queue, in_order));
    let asynchronous = asynchronous.lock().unwrap();
    assert!(!asynchronous.is_empty());
    asynchronous.iter().for_each(names_the_kernel);

    // The other device.
    let fresh = Buffer::from_vec(vec![1_u32; N]).unwrap();
    other.fill(&fresh, 9).unwrap();
    other.parallel_for(1, empty).unwrap();
    other.wait().unwrap();
    assert_eq!(fresh.to_vec().unwrap(), [9; N]);
    let memory = other.malloc_device::<u32>(N).unwrap();
    drop(memory);
}

fn lose_all() {
    let _limit = watchdog();
    let gpus = gpus(1);
    let crashing = kernel("crash", "", |_| {});
    let [queue, other] = gpus.each_ref().map(|gpu| Queue::new(gpu).unwrap());
    let buffer = Buffer::from_vec(vec![1_u32; N]).unwrap();
    other.fill(&buffer, 2).unwrap().wait().unwrap();
    names_the_kernel(&crash(&queue, crashing).wait().unwrap_err());
    let error = other.fill(&buffer, 3).and_then(|event| event.wait()).unwrap_err();
    names_the_kernel(&error);
    assert!(format!("{error:?}").contains("after another device of the process was lost"), "{error:?}");
    names_the_kernel(&other.malloc_device::<u32>(N).unwrap_err());
    names_the_kernel(&buffer.to_vec().unwrap_err());
    other.take_errors().iter().for_each(names_the_kernel);
    // The host goes on.
    let host = Queue::new(&Device::select(oxisycl::selector::cpu_selector).unwrap()).unwrap();
    let fresh = Buffer::from_vec(vec![1_u32; N]).unwrap();
    host.fill(&fresh, 4).unwrap();
    assert_eq!(fresh.to_vec().unwrap(), [4; N]);
}
