//! The table of driver functions, and one method per function that turns its code into a `Result`.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use super::{
    Code, Copy2D, Copy3D, DevicePointer, KernelNodeParameters, MemoryLocation, RawContext, RawDevice, RawEvent,
    RawFunction, RawGraph, RawGraphExec, RawGraphNode, RawModule, RawStream, code,
};
use crate::error::DriverError;

macro_rules! api {
    (
        required { $($method:ident = $symbol:ident($($argument:ident: $type:ty),*);)* }
        optional { $($optional:ident = $optional_symbol:ident($($optional_argument:ident: $optional_type:ty),*);)* }
    ) => {
        /// The functions of one loaded driver library. Methods are named after the symbols, and return their code as an error.
        pub(crate) struct Driver {
            $($method: unsafe extern "system" fn($($type),*) -> Code,)*
            $($optional: Option<unsafe extern "system" fn($($optional_type),*) -> Code>,)*
            /// The version from `cuDriverGetVersion`: 1000 * major + 10 * minor.
            pub(crate) version: c_int,
            /// Keeps the library loaded until the process ends, since the driver has threads of its own.
            _library: std::mem::ManuallyDrop<Option<Library>>,
        }

        impl Driver {
            /// The names of required symbols.
            pub(crate) const REQUIRED: &[&str] = &[$(stringify!($symbol),)*];
            /// The names of symbols that older drivers lack.
            pub(crate) const OPTIONAL: &[&str] = &[$(stringify!($optional_symbol),)*];

            /// Resolves all functions. The error is the name of a missing required symbol.
            ///
            /// # Safety
            /// `resolve` returns null or the address of the driver API's function of that name, which stays valid for ever.
            pub(crate) unsafe fn resolve(
                version: c_int,
                library: Option<Library>,
                resolve: &mut dyn FnMut(&'static str) -> *const c_void,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($method: {
                        let address = resolve(stringify!($symbol));
                        if address.is_null() {
                            return Err(stringify!($symbol));
                        }
                        // SAFETY: the caller promises that this is the function of that name, whose type is as in `cuda.h`.
                        unsafe { std::mem::transmute::<*const c_void, unsafe extern "system" fn($($type),*) -> Code>(address) }
                    },)*
                    $($optional: {
                        let address = resolve(stringify!($optional_symbol));
                        // SAFETY: as above; null becomes `None`.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                Option<unsafe extern "system" fn($($optional_type),*) -> Code>,
                            >(address)
                        }
                    },)*
                    version,
                    _library: std::mem::ManuallyDrop::new(library),
                })
            }

            $(
                /// # Safety
                /// As the driver API asks of its function: handles and pointers are valid, and a context is current if needed.
                #[inline]
                #[expect(clippy::too_many_arguments, reason = "the driver's signature")]
                #[allow(unfulfilled_lint_expectations, reason = "most functions have fewer")]
                pub(crate) unsafe fn $method(&self, $($argument: $type),*) -> Result<(), DriverError> {
                    // SAFETY: by the contract of this function.
                    let code = unsafe { (self.$method)($($argument),*) };
                    if code == code::SUCCESS { Ok(()) } else { Err(DriverError { call: stringify!($symbol), code }) }
                }
            )*

            $(
                /// `None` if the driver lacks the function.
                ///
                /// # Safety
                /// As the driver API asks of its function: handles and pointers are valid, and a context is current if needed.
                pub(crate) unsafe fn $optional(
                    &self,
                    $($optional_argument: $optional_type),*
                ) -> Option<Result<(), DriverError>> {
                    // SAFETY: by the contract of this function.
                    let code = unsafe { (self.$optional?)($($optional_argument),*) };
                    let call = stringify!($optional_symbol);
                    Some(if code == code::SUCCESS { Ok(()) } else { Err(DriverError { call, code }) })
                }
            )*
        }
    };
}

api! {
    required {
        init = cuInit(flags: c_uint);
        get_error_name = cuGetErrorName(error: Code, text: *mut *const c_char);
        get_error_string = cuGetErrorString(error: Code, text: *mut *const c_char);
        device_get_count = cuDeviceGetCount(count: *mut c_int);
        device_get = cuDeviceGet(device: *mut RawDevice, ordinal: c_int);
        device_get_name = cuDeviceGetName(name: *mut c_char, length: c_int, device: RawDevice);
        device_total_mem = cuDeviceTotalMem_v2(bytes: *mut usize, device: RawDevice);
        device_get_attribute = cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: RawDevice);
        device_can_access_peer = cuDeviceCanAccessPeer(can: *mut c_int, device: RawDevice, peer: RawDevice);
        primary_ctx_retain = cuDevicePrimaryCtxRetain(context: *mut RawContext, device: RawDevice);
        primary_ctx_release = cuDevicePrimaryCtxRelease_v2(device: RawDevice);
        ctx_get_current = cuCtxGetCurrent(context: *mut RawContext);
        ctx_set_current = cuCtxSetCurrent(context: RawContext);
        ctx_push_current = cuCtxPushCurrent_v2(context: RawContext);
        ctx_pop_current = cuCtxPopCurrent_v2(context: *mut RawContext);
        ctx_get_stream_priority_range = cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
        ctx_get_limit = cuCtxGetLimit(value: *mut usize, limit: c_int);
        ctx_set_limit = cuCtxSetLimit(limit: c_int, value: usize);
        ctx_enable_peer_access = cuCtxEnablePeerAccess(peer: RawContext, flags: c_uint);
        mem_get_info = cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
        mem_alloc = cuMemAlloc_v2(pointer: *mut DevicePointer, size: usize);
        mem_free = cuMemFree_v2(pointer: DevicePointer);
        mem_host_alloc = cuMemHostAlloc(pointer: *mut *mut c_void, size: usize, flags: c_uint);
        mem_free_host = cuMemFreeHost(pointer: *mut c_void);
        mem_alloc_managed = cuMemAllocManaged(pointer: *mut DevicePointer, size: usize, flags: c_uint);
        pointer_get_attribute = cuPointerGetAttribute(data: *mut c_void, attribute: c_int, pointer: DevicePointer);
        memcpy_async = cuMemcpyAsync(target: DevicePointer, source: DevicePointer, size: usize, stream: RawStream);
        memcpy_peer_async = cuMemcpyPeerAsync(
            target: DevicePointer, target_context: RawContext, source: DevicePointer, source_context: RawContext,
            size: usize, stream: RawStream
        );
        memcpy_2d_async = cuMemcpy2DAsync_v2(copy: *const Copy2D, stream: RawStream);
        memcpy_3d_async = cuMemcpy3DAsync_v2(copy: *const Copy3D, stream: RawStream);
        memcpy_3d_peer_async = cuMemcpy3DPeerAsync(copy: *const Copy3D, stream: RawStream);
        memset_d8_async = cuMemsetD8Async(target: DevicePointer, value: u8, count: usize, stream: RawStream);
        memset_d16_async = cuMemsetD16Async(target: DevicePointer, value: u16, count: usize, stream: RawStream);
        memset_d32_async = cuMemsetD32Async(target: DevicePointer, value: u32, count: usize, stream: RawStream);
        memset_d2d8_async = cuMemsetD2D8Async(
            target: DevicePointer, pitch: usize, value: u8, width: usize, height: usize, stream: RawStream
        );
        memset_d2d16_async = cuMemsetD2D16Async(
            target: DevicePointer, pitch: usize, value: u16, width: usize, height: usize, stream: RawStream
        );
        memset_d2d32_async = cuMemsetD2D32Async(
            target: DevicePointer, pitch: usize, value: u32, width: usize, height: usize, stream: RawStream
        );
        stream_create_with_priority = cuStreamCreateWithPriority(stream: *mut RawStream, flags: c_uint, priority: c_int);
        stream_destroy = cuStreamDestroy_v2(stream: RawStream);
        stream_get_ctx = cuStreamGetCtx(stream: RawStream, context: *mut RawContext);
        stream_query = cuStreamQuery(stream: RawStream);
        stream_synchronize = cuStreamSynchronize(stream: RawStream);
        stream_wait_event = cuStreamWaitEvent(stream: RawStream, event: RawEvent, flags: c_uint);
        event_create = cuEventCreate(event: *mut RawEvent, flags: c_uint);
        event_destroy = cuEventDestroy_v2(event: RawEvent);
        event_record = cuEventRecord(event: RawEvent, stream: RawStream);
        event_query = cuEventQuery(event: RawEvent);
        event_synchronize = cuEventSynchronize(event: RawEvent);
        event_elapsed_time = cuEventElapsedTime(milliseconds: *mut f32, start: RawEvent, end: RawEvent);
        module_load_data_ex = cuModuleLoadDataEx(
            module: *mut RawModule, image: *const c_void, n_options: c_uint, options: *mut c_int,
            values: *mut *mut c_void
        );
        module_unload = cuModuleUnload(module: RawModule);
        module_get_function = cuModuleGetFunction(function: *mut RawFunction, module: RawModule, name: *const c_char);
        func_get_attribute = cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: RawFunction);
        func_set_attribute = cuFuncSetAttribute(function: RawFunction, attribute: c_int, value: c_int);
        occupancy_max_potential_block_size = cuOccupancyMaxPotentialBlockSize(
            grid: *mut c_int, block: *mut c_int, function: RawFunction, memory: *const c_void, memory_size: usize,
            limit: c_int
        );
        occupancy_max_active_blocks = cuOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks: *mut c_int, function: RawFunction, threads: c_int, memory_size: usize
        );
        launch_kernel = cuLaunchKernel(
            function: RawFunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint,
            block_z: c_uint, shared: c_uint, stream: RawStream, parameters: *mut *mut c_void, extra: *mut *mut c_void
        );
    }
    optional {
        func_load = cuFuncLoad(function: RawFunction);
        func_get_param_info = cuFuncGetParamInfo(
            function: RawFunction, index: usize, offset: *mut usize, size: *mut usize
        );
        mem_prefetch_async = cuMemPrefetchAsync(
            pointer: DevicePointer, size: usize, device: RawDevice, stream: RawStream
        );
        mem_prefetch_async_v2 = cuMemPrefetchAsync_v2(
            pointer: DevicePointer, size: usize, location: MemoryLocation, flags: c_uint, stream: RawStream
        );
        mem_advise = cuMemAdvise(pointer: DevicePointer, size: usize, advice: c_int, device: RawDevice);
        mem_advise_v2 = cuMemAdvise_v2(pointer: DevicePointer, size: usize, advice: c_int, location: MemoryLocation);
        graph_create = cuGraphCreate(graph: *mut RawGraph, flags: c_uint);
        graph_destroy = cuGraphDestroy(graph: RawGraph);
        graph_add_kernel_node = cuGraphAddKernelNode_v2(
            node: *mut RawGraphNode, graph: RawGraph, dependencies: *const RawGraphNode, n_dependencies: usize,
            parameters: *const KernelNodeParameters
        );
        graph_instantiate = cuGraphInstantiateWithFlags(
            executable: *mut RawGraphExec, graph: RawGraph, flags: c_ulonglong
        );
        graph_exec_kernel_node_set_params = cuGraphExecKernelNodeSetParams_v2(
            executable: RawGraphExec, node: RawGraphNode, parameters: *const KernelNodeParameters
        );
        graph_launch = cuGraphLaunch(executable: RawGraphExec, stream: RawStream);
        graph_exec_destroy = cuGraphExecDestroy(executable: RawGraphExec);
    }
}

impl Driver {
    /// Whether the driver has graphs whose kernels can be changed: drivers for CUDA 12 and later do.
    pub(crate) fn has_graphs(&self) -> bool {
        self.graph_create.is_some()
            && self.graph_destroy.is_some()
            && self.graph_add_kernel_node.is_some()
            && self.graph_instantiate.is_some()
            && self.graph_exec_kernel_node_set_params.is_some()
            && self.graph_launch.is_some()
            && self.graph_exec_destroy.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "system" fn answer() -> Code {
        code::INVALID_VALUE
    }

    fn resolve(missing: &'static str) -> Result<Driver, &'static str> {
        let mut resolve = |name: &'static str| {
            if name == missing {
                std::ptr::null()
            } else {
                answer as unsafe extern "system" fn() -> Code as *const c_void
            }
        };
        // SAFETY: the functions are not called.
        unsafe { Driver::resolve(12040, None, &mut resolve) }
    }

    #[test]
    fn a_missing_symbol_is_named() {
        for &missing in Driver::REQUIRED {
            assert_eq!(resolve(missing).err(), Some(missing));
        }
        let driver = resolve("cuMemPrefetchAsync_v2").unwrap_or_else(|name| panic!("{name} is not optional"));
        assert!(driver.mem_prefetch_async_v2.is_none() && driver.mem_prefetch_async.is_some());
    }
}
