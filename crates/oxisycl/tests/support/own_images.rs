//! Device images that a test makes itself, and libraries that have some, for simulated devices that ask for images.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::any::{TypeId, type_name};
use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout, encode_bundle};
use oxisycl_runtime::program::{__oxisycl_register_images, __oxisycl_unregister_images, KernelKey};

/// Bytes that are registered until this is dropped.
pub(crate) struct Registered(Vec<u8>);

impl Registered {
    pub(crate) fn new(images: &[DeviceImage]) -> Self {
        let bytes = encode_bundle(images).unwrap();
        // SAFETY: the bytes do not move with the vector and live until they are taken back. Simulated devices run no code of images.
        unsafe { __oxisycl_register_images(bytes.as_ptr(), bytes.len()) };
        Self(bytes)
    }

    /// Bytes that the test has registered.
    pub(crate) fn taken(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: registered by `new`.
        unsafe { __oxisycl_unregister_images(self.0.as_ptr(), self.0.len()) };
    }
}

pub(crate) fn entry<K: 'static>(form: Form) -> KernelEntry {
    KernelEntry::new(
        "kernel",
        KernelKey::new(TypeId::of::<K>(), form).type_id,
        form,
        ParameterLayout { size: size_of::<K>(), align: align_of::<K>() },
        type_name::<K>(),
    )
}

pub(crate) fn image(kernels: Vec<KernelEntry>) -> DeviceImage {
    DeviceImage {
        target: ImageTarget::Host { triple: "simulated".to_owned(), level: None },
        kernels,
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: vec![1, 2, 3],
    }
}

/// An image of the kernel over one dimension.
pub(crate) fn image_of<K: 'static>(_kernel: &K) -> DeviceImage {
    image(vec![entry::<K>(Form::Range(1))])
}

pub(crate) fn device() -> Device {
    Simulator::new(SimulatedConfig::new(1).native_kernels(false)).unwrap().devices()[0].clone()
}

/// Gives a closure the signature of a kernel.
pub(crate) fn kernel<K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static>(kernel: K) -> K {
    kernel
}

/// A library with a bundle of images, loaded with `dlopen`.
#[cfg(target_os = "linux")]
pub(crate) struct Library {
    handle: *mut libc::c_void,
    folder: PathBuf,
    bytes: (*const u8, usize),
}

#[cfg(target_os = "linux")]
impl Library {
    pub(crate) fn load(name: &str, images: &[DeviceImage]) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("oxisycl-library-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (bundle, source, library) = (folder.join("bundle"), folder.join("l.s"), folder.join(format!("{name}.so")));
        std::fs::write(&bundle, encode_bundle(images).unwrap()).unwrap();
        let text = format!(
            ".section .rodata\n.globl begin_images\n.globl end_images\n.balign 8\nbegin_images:\n.incbin {:?}\nend_images:\n",
            bundle.display()
        );
        std::fs::write(&source, text).unwrap();
        let made = Command::new("cc").args(["-shared", "-nostdlib", "-o"]).args([&library, &source]).status().unwrap();
        assert!(made.success());
        let path = CString::new(library.to_str().unwrap()).unwrap();
        // SAFETY: a library without code.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null());
        let symbol = |name: &CStr| {
            // SAFETY: the handle is that of a loaded library.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            assert!(!address.is_null());
            address.cast_const().cast::<u8>()
        };
        let (begin, end) = (symbol(c"begin_images"), symbol(c"end_images"));
        let bytes = (begin, end.addr() - begin.addr());
        // What a constructor of the library would do.
        // SAFETY: the bytes are constants of the library, which is unloaded after they were taken back.
        unsafe { __oxisycl_register_images(bytes.0, bytes.1) };
        Self { handle, folder, bytes }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: registered and loaded by `load`.
        unsafe {
            __oxisycl_unregister_images(self.bytes.0, self.bytes.1);
            libc::dlclose(self.handle);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
