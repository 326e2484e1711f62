//! Lets rounds of a loop overlap where each waits for a special function, such as `rsqrt`, on NVIDIA's GPUs.
//!
//! Left alone, `ptxas` keeps a kernel near 32 registers, so that a processor holds as many threads as it can. Rounds of a loop then share
//! registers and run one after the other, each as long as its chain of dependent instructions. A few warps do not fill the gaps. So such a
//! loop is unrolled by eight, as `nvcc` does. And the kernel asks for one group per processor at least. `ptxas` knows the size of a group
//! then, and overlaps three or four rounds.
//!
//! Invariant: what is marked here decides about speed only. A group has at least as many registers as before, and can be launched.

use super::counters::n_rounds;
use super::unrolling::{COUNT, LARGEST_BODY};
use crate::analyses::natural_loops::Loop;
use crate::llvm::{Attribute, Module, Opcode, Value};

/// LLVM's attribute for the least groups that a processor holds at a time.
const LEAST_GROUPS: &str = "nvvm.minctasm";
/// Rounds that become one.
const ROUNDS: u64 = 8;

/// Marks such loops of a kernel whose groups have one size, and the kernel. Called once calls are inlined.
///
/// The number of rounds is constant and leaves no remainder. Loops that LLVM would unroll whole are left to it.
pub(crate) fn overlap_rounds<'c>(module: &Module<'c>, kernel: Value<'c>) {
    let loops = Loop::innermost(&kernel.blocks()).into_iter().filter(|found| {
        let size = found.instructions().count();
        let n_rounds = found.end().and_then(|end| n_rounds(end.block())).unwrap_or(0);
        let is_small = size * ROUNDS as usize <= LARGEST_BODY;
        let is_long = size as u64 * n_rounds > LARGEST_BODY as u64;
        is_small && is_long && n_rounds.is_multiple_of(ROUNDS) && found.instructions().any(is_special_function)
    });
    for end in loops.filter_map(|found| found.end()) {
        end.set_loop_hint(COUNT, ROUNDS as u32);
        kernel.add_attribute(Attribute::FUNCTION, Attribute::text(module.context(), LEAST_GROUPS, "1"));
    }
}

/// Whether an instruction calls what NVIDIA's processors have a unit of its own for, such as `llvm.nvvm.rsqrt.approx.f`.
fn is_special_function(instruction: Value<'_>) -> bool {
    let name = instruction.is(Opcode::CALL).then(|| instruction.callee()).flatten().map_or("", Value::name);
    name.starts_with("llvm.nvvm.") && name.contains(".approx")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::PassTuning;
    use crate::passes::tests::{context, module, ptx};

    const CALL: &str = "%v = load float, ptr %at
        %w = call float @llvm.nvvm.rsqrt.approx.f(float %v)
        store float %w, ptr %at";

    /// The PTX of a kernel with groups of 256 work-items and a loop of `n` rounds.
    fn code(body: &str, n: u32, after: &str) -> String {
        let context = context();
        let text = format!(
            "declare float @llvm.nvvm.rsqrt.approx.f(float)
            define ptx_kernel void @k(ptr %p) #0 {{
            e: br label %h
            h: %i = phi i64 [ 0, %e ], [ %next, %h ]
            %at = getelementptr float, ptr %p, i64 %i
            {body}
            %next = add nuw nsw i64 %i, 1
            %c = icmp eq i64 %next, {n}
            br i1 %c, label %x, label %h
            x: {after}
            ret void
            }}
            attributes #0 = {{ \"nvvm.reqntid\"=\"256,1,1\" }}"
        );
        let module = module(&context, &text);
        overlap_rounds(&module, module.function("k").expect("the kernel"));
        module.verify("overlap").expect("a valid module");
        module.run("function(loop-unroll<O3>)", None, &PassTuning::DEVICE).expect("unrolled");
        ptx(&module)
    }

    /// The special functions in a round of a loop, and whether the kernel asks for registers.
    fn overlap(code: &str) -> (usize, bool) {
        (code.matches("rsqrt.approx").count(), code.contains(".minnctapersm 1"))
    }

    #[test]
    fn eight_rounds_with_special_functions_overlap() {
        assert_eq!(overlap(&code(CALL, 4096, "")), (8, true));
        assert_eq!(overlap(&code(CALL, 4104, "")), (8, true));
    }

    #[test]
    fn other_loops_are_left_to_llvm() {
        let is_left = |code: &str| !overlap(code).1;
        // A remainder, few rounds, a large body, and no special function in the loop.
        assert!(is_left(&code(CALL, 4092, "")));
        assert!(is_left(&code(CALL, 16, "")));
        assert!(is_left(&code(&format!("{CALL}\n{}", "store volatile i32 1, ptr %p\n".repeat(60)), 4096, "")));
        let after = CALL.replace("%at", "%p");
        assert!(is_left(&code("store volatile i32 1, ptr %at", 4096, &after)));
    }
}
