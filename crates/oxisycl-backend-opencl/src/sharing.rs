//! Memory that kernels and the host share: Intel's extension for unified shared memory, or the shared virtual memory of OpenCL 2.0.
//!
//! Captures of kernels hold addresses, of which OpenCL knows nothing. With the extension it is set once for a kernel that it may follow any
//! address. Shared virtual memory wants the list of all allocations that a kernel may reach (`svm`).
//!
//! Knows nothing of queues; copies and fills are functions of the same type in both.

use std::ffi::{CStr, c_void};
use std::ptr::{self, NonNull};

use oxisycl_backend::UsmKind;

use crate::error::{ClError, Result, check};
use crate::query::Asked;
use crate::svm::{self, ListGuard, Svm};
use crate::sys::{
    AllocateDevice, AllocateHost, Code, EnqueueCopy, EnqueueFill, EnqueueMigrate, FreeShared, Functions, Object,
    SetPointer, code,
};

/// The largest alignment in OpenCL, in bytes: the size of its largest type.
pub(crate) const ALIGNMENT: usize = 128;

/// The kind of shared memory to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SharingKind {
    /// The extension if the device has it, else shared virtual memory.
    #[default]
    Best,
    /// Shared virtual memory, in the finest grain that the device has.
    Svm,
    /// Coarse-grained shared virtual memory, even on devices with a finer grain: the host cannot access device memory.
    CoarseSvm,
}

pub(crate) struct Sharing {
    pub(crate) copy: EnqueueCopy,
    pub(crate) copy_name: &'static str,
    pub(crate) fill: EnqueueFill,
    pub(crate) fill_name: &'static str,
    /// Migrates shared memory to the device, where the driver has such a call.
    pub(crate) migrate: Option<EnqueueMigrate>,
    way: Way,
}

enum Way {
    Intel(Intel),
    Svm(Svm),
}

/// The functions of `cl_intel_unified_shared_memory`, and the device's capabilities for each kind of memory.
struct Intel {
    host: AllocateHost,
    device: AllocateDevice,
    shared: AllocateDevice,
    free: FreeShared,
    set_pointer: Option<SetPointer>,
    host_capabilities: u64,
    shared_capabilities: u64,
}

/// The kernel's settings about memory that it reaches indirectly, as set in the driver.
#[derive(Default)]
pub(crate) struct Indirect {
    /// Whether the constant settings were set.
    is_set: bool,
    list: svm::ListVersion,
}

/// Resolves a function of an extension.
fn function<T: Copy>(functions: &Functions, platform: Object, name: &CStr) -> Option<T> {
    const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
    // SAFETY: a live platform and a name.
    let address = unsafe { (functions.clGetExtensionFunctionAddressForPlatform)(platform.0, name.as_ptr()) };
    // SAFETY: the driver gave the function of that name, whose type the caller knows from the extension. Function pointers have the size of
    // an address.
    (!address.is_null()).then(|| unsafe { std::mem::transmute_copy::<*mut c_void, T>(&address) })
}

impl Sharing {
    /// The best kind that the device has. The error says why it has none.
    pub(crate) fn of(device: Asked<'_>, platform: Object, kind: SharingKind) -> Result<Self, String> {
        if kind == SharingKind::Best
            && let Some(sharing) = Self::intel(device, platform)
        {
            return Ok(sharing);
        }
        let mut capabilities = device.number(code::DEVICE_SVM_CAPABILITIES);
        if kind == SharingKind::CoarseSvm {
            capabilities &= code::SVM_COARSE_GRAIN_BUFFER;
        }
        if capabilities & code::SVM_COARSE_GRAIN_BUFFER == 0 {
            return Err("it has neither cl_intel_unified_shared_memory nor shared virtual memory".to_owned());
        }
        let functions = device.functions();
        Ok(Self {
            copy: functions.clEnqueueSVMMemcpy,
            copy_name: "clEnqueueSVMMemcpy",
            fill: functions.clEnqueueSVMMemFill,
            fill_name: "clEnqueueSVMMemFill",
            migrate: None,
            way: Way::Svm(Svm::new(capabilities)),
        })
    }

    fn intel(device: Asked<'_>, platform: Object) -> Option<Self> {
        if device.number(code::DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) & code::USM_ACCESS == 0 {
            return None;
        }
        let functions = device.functions();
        Some(Self {
            copy: function(functions, platform, c"clEnqueueMemcpyINTEL")?,
            copy_name: "clEnqueueMemcpyINTEL",
            fill: function(functions, platform, c"clEnqueueMemFillINTEL")?,
            fill_name: "clEnqueueMemFillINTEL",
            migrate: function(functions, platform, c"clEnqueueMigrateMemINTEL"),
            way: Way::Intel(Intel {
                host: function(functions, platform, c"clHostMemAllocINTEL")?,
                device: function(functions, platform, c"clDeviceMemAllocINTEL")?,
                shared: function(functions, platform, c"clSharedMemAllocINTEL")?,
                free: function(functions, platform, c"clMemFreeINTEL")?,
                set_pointer: function(functions, platform, c"clSetKernelArgMemPointerINTEL"),
                host_capabilities: device.number(code::DEVICE_HOST_MEM_CAPABILITIES_INTEL),
                shared_capabilities: device.number(code::DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL),
            }),
        })
    }

    /// Whether the device has allocations of that kind.
    pub(crate) fn has(&self, kind: UsmKind) -> bool {
        match (&self.way, kind) {
            (_, UsmKind::Device) => true,
            (Way::Intel(intel), UsmKind::Host) => intel.host_capabilities & code::USM_ACCESS != 0,
            (Way::Intel(intel), UsmKind::Shared) => intel.shared_capabilities & code::USM_ACCESS != 0,
            (Way::Svm(svm), _) => svm.capabilities & code::SVM_FINE_GRAIN_BUFFER != 0,
        }
    }

    /// Whether atomic operations of kernels work on allocations of that kind; with `with_host`, also against those of the host.
    pub(crate) fn has_atomics(&self, kind: UsmKind, with_host: bool) -> bool {
        let needed = if with_host { code::USM_CONCURRENT_ATOMIC_ACCESS } else { code::USM_ATOMIC_ACCESS };
        match (&self.way, kind) {
            (_, UsmKind::Device) => !with_host,
            (Way::Intel(intel), UsmKind::Host) => intel.host_capabilities & needed != 0,
            (Way::Intel(intel), UsmKind::Shared) => intel.shared_capabilities & needed != 0,
            (Way::Svm(svm), _) => {
                let fine = svm.capabilities & code::SVM_FINE_GRAIN_BUFFER != 0;
                fine && (!with_host || svm.capabilities & code::SVM_ATOMICS != 0)
            }
        }
    }

    /// Allocates memory; `align` is at most [`ALIGNMENT`].
    pub(crate) fn allocate(
        &self,
        functions: &Functions,
        (context, device): (Object, Object),
        kind: UsmKind,
        size: usize,
        align: usize,
    ) -> Result<NonNull<u8>> {
        let align = align as u32;
        let mut result: Code = 0;
        let (call, pointer) = match &self.way {
            Way::Intel(intel) => {
                let (context, device, none) = (context.0, device.0, ptr::null());
                // SAFETY: a live context with its device, no properties, and an alignment that OpenCL has.
                unsafe {
                    match kind {
                        UsmKind::Host => {
                            ("clHostMemAllocINTEL", (intel.host)(context, none, size, align, &raw mut result))
                        }
                        UsmKind::Device => (
                            "clDeviceMemAllocINTEL",
                            (intel.device)(context, device, none, size, align, &raw mut result),
                        ),
                        UsmKind::Shared => (
                            "clSharedMemAllocINTEL",
                            (intel.shared)(context, device, none, size, align, &raw mut result),
                        ),
                    }
                }
            }
            Way::Svm(svm) => {
                let atomics = svm.capabilities & code::SVM_ATOMICS != 0;
                let flags = match kind {
                    UsmKind::Device => code::MEM_READ_WRITE,
                    _ if atomics => code::MEM_READ_WRITE | code::MEM_SVM_FINE_GRAIN_BUFFER | code::MEM_SVM_ATOMICS,
                    _ => code::MEM_READ_WRITE | code::MEM_SVM_FINE_GRAIN_BUFFER,
                };
                // SAFETY: a live context, flags that the device has, and an alignment that OpenCL has.
                let pointer = unsafe { (functions.clSVMAlloc)(context.0, flags, size, align) };
                // The call has no code.
                result = if pointer.is_null() { code::MEM_OBJECT_ALLOCATION_FAILURE } else { code::SUCCESS };
                ("clSVMAlloc", pointer)
            }
        };
        check(call, result)?;
        let pointer =
            NonNull::new(pointer.cast::<u8>()).ok_or(ClError { call, code: code::MEM_OBJECT_ALLOCATION_FAILURE })?;
        if let Way::Svm(svm) = &self.way {
            svm.add(pointer.as_ptr().expose_provenance());
        }
        Ok(pointer)
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `allocate` gave the address for that context, no code uses the memory, and it is freed once.
    pub(crate) unsafe fn free(&self, functions: &Functions, context: Object, pointer: NonNull<u8>) {
        match &self.way {
            // SAFETY: by the contract of this function. A failure cannot be helped.
            Way::Intel(intel) => unsafe {
                (intel.free)(context.0, pointer.as_ptr().cast());
            },
            Way::Svm(svm) => {
                if svm.remove(pointer.as_ptr().addr()) {
                    // SAFETY: as above, and no launch that has not ended has it in its list.
                    unsafe { (functions.clSVMFree)(context.0, pointer.as_ptr().cast()) };
                }
            }
        }
    }

    /// Frees the memory that `free` had to keep. No kernel runs, and none is launched any more.
    pub(crate) fn close(&self, functions: &Functions, context: Object) {
        if let Way::Svm(svm) = &self.way {
            svm.close(functions, context);
        }
    }

    /// Sets an argument of a kernel to an address.
    ///
    /// # Safety
    /// The kernel is live, and no other thread uses it now.
    pub(crate) unsafe fn set_pointer(
        &self,
        functions: &Functions,
        kernel: Object,
        index: u32,
        pointer: *const c_void,
    ) -> Result<()> {
        const CALL: &str = "clSetKernelArgMemPointerINTEL";
        match &self.way {
            Way::Intel(intel) => {
                let set = intel.set_pointer.ok_or(ClError { call: CALL, code: code::INVALID_OPERATION })?;
                // SAFETY: by the contract of this function.
                check(CALL, unsafe { set(kernel.0, index, pointer) })
            }
            // SAFETY: as above.
            Way::Svm(_) => check("clSetKernelArgSVMPointer", unsafe {
                (functions.clSetKernelArgSVMPointer)(kernel.0, index, pointer)
            }),
        }
    }

    pub(crate) fn svm(&self) -> Option<&Svm> {
        match &self.way {
            Way::Svm(svm) => Some(svm),
            Way::Intel(_) => None,
        }
    }

    /// Sets in the driver that a kernel may follow addresses in its captures. The caller has locked `kernel`, and launches it before it
    /// drops that lock and the returned guard.
    pub(crate) fn set_indirect_access(
        &self,
        functions: &Functions,
        context: Object,
        kernel: Object,
        indirect: &mut Indirect,
    ) -> Result<ListGuard<'_>> {
        let set = |what: u32, size: usize, value: *const c_void| {
            // SAFETY: a live kernel that no other thread uses now, and a value of the size that is said.
            check("clSetKernelExecInfo", unsafe { (functions.clSetKernelExecInfo)(kernel.0, what, size, value) })
        };
        let set_yes = |what| {
            let yes: u32 = 1;
            set(what, size_of::<u32>(), (&raw const yes).cast())
        };
        if !indirect.is_set {
            match &self.way {
                Way::Intel(_) => (0..3).try_for_each(|kind| set_yes(code::INDIRECT_HOST_ACCESS + kind))?,
                Way::Svm(svm) if svm.capabilities & code::SVM_FINE_GRAIN_SYSTEM != 0 => {
                    set_yes(code::KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM)?;
                }
                Way::Svm(_) => {}
            }
            indirect.is_set = true;
        }
        match &self.way {
            Way::Intel(_) => Ok(ListGuard::NOTHING),
            Way::Svm(svm) => svm.set_list(functions, context, &mut indirect.list, |what, pointers| {
                set(what, size_of_val(pointers), pointers.as_ptr().cast())
            }),
        }
    }
}
