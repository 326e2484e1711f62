//! Compiling, loading and steering the fake driver.

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libloading::{Library, Symbol};
use oxisycl_backend::{Backend, Device};
use oxisycl_backend_cuda::CudaBackend;

/// The library's folder, and its files, whose content names the compiled library.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_driver/library");
const SOURCES: &[&str] = &[
    include_str!("library/lib.rs"),
    include_str!("library/copies.rs"),
    include_str!("library/device.rs"),
    include_str!("library/graphs.rs"),
    include_str!("library/hints.rs"),
    include_str!("library/kernels.rs"),
    include_str!("library/loads.rs"),
    include_str!("library/memory.rs"),
    include_str!("library/module.rs"),
    include_str!("library/stream.rs"),
];

/// One driver, with its own devices.
pub(crate) struct Fake {
    library: Library,
    path: PathBuf,
}

impl Fake {
    /// A driver for CUDA 12.4 with one device.
    pub(crate) fn new() -> Self {
        Self::load(&compile(&[]))
    }

    /// A driver for CUDA 11.8, which lacks what later ones have, with one device.
    pub(crate) fn old() -> Self {
        let fake = Self::load(&compile(&["--cfg", "old_driver"]));
        fake.set("version", 11_080);
        fake
    }

    fn load(compiled: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = compiled.with_extension(format!("{}-{number}.so", std::process::id()));
        fs::copy(compiled, &path).expect("the target folder can be written");
        // SAFETY: the library was just compiled from this test's sources, and has no initialisers.
        let load = || unsafe { Library::new(&path) }.expect("the library can be loaded");
        // Never unloaded, as no driver is: threads of it may run still.
        std::mem::forget(load());
        Self { library: load(), path }
    }

    /// A driver with settings.
    pub(crate) fn with(settings: &[(&str, i64)]) -> Self {
        let fake = Self::new();
        for (key, value) in settings {
            fake.set(key, *value);
        }
        fake
    }

    pub(crate) fn set(&self, key: &str, value: i64) {
        let key = CString::new(key).expect("no NUL byte");
        // SAFETY: the symbol has this type in the library's sources.
        let set: Symbol<'_, unsafe extern "C" fn(*const c_char, i64)> =
            unsafe { self.library.get(b"fake_set\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { set(key.as_ptr(), value) }
    }

    /// Lets a call fail once, after `skip` calls that succeed.
    pub(crate) fn fail(&self, call: &str, skip: u64, code: i32) {
        let call = CString::new(call).expect("no NUL byte");
        // SAFETY: the symbol has this type in the library's sources.
        let fail: Symbol<'_, unsafe extern "C" fn(*const c_char, u64, i32)> =
            unsafe { self.library.get(b"fake_fail\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { fail(call.as_ptr(), skip, code) }
    }

    /// Lets the driver end with the process, as NVIDIA's does: no call does anything from then on.
    pub(crate) fn end_with_process(&self) {
        // SAFETY: the symbol has this type in the library's sources.
        let end: Symbol<'_, unsafe extern "C" fn()> =
            unsafe { self.library.get(b"fake_end_with_process\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { end() }
    }

    /// How often a call was made.
    pub(crate) fn count(&self, call: &str) -> u64 {
        let call = CString::new(call).expect("no NUL byte");
        // SAFETY: the symbol has this type in the library's sources.
        let count: Symbol<'_, unsafe extern "C" fn(*const c_char) -> u64> =
            unsafe { self.library.get(b"fake_count\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { count(call.as_ptr()) }
    }

    /// Bytes that are allocated, modules that are loaded, contexts that are retained.
    pub(crate) fn held(&self) -> [i64; 3] {
        self.ask([c"fake_allocated", c"fake_modules", c"fake_retained"])
    }

    /// The numbers that these functions return.
    fn ask<const N: usize>(&self, names: [&CStr; N]) -> [i64; N] {
        names.map(|name| {
            // SAFETY: the symbols have this type in the library's sources.
            let ask: Symbol<'_, unsafe extern "C" fn() -> i64> =
                unsafe { self.library.get(name.to_bytes_with_nul()) }.expect("the symbol");
            // SAFETY: as above.
            unsafe { ask() }
        })
    }

    /// Lets `cuGraphLaunch` fail once, after `skip` calls that succeed, with the first `n_kernels` kernels on the stream.
    ///
    /// Old drivers have no graphs.
    pub(crate) fn fail_within_graph(&self, skip: u64, n_kernels: u64, code: i32) {
        // SAFETY: the symbol has this type in the library's sources.
        let fail: Symbol<'_, unsafe extern "C" fn(u64, u64, i32)> =
            unsafe { self.library.get(b"fake_fail_within_graph\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { fail(skip, n_kernels, code) }
    }

    /// Kernels that have ended: those that were launched directly, and those of launched graphs.
    pub(crate) fn ran(&self) -> [i64; 2] {
        self.ask([c"fake_ran_directly", c"fake_ran_in_graphs"])
    }

    /// Graphs and executable graphs that were not destroyed.
    ///
    /// Old drivers have no graphs.
    pub(crate) fn held_graphs(&self) -> [i64; 2] {
        self.ask([c"fake_graphs", c"fake_graph_execs"])
    }

    /// A call of the driver, if this driver has it.
    ///
    /// # Safety
    /// `T` is the type of a pointer to the function of this name.
    pub(crate) unsafe fn call<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: by the contract of this function.
        unsafe { self.library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }

    /// The hints that the driver has received. Each is the version of the call, the advice or 0 for a prefetch, and the device or -1 for
    /// the host.
    pub(crate) fn hints(&self) -> Vec<[i64; 3]> {
        // SAFETY: the symbol has this type in the library's sources.
        let hint: Symbol<'_, unsafe extern "C" fn(usize, *mut [i64; 3]) -> bool> =
            unsafe { self.library.get(b"fake_hint\0") }.expect("the symbol");
        let mut found = [0; 3];
        // SAFETY: as above; writes one hint.
        (0..).map_while(|position| unsafe { hint(position, &raw mut found) }.then_some(found)).collect()
    }

    /// Bytes of stack for each work-item.
    pub(crate) fn stack(&self) -> i64 {
        // SAFETY: the symbol has this type in the library's sources.
        let stack: Symbol<'_, unsafe extern "C" fn() -> i64> =
            unsafe { self.library.get(b"fake_stack\0") }.expect("the symbol");
        // SAFETY: as above.
        unsafe { stack() }
    }

    pub(crate) fn backend(&self) -> CudaBackend {
        // SAFETY: the library implements what the backend uses of the driver API.
        unsafe { CudaBackend::with_library(&self.path) }
    }

    pub(crate) fn devices(&self) -> Vec<Arc<dyn Device>> {
        let platforms = self.backend().platforms().expect("the platforms");
        platforms.iter().flat_map(|platform| platform.devices()).collect()
    }

    pub(crate) fn device(&self) -> Arc<dyn Device> {
        self.devices().remove(0)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The compiled library, made once for this content and these options.
fn compile(options: &[&str]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (SOURCES, options).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let library = folder.join(format!("fake_driver-{:016x}", hasher.finish()));
    if library.exists() {
        return library;
    }
    let temporary = folder.join(format!("fake_driver-{}-{:?}", std::process::id(), std::thread::current().id()));
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "fake_driver", "-O", "-A", "warnings"])
        .args(options)
        .arg(format!("{FOLDER}/lib.rs"))
        .arg("-o")
        .arg(&temporary)
        .output()
        .expect("rustc can be started");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    fs::rename(&temporary, &library).expect("the target folder can be written");
    library
}
