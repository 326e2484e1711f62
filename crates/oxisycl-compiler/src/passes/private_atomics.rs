//! Turns atomic operations on a work-item's variables into plain ones: no other work-item can see them.
//!
//! Devices have no atomic operations on private memory, and assemblers refuse them. A function for each kind of operation that occurs is
//! lowered by LLVM, which knows what each of them computes, and called instead. Only operations whose address surely leads to a
//! variable are touched: what may also be elsewhere stays atomic. Runs where calls are inlined, so that addresses are known.

use crate::error::CompileError;
use crate::llvm::{Attribute, Builder, Linkage, Module, Opcode, PassTuning, TypeKind, Value, ValueKind};
use rustc_hash::FxHashSet;

/// `LLVMAtomicOrderingNotAtomic`
const NOT_ATOMIC: i32 = 0;
const PREFIX: &str = "oxisycl.private.";
/// Inlines the functions, and keeps in registers what now can be.
const CLEAN_UP: &str = "always-inline,globaldce,function(sroa,instcombine<no-verify-fixpoint>,simplifycfg<no-sink-common-insts;no-hoist-common-insts>)";

/// Replaces all such operations. Returns whether there was one.
pub(crate) fn make_plain(module: &Module<'_>) -> Result<bool, CompileError> {
    let context = module.context();
    let mut changes = Vec::new();
    let mut has_changed = false;
    for instruction in module.functions().into_iter().flat_map(Value::instructions) {
        let is_change = instruction.is(Opcode::ATOMIC_RMW) || instruction.is(Opcode::ATOMIC_CMP_XCHG);
        let is_access = instruction.is(Opcode::LOAD) || instruction.is(Opcode::STORE);
        if !(is_change || is_access && instruction.ordering() != NOT_ATOMIC) {
            continue;
        }
        let address = instruction.operand(u32::from(instruction.is(Opcode::STORE)));
        if !leads_to_variable(address, &mut FxHashSet::default()) {
            continue;
        }
        has_changed = true;
        if is_access {
            instruction.set_ordering(NOT_ATOMIC);
        } else {
            changes.push(instruction);
        }
    }
    for change in changes {
        let Some((name, text)) = function_for(change) else { continue };
        if module.function(&name).is_none() {
            let lowered = Module::from_text(context, &text, "private atomics")?;
            lowered.run("lower-atomic", None, &PassTuning::DEVICE)?;
            module.link(lowered)?;
        }
        let Some(function) = module.function(&name) else { continue };
        function.set_linkage(Linkage::INTERNAL);
        for attribute in ["alwaysinline", "nounwind"] {
            function.add_attribute(Attribute::FUNCTION, Attribute::plain(context, attribute, 0));
        }
        let call = Builder::before(context, change).call(function, &change.operands());
        change.replace_all_uses_with(call);
        change.erase();
    }
    if has_changed {
        module.run(CLEAN_UP, None, &PassTuning::DEVICE)?;
    }
    Ok(has_changed)
}

/// Whether an address is one of a work-item's own variables, on every path.
fn leads_to_variable<'c>(address: Value<'c>, seen: &mut FxHashSet<Value<'c>>) -> bool {
    // A loop adds nothing to what it began with.
    if !seen.insert(address) {
        return true;
    }
    if address.kind() != ValueKind::Instruction {
        return false;
    }
    if address.is(Opcode::ALLOCA) {
        return true;
    }
    if [Opcode::GET_ELEMENT_PTR, Opcode::BITCAST, Opcode::ADDRESS_SPACE_CAST].iter().any(|way| address.is(*way)) {
        return leads_to_variable(address.operand(0), seen);
    }
    if address.is(Opcode::SELECT) {
        return [1, 2].into_iter().all(|side| leads_to_variable(address.operand(side), seen));
    }
    address.is(Opcode::PHI) && address.incoming().into_iter().all(|(value, _)| leads_to_variable(value, seen))
}

/// The function for an atomic read-modify-write operation, by name and in LLVM assembly. `None` for types that no device has such
/// operations for.
fn function_for(change: Value<'_>) -> Option<(String, String)> {
    let written = |value: Value<'_>| {
        Some(match value.value_type().kind() {
            TypeKind::Integer(bits) => format!("i{bits}"),
            TypeKind::Half => "half".to_owned(),
            TypeKind::BFloat => "bfloat".to_owned(),
            TypeKind::Float => "float".to_owned(),
            TypeKind::Double => "double".to_owned(),
            TypeKind::Pointer(0) => "ptr".to_owned(),
            _ => return None,
        })
    };
    let space = match change.operand(0).value_type().kind() {
        TypeKind::Pointer(0) => String::new(),
        TypeKind::Pointer(space) => format!(" addrspace({space})"),
        _ => return None,
    };
    let value = written(change.operand(1))?;
    let suffix = space.replace([' ', '(', ')'], "");
    if change.is(Opcode::ATOMIC_CMP_XCHG) {
        let name = format!("{PREFIX}cmpxchg.{value}{suffix}");
        let text = format!(
            "define {{ {value}, i1 }} @{name}(ptr{space} %p, {value} %expected, {value} %new) {{\n  \
             %r = cmpxchg ptr{space} %p, {value} %expected, {value} %new monotonic monotonic\n  ret {{ {value}, i1 }} %r\n}}\n"
        );
        return Some((name, text));
    }
    let text = change.print();
    let (_, rest) = text.split_once("atomicrmw ")?;
    let operation = rest.split_whitespace().find(|word| *word != "volatile")?;
    let name = format!("{PREFIX}{operation}.{value}{suffix}");
    let text = format!(
        "define {value} @{name}(ptr{space} %p, {value} %v) {{\n  %r = atomicrmw {operation} ptr{space} %p, {value} %v monotonic\n  \
         ret {value} %r\n}}\n"
    );
    Some((name, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    fn is_atomic(code: &str) -> bool {
        ["atomic", "cmpxchg"].iter().any(|word| code.contains(word))
    }

    #[test]
    fn operations_on_variables_are_plain_and_fold_away() {
        let context = context();
        let text = "
            define i32 @f(i32 %n) {
                %v = alloca { i32, i32 }
                %second = getelementptr { i32, i32 }, ptr %v, i32 0, i32 1
                store atomic i32 %n, ptr %second seq_cst, align 4
                %a = atomicrmw add ptr %second, i32 5 seq_cst
                %m = atomicrmw umax ptr %second, i32 7 acq_rel
                %pair = cmpxchg weak ptr %second, i32 12, i32 40 acq_rel acquire
                %old = extractvalue { i32, i1 } %pair, 0
                %x = atomicrmw nand ptr %second, i32 %old monotonic
                %r = load atomic i32, ptr %second acquire, align 4
                ret i32 %r
            }";
        let module = module(&context, text);
        assert!(make_plain(&module).expect("it is lowered"));
        module.verify("private atomics").expect("a valid module");
        let code = module.to_string();
        assert!(!is_atomic(&code) && !code.contains("alloca") && !code.contains(PREFIX), "{code}");
        assert!(!make_plain(&module).expect("nothing is left"));
    }

    #[test]
    fn every_operation_of_rust_is_lowered() {
        let context = context();
        let operations = ["xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin"];
        for (operation, bits) in operations.iter().flat_map(|operation| [8, 16, 32, 64].map(|bits| (operation, bits))) {
            let text = format!(
                "define i{bits} @f(ptr %p) {{\n %v = alloca i{bits}\n call void @shown(ptr %v)\n \
                 %r = atomicrmw {operation} ptr %v, i{bits} 3 seq_cst\n ret i{bits} %r\n}}\ndeclare void @shown(ptr)"
            );
            let module = module(&context, &text);
            assert!(make_plain(&module).expect("it is lowered"));
            module.verify("private atomics").expect("a valid module");
            assert!(!is_atomic(&module.to_string()), "{module}");
        }
    }

    #[test]
    fn what_may_be_elsewhere_stays_atomic() {
        let context = context();
        let text = "
            define i32 @f(ptr %elsewhere, i1 %c) {
                %v = alloca i32
                %other = alloca i32
                %p = select i1 %c, ptr %v, ptr %elsewhere
                %a = atomicrmw add ptr %p, i32 5 seq_cst
                %b = atomicrmw add ptr %elsewhere, i32 5 seq_cst
                ret i32 %a
            }";
        let module = module(&context, text);
        assert!(!make_plain(&module).expect("nothing to do"));
        assert_eq!(module.to_string().matches("atomicrmw add").count(), 2, "{module}");
    }
}
