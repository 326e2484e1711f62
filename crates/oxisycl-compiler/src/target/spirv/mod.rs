//! Devices of OpenCL: SPIR-V, translated from LLVM's code by this module.
//!
//! The LLVM of Rust's toolchain has no code generator for SPIR-V. Code is optimised for NVIDIA's target, whose threads diverge like
//! work-items; what comes out is plain (few instructions, no vectors as a rule), and is translated one instruction at a time:
//!
//! - `module` goes over kernels, functions and globals; `function` and `branch` over the blocks of one function; `writer` and `code` know SPIR-V only.
//! - `value` says what a type becomes: integers of 1 to 128 bits, floats, addresses, and lists of them. `integer`, `wide`, `overflow`,
//!   `bits`, `convert`, `float`, `brain`, `memory`, `copy`, `atomics`, `aggregate` and `call` hold one group of instructions each.
//! - `uneven` and `recorders` are for drivers that execute several work-items as one vector: the one finds the loops in which calls are dear,
//!   the other keeps calls that record panics from being so.
//! - `addresses` makes integers that are addresses into addresses again, and `indirect` replaces function pointers by numbers before that.
//!   `hidden` and `components` are about functions that were not inlined: what they need of the kernel, and which of them call each other in
//!   cycles.
//! - `classes` finds out which memory an address is of; where it cannot, the address is generic.
//!
//! Invariants: bits above an integer's width are zero. The bytes of the module depend on the code alone.
//!
//! What SPIR-V cannot express (recursion, arrays of unknown size) is refused with a reason, which makes the kernel unsupported. Does not
//! optimise, and does not know which driver will take the module.

mod addresses;
mod aggregate;
mod atomics;
mod bits;
mod brain;
mod branch;
mod call;
mod classes;
mod code;
mod components;
mod constants;
mod convert;
mod copy;
mod float;
mod function;
mod hidden;
mod indirect;
mod integer;
mod memories;
mod memory;
mod module;
mod overflow;
mod recorders;
mod target;
#[cfg(test)]
mod tests;
mod uneven;
mod value;
mod wide;
mod writer;

pub(crate) use target::SpirV;
#[cfg(test)]
pub(crate) use tests::support::validate;

use crate::CompileError;
use crate::llvm::{Builder, Machine, Module, Opcode, PassTuning, Type, TypeKind, Value};
use crate::stage::builtins::LAUNCH;

/// Operations on vectors become operations on their elements.
const SCALARISE: &str = "function(scalarizer<load-store>,dce)";
/// What SPIR-V has no instructions for, and LLVM can express by others: divisions of wide integers, and their conversions from and to
/// floats.
const EXPAND: &str = "require<libcall-lowering-info>,function(expand-ir-insts,dce)";
/// Functions that stand for remainders of floats, with the type's name at the end.
const REMAINDER: &str = "oxisycl.spirv.frem.";
/// Gives the launch's address where that is not the kernel's own parameter.
const HIDDEN_LAUNCH: &str = "oxisycl.spirv.launch";
/// Calling convention `spir_kernel`.
const KERNEL_CONVENTION: u32 = 76;

/// Makes optimised code into code that [`module::translate`] takes.
fn expand(module: &Module<'_>) -> Result<(), CompileError> {
    // What has to be expanded is the machine's to say. AMD's does so for all that is wanted here, NVIDIA's for divisions only.
    let machine = Machine::new("amdgcn-amd-amdhsa", "gfx90a", "")?;
    module.run(SCALARISE, Some(&machine), &PassTuning::DEVICE)?;
    addresses::restore(module);
    indirect::number_functions(module);
    hide_remainders(module);
    hide_launches(module);
    module.run(EXPAND, Some(&machine), &PassTuning::DEVICE)
}

/// Renames what functions ask for the launch with. Kernels keep the name: there it becomes their parameter on all targets. Functions that
/// were not inlined read it from a variable of the group on other targets; here it lies in each work-item's own memory.
fn hide_launches(module: &Module<'_>) {
    let Some(launch) = module.function(LAUNCH) else { return };
    let hidden = module.declare(HIDDEN_LAUNCH, launch.held_type());
    for call in launch.users() {
        if call.callee() == Some(launch) && call.function().call_convention() != KERNEL_CONVENTION {
            call.set_callee(hidden);
        }
    }
}

/// Takes remainders of floats out of LLVM's sight: AMD's target has none, OpenCL has.
fn hide_remainders(module: &Module<'_>) {
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

/// Why code has no translation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    /// For the user.
    pub(crate) reason: String,
    /// The symbol of the function that holds the construct, if it is known.
    pub(crate) function: Option<String>,
}

impl Refused {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), function: None }
    }

    /// Adds where the construct is, unless that is known more closely.
    fn within(mut self, function: Value<'_>) -> Self {
        self.function.get_or_insert_with(|| function.name().to_owned());
        self
    }
}
