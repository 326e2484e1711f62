//! The loops over the rows of a work-group, in the innermost of which is an item loop.
//!
//! While bodies are simplified, an item loop is but a call, so LLVM would unroll the loops around it. Then the rows of a group become one long
//! piece of code, which has more values than there are registers. Loops of the kernel's own may be unrolled: what differs
//! in their rounds is constant then. So calls stay alone at first, until the loops of rows are the innermost ones.
//!
//! Loops around barriers are an exception. Each of their rounds would be regions of its own, with all that LLVM moves between rounds kept over
//! barriers. So they are not unrolled.

use crate::analyses::natural_loops::Loop;
use crate::llvm::{Attribute, Context, Value};

/// Keeps calls of a function where and as often as they are.
const ONCE: &str = "noduplicate";
/// Says to LLVM that a loop is worth no more than one copy of its body.
pub(super) const ONE_COPY: (&str, u32) = ("llvm.loop.unroll.count", 1);

/// Keeps the calls of a loop's function from being copied, until [`keep_apart`].
pub(super) fn keep_together(context: &Context, steps: Value<'_>) {
    steps.add_attribute(Attribute::FUNCTION, Attribute::plain(context, ONCE, 0));
}

/// Keeps so many loops around each call of a loop's function from being unrolled.
pub(super) fn keep_apart(steps: Value<'_>, n_loops: usize) {
    steps.remove_attribute(Attribute::FUNCTION, ONCE);
    for call in steps.calls() {
        keep_as_one(call, n_loops);
    }
}

/// Keeps all loops around calls of a function from being unrolled, in its callers and in theirs.
pub(super) fn keep_rounds(called: Value<'_>) {
    let mut functions = vec![called];
    let mut next = 0;
    while let Some(function) = functions.get(next).copied() {
        next += 1;
        for call in function.calls() {
            keep_as_one(call, usize::MAX);
            if !functions.contains(&call.function()) {
                functions.push(call.function());
            }
        }
    }
}

/// Keeps so many loops around an instruction from being unrolled, the innermost ones.
fn keep_as_one(instruction: Value<'_>, n_loops: usize) {
    let mut loops = Loop::all(&instruction.function().blocks());
    loops.retain(|of| of.blocks.contains(&instruction.block()));
    loops.sort_by_key(|of| of.blocks.len());
    for end in loops.iter().take(n_loops).flat_map(|of| &of.ends) {
        end.set_loop_hints(&[ONE_COPY]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::PassTuning;
    use crate::passes::tests::{context, module};

    #[test]
    fn rows_stay_in_a_loop_and_what_is_around_them_need_not() {
        let text = "declare void @steps(ptr, i64)
            define void @kernel(ptr %env) {
            entry: br label %round
            round:
            %r = phi i64 [ 0, %entry ], [ %nr, %behind ]
            br label %row
            row:
            %y = phi i64 [ 0, %round ], [ %ny, %row ]
            %at = getelementptr [16 x i64], ptr %env, i64 %r, i64 %y
            call void @steps(ptr %at, i64 16)
            %ny = add i64 %y, 1
            %more = icmp ult i64 %ny, 16
            br i1 %more, label %row, label %behind
            behind:
            %nr = add i64 %r, 1
            %again = icmp ult i64 %nr, 3
            br i1 %again, label %round, label %end
            end: ret void }";
        let context = context();
        let calls = |n_loops: usize| {
            let module = module(&context, text);
            let steps = module.function("steps").expect("it is declared");
            let simplify = || {
                module.run("thinlto-pre-link<O3>", None, &PassTuning::NATIVE).expect("passes");
                steps.calls().len()
            };
            if n_loops == 0 {
                return (simplify(), 0);
            }
            keep_together(&context, steps);
            let first = simplify();
            keep_apart(steps, n_loops);
            (first, simplify())
        };
        assert_eq!([calls(0), calls(1), calls(2)], [(48, 0), (1, 3), (1, 1)]);
    }

    #[test]
    fn rounds_with_a_call_in_what_they_call_stay_one_loop() {
        let text = "declare void @barrier()
            define internal void @waits(ptr %at) {
            call void @barrier()
            store volatile i64 1, ptr %at
            ret void }
            define void @kernel(ptr %env) {
            entry: br label %round
            round:
            %r = phi i64 [ 0, %entry ], [ %nr, %round ]
            %at = getelementptr i64, ptr %env, i64 %r
            call void @waits(ptr %at)
            %nr = add i64 %r, 1
            %again = icmp ult i64 %nr, 3
            br i1 %again, label %round, label %fill
            fill:
            %i = phi i64 [ 0, %round ], [ %ni, %fill ]
            store volatile i64 %i, ptr %env
            %ni = add i64 %i, 1
            %more = icmp ult i64 %ni, 5
            br i1 %more, label %fill, label %end
            end: ret void }";
        let context = context();
        let counts = |keeps: bool| {
            let module = module(&context, text);
            if keeps {
                keep_rounds(module.function("barrier").expect("it is declared"));
            }
            module.run("thinlto-pre-link<O3>", None, &PassTuning::NATIVE).expect("passes");
            let stores = module.function("kernel").expect("the kernel").instructions().into_iter();
            (module.function("barrier").expect("it").calls().len(), stores.filter(|of| of.is_volatile()).count())
        };
        // The other loop may be unrolled.
        assert_eq!([counts(false), counts(true)], [(3, 8), (1, 6)]);
    }
}
