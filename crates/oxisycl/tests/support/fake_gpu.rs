//! The driver without a GPU that the CUDA backend's tests have, in the place of the system's, and kernels for it.
//!
//! It is loaded by the system's name of the driver, so that a process of its own is needed for each test.

use std::any::{TypeId, type_name};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::prelude::*;
use oxisycl_image::{
    Argument, DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout, SpecializedLoad, encode_bundle,
};
use oxisycl_runtime::program::{__oxisycl_register_images, KernelKey};

/// A folder with the driver, of one test alone: others may run at the same time.
pub(crate) struct Driver(PathBuf);

impl Driver {
    /// Compiles the driver.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../oxisycl-backend-cuda/tests/fake_driver/library");
        let name = format!("driver-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let arguments =
            ["--edition", "2024", "--crate-type", "cdylib", "--crate-name", "driver", "-A", "warnings", "-o"];
        let mut command = Command::new(rustc);
        let compiled = command.args(arguments).arg(folder.join("libcuda.so.1")).arg(sources.join("lib.rs")).output();
        let compiled = compiled.unwrap();
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        Self(folder)
    }

    /// What a process that is to use it has in its environment.
    pub(crate) fn variable(&self) -> (&str, &str) {
        ("LD_LIBRARY_PATH", self.0.to_str().unwrap())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Gives a closure the signature of a kernel, and registers an image in which it is the driver's kernel of that name. The
/// image's code begins with `remark`: a line that tells the driver what to do when it compiles it, or loads of specialization constants.
pub(crate) fn kernel<K>(symbol: &str, remark: &str, kernel: K) -> K
where
    K: for<'wi> Fn(Item<'wi, 1>) + Copy + Send + Sync + 'static,
{
    register::<K>(symbol, remark, type_name::<K>(), Vec::new());
    kernel
}

/// Registers an image of a kernel over a range whose block is a `B`, as [`kernel`] does.
pub(crate) fn register<B: 'static>(symbol: &str, remark: &str, name: &str, arguments: Vec<Argument>) {
    let form = Form::Range(1);
    let code = format!(
        "{remark}\n.version 7.0\n.target sm_70\n.address_size 64\n.visible .entry {symbol}(.param .b8 launch[104])\n"
    );
    let entry = KernelEntry {
        arguments,
        specialized: SpecializedLoad::find(code.as_bytes()),
        ..KernelEntry::new(
            symbol,
            KernelKey::new(TypeId::of::<B>(), form).type_id,
            form,
            ParameterLayout { size: size_of::<B>(), align: align_of::<B>() },
            name,
        )
    };
    let image = DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: vec![entry],
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: code.into_bytes(),
    };
    let bytes = encode_bundle(&[image]).unwrap().leak();
    // SAFETY: the bytes are never freed. The driver knows what its kernels do.
    unsafe { __oxisycl_register_images(bytes.as_ptr(), bytes.len()) };
}
