//! Compares 64-bit counters of loops by their lower halves, where these decide alike.
//!
//! Rust counts in `usize`. A processor with registers of 32 bits adds and compares such counters in two halves. A counter that runs from one
//! constant to another, both of 32 bits, has no upper half. Once no comparison uses the upper half, the assembler drops its computation.
//!
//! Invariant: each comparison has the same result as before. The counter itself stays as it is, since addresses in global memory need it.

use crate::llvm::predicate::{EQUAL, UNEQUAL};
use crate::llvm::{Block, Builder, Module, Opcode, Type, TypeKind, Value};

/// More sums than an unrolled loop has for its counter.
const MOST_SUMS: usize = 128;

/// Compares the lower halves. Called right before code generation, since LLVM's simplifications could revert it.
pub(crate) fn compare_lower_halves(module: &Module<'_>) {
    let narrow = Type::int(module.context(), 32);
    for latch in module.functions().into_iter().flat_map(Value::blocks) {
        let Some(Counted { comparison, limit, .. }) = counted_end(latch) else { continue };
        let builder = Builder::before(module.context(), comparison);
        let counter = builder.narrow(comparison.operand(0), narrow);
        let result = builder.compare(comparison.predicate(), counter, narrow.constant(limit.into()));
        comparison.replace_all_uses_with(result);
        comparison.erase();
    }
}

/// How often a loop that ends in `latch` executes it before it ends there, if that is constant.
pub(super) fn n_rounds(latch: Block<'_>) -> Option<u64> {
    counted_end(latch).map(|counted| counted.n_rounds)
}

/// The end of a loop with a constant number of rounds, whose counter never has an upper half.
struct Counted<'c> {
    comparison: Value<'c>,
    /// What the counter is compared with.
    limit: u32,
    n_rounds: u64,
}

/// The end of such a loop, if `latch` decides whether it goes on.
fn counted_end(latch: Block<'_>) -> Option<Counted<'_>> {
    let end = latch.end();
    let &[yes, no] = latch.successors().as_slice() else { return None };
    if !end.is(Opcode::BRANCH) || yes == no {
        return None;
    }
    let comparison = end.operand(0);
    if !comparison.is(Opcode::INTEGER_COMPARISON) {
        return None;
    }
    let head = match comparison.predicate() {
        EQUAL => no,
        UNEQUAL => yes,
        _ => return None,
    };
    let compared = comparison.operand(0);
    if compared.value_type().kind() != TypeKind::Integer(64) {
        return None;
    }
    let limit = u32::try_from(comparison.operand(1).integer()?).ok()?;
    let (counter, _) = sum(compared)?;
    if !counter.is(Opcode::PHI) || counter.block() != head {
        return None;
    }
    // One way into the loop, and one back.
    let (start, next) = match counter.incoming()[..] {
        [(next, back), (start, entry)] | [(start, entry), (next, back)] if back == latch && entry != latch => {
            (start, next)
        }
        _ => return None,
    };
    let start = u32::try_from(start.integer()?).ok()?;
    let (origin, step) = sum(next)?;
    if origin != counter || (compared != next && compared != counter) {
        return None;
    }
    // The first number that is compared.
    let first = if compared == next { u32::try_from(i64::from(start).checked_add(step)?).ok()? } else { start };
    // The way back is taken until the counter is at its limit. So it goes from the first number to the limit by steps, if these
    // lead there, and never past it.
    let distance = i64::from(limit) - i64::from(first);
    let steps = if distance == 0 { 0 } else { distance.checked_div(step)? };
    (steps >= 0 && steps * step == distance).then(|| Counted { comparison, limit, n_rounds: steps.unsigned_abs() + 1 })
}

/// The number that a value adds constants to, and the sum of the constants.
fn sum(mut value: Value<'_>) -> Option<(Value<'_>, i64)> {
    let mut constants = 0_i64;
    for _ in 0..MOST_SUMS {
        if !value.is(Opcode::ADD) {
            return Some((value, constants));
        }
        constants = constants.checked_add(value.operand(1).integer()?.cast_signed())?;
        value = value.operand(0);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx};

    /// The code of a loop by the counter's start, its step, and the comparison.
    fn counted(start: &str, step: &str, compared: &str) -> String {
        format!(
            "define ptx_kernel void @k(ptr %p, i64 %n) {{
            e: br label %h
            h: %i = phi i64 [ {start}, %e ], [ %next, %h ]
            %at = getelementptr i32, ptr %p, i64 %i
            store volatile i32 1, ptr %at
            %half = add i64 %i, {step}
            %next = add i64 %half, {step}
            %c = icmp {compared}
            br i1 %c, label %x, label %h
            x: ret void
            }}"
        )
    }

    /// Whether the comparison of a program is one of lower halves afterwards.
    fn is_narrow(text: &str) -> bool {
        let context = context();
        let module = module(&context, text);
        let before = module.to_string();
        compare_lower_halves(&module);
        module.verify("counters").expect("a valid module");
        let after = module.to_string();
        let is_narrow = after.contains("icmp eq i32") || after.contains("icmp ne i32");
        assert_eq!(is_narrow, before != after, "what is left alone is unchanged: {after}");
        is_narrow
    }

    #[test]
    fn counters_between_constants_of_32_bits_are_compared_by_their_lower_halves() {
        for (start, step, compared) in [
            ("0", "8", "eq i64 %next, 4096"),
            ("0", "8", "eq i64 %i, 4096"),
            ("16", "8", "eq i64 %i, 16"),
            ("4096", "-8", "eq i64 %next, 0"),
            ("1", "1", "eq i64 %next, 4294967295"),
            ("4294967295", "-1", "eq i64 %next, 1"),
        ] {
            assert!(is_narrow(&counted(start, step, compared)), "{start} {step} {compared}");
        }
        let reversed = counted("0", "8", "ne i64 %next, 4096").replace("label %x, label %h", "label %h, label %x");
        assert!(is_narrow(&reversed));
    }

    #[test]
    fn counters_that_may_have_an_upper_half_are_compared_whole() {
        for (start, step, compared) in [
            // Past the end, and around.
            ("0", "8", "eq i64 %next, 4095"),
            ("4096", "8", "eq i64 %next, 0"),
            ("0", "-8", "eq i64 %next, 4096"),
            ("16", "8", "eq i64 %next, 16"),
            ("8", "-8", "eq i64 %next, 4294967288"),
            // More than 32 bits.
            ("0", "1", "eq i64 %next, 4294967296"),
            ("4294967296", "-1", "eq i64 %next, 0"),
            // Unknown, or never.
            ("%n", "8", "eq i64 %next, 4096"),
            ("0", "8", "eq i64 %next, %n"),
            ("0", "0", "eq i64 %next, 4096"),
            // Another comparison, or of another number.
            ("0", "8", "ugt i64 %next, 4096"),
            ("0", "8", "eq i64 %half, 4104"),
        ] {
            assert!(!is_narrow(&counted(start, step, compared)), "{start} {step} {compared}");
        }
        // The loop goes on at the end, and not before.
        assert!(!is_narrow(&counted("0", "8", "ne i64 %next, 4096")));
        // Two ways in, and a way back that does not count.
        let two = counted("0", "8", "eq i64 %next, 4096").replace("%next, %h ]", "%next, %h ], [ 4096, %o ]");
        let two = two.replace("e: br label %h", "e: br i1 undef, label %h, label %o\no: br label %h");
        assert!(!is_narrow(&two));
        let other = counted("0", "8", "eq i64 %next, 4096").replace("%next, %h ]", "4, %h ]");
        assert!(!is_narrow(&other));
    }

    #[test]
    fn rounds_are_counted_as_a_processor_would_count_them() {
        const MOST: u64 = 64;
        const EDGE: u64 = 1 << 32;
        let numbers = [0, 1, 6, 17, 30, EDGE - 31, EDGE - 18, EDGE - 7, EDGE - 1, EDGE, EDGE + 11];
        let (context, mut n_found) = (context(), 0);
        for (start, limit) in numbers.iter().flat_map(|start| numbers.map(|limit| (*start, limit))) {
            for (step, compared) in [1, -1, 3, -5].into_iter().flat_map(|step: i64| [(step, "next"), (step, "i")]) {
                let text = counted(&start.to_string(), &step.to_string(), &format!("eq i64 %{compared}, {limit}"));
                let module = module(&context, &text);
                let latch = module.function("k").expect("the kernel").blocks()[1];
                let Some(n_rounds) = n_rounds(latch) else { continue };
                // What is compared in each round, as far as it is followed.
                let first = if compared == "next" { start.wrapping_add_signed(2 * step) } else { start };
                let all = (0..MOST).map(|round| first.wrapping_add_signed(2 * step * round as i64));
                let until: Vec<u64> = all.take_while(|number| *number != limit).collect();
                assert!(until.iter().all(|number| *number < EDGE), "{text}");
                if (until.len() as u64) < MOST {
                    assert_eq!(until.len() as u64 + 1, n_rounds, "{text}");
                    n_found += 1;
                } else {
                    assert!(n_rounds > MOST, "{text}");
                }
            }
        }
        assert!(n_found > 20, "{n_found}");
    }

    #[test]
    fn the_upper_half_is_gone_from_the_code() {
        let context = context();
        let module = module(&context, &counted("0", "8", "eq i64 %next, 4096"));
        assert!(ptx(&module).contains("setp.ne.b64"));
        compare_lower_halves(&module);
        let code = ptx(&module);
        assert!(code.contains("setp.ne.b32") && !code.contains("setp.ne.b64"), "{code}");
    }
}
