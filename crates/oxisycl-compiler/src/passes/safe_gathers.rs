//! Loads from scattered places without a branch for each lane.
//!
//! Where a processor has no good gather, LLVM asks each lane of a mask whether it loads, by a branch, which is hard to predict. So lanes that are
//! not active load zeros from a variable of the function here, and all lanes load without a question. LLVM takes such a gather apart into loads.
//!
//! Comes after LLVM's optimisations, which would ask again. Invariant: no lane that is not active accesses memory of the program.

use crate::llvm::{Builder, Layout, Module, Opcode, Type, Value};

/// The bytes of the variable, and its alignment: no lane has a larger element.
const BYTES: u32 = 8;

/// Has all lanes of a module's gathers load.
pub(crate) fn make_safe(module: &Module<'_>) {
    let context = module.context();
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        let gathers = function.instructions().into_iter().filter(|call| has_mask(module, *call));
        let gathers: Vec<_> = gathers.collect();
        if gathers.is_empty() {
            continue;
        }
        let builder = Builder::before(context, function.blocks()[0].instructions()[0]);
        let zeros = builder.variable(Type::int(context, 8 * BYTES));
        zeros.set_alignment(BYTES);
        builder.store(zeros.allocated_type().null(), zeros).set_alignment(BYTES);
        for gather in gathers {
            load_in_all_lanes(module, gather, zeros);
        }
    }
}

/// Whether a call is a gather whose mask is not known, of elements that the variable has room for.
fn has_mask(module: &Module<'_>, call: Value<'_>) -> bool {
    let is_gather = |callee: Value<'_>| callee.name().starts_with("llvm.masked.gather.");
    call.is(Opcode::CALL)
        && call.callee().is_some_and(is_gather)
        && !call.operand(1).is_constant()
        && Layout::of(module).size(call.value_type().elements().0) <= BYTES.into()
}

/// Has the lanes of a gather that are not active load from a variable.
fn load_in_all_lanes<'c>(module: &Module<'c>, gather: Value<'c>, variable: Value<'c>) {
    let context = module.context();
    let [addresses, mask, otherwise] = [0, 1, 2].map(|index| gather.operand(index));
    let builder = Builder::before(context, gather);
    let lanes = mask.value_type().elements().1 as u32;
    let elsewhere = builder.splat(variable, lanes, Type::int(context, 32));
    let users = gather.users();
    gather.set_operand(0, builder.select(mask, addresses, elsewhere));
    gather.set_operand(1, mask.value_type().all_ones());
    if otherwise == otherwise.value_type().poison() {
        return;
    }
    let result = Builder::before(context, gather.next()).select(mask, gather, otherwise);
    for user in users {
        for operand in (0..user.operands().len() as u32).filter(|operand| user.operand(*operand) == gather) {
            user.set_operand(operand, result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::{Codegen, Machine};
    use crate::passes::tests::{context, module};

    /// Gathers of three kinds: with what other lanes get, without it, and with a known mask.
    const GATHERS: &str = "declare <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr>, <8 x i1>, <8 x float>)
        declare <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr>, <8 x i1>, <8 x i8>)
        define <8 x float> @kept(<8 x ptr> %a, <8 x i32> %k, <8 x float> %o) {
        %m = icmp slt <8 x i32> %k, zeroinitializer
        %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %a, <8 x i1> %m, <8 x float> %o)
        %d = fadd <8 x float> %v, %v
        ret <8 x float> %d }
        define <8 x i8> @bytes(<8 x ptr> %a, <8 x i32> %k) {
        %m = icmp slt <8 x i32> %k, zeroinitializer
        %v = call <8 x i8> @llvm.masked.gather.v8i8.v8p0(<8 x ptr> align 1 %a, <8 x i1> %m, <8 x i8> poison)
        ret <8 x i8> %v }
        define <8 x float> @all(<8 x ptr> %a) {
        %v = call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4 %a, <8 x i1> splat (i1 true), <8 x float> poison)
        ret <8 x float> %v }";

    #[test]
    fn lanes_that_are_not_active_load_from_a_variable() {
        let context = context();
        let module = module(&context, GATHERS);
        make_safe(&module);
        module.verify("safe gathers").expect("valid code");
        let shown = |name: &str| module.function(name).expect("it is defined").print();
        let [kept, bytes, all] = ["kept", "bytes", "all"].map(shown);
        for text in [&kept, &bytes] {
            assert!(text.contains("alloca i64, align 8") && text.contains("store i64 0, ptr %"), "{text}");
            assert!(text.contains("select <8 x i1> %m, <8 x ptr> %a, <8 x ptr> %"), "{text}");
            assert!(text.contains("<8 x i1> splat (i1 true)"), "{text}");
        }
        // What lanes have that did not load is the same, for both operands of the sum.
        assert!(kept.contains("select <8 x i1> %m, <8 x float> %v, <8 x float> %o"), "{kept}");
        assert!(!kept.contains("%v, %v") && !bytes.contains("<8 x i8> %v, <8 x i8>"), "{kept}{bytes}");
        assert!(!all.contains("alloca"), "{all}");
    }

    #[test]
    fn gathers_have_no_branches_for_lanes() {
        let context = context();
        let machine = Machine::new("x86_64-unknown-linux-gnu", "x86-64-v3", "").expect("a machine");
        let n_jumps = |is_safe: bool| {
            let module = module(&context, GATHERS);
            module.set_target(machine.triple(), &machine.data_layout());
            if is_safe {
                make_safe(&module);
            }
            let text = String::from_utf8(machine.emit(&module, Codegen::Assembly).expect("code")).expect("text");
            text.lines().filter(|line| line.trim_start().starts_with('j')).count()
        };
        assert!(n_jumps(false) >= 16 && n_jumps(true) == 0, "{} and {}", n_jumps(false), n_jumps(true));
    }
}
