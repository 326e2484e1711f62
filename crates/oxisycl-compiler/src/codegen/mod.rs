//! The targets: their builtins, the form of a kernel for their drivers, and code generation.

mod amdgcn;
mod entry;
mod host;
pub(crate) mod intrinsics;
mod nvptx;
pub(crate) mod quirks;
pub(crate) mod spirv;

use oxisycl_image::{HostLevel, ImageTarget, ParameterLayout};
use oxisycl_types::Aspect;

use crate::error::CompileError;
use crate::kernel::Kernel;
use crate::llvm::{Machine, Module, PassTuning, Value};
use crate::toolchain::Toolchain;

pub(crate) use amdgcn::Amdgcn;
pub use host::symbol as native_symbol;
pub(crate) use host::{Host, TRIPLE as NATIVE_TRIPLE};
pub(crate) use nvptx::Nvptx;
pub(crate) use spirv::SpirV;
#[cfg(test)]
pub(crate) use spirv::validate as validate_spirv;

use crate::builtin_table::Bodies;
use crate::refused::Refused;

/// A target of the compiler.
pub(crate) trait Target {
    /// The processor to generate code for.
    fn machine(&self) -> &Machine;

    /// The target's side of the table of builtins.
    fn builtins(&self) -> Bodies;

    /// The level of the host's processors, if the code is native code that is linked into the program.
    fn native_level(&self) -> Option<HostLevel> {
        None
    }

    /// Whether the code is native code of the program. What it calls is there, and its panics unwind.
    fn runs_in_process(&self) -> bool {
        self.native_level().is_some()
    }

    /// The parameters of LLVM's cost models.
    fn tuning(&self) -> PassTuning {
        PassTuning::DEVICE
    }

    /// Adds the function that a driver launches: it takes a `DeviceLaunch` and the kernel's bytes by value and calls the entry.
    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError>;

    /// The global that holds the launch's address, which every work-item may write.
    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c>;

    /// The address space of the group's memory, in which kernels leave the limit of their stack. `None` if devices have no call stack that
    /// grows downwards.
    fn stack_limit_space(&self) -> Option<u32> {
        None
    }

    /// The most bytes of captures with that alignment that a kernel can have.
    fn max_arguments(&self, _align: usize) -> usize {
        ParameterLayout::MAX_SIZE
    }

    /// Whether the target itself makes the global `name`.
    fn is_own_global(&self, name: &str) -> bool;

    /// Ends the work-item; what follows is unreachable.
    fn end_work_item<'c>(&self, module: &Module<'c>, builder: &crate::llvm::Builder<'c>);

    /// Whether the target cannot call functions that may panic, so that they must be inlined.
    fn inlines_everything(&self) -> bool {
        false
    }

    /// Whether a barrier waits for each work-item that has not ended, wherever the others are. Then one that ends can note so first.
    fn barriers_see_ends(&self) -> bool {
        false
    }

    /// LLVM's passes for the linked program, which was simplified before.
    fn optimisation(&self) -> &'static str {
        "default<O3>"
    }

    /// The aspects that a kernel needs beyond those of every target. The error is the reason why the target cannot run it.
    fn examine(&self, _module: &Module<'_>, _kernel: &str) -> Result<Vec<&'static str>, Refused> {
        Ok(Vec::new())
    }

    /// Whether the target has atomic loads and stores of 128 bits.
    fn has_wide_atomics(&self) -> bool {
        false
    }

    /// Whether a device of the target may have sub-groups of that size, and the code makes it choose them.
    fn has_sub_groups_of(&self, _size: u32) -> bool {
        false
    }

    /// Whether a device of the target may have work-groups of that size, the innermost extent last.
    fn has_groups_of(&self, _group: [u32; 3]) -> bool {
        true
    }

    /// Whether the code has source lines, for profilers and memory checkers.
    fn names_lines(&self) -> bool;

    /// Generates code: what drivers load. LLVM may end the process on code that it cannot handle.
    /// `arguments` is the layout of the kernel's captures.
    fn emit(
        &self,
        module: &Module<'_>,
        arguments: ParameterLayout,
        toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError>;

    /// Alternative code of the kernel, for devices with an aspect that makes it faster. `None` if the code would be the same.
    fn emit_for_aspect(
        &self,
        _module: &Module<'_>,
        _toolchain: &Toolchain,
    ) -> Result<Option<(Aspect, Vec<u8>)>, CompileError> {
        Ok(None)
    }

    /// The exact target of the code, which may differ from the requested one.
    fn image_target(&self, requested: &ImageTarget, _code: &[u8]) -> ImageTarget {
        requested.clone()
    }
}

/// The target of an image.
pub(crate) fn of(target: &ImageTarget) -> Result<Box<dyn Target>, CompileError> {
    match target {
        ImageTarget::AmdGcn { arch } => Ok(Box::new(Amdgcn::new(arch)?)),
        ImageTarget::Host { triple, level } => Ok(Box::new(Host::new(triple, *level)?)),
        ImageTarget::Ptx { sm } => Ok(Box::new(Nvptx::new(*sm)?)),
        ImageTarget::SpirV { major, minor } => Ok(Box::new(SpirV::new(*major, *minor)?)),
        other => Err(CompileError::Target(format!("there is no code generator for {other}"))),
    }
}

#[cfg(test)]
mod disassembly;
#[cfg(test)]
mod tests;
