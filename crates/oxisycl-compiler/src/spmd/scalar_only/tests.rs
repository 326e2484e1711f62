use super::*;
use crate::llvm::Layout;
use crate::passes::tests::{context, module};

/// Why a function with this body stays scalar.
fn reason(body: &str) -> Option<Reason> {
    let context = context();
    let text = format!(
        "@thread = thread_local global i32 0
        @counter = global i32 0
        @table = constant [2 x i32] [i32 1, i32 2]
        @points = constant ptr @counter
        @elsewhere = external constant ptr
        @holds = constant {{ i32, ptr }} {{ i32 1, ptr @points }}
        declare ptr @llvm.threadlocal.address.p0(ptr)
        declare i32 @llvm.umin.i32(i32, i32)
        declare float @sine(float) nounwind willreturn memory(none)
        declare float @unwinds(float) willreturn memory(none)
        declare float @waits(float) nounwind memory(none)
        declare float @tanf(float)
        declare float @tan(ptr)
        declare double @lgamma(double)
        declare float @reads(float) willreturn memory(read)
        declare void @unknown()
        declare void @fails() noreturn
        declare void @drops(ptr)
        declare i32 @personality(...)
        define void @f(ptr %env, float %n, i64 %x) personality ptr @personality {{ start: {body} }}"
    );
    let module = module(&context, &text);
    let graph =
        Graph::of(module.function("f").expect("the function")).unwrap_or_else(|refusal| panic!("{}", refusal.reason));
    let shapes = Shapes::of(&graph, Layout::of(&module));
    scalar_only(&graph, &shapes).err().map(|refusal| refusal.reason)
}

#[test]
fn variables_of_the_program_and_of_the_thread_keep_a_function_scalar() {
    for operand in ["@thread", "@counter", "getelementptr (i8, ptr @counter, i64 2)", "@points", "@holds", "@elsewhere"]
    {
        let body = format!("%a = load i32, ptr {operand} ret void");
        assert_eq!(reason(&body), Some(Reason::ThreadMemory), "{operand}");
    }
    assert_eq!(reason("%a = call ptr @llvm.threadlocal.address.p0(ptr @thread) ret void"), Some(Reason::ThreadMemory));
    assert_eq!(reason("%a = load i32, ptr @table ret void"), None);
}

#[test]
fn what_may_wait_for_another_item_keeps_a_function_scalar() {
    let add = "%a = atomicrmw add ptr %env, i32 1 monotonic";
    for body in [
        "%a = cmpxchg ptr %env, i32 0, i32 1 monotonic monotonic ret void",
        "%a = load atomic i32, ptr %env acquire, align 4 ret void",
        "%a = atomicrmw add ptr %env, i32 1 acq_rel ret void",
        "%a = atomicrmw add ptr %env, i32 1 seq_cst ret void",
        "fence acquire ret void",
        // In a loop from which only a panic leads.
        "br i1 poison, label %wait, label %end wait: %a = load atomic i32, ptr %env monotonic, align 4 %b = icmp eq i32 %a, 0
            br i1 %b, label %wait, label %fail fail: call void @fails() unreachable end: ret void",
        &format!("{add} %b = icmp eq i32 %a, 0 br i1 %b, label %c, label %d c: br label %d d: ret void"),
        "%a = load volatile i32, ptr %env %b = trunc i32 %a to i1 br i1 %b, label %c, label %d c: br label %d d: ret void",
        // By way of memory, and of a place that depends on it.
        &format!("%m = alloca i32 {add} store i32 %a, ptr %m ret void"),
        &format!(
            "{add} %p = getelementptr i32, ptr %env, i32 %a %q = load i32, ptr %p %s = call i32 @llvm.umin.i32(i32 %q, i32 2)
            %b = icmp eq i32 %s, 0 br i1 %b, label %c, label %d c: br label %d d: ret void"
        ),
    ] {
        assert_eq!(reason(body), Some(Reason::Waits), "{body}");
    }
    for body in [
        &format!("{add} ret void"),
        &format!("{add} %p = getelementptr i32, ptr %env, i32 %a store i32 1, ptr %p ret void"),
        &format!("{add} %b = atomicrmw add ptr %env, i32 %a release ret void"),
        "store atomic i32 1, ptr %env release, align 4 ret void",
        "fence release ret void",
    ] {
        assert_eq!(reason(body), None, "{body}");
    }
}

#[test]
fn unknown_calls_keep_a_function_scalar_unless_the_item_panics() {
    assert_eq!(reason("call void @unknown() ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("call void %env() ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("%a = call float @reads(float %n) ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("%a = call float @sine(float %n) ret void"), None);
    assert_eq!(reason("%a = call float @unwinds(float %n) ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("%a = call float @waits(float %n) ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("%a = call float @tanf(float %n) ret void"), None);
    assert_eq!(reason("%a = call float @tan(ptr %env) ret void"), Some(Reason::UnknownCall));
    assert_eq!(reason("%a = call double @lgamma(double 2.0) ret void"), Some(Reason::UnknownCall));
    let fails =
        "%a = icmp eq i64 %x, 0 br i1 %a, label %fail, label %end fail: call void @unknown() unreachable end: ret void";
    assert_eq!(reason(fails), None);
}

#[test]
fn destructors_that_a_panic_runs_keep_a_function_scalar() {
    let with_cleanup = |cleanup: &str| {
        let body = format!(
            "%k = getelementptr i8, ptr %env, i64 8 %chunk = load ptr, ptr %k %mine = getelementptr i64, ptr %env, i64 %x
            %a = icmp eq i64 %x, 0 br i1 %a, label %fail, label %end
            fail: invoke void @fails() to label %never unwind label %pad
            never: unreachable
            pad: %p = landingpad {{ ptr, i32 }} cleanup {cleanup} resume {{ ptr, i32 }} %p
            end: ret void"
        );
        reason(&body)
    };
    // What the library does.
    assert_eq!(with_cleanup("%i = getelementptr i8, ptr %chunk, i64 16 store i64 %x, ptr %i"), None);
    assert_eq!(with_cleanup("call void @fails()"), None);
    assert_eq!(with_cleanup("call void @drops(ptr %env)"), Some(Reason::Cleanup));
    assert_eq!(with_cleanup("store i64 0, ptr %mine"), Some(Reason::Cleanup));
    assert_eq!(with_cleanup("%b = atomicrmw sub ptr %env, i32 1 release"), Some(Reason::Cleanup));
}
