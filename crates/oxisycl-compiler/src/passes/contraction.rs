//! Products and sums that become one operation, where the policy allows it, before work-items are put into lanes.
//!
//! Code generators fuse by themselves, by what is near to each other. Then the vectors of a loop and its last work-items, which run one by one, would
//! round differently. So all that is fused is fused once, and the rest may not be fused any more.

use crate::llvm::{Builder, Module, Opcode, Value};
use crate::passes::float_policy::ALLOW_CONTRACT;

/// Fuses each sum with a product that nothing else needs, if both may be contracted.
pub(crate) fn fuse(module: &Module<'_>) {
    let functions = module.functions().into_iter().filter(|function| !function.is_declaration());
    let operations: Vec<_> = functions.flat_map(Value::instructions).filter(|of| may_be_contracted(*of)).collect();
    let (sums, products): (Vec<_>, Vec<_>) = operations.into_iter().partition(|of| !of.is(Opcode::FMUL));
    sums.into_iter().for_each(|sum| fuse_sum(module, sum));
    for product in products {
        if product.is_used() {
            let builder = Builder::before(module.context(), product);
            let other = builder.binary(Opcode::FMUL, product.operand(0), product.operand(1));
            put_in_place(other, product);
        } else {
            product.erase();
        }
    }
}

fn may_be_contracted(operation: Value<'_>) -> bool {
    let is_operation = matches!(operation.opcode(), Some(Opcode::FADD | Opcode::FSUB | Opcode::FMUL));
    is_operation && operation.fast_math() & ALLOW_CONTRACT != 0
}

fn fuse_sum<'c>(module: &Module<'c>, sum: Value<'c>) {
    let builder = Builder::before(module.context(), sum);
    let of = sum.value_type();
    let is_product = |index: &u32| {
        let operand = sum.operand(*index);
        operand.is(Opcode::FMUL) && may_be_contracted(operand) && operand.users().len() == 1
    };
    let is_difference = sum.is(Opcode::FSUB);
    let other = match [0, 1].iter().find(|index| is_product(index)) {
        Some(&index) => {
            let (product, term) = (sum.operand(index), sum.operand(1 - index));
            let (mut factor, mut term) = (product.operand(0), term);
            if is_difference && index == 0 {
                term = builder.negate_float(term);
            } else if is_difference {
                factor = builder.negate_float(factor);
            }
            builder.call(module.intrinsic("llvm.fma", &[of]), &[factor, product.operand(1), term])
        }
        None => {
            let opcode = if is_difference { Opcode::FSUB } else { Opcode::FADD };
            builder.binary(opcode, sum.operand(0), sum.operand(1))
        }
    };
    put_in_place(other, sum);
}

/// Replaces an operation, whose other flags stay.
fn put_in_place<'c>(other: Value<'c>, operation: Value<'c>) {
    other.add_fast_math(operation.fast_math() & !ALLOW_CONTRACT);
    other.place_as(operation);
    operation.replace_all_uses_with(other);
    operation.erase();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    #[test]
    fn only_products_that_nothing_else_needs_are_fused() {
        let context = context();
        let text = "define float @f(float %a, float %b, float %c) {
            %p = fmul contract float %a, %b
            %s = fadd contract float %p, %c
            %q = fmul nsz contract float %a, %c
            %d = fsub nsz contract float %s, %q
            %t = fmul contract float %b, %c
            %e = fsub contract float %t, %d
            %both = fmul contract float %e, %e
            %f = fadd contract float %both, %a
            %g = fadd contract float %f, %both
            %strict = fmul float %g, %a
            %h = fadd contract float %strict, %b
            %late = fmul contract float %h, %b
            %r = fadd float %late, %c
            ret float %r }";
        let module = module(&context, text);
        fuse(&module);
        module.verify("fusing").expect("it is valid");
        let code = module.function("f").expect("it is there").print();
        let count = |text: &str| code.matches(text).count();
        assert_eq!([count("@llvm.fma.f32("), count("fneg"), count("fmul")], [3, 2, 3], "{code}");
        assert_eq!([count("fadd"), count("contract"), count("call nsz float @llvm.fma")], [4, 0, 1], "{code}");
    }
}
