//! When launches get code for the values of their specialization constants, on the GPU of a driver without any. The CUDA backend's tests have that driver.
//!
//! The driver's kernel reads the values from the launch, as code for all values does. What it is given is seen by the counters.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "support/child.rs"]
mod child_process;
#[path = "support/fake_gpu.rs"]
mod fake_gpu;
mod support;

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl::argument::{Bound, Sent, Specialized, SpecializedArgument, list, specialized};
use oxisycl::kernel_bundle::{Executable, Input, KernelBundle};
use oxisycl::observe::counters;
use oxisycl::prelude::*;
use oxisycl::specialization::SpecId;
use oxisycl::usm::UsmPointer;
use oxisycl::{BackendKind, KernelId, Result};
use oxisycl_image::{Argument, SpecializedLoad};

use child_process::{role, run};
use fake_gpu::{Driver, kernel, register};
use support::watchdog;

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    let _limit = watchdog();
    match role().as_deref() {
        None => {}
        Some("named") => named_constants(),
        Some("threads") => two_values_on_four_threads(),
        Some("unnamed") => values_without_a_name(),
        Some("busy") => a_busy_device(),
        Some("off") => nothing_is_compiled(),
        Some("bundles") => constants_of_bundles(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Runs a process with the driver.
#[track_caller]
fn with_driver(role: &str, more: &[(&str, &str)]) -> String {
    let driver = Driver::new();
    let no_cache = ("OXISYCL_CACHE_SIZE", "0");
    let ended = run(role, &[&[driver.variable(), no_cache], more].concat());
    ended.succeeded().stderr
}

fn gpu_queue() -> Queue {
    let gpu = Device::all().unwrap().into_iter().find(|device| device.backend() == BackendKind::Cuda);
    Queue::new(&gpu.unwrap()).unwrap()
}

/// The comments and loads of a kernel with a factor and a summand at these offsets.
fn loads(register: &str) -> String {
    let load = |offset| SpecializedLoad::text(offset, 4, register, "affine_param_1");
    format!("{}\n{}", load(8), load(12))
}

static FACTORS: SpecId<[u32; 2]> = SpecId::new([1, 0]);

/// Multiplies `numbers` by a factor, and adds a summand and each one's position.
fn launch(queue: &Queue, numbers: UsmPointer<u32>, factors: Option<[u32; 2]>) -> Result<Event> {
    queue.submit(|cg| {
        if let Some(factors) = factors {
            cg.set_constant(&FACTORS, factors)?;
        }
        let factors = cg.constant(&FACTORS);
        cg.parallel_for(4, affine(numbers, factors))
    })
}

/// The kernel, of which an image is registered.
fn affine(
    numbers: UsmPointer<u32>,
    factors: Specialized<[u32; 2]>,
) -> impl Fn(Item<'_, 1>) + Copy + Send + Sync + 'static {
    static REGISTERED: Once = Once::new();
    let affine = move |_: Item<'_, 1>| _ = std::hint::black_box((numbers, factors));
    REGISTERED.call_once(|| _ = kernel("affine", &loads("%r1"), affine));
    affine
}

/// As [`launch`], with the values and the kernel of a bundle.
fn launch_by(queue: &Queue, numbers: UsmPointer<u32>, bundle: &KernelBundle<Executable>) -> Result<Event> {
    queue.submit(|cg| {
        cg.use_bundle(bundle)?;
        let factors = cg.constant(&FACTORS);
        cg.parallel_for(4, affine(numbers, factors))
    })
}

/// Launches, and compares what the kernel has made of `[1, 2, 3, 4]`.
fn check(queue: &Queue, factors: Option<[u32; 2]>) {
    check_launch(queue, factors.unwrap_or([1, 0]), |numbers| launch(queue, numbers, factors));
}

fn check_launch(queue: &Queue, [factor, summand]: [u32; 2], launch: impl FnOnce(UsmPointer<u32>) -> Result<Event>) {
    let mut numbers = queue.malloc_shared::<u32>(4).unwrap();
    numbers.copy_from_slice(queue, &[1, 2, 3, 4]).unwrap();
    launch(numbers.pointer()).unwrap().wait().unwrap();
    let expected: Vec<u32> = (0..4).map(|i| (i + 1) * factor + summand + i).collect();
    assert_eq!(numbers.to_vec(queue).unwrap(), expected);
}

#[test]
fn each_value_of_a_named_constant_has_code_of_its_own_up_to_a_limit() {
    let errors = with_driver("named", &[]);
    assert_eq!(errors.matches("more than 16 values of its specialization constants").count(), 1, "{errors}");
}

fn named_constants() {
    let queue = gpu_queue();
    let built = || counters().specialized_kernels;
    check(&queue, None);
    assert_eq!(built(), 1, "the default is a value");
    for round in 0..3 {
        for factor in 2..30 {
            check(&queue, Some([factor, 7]));
            assert_eq!(built(), if round > 0 { 16 } else { u64::from(factor).min(16) });
        }
    }
    // In each round, but for the default and fifteen others.
    assert_eq!(counters().unspecialized_launches, 3 * (28 - 15));
}

#[test]
fn two_values_in_turn_on_four_threads_are_compiled_once_each() {
    with_driver("threads", &[]);
}

fn two_values_on_four_threads() {
    let queue = gpu_queue();
    std::thread::scope(|scope| {
        for thread in 0..4u32 {
            let queue = &queue;
            scope.spawn(move || (0..50).for_each(|round| check(queue, Some([3 + (thread + round) % 2, 1]))));
        }
    });
    // Threads may have kept the device from being idle at each launch.
    check(&queue, Some([3, 1]));
    check(&queue, Some([4, 1]));
    assert_eq!(counters().specialized_kernels, 2);
}

#[test]
fn values_without_a_name_are_compiled_when_they_come_again() {
    with_driver("unnamed", &[]);
}

/// What the kernel without captures is passed.
type Passed = (UsmPointer<u32>, SpecializedArgument<[u32; 2]>);

/// Registers an image for the kernel.
fn register_passed<K>(_: K)
where
    K: Fn(Item<'_, 1>, (UsmPointer<u32>, [u32; 2])) + 'static,
{
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        let name = std::any::type_name::<K>();
        let arguments = Argument::list(Bound::<K, Sent<Passed>>::TYPE);
        assert_eq!(arguments, list::<Passed>(), "the kernel captures nothing");
        register::<Bound<K, Sent<Passed>>>("affine", &loads("%r1"), name, arguments);
    });
}

fn values_without_a_name() {
    let queue = gpu_queue();
    let mut numbers = queue.malloc_shared::<u32>(4).unwrap();
    let mut launch = |factor: u32, is_named: bool| {
        numbers.copy_from_slice(&queue, &[1, 2, 3, 4]).unwrap();
        let event = queue.submit(|cg| {
            if is_named {
                // It is passed beside the value without a name.
                let _ = cg.constant(&FACTORS);
            }
            let kernel = |_: Item<'_, 1>, passed: (UsmPointer<u32>, [u32; 2])| _ = std::hint::black_box(passed);
            register_passed(kernel);
            cg.parallel_for_with(4, (numbers.pointer(), specialized([factor, 1])), kernel)
        });
        event.unwrap().wait().unwrap();
        let expected: Vec<u32> = (0..4).map(|i| (i + 1) * factor + 1 + i).collect();
        assert_eq!(numbers.to_vec(&queue).unwrap(), expected);
        (counters().specialized_kernels, counters().unspecialized_launches)
    };
    assert_eq!(launch(2, false), (0, 1));
    // A constant of the group makes no difference.
    assert_eq!(launch(3, true), (0, 2));
    assert_eq!(launch(2, false), (1, 2));
    assert_eq!(launch(2, true), (1, 2));
    assert_eq!(launch(3, true), (2, 2));
}

#[test]
fn nothing_is_compiled_while_a_command_is_unfinished() {
    with_driver("busy", &[]);
}

fn a_busy_device() {
    let queue = gpu_queue();
    let numbers = queue.malloc_shared::<u32>(4).unwrap();
    // The code for all values is loaded.
    static IS_OPEN: AtomicBool = AtomicBool::new(false);
    check(&queue, None);
    let blocked = queue.submit(|cg| {
        cg.host_task(|_| {
            while !IS_OPEN.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        })
    });
    for _ in 0..3 {
        launch(&queue, numbers.pointer(), Some([5, 5])).unwrap();
    }
    assert_eq!((counters().specialized_kernels, counters().unspecialized_launches), (1, 3));
    IS_OPEN.store(true, Ordering::Release);
    blocked.unwrap().wait().unwrap();
    queue.wait().unwrap();
    check(&queue, Some([5, 5]));
    assert_eq!(counters().specialized_kernels, 2);
}

#[test]
fn the_setting_turns_it_off() {
    with_driver("off", &[("OXISYCL_SPECIALIZE", "0")]);
}

fn nothing_is_compiled() {
    let queue = gpu_queue();
    for factor in [2, 2, 3] {
        check(&queue, Some([factor, 1]));
    }
    assert_eq!((counters().specialized_kernels, counters().unspecialized_launches), (0, 0));
}

#[test]
fn values_of_bundles_are_put_into_the_code_at_the_first_launch() {
    let folder = std::env::temp_dir().join(format!("oxisycl-bundles-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    with_driver("bundles", &[("FAKE_DRIVER_KEEPS_CODE", folder.to_str().unwrap())]);
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut loaded: Vec<String> = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    std::fs::remove_dir_all(&folder).unwrap();
    // The backend's own kernels are a module, too.
    loaded.retain(|code| code.contains(".entry affine("));
    let [general, first, second, third] = &loaded[..] else { panic!("{loaded:#?}") };
    let loads = |code: &str| code.matches("ld.param").count();
    assert_eq!(loaded.iter().map(|code| loads(code)).collect::<Vec<_>>(), [2, 0, 0, 0], "{loaded:#?}");
    let with = |values: [&str; 2]| {
        let mut code = general.clone();
        for (offset, value) in [8, 12].into_iter().zip(values) {
            let load = format!("ld.param.b32 %r1, [affine_param_1+{offset}];");
            assert!(general.contains(&load), "{general}");
            code = code.replace(&load, &format!("mov.b32 %r1, {value};"));
        }
        code
    };
    assert_eq!([first, second, third], [&with(["0x3", "0x7"]), &with(["0x1", "0x0"]), &with(["0x5", "0x7"])]);
}

/// Launches by three bundles: with a value, with that of another, and with none.
fn constants_of_bundles() {
    let queue = gpu_queue();
    let count = || (counters().specialized_kernels, counters().unspecialized_launches);
    let numbers = queue.malloc_shared::<u32>(4).unwrap();
    let id = KernelId::of_range(&affine(numbers.pointer(), Specialized::of([1, 0])));
    let input =
        || KernelBundle::<Input>::builder(queue.context()).with_kernels(std::slice::from_ref(&id)).get().unwrap();
    let built = |factors: Option<[u32; 2]>| {
        let bundle = input();
        factors.into_iter().for_each(|factors| bundle.set_constant(&FACTORS, factors));
        bundle.build().unwrap()
    };
    let check = |bundle: &KernelBundle<Executable>, factors| {
        check_launch(&queue, factors, |numbers| launch_by(&queue, numbers, bundle));
        assert_eq!(counters().unspecialized_launches, 0);
    };
    let [bundle, same, default] = [Some([3, 7]), Some([3, 7]), None].map(built);
    assert_eq!(count(), (0, 0), "which numbers of a launch are the constant's is known when it comes");
    for _ in 0..3 {
        check(&bundle, [3, 7]);
        check(&same, [3, 7]);
    }
    assert_eq!(count(), (1, 0), "the same values in two bundles are compiled once");
    check(&default, [1, 0]);
    assert_eq!(count(), (2, 0), "the default is a value");
    // A launch without a bundle has the same code, and the other way round.
    self::check(&queue, Some([3, 7]));
    self::check(&queue, Some([5, 7]));
    assert_eq!(count(), (3, 0));
    check(&built(Some([5, 7])), [5, 7]);
    assert_eq!(count(), (3, 0));
}
