//! Merges successive checks into one branch.
//!
//! Each accessor that a work-item uses tests the launch, and each index its bounds. Every test is a branch that hardly any work-item takes,
//! and each branch waits for its own comparison:
//!
//! ```text
//! if c0 { panic 0 }                        if c0 || c1 || c2 {
//! x = ..                                       if c0 { panic 0 }
//! if c1 { panic 1 }               =>           if c1 { panic 1 }
//! y = ..                                       panic 2
//! if c2 { panic 2 }                        }
//! ```
//!
//! What stands between the checks is computed before them, so that only what has no effects, cannot fail and costs little may stand there.
//! Of several checks that fail the first one counts, as before. Only paths on which the work-item ends are changed. No thread meets another
//! one again there, so threads that go on together do so as before.

use crate::llvm::{Attribute, Block, Builder, Module, Opcode, Type, Value, ValueKind};
use crate::passes::cold_blocks::endings;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most instructions that are moved before an earlier check.
const MOST_MOVED: usize = 32;

/// A block that branches to another one if its condition has the value of the check.
struct Check<'c> {
    block: Block<'c>,
    leaves_if: bool,
    leaves_for: Block<'c>,
    goes_on_to: Block<'c>,
}

/// Merges the checks of all functions. The parameters of `kernels` are in memory of their own. A return is no check, since threads that
/// return reconverge with the others at the end. If returns counted as checks, `ptxas` would keep values that all threads of the loops
/// before them share in other registers. That costs nine instructions in the loop of n-body, and 5 % of its time.
pub(crate) fn merge(module: &Module<'_>, kernels: &[Value<'_>]) {
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        let blocks = function.blocks();
        let leaving = endings(&blocks);
        let mut parameters = Vec::new();
        if kernels.contains(&function) {
            parameters.extend((0..function.parameter_count()).map(|index| function.parameter(index)));
        }
        let mut n_predecessors: FxHashMap<Block<'_>, usize> = FxHashMap::default();
        for successor in blocks.iter().flat_map(|block| block.successors()) {
            *n_predecessors.entry(successor).or_default() += 1;
        }
        let mut seen = FxHashSet::default();
        for block in blocks {
            let checks = row(block, &leaving, &n_predecessors, &parameters);
            // The first block of a row comes before the others, since it dominates them; if not, they are shorter rows of their own.
            if !seen.contains(&block) && checks.len() > 1 {
                seen.extend(checks.iter().map(|check| check.block));
                join(module, function, &checks);
            }
        }
    }
}

/// The successive checks from the end of a block on.
fn row<'c>(
    first: Block<'c>,
    leaving: &FxHashSet<Block<'c>>,
    n_predecessors: &FxHashMap<Block<'c>, usize>,
    parameters: &[Value<'c>],
) -> Vec<Check<'c>> {
    let mut checks = Vec::new();
    let mut n_moved = 0;
    let mut block = first;
    while let Some(check) = check(block, leaving) {
        if !checks.is_empty() {
            let instructions = block.instructions();
            let (_, before) = instructions.split_last().expect("a block has an end");
            n_moved += before.len();
            let is_alone = n_predecessors.get(&block) == Some(&1) && block != first;
            let may_move = before.iter().all(|instruction| may_come_earlier(*instruction, parameters));
            if !is_alone || n_moved > MOST_MOVED || !may_move {
                break;
            }
        }
        block = check.goes_on_to;
        checks.push(check);
    }
    checks
}

fn check<'c>(block: Block<'c>, leaving: &FxHashSet<Block<'c>>) -> Option<Check<'c>> {
    let end = block.end();
    let &[yes, no] = block.successors().as_slice() else { return None };
    if !end.is(Opcode::BRANCH) || leaving.contains(&block) || leaving.contains(&yes) == leaving.contains(&no) {
        return None;
    }
    let leaves_if = leaving.contains(&yes);
    let (leaves_for, goes_on_to) = if leaves_if { (yes, no) } else { (no, yes) };
    Some(Check { block, leaves_if, leaves_for, goes_on_to })
}

/// Whether an instruction may be executed speculatively.
pub(crate) fn may_come_earlier(instruction: Value<'_>, parameters: &[Value<'_>]) -> bool {
    let Some(opcode) = instruction.opcode() else { return false };
    match opcode {
        Opcode::UDIV | Opcode::SDIV | Opcode::UREM | Opcode::SREM => false,
        Opcode::INTEGER_COMPARISON
        | Opcode::FCMP
        | Opcode::SELECT
        | Opcode::FREEZE
        | Opcode::GET_ELEMENT_PTR
        | Opcode::EXTRACT_VALUE => true,
        Opcode::LOAD => {
            !instruction.is_atomic() && !instruction.is_volatile() && is_in(instruction.operand(0), parameters)
        }
        // LLVM says so of its own functions, such as those that tell a thread's position.
        Opcode::CALL => {
            // Inline assembly has no attributes of a function.
            let callee = instruction.callee().filter(|callee| callee.kind() == ValueKind::Function);
            callee.is_some_and(|callee| callee.has_attribute(Attribute::FUNCTION, "speculatable"))
        }
        _ => opcode.is_integer_arithmetic() || opcode.is_cast(),
    }
}

/// Whether an address is in a kernel's parameter. That memory is accessible to all of its work-items.
fn is_in(address: Value<'_>, parameters: &[Value<'_>]) -> bool {
    let is_constant = |index: &Value<'_>| index.integer().is_some();
    match address.opcode() {
        None => parameters.contains(&address),
        Some(Opcode::GET_ELEMENT_PTR) => {
            address.operands()[1..].iter().all(is_constant) && is_in(address.operand(0), parameters)
        }
        Some(Opcode::ADDRESS_SPACE_CAST) => is_in(address.operand(0), parameters),
        Some(_) => false,
    }
}

fn join<'c>(module: &Module<'c>, function: Value<'c>, checks: &[Check<'c>]) {
    let context = module.context();
    let [first, .., last] = checks else { return };
    let end = first.block.end();
    for check in &checks[1..] {
        let instructions = check.block.instructions();
        for &instruction in &instructions[..instructions.len() - 1] {
            // What a load promises of its value need not hold where a check fails.
            if instruction.is(Opcode::LOAD) {
                let load = Builder::before(context, end).load(instruction.value_type(), instruction.operand(0));
                load.set_alignment(instruction.alignment());
                instruction.replace_all_uses_with(load);
                instruction.erase();
            } else {
                Builder::before(context, end).take(instruction);
            }
        }
    }
    let conditions: Vec<_> = checks.iter().map(|check| check.block.end().operand(0)).collect();
    let builder = Builder::before(context, end);
    let yes = Type::int(context, 1).constant(1);
    let mut fails = None;
    for (check, &condition) in checks.iter().zip(&conditions) {
        let leaves = if check.leaves_if { condition } else { builder.not(condition) };
        // Not `or`: a later condition may be poison where an earlier check fails.
        fails = Some(fails.map_or(leaves, |before| builder.select(before, yes, leaves)));
    }
    let fails = fails.expect("there are checks");
    // The blocks of the later checks remain as those of the work-items for which one of them fails.
    let again = Block::append(context, function);
    let [if_true, if_false] = branches(first.leaves_if, first.leaves_for, checks[1].block);
    Builder::at_end(context, again).branch_if(conditions[0], if_true, if_false);
    rename_incoming(module, first.leaves_for, first.block, again);
    rename_incoming(module, last.goes_on_to, last.block, first.block);
    builder.branch_if(fails, again, last.goes_on_to);
    end.erase();
    let old_end = last.block.end();
    Builder::before(context, old_end).branch(last.leaves_for);
    old_end.erase();
}

fn branches<T>(is_first: bool, one: T, other: T) -> [T; 2] {
    if is_first { [one, other] } else { [other, one] }
}

/// Renames the incoming block of phis in `block` from `from` to `to`.
fn rename_incoming<'c>(module: &Module<'c>, block: Block<'c>, from: Block<'c>, to: Block<'c>) {
    for phi in block.instructions().into_iter().filter(|instruction| instruction.is(Opcode::PHI)) {
        let incoming: Vec<_> =
            phi.incoming().into_iter().map(|(value, block)| (value, if block == from { to } else { block })).collect();
        let renamed = Builder::before(module.context(), phi).phi(phi.value_type(), &incoming);
        phi.replace_all_uses_with(renamed);
        phi.erase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    const RECORD: &str = "declare void @record(i64)\n";

    /// How many conditional branches are in blocks after which something else than a panic or the kernel's end may come.
    fn branches_ahead(function: Value<'_>) -> usize {
        let blocks = function.blocks();
        let mut leaving = endings(&blocks);
        leaving.extend(blocks.iter().filter(|block| block.instructions()[0].is(Opcode::RET)));
        // What is left through the new block only.
        while let Some(more) = blocks.iter().find(|block| {
            let successors = block.successors();
            let leaves = successors.iter().all(|successor| leaving.contains(successor));
            successors.len() == 2 && leaves && !leaving.contains(block)
        }) {
            leaving.insert(*more);
        }
        blocks.iter().filter(|block| !leaving.contains(block) && block.successors().len() == 2).count()
    }

    fn merged(text: &str) -> (usize, String) {
        let context = context();
        let module = module(&context, &format!("{RECORD}{text}"));
        let kernel = module.function("k").expect("the kernel");
        merge(&module, &[kernel]);
        module.verify("the test").expect("a valid module");
        (branches_ahead(kernel), module.to_string())
    }

    #[test]
    fn checks_in_a_row_are_one_branch_and_the_first_that_fails_counts() {
        let (branches, text) = merged(
            "define void @k(ptr %launch, ptr %captures, i64 %i, ptr %p) {
                %count = load i64, ptr %launch
                %inside = icmp ult i64 %i, %count
                br i1 %inside, label %one, label %end
            one:
                %a_place = getelementptr i8, ptr %captures, i64 8
                %a = load i64, ptr %a_place, align 8
                %a_fails = icmp ugt i64 %i, %a
                br i1 %a_fails, label %bad, label %two
            two:
                %b_place = getelementptr i8, ptr %captures, i64 40
                %b = load i64, ptr %b_place, align 8, !noundef !0
                %b_fails = icmp ugt i64 %i, %b
                br i1 %b_fails, label %bad, label %go
            go:
                %sum = add i64 %a, %b
                store i64 %sum, ptr %p
                br label %end
            bad:
                %n = phi i64 [ %a, %one ], [ %b, %two ]
                call void @record(i64 %n)
                unreachable
            end:
                ret void
            }
            !0 = !{}",
        );
        assert_eq!(branches, 2, "whether the work-item is in the launch, and the checks: {text}");
        // The work-items that fail test again: first `a`, and `b` is what is left.
        let ends = ["br i1 %inside, label %one, label %end\n", ", label %bad, label %two\n", "\n  br label %bad\n"];
        assert!(ends.iter().all(|end| text.matches(end).count() == 1), "{text}");
        assert!(text.contains("phi i64 ") && text.contains(", %two ]"), "{text}");
        assert!(!text.contains("!noundef"), "a promise that holds only after the first check: {text}");
        assert!(text.contains("select i1 ") && !text.contains(" = or i1"), "a later condition may be poison: {text}");
    }

    #[test]
    fn what_has_effects_may_fail_or_reads_memory_of_others_stays_after_the_check_before_it() {
        for (between, expected) in [
            ("%x = add i64 %i, 1", 1),
            ("%x = load i64, ptr %launch", 1),
            ("%x = call i64 @llvm.ctpop.i64(i64 %i)", 1),
            ("store i64 1, ptr %p %x = add i64 %i, 1", 2),
            ("%q = load ptr, ptr %launch %x = load i64, ptr %q", 2),
            ("%q = getelementptr i8, ptr %launch, i64 %i %x = load i64, ptr %q", 2),
            ("%x = load volatile i64, ptr %launch", 2),
            ("%x = udiv i64 %n, %i", 2),
            ("%x = call i64 @other()", 2),
            ("call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0) %x = add i64 %i, 1", 2),
        ] {
            let (branches, text) = merged(&format!(
                "declare i64 @other() declare i64 @llvm.ctpop.i64(i64)
                declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
                define void @k(ptr %launch, i64 %i, i64 %n, ptr %p) {{
                    %a_fails = icmp uge i64 %i, %n
                    br i1 %a_fails, label %bad, label %one
                one:
                    {between}
                    %b_fails = icmp eq i64 %x, 7
                    br i1 %b_fails, label %worse, label %go
                go:
                    store i64 %x, ptr %p
                    ret void
                bad:
                    call void @record(i64 1)
                    unreachable
                worse:
                    call void @record(i64 2)
                    unreachable
                }}"
            ));
            assert_eq!(branches, expected, "{between}: {text}");
        }
    }

    #[test]
    fn checks_of_a_loop_stay_in_it_and_a_function_goes_on_after_its_return() {
        let text = "define void @k(ptr %launch, i64 %n, ptr %p) {
                br label %loop
            loop:
                %i = phi i64 [ 0, %0 ], [ %next, %two ]
                %a_fails = icmp uge i64 %i, %n
                br i1 %a_fails, label %bad, label %two
            two:
                %next = add i64 %i, 1
                %b_fails = icmp uge i64 %next, 7
                br i1 %b_fails, label %bad, label %loop
            bad:
                %n_bad = phi i64 [ %i, %loop ], [ %next, %two ]
                call void @record(i64 %n_bad)
                unreachable
            }
            define i64 @f(i64 %i, i64 %n) {
                %a = icmp uge i64 %i, %n
                br i1 %a, label %end, label %two
            two:
                %b = icmp eq i64 %i, 3
                br i1 %b, label %bad, label %go
            go:
                call void @record(i64 5)
                br label %end
            bad:
                call void @record(i64 4)
                unreachable
            end:
                %result = phi i64 [ 1, %0 ], [ 2, %go ]
                ret i64 %result
            }";
        let context = context();
        let module = module(&context, &format!("{RECORD}{text}"));
        let [kernel, function] = ["k", "f"].map(|name| module.function(name).expect("it is there"));
        merge(&module, &[kernel]);
        module.verify("the test").expect("a valid module");
        // Every way out of the loop is a panic, so that nothing is ahead of it.
        assert_eq!(branches_ahead(kernel), 1, "{module}");
        let conditions = function.blocks().into_iter().filter(|block| block.successors().len() == 2).count();
        assert_eq!(conditions, 2, "a return of a function is not its caller's: {module}");
    }
}
