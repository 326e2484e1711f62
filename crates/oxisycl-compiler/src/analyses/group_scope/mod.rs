//! Checks whether the result of a kernel over groups depends on addresses of variables.
//!
//! Every work-item of a group runs the code at group scope, with the same values, so that all of them meet at the same barriers. Addresses of
//! variables are the exception: each work-item has variables of its own. A kernel over groups may use the address of a variable to access it, and
//! may compare addresses within one variable, as iterators do. It may not make numbers of them, or compare them with other addresses.
//!
//! Addresses that come from memory count as what they were when they were stored there. What launches capture is no variable.

mod addresses;
#[cfg(test)]
mod fuzz;
pub(crate) mod heap;
pub(crate) mod scopes;

use rustc_hash::FxHashSet;

use crate::llvm::{Attribute, Opcode, TypeKind, Value};
pub(crate) use addresses::DEVICE_LIBRARY;
use addresses::{Addresses, Base, is_mask};

/// The reason why no device can run a kernel over groups, because of its use of variables' addresses. `None` if there is none. `calls` is
/// what [`passes::group_calls`](crate::passes::group_calls) found while the marks of the library were there.
pub(crate) fn refusal(kernel: Value<'_>, calls: Option<String>) -> Option<String> {
    let instructions = kernel.instructions();
    // Where work-items do not meet, none depends on the way of another.
    if !instructions.iter().any(|instruction| meets_others(*instruction)) {
        return None;
    }
    if calls.is_some() {
        return calls;
    }
    let addresses = Addresses::new(&instructions);
    let decides = instructions.into_iter().any(|instruction| match instruction.opcode() {
        Some(Opcode::INTEGER_COMPARISON) => {
            let [first, second] = [0, 1].map(|index| addresses.bases(instruction.operand(index)));
            !is_harmless(&first, &second)
        }
        Some(Opcode::PTR_TO_INT | Opcode::PTR_TO_ADDR) => {
            is_of_variable(&addresses.bases(instruction.operand(0))) && !is_distance(&addresses, instruction)
        }
        // What is left differs as the number of an address does, even beside another address of the variable.
        Some(Opcode::CALL) if is_mask(instruction) => is_of_variable(&addresses.bases(instruction)),
        Some(Opcode::LOAD) if holds_whole_address(instruction) => {
            is_of_variable(&addresses.bases(instruction)) && !is_copied(instruction)
        }
        _ => false,
    });
    decides.then(|| {
        "it compares the address of a variable, or makes a number of it, which differs between the work-items of a group".to_owned()
    })
}

/// Whether an instruction is a barrier, a shuffle, or a call of a function with one.
fn meets_others(instruction: Value<'_>) -> bool {
    instruction.is(Opcode::CALL)
        && instruction.callee().is_none_or(|callee| {
            let is_alone = ALONE.iter().any(|prefix| callee.name().starts_with(prefix));
            callee.has_attribute(Attribute::FUNCTION, "convergent") && !is_alone
        })
}

/// How the names of functions begin that count as convergent, as all functions of a device do, and that a work-item runs by itself.
const ALONE: [&str; 9] = [
    DEVICE_LIBRARY,
    "llvm.nvvm.exit",
    "oxisycl.as_",
    "oxisycl.spirv.local_id",
    "oxisycl.spirv.group_id",
    "oxisycl.spirv.global_id",
    "oxisycl.spirv.launch",
    "oxisycl.spirv.is_",
    "oxisycl.spirv.as_",
];

/// Whether an address may be of a variable that group scope knows. It knows no memory of the heap, as [`heap`] says.
fn is_of_variable(bases: &FxHashSet<Base<'_>>) -> bool {
    bases.iter().any(|base| matches!(base, Base::Variable(variable) if variable.name() != heap::ARENA))
}

/// Whether two addresses are within one variable, or none is of a variable, or one is null.
fn is_harmless(first: &FxHashSet<Base<'_>>, second: &FxHashSet<Base<'_>>) -> bool {
    if !is_of_variable(first) && !is_of_variable(second) {
        return true;
    }
    let is_null = |bases: &FxHashSet<Base<'_>>| bases.len() == 1 && bases.contains(&Base::Null);
    is_null(first) || is_null(second) || (first.len() == 1 && first == second)
}

/// Whether a number is used only for differences of addresses within one variable.
fn is_distance(addresses: &Addresses<'_>, number: Value<'_>) -> bool {
    let own = addresses.bases(number.operand(0));
    number.users().into_iter().all(|user| {
        let is_difference = user.is(Opcode::SUB) || user.is(Opcode::INTEGER_COMPARISON);
        is_difference
            && [0, 1].into_iter().all(|index| {
                let operand = user.operand(index);
                let is_number = operand.is(Opcode::PTR_TO_INT) || operand.is(Opcode::PTR_TO_ADDR);
                is_number && own.len() == 1 && addresses.bases(operand.operand(0)) == own
            })
    })
}

/// Whether a load gives a number that an address fits in.
fn holds_whole_address(load: Value<'_>) -> bool {
    match load.value_type().kind() {
        TypeKind::Integer(bits) => bits >= 64,
        TypeKind::Double => true,
        _ => false,
    }
}

/// Whether a value that was loaded is only stored again, or compared, which is looked at by itself.
fn is_copied(load: Value<'_>) -> bool {
    load.users()
        .into_iter()
        .all(|user| (user.is(Opcode::STORE) && user.operand(0) == load) || user.is(Opcode::INTEGER_COMPARISON))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    fn is_refused(body: &str) -> bool {
        let context = context();
        let text = format!(
            "declare void @use(i64)
            declare void @keep(ptr)
            declare ptr @kept()
            declare {{ ptr, i64 }} @kept_slice()
            declare ptr @llvm.ptrmask.p0.i64(ptr, i64)
            declare void @barrier() convergent
            declare void @oxisycl.read(ptr)
            declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
            define void @k(ptr %p, i1 %c, i64 %n) {{
                %v = alloca [8 x i32]
                %w = alloca i32
                %x = alloca [8 x i32]
                %oxisycl.arena = alloca [4160 x i8]
                call void @barrier()
                {body}
                ret void
            }}"
        );
        let module = module(&context, &text);
        refusal(module.function("k").expect("the kernel"), None).is_some()
    }

    #[test]
    fn addresses_of_variables_do_not_decide() {
        for body in [
            "%a = ptrtoint ptr %v to i64 call void @use(i64 %a)",
            "%e = getelementptr i8, ptr %v, i64 %n %a = ptrtoint ptr %e to i64 call void @use(i64 %a)",
            "%r = icmp ult ptr %v, %p",
            "%r = icmp ult ptr %v, %w",
            "%e = getelementptr i8, ptr null, i64 %n %r = icmp ult ptr %v, %e",
            "%s = select i1 %c, ptr %v, ptr %p %r = icmp eq ptr %s, %v",
            "%a = ptrtoint ptr %v to i64 %b = ptrtoint ptr %w to i64 %d = sub i64 %a, %b call void @use(i64 %d)",
            "store ptr %w, ptr %v %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "%e = getelementptr i8, ptr %w, i64 2 %s = select i1 %c, ptr %p, ptr %e store ptr %s, ptr %v
             %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "call void @keep(ptr %w) call void @keep(ptr %v) %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            // Addresses that have been in memory.
            "store ptr %w, ptr %v %l = load ptr, ptr %v %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v %l = load ptr, ptr %v %r = icmp eq ptr %l, inttoptr (i64 64 to ptr)",
            "store ptr %w, ptr %v %e = getelementptr i8, ptr %v, i64 8 store ptr %x, ptr %e
             %d = getelementptr ptr, ptr %v, i64 %n %l = load ptr, ptr %d %r = icmp ult ptr %l, %w",
            "store ptr %w, ptr %v call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %v, i64 32, i1 false)
             %l = load ptr, ptr %x %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v %d = getelementptr i8, ptr %v, i64 %n
             call void @llvm.memcpy.p0.p0.i64(ptr %x, ptr %d, i64 %n, i1 false) %e = getelementptr i8, ptr %x, i64 8 %l = load ptr, ptr %e %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v store ptr %v, ptr %x %o = load ptr, ptr %x %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
            "store ptr %v, ptr %x %o = load ptr, ptr %x store ptr %w, ptr %o %l = load ptr, ptr %v %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v %l = load i64, ptr %v store i64 %l, ptr %x %m = load ptr, ptr %x %r = icmp ult ptr %m, %p",
            "store ptr %w, ptr %v %l = load i64, ptr %v call void @use(i64 %l)",
            "call void @keep(ptr %w) %o = load ptr, ptr %p %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v call void @keep(ptr %v) %o = call ptr @kept() %r = icmp ult ptr %o, %p",
            "%o = load ptr, ptr %p store ptr %w, ptr %o %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v br label %b b: %l = load ptr, ptr %v %e = getelementptr i8, ptr %l, i64 4
             store ptr %e, ptr %v %r = icmp eq ptr %e, %p br i1 %r, label %b, label %d d:",
            "call void @keep(ptr %w) %s = call { ptr, i64 } @kept_slice() %o = extractvalue { ptr, i64 } %s, 0 %r = icmp ult ptr %o, %p",
            // A walk along a list, whose addresses come from themselves.
            "store ptr %w, ptr %v store ptr %v, ptr %x br label %b b: %o = phi ptr [ %x, %0 ], [ %l, %b ] %l = load ptr, ptr %o
             %r = icmp ult ptr %l, %p br i1 %r, label %b, label %d d:",
            // Beside memory of the heap, or in it.
            "%s = select i1 %c, ptr %v, ptr %oxisycl.arena %a = ptrtoint ptr %s to i64 call void @use(i64 %a)",
            "store ptr %w, ptr %oxisycl.arena %l = load ptr, ptr %oxisycl.arena %r = icmp ult ptr %l, %p",
            // What is left of a masked address, also where it is compared within one variable.
            "%m = call ptr @llvm.ptrmask.p0.i64(ptr %v, i64 -64) %r = icmp eq ptr %m, inttoptr (i64 64 to ptr)",
            "%m = call ptr @llvm.ptrmask.p0.i64(ptr %v, i64 -64) %r = icmp eq ptr %m, %v",
            "store ptr %w, ptr %v %l = load ptr, ptr %v %m = call ptr @llvm.ptrmask.p0.i64(ptr %l, i64 7) %r = icmp eq ptr %m, null",
        ] {
            assert!(is_refused(body), "{body}");
        }
    }

    #[test]
    fn kernels_without_barriers_may_do_anything_with_addresses() {
        let context = context();
        for (call, is_refused) in [
            ("", false),
            ("call float @__oxisycl_sinf(float 0.0)", false),
            ("call i64 @oxisycl.spirv.local_id(i32 0)", false),
            ("call void @barrier()", true),
        ] {
            let text = format!(
                "declare void @barrier() convergent
                declare float @__oxisycl_sinf(float) convergent
                declare i64 @oxisycl.spirv.local_id(i32) convergent
                define i1 @k(ptr %p) {{ %v = alloca i32 {call} %r = icmp ult ptr %v, %p ret i1 %r }}"
            );
            let module = module(&context, &text);
            assert_eq!(refusal(module.function("k").expect("the kernel"), None).is_some(), is_refused, "{call}");
        }
    }

    #[test]
    fn addresses_within_one_variable_may_be_compared() {
        for body in [
            "%e = getelementptr i8, ptr %v, i64 %n %r = icmp eq ptr %e, %v",
            "%r = icmp eq ptr %v, null",
            "%r = icmp ult ptr %p, inttoptr (i64 64 to ptr)",
            "%a = ptrtoint ptr %p to i64 call void @use(i64 %a)",
            "%e = getelementptr i8, ptr %v, i64 %n %a = ptrtoint ptr %e to i64 %b = ptrtoint ptr %v to i64 %d = sub i64 %a, %b
             call void @use(i64 %d)",
            "call void @keep(ptr %w) %m = call ptr @llvm.ptrmask.p0.i64(ptr %p, i64 -64) %r = icmp ult ptr %m, %p",
            "%i = load i32, ptr %v store i32 %i, ptr %w",
            "store ptr %p, ptr %v %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "store ptr %w, ptr %v %l = load ptr, ptr %p %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "store ptr %w, ptr %v %l = load ptr, ptr %v %r = icmp eq ptr %l, null",
            // Ends of a view that are in memory beside the address of a variable, or behind one.
            "store ptr %p, ptr %v %l = load ptr, ptr %v %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v %e = getelementptr i8, ptr %v, i64 8 store ptr %p, ptr %e
             %l = load ptr, ptr %e %r = icmp ult ptr %l, %p",
            "store ptr %p, ptr %v store ptr %v, ptr %x %o = load ptr, ptr %x %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %x call void @llvm.memcpy.p0.p0.i64(ptr %v, ptr %p, i64 32, i1 false)
             %l = load ptr, ptr %v %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v %l = load i64, ptr %v store i64 %l, ptr %x",
            "store ptr %w, ptr %v %l = load i64, ptr %v %r = icmp eq i64 %l, 0",
            // Both ends within one variable.
            "%e = getelementptr i8, ptr %x, i64 32 store ptr %x, ptr %v %f = getelementptr i8, ptr %v, i64 8 store ptr %e, ptr %f
             %l = load ptr, ptr %v %m = load ptr, ptr %f %r = icmp eq ptr %l, %m",
            // Memory of the heap.
            "%e = getelementptr i8, ptr %oxisycl.arena, i64 %n %a = ptrtoint ptr %e to i64 call void @use(i64 %a)",
            "store ptr %oxisycl.arena, ptr %v %l = load ptr, ptr %v %r = icmp ult ptr %l, %p",
            // Functions that keep nothing, or do not return.
            "store ptr %w, ptr %v call void @oxisycl.read(ptr %v) %o = load ptr, ptr %p %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
            "store ptr %w, ptr %v br i1 %c, label %b, label %d b: call void @keep(ptr %v) call void @use(i64 %n) unreachable
             d: %o = load ptr, ptr %p %l = load ptr, ptr %o %r = icmp ult ptr %l, %p",
        ] {
            assert!(!is_refused(body), "{body}");
        }
    }
}
