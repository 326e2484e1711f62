//! Negated conditions as numbers: `-(!c)` and `!c as usize` become selections by `c`, for code generators that get sums of them wrong.
//!
//! LLVM 22.1 takes `xor i1 %c, true` for the sum `%c + 1`, and `sext` of it for a sum of extensions. Its pass `slsr`, which code generation
//! for GPUs runs, derives an address with `-(c)` from one with `-(!c)`, as if their distance were constant. It is not. Merging of sorted
//! runs is written in that form, and stable sorts gave wrong results on an H200. This is the quirk
//! [`NEGATED_CONDITIONS`](crate::codegen::quirks).

use crate::llvm::{Builder, Module, Opcode, TypeKind, Value};

/// The width of the widest number that can be an address offset.
const WIDEST: u32 = 64;

/// Replaces extensions of negated conditions by selections. Called right before code generation, since LLVM's simplifications would revert
/// it.
pub(crate) fn select_by_the_condition(module: &Module<'_>) {
    for extension in module.functions().into_iter().flat_map(Value::instructions) {
        let is_signed = extension.is(Opcode::SEXT);
        if !is_signed && !extension.is(Opcode::ZEXT) {
            continue;
        }
        let (wide, negation) = (extension.value_type(), extension.operand(0));
        let (TypeKind::Integer(width @ 1..=WIDEST), TypeKind::Integer(1)) = (wide.kind(), negation.value_type().kind())
        else {
            continue;
        };
        if !negation.is(Opcode::XOR) || negation.operand(1).integer() != Some(1) {
            continue;
        }
        let condition = negation.operand(0);
        let no = if is_signed { u64::MAX >> (WIDEST - width) } else { 1 };
        let builder = Builder::before(module.context(), extension);
        extension.replace_all_uses_with(builder.select(condition, wide.constant(0), wide.constant(no)));
        extension.erase();
    }
}

#[cfg(test)]
mod tests {
    use oxisycl_image::ImageTarget;

    use super::*;
    use crate::llvm::PassTuning;
    use crate::passes::tests::{context, module};
    use crate::pipeline::{Phase, run_for_target};

    #[test]
    fn a_negated_condition_is_no_number() {
        let context = context();
        // With `slsr`, `%second` was `%first` and a constant.
        let module = module(
            &context,
            "define void @kernel(ptr %p, i1 %c) {
                %not = xor i1 %c, true
                %a = sext i1 %not to i64
                %first = getelementptr i16, ptr %p, i64 %a
                %b = sext i1 %c to i64
                %second = getelementptr i16, ptr %p, i64 %b
                store i16 1, ptr %first
                store i16 2, ptr %second
                %n = zext i1 %not to i8
                store i8 %n, ptr %p
                ret void
            }",
        );
        select_by_the_condition(&module);
        module.verify("negations").expect("a valid module");
        let code = module.to_string();
        assert!(code.contains("select i1 %c, i64 0, i64 -1") && code.contains("select i1 %c, i8 0, i8 1"), "{code}");
        assert!(code.contains("%b = sext i1 %c to i64") && !code.contains("sext i1 %not"), "{code}");
    }

    #[test]
    fn addresses_by_a_condition_and_by_its_negation_are_right() {
        let context = context();
        let target = crate::codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("the target");
        // What is stored where for both conditions.
        let stores = |passes: &str| {
            let module = module(
                &context,
                "define void @kernel(ptr %p, i1 %c) alwaysinline {
                    %not = xor i1 %c, true
                    %a = sext i1 %not to i64
                    %first = getelementptr i16, ptr %p, i64 %a
                    %b = sext i1 %c to i64
                    %second = getelementptr i16, ptr %p, i64 %b
                    store i16 1, ptr %first
                    store i16 2, ptr %second
                    ret void
                }
                define void @both(ptr %p, ptr %q) {
                    call void @kernel(ptr %p, i1 false)
                    call void @kernel(ptr %q, i1 true)
                    ret void
                }",
            );
            module.set_target(target.machine().triple(), &target.machine().data_layout());
            let module = run_for_target(Phase::Legalize, &*target, module).expect("legal code");
            module.run(passes, Some(target.machine()), &PassTuning::DEVICE).expect("it runs");
            let code = module.to_string();
            code[code.find("@both").expect("it is there")..].to_owned()
        };
        assert_eq!(
            stores("function(slsr),always-inline,function(instcombine)"),
            stores("always-inline,function(instcombine)")
        );
    }
}
