//! What this crate costs beside the bare driver calls, measured in the same run.
//!
//! Prints one line per measurement: name, ours, the driver's, their ratio. Needs a driver; says so where there is none.

use std::alloc::Layout;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use oxisycl_backend::{
    ArgumentBlock, Backend, Batching, Command, Completion, CopyCommand, Dependency, DependencyKind, Device,
    KernelCommand, LoadedKernel, MemoryId, Outcome, PitchedBox, Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_cuda::{CudaBackend, native_device};
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout, SourceLocation};
use oxisycl_types::LaunchRange;

const PTX: &str = concat!(include_str!("../tests/gpu/kernels.ptx"), "\0");
const LAUNCHES: u64 = 50_000;
const ROUNDS: usize = 7;
const COPY_SIZE: usize = 64 << 20;

/// The driver's own calls.
struct Bare {
    library: Library,
    stream: *mut c_void,
    function: *mut c_void,
}

impl Bare {
    /// In the primary context of the device, which stays current. The backend is not asked for it: then it would batch nothing.
    fn new(device: c_int) -> Self {
        // SAFETY: the driver was loaded by the backend already; the calls have these types.
        unsafe {
            let library = Library::new("libcuda.so.1").expect("the driver");
            let retain: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int> =
                library.get(b"cuDevicePrimaryCtxRetain\0").unwrap();
            let mut context = ptr::null_mut();
            assert_eq!(retain(&raw mut context, device), 0);
            let set: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> c_int> =
                library.get(b"cuCtxSetCurrent\0").unwrap();
            assert_eq!(set(context), 0);
            let create: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int> =
                library.get(b"cuStreamCreate\0").unwrap();
            let (mut stream, mut module, mut function) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
            assert_eq!(create(&raw mut stream, 1), 0);
            let load: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, *const u8) -> c_int> =
                library.get(b"cuModuleLoadData\0").unwrap();
            assert_eq!(load(&raw mut module, PTX.as_ptr()), 0);
            let get: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const u8) -> c_int> =
                library.get(b"cuModuleGetFunction\0").unwrap();
            assert_eq!(get(&raw mut function, module, c"empty".as_ptr().cast()), 0);
            Self { library, stream, function }
        }
    }

    #[expect(clippy::type_complexity, reason = "the driver's signature")]
    fn launcher(&self) -> impl Fn() + '_ {
        // SAFETY: the call has this type.
        let launch: Symbol<
            '_,
            unsafe extern "C" fn(
                *mut c_void,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                c_uint,
                *mut c_void,
                *mut *mut c_void,
                *mut *mut c_void,
            ) -> c_int,
        > = unsafe { self.library.get(b"cuLaunchKernel\0") }.unwrap();
        let parameter = [0u8; 112];
        move || {
            let mut parameters = [parameter.as_ptr().cast_mut().cast::<c_void>()];
            // SAFETY: the kernel has one parameter of this size.
            let code = unsafe {
                let (stream, extra) = (self.stream, ptr::null_mut());
                launch(self.function, 1, 1, 1, 32, 1, 1, 0, stream, parameters.as_mut_ptr(), extra)
            };
            assert_eq!(code, 0);
        }
    }

    fn synchronizer(&self) -> impl Fn() + '_ {
        // SAFETY: the call has this type.
        let synchronize: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> c_int> =
            unsafe { self.library.get(b"cuStreamSynchronize\0") }.unwrap();
        // SAFETY: the stream is alive.
        move || assert_eq!(unsafe { synchronize(self.stream) }, 0)
    }

    fn copier(&self) -> impl Fn(*mut u8, *mut u8, usize) + '_ {
        // SAFETY: the call has this type.
        let copy: Symbol<'_, unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> c_int> =
            unsafe { self.library.get(b"cuMemcpyAsync\0") }.unwrap();
        // SAFETY: the callers pass allocations of that size.
        move |to, from, size| assert_eq!(unsafe { copy(to as u64, from as u64, size, self.stream) }, 0)
    }
}

/// Counts completions.
#[derive(Default)]
struct Counter(AtomicU64);

impl Completion for Counter {
    unsafe fn complete(self: Arc<Self>, outcome: Outcome) {
        assert!(outcome.result.is_ok());
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Counter {
    /// Waits as the runtime does: helping, then sleeping a little.
    fn wait(&self, queue: &Arc<dyn Queue>, n: u64) {
        let mut idle = Instant::now();
        queue.help(&mut |has_helped| {
            if has_helped {
                idle = Instant::now();
            } else if idle.elapsed() > Duration::from_micros(20) {
                std::thread::sleep(Duration::from_micros(5));
            }
            self.0.load(Ordering::Acquire) < n
        });
    }
}

fn kernel(device: &Arc<dyn Device>) -> Arc<dyn LoadedKernel> {
    let entry = KernelEntry {
        location: SourceLocation { file: "kernels.ptx".to_owned(), line: 1, column: 1 },
        may_panic: true,
        ..KernelEntry::new("empty", [1; 16], Form::Single, ParameterLayout { size: 0, align: 1 }, "empty")
    };
    let image = DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: vec![entry],
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: PTX.trim_end_matches('\0').as_bytes().to_vec(),
    };
    // SAFETY: the code of this benchmark.
    unsafe { device.load(&image, None) }.expect("the driver takes the image").kernel("empty").expect("the kernel")
}

fn command(code: &Arc<dyn LoadedKernel>) -> Command {
    let descriptor = oxisycl_backend_testing::contract::native()[1];
    let (code, arguments, range) = (Some(code.clone()), ArgumentBlock::new(&()), LaunchRange::SINGLE);
    Command::from(KernelCommand { descriptor, code, native: None, arguments, range, group: None })
}

/// Seconds of the fastest of some rounds of both, taken in turn.
fn compare(mut ours: impl FnMut() -> f64, mut bare: impl FnMut() -> f64) -> (f64, f64) {
    (0..ROUNDS).fold((f64::MAX, f64::MAX), |(a, b), _| (a.min(ours()), b.min(bare())))
}

fn print(name: &str, unit: &str, (ours, bare): (f64, f64)) {
    println!("{name:24} ours {ours:9.3} {unit}  driver {bare:9.3} {unit}  ratio {:.3}", ours / bare);
}

fn time(f: impl FnOnce()) -> f64 {
    let began = Instant::now();
    f();
    began.elapsed().as_secs_f64()
}

fn launches(device: &Arc<dyn Device>, bare: &Bare) {
    let code = kernel(device);
    let (launch, synchronize) = (bare.launcher(), bare.synchronizer());
    let bare_loop = || {
        time(|| {
            (0..LAUNCHES).for_each(|_| launch());
            synchronize();
        }) / LAUNCHES as f64
            * 1e6
    };
    for (name, in_order, chained, batching) in [
        ("launch in order", true, false, Batching::Off),
        ("launch in order, chained", true, true, Batching::Off),
        ("launch out of order", false, false, Batching::Off),
        ("batched in order", true, false, Batching::On),
        ("batched in order, chained", true, true, Batching::On),
    ] {
        let options = QueueOptions { in_order, batching, ..QueueOptions::default() };
        let queue = create_queue(device, &options).expect("a queue");
        let ours = || {
            let counter = Arc::new(Counter::default());
            let mut last: Option<Dependency> = None;
            time(|| {
                for _ in 0..LAUNCHES {
                    let dependencies = last.as_slice();
                    // SAFETY: the kernel uses no memory.
                    let event = unsafe { queue.issue(command(&code), dependencies, counter.clone()) };
                    let event = event.expect("the command is accepted");
                    if chained {
                        last = Some(Dependency { event, kind: DependencyKind::Order });
                    }
                }
                counter.wait(&queue, LAUNCHES);
            }) / LAUNCHES as f64
                * 1e6
        };
        print(name, "us", compare(ours, bare_loop));
    }
}

fn latency(device: &Arc<dyn Device>, bare: &Bare) {
    const N: u64 = 2000;
    let code = kernel(device);
    let queue = create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue");
    let (launch, synchronize) = (bare.launcher(), bare.synchronizer());
    let ours = || {
        let counter = Arc::new(Counter::default());
        time(|| {
            for n in 1..=N {
                // SAFETY: the kernel uses no memory.
                unsafe { queue.issue(command(&code), &[], counter.clone()) }.expect("the command is accepted");
                counter.wait(&queue, n);
            }
        }) / N as f64
            * 1e6
    };
    let bare = || {
        time(|| {
            (0..N).for_each(|_| {
                launch();
                synchronize();
            });
        }) / N as f64
            * 1e6
    };
    print("latency", "us", compare(ours, bare));
}

fn copies(device: &Arc<dyn Device>, bare: &Bare) {
    let memory = device.memory();
    let layout = Layout::from_size_align(COPY_SIZE, 256).expect("a layout");
    let near = memory.allocate(UsmKind::Device, layout, true).expect("there is memory");
    let host = memory.allocate(UsmKind::Host, layout, true).expect("there is memory");
    let queue = create_queue(device, &QueueOptions { in_order: true, ..QueueOptions::default() }).expect("a queue");
    let (copy, synchronize) = (bare.copier(), bare.synchronizer());
    let row = |memory, pointer| PitchedBox { memory, pointer, row_pitch: 0, slice_pitch: 0 };
    let ends = [row(MemoryId::HOST, host.as_ptr()), row(device.info().memory.id, near.as_ptr())];
    for (name, [source, target]) in [("copy to the device", ends), ("copy to the host", [ends[1], ends[0]])] {
        let ours = || {
            let counter = Arc::new(Counter::default());
            time(|| {
                let command = Command::from(CopyCommand { source, target, extent: [1, 1, COPY_SIZE] });
                // SAFETY: both allocations are alive and used by nobody else.
                unsafe { queue.issue(command, &[], counter.clone()) }.expect("the command is accepted");
                counter.wait(&queue, 1);
            }) * 1e3
        };
        let bare = || {
            time(|| {
                copy(target.pointer, source.pointer, COPY_SIZE);
                synchronize();
            }) * 1e3
        };
        let (ours, bare) = compare(ours, bare);
        print(name, "ms", (ours, bare));
        println!("{:24} {:.1} GB/s", "", COPY_SIZE as f64 / ours / 1e6);
    }
    // SAFETY: allocated above; the commands have ended.
    unsafe {
        memory.free(near, UsmKind::Device, layout);
        memory.free(host, UsmKind::Host, layout);
    }
}

fn main() {
    let platforms = CudaBackend::new().platforms().expect("a driver that can be used, or none");
    let Some(device) = platforms.iter().flat_map(|platform| platform.devices()).next() else {
        println!("skipped: there is no CUDA driver, or it shows no device");
        return;
    };
    println!("{}, {}", device.info().name, device.info().driver_version);
    let bare = Bare::new(native_device(&*device).expect("a device of this backend"));
    launches(&device, &bare);
    latency(&device, &bare);
    copies(&device, &bare);
}
