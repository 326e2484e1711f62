//! Puts checks right before what they guard, for NVIDIA's GPUs.
//!
//! A check of a range is a load of the range, a comparison, and a branch that hardly any work-item takes. What comes behind the branch
//! waits for all three, also the address that both the check and the access are about. LLVM even moves such arithmetic behind the branch,
//! since a work-item that panics does not need it. So it is moved up to the check, and the check goes below it:
//!
//! ```text
//! if i >= n { panic }                 place = p + 4 * i
//! place = p + 4 * i          =>       if i >= n { panic }
//! x = *place                          x = *place
//! ```
//!
//! `ptxas` makes predicates of checks that stand like that: the access is executed if the check holds, and the branch comes after it.
//!
//! LLVM's code generator would move the arithmetic back (`MachineSink`), and what was there before. So each such value that nothing else keeps
//! before the branch has a `llvm.fake.use` there, of which no code is made.
//!
//! Checks in loops stay as they are. There the code generator's own order was faster: what is kept before a check takes registers in each round.
//!
//! Only what has no effects, cannot fail and costs little is moved, and of that only what comes before the first access. What is behind an
//! access would be kept in registers for longer. Work-items that panic compute it for nothing.
//!
//! A load from the memory of algorithms over a group cannot fail, so that it is moved like arithmetic. A scan has such loads: LLVM may put them
//! behind the check of what is written with their sum.

use oxisycl_types::GroupSize;
use rustc_hash::FxHashSet;

use crate::builtin_table::LOCAL_MEMORY;
use crate::llvm::{Block, Builder, Layout, Module, Opcode, Type, TypeKind, Value, ValueKind};
use crate::passes::bounds_check_merging::{check, may_come_earlier, n_predecessors};
use crate::passes::cold_blocks::endings;

/// The most instructions that are moved before a check: a scan by 512 work-items adds up the sums of 16 sub-groups, with four each.
const MOST_MOVED: usize = 64;
/// The most of them whose results are kept until behind the check. Each is one or two registers more there, where the values that a panic shows
/// are kept, too. An access has an address and perhaps a value.
const MOST_KEPT: usize = 8;

/// Puts all checks below what can be computed before them. Called right before code generation, since LLVM's simplifications revert it.
///
/// If groups have one size, the launch has local memory for algorithms over them, for elements of `bytes_of_element` bytes.
pub(crate) fn put_checks_last(module: &Module<'_>, group: [u32; 3], bytes_of_element: u32) {
    let items = group.into_iter().map(|extent| extent as usize).product();
    let scratch = if items > 0 { GroupSize::scratch_bytes(items, bytes_of_element as usize) } else { None };
    let scratch = scratch.unwrap_or(0) as u64;
    for function in module.functions().into_iter().filter(|function| !function.is_declaration()) {
        let blocks = function.blocks();
        let leaving = endings(&blocks);
        let n_predecessors = n_predecessors(&blocks);
        // All are chosen before one is moved, so that nothing moves across two checks.
        let checks: Vec<_> = blocks
            .iter()
            .filter_map(|&block| check(block, &leaving))
            .filter(|check| n_predecessors.get(&check.goes_on_to) == Some(&1) && !is_in_a_loop(check.block))
            .map(|check| (check.block, Early::of(check.goes_on_to, Layout::of(module), scratch)))
            .collect();
        for (block, early) in checks {
            early.put_before_check(module, block);
        }
    }
}

/// Whether a block comes again after itself.
fn is_in_a_loop(block: Block<'_>) -> bool {
    let (mut seen, mut left) = (FxHashSet::default(), block.successors());
    while let Some(next) = left.pop() {
        if next == block {
            return true;
        }
        if seen.insert(next) {
            left.extend(next.successors());
        }
    }
    false
}

/// What is wanted before a check.
struct Early<'c> {
    /// Instructions from the beginning of the block behind the check.
    moved: Vec<Value<'c>>,
    /// All that would be moved behind the check again.
    kept: Vec<Value<'c>>,
}

impl<'c> Early<'c> {
    /// What a block computes before its first effect or access that may fail. What it uses of earlier blocks is kept there.
    fn of(block: Block<'c>, layout: Layout<'_>, scratch: u64) -> Self {
        let instructions = block.instructions();
        let mut moved = Vec::new();
        let mut staying = FxHashSet::default();
        for &instruction in &instructions {
            let is_movable = !may_be_fused(instruction)
                && (may_come_earlier(instruction, &[]) || is_load_of_scratch(instruction, layout, scratch));
            if !is_movable && !may_be_fused(instruction) || moved.len() == MOST_MOVED {
                break;
            }
            // The comparison of another check stays right before its branch.
            let is_next_check = instruction.users() == [block.end()];
            let needs_staying = instruction.operands().iter().any(|operand| staying.contains(operand));
            if !is_movable || is_next_check || needs_staying {
                staying.insert(instruction);
            } else {
                moved.push(instruction);
            }
        }
        while results(&moved).count() > MOST_KEPT {
            moved.pop();
        }
        let inside: FxHashSet<_> = instructions.iter().copied().collect();
        let used = instructions.iter().flat_map(|instruction| instruction.operands());
        let used = used.filter(|value| !inside.contains(value) && value.opcode().is_some() && !may_be_fused(*value));
        let mut seen = FxHashSet::default();
        let used = used.filter(|value| seen.insert(*value)).take(MOST_KEPT);
        let kept = results(&moved).chain(used).filter(|value| is_in_a_register(*value)).collect();
        Self { moved, kept }
    }

    /// Puts all of it, and then the comparison, at the end of a block that a check ends.
    fn put_before_check(self, module: &Module<'c>, block: Block<'c>) {
        let context = module.context();
        let end = block.end();
        let condition = end.operand(0);
        let builder = Builder::before(context, end);
        for &instruction in &self.moved {
            // What a load promises of its value need not hold where the check fails.
            if instruction.is(Opcode::LOAD) {
                instruction.unmark("noundef");
            }
            builder.take(instruction);
        }
        let any = Type::variadic(Type::void(context));
        for value in self.kept.into_iter().filter(|value| *value != condition) {
            builder.call(module.declare("llvm.fake.use", any), &[value]);
        }
        let is_inside = block.instructions().contains(&condition);
        if is_inside && condition.users() == [end] && may_come_earlier(condition, &[]) {
            builder.take(condition);
        }
    }
}

/// The instructions that no other one of the list uses.
fn results<'c>(instructions: &[Value<'c>]) -> impl Iterator<Item = Value<'c>> {
    let used: FxHashSet<_> = instructions.iter().flat_map(|instruction| instruction.operands()).collect();
    instructions.iter().copied().filter(move |instruction| !used.contains(instruction))
}

fn is_in_a_register(value: Value<'_>) -> bool {
    matches!(
        value.value_type().kind(),
        TypeKind::Integer(..=64) | TypeKind::Pointer(_) | TypeKind::Float | TypeKind::Double
    )
}

/// Whether an instruction may become a part of another one that uses its result. The code generator does that within a block, so it stays there.
/// A product becomes one with the sum that it is in, and an address with the access a constant number of bytes behind it.
fn may_be_fused(instruction: Value<'_>) -> bool {
    let is_float =
        [Opcode::FADD, Opcode::FSUB, Opcode::FMUL, Opcode::FNEG].into_iter().any(|opcode| instruction.is(opcode));
    let is_constant = |index: &Value<'_>| index.integer().is_some();
    is_float || instruction.is(Opcode::GET_ELEMENT_PTR) && instruction.operands()[1..].iter().all(is_constant)
}

/// Whether an instruction loads from the first `scratch` bytes of a group's memory, which each launch has.
fn is_load_of_scratch(instruction: Value<'_>, layout: Layout<'_>, scratch: u64) -> bool {
    if !instruction.is(Opcode::LOAD) || instruction.is_atomic() || instruction.is_volatile() {
        return false;
    }
    let mut end = layout.store_size(instruction.value_type());
    let mut address = instruction.operand(0);
    while address.kind() != ValueKind::GlobalVariable {
        match address.opcode().or_else(|| address.expression()) {
            Some(Opcode::ADDRESS_SPACE_CAST) => {}
            Some(Opcode::GET_ELEMENT_PTR)
                if address.operands().len() == 2 && address.gep_type().kind() == TypeKind::Integer(8) =>
            {
                let Some(sum) = address.operand(1).integer().and_then(|bytes| end.checked_add(bytes)) else {
                    return false;
                };
                end = sum;
            }
            _ => return false,
        }
        address = address.operand(0);
    }
    address.name() == LOCAL_MEMORY && end <= scratch
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx_for};

    /// A kernel that checks `%i`, with `between` behind the check and before what uses `%x`.
    fn kernel(between: &str) -> String {
        format!(
            "declare void @record(i64)
            declare i64 @other()
            @oxisycl_local_memory = external addrspace(3) global [0 x i8], align 64
            define ptx_kernel void @k(ptr addrspace(1) %p, i64 %i, i64 %n, ptr addrspace(1) %q) {{
                %fails = icmp uge i64 %i, %n
                %more = add i64 %i, 5
                br i1 %fails, label %bad, label %go
            go:
                {between}
                store i64 %x, ptr addrspace(1) %p
                store i64 %more, ptr addrspace(1) %q
                ret void
            bad:
                call void @record(i64 %i)
                unreachable
            }}"
        )
    }

    /// What is in the kernel's first block after the pass.
    fn first_block(between: &str) -> Vec<String> {
        let context = context();
        let module = module(&context, &kernel(between));
        put_checks_last(&module, [8, 1, 1], 4);
        module.verify("the test").expect("a valid module");
        let block = module.function("k").expect("the kernel").blocks()[0];
        block.instructions().into_iter().map(|instruction| instruction.print().trim().to_owned()).collect()
    }

    #[test]
    fn what_is_computed_behind_a_check_comes_before_it_and_the_comparison_last() {
        let block = first_block(
            "%at = getelementptr i64, ptr addrspace(1) %q, i64 %i
            %x = load i64, ptr addrspace(1) %at",
        );
        let [more, at, keep_at, keep_more, comparison, branch] = &block[..] else { panic!("{block:?}") };
        assert!(more.starts_with("%more ") && at.contains(" = getelementptr "), "{block:?}");
        assert!(keep_at.contains("@llvm.fake.use(ptr addrspace(1) %"), "{block:?}");
        assert!(keep_more.contains("@llvm.fake.use(i64 %more)"), "{block:?}");
        assert!(comparison.ends_with("icmp uge i64 %i, %n") && branch.starts_with("br "), "{block:?}");
    }

    #[test]
    fn the_code_generator_leaves_the_order() {
        let context = context();
        let text = kernel(
            "%at = getelementptr i64, ptr addrspace(1) %q, i64 %i
            %x = load i64, ptr addrspace(1) %at",
        );
        let place = |code: &str, what: &str| code.find(what).unwrap_or_else(|| panic!("no {what} in {code}"));
        let is_early = |code: &str| ["shl.b64", ", 5;"].iter().all(|what| place(code, what) < place(code, "setp."));
        // If this fails, the marks are no longer needed.
        assert!(!is_early(&ptx_for(&module(&context, &text), 80)), "what LLVM does with the address itself");
        let module = module(&context, &text);
        put_checks_last(&module, [8, 1, 1], 4);
        let code = ptx_for(&module, 80);
        assert!(is_early(&code), "{code}");
        assert!(place(&code, "setp.") < place(&code, "@%p1 bra"), "{code}");
        let between = &code[place(&code, "setp.")..place(&code, "@%p1 bra")];
        assert_eq!(between.matches(';').count(), 1, "only the comparison stands before its branch: {code}");
    }

    #[test]
    fn what_has_effects_may_fail_or_reads_memory_stays_and_what_is_behind_it() {
        for (between, moved) in [
            ("%x = add i64 %i, 1", 1),
            // What a product is added to may be behind the check.
            ("%f = sitofp i64 %i to double %g = fmul double %f, %f %x = fptosi double %g to i64", 1),
            ("%at = getelementptr i8, ptr addrspace(1) %q, i64 8 %x = load i64, ptr addrspace(1) %at", 0),
            ("%at = getelementptr i8, ptr addrspace(1) %q, i64 8 %x = add i64 %i, 1", 1),
            ("%x = load i64, ptr addrspace(1) %q", 0),
            ("%y = load i64, ptr addrspace(1) %q %x = add i64 %i, 1", 0),
            ("%a = add i64 %i, 1 %y = load i64, ptr addrspace(1) %q %x = add i64 %i, %y", 1),
            ("%w = load i32, ptr addrspace(3) @oxisycl_local_memory %x = zext i32 %w to i64", 2),
            ("%x = load i64, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @oxisycl_local_memory, i32 56)", 1),
            ("%x = load i64, ptr addrspace(3) getelementptr (i8, ptr addrspace(3) @oxisycl_local_memory, i32 60)", 0),
            ("%x = load volatile i64, ptr addrspace(3) @oxisycl_local_memory", 0),
            (
                "%m = getelementptr i8, ptr addrspace(3) @oxisycl_local_memory, i64 %i %x = load i64, ptr addrspace(3) %m",
                1,
            ),
            ("%x = udiv i64 %n, %i", 0),
            ("%x = call i64 @other()", 0),
            ("store i64 1, ptr addrspace(1) %p %x = add i64 %i, 1", 0),
        ] {
            let block = first_block(between);
            let n_moved = block.iter().filter(|line| !line.contains("@llvm.fake.use")).count() - 3;
            assert_eq!(n_moved, moved, "{between}: {block:?}");
        }
    }

    #[test]
    fn what_moves_is_limited_by_its_number_and_by_the_registers_that_it_takes() {
        let sums = |before: &dyn Fn(usize) -> String| -> String {
            (1..=80).map(|n| format!("%a{n} = add i64 {}, {n}\n", before(n))).collect()
        };
        let apart = sums(&|_| "%i".to_owned());
        let chain = sums(&|n| if n == 1 { "%i".to_owned() } else { format!("%a{}", n - 1) });
        for (sums, expected) in [(apart, MOST_KEPT), (chain, MOST_MOVED)] {
            let block = first_block(&format!("{sums} %x = xor i64 %a80, 1"));
            let n_sums = block.iter().filter(|line| line.contains(" = add ")).count();
            assert_eq!(n_sums, 1 + expected, "{block:?}");
        }
    }

    #[test]
    fn what_a_loop_or_another_way_leads_to_as_well_stays() {
        let context = context();
        let text = "
            declare void @record(i64)
            define void @k(ptr %p, i64 %i, i64 %n, i1 %early) {
                br i1 %early, label %go, label %tests
            tests:
                %fails = icmp uge i64 %i, %n
                br i1 %fails, label %bad, label %go
            go:
                %x = add i64 %i, 1
                store i64 %x, ptr %p
                br i1 %early, label %one, label %two
            one:
                %y = add i64 %i, 2
                store i64 %y, ptr %p
                ret void
            two:
                ret void
            bad:
                call void @record(i64 %i)
                unreachable
            }";
        let module = module(&context, text);
        let before = module.to_string();
        put_checks_last(&module, [8, 1, 1], 4);
        assert_eq!(module.to_string(), before);
    }

    #[test]
    fn checks_in_loops_stay_as_they_are() {
        let context = context();
        let text = "
            declare void @record(i64)
            define void @k(ptr %p, i64 %n, i64 %end) {
                br label %round
            round:
                %i = phi i64 [ 0, %0 ], [ %next, %go ]
                %fails = icmp uge i64 %i, %n
                br i1 %fails, label %bad, label %go
            go:
                %at = getelementptr i64, ptr %p, i64 %i
                store i64 %i, ptr %at
                %next = add i64 %i, 1
                %ends = icmp eq i64 %next, %end
                br i1 %ends, label %done, label %round
            done:
                ret void
            bad:
                call void @record(i64 %i)
                unreachable
            }";
        let looped = module(&context, text);
        let before = looped.to_string();
        put_checks_last(&looped, [8, 1, 1], 4);
        assert_eq!(looped.to_string(), before);
        // The same check is one of those that change where nothing comes back to it.
        let straight = text.replace("label %done, label %round", "label %done, label %done");
        let once = module(&context, &straight.replace(", [ %next, %go ]", ""));
        put_checks_last(&once, [8, 1, 1], 4);
        assert!(once.to_string().contains("@llvm.fake.use"), "{once}");
    }

    #[test]
    fn nothing_moves_across_two_checks() {
        let context = context();
        let text = "
            declare void @record(i64)
            define void @k(ptr %p, i64 %i, i64 %n) {
                %fails = icmp uge i64 %i, %n
                br i1 %fails, label %bad, label %one
            one:
                %x = add i64 %i, 1
                %again = icmp uge i64 %x, %n
                br i1 %again, label %bad, label %two
            two:
                %y = add i64 %i, 2
                store i64 %y, ptr %p
                ret void
            bad:
                call void @record(i64 %i)
                unreachable
            }";
        let module = module(&context, text);
        put_checks_last(&module, [8, 1, 1], 4);
        module.verify("the test").expect("a valid module");
        let blocks = module.function("k").expect("the kernel").blocks();
        for (block, sum) in [(0, "add i64 %i, 1"), (1, "add i64 %i, 2")] {
            let texts: Vec<_> = blocks[block].instructions().into_iter().map(Value::print).collect();
            let [first, _, comparison, _] = &texts[..] else { panic!("{module}") };
            assert!(first.ends_with(sum) && comparison.contains(" = icmp uge i64 "), "{module}");
        }
    }
}
