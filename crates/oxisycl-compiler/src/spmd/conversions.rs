//! Conversions of vectors between floats and integers by instructions that processors have: `conversions.ll`.
//!
//! Invariant: results have the same bits.

use crate::error::CompileError;
use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, Type, TypeKind, Value};
use crate::passes::native_code;

const BODIES: &str = include_str!("conversions.ll");
/// Intrinsics of LLVM for scalars, and the functions that do the same for vectors.
const SATURATING: [(&str, &str); 2] = [("llvm.fptosi.sat.", "i32_of_f32"), ("llvm.fptoui.sat.", "u32_of_f32")];

/// Replaces the conversions of a function of vectors with so many lanes.
pub(super) fn lower<'c>(module: &Module<'c>, function: Value<'c>, lanes: u32) -> Result<(), CompileError> {
    let context = module.context();
    let found: Vec<_> = function.instructions().into_iter().filter_map(|of| Some((of, name(of)?))).collect();
    if found.is_empty() {
        return Ok(());
    }
    for (conversion, name) in found {
        let operand = conversion.operand(0);
        let held = Type::function(conversion.value_type(), &[operand.value_type()]);
        let body = module.declare(&format!("oxisycl.lanes.{name}.{lanes}"), held);
        let result = Builder::before(context, conversion).call(body, &[operand]);
        conversion.replace_all_uses_with(result);
        conversion.erase();
    }
    let bodies = Module::from_text(context, &BODIES.replace("LANES", &lanes.to_string()), "conversions")?;
    for body in bodies.functions().into_iter().filter(|body| !body.is_declaration()) {
        body.set_linkage(Linkage::LINK_ONCE_ODR);
        body.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "alwaysinline", 0));
        native_code::compile_like(context, body, function);
    }
    module.link(bodies)
}

/// The function that makes a conversion, if LLVM would make it lane by lane.
fn name(conversion: Value<'_>) -> Option<&'static str> {
    let is = |value: Value<'_>, element: TypeKind| {
        value.value_type().kind() == TypeKind::Vector && value.value_type().elements().0.kind() == element
    };
    match conversion.opcode()? {
        Opcode::UI_TO_FP => {
            let is_one = is(conversion, TypeKind::Float) && is(conversion.operand(0), TypeKind::Integer(64));
            is_one.then_some("f32_of_u64")
        }
        Opcode::CALL => {
            let callee = conversion.callee()?;
            let known = SATURATING.into_iter().find(|(prefix, _)| callee.name().starts_with(prefix));
            let is_one = is(conversion, TypeKind::Integer(32)) && is(conversion.operand(0), TypeKind::Float);
            known.filter(|_| is_one).map(|(_, name)| name)
        }
        _ => None,
    }
}
