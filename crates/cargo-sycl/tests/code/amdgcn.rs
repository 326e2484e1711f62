//! Ordinary kernels for AMD GPUs, which no backend runs yet. Each has a code object whose every byte is an instruction of the processor,
//! with the barriers and shuffles of the source.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::convergence::SHAPES;
use crate::disassembly::disassemble;
use crate::program::Package;

const PROCESSORS: [&str; 3] = ["gfx90a", "gfx942", "gfx1100"];

/// The toolchain's LLVM.
fn llvm() -> PathBuf {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let folder = Path::new(String::from_utf8(output.stdout).unwrap().trim()).join("lib");
    let mut files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files.find(|path| path.to_str().unwrap().contains("/libLLVM.so.")).expect("the toolchain's LLVM")
}

/// The instructions of each kernel of a program, by the kernel's symbol.
type Kernels = BTreeMap<String, Vec<String>>;

/// The kernels of a program for each processor.
fn kernels(package: &Package, program: &str) -> [(&'static str, Kernels); 3] {
    let (_, messages) = package.sycl(&["build", "--targets", &PROCESSORS.join(","), "--bin", program]);
    assert!(!messages.contains("warning"), "{messages}");
    let binary = format!("target/sycl/debug/{program}");
    let llvm = llvm();
    let of_processor = |processor: &'static str| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-objects");
        let _ = fs::remove_dir_all(&folder);
        let emit = ["inspect", &binary, "--target", processor, "--emit", "amdgcn", "--out", folder.to_str().unwrap()];
        package.sycl(&emit);
        let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
        let of_file = |file: PathBuf| {
            let functions = disassemble(&llvm, processor, &fs::read(&file).unwrap());
            let functions = functions.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let symbol = file.file_stem().unwrap().to_str().unwrap().to_owned();
            let ends = functions[&symbol].iter().filter(|text| text.starts_with("s_endpgm")).count();
            assert!(ends > 0, "{symbol} for {processor}: {:#?}", functions[&symbol]);
            (symbol, functions.into_values().flatten().collect())
        };
        (processor, files.map(of_file).collect())
    };
    PROCESSORS.map(of_processor)
}

#[test]
fn barriers_and_shuffles_for_amd_gpus_are_those_of_the_source() {
    let package = Package::enter();
    for (processor, kernels) in kernels(&package, "convergence") {
        assert_eq!(kernels.len(), SHAPES.len(), "{processor}");
        for (shape, barriers, shuffles) in SHAPES {
            let name = format!("convergence_{shape}_closure");
            let (_, code) = kernels.iter().find(|(symbol, _)| symbol.contains(&name)).unwrap();
            let count = |name: &str| code.iter().filter(|text| text.split(' ').next() == Some(name)).count();
            // The lanes are constants, so that a shuffle is a read of one lane. So is what comes back of scalars that registers did not
            // suffice for, and each of those is written to a lane before.
            let is_spilled = count("v_writelane_b32") > 0;
            let n_shuffles = count("ds_bpermute_b32") + if is_spilled { 0 } else { count("v_readlane_b32") };
            let found = (count("s_barrier"), n_shuffles);
            assert_eq!(found, (barriers, shuffles), "{shape} for {processor}: barriers and shuffles\n{code:#?}");
        }
    }
}

#[test]
fn library_functions_become_instructions_of_amd_gpus() {
    let package = Package::enter();
    for (processor, kernels) in kernels(&package, "library") {
        assert_eq!(kernels.len(), 4, "{processor}");
        let (_, code) = kernels.iter().find(|(symbol, _)| symbol.contains("mathematics")).unwrap();
        // Sums and products in both precisions: the gamma function is one of `f64`.
        for name in ["v_fma_f64", "v_fma_f32"] {
            assert!(code.iter().any(|text| text.starts_with(name)), "{name} for {processor}: {code:#?}");
        }
    }
}
