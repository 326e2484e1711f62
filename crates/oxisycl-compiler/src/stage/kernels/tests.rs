//! Finds the kernels of a small program that the toolchain's own rustc compiles.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::Toolchain;
use crate::library::read;

fn bitcode(mangling: &str) -> Vec<u8> {
    static N_CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = N_CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("oxisycl-kernels-{}-{call}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (source, output) = (folder.join("launches.rs"), folder.join("launches.bc"));
    std::fs::write(&source, include_str!("launches.rs")).expect("a source");
    let mut rustc = Command::new("rustc");
    rustc.args([
        "--edition=2024",
        "--crate-name=oxisycl_device",
        "--crate-type=lib",
        "--emit=llvm-bc",
        "-Cdebuginfo=2",
    ]);
    rustc.args(["-Copt-level=0", "-Cno-prepopulate-passes", "-Ccodegen-units=1", "-Awarnings"]);
    rustc.arg(format!("-Csymbol-mangling-version={mangling}")).arg("-o").arg(&output).arg(&source);
    // v0 is stable, the name of the legacy scheme is not.
    if mangling == "legacy" {
        rustc.env("RUSTC_BOOTSTRAP", "1").arg("-Zunstable-options");
    }
    assert!(rustc.status().expect("rustc runs").success());
    let bytes = read(&output).expect("bitcode");
    let _ = std::fs::remove_dir_all(&folder);
    bytes
}

fn kernels(mangling: &str) -> Vec<Kernel> {
    let toolchain = Toolchain::of(Path::new("rustc")).expect("the tests run under a toolchain with LLVM");
    crate::llvm::load(&toolchain.llvm_library).expect("LLVM loads");
    let context = Context::new();
    let bytes = bitcode(mangling);
    let module = Module::from_bitcode(&context, &bytes, "test", false).expect("bitcode");
    let kernels = find(&context, &bytes, &module).expect("kernels");
    for kernel in &kernels {
        assert!(module.function(&kernel.entry).is_some(), "{kernel:?}");
    }
    kernels
}

#[test]
fn kernels_are_described_as_the_program_describes_them() {
    for mangling in ["legacy", "v0"] {
        let kernels = kernels(mangling);
        assert_eq!(kernels.len(), 13, "{mangling}: {kernels:#?}");
        let named = |name: &str| {
            let mut found =
                kernels.iter().filter(|kernel| kernel.type_name.starts_with(&format!("oxisycl_device::{name}::")));
            let kernel = found.next().unwrap_or_else(|| panic!("{mangling}: no kernel {name}: {kernels:#?}"));
            assert!(found.next().is_none());
            kernel
        };
        assert_eq!(named("scalar").parameters, ParameterLayout { size: 8, align: 8 });
        assert_eq!(named("pair").parameters, ParameterLayout { size: 16, align: 4 });
        assert_eq!(named("nothing").parameters, ParameterLayout { size: 0, align: 1 });
        assert_eq!(named("nothing").form, Form::Range(3));
        assert_eq!(named("item").form, Form::Range(2));
        let mut ids: Vec<_> = kernels.iter().map(|kernel| kernel.type_id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), kernels.len(), "each kernel has an id of its own");
        // What a device may be given.
        for name in ["scalar", "pair", "shape", "accessor", "option", "item", "nothing"] {
            assert_eq!(named(name).refused_captures, None, "{mangling}: {name}");
        }
        // Addresses of the host, however they are wrapped.
        for (name, capture) in [
            ("text", "`text"),
            ("reference", "`reference`"),
            ("maybe_reference", "`maybe_reference"),
            ("function", "`function`"),
            ("object", "`object"),
            ("wrapped", "`wrapped.address`"),
        ] {
            let reason =
                named(name).refused_captures.clone().unwrap_or_else(|| panic!("{mangling}: {name} is allowed"));
            assert!(reason.starts_with(&format!("its capture {capture}")), "{reason}");
        }
    }
}

#[test]
fn without_debug_information_no_kernel_leaves_the_host() {
    let toolchain = Toolchain::of(Path::new("rustc")).expect("the tests run under a toolchain with LLVM");
    crate::llvm::load(&toolchain.llvm_library).expect("LLVM loads");
    let context = Context::new();
    let bytes = bitcode("v0");
    let module = Module::from_bitcode(&context, &bytes, "test", false).expect("bitcode");
    module.strip_debug_info();
    let kernels = find(&context, &bytes, &module).expect("kernels");
    assert!(kernels.iter().all(|kernel| kernel.refused_captures.is_some()));
}
