//! SPIR-V as a target of the compiler.

use oxisycl_image::{ImageTarget, ParameterLayout};

use super::module::{LOCAL_MEMORY, translate};
use super::{Refused, expand, function::END_WORK_ITEM, writer};
use crate::llvm::{Attribute, Block, Builder, Linkage, Machine, Module, Type, Value};
use crate::stage::kernels::Kernel;
use crate::target::Target;
use crate::{CompileError, Toolchain};

/// Calling convention `spir_kernel`.
const KERNEL_CONVENTION: u32 = 76;
const LOCAL: u32 = 3;
/// The size of `oxisycl_types::DeviceLaunch`.
const LAUNCH_SIZE: usize = size_of::<oxisycl_types::DeviceLaunch>();

/// Devices of OpenCL.
pub(crate) struct SpirV {
    /// Of NVIDIA's target, which knows that work-items diverge, and whose addresses are generic as well.
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

impl Target for SpirV {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn builtins(&self) -> &str {
        include_str!("builtins.ll")
    }

    fn add_kernel<'c>(&self, module: &Module<'c>, kernel: &Kernel) -> Result<Value<'c>, CompileError> {
        let context = module.context();
        let entry = module
            .function(&kernel.entry)
            .ok_or_else(|| CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name)))?;
        let pointer = Type::pointer(context, 0);
        let has_arguments = kernel.parameters.size > 0;
        let parameters = if has_arguments { vec![pointer; 2] } else { vec![pointer] };
        let function = module.declare(&kernel.symbol, Type::function(Type::void(context), &parameters));
        function.set_call_convention(KERNEL_CONVENTION);
        let by_value = |index: u32, size: usize, align: usize| {
            function.add_attribute(index, Attribute::typed(context, "byval", Type::bytes(context, size)));
            function.add_attribute(index, Attribute::plain(context, "align", align as u64));
            function.add_attribute(index, Attribute::plain(context, "noundef", 0));
        };
        by_value(1, LAUNCH_SIZE, 8);
        if has_arguments {
            by_value(2, kernel.parameters.size, kernel.parameters.align);
        }
        let builder = Builder::at_end(context, Block::append(context, function));
        let launch = function.parameter(0);
        // The address of nothing: aligned, not null, never used.
        let nothing = Type::int(context, 64).constant(kernel.parameters.align as u64).int_to_pointer(pointer);
        let arguments = if has_arguments { function.parameter(1) } else { nothing };
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
        slot.set_linkage(Linkage::INTERNAL);
        slot.set_alignment(8);
        slot
    }

    fn max_arguments(&self, _align: usize) -> usize {
        // Devices have limits of their own, from 1024 bytes for everything; those are known when the kernel is launched.
        4352 - LAUNCH_SIZE
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

    fn expand(&self, module: &Module<'_>) -> Result<(), CompileError> {
        expand(module)
    }

    fn examine(&self, module: &Module<'_>, kernel: &str) -> Result<Vec<&'static str>, Refused> {
        let kernel = module.function(kernel).expect("the kernel is in the module");
        Ok(translate(module, &[kernel])?.requirements)
    }

    fn legalize(&self, _module: &Module<'_>) {}

    fn names_lines(&self) -> bool {
        false
    }

    fn emit(
        &self,
        module: &Module<'_>,
        _arguments: ParameterLayout,
        _toolchain: &Toolchain,
    ) -> Result<Vec<u8>, CompileError> {
        let kernels: Vec<_> =
            module.functions().into_iter().filter(|function| function.call_convention() == KERNEL_CONVENTION).collect();
        let translation = translate(module, &kernels).map_err(|refused| {
            CompileError::Kernel(format!("{} (in {})", refused.reason, refused.function.unwrap_or_default()))
        })?;
        Ok(writer::to_bytes(&translation.module))
    }

    fn image_target(&self, _requested: &ImageTarget, code: &[u8]) -> ImageTarget {
        // The second word: 0x00MMmm00.
        let byte = |position: usize| u32::from(code.get(position).copied().unwrap_or(0));
        ImageTarget::SpirV { major: byte(6), minor: byte(5) }
    }
}
