//! SPIR-V as a target of the compiler.

use oxisycl_image::{ImageTarget, ParameterLayout};
use oxisycl_types::Aspect;

use super::atomics::FLOAT_ADD;
use super::module::{Translation, translate};
use super::module_builder;
use super::module_builder::Extensions;
use super::names::END_WORK_ITEM;
use super::names::KERNEL_CONVENTION;
use crate::builtin_table::{Bodies, Family, LOCAL_MEMORY};
use crate::codegen::Target;
use crate::codegen::entry::{self, Passing};
use crate::error::CompileError;
use crate::kernel::Kernel;
use crate::llvm::{Attribute, Builder, Machine, Module, Opcode, Type, Value};
use crate::refused::Refused;
use crate::toolchain::Toolchain;

const LOCAL: u32 = 3;
const PASSING: Passing =
    Passing { convention: KERNEL_CONVENTION, address_space: 0, attribute: "byval", marks: &[], is_constant: false };

/// OpenCL devices.
pub(crate) struct SpirV {
    /// The machine of NVIDIA's target, which knows that work-items diverge, and whose addresses are generic as well.
    machine: Machine,
}

impl SpirV {
    pub(crate) fn new(major: u32, minor: u32) -> Result<Self, CompileError> {
        if (major, minor) != (1, 2) {
            return Err(CompileError::Target(format!(
                "SPIR-V {major}.{minor} cannot be asked for: images are SPIR-V 1.2, and 1.3 where a kernel needs it"
            )));
        }
        Ok(Self { machine: Machine::new("nvptx64-nvidia-cuda", "sm_70", "+ptx77")? })
    }
}

fn translate_kernels(module: &Module<'_>, extensions: Extensions) -> Result<Translation, CompileError> {
    let kernels: Vec<_> =
        module.functions().into_iter().filter(|function| function.call_convention() == KERNEL_CONVENTION).collect();
    translate(module, &kernels, extensions).map_err(|refused| {
        CompileError::Kernel(format!("{} (in {})", refused.reason, refused.function.unwrap_or_default()))
    })
}

impl Target for SpirV {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn builtins(&self) -> Bodies {
        Bodies { family: Family::SpirV, text: include_str!("builtins.ll"), has_reductions: false }
    }

    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        // The version makes no difference.
        let target = ImageTarget::SpirV { major: 1, minor: 2 };
        entry::add(module, kernel, &PASSING, target.passes_by_address(kernel.parameters))
    }

    fn launch_slot<'c>(&self, module: &Module<'c>) -> Value<'c> {
        entry::add_launch_slot(module, LOCAL)
    }

    fn is_own_global(&self, name: &str) -> bool {
        name == LOCAL_MEMORY
    }

    fn inlines_everything(&self) -> bool {
        true
    }

    fn end_work_item<'c>(&self, module: &Module<'c>, builder: &Builder<'c>) {
        let context = module.context();
        let end = module.declare(END_WORK_ITEM, Type::function(Type::void(context), &[]));
        for attribute in ["noreturn", "nounwind", "cold"] {
            end.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        builder.call(end, &[]);
    }

    fn optimisation(&self) -> &'static str {
        // Loops are unrolled only if nothing is left of them. Drivers know best how far to unroll other loops. For CPUs they first make one
        // vector of several work-items, which each exit of a loop makes more expensive.
        "thinlto-pre-link<O3>,function(float2int,lower-constant-intrinsics,instsimplify,div-rem-pairs,simplifycfg)"
    }

    fn examine(&self, module: &Module<'_>, kernel: &str) -> Result<Vec<&'static str>, Refused> {
        let kernel = module.function(kernel).expect("the kernel is in the module");
        Ok(translate(module, &[kernel], Extensions::default())?.requirements)
    }

    fn has_sub_groups_of(&self, _size: u32) -> bool {
        // The execution mode asks the driver for it, and the runtime asks the device before.
        true
    }

    fn names_lines(&self) -> bool {
        false
    }

    fn emit(
        &self,
        module: &Module<'_>,
        _arguments: ParameterLayout,
        _toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError> {
        Ok(module_builder::to_bytes(&translate_kernels(module, Extensions::default())?.module))
    }

    fn emit_for_aspect(
        &self,
        module: &Module<'_>,
        _toolchain: &Toolchain,
    ) -> Result<Option<(Aspect, Vec<u8>)>, CompileError> {
        let is_sum =
            |instruction: &Value<'_>| instruction.is(Opcode::ATOMIC_RMW) && instruction.atomic_operation() == FLOAT_ADD;
        if !module.functions().into_iter().flat_map(Value::instructions).any(|instruction| is_sum(&instruction)) {
            return Ok(None);
        }
        let translation = translate_kernels(module, Extensions { float_atomics: true })?;
        let gains = translation.uses_float_atomics;
        Ok(gains.then(|| (Aspect::ExtOxisyclFloatAtomics, module_builder::to_bytes(&translation.module))))
    }

    fn image_target(&self, _requested: &ImageTarget, code: &[u8]) -> ImageTarget {
        // The second word: 0x00MMmm00.
        let byte = |position: usize| u32::from(code.get(position).copied().unwrap_or(0));
        ImageTarget::SpirV { major: byte(6), minor: byte(5) }
    }
}
