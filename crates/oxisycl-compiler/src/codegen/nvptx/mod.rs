//! NVIDIA GPUs: PTX, which the driver compiles for the processor at hand.

use oxisycl_image::{ImageTarget, ParameterLayout};

use crate::builtin_table::{Bodies, Family, LOCAL_MEMORY};
use crate::codegen::Target;
use crate::codegen::entry::{self, Passing};
use crate::error::CompileError;
use crate::kernel::Kernel;
use crate::llvm::{Builder, Codegen, Machine, Module, Type, Value};
use crate::passes::atomics;
use crate::toolchain::Toolchain;

const TRIPLE: &str = "nvptx64-nvidia-cuda";
/// The oldest compute capability, times ten, with independent thread scheduling and with kernel parameters that need no copy.
const OLDEST: u32 = 70;
/// The oldest one that combines integers of a warp's lanes in one instruction.
const OLDEST_WITH_REDUCTIONS: u32 = 80;
/// Calling convention `ptx_kernel`.
const KERNEL_CONVENTION: u32 = 71;
const SHARED: u32 = 3;
/// Without the mark a parameter whose address escapes is copied to local memory.
const PASSING: Passing = Passing {
    convention: KERNEL_CONVENTION,
    address_space: 0,
    attribute: "byval",
    marks: &["nvvm.grid_constant"],
    is_constant: true,
};

/// The version of PTX with values of 128 bits, of CUDA 12.3. Devices whose drivers are older lack the aspect that such kernels need.
const WIDE_VALUES: &str = "+ptx83";

pub(crate) struct Nvptx {
    sm: u32,
    processor: String,
    version: &'static str,
    machine: Machine,
}

impl Nvptx {
    pub(crate) fn new(sm: u32) -> Result<Self, CompileError> {
        if sm < OLDEST {
            return Err(CompileError::Target(format!(
                "sm_{sm} is older than sm_{OLDEST}, the oldest one that is supported"
            )));
        }
        // The oldest version of PTX that the processor and the compiler's needs allow, so that old drivers take the code.
        let version = match sm {
            ..=88 => "+ptx77",
            89..=90 => "+ptx78",
            91..=101 => "+ptx86",
            _ => "+ptx87",
        };
        let processor = format!("sm_{sm}");
        let machine = Machine::new(TRIPLE, &processor, version)?;
        Ok(Self { sm, processor, version, machine })
    }
}

impl Target for Nvptx {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn builtins(&self) -> Bodies {
        Bodies {
            family: Family::Nvptx,
            text: include_str!("builtins.ll"),
            has_reductions: self.sm >= OLDEST_WITH_REDUCTIONS,
        }
    }

    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        entry::add(module, kernel, &PASSING, ImageTarget::Ptx { sm: self.sm }.passes_by_address(kernel.parameters))
    }

    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c> {
        entry::add_launch_slot(module, SHARED)
    }

    fn stack_limit_space(&self) -> Option<u32> {
        Some(SHARED)
    }

    fn is_own_global(&self, name: &str) -> bool {
        name == LOCAL_MEMORY
    }

    fn barriers_see_ends(&self) -> bool {
        true
    }

    fn end_work_item<'c>(&self, module: &Module<'c>, builder: &Builder<'c>) {
        // Not a trap, which would take the context down. Barriers do not wait for threads that have ended.
        let context = module.context();
        let exit = module.declare("llvm.nvvm.exit", Type::function(Type::void(context), &[]));
        builder.call(exit, &[]);
    }

    fn has_wide_atomics(&self) -> bool {
        true
    }

    fn has_groups_of(&self, group: [u32; 3]) -> bool {
        // The assembler refuses more.
        group.into_iter().product::<u32>() <= 1024 && group[0] <= 64
    }

    fn has_sub_groups_of(&self, size: u32) -> bool {
        // A warp, on every one of them.
        size == 32
    }

    fn names_lines(&self) -> bool {
        true
    }

    fn emit(
        &self,
        module: &Module<'_>,
        _arguments: ParameterLayout,
        _toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError> {
        let version = if atomics::has_wide_operations(module) { self.version.max(WIDE_VALUES) } else { self.version };
        // A new machine each time: it counts calls, and the numbers are in the text.
        let machine = Machine::new(TRIPLE, &self.processor, version)?;
        machine.emit(module, Codegen::Assembly)
    }
}
