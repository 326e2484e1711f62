//! Kernels from source at run time, and those that a device has by itself.
//!
//! Their code is the driver's business: it is compiled by the driver, and launched with arguments by index by [`Handler::launch_raw`].
//! Numbers and sizes of arguments are compared with what the driver knows of a kernel; everything else is the user's promise.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use oxisycl_backend::{
    BackendError, KernelInfo as BackendInfo, RawKernel as BackendKernel, RawModule, RawValue, Source,
};
use oxisycl_device::{Accessor, DeviceCopyable, Mode};
use oxisycl_image::StatedNeeds;
use oxisycl_runtime::graph::{Gate, forbid_blocking, gate_of};
use oxisycl_types::{BackendKind, ErrorCode};

use crate::interop::{NativeKernel, NativeModule};
use crate::usm::UsmPointer;
use crate::{Context, Device, Error, KernelInfo, Result};

#[cfg(doc)]
use crate::Handler;

/// Kernels that a driver has compiled from source, or that a device has by itself. Copies are the same bundle.
#[derive(Clone)]
pub struct SourceBundle {
    context: Context,
    device: Device,
    module: Arc<dyn RawModule>,
}

impl SourceBundle {
    /// Kernels from PTX, for an NVIDIA GPU of the context.
    ///
    /// On a busy GPU this waits until the kernels that run have ended, because the driver does.
    ///
    /// Errors: `Build` with the driver's log if it refuses the text. `FeatureNotSupported` if the device does not take PTX. `Invalid` if the device
    /// is not of the context.
    ///
    /// # Safety
    /// The driver may believe the text: it is valid PTX, and does no harm when it is compiled.
    pub unsafe fn from_ptx(context: &Context, device: &Device, text: &str) -> Result<Self> {
        // SAFETY: by the contract of this function.
        unsafe { Self::load(context, device, &Source::Ptx(text)) }
    }

    /// Kernels from a module of SPIR-V, for an OpenCL device of the context. Errors as for [`from_ptx`](Self::from_ptx).
    ///
    /// # Safety
    /// The driver may believe the module: it is valid, and does no harm when it is compiled.
    pub unsafe fn from_spirv(context: &Context, device: &Device, module: &[u8]) -> Result<Self> {
        // SAFETY: by the contract of this function.
        unsafe { Self::load(context, device, &Source::SpirV(module)) }
    }

    /// Kernels from OpenCL C, for an OpenCL device of the context, with options for the driver's compiler. Errors as for
    /// [`from_ptx`](Self::from_ptx).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use oxisycl::source_bundle::SourceBundle;
    /// use oxisycl::{BackendKind, arguments};
    ///
    /// # fn main() -> oxisycl::Result {
    /// let text = "kernel void add(global const float *x, global float *y, float a) {
    ///     size_t i = get_global_id(0);
    ///     y[i] += a * x[i];
    /// }";
    /// let is_meant = |device: &Device| device.backend() == BackendKind::OpenCl && device.unusable().is_none();
    /// let Some(device) = Device::all()?.into_iter().find(is_meant) else { return Ok(()) };
    /// let queue = Queue::new(&device)?;
    /// // SAFETY: the text is valid.
    /// let bundle = unsafe { SourceBundle::from_opencl_c(queue.context(), &device, text, "")? };
    /// let add = bundle.kernel("add")?;
    /// let (x, y) = (Buffer::from_vec(vec![1f32; 64])?, Buffer::from_vec(vec![2f32; 64])?);
    /// queue.submit(|cg| {
    ///     let (x, y) = (cg.access(&x, Read), cg.access(&y, ReadWrite));
    ///     // SAFETY: the kernel reads and writes 64 elements, as the accessors allow.
    ///     unsafe { cg.launch_raw(&add, NdRange::new(Range::new([64]), Range::new([16])), arguments![x, y, 3f32]) }
    /// })?;
    /// assert_eq!(y.to_vec()?, [5f32; 64]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// The driver may believe the text and the options, which do no harm when the text is compiled.
    pub unsafe fn from_opencl_c(context: &Context, device: &Device, text: &str, options: &str) -> Result<Self> {
        // SAFETY: by the contract of this function.
        unsafe { Self::load(context, device, &Source::OpenClC { text, options }) }
    }

    /// Kernels that the device has by itself (SYCL 2020 section 4.11.14), see [`Device::built_in_kernels`].
    ///
    /// Errors: `Invalid` if it does not have one of them, or is not of the context.
    pub fn built_in(context: &Context, device: &Device, names: &[&str]) -> Result<Self> {
        let known = device.built_in_kernels();
        if let Some(name) = names.iter().find(|name| !known.iter().any(|known| known == *name)) {
            let (device, known) = (device.name(), known.join(", "));
            let known = if known.is_empty() { "none".to_owned() } else { known };
            let message = format!("device \"{device}\" has no built-in kernel \"{name}\"; it has {known}");
            return Err(Error::invalid(message));
        }
        // SAFETY: the device's own code.
        unsafe { Self::load(context, device, &Source::BuiltIn(names)) }
    }

    /// Kernels of code that the driver has already: a `CUmodule`, or a `cl_program` that is built for the device.
    ///
    /// Errors: `BackendMismatch` if the handle is of another backend than the device. `Invalid` if it is null, or a program of another context or not
    /// built for the device. `Invalid` if the device is not of the context.
    ///
    /// ```no_run
    /// use oxisycl::interop::NativeModule;
    /// use oxisycl::prelude::*;
    /// use oxisycl::source_bundle::SourceBundle;
    /// use std::ffi::c_void;
    ///
    /// # fn scale(queue: &Queue, module: *mut c_void) -> oxisycl::Result {
    /// // SAFETY: a live `CUmodule` of the device's primary context, which is unloaded after the queue's last command has ended.
    /// let bundle = unsafe { SourceBundle::from_native(queue.context(), queue.device(), NativeModule::Cuda(module)) }?;
    /// let numbers = Buffer::from_vec(vec![1f32; 64])?;
    /// let scale = bundle.kernel("scale")?;
    /// queue.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     // SAFETY: the kernel changes 64 elements.
    ///     unsafe { cg.launch_raw(&scale, NdRange::new(Range::new([64]), Range::new([64])), oxisycl::arguments![numbers, 2f32]) }
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Safety
    /// The handle is null or live. A `CUmodule` is of the device's primary context, and lives until the bundle, its kernels and their commands are gone.
    /// The bundle holds a reference of a `cl_program`.
    pub unsafe fn from_native(context: &Context, device: &Device, native: NativeModule) -> Result<Self> {
        let handle = native.handle_for(device)?;
        // SAFETY: by the contract of this function.
        unsafe { Self::load(context, device, &Source::Native(handle)) }
    }

    /// The driver's handle of the code, valid as long as the bundle or a kernel of it.
    pub fn native_module(&self) -> NativeModule {
        let handle = self.module.native_handle();
        match self.device.backend() {
            BackendKind::Cuda => NativeModule::Cuda(handle),
            _ => NativeModule::OpenCl(handle),
        }
    }

    /// # Safety
    /// The driver may believe the code.
    unsafe fn load(context: &Context, device: &Device, source: &Source<'_>) -> Result<Self> {
        forbid_blocking("a source bundle")?;
        let (name, what) = (device.name(), source.name());
        if !context.contains(device) {
            let message = format!("device \"{name}\" for {what} is not in the context, nor part of a device in it");
            return Err(Error::invalid(message));
        }
        if let Some(reason) = device.unusable() {
            return Err(Error::invalid(format!("device \"{name}\" for {what} cannot be used: {reason}")));
        }
        let gate = gate_of(device.backend_device());
        // A driver that waits for running kernels is asked once there is none.
        let loading = gate.as_deref().map(Gate::begin);
        // SAFETY: by the contract of this function.
        let module = unsafe { device.backend_device().load_source(source) }.map_err(|error| match &error {
            BackendError::Driver { .. } => {
                let message = format!("{what} on device \"{name}\" were not built: {error}");
                Error::with_source(ErrorCode::Build, message, error)
            }
            _ => Error::from(error),
        })?;
        drop(loading);
        Ok(Self { context: context.clone(), device: device.clone(), module })
    }

    /// The kernel of this name.
    ///
    /// On a busy NVIDIA GPU this waits until the kernels that run have ended, because the driver may load the function now.
    ///
    /// Errors: `Invalid` if the code has none.
    pub fn kernel(&self, name: &str) -> Result<RawKernel> {
        forbid_blocking("a kernel of a source bundle")?;
        let gate = gate_of(self.device.backend_device());
        let loading = gate.as_deref().map(Gate::begin);
        let kernel = self.module.kernel(name)?.ok_or_else(|| {
            let device = self.device.name();
            Error::invalid(format!("the source bundle for device \"{device}\" has no kernel \"{name}\""))
        })?;
        drop(loading);
        Ok(RawKernel { bundle: self.clone(), name: name.to_owned(), kernel })
    }

    /// The device that the code was compiled for.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The context that the bundle belongs to.
    pub fn context(&self) -> &Context {
        &self.context
    }
}

impl fmt::Debug for SourceBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceBundle").field("device", &self.device).finish_non_exhaustive()
    }
}

/// A kernel of a [`SourceBundle`], which it keeps alive.
#[derive(Clone)]
pub struct RawKernel {
    bundle: SourceBundle,
    name: String,
    kernel: Arc<dyn BackendKernel>,
}

impl RawKernel {
    /// The name of the kernel.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bundle that it is of.
    pub fn bundle(&self) -> &SourceBundle {
        &self.bundle
    }

    /// The driver's handle, valid as long as the kernel.
    pub fn native_kernel(&self) -> NativeKernel {
        let handle = self.kernel.native_handle();
        match self.bundle.device.backend() {
            BackendKind::Cuda => NativeKernel::Cuda(handle),
            _ => NativeKernel::OpenCl(handle),
        }
    }

    /// What is known of it on its device.
    pub fn info(&self) -> KernelInfo {
        KernelInfo::new(&self.bundle.device, Some(self.limits()), &StatedNeeds::NONE)
    }

    pub(crate) fn limits(&self) -> &BackendInfo {
        self.kernel.info()
    }

    pub(crate) fn inner(&self) -> &Arc<dyn BackendKernel> {
        &self.kernel
    }
}

impl fmt::Debug for RawKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawKernel")
            .field("name", &self.name)
            .field("device", &self.bundle.device)
            .finish_non_exhaustive()
    }
}

/// An argument of [`Handler::launch_raw`], in the command group `'cg`. The macro [`arguments!`](crate::arguments) makes them.
pub struct RawArgument<'cg> {
    pub(crate) value: RawValue,
    group: PhantomData<fn(&'cg ()) -> &'cg ()>,
}

impl RawArgument<'_> {
    fn new(value: RawValue) -> Self {
        Self { value, group: PhantomData }
    }

    /// That many bytes of local memory for each work-group. An OpenCL kernel has a `local` parameter for it. On NVIDIA GPUs all of them together
    /// are the kernel's dynamic shared memory, and none is a parameter.
    pub fn local(bytes: usize) -> Self {
        Self::new(RawValue::Local(bytes))
    }

    /// A value, as its bytes.
    pub fn value<T: DeviceCopyable + bytemuck::NoUninit>(value: T) -> Self {
        Self::new(RawValue::Bytes(bytemuck::bytes_of(&value).to_vec()))
    }
}

impl fmt::Debug for RawArgument<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

/// The address of the accessor's first element.
impl<'cg, T: DeviceCopyable, const D: usize, M: Mode> From<Accessor<'cg, T, D, M>> for RawArgument<'cg> {
    fn from(accessor: Accessor<'cg, T, D, M>) -> Self {
        let skipped = if accessor.is_empty() { 0 } else { accessor.buffer_range().linear(&accessor.offset()) };
        Self::new(RawValue::Pointer(accessor.as_ptr().wrapping_add(skipped).expose_provenance()))
    }
}

impl<T: DeviceCopyable> From<UsmPointer<T>> for RawArgument<'_> {
    fn from(pointer: UsmPointer<T>) -> Self {
        Self::new(RawValue::Pointer(pointer.as_ptr().expose_provenance()))
    }
}

macro_rules! values {
    ($($type:ty),*) => {$(
        impl From<$type> for RawArgument<'_> {
            fn from(value: $type) -> Self {
                Self::value(value)
            }
        }
    )*};
}

values!(u8, i8, u16, i16, u32, i32, u64, i64, usize, isize, f32, f64);

/// Arguments of [`Handler::launch_raw`](crate::Handler::launch_raw), in the order of the kernel's parameters: accessors, USM pointers, numbers, and
/// what [`RawArgument`](crate::source_bundle::RawArgument) makes.
#[macro_export]
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { [$($crate::source_bundle::RawArgument::from($argument)),*] };
}
