//! What both sides of a branch compute is computed before it.
//!
//! Else it meets again behind the branch as a phi. If the branch divides the lanes, a phi of two equal values differs between them. An address that is made of it
//! is one of scattered places. LLVM leaves such pairs where other instructions stand between.

use rustc_hash::FxHashMap;

use super::widen::{elementwise, is_division, is_note};
use crate::error::CompileError;
use crate::llvm::{Block, Builder, Context, Module, Opcode, PassTuning, Value};

/// The most rounds: what is moved once may be on a side of another branch.
const ROUNDS: usize = 4;
/// What instructions may say that holds on one of the sides alone.
const CLAIMS: [&str; 11] = [
    "noundef",
    "nonnull",
    "range",
    "align",
    "dereferenceable",
    "dereferenceable_or_null",
    "noalias",
    "alias.scope",
    "tbaa",
    "invariant.load",
    "nontemporal",
];

/// Moves loads and computations of addresses and integers that begin both sides of a branch in front of it.
pub(super) fn unite<'c>(context: &'c Context, body: Value<'c>) -> Result<(), CompileError> {
    for _ in 0..ROUNDS {
        let mut n_ways: FxHashMap<Block<'c>, usize> = FxHashMap::default();
        let blocks = body.blocks();
        for successor in blocks.iter().flat_map(|block| block.successors()) {
            *n_ways.entry(successor).or_default() += 1;
        }
        let mut is_changed = false;
        for block in blocks {
            if let [one, other] = block.successors()[..]
                && block.end().is(Opcode::BRANCH)
                && n_ways[&one] == 1
                && n_ways[&other] == 1
            {
                is_changed |= unite_sides(context, block.end(), [one, other]);
            }
        }
        if !is_changed {
            return Ok(());
        }
        // Phis of two values that are one now.
        Module::run_on(body, "instsimplify", None, &PassTuning::NATIVE)?;
    }
    Ok(())
}

fn unite_sides<'c>(context: &'c Context, branch: Value<'c>, [one, other]: [Block<'c>; 2]) -> bool {
    let mut left = computations(one);
    let mut is_changed = false;
    for second in computations(other) {
        let Some(at) = left.iter().position(|first| are_equal(*first, second)) else { continue };
        let first = left.remove(at);
        let before = Builder::before(context, branch);
        let united = in_front(&before, first);
        united.place_as(first);
        for old in [first, second] {
            old.replace_all_uses_with(united);
            old.erase();
        }
        is_changed = true;
    }
    is_changed
}

/// What may be moved, up to the first instruction that may write memory or not return.
fn computations(side: Block<'_>) -> Vec<Value<'_>> {
    let instructions = side.instructions().into_iter();
    let passes = |instruction: &Value<'_>| match instruction.opcode() {
        Some(Opcode::CALL) => is_note(*instruction) || elementwise(*instruction).is_some(),
        Some(Opcode::LOAD) => !instruction.is_volatile() && !instruction.is_atomic(),
        Some(Opcode::STORE | Opcode::INVOKE | Opcode::FENCE | Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => false,
        Some(_) => !instruction.block().end().eq(instruction),
        None => false,
    };
    instructions.take_while(passes).filter(|instruction| is_movable(*instruction)).collect()
}

fn is_movable(instruction: Value<'_>) -> bool {
    let Some(opcode) = instruction.opcode() else { return false };
    matches!(opcode, Opcode::LOAD | Opcode::GET_ELEMENT_PTR | Opcode::INTEGER_COMPARISON)
        || opcode.is_cast()
        || opcode.is_integer_arithmetic() && !is_division(opcode)
}

fn are_equal<'c>(first: Value<'c>, second: Value<'c>) -> bool {
    let is_same = first.opcode() == second.opcode()
        && first.value_type() == second.value_type()
        && first.operands() == second.operands();
    is_same
        && match first.opcode() {
            Some(Opcode::LOAD) => first.alignment() == second.alignment(),
            Some(Opcode::GET_ELEMENT_PTR) => first.gep_type() == second.gep_type(),
            Some(Opcode::INTEGER_COMPARISON) => first.predicate() == second.predicate(),
            _ => true,
        }
}

/// The instruction without what it says of its operands and its result.
fn in_front<'c>(before: &Builder<'c>, instruction: Value<'c>) -> Value<'c> {
    let operands = instruction.operands();
    match instruction.opcode() {
        Some(Opcode::LOAD) => {
            let copy = instruction.copy();
            before.insert(copy);
            CLAIMS.into_iter().for_each(|claim| copy.unmark(claim));
            copy
        }
        Some(Opcode::GET_ELEMENT_PTR) => before.address(instruction.gep_type(), operands[0], &operands[1..]),
        Some(Opcode::INTEGER_COMPARISON) => before.compare(instruction.predicate(), operands[0], operands[1]),
        Some(opcode) if opcode.is_cast() => before.cast(opcode, operands[0], instruction.value_type()),
        opcode => before.binary(opcode.unwrap_or(Opcode::ADD), operands[0], operands[1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// The function with these two sides of a branch after they were united.
    fn united(one: &str, other: &str) -> String {
        let context = context();
        let text = format!(
            "declare void @foreign()
            define i64 @f(ptr %p, i1 %is, i64 %x) {{
            br i1 %is, label %one, label %other
            one:
            {one}
            br label %end
            other:
            {other}
            br label %end
            end:
            %r = phi i64 [ %a, %one ], [ %b, %other ]
            ret i64 %r }}"
        );
        let module = module(&context, &text);
        let body = module.function("f").expect("it is there");
        unite(&context, body).expect("passes");
        module.verify("uniting").expect("it is valid");
        body.print()
    }

    #[test]
    fn what_begins_both_sides_is_one_value_without_claims() {
        let code = united(
            "%pa = getelementptr inbounds i8, ptr %p, i64 16\n%la = load i64, ptr %pa, align 4, !noundef !{}\n%a = add nuw i64 %la, %x",
            "%t = mul i64 %x, 5\n%pb = getelementptr i8, ptr %p, i64 16\n%lb = load i64, ptr %pb, align 4\n%b = add i64 %lb, %x",
        );
        assert!(!code.contains("phi") && code.matches("load i64").count() == 1, "{code}");
        assert!(!code.contains("noundef !") && !code.contains("inbounds") && !code.contains("nuw"), "{code}");
        assert!(code.contains("align 4"), "{code}");
    }

    #[test]
    fn what_differs_or_stands_behind_a_write_stays() {
        let load = |name: &str| format!("%{name} = load i64, ptr %p, align 8");
        for (one, other) in [
            (load("a"), format!("store i64 1, ptr %p\n{}", load("b"))),
            (format!("call void @foreign()\n{}", load("a")), load("b")),
            (load("a"), "%b = load i64, ptr %p, align 4".to_owned()),
            (load("a"), "%b = load volatile i64, ptr %p, align 8".to_owned()),
            (load("a"), "%b = load atomic i64, ptr %p monotonic, align 8".to_owned()),
            ("%a = udiv i64 %x, 3".to_owned(), "%b = udiv i64 %x, 3".to_owned()),
            ("%a = sub i64 %x, 3".to_owned(), "%b = sub i64 3, %x".to_owned()),
        ] {
            let code = united(&one, &other);
            assert!(code.contains("phi i64"), "{one} and {other}: {code}");
        }
    }
}
