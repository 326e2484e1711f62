//! Devices that lack something, and loaders that know nothing.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl_backend::{BackendError, QueueOptions, UsmKind};
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_image::{DeviceImage, Form, GroupNeeds, KernelEntry};

use super::kernels::{entry, module};
use super::{devices, platforms, real, usable_devices};
use crate::sys::{Code, Functions, Handle, code};

/// Answers a query with a text.
unsafe fn answer(text: &[u8], size: usize, value: *mut c_void, needed: *mut usize) -> Code {
    // SAFETY: the caller gives room for as many bytes as it says, or null.
    unsafe {
        if !needed.is_null() {
            needed.write(text.len());
        }
        if !value.is_null() && size >= text.len() {
            value.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        }
    }
    code::SUCCESS
}

macro_rules! without {
    ($name:ident, $what:expr, $text:expr) => {
        unsafe extern "system" fn $name(
            device: Handle,
            what: u32,
            size: usize,
            value: *mut c_void,
            needed: *mut usize,
        ) -> Code {
            if what == $what {
                // SAFETY: the caller's room, as it says.
                return unsafe { answer($text, size, value, needed) };
            }
            let get = real().clGetDeviceInfo;
            // SAFETY: the caller's arguments.
            unsafe { get(device, what, size, value, needed) }
        }
    };
}

without!(no_il, code::DEVICE_IL_VERSION, b"\0");
without!(old_il, code::DEVICE_IL_VERSION, b"SPIR-V_1.0 \0");
without!(old_version, code::DEVICE_VERSION, b"OpenCL 1.2 of a test\0");
without!(narrow, code::DEVICE_ADDRESS_BITS, &32u32.to_ne_bytes());
without!(absent, code::DEVICE_AVAILABLE, &0u32.to_ne_bytes());

/// A query of a device.
type Query = unsafe extern "system" fn(Handle, u32, usize, *mut c_void, *mut usize) -> Code;

#[test]
#[ignore = "needs an OpenCL driver"]
fn devices_that_lack_something_are_listed_with_the_reason() {
    let cases: [(Query, &str); 5] = [
        (no_il, "its driver takes no SPIR-V"),
        (old_il, "its driver takes SPIR-V 1.0 at most; kernels are SPIR-V 1.2"),
        (old_version, "it is an OpenCL 1.2 device"),
        (narrow, "its addresses have 32 bits"),
        (absent, "its driver says that it is not available"),
    ];
    for (query, expected) in cases {
        for device in devices(|functions: &mut Functions| functions.clGetDeviceInfo = query) {
            let reason = device.info().unusable.clone().expect("it cannot be used");
            assert!(reason.contains(expected), "{reason}");
            assert!(
                !device.info().is_available
                    && !device.info().name.is_empty()
                    && !device.info().image_targets.is_empty()
            );
            let refused = [
                create_queue(&device, &QueueOptions::default()).err(),
                device.memory().allocate(UsmKind::Device, std::alloc::Layout::new::<u64>(), false).err(),
                device.partition(&oxisycl_backend::Partition::Equally(1)).err(),
            ];
            for error in refused {
                let error = error.expect("it does nothing");
                assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
                assert!(error.to_string().contains(&reason), "{error}");
            }
        }
    }
}

without!(no_generic_addresses, code::DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, &0u32.to_ne_bytes());
without!(no_extensions, code::DEVICE_EXTENSIONS, b"cl_khr_fp64 cl_intel_unified_shared_memory\0");

#[test]
#[ignore = "needs an OpenCL driver"]
fn code_that_needs_what_the_device_lacks_is_refused_before_the_driver_sees_it() {
    let cases: [(Query, u32, &str); 2] =
        [(no_generic_addresses, 38, "generic addresses"), (no_extensions, 65, "shuffles of sub-groups")];
    for (query, capability, expected) in cases {
        for device in devices(|functions: &mut Functions| functions.clGetDeviceInfo = query) {
            if device.info().unusable.is_some() || !device.info().version.starts_with("OpenCL 3") {
                println!("not tested on {}: {}", device.info().name, device.info().version);
                continue;
            }
            let words = [0x0723_0203, 0x0001_0200, 0, 1, 0, 2 << 16 | 17, capability];
            let image = DeviceImage {
                target: device.info().image_targets[0].clone(),
                kernels: Vec::new(),
                build_options: String::new(),
                unsupported: Vec::new(),
                sites: Vec::new(),
                code: words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect(),
            };
            // SAFETY: the code is refused.
            let refused = unsafe { device.load(&image, None) };
            let Err(BackendError::Unsupported { device: name, what }) = refused else { panic!("it was not refused") };
            assert!(name == device.info().name && what.contains(expected), "{what}");
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_loader_without_drivers_or_with_broken_ones_means_no_platform() {
    unsafe extern "system" fn none(_n: u32, _platforms: *mut Handle, _count: *mut u32) -> Code {
        code::PLATFORM_NOT_FOUND
    }
    unsafe extern "system" fn out_of_memory(_n: u32, _platforms: *mut Handle, _count: *mut u32) -> Code {
        code::OUT_OF_HOST_MEMORY
    }
    for answer in [none, out_of_memory] {
        let platforms = platforms(|functions| functions.clGetPlatformIDs = answer);
        assert!(platforms.is_empty(), "an error would be one of the whole runtime");
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_platform_that_fails_is_left_out() {
    unsafe extern "system" fn fails(_: Handle, _: u64, _: u32, _: *mut Handle, _: *mut u32) -> Code {
        code::DEVICE_NOT_FOUND
    }
    assert!(platforms(|functions| functions.clGetDeviceIDs = fails).is_empty());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_driver_without_a_clock_has_times_on_the_hosts() {
    unsafe extern "system" fn no_timer(_: Handle, _: *mut u64, _: *mut u64) -> Code {
        -59
    }
    for device in devices(|functions| functions.clGetDeviceAndHostTimer = no_timer) {
        let before = oxisycl_backend::now();
        let queue =
            create_queue(&device, &QueueOptions { profiling: true, ..QueueOptions::default() }).expect("a queue");
        let outcome = super::losses::fill(&device, &queue).expect("the command is accepted");
        let times = outcome.times.expect("times are recorded");
        assert!([before, times.start, times.end, oxisycl_backend::now()].is_sorted(), "{times:?}");
    }
}

/// OpenCL does not say what becomes of a barrier to which some work-items do not come. A panic ends them.
#[test]
#[ignore = "needs an OpenCL driver"]
fn a_driver_of_which_too_little_is_known_gets_no_barriers_behind_panics() {
    unsafe extern "system" fn unknown(
        platform: Handle,
        what: u32,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> Code {
        if what == code::PLATFORM_VENDOR {
            // SAFETY: the caller's room, as it says.
            return unsafe { answer(b"A vendor of a test\0", size, value, needed) };
        }
        // SAFETY: the caller's arguments.
        unsafe { (real().clGetPlatformInfo)(platform, what, size, value, needed) }
    }
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "system" fn release(kernel: Handle) -> Code {
        RELEASED.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's kernel.
        unsafe { (real().clReleaseKernel)(kernel) }
    }
    let with = |may_panic, has_barriers| {
        let groups = GroupNeeds { has_barriers, ..GroupNeeds::default() };
        KernelEntry { may_panic, groups, form: Form::Group(1), ..entry("affine") }
    };
    let devices = usable_devices(|functions| {
        functions.clGetPlatformInfo = unknown;
        functions.clReleaseKernel = release;
    });
    for device in &devices {
        for (may_panic, has_barriers) in [(true, false), (false, true)] {
            assert!(module(device, with(may_panic, has_barriers)).kernel("affine").is_ok());
        }
        let before = RELEASED.load(Ordering::Relaxed);
        let refused = module(device, with(true, true)).kernel("affine");
        let Err(BackendError::Unsupported { device: name, what }) = refused else { panic!("it was not refused") };
        assert!(name == device.info().name && what.contains("kernel \"affine\"") && what.contains("barrier"), "{what}");
        assert_eq!(RELEASED.load(Ordering::Relaxed), before + 1, "what the driver has made is released");
    }
    // The drivers themselves are known, if they are those that tests are run with.
    for device in usable_devices(|_| {}).iter().filter(|device| super::state(device).context.quirks.barriers_go_on) {
        assert!(module(device, with(true, true)).kernel("affine").is_ok());
    }
}
