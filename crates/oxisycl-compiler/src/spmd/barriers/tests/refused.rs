//! Bodies whose barriers are not proved, or what is alive at them does not get over them.

use super::machine;
use crate::llvm::Module;
use crate::passes::tests::context;
use crate::spmd::barriers::keeping::is_repeatable;
use crate::spmd::barriers::{MAX_BYTES, Nest, part};

/// Why a body is refused, if it is.
fn refusal(code: &str) -> Option<String> {
    let (context, machine) = (context(), machine());
    let text = format!(
        "declare void @oxisycl.end_item_loop() convergent nounwind willreturn
        declare void @oxisycl.only_on_stacks() convergent nounwind willreturn
        declare ptr @oxisycl.item_array(i64) convergent nounwind willreturn memory(inaccessiblemem: readwrite)
        declare void @oxisycl.leave_item(ptr, i64, i64, i64) nounwind willreturn
        declare i32 @rust_eh_personality(i32, i32, i64, ptr, ptr)
        declare i64 @draw()
        declare void @use(ptr)
        declare void @group(ptr, i64, i64, i64)
        define void @run(ptr %env, i64 %planes, i64 %rows, i64 %row) {{
            call void @group(ptr %env, i64 %planes, i64 %rows, i64 %row) ret void }}
        {}",
        code.replace("BODY", "define void @body(ptr %env, i64 %z, i64 %y, i64 %x)")
            .replace("BARRIER", "call void @oxisycl.end_item_loop()")
    );
    let module = Module::from_text(&context, &text, "refused").expect("a test is well-formed");
    module.set_target(machine.triple(), &machine.data_layout());
    module.verify("parsing").expect("a test is valid");
    let nest = Nest { body: "body".to_owned(), group: "group".to_owned(), most_bytes: MAX_BYTES };
    let refused = part(&module, &machine, &nest, 0).expect("passes").err();
    refused.map(|refused| refused.reason)
}

const SOME: &str = "a barrier may be reached by some work-items only, as far as the compiler can prove";

#[test]
fn barriers_that_some_items_may_not_reach_are_refused() {
    let arm = |condition: &str| {
        refusal(&format!("BODY {{ {condition} br i1 %c, label %a, label %b a: BARRIER br label %b b: ret void }}"))
    };
    assert_eq!(arm("%c = icmp ult i64 %x, 3").as_deref(), Some(SOME));
    assert_eq!(arm("%c = icmp ne i64 %z, 0").as_deref(), Some(SOME));
    assert_eq!(arm("%p = load ptr, ptr %env %c = load i1, ptr %p").as_deref(), Some(SOME));
    assert_eq!(arm("%c = load i1, ptr %env"), None);
    // A return by some of them before it, and a loop which they leave at different times.
    let early = "BODY { %c = icmp ult i64 %x, 3 br i1 %c, label %a, label %b a: ret void b: BARRIER ret void }";
    assert_eq!(refusal(early).as_deref(), Some(SOME));
    let round = |times: &str| {
        refusal(&format!(
            "BODY {{ entry: {times} br label %l
            l: %i = phi i64 [ 0, %entry ], [ %n, %l ] BARRIER %n = add i64 %i, 1
            %c = icmp ult i64 %n, %times br i1 %c, label %l, label %e
            e: ret void }}"
        ))
    };
    assert_eq!(round("%times = and i64 %x, 3").as_deref(), Some(SOME));
    assert_eq!(round("%times = load i64, ptr %env"), None);
    // Behind a loop in which some stay longer, all of them meet again.
    let behind = "BODY { entry: br label %l l: %i = phi i64 [ 0, %entry ], [ %n, %l ] %n = add i64 %i, 1
        %c = icmp ult i64 %n, %x br i1 %c, label %l, label %e e: BARRIER ret void }";
    assert_eq!(refusal(behind), None);
    // How often a loop ran is not the same for them.
    let counted = "BODY { entry: br label %l l: %i = phi i64 [ 0, %entry ], [ %n, %l ] %n = add i64 %i, 1
        %c = icmp ult i64 %n, %x br i1 %c, label %l, label %e
        e: %d = icmp ult i64 %n, 5 br i1 %d, label %f, label %g f: BARRIER br label %g g: ret void }";
    assert_eq!(refusal(counted).as_deref(), Some(SOME));
}

#[test]
fn barriers_in_functions_of_their_own_are_refused() {
    let called = "define void @wait() noinline { BARRIER ret void } BODY { call void @wait() ret void }";
    assert_eq!(refusal(called).as_deref(), Some("a barrier is in a function that cannot become part of the kernel"));
    let stacks = "BODY { BARRIER call void @oxisycl.only_on_stacks() ret void }";
    assert_eq!(refusal(stacks).as_deref(), Some("its work-items wait in a way that needs stacks"));
}

#[test]
fn results_of_calls_that_may_unwind_differ_between_items() {
    let drawn = "BODY personality ptr @rust_eh_personality { %n = invoke i64 @draw() to label %a unwind label %p
        a: %c = icmp ult i64 %n, 3 br i1 %c, label %b, label %e b: BARRIER br label %e e: ret void
        p: %l = landingpad { ptr, i32 } cleanup resume { ptr, i32 } %l }";
    assert_eq!(refusal(drawn).as_deref(), Some(SOME));
}

#[test]
fn floats_that_are_the_same_are_computed_in_one_way() {
    let of = |flags: &str, factor: &str| {
        refusal(&format!(
            "BODY {{ %v = load float, ptr %env {factor} %s = fadd {flags} float %f, %v BARRIER store float %s, ptr %env ret void }}"
        ))
    };
    let same = "%f = fmul float %v, %v";
    let reason = "a float that is the same for all its work-items is computed as the policy `fast` allows";
    assert_eq!(of("reassoc", same).as_deref(), Some(reason));
    assert_eq!(
        [of("", same), of("contract nnan nsz", same), of("fast", "%f = uitofp i64 %x to float")],
        [None, None, None]
    );
}

#[test]
fn items_that_would_drop_something_at_a_barrier_keep_their_stacks() {
    let at = |dropped: &str| {
        refusal(&format!(
            "BODY personality ptr @rust_eh_personality {{ invoke void @oxisycl.end_item_loop() to label %a unwind label %p
            a: ret void
            p: %l = landingpad {{ ptr, i32 }} cleanup {dropped} resume {{ ptr, i32 }} %l }}"
        ))
    };
    let reason = "a work-item has a value at a barrier that would have to be dropped if another one panics";
    let leaves = "%x2 = add i64 %x, 3 call void @oxisycl.leave_item(ptr %env, i64 0, i64 0, i64 %x2)";
    assert_eq!(at(leaves), None);
    assert_eq!(at("call void @use(ptr %env)").as_deref(), Some(reason));
    assert_eq!(at(&format!("store i8 0, ptr %env {leaves}")).as_deref(), Some(reason));
    assert_eq!(at("store atomic i8 0, ptr %env release, align 1").as_deref(), Some(reason));
}

#[test]
fn what_may_round_otherwise_is_not_computed_again() {
    let context = context();
    let text = "declare float @llvm.sqrt.f32(float)
        declare i32 @llvm.fptoui.sat.i32.f32(float)
        define i32 @f(i32 %n, float %y) {
        %a = uitofp i32 %n to float %b = fmul contract float %a, %y %c = fadd contract float %b, %y
        %d = call float @llvm.sqrt.f32(float %c) %e = fneg float %d %g = call i32 @llvm.fptoui.sat.i32.f32(float %e)
        %w = fpext float %e to double %k = fptrunc double %w to float %h = udiv i32 %g, %n %i = udiv i32 %h, 3 ret i32 %i }";
    let module = Module::from_text(&context, text, "repeated").expect("a test is well-formed");
    let instructions = module.function("f").expect("it is there").instructions();
    let repeated: Vec<_> = instructions.into_iter().map(is_repeatable).collect();
    assert_eq!(repeated, [true, false, false, false, true, true, false, false, false, true, false]);
}

#[test]
fn what_does_not_get_over_barriers_is_refused() {
    let kept = |code: &str| refusal(&format!("BODY {{ {code} }}"));
    let sized = "%n = load i64, ptr %env %v = alloca i8, i64 %n call void @use(ptr %v) BARRIER call void @use(ptr %v)";
    assert_eq!(kept(&format!("{sized} ret void")).as_deref(), Some("it has a variable whose size is computed"));
    let array = "%n = load i64, ptr %env %v = call ptr @oxisycl.item_array(i64 %n) BARRIER call void @use(ptr %v)";
    let reason = "memory of an algorithm over its group has no constant size";
    assert_eq!(kept(&format!("{array} ret void")).as_deref(), Some(reason));
    let large = "%v = alloca [600 x i8] call void @use(ptr %v) BARRIER call void @use(ptr %v) ret void";
    let reason = "600 bytes of each work-item are kept over barriers, and at most 63 may be";
    assert_eq!(kept(large).as_deref(), Some(reason));
    let parts = "%p = load ptr, ptr %env %q = getelementptr <4 x i32>, ptr %p, i64 %x %v = load <4 x i32>, ptr %q
        BARRIER store <4 x i32> %v, ptr %q ret void";
    assert_eq!(kept(parts).as_deref(), Some("a value of several parts is kept over a barrier"));
    // A variable of which nothing gets over one has no array.
    let before = "%v = alloca [600 x i8] store i32 1, ptr %v %i = load i32, ptr %v BARRIER ret void";
    assert_eq!(kept(before), None);
}
