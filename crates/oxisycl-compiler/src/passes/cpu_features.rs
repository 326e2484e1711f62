//! Answers a program's queries for CPU features: devices have none of the optional instructions.
//!
//! The answers are behind caches in statics, which a device must not have, and lead to code for instructions that it has not. [`answer_no`]
//! answers. Crates with caches of their own, such as `cpufeatures` and `memchr`, derive a value from the answer and keep it in a static. It
//! is a number, or the function that suits the processor. [`caches`] finds these statics before anything is inlined. Once the answers have
//! been followed, [`forget`] makes each of them keep its initial value for ever. So every work-item asks for itself, and all get the same
//! answer.
//!
//! Invariant: a static is a cache only if all of this holds. Others stay statics, and make their kernels unsupported (`analyses::legality`).
//!
//! - A function that refers to it asks the processor itself. It does so by functions inside of it, or by functions of its crate without
//!   parameters that return a `bool`.
//! - The program's crates, as far as kernels need those, do with it what a kernel may do ([`is_cache`]). Otherwise the host could give it
//!   another value, or read what the kernel stored.
//! - The kernel loads it and stores one constant to it, and nothing else.
//! - The kernel comes to the same with that constant and with what the static begins with ([`trial`]).

mod crate_use;
mod trial;

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::analyses::references::globals_in;
use crate::llvm::{Attribute, Module, Opcode, Type, TypeKind, Value, ValueKind};
use crate::origin::{self, Origin};
use crate::passes::strip_host_abi::replace_body;
use crate::symbols::{plain_path, without_numbers};

pub(crate) use crate_use::is_cache;

/// Instructions that query CPU features. The result zero means that there are none.
const INSTRUCTIONS: [&str; 2] = ["cpuid", "xgetbv"];

/// The attribute of functions that are [kept apart](keep_choices_apart).
const CHOICE: &str = "oxisycl.choice";

/// `LLVMAtomicOrderingNotAtomic`
const NOT_ATOMIC: i32 = 0;

/// Adds the names of statics that cache answers. To be called before [`answer_no`], which removes the queries. The device library asks in
/// native code alone. Its caches go with that code, and are not judged by all that the program's crates do.
pub(crate) fn caches(module: &Module<'_>, names: &mut BTreeSet<String>) {
    querying_functions(module, &mut |query| {
        if origin::of(query.name()) != Origin::Device {
            names.extend(variables(query));
        }
    });
}

/// The functions that query CPU features, including those of the standard library. `found` is called for all others.
fn querying_functions<'c>(module: &Module<'c>, found: &mut dyn FnMut(Value<'c>)) -> FxHashSet<Value<'c>> {
    let mut queue: Vec<_> = module.functions().into_iter().filter(|function| is_feature_query(*function)).collect();
    let mut seen: FxHashSet<Value<'_>> = queue.iter().copied().collect();
    while let Some(query) = queue.pop() {
        let is_standard = origin::of(query.name()) == Origin::Standard;
        let path = (!is_standard).then(|| plain_path(query.name()));
        if path.is_some() {
            found(query);
        }
        for caller in query.users().into_iter().filter(|user| user.callee() == Some(query)).map(Value::function) {
            // Who calls a function that asks need not know that it does.
            let is_known = || {
                let outer = plain_path(caller.name());
                let is_answer = is_yes_or_no(query);
                path.as_ref().is_some_and(|path| {
                    origin::is_within(path, &outer) || is_answer && origin::are_of_one_crate(path, &outer)
                })
            };
            if (is_standard || is_known()) && seen.insert(caller) {
                queue.push(caller);
            }
        }
    }
    seen
}

/// Whether a function has no parameters and returns a `bool`, such as `is_available`.
fn is_yes_or_no(function: Value<'_>) -> bool {
    function.parameter_count() == 0 && function.held_type().result().kind() == TypeKind::Integer(1)
}

fn is_feature_query(function: Value<'_>) -> bool {
    origin::asks_the_processor(function.name()) || function.instructions().into_iter().any(is_query_instruction)
}

/// Whether an instruction is inline assembly that queries CPU features.
fn is_query_instruction(instruction: Value<'_>) -> bool {
    let assembly = instruction.callee().filter(|callee| callee.kind() == ValueKind::InlineAsm);
    assembly.is_some_and(|assembly| {
        let text = assembly.print();
        INSTRUCTIONS.iter().any(|name| text.contains(name))
    })
}

/// The mutable statics that a function refers to.
fn variables(function: Value<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for operand in function.instructions().into_iter().flat_map(Value::operands) {
        globals_in(operand, &mut |global| {
            let is_variable = global.kind() == ValueKind::GlobalVariable && !global.is_constant_global();
            if is_variable && !global.is_thread_local() {
                found.push(without_numbers(global.name()).to_owned());
            }
        });
    }
    found
}

/// Keeps functions from being inlined until [`forget`], if their addresses are taken where a cache is used. A querying function ends by a
/// call of the function that it has chosen. Only while that is a call can the two choices be seen to be equal.
pub(crate) fn keep_choices_apart(module: &Module<'_>, names: &BTreeSet<String>) {
    let context = module.context();
    for global in module.globals().into_iter().filter(|global| names.contains(without_numbers(global.name()))) {
        let users = global.users().into_iter().filter(|user| user.kind() == ValueKind::Instruction);
        for function in users.map(Value::function).collect::<FxHashSet<_>>() {
            for instruction in function.instructions() {
                let callee = instruction.callee();
                for operand in instruction.operands().into_iter().filter(|operand| Some(*operand) != callee) {
                    let is_apart = || operand.has_attribute(Attribute::FUNCTION, "noinline");
                    if operand.kind() == ValueKind::Function && !operand.is_declaration() && !is_apart() {
                        operand.remove_attribute(Attribute::FUNCTION, "alwaysinline");
                        operand.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "noinline", 0));
                        operand.add_attribute(Attribute::FUNCTION, Attribute::text(context, CHOICE, ""));
                    }
                }
            }
        }
    }
}

/// Makes these statics keep their initial values, by removing the stores to them, where that makes no difference. To be called on
/// simplified code, in which the answers were followed.
pub(crate) fn forget(module: &Module<'_>, names: &BTreeSet<String>) {
    forget_settled(module, names);
    for function in module.functions().into_iter().filter(|it| it.has_text_attribute(Attribute::FUNCTION, CHOICE)) {
        function.remove_text_attribute(Attribute::FUNCTION, CHOICE);
        function.remove_attribute(Attribute::FUNCTION, "noinline");
    }
}

fn forget_settled(module: &Module<'_>, names: &BTreeSet<String>) {
    let candidates: Vec<_> = module.globals().into_iter().filter(|global| may_be_cache(*global, names)).collect();
    if candidates.is_empty() {
        return;
    }
    let settled = trial::settled(module, &candidates.iter().map(|global| global.name()).collect::<Vec<_>>());
    for global in candidates.iter().filter(|global| settled.contains(&global.name())) {
        for user in global.users() {
            if user.is(Opcode::LOAD) {
                user.set_ordering(NOT_ATOMIC);
            } else {
                user.erase();
            }
        }
        global.make_constant();
    }
}

/// Whether a global is one of these statics, has loads and stores but no other use, and gets one constant. A static that is only stored is
/// for others to load, and one that is only loaded was stored by others.
fn may_be_cache(global: Value<'_>, names: &BTreeSet<String>) -> bool {
    if !names.contains(without_numbers(global.name())) || global.is_constant_global() || global.initializer().is_none()
    {
        return false;
    }
    let users = global.users();
    let is_store = |user: &Value<'_>| user.is(Opcode::STORE) && user.operand(1) == global;
    let stored: FxHashSet<Value<'_>> = users.iter().filter(|user| is_store(user)).map(|user| user.operand(0)).collect();
    users.iter().all(|user| user.is(Opcode::LOAD) || is_store(user))
        && users.iter().any(|user| user.is(Opcode::LOAD))
        && stored.len() == 1
        && stored.iter().all(|value| is_constant(*value))
}

fn is_constant(value: Value<'_>) -> bool {
    use ValueKind::{ConstantExpression, Function, GlobalVariable, Integer, Null};
    [ConstantExpression, Function, GlobalVariable, Integer, Null].contains(&value.kind())
}

/// Answers all queries with "no".
pub(crate) fn answer_no(module: &Module<'_>) {
    let truth = Type::int(module.context(), 1);
    let no = truth.constant(0);
    for function in module.functions() {
        if origin::asks_for_feature(function.name()) && function.held_type().result() == truth {
            if !function.is_declaration() || function.is_used() {
                replace_body(module, function, |builder| builder.ret(no));
            }
            continue;
        }
        for instruction in function.instructions() {
            if is_query_instruction(instruction) {
                instruction.replace_all_uses_with(instruction.value_type().null());
                instruction.erase();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::PassTuning;
    use crate::passes::tests::{context, module};

    /// What `cpufeatures` makes: a static that says 255 until the first query, and `name` for the function that does.
    fn program(name: &str, stored: &str) -> String {
        format!(
            "@_ZN3app5CACHE17h0123456789abcdefE = linkonce_odr global [1 x i8] c\"\\FF\"
            define internal i32 @_ZN3app4init5cpuid17h0123456789abcdefE() noinline {{
                %r = call i32 asm sideeffect \"cpuid\", \"=r\"() ret i32 %r }}
            define internal i1 @{name}() {{
                %r = call i32 @_ZN3app4init5cpuid17h0123456789abcdefE()
                %c = icmp ne i32 %r, 0
                %b = zext i1 %c to i8
                store atomic i8 {stored}, ptr @_ZN3app5CACHE17h0123456789abcdefE monotonic, align 1
                ret i1 %c
            }}
            define i32 @kernel(i8 %other) {{
                %v = load atomic i8, ptr @_ZN3app5CACHE17h0123456789abcdefE monotonic, align 1
                switch i8 %v, label %ask [ i8 0, label %no i8 1, label %yes ]
                ask: %c = call i1 @{name}() br i1 %c, label %yes, label %no
                no: ret i32 1
                yes: ret i32 2
            }}"
        )
    }

    fn compiled(text: &str) -> String {
        let context = context();
        let module = module(&context, text);
        let mut names = BTreeSet::new();
        caches(&module, &mut names);
        answer_no(&module);
        keep_choices_apart(&module, &names);
        module.run("thinlto-pre-link<O3>", None, &PassTuning::DEVICE).expect("passes");
        forget(&module, &names);
        module.run("default<O3>", None, &PassTuning::DEVICE).expect("passes");
        module.verify("features").expect("a valid module");
        module.to_string()
    }

    #[test]
    fn the_cache_of_an_answer_folds_away() {
        let code = compiled(&program("_ZN3app4init17h0123456789abcdefE", "%b"));
        assert!(code.contains("ret i32 1") && !code.contains("CACHE") && !code.contains("ret i32 2"), "{code}");
    }

    #[test]
    fn a_cache_may_be_a_number_of_several_bytes() {
        let name = "_ZN3app4init17h0123456789abcdefE";
        let wide = |initializer: &str| {
            let text = program(name, "%b").replace("linkonce_odr global [1 x i8] c\"\\FF\"", initializer);
            compiled(
                &text
                    .replace("i8 ", "i32 ")
                    .replace("i8,", "i32,")
                    .replace("to i8", "to i32")
                    .replace("align 1", "align 4"),
            )
        };
        // As rustc writes it, as a number, and with something behind it.
        for initializer in [
            "linkonce_odr global [4 x i8] c\"\\FF\\00\\00\\00\"",
            "linkonce_odr global i32 255",
            "linkonce_odr global <{ [4 x i8], [4 x i8] }> <{ [4 x i8] c\"\\FF\\00\\00\\00\", [4 x i8] undef }>",
        ] {
            let code = wide(initializer);
            assert!(code.contains("ret i32 1") && !code.contains("CACHE") && !code.contains("ret i32 2"), "{code}");
        }
    }

    #[test]
    fn a_static_of_code_that_does_not_ask_itself_stays() {
        // It calls a function that asks, and keeps something of its own beside it.
        let code = compiled(&program("_ZN3app5other17h0123456789abcdefE", "%b"));
        assert!(code.contains("CACHE") && code.contains("load atomic i8"), "{code}");
    }

    #[test]
    fn caches_of_the_device_library_need_not_be_judged() {
        for (crate_name, expected) in [("3app", 1), ("14oxisycl_device", 0)] {
            let context = context();
            let text =
                program("_ZN3app4init17h0123456789abcdefE", "%b").replace("_ZN3app", &format!("_ZN{crate_name}"));
            let mut names = BTreeSet::new();
            caches(&module(&context, &text), &mut names);
            assert_eq!(names.len(), expected, "{crate_name}");
        }
    }

    #[test]
    fn a_static_that_holds_more_than_an_answer_stays() {
        let text = program("_ZN3app4init17h0123456789abcdefE", "%b").replace(
            "switch i8",
            "store atomic i8 %other, ptr @_ZN3app5CACHE17h0123456789abcdefE monotonic, align 1\n switch i8",
        );
        assert!(compiled(&text).contains("CACHE"));
    }

    #[test]
    fn a_static_whose_value_makes_a_difference_stays() {
        // As a user may write it: what is stored is seen again.
        let text = "@_ZN3app4SEEN17h0123456789abcdefE = linkonce_odr global i32 5
            define i32 @kernel() {
                %a = load atomic i32, ptr @_ZN3app4SEEN17h0123456789abcdefE monotonic, align 4
                %c = call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 5)
                store atomic i32 9, ptr @_ZN3app4SEEN17h0123456789abcdefE monotonic, align 4
                %b = load atomic i32, ptr @_ZN3app4SEEN17h0123456789abcdefE monotonic, align 4
                RESULT
            }
            define internal zeroext i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 %bit) { ret i1 true }";
        for result in [
            "ret i32 %b",
            // With all loads alike, it would come to the same.
            "%r = icmp eq i32 %a, %b %s = select i1 %r, i32 1, i32 2 ret i32 %s",
            "%r = sub i32 %a, %b ret i32 %r",
        ] {
            let code = compiled(&text.replace("RESULT", result));
            assert!(code.contains("4SEEN") && code.contains("i32 9"), "{code}");
        }
        let code = compiled(&text.replace("RESULT", "ret i32 7"));
        assert!(code.contains("ret i32 7") && !code.contains("load"), "{code}");
    }

    #[test]
    fn a_function_that_was_chosen_for_the_processor_is_called() {
        let text = "
            @_ZN3app2FN17h0123456789abcdefE = linkonce_odr global ptr @_ZN3app6detect17h0123456789abcdefE
            define internal zeroext i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 %bit) { ret i1 true }
            define internal i32 @_ZN3app4fast17h0123456789abcdefE(i32 %x) { ret i32 %x }
            define internal i32 @_ZN3app4slow17h0123456789abcdefE(i32 %x) alwaysinline {
                %c = icmp ult i32 %x, 9 br i1 %c, label %few, label %many
                few: %v = load volatile i32, ptr @place ret i32 %v
                many: %r = add i32 %x, 7 ret i32 %r
            }
            @place = external global i32
            define internal zeroext i1 @_ZN3app12is_available17h0123456789abcdefE() {
                %c = call zeroext i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 5)
                ret i1 %c
            }
            define internal i32 @_ZN3app6detect17h0123456789abcdefE(i32 %x) {
                %c = call zeroext i1 @_ZN3app12is_available17h0123456789abcdefE()
                %f = select i1 %c, ptr @_ZN3app4fast17h0123456789abcdefE, ptr @_ZN3app4slow17h0123456789abcdefE
                store atomic ptr %f, ptr @_ZN3app2FN17h0123456789abcdefE monotonic, align 8
                %r = call i32 %f(i32 %x)
                ret i32 %r
            }
            define i32 @kernel(i32 %x) {
                %f = load atomic ptr, ptr @_ZN3app2FN17h0123456789abcdefE monotonic, align 8
                %r = call i32 %f(i32 %x)
                ret i32 %r
            }";
        let code = compiled(text);
        assert!(code.contains("add i32 %x, 7") && !code.contains("2FN"), "{code}");
        assert!(!code.contains("call i32 %"), "{code}");
    }

    #[test]
    fn a_static_that_the_kernel_only_stores_or_only_loads_stays() {
        let asks = "call i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 5)";
        for body in [
            "store atomic i32 9, ptr @_ZN3app4SEEN17h0123456789abcdefE monotonic, align 4 ret i32 7",
            "%r = load atomic i32, ptr @_ZN3app4SEEN17h0123456789abcdefE monotonic, align 4 ret i32 %r",
        ] {
            let code = compiled(&format!(
                "@_ZN3app4SEEN17h0123456789abcdefE = linkonce_odr global i32 5
                define i32 @kernel() {{ %c = {asks} {body} }}
                define internal zeroext i1 @_ZN10std_detect6detect5cache4test17h01f568ad8f49c693E(i32 %bit) {{ ret i1 true }}"
            ));
            assert!(code.contains("@_ZN3app4SEEN17h0123456789abcdefE monotonic"), "{code}");
        }
    }
}
