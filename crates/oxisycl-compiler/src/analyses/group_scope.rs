//! Checks whether the result of a kernel over groups depends on addresses of variables.
//!
//! Every work-item of a group runs the code at group scope, with the same values, so that all of them meet at the same barriers. Addresses of
//! variables are the exception: each work-item has variables of its own. A kernel over groups may use the address of a variable to access it, and
//! may compare addresses within one variable, as iterators do. It may not make numbers of them, or compare them with other addresses.
//!
//! An address that comes from memory may be that of a variable if the kernel keeps such an address anywhere. What launches capture is no variable.

use rustc_hash::FxHashSet;

use crate::llvm::{Opcode, Value, ValueKind};

/// The base that an address points to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base<'c> {
    Null,
    Variable(Value<'c>),
    /// Loaded from memory that may hold the address of a variable.
    Memory,
    Other,
}

/// The reason why no device can run a kernel over groups, because of its use of variables' addresses. `None` if there is none.
pub(crate) fn refusal(kernel: Value<'_>) -> Option<String> {
    let instructions = kernel.instructions();
    let keeps_addresses = instructions.iter().any(|variable| variable.is(Opcode::ALLOCA) && is_kept(*variable));
    let decides = instructions.into_iter().any(|instruction| {
        if instruction.is(Opcode::INTEGER_COMPARISON) {
            let [first, second] = [0, 1].map(|index| bases(instruction.operand(index)));
            return !is_harmless(&first, &second);
        }
        let is_number = instruction.is(Opcode::PTR_TO_INT) || instruction.is(Opcode::PTR_TO_ADDR);
        if !is_number {
            return false;
        }
        let bases = bases(instruction.operand(0));
        is_of_variable(&bases) && !is_distance(instruction) || keeps_addresses && bases.contains(&Base::Memory)
    });
    decides.then(|| {
        "it compares the address of a variable, or makes a number of it, which differs between the work-items of a group".to_owned()
    })
}

fn is_of_variable(bases: &[Base<'_>]) -> bool {
    bases.iter().any(|base| matches!(base, Base::Variable(_)))
}

/// Whether two addresses are within one variable, or none is of a variable, or one is null.
fn is_harmless(first: &[Base<'_>], second: &[Base<'_>]) -> bool {
    if !is_of_variable(first) && !is_of_variable(second) {
        return true;
    }
    first == [Base::Null] || second == [Base::Null] || (first.len() == 1 && first == second)
}

/// Whether a number is used only for differences of addresses within one variable.
fn is_distance(number: Value<'_>) -> bool {
    let own = bases(number.operand(0));
    number.users().into_iter().all(|user| {
        let is_difference = user.is(Opcode::SUB) || user.is(Opcode::INTEGER_COMPARISON);
        is_difference
            && [0, 1].into_iter().all(|index| {
                let operand = user.operand(index);
                let is_number = operand.is(Opcode::PTR_TO_INT) || operand.is(Opcode::PTR_TO_ADDR);
                is_number && own.len() == 1 && bases(operand.operand(0)) == own
            })
    })
}

/// The bases that an address may have, each once. Empty for a value that is no address.
fn bases<'c>(value: Value<'c>) -> Vec<Base<'c>> {
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut queue = vec![(value, false)];
    while let Some((value, moved)) = queue.pop() {
        if !seen.insert((value, moved)) {
            continue;
        }
        let base = if value.kind() == ValueKind::Null {
            // A place behind null is any number.
            if moved { Base::Other } else { Base::Null }
        } else if value.is(Opcode::ALLOCA) {
            Base::Variable(value)
        } else if value.is(Opcode::GET_ELEMENT_PTR) {
            queue.push((value.operand(0), true));
            continue;
        } else if value.is(Opcode::ADDRESS_SPACE_CAST) || value.is(Opcode::BITCAST) || value.is(Opcode::FREEZE) {
            queue.push((value.operand(0), moved));
            continue;
        } else if value.is(Opcode::PHI) {
            queue.extend(value.operands().into_iter().map(|operand| (operand, moved)));
            continue;
        } else if value.is(Opcode::SELECT) {
            queue.extend([(value.operand(1), moved), (value.operand(2), moved)]);
            continue;
        } else if value.is(Opcode::LOAD) && !is_captured(value.operand(0)) {
            Base::Memory
        } else {
            Base::Other
        };
        if !found.contains(&base) {
            found.push(base);
        }
    }
    found
}

/// Whether the memory at an address existed before the launch, and the kernel never writes it.
fn is_captured(address: Value<'_>) -> bool {
    let mut of = address;
    while of.is(Opcode::GET_ELEMENT_PTR) || of.is(Opcode::ADDRESS_SPACE_CAST) || of.is(Opcode::BITCAST) {
        of = of.operand(0);
    }
    of.kind() == ValueKind::Argument
}

/// Whether the address of a variable is stored, or passed to a function that may keep it.
fn is_kept(variable: Value<'_>) -> bool {
    let (mut seen, mut queue) = (FxHashSet::default(), vec![variable]);
    while let Some(address) = queue.pop() {
        for user in address.users() {
            let is_kept = match user.opcode() {
                Some(Opcode::STORE) => user.operand(0) == address,
                Some(Opcode::CALL) => {
                    let name = user.callee().map(Value::name).unwrap_or_default();
                    !HARMLESS_CALLS.iter().any(|prefix| name.starts_with(prefix))
                }
                Some(Opcode::LOAD | Opcode::INTEGER_COMPARISON | Opcode::PTR_TO_INT | Opcode::PTR_TO_ADDR) => false,
                Some(Opcode::ATOMIC_RMW | Opcode::ATOMIC_CMP_XCHG) => user.operand(0) != address,
                _ => {
                    if seen.insert(user) {
                        queue.push(user);
                    }
                    false
                }
            };
            if is_kept {
                return true;
            }
        }
    }
    false
}

/// Functions that do not keep addresses that are passed to them.
const HARMLESS_CALLS: [&str; 5] = ["llvm.memcpy.", "llvm.memmove.", "llvm.memset.", "llvm.lifetime.", "llvm.dbg."];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    fn is_refused(body: &str) -> bool {
        let context = context();
        let text = format!(
            "declare void @use(i64)
            declare void @keep(ptr)
            define void @k(ptr %p, i1 %c, i64 %n) {{
                %v = alloca [8 x i32]
                %w = alloca i32
                {body}
                ret void
            }}"
        );
        let module = module(&context, &text);
        refusal(module.function("k").expect("the kernel")).is_some()
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
            "call void @keep(ptr %w) %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
        ] {
            assert!(is_refused(body), "{body}");
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
            "%x = load i32, ptr %v store i32 %x, ptr %w",
            "store ptr %p, ptr %v %l = load ptr, ptr %v %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "store ptr %w, ptr %v %l = load ptr, ptr %p %a = ptrtoint ptr %l to i64 call void @use(i64 %a)",
            "store ptr %w, ptr %v %l = load ptr, ptr %v %r = icmp eq ptr %l, null",
        ] {
            assert!(!is_refused(body), "{body}");
        }
    }
}
