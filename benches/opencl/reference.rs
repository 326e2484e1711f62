//! The peer: bare OpenCL calls on the device that ours runs on. Its kernels in OpenCL C (`reference.cl`) are compiled by the driver with
//! the options that ours gets.
//!
//! Invariant: every launch has ended when a function here returns. Results are checked by those who ask for them.

use std::error::Error;
use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};
use std::sync::mpsc;

use oxisycl::prelude::*;
use oxisycl_backend_opencl::sys::{Code, Functions, Handle, ImageDescription, ImageFormat, code};

use crate::protocol::seconds;

/// What ours is built with; see `module.rs` of the backend.
const OPTIONS: &str = "-cl-fp32-correctly-rounded-divide-sqrt";
/// Groups that are tried, the innermost dimension first. The first leaves it to the driver.
pub(crate) const GROUPS: &[Option<[usize; 2]>] = &[
    None,
    Some([16, 1]),
    Some([32, 1]),
    Some([64, 1]),
    Some([128, 1]),
    Some([256, 1]),
    Some([512, 1]),
    Some([1024, 1]),
    Some([4096, 1]),
    Some([8, 8]),
    Some([16, 16]),
    Some([32, 8]),
];

pub(crate) type Result<T> = std::result::Result<T, String>;

/// A device with a context, a program and queues of its own.
pub(crate) struct Reference {
    functions: Functions,
    context: Handle,
    program: Handle,
    in_order: Handle,
    out_of_order: Handle,
    /// The version of the driver.
    pub(crate) driver: String,
}

fn check(call: &str, result: Code) -> Result<()> {
    if result == code::SUCCESS { Ok(()) } else { Err(format!("{call}: error {result}")) }
}

impl Reference {
    /// On a device of ours.
    pub(crate) fn of(device: &Device) -> std::result::Result<Self, Box<dyn Error>> {
        Ok(Self::open(handle_of(device)?)?)
    }

    /// On a device, by the driver's handle.
    fn open(device: Handle) -> Result<Self> {
        // SAFETY: the loader that ours has loaded as well.
        let functions = unsafe { Functions::load(None) }?;
        let driver = text(&functions, device, code::DRIVER_VERSION);
        let source = CString::new(include_str!("reference.cl")).expect("no zero byte in the source");
        let options = CString::new(OPTIONS).expect("no zero byte in the options");
        let mut result = 0;
        // SAFETY: all objects live to the end of the process. There is one device and one source, which ends with zero. Lists of properties
        // end with zero.
        unsafe {
            let context =
                (functions.clCreateContext)(null(), 1, &raw const device, null(), null_mut(), &raw mut result);
            check("clCreateContext", result)?;
            let queue = |bits: u64| {
                let (properties, mut result) = ([code::QUEUE_PROPERTIES, bits, 0], 0);
                let create = functions.clCreateCommandQueueWithProperties;
                let queue = create(context, device, properties.as_ptr(), &raw mut result);
                check("clCreateCommandQueueWithProperties", result).map(|()| queue)
            };
            let (in_order, out_of_order) = (queue(0)?, queue(code::QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)?);
            let text = source.as_ptr();
            let program = (functions.clCreateProgramWithSource)(context, 1, &raw const text, null(), &raw mut result);
            check("clCreateProgramWithSource", result)?;
            let built = (functions.clBuildProgram)(program, 1, &raw const device, options.as_ptr(), null(), null_mut());
            check("clBuildProgram of reference.cl", built)?;
            Ok(Self { functions, context, program, in_order, out_of_order, driver })
        }
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel<'_>> {
        let symbol = CString::new(name).expect("a name without a zero byte");
        let mut result = 0;
        // SAFETY: a live program and a name.
        let raw = unsafe { (self.functions.clCreateKernel)(self.program, symbol.as_ptr(), &raw mut result) };
        check(&format!("clCreateKernel {name}"), result)?;
        Ok(Kernel { reference: self, raw })
    }

    /// Memory of so many elements, which are zero.
    pub(crate) fn memory<T: Copy>(&self, len: usize) -> Result<Memory<'_, T>> {
        let size = len * size_of::<T>();
        let flags = code::MEM_READ_WRITE | code::MEM_SVM_FINE_GRAIN_BUFFER;
        // SAFETY: a live context; flags and an alignment that drivers for CPUs take.
        let first = unsafe { (self.functions.clSVMAlloc)(self.context, flags, size, 64) };
        if first.is_null() {
            return Err(format!("clSVMAlloc of {size} bytes failed"));
        }
        // SAFETY: so many bytes were just allocated.
        unsafe { first.cast::<u8>().write_bytes(0, size) };
        Ok(Memory { reference: self, first: first.cast(), len })
    }

    /// An image that is as high as wide, with a copy of such pixels. Kernels read it.
    pub(crate) fn image<T: Copy>(&self, format: ImageFormat, side: usize, pixels: &[T]) -> Result<Image<'_>> {
        assert_eq!(pixels.len(), side * side, "each pixel has a value");
        let description = ImageDescription {
            image_type: code::MEM_OBJECT_IMAGE2D,
            width: side,
            height: side,
            depth: 0,
            array_size: 0,
            row_pitch: 0,
            slice_pitch: 0,
            n_mip_levels: 0,
            n_samples: 0,
            buffer: null_mut(),
        };
        let (flags, mut result) = (code::MEM_READ_ONLY | code::MEM_COPY_HOST_PTR, 0);
        let first = pixels.as_ptr().cast_mut().cast();
        // SAFETY: a live context, and so many pixels, which are copied before the call returns. The driver refuses formats it does not have.
        let raw = unsafe {
            let create = self.functions.clCreateImage;
            create(self.context, flags, &raw const format, &raw const description, first, &raw mut result)
        };
        check("clCreateImage", result)?;
        Ok(Image { reference: self, raw })
    }

    fn queue(&self, in_order: bool) -> Handle {
        if in_order { self.in_order } else { self.out_of_order }
    }

    fn finish(&self, queue: Handle) -> Result<()> {
        // SAFETY: a live queue.
        check("clFinish", unsafe { (self.functions.clFinish)(queue) })
    }

    /// Microseconds of a launch: so many of a kernel that does nothing, with one event each, and the wait for all.
    pub(crate) fn launch_time(&self, nothing: &Kernel<'_>, in_order: bool, n: usize) -> Result<f64> {
        let queue = self.queue(in_order);
        let mut done = Ok(());
        let time = seconds(|| {
            done = (0..n)
                .try_for_each(|_| self.release(nothing.enqueue(queue, [1, 1], None)?))
                .and_then(|()| self.finish(queue));
        });
        done.map(|()| time * 1e6 / n as f64)
    }

    /// Microseconds until a kernel that does nothing has ended.
    pub(crate) fn latency(&self, nothing: &Kernel<'_>, n: usize) -> Result<f64> {
        let mut done = Ok(());
        let time = seconds(|| {
            done = (0..n).try_for_each(|_| {
                let event = nothing.enqueue(self.in_order, [1, 1], None)?;
                // SAFETY: a live event.
                check("clWaitForEvents", unsafe { (self.functions.clWaitForEvents)(1, &raw const event) })?;
                self.release(event)
            });
        });
        done.map(|()| time * 1e6 / n as f64)
    }

    fn release(&self, event: Handle) -> Result<()> {
        // SAFETY: a live event, which the caller has from a launch, and gives away.
        check("clReleaseEvent", unsafe { (self.functions.clReleaseEvent)(event) })
    }
}

/// The device that OxiSYCL calls `name`: the driver's name and what tells it from others of the same processor.
fn text(functions: &Functions, device: Handle, what: u32) -> String {
    let mut bytes = [0u8; 256];
    // SAFETY: a live device, and room for as many bytes as are said.
    let result =
        unsafe { (functions.clGetDeviceInfo)(device, what, bytes.len(), bytes.as_mut_ptr().cast(), null_mut()) };
    let text = if result == code::SUCCESS { &bytes[..] } else { &[] };
    String::from_utf8_lossy(text).trim_matches(['\0', ' ']).to_owned()
}

/// The driver's handle of the device. Names may be those of several, and are not the driver's own then.
fn handle_of(device: &Device) -> std::result::Result<Handle, Box<dyn Error>> {
    let (sender, receiver) = mpsc::channel();
    Queue::new(device)?.submit(|cg| {
        cg.host_task(move |scope| {
            let handle = scope.interop().native_device().map(|handle| handle.expose_provenance());
            // The other end waits for it.
            let _ = sender.send(handle);
        })
    })?;
    Ok(std::ptr::with_exposed_provenance_mut(receiver.recv()??))
}

/// A kernel of `reference.cl`.
pub(crate) struct Kernel<'r> {
    reference: &'r Reference,
    raw: Handle,
}

impl Kernel<'_> {
    /// Sets a parameter that is no address.
    pub(crate) fn set<T: Copy>(&self, index: u32, value: T) -> Result<()> {
        let set = self.reference.functions.clSetKernelArg;
        // SAFETY: a live kernel, and a value of the size that is said; the driver compares it with the parameter's.
        check("clSetKernelArg", unsafe { set(self.raw, index, size_of::<T>(), (&raw const value).cast()) })
    }

    /// Sets a parameter that is an address. The memory lives as long as the kernel is launched with it.
    pub(crate) fn set_memory<T: Copy>(&self, index: u32, memory: &Memory<'_, T>) -> Result<()> {
        let set = self.reference.functions.clSetKernelArgSVMPointer;
        // SAFETY: a live kernel and live shared memory.
        check("clSetKernelArgSVMPointer", unsafe { set(self.raw, index, memory.first.cast::<c_void>()) })
    }

    /// Sets a parameter that is an image, which lives as long as the kernel is launched with it.
    pub(crate) fn set_image(&self, index: u32, image: &Image<'_>) -> Result<()> {
        self.set(index, image.raw)
    }

    fn enqueue(&self, queue: Handle, range: [usize; 2], group: Option<[usize; 2]>) -> Result<Handle> {
        let dimensions = if range[1] > 1 { 2 } else { 1 };
        let local = group.as_ref().map_or(null(), |group| group.as_ptr());
        let mut event = null_mut();
        // SAFETY: live objects, and arrays of at least as many numbers as there are dimensions. The kernel reaches only what was set as its
        // parameters, for the range that its caller knows.
        let result = unsafe {
            let enqueue = self.reference.functions.clEnqueueNDRangeKernel;
            enqueue(queue, self.raw, dimensions, null(), range.as_ptr(), local, 0, null(), &raw mut event)
        };
        check("clEnqueueNDRangeKernel", result).map(|()| event)
    }

    /// Seconds of a launch over a range, the innermost dimension first.
    pub(crate) fn time(&self, range: [usize; 2], group: Option<[usize; 2]>) -> Result<f64> {
        let queue = self.reference.in_order;
        let mut done = Ok(());
        let time = seconds(|| {
            done = self.enqueue(queue, range, group).and_then(|event| {
                self.reference.finish(queue)?;
                self.reference.release(event)
            });
        });
        done.map(|()| time)
    }

    /// The group with which the kernel is fastest over a range.
    pub(crate) fn best_group(&self, range: [usize; 2], repetitions: usize) -> Result<Option<[usize; 2]>> {
        let fits =
            |group: &&Option<[usize; 2]>| group.is_none_or(|group| (0..2).all(|d| range[d].is_multiple_of(group[d])));
        let groups: Vec<_> = GROUPS.iter().filter(fits).collect();
        let mut best = vec![f64::INFINITY; groups.len()];
        for _ in 0..repetitions {
            for (group, best) in groups.iter().zip(&mut best) {
                *best = best.min(self.time(range, **group)?);
            }
        }
        let fastest = (0..groups.len()).min_by(|a, b| best[*a].total_cmp(&best[*b]));
        Ok(fastest.and_then(|index| *groups[index]))
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `kernel`; launches have ended.
        unsafe { (self.reference.functions.clReleaseKernel)(self.raw) };
    }
}

/// Memory that host and device see at one address.
pub(crate) struct Memory<'r, T> {
    reference: &'r Reference,
    first: *mut T,
    len: usize,
}

impl<T: Copy> Memory<'_, T> {
    /// The elements. No kernel runs meanwhile, since launches are waited for.
    pub(crate) fn elements(&mut self) -> &mut [T] {
        // SAFETY: allocated for so many elements of plain numbers, written when it was made, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.len) }
    }
}

impl<T> Drop for Memory<'_, T> {
    fn drop(&mut self) {
        // SAFETY: allocated from this context, and given back once; launches have ended.
        unsafe { (self.reference.functions.clSVMFree)(self.reference.context, self.first.cast()) };
    }
}

/// An image object of the driver.
pub(crate) struct Image<'r> {
    reference: &'r Reference,
    raw: Handle,
}

impl Drop for Image<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `image`, and given back once; launches have ended.
        unsafe { (self.reference.functions.clReleaseMemObject)(self.raw) };
    }
}
