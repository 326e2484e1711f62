//! Inlines what a kernel over groups calls at group scope, so that `analyses::group_scope` sees how addresses of variables are used there.
//!
//! What cannot be inlined calls itself, or is called by its address. Its result cannot depend on an address if it gets numbers alone, gives none
//! but numbers, and has no variable in memory. Other such calls make the kernel unsupported. Calls of phases stay: they give nothing to group scope.
//! Calls that never return stay, too, if they lead to no phase.

use rustc_hash::FxHashSet;

use crate::analyses::group_scope::DEVICE_LIBRARY;
use crate::analyses::group_scope::scopes::{self, Scopes};
use crate::analyses::references::globals_in;
use crate::analyses::uniformity::at;
use crate::builtin_table;
use crate::error::CompileError;
use crate::llvm::pass_lists::INLINE_BODIES;
use crate::llvm::{Attribute, Module, Opcode, PassTuning, TypeKind, Value, ValueKind};

/// Inlines the calls. Returns the reason why the kernel is refused, if there is one.
pub(crate) fn inline<'c>(module: &Module<'c>, kernel: Option<Value<'c>>) -> Result<Option<String>, CompileError> {
    let Some(kernel) = kernel.filter(|_| scopes::has_marks(module)) else { return Ok(None) };
    let always = Attribute::plain(module.context(), "alwaysinline", 0);
    // A chain of calls that lead to no caller is no longer than the list of functions.
    for _ in module.functions() {
        let inlined: Vec<_> = calls(kernel).into_iter().filter(|call| may_be_inlined(*call)).collect();
        if inlined.is_empty() {
            break;
        }
        for call in inlined {
            call.remove_site_attribute(Attribute::FUNCTION, "noinline");
            call.add_site_attribute(Attribute::FUNCTION, always);
        }
        module.run(INLINE_BODIES, None, &PassTuning::DEVICE)?;
    }
    let refused = calls(kernel).into_iter().find(|call| !is_of_numbers(*call));
    Ok(refused.map(|call| {
        format!(
            "it calls at group scope{} a function that calls itself or is called by its address, and uses addresses of variables, \
             which differ between the work-items of a group",
            at(call)
        )
    }))
}

/// The calls at group scope of functions that are defined, or unknown.
fn calls<'c>(kernel: Value<'c>) -> Vec<Value<'c>> {
    let scopes = Scopes::of(kernel);
    let is_other = |call: &Value<'c>| {
        let is_known = call.callee().is_some_and(|callee| {
            let is_ours =
                [DEVICE_LIBRARY, builtin_table::PREFIX].iter().any(|prefix| callee.name().starts_with(prefix));
            callee.kind() == ValueKind::Function && (callee.is_declaration() || is_ours)
        });
        call.is(Opcode::CALL) && !is_known && (!call.block().end().is(Opcode::UNREACHABLE) || may_reach_phase(*call))
    };
    kernel.instructions().into_iter().filter(|call| is_other(call) && scopes.is_group_scope(*call)).collect()
}

/// Whether phases may begin in what a call leads to. They do in no function that is called by its address: such a call at group scope is refused.
fn may_reach_phase(call: Value<'_>) -> bool {
    let callee = call.callee().filter(|callee| callee.kind() == ValueKind::Function);
    callee.is_none_or(|callee| reached_by(callee).into_iter().any(scopes::is_mark))
}

/// Whether the called function is known, and does not reach itself.
fn may_be_inlined(call: Value<'_>) -> bool {
    let callee = call.callee().filter(|callee| callee.kind() == ValueKind::Function);
    callee.is_some_and(|callee| !reached_by(callee).contains(&callee))
}

/// The functions that a function refers to, over any number of steps.
fn reached_by<'c>(function: Value<'c>) -> FxHashSet<Value<'c>> {
    let mut reached = FxHashSet::default();
    let mut queue = vec![function];
    while let Some(function) = queue.pop() {
        for instruction in function.instructions() {
            for operand in instruction.operands() {
                globals_in(operand, &mut |global| {
                    if global.kind() == ValueKind::Function && reached.insert(global) {
                        queue.push(global);
                    }
                });
            }
        }
    }
    reached
}

/// Whether a call has numbers alone, and what it reaches has no variable.
fn is_of_numbers(call: Value<'_>) -> bool {
    let is_number = |value: &Value<'_>| {
        matches!(value.value_type().kind(), TypeKind::Integer(_) | TypeKind::Float | TypeKind::Double)
    };
    let Some(callee) = call.callee().filter(|callee| callee.kind() == ValueKind::Function) else { return false };
    let is_indirect = |instruction: &Value<'_>| {
        instruction.is(Opcode::CALL) && instruction.callee().is_none_or(|callee| callee.kind() != ValueKind::Function)
    };
    let has_variable = |function: &Value<'_>| {
        function.instructions().iter().any(|instruction| instruction.is(Opcode::ALLOCA) || is_indirect(instruction))
    };
    call.arguments().iter().all(is_number)
        && (is_number(&call) || call.value_type().kind() == TypeKind::Void)
        && !has_variable(&callee)
        && !reached_by(callee).iter().any(has_variable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module};

    /// The reason why a kernel is refused that calls at group scope, and the code that becomes of it.
    fn inlined(call: &str) -> (Option<String>, String) {
        let context = context();
        let text = format!(
            "declare void @oxisycl.begin_group_scope() memory(inaccessiblemem: readwrite)
            declare void @oxisycl.begin_phase() memory(inaccessiblemem: readwrite)
            @table = external constant ptr
            declare void @use(i64)
            declare void @fail() noreturn
            define internal i64 @number(ptr %p) noinline {{ %a = ptrtoint ptr %p to i64 ret i64 %a }}
            define internal i64 @through(ptr %p) noinline {{ %a = call i64 @number(ptr %p) ret i64 %a }}
            define internal i64 @phase(ptr %p) noinline {{
                %a = ptrtoint ptr %p to i64 call void @oxisycl.begin_phase() call void @oxisycl.begin_group_scope() ret i64 %a
            }}
            define internal i64 @deep(ptr %p, i64 %n) {{
                %c = icmp eq i64 %n, 0 br i1 %c, label %end, label %again
                again: %m = sub i64 %n, 1 %r = call i64 @deep(ptr %p, i64 %m) ret i64 %r
                end: %a = ptrtoint ptr %p to i64 ret i64 %a
            }}
            define internal i64 @own(i64 %n) {{
                %v = alloca i64 store i64 %n, ptr %v %c = icmp eq i64 %n, 0 br i1 %c, label %end, label %again
                again: %m = sub i64 %n, 1 %r = call i64 @own(i64 %m) ret i64 %r
                end: %a = ptrtoint ptr %v to i64 ret i64 %a
            }}
            define internal i64 @sum(i64 %n) {{
                %c = icmp eq i64 %n, 0 br i1 %c, label %end, label %again
                again: %m = sub i64 %n, 1 %r = call i64 @sum(i64 %m) %s = add i64 %r, %n ret i64 %s
                end: ret i64 0
            }}
            define internal i64 @unknown(i64 %n) {{
                %c = icmp eq i64 %n, 0 br i1 %c, label %end, label %again
                again: %f = load ptr, ptr @table %m = call i64 %f(i64 %n) %r = call i64 @unknown(i64 %m) ret i64 %r
                end: ret i64 0
            }}
            define void @k(i64 %n, ptr %f) {{
                %v = alloca i32
                call void @oxisycl.begin_group_scope()
                {call}
                call void @use(i64 %r)
                ret void
            }}"
        );
        let module = module(&context, &text);
        let refusal = inline(&module, module.function("k")).expect("it is inlined");
        module.verify("group-calls").expect("a valid module");
        let code = module.to_string();
        (refusal, code[code.find("@k(").expect("the kernel")..].to_owned())
    }

    #[test]
    fn functions_are_inlined_at_group_scope() {
        for name in ["number", "through"] {
            let (refusal, code) = inlined(&format!("%r = call i64 @{name}(ptr %v)"));
            assert!(refusal.is_none() && !code.contains(name) && code.contains("ptrtoint"), "{code}");
        }
    }

    #[test]
    fn what_cannot_be_inlined_has_no_addresses() {
        for call in [
            "%r = call i64 @deep(ptr %v, i64 %n)",
            "%r = call i64 @own(i64 %n)",
            "%r = call i64 @unknown(i64 %n)",
            "%r = call i64 %f(i64 %n)",
        ] {
            let (refusal, _) = inlined(call);
            assert!(refusal.is_some_and(|reason| reason.starts_with("it calls at group scope a function")), "{call}");
        }
        assert_eq!(inlined("%r = call i64 @sum(i64 %n)").0, None);
    }

    #[test]
    fn phases_call_what_they_like() {
        for call in ["%r = call i64 @deep(ptr %v, i64 %n)", "%r = call i64 @number(ptr %v)", "%r = call i64 %f(i64 %n)"]
        {
            let (refusal, code) =
                inlined(&format!("call void @oxisycl.begin_phase() {call} call void @oxisycl.begin_group_scope()"));
            assert!(refusal.is_none() && code.contains(call.split('(').next().expect("a call")), "{code}");
        }
    }

    #[test]
    fn calls_without_return_stay() {
        let end = "%r = add i64 %n, 0 %c = icmp eq i64 %n, 1 br i1 %c, label %b, label %d
            b: %x = call i64 @deep(ptr %v, i64 %n) call void @fail() unreachable d:";
        assert_eq!(inlined(end).0, None);
        // One with a phase is inlined, and one that is not known is refused.
        let (refusal, code) = inlined(&end.replace("@deep(ptr %v, i64 %n)", "@phase(ptr %v)"));
        assert!(refusal.is_none() && code.contains("ptrtoint") && !code.contains("@phase"), "{code}");
        assert!(inlined(&end.replace("@deep(ptr %v, i64 %n)", "%f(i64 %n)")).0.is_some());
    }
}
