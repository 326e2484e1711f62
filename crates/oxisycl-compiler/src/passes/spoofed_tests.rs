//! Tests with a user's items that have the names of items which passes treat specially. They must stay as they are.

use super::tests::{context, module};
use crate::FloatPolicy;
use crate::REPLACED;
use crate::builtin_table::{Bodies, Family};
use crate::llvm::{Module, Opcode};
use crate::passes::{arena, builtins, cpu_features, float_policy, libcalls, native, panics, strip_host_abi};

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
    builtins::replace(&module, Bodies { family: Family::Amdgcn, text: "", has_reductions: false })
        .expect("there are no builtins");
    cpu_features::answer_no(&module);
    native::replace(&module, &[]).expect("nothing to replace");
    libcalls::replace_all(&module, &[]);
    assert_eq!(module.to_string(), before);
}

/// Taken for an allocation, it would give a reference into the arena.
#[test]
fn functions_of_a_crate_that_is_called_as_the_allocator_are_not_the_allocators() {
    let context = context();
    let text = "
        declare ptr @_ZN8__rust_x12__rust_alloc17h0123456789abcdefE(i64, i64)
        declare ptr @\"_ZN8__rust_x1n76_$LT$impl$u20$__rust_x..Make$LT$core..fmt..Error$GT$$u20$for$u20$__rust_x..Y$GT$12__rust_alloc17h0123456789abcdefE\"(i64, i64)
        declare ptr @__rust_alloc(i64, i64)
        define void @kernel(ptr %p) {
            %a = call ptr @_ZN8__rust_x12__rust_alloc17h0123456789abcdefE(i64 8, i64 8)
            %b = call ptr @\"_ZN8__rust_x1n76_$LT$impl$u20$__rust_x..Make$LT$core..fmt..Error$GT$$u20$for$u20$__rust_x..Y$GT$12__rust_alloc17h0123456789abcdefE\"(i64 8, i64 8)
            %c = call ptr @__rust_alloc(i64 8, i64 8)
            store ptr %a, ptr %p
            store ptr %b, ptr %p
            store ptr %c, ptr %p
            ret void
        }";
    let module = module(&context, text);
    arena::provide(&module, module.function("kernel")).expect("there is an arena");
    let code = module.to_string();
    assert_eq!((code.matches("call ptr @_ZN").count(), code.matches("call ptr @\"_ZN").count()), (1, 1), "{code}");
    assert!(!code.contains("call ptr @__rust_alloc"), "{code}");
}

/// A crate named `libm` or `half` may have functions of all types at the paths of the published ones. Replaced by what takes a number,
/// this one would give a reference to anywhere.
#[test]
fn functions_with_the_path_of_a_published_one_and_another_type_stay() {
    let context = context();
    let text = "
        define ptr @_ZN4libm4math3sin4sinf17h0123456789abcdefE(ptr %x) { ret ptr %x }
        define ptr @_ZN4libm4math4sqrt4sqrt17h0123456789abcdefE(ptr %x) { ret ptr %x }
        define float @_ZN4libm4math3pow4powf17h0123456789abcdefE(float %x) { ret float %x }
        define double @_ZN4libm4math4expf4expf17h0123456789abcdefE(double %x) { ret double %x }
        define float @_ZN4libm4math6ldexpf6ldexpf17h0123456789abcdefE(float %x, i64 %n) { ret float %x }
        define { float, i32 } @_ZN4libm4math3fma3fma17h0123456789abcdefE(double %x, double %y, double %z) {
            ret { float, i32 } zeroinitializer
        }
        define ptr @_RNvNtNtCs1234_4libm4math3cos4cosf(ptr %x) { ret ptr %x }
        define ptr @_ZN4libm4math5frexp5frexp17h0123456789abcdefE(ptr %x) { ret ptr %x }
        define ptr @_ZN4half8binary164arch19f32_to_f16_fallback17h0123456789abcdefE(ptr %x) { ret ptr %x }
        define ptr @\"_ZN4core3f3221_$LT$impl$u20$f32$GT$8midpoint17h0123456789abcdefE\"(ptr %x) { ret ptr %x }
        declare ptr @sinf(ptr)
        declare ptr @fma(ptr)
        declare ptr @memcmp(ptr)
        declare float @lgammaf_r(float, i64)
        define i64 @_ZN10std_detect6detect5cache4test17h0123456789abcdefE(i32 %x) { ret i64 3 }";
    let module = module(&context, text);
    let before = module.to_string();
    native::replace(&module, &[]).expect("nothing to replace");
    libcalls::replace_all(&module, &[]);
    cpu_features::answer_no(&module);
    assert_eq!(module.to_string(), before);
}

/// With the type of the published function, what it gives may still be no number: an enumeration, of which only some values exist.
#[test]
fn crates_that_have_borrowed_a_name_keep_their_functions() {
    let context = context();
    let text = "
        define float @_ZN4libm4math3sin4sinf17h0123456789abcdefE(float %x) { ret float %x }
        define { double, i32 } @_ZN4libm4math5frexp5frexp17h0123456789abcdefE(double %x) { ret { double, i32 } zeroinitializer }
        define i16 @_ZN4half8binary164arch19f32_to_f16_fallback17h0123456789abcdefE(float %x) { ret i16 1 }";
    let replaced = |borrowed: &[&str]| {
        let borrowed: Vec<String> = borrowed.iter().copied().map(str::to_owned).collect();
        let module = module(&context, text);
        native::replace(&module, &borrowed).expect("the table is well-formed");
        libcalls::replace_all(&module, &borrowed);
        let is_gone = |part| !module.functions().iter().any(|function| function.name().contains(part));
        ["4sinf", "5frexp17", "4half"].map(is_gone)
    };
    let [libm, half] = REPLACED;
    assert_eq!(replaced(&[libm, half]), [false, false, false]);
    assert_eq!(replaced(&[half]), [true, true, false]);
    assert_eq!(replaced(&[libm]), [false, false, true]);
    assert_eq!(replaced(&[]), [true, true, true]);
}

/// A program may say by unsafe code that it defines a function of the device library.
#[test]
fn a_function_of_the_device_library_with_another_type_replaces_nothing() {
    let context = context();
    let text = "
        define ptr @__oxisycl_sinf(ptr %x) { ret ptr %x }
        declare float @sinf(float)
        define float @f(float %x) { %r = call float @sinf(float %x) ret float %r }";
    let module = module(&context, text);
    let before = module.to_string();
    libcalls::replace_all(&module, &[]);
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
