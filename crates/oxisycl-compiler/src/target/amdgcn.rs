//! AMD GPUs: code objects for one processor, which the driver loads as they are.
//!
//! LLVM makes an object file, and the linker that comes with rustc makes the shared object that drivers want of it; no part of ROCm is
//! needed. There is no backend that launches them yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl_image::ParameterLayout;

use crate::llvm::{Attribute, Block, Builder, Codegen, Machine, Module, Type, Value};
use crate::stage::kernels::Kernel;
use crate::stage::{atomics, early_return, private_memory};
use crate::target::{Refused, Target};
use crate::{CompileError, Toolchain};

const TRIPLE: &str = "amdgcn-amd-amdhsa";
/// Calling convention `amdgpu_kernel`.
const KERNEL_CONVENTION: u32 = 91;
/// Address space of memory that a launch does not change, which holds the arguments.
const CONSTANT: u32 = 4;
const LOCAL: u32 = 3;
/// The size of `oxisycl_types::DeviceLaunch`.
const LAUNCH_SIZE: usize = size_of::<oxisycl_types::DeviceLaunch>();
/// Most bytes of arguments that drivers are known to take.
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

    fn builtins(&self) -> &str {
        include_str!("amdgcn.ll")
    }

    fn adapt(&self, module: &Module<'_>) {
        private_memory::move_variables(module);
        early_return::inline_panics(module);
    }

    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        let context = module.context();
        let entry = module
            .function(&kernel.entry)
            .ok_or_else(|| CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name)))?;
        let (pointer, constant) = (Type::pointer(context, 0), Type::pointer(context, CONSTANT));
        let has_arguments = kernel.parameters.size > 0;
        let parameters = if has_arguments { vec![constant; 2] } else { vec![constant] };
        let function = module.declare(&kernel.symbol, Type::function(Type::void(context), &parameters));
        function.set_call_convention(KERNEL_CONVENTION);
        // There is nothing behind the two arguments that only the libraries of ROCm would read.
        function.add_attribute(Attribute::FUNCTION, Attribute::text(context, "amdgpu-implicitarg-num-bytes", "0"));
        let by_reference = |index: u32, size: usize, align: usize| {
            function.add_attribute(index, Attribute::typed(context, "byref", Type::bytes(context, size)));
            function.add_attribute(index, Attribute::plain(context, "align", align as u64));
            function.add_attribute(index, Attribute::plain(context, "noundef", 0));
        };
        by_reference(1, LAUNCH_SIZE, 8);
        if has_arguments {
            by_reference(2, kernel.parameters.size, kernel.parameters.align);
        }
        let builder = Builder::at_end(context, Block::append(context, function));
        let launch = builder.cast_address(function.parameter(0), pointer);
        // The address of nothing: aligned, not null, never used.
        let nothing = Type::int(context, 64).constant(kernel.parameters.align as u64).int_to_pointer(pointer);
        let arguments = if has_arguments { builder.cast_address(function.parameter(1), pointer) } else { nothing };
        // The chunk belongs to native code; a reference is never null.
        builder.call(entry, &[arguments, launch, launch]);
        builder.ret_void();
        Ok(function)
    }

    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c> {
        let pointer = Type::pointer(module.context(), 0);
        let slot = module.add_global("oxisycl_launch_slot", pointer, LOCAL);
        // All work-items of a group write the same address, so that it does not matter whose store comes last.
        slot.set_initializer(pointer.poison());
        slot.set_linkage(crate::llvm::Linkage::INTERNAL);
        slot.set_alignment(8);
        slot
    }

    fn max_arguments(&self, align: usize) -> usize {
        MAX_PARAMETERS.saturating_sub(LAUNCH_SIZE.next_multiple_of(align))
    }

    fn is_own_global(&self, name: &str) -> bool {
        name == "oxisycl_local_memory"
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

    fn legalize(&self, module: &Module<'_>) {
        early_return::lower(module);
        atomics::narrow_to_device(module, "agent");
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

/// Makes an object a shared one.
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

/// A temporary folder, which only this user can enter, removed in the end.
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
