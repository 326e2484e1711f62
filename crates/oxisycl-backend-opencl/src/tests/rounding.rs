//! The option for correctly rounded division and square root: who gets it, and drivers that do not know it.

use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use oxisycl_image::{DeviceImage, ImageTarget};
use tracing::Level;

use super::{devices, real};
use crate::sys::{Code, Handle, code};
use oxisycl_backend_testing::debug_events::events;

const OPTION: &str = "-cl-fp32-correctly-rounded-divide-sqrt";

/// A module without kernels: the header, the capabilities `Addresses`, `Kernel` and `Linkage`, and the memory model.
const WORDS: [u32; 14] =
    [0x0723_0203, 0x0001_0200, 0, 1, 0, 2 << 16 | 17, 4, 2 << 16 | 17, 6, 2 << 16 | 17, 5, 3 << 16 | 14, 2, 2];

fn image() -> DeviceImage {
    DeviceImage {
        target: ImageTarget::SpirV { major: 1, minor: 2 },
        kernels: Vec::new(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: WORDS.into_iter().flat_map(u32::to_le_bytes).collect(),
    }
}

unsafe extern "system" fn build_without_the_option(
    program: Handle,
    n_devices: u32,
    devices: *const Handle,
    options: *const c_char,
    notify: *const c_void,
    data: *mut c_void,
) -> Code {
    // SAFETY: the caller gives a text.
    if unsafe { CStr::from_ptr(options) }.to_string_lossy().contains(OPTION) {
        return code::INVALID_BUILD_OPTIONS;
    }
    let build = real().clBuildProgram;
    // SAFETY: the caller's arguments.
    unsafe { build(program, n_devices, devices, options, notify, data) }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_driver_that_refuses_to_round_correctly_is_warned_of_once_for_each_device() {
    for device in devices(|functions| functions.clBuildProgram = build_without_the_option) {
        let name = device.info().name.clone();
        // SAFETY: the code of this test.
        let load = || unsafe { device.load(&image(), None) }.map(drop);
        let (loaded, warnings) = events(Level::WARN, || [load(), load()]);
        assert!(loaded.iter().all(Result::is_ok), "the image is built without the option: {loaded:?}");
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains(&format!("\"{name}\"")) && warnings[0].contains(OPTION), "{warnings:?}");
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_driver_that_knows_the_option_is_not_warned_of_and_one_that_refuses_others_is_an_error() {
    for device in devices(|_| {}) {
        // SAFETY: the code of this test.
        let (loaded, warnings) = events(Level::WARN, || unsafe { device.load(&image(), None) }.map(drop));
        assert!(loaded.is_ok() && warnings.is_empty(), "{loaded:?}, {warnings:?}");
    }
    for device in devices(|functions| functions.clBuildProgram = build_without_the_option) {
        let wrong = DeviceImage { build_options: "-no-such-option".to_owned(), ..image() };
        // SAFETY: the driver refuses it.
        let (loaded, warnings) = events(Level::WARN, || unsafe { device.load(&wrong, None) }.map(drop));
        assert!(loaded.is_err() && warnings.is_empty(), "{loaded:?}, {warnings:?}");
    }
}

/// The options of all builds.
static OPTIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

unsafe extern "system" fn build_and_note_options(
    program: Handle,
    n_devices: u32,
    devices: *const Handle,
    options: *const c_char,
    notify: *const c_void,
    data: *mut c_void,
) -> Code {
    // SAFETY: the caller gives a text.
    OPTIONS.lock().unwrap().push(unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned());
    let build = real().clBuildProgram;
    // SAFETY: the caller's arguments.
    unsafe { build(program, n_devices, devices, options, notify, data) }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn code_and_binary_are_built_with_the_same_options() {
    for device in devices(|functions| functions.clBuildProgram = build_and_note_options) {
        let image = DeviceImage { build_options: "opt-level=3 -cl-mad-enable".to_owned(), ..image() };
        // SAFETY: the code of this test.
        let module = unsafe { device.load(&image, None) }.expect("the driver takes the image");
        let binary = module.binary();
        if let Some(binary) = &binary {
            // SAFETY: what `binary` gave.
            unsafe { device.load(&image, Some(binary)) }.expect("the driver takes its own binary");
        }
        let expected = vec![format!("{OPTION} -cl-mad-enable"); 1 + usize::from(binary.is_some())];
        assert_eq!(std::mem::take(&mut *OPTIONS.lock().unwrap()), expected);
    }
}
