//! A library that uses the driver by itself, between two kernels: cuBLAS multiplies matrices on the queue's own stream, as a native command.
//!
//! The command has accessors, so the kernel before it, its copies and the kernel behind it need no word about order. The host waits once, for
//! the result. Without an NVIDIA GPU, cuBLAS or code for GPUs, the example says so and ends.
//!
//! `cargo sycl run --release --example 20_cublas`

use std::ffi::{c_int, c_void};

use libloading::Library;
use oxisycl::interop::NativeContext;
use oxisycl::prelude::*;
use oxisycl::{BackendKind, KernelId};

const ROWS: usize = 96;
const DEPTH: usize = 160;
const COLUMNS: usize = 64;

#[cfg(windows)]
const NAMES: &[&str] = &["cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"];
#[cfg(not(windows))]
const NAMES: &[&str] = &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"];

#[cfg(windows)]
const DRIVER: &str = "nvcuda.dll";
#[cfg(not(windows))]
const DRIVER: &str = "libcuda.so.1";

type Handle = *mut c_void;
type WithHandle = unsafe extern "C" fn(Handle) -> c_int;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> c_int;
type Sgemm = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    *const f32,
    *const f32,
    c_int,
    *const f32,
    c_int,
    *const f32,
    *mut f32,
    c_int,
) -> c_int;

/// A handle of cuBLAS, and the functions that a native command needs.
#[derive(Clone, Copy)]
struct Cublas {
    handle: Handle,
    set_stream: SetStream,
    sgemm: Sgemm,
}

// SAFETY: cuBLAS takes a handle on any thread, and one thread at a time uses this one: the command's, and then `main`.
unsafe impl Send for Cublas {}

impl Cublas {
    /// A handle for the current context.
    fn new(library: &Library) -> oxisycl::Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the types are those of `cublas_v2.h`; writes a handle.
        unsafe {
            let create = symbol::<unsafe extern "C" fn(*mut Handle) -> c_int>(library, "cublasCreate_v2")?;
            check("cublasCreate", create(&raw mut handle))?;
            let set_stream = symbol(library, "cublasSetStream_v2")?;
            Ok(Self { handle, set_stream, sgemm: symbol(library, "cublasSgemm_v2")? })
        }
    }

    /// Puts `c = a * b` on the stream. A matrix by rows is the transposed one by columns, which cuBLAS reads: so the product is `b * a` there.
    ///
    /// # Safety
    /// The stream is live, and its context current. The matrices are memory of that context, and have the sides above.
    unsafe fn multiply(self, stream: *mut c_void, [a, b]: [*const f32; 2], c: *mut f32) -> oxisycl::Result {
        let (one, zero) = (1.0_f32, 0.0_f32);
        let [rows, depth, columns] = [ROWS, DEPTH, COLUMNS].map(|side| side as c_int);
        // SAFETY: by the contract of this function. Both factors are read by the call, since that is how a new handle takes them.
        unsafe {
            check("cublasSetStream", (self.set_stream)(self.handle, stream))?;
            let code =
                (self.sgemm)(self.handle, 0, 0, columns, rows, depth, &one, b, columns, a, depth, &zero, c, columns);
            check("cublasSgemm", code)
        }
    }
}

/// # Safety
/// `F` is the type of a pointer to the function of that name.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> oxisycl::Result<F> {
    // SAFETY: by the contract of this function.
    let found = unsafe { library.get::<F>(name.as_bytes()) };
    found.map(|symbol| *symbol).map_err(|error| Error::new(ErrorCode::Runtime, error.to_string()))
}

fn check(call: &str, code: c_int) -> oxisycl::Result {
    if code == 0 { Ok(()) } else { Err(Error::new(ErrorCode::Runtime, format!("{call} failed with {code}"))) }
}

/// Small whole numbers, so that the product is exact in any order of its sums.
fn element(index: usize) -> f32 {
    (index % 7) as f32 - 3.0
}

/// The product by cuBLAS minus our own, for each element.
fn differences(queue: &Queue, cublas: Cublas) -> oxisycl::Result<Vec<f32>> {
    let (a, b) = (Buffer::<f32, 2>::uninit([ROWS, DEPTH])?, Buffer::<f32, 2>::uninit([DEPTH, COLUMNS])?);
    let (product, difference) =
        (Buffer::<f32, 2>::uninit([ROWS, COLUMNS])?, Buffer::<f32, 2>::uninit([ROWS, COLUMNS])?);
    for buffer in [&a, &b] {
        queue.submit(|cg| {
            let data = cg.access(buffer, Write.no_init());
            cg.parallel_for(buffer.range(), move |item: Item<2>| data.set(item, element(item.linear_id())))
        })?;
    }
    queue.submit(|cg| {
        let (a, b, product) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&product, Write.no_init()));
        // SAFETY: the call puts work on the given stream alone, in the context that is current. It waits for nothing. It reads and writes the
        // accessors' memory, as their modes say.
        unsafe {
            cg.native_command(move |scope| {
                let (a, b) = (scope.native_memory(a)?, scope.native_memory(b)?);
                cublas.multiply(scope.native_queue(), [a, b], scope.native_memory(product)?)
            })
        }
    })?;
    queue.submit(|cg| {
        let (a, b, product) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&product, Read));
        let difference = cg.access(&difference, Write.no_init());
        cg.parallel_for([ROWS, COLUMNS], move |item: Item<2>| {
            let (a, b) = (a.view(item), b.view(item));
            let own: f32 = (0..DEPTH).map(|k| a[[item.get(0), k]] * b[[k, item.get(1)]]).sum();
            difference.set(item, product.get(item) - own);
        })
    })?;
    difference.into_vec().map_err(Error::from)
}

fn run(device: &Device, library: &Library, driver: &Library) -> oxisycl::Result {
    let queue = Queue::new(device)?;
    let NativeContext::Cuda(context) = device.native_context()? else { return Err(Error::invalid("no CUDA context")) };
    // SAFETY: the type is that of `cuda.h`. The context is the device's, which lives as long as the process. cuBLAS makes its handle for it.
    unsafe {
        let set_current = symbol::<unsafe extern "system" fn(*mut c_void) -> c_int>(driver, "cuCtxSetCurrent")?;
        check("cuCtxSetCurrent", set_current(context))?;
    }
    let cublas = Cublas::new(library)?;
    let result = differences(&queue, cublas);
    // Also after an error: the command may be on its stream still.
    queue.wait()?;
    // SAFETY: the type is that of `cublas_v2.h`. What used the handle has ended.
    check("cublasDestroy", unsafe { symbol::<WithHandle>(library, "cublasDestroy_v2")?(cublas.handle) })?;
    let differences = result?;
    assert!(differences.iter().all(|difference| *difference == 0.0), "{:?}", &differences[..8]);
    println!("cuBLAS and a kernel agree on a product of {ROWS} x {DEPTH} by {DEPTH} x {COLUMNS}, on {}", device.name());
    Ok(())
}

fn main() -> oxisycl::Result<()> {
    let is_usable = |device: &Device| device.backend() == BackendKind::Cuda && device.unusable().is_none();
    let Some(device) = Device::all()?.into_iter().find(is_usable) else {
        println!("skipped: there is no NVIDIA GPU that can be used");
        return Ok(());
    };
    if KernelId::all()?.is_empty() {
        println!("skipped: built without code for GPUs, which `cargo sycl run` makes");
        return Ok(());
    }
    // SAFETY: NVIDIA's libraries, whose initialisers may run anywhere.
    let found = NAMES.iter().find_map(|name| unsafe { Library::new(name) }.ok());
    let Some(library) = found else {
        println!("skipped: cuBLAS is not installed, there is none of {NAMES:?}");
        return Ok(());
    };
    // SAFETY: the driver, which the backend has loaded.
    let driver = unsafe { Library::new(DRIVER) }.map_err(|error| Error::new(ErrorCode::Runtime, error.to_string()))?;
    run(&device, &library, &driver)
}
