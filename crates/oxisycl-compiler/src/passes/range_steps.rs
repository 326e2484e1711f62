//! Finds the steps of ranges constant where a branch has decided that there is one.
//!
//! `Range::next` adds one to its start if that is below its end, and the loop goes on by the same comparison. LLVM makes one addition of it:
//!
//! ```text
//! c = n < end; after = n + zext(c)                c = n < end; after = n + 1
//! br c, head, exit                          =>    br c, head, exit
//! head: n = phi [.., after]                       head: n = phi [.., after]
//! ```
//!
//! No pass of LLVM takes that back: the addition stands before the branch, and only uses of `c` itself are replaced behind it. On a CPU jump
//! threading has made branches of it earlier, but that is off where threads diverge. Without the constant step, LLVM knows no bounds of `n`, so that
//! checks of indices stay in the loop, and does not unroll it.
//!
//! Invariant: control flow stays as it is. A sum is replaced only if all its uses are where the branch has decided, so there is never one more.

use crate::llvm::{Block, Builder, Module, Opcode, TypeKind, Value};
use rustc_hash::FxHashSet;

/// Replaces such sums. Returns whether there was one.
pub(crate) fn decide_steps(module: &Module<'_>) -> bool {
    let mut changed = false;
    for function in module.functions() {
        for sum in function.instructions() {
            changed |= sum.is(Opcode::ADD) && decide_step(module, function, sum);
        }
    }
    changed
}

fn decide_step<'c>(module: &Module<'c>, function: Value<'c>, sum: Value<'c>) -> bool {
    let [left, right] = [0, 1].map(|index| sum.operand(index));
    let Some((start, step)) = [(left, right), (right, left)].into_iter().find(|(_, step)| is_of_condition(*step))
    else {
        return false;
    };
    let condition = step.operand(0);
    if start.is_constant() || condition.is_constant() {
        return false;
    }
    let ends = condition.users().into_iter().filter(|user| user.is(Opcode::BRANCH));
    let branches: Vec<Branch<'c>> = ends.filter_map(|end| Branch::new(function, end)).collect();
    if branches.is_empty() || !sum.is_used() {
        return false;
    }
    let mut uses = Vec::new();
    // One that uses the sum twice is found twice, which changes nothing.
    for user in sum.users() {
        let ways = if user.is(Opcode::PHI) { user.incoming() } else { Vec::new() };
        for (index, _) in (0..).zip(user.operands()).filter(|(_, operand)| *operand == sum) {
            let (from, to) = ways.get(index).map_or((user.block(), None), |(_, from)| (*from, Some(user.block())));
            let Some(outcome) = branches.iter().find_map(|branch| branch.outcome(from, to)) else { return false };
            uses.push((user, index as u32, outcome));
        }
    }
    let constant = if step.is(Opcode::ZEXT) { step.value_type().constant(1) } else { step.value_type().all_ones() };
    let after = Builder::before(module.context(), sum).add(start, constant);
    after.copy_flags(sum);
    for (user, index, outcome) in uses {
        user.set_operand(index, if outcome { after } else { start });
    }
    sum.erase();
    if !after.is_used() {
        after.erase();
    }
    true
}

/// Whether a value is a condition as a number.
fn is_of_condition(value: Value<'_>) -> bool {
    (value.is(Opcode::ZEXT) || value.is(Opcode::SEXT)) && value.operand(0).value_type().kind() == TypeKind::Integer(1)
}

/// A branch by a condition.
struct Branch<'c> {
    block: Block<'c>,
    successors: [Block<'c>; 2],
    /// What is reached without the branch to a successor, unless there are other ways to that one.
    others: [Option<FxHashSet<Block<'c>>>; 2],
}

impl<'c> Branch<'c> {
    fn new(function: Value<'c>, end: Value<'c>) -> Option<Self> {
        let block = end.block();
        let &[yes, no] = block.successors().as_slice() else { return None };
        if yes == no {
            return None;
        }
        let blocks = function.blocks();
        let others = [yes, no].map(|successor| {
            let n_ways = blocks.iter().flat_map(|block| block.successors()).filter(|next| *next == successor).count();
            (n_ways == 1 && successor != blocks[0]).then(|| reached_without(blocks[0], successor))
        });
        Some(Self { block, successors: [yes, no], others })
    }

    /// What the condition was wherever a block has been reached, or where control flow goes on from it to another one.
    fn outcome(&self, from: Block<'c>, to: Option<Block<'c>>) -> Option<bool> {
        let is_behind = |side: usize| {
            let is_edge = from == self.block && to == Some(self.successors[side]);
            is_edge || self.others[side].as_ref().is_some_and(|others| !others.contains(&from))
        };
        match [is_behind(0), is_behind(1)] {
            [true, false] => Some(true),
            [false, true] => Some(false),
            // What is never reached is behind both.
            _ => None,
        }
    }
}

/// The blocks that are reached without one of them.
fn reached_without<'c>(first: Block<'c>, left_out: Block<'c>) -> FxHashSet<Block<'c>> {
    let (mut reached, mut queue) = (FxHashSet::default(), vec![first]);
    while let Some(block) = queue.pop() {
        if block != left_out && reached.insert(block) {
            queue.extend(block.successors());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// A loop over a range as LLVM leaves it, with what is in its body and behind it.
    fn range(step: &str, body: &str, end: &str) -> String {
        format!(
            "define void @f(ptr %p, i64 %end) {{
            e: br label %head
            head: %n = phi i64 [ 1, %e ], [ %after, %latch ]
            %c = icmp ult i64 %n, %end
            %step = {step}
            %after = add nuw i64 %n, %step
            {body}
            exit: {end} ret void
            }}"
        )
    }

    const ROTATED: &str = "br label %latch latch: store volatile i64 %n, ptr %p br i1 %c, label %head, label %exit";
    const EXTENDED: &str = "zext i1 %c to i64";
    /// With two ways through the body.
    const WHOLE: &str = "br i1 %c, label %body, label %exit
        body: %d = icmp eq i64 %n, 7 br i1 %d, label %other, label %latch
        other: store volatile i64 %n, ptr %p br label %latch
        latch: br label %head";

    /// The code afterwards, if it is another.
    fn decided(text: &str) -> Option<String> {
        let context = context();
        let module = module(&context, text);
        let before = module.to_string();
        let changed = decide_steps(&module);
        module.verify("range-steps").expect("a valid module");
        let after = module.to_string();
        assert_eq!(changed, before != after, "what is left alone is unchanged: {after}");
        changed.then_some(after)
    }

    #[test]
    fn steps_are_constant_where_the_loop_goes_on() {
        for body in [ROTATED, WHOLE] {
            let after = decided(&range(EXTENDED, body, "")).expect("a change");
            assert!(after.contains("= add nuw i64 %n, 1"), "{after}");
            let after = decided(&range("sext i1 %c to i64", body, "")).expect("a change");
            assert!(after.contains("= add nuw i64 %n, -1"), "{after}");
            // Behind the loop, there was no step.
            let after = decided(&range(EXTENDED, body, "store i64 %after, ptr %p")).expect("a change");
            assert!(after.contains("store i64 %n, ptr %p, align"), "{after}");
        }
        let reversed = ROTATED.replace("label %head, label %exit", "label %exit, label %head");
        let after = decided(&range(EXTENDED, &reversed, "")).expect("a change");
        assert!(after.contains("[ %n, %latch ]") && !after.contains("add"), "{after}");
    }

    #[test]
    fn steps_stay_where_no_branch_has_decided() {
        let used_before = ROTATED.replace("store volatile i64 %n", "store volatile i64 %after");
        let other = ROTATED.replace("br i1 %c", "%d = icmp eq i64 %n, 7 br i1 %d");
        // The loop is left for the same block from elsewhere.
        let two = WHOLE.replace("latch: br label %head", "latch: br i1 %d, label %head, label %exit");
        assert!(decided(&range(EXTENDED, &two, "")).is_some());
        for (body, end) in
            [(used_before.as_str(), ""), (other.as_str(), ""), (two.as_str(), "store i64 %after, ptr %p")]
        {
            assert_eq!(decided(&range(EXTENDED, body, end)), None, "{body}");
        }
        let same = range(EXTENDED, &ROTATED.replace("label %exit", "label %head"), "");
        assert_eq!(decided(&same.replace("%latch ]", "%latch ], [ %after, %latch ]")), None);
        assert_eq!(decided(&range("select i1 %c, i64 %end, i64 0", ROTATED, "")), None);
        assert_eq!(decided(&range("zext i32 7 to i64", ROTATED, "")), None);
    }
}
