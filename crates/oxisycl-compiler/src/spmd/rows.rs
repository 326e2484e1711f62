//! The loops over the rows of a work-group, in the innermost of which is an item loop.
//!
//! While bodies are simplified, an item loop is but a call, so LLVM would unroll the loops around it. Then the rows of a group become one long
//! piece of code, which has more values than there are registers. Loops of the kernel's own may be unrolled: what differs
//! in their rounds is constant then. So calls stay alone at first, until the loops of rows are the innermost ones.

use rustc_hash::FxHashSet;

use crate::llvm::{Attribute, Block, Context, Value};

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
        let mut loops = loops(call.function());
        loops.retain(|of| of.blocks.contains(&call.block()));
        loops.sort_by_key(|of| of.blocks.len());
        for of in loops.iter().take(n_loops) {
            of.latch.end().set_loop_hints(&[ONE_COPY]);
        }
    }
}

/// The blocks between a block and one that goes back to it.
struct Loop<'c> {
    latch: Block<'c>,
    blocks: FxHashSet<Block<'c>>,
}

fn loops<'c>(function: Value<'c>) -> Vec<Loop<'c>> {
    let blocks = function.blocks();
    let before = |block: Block<'c>| blocks.iter().copied().filter(move |other| other.successors().contains(&block));
    let mut loops = Vec::new();
    for (latch, header) in back_edges(function) {
        let mut inside = FxHashSet::from_iter([header, latch]);
        let mut next = vec![latch];
        while let Some(block) = next.pop() {
            next.extend(before(block).filter(|other| block != header && inside.insert(*other)));
        }
        loops.push(Loop { latch, blocks: inside });
    }
    loops
}

/// The blocks that go back to a block on the way to them, with that block.
fn back_edges(function: Value<'_>) -> Vec<(Block<'_>, Block<'_>)> {
    let entry = function.blocks()[0];
    let (mut way, mut seen, mut edges) = (vec![(entry, 0)], FxHashSet::from_iter([entry]), Vec::new());
    while let Some((block, position)) = way.last_mut() {
        let (block, next) = (*block, *position);
        *position += 1;
        match block.successors().get(next).copied() {
            Some(successor) if seen.insert(successor) => way.push((successor, 0)),
            Some(successor) if way.iter().any(|(on_way, _)| *on_way == successor) => edges.push((block, successor)),
            Some(_) => {}
            None => _ = way.pop(),
        }
    }
    edges
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
}
