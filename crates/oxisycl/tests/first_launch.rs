//! First launches of kernels on devices whose drivers wait for running kernels when they load code, and launch nothing meanwhile.
//!
//! On simulated devices that do so, and on the GPU of a driver without any, which the CUDA backend's tests have. There two kernels run at a
//! time, on a simulated device one. What would wait for ever fails by the watchdog. Times are only compared with others of the same minute.

#![cfg(all(target_os = "linux", feature = "cuda", feature = "simulated"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
mod fake_gpu;
#[path = "support/own_images.rs"]
mod own_images;
mod support;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::usm::UsmPointer;
use oxisycl::{BackendKind, Event};

use child_process::{Ended, role, run};
use fake_gpu::Driver;
use own_images::{Registered, image_of};
use support::{alone, eventually, watchdog};

const N_ROUNDS: usize = 100;
/// In how much time what is loaded is to start, and to end, while a new kernel waits.
const STARTS_WITHIN: Duration = Duration::from_millis(10);

/// A kernel of its own for each number.
fn numbered<const N: u32>(total: &'static AtomicU32) -> impl Fn(Item<'_, 1>) + Copy + Send + Sync + 'static {
    move |_| _ = total.fetch_add(N + 1, Ordering::Relaxed)
}

/// Calls a macro for the numbers from 0 to 63.
macro_rules! for_64 {
    ($each:ident) => {
        $each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
            32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63)
    };
}

fn simulator() -> Simulator {
    Simulator::new(SimulatedConfig::new(1).native_kernels(false).waiting_loads(true)).unwrap()
}

/// Launches a kernel that runs until the flag is set. Returns when it has begun.
fn spin(queue: &Queue, flag: &'static AtomicBool) -> (Registered, Event) {
    static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
    HAS_BEGUN.store(false, Ordering::Release);
    let spinning = own_images::kernel(move |_| {
        HAS_BEGUN.store(true, Ordering::Release);
        while !flag.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    });
    let image = Registered::new(&[image_of(&spinning)]);
    let event = queue.parallel_for(1, spinning).unwrap();
    eventually("the kernel begins", || HAS_BEGUN.load(Ordering::Acquire));
    (image, event)
}

#[test]
fn the_thread_that_a_running_kernel_waits_for_launches_a_new_one_on_a_simulated_device() {
    let (_alone, _limit) = (alone(), watchdog());
    static TOTAL: AtomicU32 = AtomicU32::new(0);
    let new = own_images::kernel(numbered::<0>(&TOTAL));
    let _image = Registered::new(&[image_of(&new)]);
    for round in 0..N_ROUNDS {
        static FLAG: AtomicBool = AtomicBool::new(false);
        FLAG.store(false, Ordering::Release);
        let simulator = simulator();
        let queue = Queue::new(&simulator.devices()[0]).unwrap();
        let (_spinning, running) = spin(&queue, &FLAG);
        let event = queue.parallel_for(1, new).unwrap();
        assert!(!event.is_complete() && simulator.control().loads(0) == 1);
        FLAG.store(true, Ordering::Release);
        event.wait().unwrap();
        running.wait().unwrap();
        assert_eq!(TOTAL.load(Ordering::Relaxed) as usize, round + 1);
        assert_eq!(simulator.control().loads(0), 2);
    }
}

#[test]
fn loaded_kernels_and_copies_are_taken_while_a_new_kernel_waits_on_a_simulated_device() {
    let (_alone, _limit) = (alone(), watchdog());
    static TOTAL: AtomicU32 = AtomicU32::new(0);
    let (loaded, new) = (own_images::kernel(numbered::<0>(&TOTAL)), own_images::kernel(numbered::<1>(&TOTAL)));
    let _images = [image_of(&loaded), image_of(&new)].map(|image| Registered::new(&[image]));
    for _ in 0..N_ROUNDS {
        static FLAG: AtomicBool = AtomicBool::new(false);
        FLAG.store(false, Ordering::Release);
        TOTAL.store(0, Ordering::Relaxed);
        let simulator = simulator();
        let [busy, queue, other] = [(); 3].map(|()| Queue::new(&simulator.devices()[0]).unwrap());
        other.parallel_for(1, loaded).unwrap().wait().unwrap();
        let (_spinning, running) = spin(&busy, &FLAG);
        let delayed = queue.parallel_for(1, new).unwrap();
        let numbers = Buffer::from_vec(vec![0u32; 64]).unwrap();
        let again = other.parallel_for(1, loaded).unwrap();
        let filled = other.fill(&numbers, 5).unwrap();
        assert_eq!((simulator.control().loads(0), TOTAL.load(Ordering::Relaxed)), (2, 1));
        assert!([&running, &delayed, &again, &filled].into_iter().all(|event| !event.is_complete()));
        FLAG.store(true, Ordering::Release);
        assert_eq!(numbers.to_vec().unwrap(), [5; 64]);
        again.wait().unwrap();
        delayed.wait().unwrap();
        running.wait().unwrap();
        assert_eq!((simulator.control().loads(0), TOTAL.load(Ordering::Relaxed)), (3, 1 + 1 + 2));
    }
}

#[test]
fn a_panic_of_a_new_kernel_that_waited_reaches_event_and_queue_once() {
    let (_alone, _limit) = (alone(), watchdog());
    static FLAG: AtomicBool = AtomicBool::new(false);
    static N_ERRORS: AtomicU32 = AtomicU32::new(0);
    let new = own_images::kernel(|_: Item<'_, 1>| panic!("new and late"));
    let _image = Registered::new(&[image_of(&new)]);
    let simulator = simulator();
    let device = &simulator.devices()[0];
    let count = |errors: Vec<oxisycl::Error>| _ = N_ERRORS.fetch_add(errors.len() as u32, Ordering::Relaxed);
    let queue = Queue::builder().device(device).handler(count).build().unwrap();
    let (_spinning, running) = spin(&Queue::new(device).unwrap(), &FLAG);
    let event = queue.parallel_for(1, new).unwrap();
    assert!(!event.is_complete() && simulator.control().loads(0) == 1);
    FLAG.store(true, Ordering::Release);
    let error = event.wait().unwrap_err();
    assert!(error.code() == ErrorCode::Kernel && error.to_string().ends_with("new and late"), "{error}");
    assert_eq!(event.wait().unwrap_err().to_string(), error.to_string());
    queue.throw_asynchronous();
    queue.throw_asynchronous();
    assert_eq!(N_ERRORS.load(Ordering::Relaxed), 1);
    running.wait().unwrap();
}

#[test]
fn many_new_kernels_are_submitted_behind_a_running_one() {
    let (_alone, _limit) = (alone(), watchdog());
    static TOTAL: AtomicU32 = AtomicU32::new(0);
    static FLAG: AtomicBool = AtomicBool::new(false);
    let simulator = simulator();
    for in_order in [false, true] {
        TOTAL.store(0, Ordering::Relaxed);
        FLAG.store(false, Ordering::Release);
        let builder = Queue::builder().device(&simulator.devices()[0]);
        let queue = if in_order { builder.in_order() } else { builder }.build().unwrap();
        let (_spinning, _running) = spin(&queue, &FLAG);
        let mut images = Vec::new();
        let before = counters();
        macro_rules! launch {
            ($($n:literal)*) => {$({
                let kernel = own_images::kernel(numbered::<$n>(&TOTAL));
                images.push(Registered::new(&[image_of(&kernel)]));
                queue.parallel_for(1, kernel).unwrap();
            })*};
        }
        for_64!(launch);
        assert_eq!(((counters() - before).loads, TOTAL.load(Ordering::Relaxed)), (0, 0));
        FLAG.store(true, Ordering::Release);
        queue.wait().unwrap();
        assert_eq!(((counters() - before).loads, TOTAL.load(Ordering::Relaxed)), (64, 64 * 65 / 2));
    }
}

#[test]
fn a_library_is_unloaded_after_its_delayed_launches_have_ended() {
    let (_alone, _limit) = (alone(), watchdog());
    static TOTAL: AtomicU32 = AtomicU32::new(0);
    static FLAG: AtomicBool = AtomicBool::new(false);
    let simulator = simulator();
    let queue = Queue::new(&simulator.devices()[0]).unwrap();
    let (_spinning, _running) = spin(&queue, &FLAG);
    let new = own_images::kernel(numbered::<1>(&TOTAL));
    let image = Registered::new(&[image_of(&new)]);
    let event = queue.parallel_for(1, new).unwrap();
    // The image is forgotten, and the launch has its own copy.
    drop(image);
    FLAG.store(true, Ordering::Release);
    event.wait().unwrap();
    assert_eq!(TOTAL.load(Ordering::Relaxed), 2);
    assert_eq!(queue.parallel_for(1, new).unwrap_err().code(), ErrorCode::KernelNotSupported);
}

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    let _limit = watchdog();
    match role().as_deref() {
        None => {}
        Some("spins") => a_kernel_waits_for_what_is_launched_after_a_new_one(),
        Some("busy") => another_thread_keeps_the_gpu_busy(),
        Some("refused") => the_driver_refuses_a_delayed_launch(),
        Some("sources") => kernels_of_sources(),
        Some("profile") => launch_five_of_six(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Runs a process with the driver.
#[track_caller]
fn with_driver(role: &str) -> Ended {
    let driver = Driver::new();
    let waits = [("FAKE_DRIVER_LOADS_WAIT", "1"), ("OXISYCL_CACHE_SIZE", "0")];
    run(role, &[&[driver.variable()], &waits[..]].concat()).succeeded()
}

fn gpu() -> Device {
    Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda).unwrap()
}

/// A kernel of the driver that runs until the byte is set.
fn gate(flag: &'static AtomicBool) -> impl for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static {
    let flag = UsmPointer::new(std::ptr::from_ref(flag).cast_mut().cast::<u8>());
    fake_gpu::kernel("gate", "", move |_| _ = std::hint::black_box(flag))
}

/// A kernel of the driver that does nothing, and is another one for each number.
fn empty<const N: u32>(remark: &str) -> impl for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static {
    fake_gpu::kernel("empty", remark, |_| _ = std::hint::black_box(N))
}

#[test]
fn what_is_loaded_starts_while_a_new_kernel_waits_for_one_that_needs_it() {
    // Each of them 64 times, first without a new kernel and then beside one.
    let mut times = [const { Vec::new() }; 2];
    for _ in 0..2 {
        let ended = with_driver("spins");
        for (times, name) in times.iter_mut().zip(["without", "beside"]) {
            times.extend(ended.value(name).split(' ').map(|time| Duration::from_micros(time.parse().unwrap())));
        }
    }
    assert!(times.iter().all(|times| times.len() == 2 * 64 && times.len() >= N_ROUNDS));
    let [without, beside] = times.map(|mut times| {
        times.sort_unstable();
        times
    });
    for (name, times) in [("without a new kernel", &without), ("beside a new kernel", &beside)] {
        let n_in_time = times.iter().filter(|time| **time <= STARTS_WITHIN).count();
        let (median, slowest) = (times[64], times[127]);
        println!("{n_in_time} of {} within {STARTS_WITHIN:?} {name}: {median:?}, at most {slowest:?}", times.len());
    }
    // Other programs may take the processor for as long as that, but not in half of the rounds of one kind alone.
    let bound = STARTS_WITHIN + 4 * without[64];
    assert!(beside[64] <= bound, "{beside:?} beside a new kernel, {without:?} without one");
}

fn a_kernel_waits_for_what_is_launched_after_a_new_one() {
    static FLAG: AtomicBool = AtomicBool::new(false);
    let gpu = gpu();
    let queues = [(); 3].map(|()| Queue::new(&gpu).unwrap());
    let (spinning, loaded) = (gate(&FLAG), empty::<100>(""));
    queues[1].parallel_for(1, loaded).unwrap().wait().unwrap();
    FLAG.store(true, Ordering::Release);
    queues[0].parallel_for(1, spinning).unwrap().wait().unwrap();
    // Both have ended when this returns, and it is not the flag that ends them.
    let loaded_and_copied = |number: u32| {
        let began = Instant::now();
        queues[1].parallel_for(1, loaded).unwrap().wait().unwrap();
        let numbers = Buffer::from_vec(vec![number; 4]).unwrap();
        let filled = queues[2].submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.fill(numbers, 7)
        });
        filled.unwrap();
        assert_eq!(numbers.to_vec().unwrap(), [7; 4]);
        began.elapsed().as_micros().to_string()
    };
    let mut times = [const { Vec::new() }; 2];
    macro_rules! rounds {
        ($($n:literal)*) => {$({
            FLAG.store(false, Ordering::Release);
            let new = empty::<$n>("");
            let before = counters();
            let running = queues[0].parallel_for(1, spinning).unwrap();
            times[0].push(loaded_and_copied($n));
            let delayed = queues[0].parallel_for(1, new).unwrap();
            // The flag is set only when a loaded kernel and a copy have ended.
            if $n % 2 == 1 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            times[1].push(loaded_and_copied($n));
            assert!(!running.is_complete() && !delayed.is_complete());
            assert_eq!((counters() - before).loads, 0);
            FLAG.store(true, Ordering::Release);
            delayed.wait().unwrap();
            running.wait().unwrap();
            assert_eq!((counters() - before).loads, 1);
        })*};
    }
    for_64!(rounds);
    println!("without={}\nbeside={}", times[0].join(" "), times[1].join(" "));
}

#[test]
fn a_first_launch_starts_although_another_thread_keeps_the_gpu_busy() {
    with_driver("busy");
}

fn another_thread_keeps_the_gpu_busy() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let gpu = gpu();
    let stream = empty::<100>("");
    Queue::new(&gpu).unwrap().parallel_for(1, stream).unwrap().wait().unwrap();
    std::thread::scope(|scope| {
        let busy = scope.spawn(|| {
            let queue = Queue::new(&gpu).unwrap();
            let mut last = queue.parallel_for(1, stream).unwrap();
            while !IS_OVER.load(Ordering::Relaxed) {
                // There is always another one.
                let next = queue.parallel_for(1, stream).unwrap();
                last.wait().unwrap();
                last = next;
            }
        });
        let queue = Queue::new(&gpu).unwrap();
        macro_rules! launch {
            ($($n:literal)*) => {$(queue.parallel_for(1, empty::<$n>("")).unwrap().wait().unwrap();)*};
        }
        for_64!(launch);
        IS_OVER.store(true, Ordering::Relaxed);
        busy.join().unwrap();
    });
}

#[test]
fn a_refusal_of_a_delayed_launch_names_kernel_and_device() {
    let ended = with_driver("refused");
    let line = ended.value("error");
    assert!(line.starts_with("kernel \"first_launch::empty<7>") && line.contains("on device \""), "{line}");
    assert!(line.contains("was not loaded: cuModuleLoadDataEx failed with CUDA_ERROR_INVALID_PTX"), "{line}");
    assert_eq!(ended.value("code"), "Build");
    assert_eq!((ended.value("event"), ended.value("again")), (line, "Ok(())"));
}

fn the_driver_refuses_a_delayed_launch() {
    static FLAG: AtomicBool = AtomicBool::new(false);
    let queue = Queue::new(&gpu()).unwrap();
    queue.parallel_for(1, gate(&FLAG)).unwrap();
    let event = queue.parallel_for(1, empty::<7>("syntax error")).unwrap();
    FLAG.store(true, Ordering::Release);
    let error = queue.wait().unwrap_err();
    println!("error={error}\ncode={:?}", error.code());
    println!("event={}", event.wait().unwrap_err());
    println!("again={:?}", queue.wait());
}

#[test]
fn sources_are_compiled_when_no_kernel_runs() {
    with_driver("sources");
}

fn kernels_of_sources() {
    use oxisycl::source_bundle::SourceBundle;
    static FLAG: AtomicBool = AtomicBool::new(false);
    let gpu = gpu();
    let (queue, other) = (Queue::new(&gpu).unwrap(), Queue::new(&gpu).unwrap());
    let loaded = empty::<100>("");
    other.parallel_for(1, loaded).unwrap().wait().unwrap();
    queue.parallel_for(1, gate(&FLAG)).unwrap();
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n\
                .visible .entry raw_add(.param .u64 x, .param .u64 y, .param .u32 a)\n";
    std::thread::scope(|scope| {
        let compiling = scope.spawn(|| {
            // SAFETY: the driver knows what its kernel does.
            let bundle = unsafe { SourceBundle::from_ptx(queue.context(), &gpu, text) }.unwrap();
            bundle.kernel("raw_add").unwrap();
        });
        // Loaded kernels go on meanwhile, and one may be what the running one waits for.
        for _ in 0..10 {
            other.parallel_for(1, loaded).unwrap().wait().unwrap();
        }
        assert!(!compiling.is_finished());
        FLAG.store(true, Ordering::Release);
        compiling.join().unwrap();
    });
}

#[test]
fn a_second_process_loads_nothing_after_its_first_submit() {
    let driver = Driver::new();
    let cache = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("profiles-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&cache);
    // How many kernels are loaded when the queue is made, and after that.
    let loads = |more: &[(&str, &str)]| {
        let variables = [driver.variable(), ("OXISYCL_CACHE_DIR", cache.to_str().unwrap())];
        let ended = run("profile", &[&variables, more].concat()).succeeded();
        [ended.value("ahead"), ended.value("later")].map(|n| n.parse::<u64>().unwrap())
    };
    assert_eq!(loads(&[]), [0, 5]);
    assert_eq!(loads(&[]), [5, 0]);
    assert_eq!(loads(&[("OXISYCL_LOAD", "lazy")]), [0, 5]);
    assert_eq!(loads(&[("OXISYCL_LOAD", "all")]), [6, 0]);
    // Neither of these has changed the profile.
    assert_eq!(loads(&[]), [5, 0]);
    assert_eq!(loads(&[("OXISYCL_CACHE_SIZE", "0")]), [0, 5]);
    let profile = std::fs::read_dir(cache.join("profile")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&profile, "no profile").unwrap();
    assert_eq!(loads(&[]), [0, 5]);
    assert_eq!(loads(&[]), [5, 0]);
    std::fs::remove_dir_all(&cache).unwrap();
}

fn launch_five_of_six() {
    let kernels = (empty::<1>(""), empty::<2>(""), empty::<3>(""), empty::<4>(""), empty::<5>(""));
    let _not_launched = empty::<6>("");
    let queue = Queue::new(&gpu()).unwrap();
    let ahead = counters();
    // Another queue loads nothing.
    let other = Queue::new(&gpu()).unwrap();
    queue.parallel_for(1, kernels.0).unwrap();
    queue.parallel_for(1, kernels.1).unwrap();
    other.parallel_for(1, kernels.2).unwrap();
    other.parallel_for(1, kernels.3).unwrap();
    other.parallel_for(1, kernels.4).unwrap();
    queue.wait().unwrap();
    other.wait().unwrap();
    println!("ahead={}\nlater={}", ahead.loads, (counters() - ahead).loads);
}
