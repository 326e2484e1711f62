//! How programs meet a driver that compiles for a long time, and one that crashes. A launch ends in time with what can be done, and other
//! kernels run. A later process knows which kernel it was.
//!
//! On the GPU of a driver without any, which the CUDA backend's tests have and which does what a comment of the code tells it.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
mod fake_gpu;
mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use child_process::{Ended, role, run};
use fake_gpu::{Driver, kernel};
use support::watchdog;

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("waits") => wait_for_a_slow_driver(),
        Some("leaves") => leave_a_slow_driver(),
        Some("crashes") => launch_what_crashes_the_driver(),
        Some(other) => panic!("no role {other}"),
    }
}

/// A driver, and an empty folder for its binaries.
struct Machine {
    driver: Driver,
    cache: PathBuf,
}

impl Machine {
    fn new(name: &str) -> Self {
        let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("binaries-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&cache);
        Self { driver: Driver::new(), cache }
    }

    /// Runs a process that waits one second for the driver.
    fn run(&self, role: &str, more: &[(&str, &str)]) -> Ended {
        let cache = ("OXISYCL_CACHE_DIR", self.cache.to_str().unwrap());
        run(role, &[&[self.driver.variable(), cache, ("OXISYCL_COMPILE_LIMIT", "1")], more].concat())
    }

    /// The files that say that a driver is compiling.
    fn markers(&self) -> Vec<PathBuf> {
        markers(&self.cache)
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.cache);
    }
}

fn markers(cache: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(cache).into_iter().flatten().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "compiling")).collect()
}

fn gpu_queue() -> Queue {
    let gpu = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda);
    Queue::new(&gpu.unwrap()).unwrap()
}

/// Launches the kernel, whose image is not loaded; gives the text of the error.
#[track_caller]
fn refused<K>(queue: &Queue, kernel: K) -> String
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
{
    let error = queue.parallel_for(1, kernel).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Build, "{error:?}");
    error.to_string()
}

#[test]
fn a_launch_waits_for_a_slow_driver_in_time_other_kernels_run_and_its_answer_is_used() {
    let machine = Machine::new("waits");
    machine.run("waits", &[]).succeeded();
    assert_eq!(machine.markers(), Vec::<PathBuf>::new());
}

fn wait_for_a_slow_driver() {
    let _limit = watchdog();
    let slow = kernel("empty", "// takes milliseconds: 4000", |_| {});
    let quick = kernel("empty", "", |_| _ = std::hint::black_box(1));
    let queue = gpu_queue();
    let begun = Instant::now();
    for _ in 0..2 {
        let text = refused(&queue, slow);
        assert!(text.contains("slow_driver::wait_for_a_slow_driver"), "{text}");
        let expected = "the driver has not compiled it within 1 s (OXISYCL_COMPILE_LIMIT; 0 sets no limit)";
        assert!(text.contains(expected), "{text}");
        assert!(begun.elapsed() >= Duration::from_secs(1), "it was given its time");
    }
    queue.parallel_for(1, quick).unwrap().wait().unwrap();
    let cache = PathBuf::from(std::env::var_os("OXISYCL_CACHE_DIR").unwrap());
    let markers = markers(&cache);
    // A machine that is slow itself may be past the driver's time by now.
    if begun.elapsed() < Duration::from_secs(3) {
        let [marker] = &markers[..] else { panic!("{markers:?}") };
        let text = std::fs::read_to_string(marker).unwrap();
        assert!(text.contains("kernel slow_driver::wait_for_a_slow_driver"), "{text}");
    }
    let event = loop {
        match queue.parallel_for(1, slow) {
            Ok(event) => break event,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(50), "its answer is used: {error:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(begun.elapsed() >= Duration::from_secs(4), "the driver was asked once");
    event.wait().unwrap();
}

#[test]
fn a_process_that_ends_in_order_while_a_driver_compiles_leaves_no_sign_of_a_crash() {
    let machine = Machine::new("leaves");
    for _ in 0..2 {
        let ended = machine.run("leaves", &[]).succeeded();
        assert!(ended.elapsed < Duration::from_secs(60), "{ended:#?}");
        assert_eq!(machine.markers(), Vec::<PathBuf>::new());
    }
}

fn leave_a_slow_driver() {
    let slow = kernel("empty", "// takes milliseconds: 100000", |_| {});
    let text = refused(&gpu_queue(), slow);
    assert!(text.contains("has not compiled it within 1 s"), "{text}");
}

#[test]
fn a_kernel_whose_driver_ended_two_processes_is_refused_by_the_next_one_until_its_marker_is_removed() {
    const CRASHES: &[(&str, &str)] = &[("FAKE_DRIVER_CRASHES", "1")];
    let machine = Machine::new("crashes");
    for _ in 0..2 {
        let ended = machine.run("crashes", CRASHES);
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{ended:#?}");
    }
    let markers = machine.markers();
    let [marker] = &markers[..] else { panic!("{markers:?}") };

    for _ in 0..2 {
        let ended = machine.run("crashes", CRASHES).succeeded();
        let text = ended.value("refused");
        assert!(text.contains("slow_driver::launch_what_crashes_the_driver"), "{text}");
        assert!(text.contains(" ended while the driver compiled it: the driver crashed"), "{text}");
        assert!(text.contains(&format!("remove \"{}\", else use another device", marker.display())), "{text}");
        assert_eq!(ended.value("quick"), "Ok(())");
    }

    // Whoever has mended the driver says so.
    std::fs::remove_file(marker).unwrap();
    let ended = machine.run("crashes", &[]).succeeded();
    assert_eq!(ended.value("launched"), "Ok(())");
    assert_eq!(machine.markers(), Vec::<PathBuf>::new());
}

fn launch_what_crashes_the_driver() {
    let _limit = watchdog();
    let crashing = kernel("empty", "// crashes the driver", |_| {});
    let quick = kernel("empty", "", |_| _ = std::hint::black_box(1));
    let queue = gpu_queue();
    match queue.parallel_for(1, crashing) {
        Ok(event) => println!("launched={:?}", event.wait()),
        Err(error) => println!("refused={error}"),
    }
    println!("quick={:?}", queue.parallel_for(1, quick).and_then(|event| event.wait()));
}
