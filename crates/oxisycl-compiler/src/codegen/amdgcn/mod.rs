//! AMD GPUs: code objects for one processor, which the driver loads as they are.
//!
//! LLVM makes an object file. The linker that comes with rustc makes a shared object of it, which drivers need. No part of ROCm is needed.
//! There is no backend that launches them yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl_image::ParameterLayout;

use crate::builtin_table::{Bodies, Family, LOCAL_MEMORY};
use crate::codegen::Target;
use crate::codegen::entry::{self, LAUNCH_SIZE, Passing};
use crate::error::CompileError;
use crate::kernel::Kernel;
use crate::llvm::{Attribute, Builder, Codegen, Machine, Module, Value};
use crate::passes::early_return;
use crate::refused::Refused;
use crate::toolchain::Toolchain;

const TRIPLE: &str = "amdgcn-amd-amdhsa";
/// Calling convention `amdgpu_kernel`.
const KERNEL_CONVENTION: u32 = 91;
/// The address space of constant memory, which holds the arguments.
const CONSTANT: u32 = 4;
const LOCAL: u32 = 3;
// The address space says already that the memory does not change.
const PASSING: Passing = Passing {
    convention: KERNEL_CONVENTION,
    address_space: CONSTANT,
    attribute: "byref",
    marks: &[],
    is_constant: false,
};
/// The most bytes of arguments that drivers are known to accept.
const MAX_PARAMETERS: usize = 4096;

pub(crate) struct Amdgcn {
    machine: Machine,
}

impl Amdgcn {
    /// `arch` is a processor, and features after colons: `gfx90a:sramecc+:xnack-`.
    pub(crate) fn new(arch: &str) -> Result<Self, CompileError> {
        let mut parts = arch.split(':');
        let processor = parts.next().unwrap_or_default();
        let mut features = Vec::new();
        for part in parts {
            let feature = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name @ ("sramecc" | "xnack")), _) => format!("+{name}"),
                (_, Some(name @ ("sramecc" | "xnack"))) => format!("-{name}"),
                _ => {
                    return Err(CompileError::Target(format!(
                        "{arch}: expected sramecc or xnack with + or - after the processor, found {part:?}"
                    )));
                }
            };
            features.push(feature);
        }
        Ok(Self { machine: Machine::new(TRIPLE, processor, &features.join(","))? })
    }
}

impl Target for Amdgcn {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn builtins(&self) -> Bodies {
        Bodies { family: Family::Amdgcn, text: include_str!("builtins.ll"), has_reductions: false }
    }

    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        let function = entry::add(module, kernel, &PASSING, false)?;
        // There is nothing behind the two arguments that only the libraries of ROCm would read.
        let no_more = Attribute::text(module.context(), "amdgpu-implicitarg-num-bytes", "0");
        function.add_attribute(Attribute::FUNCTION, no_more);
        Ok(function)
    }

    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c> {
        entry::add_launch_slot(module, LOCAL)
    }

    fn max_arguments(&self, align: usize) -> usize {
        MAX_PARAMETERS.saturating_sub(LAUNCH_SIZE.next_multiple_of(align))
    }

    fn is_own_global(&self, name: &str) -> bool {
        name == LOCAL_MEMORY
    }

    fn end_work_item<'c>(&self, module: &Module<'c>, builder: &Builder<'c>) {
        early_return::mark(module, builder);
    }

    fn examine(&self, module: &Module<'_>, kernel: &str) -> Result<Vec<&'static str>, Refused> {
        let function = module.function(kernel).and_then(|kernel| early_return::outside(module, kernel));
        match function {
            Some(function) => Err(early_return::refusal(function)),
            None => Ok(Vec::new()),
        }
    }

    fn names_lines(&self) -> bool {
        false
    }

    fn emit(
        &self,
        module: &Module<'_>,
        _arguments: ParameterLayout,
        toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError> {
        link(&self.machine.emit(module, Codegen::Object)?, toolchain)
    }
}

/// Links an object file into a shared object.
fn link(object: &[u8], toolchain: &Toolchain) -> Result<Vec<u8>, CompileError> {
    let linker = toolchain.sysroot.join("lib/rustlib").join(&toolchain.host).join("bin/rust-lld");
    let folder = Folder::new()?;
    let (input, output) = (folder.0.join("kernels.o"), folder.0.join("kernels.hsaco"));
    fs::write(&input, object).map_err(|error| CompileError::File { path: input.clone(), error })?;
    let mut command = Command::new(&linker);
    command.args(["-flavor", "gnu", "-shared", "--no-undefined", "-o"]).arg(&output).arg(&input).stdin(Stdio::null());
    let ended = command.output().map_err(|error| CompileError::File { path: linker.clone(), error })?;
    if !ended.status.success() {
        let messages = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        return Err(CompileError::Toolchain(format!("{}: {messages}", linker.display())));
    }
    fs::read(&output).map_err(|error| CompileError::File { path: output, error })
}

/// A temporary folder that only this user can access, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, CompileError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("oxisycl-link-{}-{count}", std::process::id()));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|error| CompileError::File { path: path.clone(), error })?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all::<&Path>(&self.0);
    }
}
