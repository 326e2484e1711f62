//! Rewrites instructions that SPIR-V lacks, before a module is translated. Each function is a pass of `pipeline`.

use super::names::{HIDDEN_LAUNCH, KERNEL_CONVENTION, REMAINDER};
use super::{addresses, function_pointers, next_positions, private_phis};
use crate::builtin_table::LAUNCH;
use crate::error::CompileError;
use crate::llvm::{Builder, Machine, Module, Opcode, PassTuning, Type, TypeKind, Value};

/// Operations on vectors become operations on their elements.
const SCALARISE: &str = "function(scalarizer<load-store>,dce)";
/// Passes for instructions that SPIR-V lacks and LLVM can expand: divisions of wide integers, and their conversions from and to floats.
const EXPAND: &str = "require<libcall-lowering-info>,function(expand-ir-insts,dce)";

/// Replaces operations on vectors.
pub(crate) fn scalarise(module: &Module<'_>) -> Result<(), CompileError> {
    run(SCALARISE, module)
}

/// Turns integers that are private addresses back into addresses.
pub(crate) fn restore_addresses(module: &Module<'_>) {
    addresses::restore(module);
}

/// Turns private addresses that loops carry over barriers into numbers.
pub(crate) fn number_private_phis(module: &Module<'_>) {
    private_phis::number(module);
}

/// Computes the next positions of loops of their positions.
pub(crate) fn compute_next_positions(module: &Module<'_>) {
    next_positions::compute(module);
}

/// Replaces function pointers by numbers.
pub(crate) fn number_functions(module: &Module<'_>) {
    function_pointers::number_functions(module);
}

/// Replaces wide divisions and conversions. Remainders of floats must be [hidden](hide_remainders) before.
pub(crate) fn expand_instructions(module: &Module<'_>) -> Result<(), CompileError> {
    run(EXPAND, module)
}

fn run(passes: &str, module: &Module<'_>) -> Result<(), CompileError> {
    // What has to be expanded is the machine's to say. AMD's does so for all that is wanted here, NVIDIA's for divisions only.
    let machine = Machine::new("amdgcn-amd-amdhsa", "gfx90a", "")?;
    module.run(passes, Some(&machine), &PassTuning::DEVICE)
}

/// Renames the function that returns the launch's address, except in kernels, where it becomes their parameter on all targets. Functions
/// that were not inlined read it from a variable of the group on other targets; here it lies in each work-item's own memory.
pub(crate) fn hide_launches(module: &Module<'_>) {
    let Some(launch) = module.function(LAUNCH) else { return };
    let hidden = module.declare(HIDDEN_LAUNCH, launch.held_type());
    for call in launch.users() {
        if call.callee() == Some(launch) && call.function().call_convention() != KERNEL_CONVENTION {
            call.set_callee(hidden);
        }
    }
}

/// Hides remainders of floats from LLVM: AMD's target has no instruction for them, OpenCL has.
pub(crate) fn hide_remainders(module: &Module<'_>) {
    let context = module.context();
    for instruction in module.functions().into_iter().flat_map(Value::instructions) {
        let of = instruction.value_type();
        let name = match of.kind() {
            TypeKind::Half => "f16",
            TypeKind::Float => "f32",
            TypeKind::Double => "f64",
            _ => continue,
        };
        if instruction.is(Opcode::FREM) {
            let function = module.declare(&format!("{REMAINDER}{name}"), Type::function(of, &[of; 2]));
            let builder = Builder::before(context, instruction);
            let call = builder.call(function, &[instruction.operand(0), instruction.operand(1)]);
            instruction.replace_all_uses_with(call);
            instruction.erase();
        }
    }
}
