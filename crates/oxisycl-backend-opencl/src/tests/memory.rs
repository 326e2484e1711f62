//! Where large allocations lie, and that the driver gets back what it gave.

use std::alloc::Layout;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use oxisycl_backend::lane::Driver;
use oxisycl_backend::{BackendError, Platform, UsmKind};
use oxisycl_types::DeviceType;

use super::{loaded, real, state};
use crate::SharingKind;
use crate::backend::OpenClBackend;
use crate::lane::OpenCl;
use crate::sys::Handle;

#[test]
#[ignore = "needs an OpenCL driver"]
fn large_allocations_of_processors_begin_with_a_large_page_and_go_back_to_the_driver_as_they_came() {
    static GIVEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    static BACK: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    unsafe extern "system" fn allocate(context: Handle, flags: u64, size: usize, align: u32) -> *mut c_void {
        let allocate = real().clSVMAlloc;
        // SAFETY: the caller's arguments.
        let pointer = unsafe { allocate(context, flags, size, align) };
        GIVEN.lock().unwrap().push(pointer as usize);
        pointer
    }
    unsafe extern "system" fn free(context: Handle, pointer: *mut c_void) {
        BACK.lock().unwrap().push(pointer as usize);
        let free = real().clSVMFree;
        // SAFETY: the caller's arguments.
        unsafe { free(context, pointer) };
    }
    let mut functions = loaded();
    (functions.clSVMAlloc, functions.clSVMFree) = (allocate, free);
    let backend = OpenClBackend::new().sharing(SharingKind::Svm);
    let platforms: Vec<Arc<Platform>> = backend.open_all(&Arc::new(functions)).expect("platforms can be asked for");
    let devices = platforms.iter().flat_map(|platform| platform.devices());
    let is_processor = |device: &Arc<dyn oxisycl_backend::Device>| {
        device.info().unusable.is_none() && device.info().device_type == DeviceType::Cpu
    };
    let device = devices.into_iter().find(is_processor).expect("there is a processor among the OpenCL devices");
    const PAGE: usize = 2 << 20;
    let memory = device.memory();
    let layout = |size: usize| Layout::from_size_align(size, 64).expect("a layout");
    let all: Vec<_> = [PAGE, PAGE + 4096, 3 * PAGE - 8, 4 * PAGE]
        .map(|size| (layout(size), memory.allocate(UsmKind::Device, layout(size), true).expect("there is memory")))
        .into();
    for (layout, pointer) in &all {
        assert!((pointer.as_ptr() as usize).is_multiple_of(PAGE), "{pointer:?} of {layout:?}");
        // SAFETY: so many bytes were allocated, which the host reaches on such a device, and no other code uses.
        let bytes = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), layout.size()) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(1);
    }
    let small = layout(4096);
    let pointer = memory.allocate(UsmKind::Device, small, false).expect("there is memory");
    for (layout, pointer) in all.into_iter().chain([(small, pointer)]) {
        // SAFETY: allocated above, and not used any more.
        unsafe { memory.free(pointer, UsmKind::Device, layout) };
    }
    let (mut given, mut back) = (GIVEN.lock().unwrap().clone(), BACK.lock().unwrap().clone());
    given.sort_unstable();
    back.sort_unstable();
    assert!(given.len() >= 5 && back.iter().all(|pointer| given.contains(pointer)), "{given:x?} {back:x?}");
    assert_eq!(back.len(), 5, "{given:x?} {back:x?}");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_lack_of_memory_is_told_as_such_with_device_and_size() {
    unsafe extern "system" fn none(_: Handle, _: u64, _: usize, _: u32) -> *mut c_void {
        std::ptr::null_mut()
    }
    let mut functions = loaded();
    functions.clSVMAlloc = none;
    let backend = OpenClBackend::new().sharing(SharingKind::Svm);
    let platforms: Vec<Arc<Platform>> = backend.open_all(&Arc::new(functions)).expect("platforms can be asked for");
    let devices: Vec<_> = platforms.iter().flat_map(|platform| platform.devices()).collect();
    let device = devices.iter().find(|device| device.info().unusable.is_none()).expect("an OpenCL device can be used");
    let layout = Layout::new::<[u64; 32]>();
    let error = device.memory().allocate(UsmKind::Device, layout, false).expect_err("there is no memory");
    let BackendError::OutOfMemory { device: name, requested: 256, .. } = &error else { panic!("{error}") };
    assert_eq!(*name, device.info().name);
    // Records of panics, the same; the device is not lost by it.
    let state = state(device);
    let error = OpenCl::records(state, 64).err().expect("there is no memory");
    assert!(matches!(error, BackendError::OutOfMemory { .. }), "{error}");
    assert!(state.context.check_alive().is_ok());
}
