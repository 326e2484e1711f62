//! A user's items that have the names of items which stages treat in a way of their own: they stay as they are.

use super::tests::{context, module};
use crate::FloatPolicy;
use crate::builtin_table::{Bodies, Family};
use crate::llvm::{Module, Opcode};
use crate::passes::{builtins, cpu_features, float_policy, libcalls, native, panics, strip_host_abi};

/// Whether a function still has the instruction that its author wrote.
fn has(module: &Module<'_>, name: &str, opcode: Opcode) -> bool {
    let function = module.function(name).unwrap_or_else(|| panic!("{name} is gone: {module}"));
    function.instructions().into_iter().any(|instruction| instruction.is(opcode))
}

#[test]
fn only_checks_of_the_standard_library_that_give_nothing_are_left_out() {
    let context = context();
    let text = "
        define void @_ZN4core3ptr5write18precondition_check17h0123456789abcdefE(ptr %p) { store i8 1, ptr %p ret void }
        define void @_ZN3app18precondition_check17h0123456789abcdefE(ptr %p) { store i8 1, ptr %p ret void }
        define void @_ZN3app4core18precondition_check17h0123456789abcdefE(ptr sret(i64) %p) { store i64 1, ptr %p ret void }
        define i8 @_ZN4core3app18precondition_check17h0123456789abcdefE(ptr %p) { store i8 1, ptr %p ret i8 1 }
        define void @\"_ZN55_$LT$core..Range$u20$as$u20$app..Trait$GT$1f18precondition_check17h0123456789abcdefE\"(ptr %p) {
            store i8 1, ptr %p
            ret void
        }";
    let module = module(&context, text);
    strip_host_abi::drop_library_checks(&module);
    module.verify("checks").expect("a valid module");
    let keeps = module.functions().into_iter().filter(|function| has(&module, function.name(), Opcode::STORE)).count();
    assert_eq!(keeps, 4, "{module}");
    assert!(!has(&module, "_ZN4core3ptr5write18precondition_check17h0123456789abcdefE", Opcode::STORE));
}

#[test]
fn functions_of_a_user_are_not_taken_for_those_of_published_crates() {
    let context = context();
    let text = "
        define double @_ZN3app4math5frexp5frexp17h0123456789abcdefE(double %x) { %r = fadd double %x, 1.0 ret double %r }
        define double @_ZN3app4libm4math4sqrt4sqrt17h0123456789abcdefE(double %x) { %r = fadd double %x, 1.0 ret double %r }
        define i16 @_ZN3app4half8binary164arch19f32_to_f16_fallback17h0123456789abcdefE(float %x) { ret i16 7 }
        define i1 @_ZN3app10std_detect6detect5cache4test17h0123456789abcdefE(i32 %x) { %r = icmp eq i32 %x, 3 ret i1 %r }
        define i64 @_ZN3app14oxisycl_device7builtin15grid_position_x17h0123456789abcdefE() { ret i64 7 }";
    let module = module(&context, text);
    let before = module.to_string();
    builtins::replace(&module, Bodies { family: Family::Amdgcn, text: "" }).expect("there are no builtins");
    cpu_features::deny(&module);
    native::replace(&module).expect("nothing to replace");
    libcalls::replace_all(&module);
    assert_eq!(module.to_string(), before);
}

#[test]
fn panic_functions_of_a_user_return() {
    let context = context();
    let text = "
        define void @_ZN3app4core9panicking5panic17h0123456789abcdefE(ptr %p) { store i8 1, ptr %p ret void }
        define void @_ZN3app5print10print_line17h0123456789abcdefE(ptr %p) { store i8 1, ptr %p ret void }";
    let module = module(&context, text);
    panics::hook(&module);
    assert!(!panics::may_begin(&module) && module.functions().len() == 2, "{module}");
}

#[test]
fn a_fast_policy_promises_nothing_about_nans_and_infinities() {
    let context = context();
    // With `nnan` or `ninf` LLVM may take the other branch for granted, and drop the check before the store.
    let text = "
        define void @f(float %x, ptr %p) {
            %y = fmul float %x, 3.0
            %is_nan = fcmp uno float %y, 0.0
            br i1 %is_nan, label %no, label %yes
        no:
            ret void
        yes:
            store float %y, ptr %p
            ret void
        }";
    let module = module(&context, text);
    let function = module.function("f").expect("it is there");
    float_policy::apply_policies(&[function], &[FloatPolicy::Fast]);
    let code = module.to_string();
    assert!(code.contains("fmul reassoc nsz arcp contract afn") && code.contains("fcmp reassoc"), "{code}");
    module.run("default<O3>", None, &crate::llvm::PassTuning::DEVICE).expect("passes");
    assert!(has(&module, "f", Opcode::FCMP), "{module}");
}

#[test]
fn panics_with_a_literal_of_older_editions_are_panics() {
    let context = context();
    let text = "
        define void @_ZN3std9panicking11begin_panic17h0123456789abcdefE(ptr %s, i64 %n, ptr %place) { unreachable }
        define void @f(ptr %s) {
            call void @_ZN3std9panicking11begin_panic17h0123456789abcdefE(ptr %s, i64 3, ptr null)
            unreachable
        }";
    let module = module(&context, text);
    panics::hook(&module);
    assert!(panics::may_begin(&module), "{module}");
}

/// Safe code may panic with a pair of numbers, which must not be read as the address and length of a text.
#[test]
fn a_panic_with_a_pair_of_numbers_reads_no_memory() {
    let context = context();
    let text = "
        @literal = private constant [3 x i8] c\"who\"
        declare void @end()
        declare void @_ZN3std9panicking11begin_panic17h0123456789abcdefE(i64, i64, ptr)
        declare void @_ZN3std9panicking11begin_panic17h1123456789abcdefE(ptr, i64, ptr)
        define void @f(i64 %a, i64 %n, ptr %p, i1 %c) {
            br i1 %c, label %pair, label %other
        pair:
            call void @_ZN3std9panicking11begin_panic17h0123456789abcdefE(i64 %a, i64 %n, ptr null)
            unreachable
        other:
            call void @_ZN3std9panicking11begin_panic17h1123456789abcdefE(ptr %p, i64 %n, ptr null)
            call void @_ZN3std9panicking11begin_panic17h1123456789abcdefE(ptr @literal, i64 3, ptr null)
            unreachable
        }";
    let module = module(&context, text);
    panics::hook(&module);
    let mut sites = panics::Sites::default();
    let end = module.function("end").expect("it is declared");
    let null = crate::llvm::Type::pointer(&context, 0).null();
    panics::lower(&module, &mut sites, &|_| null, &|builder| _ = builder.call(end, &[]));
    module.verify("lowering").expect("a valid module");
    let messages: Vec<String> = sites.list.iter().map(|site| format!("{:?}", site.message)).collect();
    assert_eq!(messages, ["[Literal(\"Box<dyn Any>\")]", "[Literal(\"who\")]"], "{module}");
}
