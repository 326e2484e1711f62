use super::*;
use crate::llvm::{Context, Module, PassTuning};
use crate::passes::tests::{context, module};
use crate::spmd::PREPARE;

/// A function with this body. `%env`, `%n`, `%c` and `%m` are the same for all items, `%x` is the item's number, and `%v` varies.
fn function<'c>(context: &'c Context, body: &str) -> Module<'c> {
    let text = format!(
        "target datalayout = \"e-m:e-i64:64-i128:128-n8:16:32:64-S128\"
        @thread = thread_local global i32 0
        @table = global [4 x i32] zeroinitializer
        declare i32 @llvm.umin.i32(i32, i32)
        declare i64 @llvm.umin.i64(i64, i64)
        declare ptr @llvm.threadlocal.address.p0(ptr)
        declare {{ i64, i1 }} @llvm.uadd.with.overflow.i64(i64, i64)
        declare i32 @unknown(i32)
        declare void @fails() noreturn
        define i32 @known(i32 %a) {{ ret i32 %a }}
        define void @f(ptr %env, i32 %n, i1 %c, i64 %m, i64 %x) {{ start: %v = icmp ult i64 %x, 9 {body} }}"
    );
    let module = module(context, &text);
    module.run(PREPARE, None, &PassTuning::NATIVE).expect("it runs");
    module
}

fn with_shapes(body: &str, test: impl FnOnce(&Graph<'_>, &Shapes<'_, '_>, &dyn Fn(&str) -> usize)) {
    let context = context();
    let module = function(&context, body);
    let function = module.function("f").expect("the function");
    let graph = Graph::of(function).unwrap_or_else(|refusal| panic!("{}: {body}", refusal.reason));
    let shapes = Shapes::of(&graph, Layout::of(&module));
    let instructions = function.instructions();
    let place = |name: &str| {
        let place = instructions.iter().position(|instruction| instruction.name() == name);
        place.unwrap_or_else(|| panic!("there is no {name} in {module}"))
    };
    test(&graph, &shapes, &place);
}

/// The shapes of values.
fn shapes<const N: usize>(body: &str, names: [&str; N]) -> [Shape; N] {
    let mut found = [Shape::Unknown; N];
    with_shapes(body, |graph, shapes, place| {
        let instructions = graph.function().instructions();
        found = names.map(|name| shapes.shape(instructions[place(name)]));
    });
    found
}

/// The statuses of the blocks that have these values.
fn statuses<const N: usize>(body: &str, names: [&str; N]) -> [Status; N] {
    let mut found = [Status::Full; N];
    with_shapes(body, |graph, shapes, place| {
        let instructions = graph.function().instructions();
        found = names.map(|name| shapes.status(Node::Block(graph.index(instructions[place(name)].block()))));
    });
    found
}

/// The statuses of the innermost loops around these values, and whether they are divergent.
fn loops<const N: usize>(body: &str, names: [&str; N]) -> [(Status, bool); N] {
    let mut found = [(Status::Full, false); N];
    with_shapes(body, |graph, shapes, place| {
        let instructions = graph.function().instructions();
        found = names.map(|name| {
            let of = graph.innermost(graph.index(instructions[place(name)].block())).expect("a loop");
            (shapes.status(Node::Loop(of)), shapes.is_divergent(of))
        });
    });
    found
}

/// Checks the shape of `%r` in straight code.
#[track_caller]
fn is(shape: Shape, code: &str) {
    assert_eq!(shapes(&format!("{code} ret void"), ["r"]), [shape], "{code}");
}

use Shape::{Affine, Uniform, Varying};
use Status::{Full, Guard, Masked};

#[test]
fn strides_go_through_what_keeps_distances() {
    is(Affine(1), "%r = add i64 %x, 5");
    is(Affine(1), "%r = add i64 %m, %x");
    is(Affine(2), "%r = add i64 %x, %x");
    is(Affine(-1), "%r = sub i64 5, %x");
    is(Uniform, "%a = add i64 %x, %m %r = sub i64 %a, %x");
    is(Affine(-12), "%r = mul i64 %x, -12");
    is(Affine(12), "%r = mul i64 12, %x");
    is(Affine(8), "%r = shl i64 %x, 3");
    is(Affine(4), "%a = shl i64 %x, 2 %r = or disjoint i64 %a, 1");
    is(Affine(1), "%r = trunc i64 %x to i32");
    is(Affine(1), "%r = freeze i64 %x");
    is(Uniform, "%r = mul i64 %m, %m");
    // Strides are modulo the size of the type.
    is(Uniform, "%a = mul i64 %x, 256 %r = trunc i64 %a to i8");
    is(Affine(-128), "%a = mul i64 %x, 128 %r = trunc i64 %a to i8");
    is(Affine(-3), "%a = trunc i64 %x to i32 %r = mul i32 %a, 4294967293");
    is(Uniform, "%a = mul i64 %x, 4294967296 %r = mul i64 %a, 4294967296");
}

#[test]
fn distances_are_not_kept_by_other_operations() {
    for code in [
        "%r = mul i64 %x, %m",
        "%r = mul i64 %x, %x",
        "%r = shl i64 1, %x",
        "%r = shl i64 %x, %m",
        "%r = or i64 %x, 1",
        "%r = and i64 %x, -8",
        "%r = xor i64 %x, 1",
        "%r = lshr i64 %x, 1",
        "%r = udiv i64 %x, 2",
        "%r = urem i64 %x, 4",
        "%r = icmp ult i64 %x, 5",
        "%r = bitcast i64 %x to double",
        "%r = uitofp i64 %x to float",
        "%r = inttoptr i64 %x to ptr",
        "%r = zext i64 %x to i128",
        "%r = insertelement <2 x i64> zeroinitializer, i64 %x, i32 0",
        "%r = insertvalue { i64, i32 } zeroinitializer, i64 %x, 0",
    ] {
        is(Varying, code);
    }
}

#[test]
fn a_narrow_stride_may_wrap_where_a_wide_one_does_not() {
    is(Varying, "%a = trunc i64 %x to i32 %r = zext i32 %a to i64");
    is(Varying, "%a = trunc i64 %x to i32 %r = sext i32 %a to i64");
    // Below lane 0, which may be inactive, it wraps with the flag, too.
    is(Varying, "%a = trunc i64 %x to i32 %b = sub nuw i32 %a, 1 %r = zext i32 %b to i64");
    is(Uniform, "%r = zext i32 %n to i64");
}

#[test]
fn addresses_have_strides_in_bytes() {
    is(Affine(4), "%r = getelementptr i32, ptr %env, i64 %x");
    is(Affine(16), "%r = getelementptr { i64, i32 }, ptr %env, i64 %x, i32 1");
    is(Affine(8), "%r = getelementptr { i64, [4 x i64] }, ptr %env, i64 0, i32 1, i64 %x");
    is(Affine(40 + 8), "%r = getelementptr { i64, [4 x i64] }, ptr %env, i64 %x, i32 1, i64 %x");
    is(Affine(5), "%a = getelementptr i32, ptr %env, i64 %x %r = getelementptr i8, ptr %a, i64 %x");
    is(Affine(4), "%a = getelementptr i32, ptr %env, i64 %x %r = ptrtoint ptr %a to i64");
    is(Uniform, "%r = getelementptr i32, ptr %env, i64 %m");
    is(Uniform, "%r = getelementptr i32, ptr @table, i32 %n");
    // The index is extended first.
    is(Varying, "%a = trunc i64 %x to i32 %r = getelementptr i32, ptr %env, i32 %a");
    is(Varying, "%a = mul i64 %x, %m %r = getelementptr i32, ptr %env, i64 %a");
}

#[test]
fn a_load_is_uniform_if_it_is_one_load() {
    is(Uniform, "%r = load i32, ptr %env");
    is(Uniform, "%a = load ptr, ptr %env %b = getelementptr i32, ptr %a, i64 %m %r = load i32, ptr %b");
    is(Varying, "%a = getelementptr i32, ptr %env, i64 %x %r = load i32, ptr %a");
    is(Varying, "%r = load volatile i32, ptr %env");
    is(Varying, "%r = load atomic i32, ptr %env unordered, align 4");
    is(Varying, "%r = load atomic i32, ptr %env monotonic, align 4");
    is(Varying, "%r = load i32, ptr @thread");
    is(Varying, "%r = load i32, ptr getelementptr (i8, ptr @thread, i64 2)");
}

#[test]
fn each_lane_has_its_own_variables() {
    let body = "%a = alloca [4 x i32] %b = getelementptr i32, ptr %a, i64 %m store i32 %n, ptr %a
        %r = load i32, ptr %a %s = load i32, ptr %b %t = ptrtoint ptr %a to i64 ret void";
    assert_eq!(shapes(body, ["a", "b", "r", "s", "t"]), [Varying; 5]);
}

#[test]
fn calls_and_atomics_vary_unless_they_only_compute() {
    is(Uniform, "%r = call i32 @llvm.umin.i32(i32 %n, i32 5)");
    is(Varying, "%r = call i64 @llvm.umin.i64(i64 %x, i64 5)");
    is(Varying, "%r = call { i64, i1 } @llvm.uadd.with.overflow.i64(i64 %x, i64 5)");
    for code in [
        "%r = call i32 @unknown(i32 %n)",
        "%r = call i32 @known(i32 %n)",
        "%r = call i32 %env(i32 %n)",
        "%r = call i32 asm \"\", \"=r,r\"(i32 %n)",
        "%r = call ptr @llvm.threadlocal.address.p0(ptr @thread)",
        "%r = atomicrmw add ptr %env, i32 1 monotonic",
        "%r = cmpxchg ptr %env, i32 1, i32 2 monotonic monotonic",
    ] {
        is(Varying, code);
    }
}

#[test]
fn a_selection_is_as_its_values_if_all_lanes_choose_alike() {
    is(Uniform, "%r = select i1 %c, i32 %n, i32 5");
    is(Affine(1), "%a = add i64 %x, 4 %r = select i1 %c, i64 %x, i64 %a");
    is(Varying, "%r = select i1 %c, i64 %x, i64 5");
    is(Varying, "%r = select i1 %v, i32 %n, i32 5");
    is(Affine(1), "%r = select i1 %v, i64 %x, i64 %x");
}

/// A choice between two blocks.
fn diamond(condition: &str, phi: &str) -> String {
    format!(
        "br i1 {condition}, label %a, label %b a: %in_a = add i32 %n, 1 br label %join b: %in_b = add i32 %n, 2 br label %join
        join: {phi} ret void"
    )
}

#[test]
fn lanes_meet_with_different_values_unless_they_came_together() {
    let phi = "%r = phi i32 [ %in_a, %a ], [ %in_b, %b ] %same = phi i32 [ 3, %a ], [ 3, %b ] %item = phi i64 [ %x, %a ], [ %x, %b ]";
    let names = ["r", "same", "item", "in_a"];
    assert_eq!(shapes(&diamond("%c", phi), names), [Uniform, Uniform, Affine(1), Uniform]);
    assert_eq!(shapes(&diamond("%v", phi), names), [Varying, Uniform, Affine(1), Uniform]);
    let blocks = ["in_a", "in_b", "r"];
    assert_eq!(statuses(&diamond("%c", phi), blocks), [Guard, Guard, Full]);
    assert_eq!(statuses(&diamond("%v", phi), blocks), [Masked, Masked, Full]);
}

#[test]
fn what_is_behind_a_block_that_some_lanes_pass_is_masked_too() {
    let body = "br i1 %v, label %some, label %end
        some: %in_some = add i32 %n, 1 br i1 %c, label %a, label %b
        a: %in_a = add i32 %n, 1 br label %join
        b: %in_b = add i32 %n, 2 br label %join
        join: %r = phi i32 [ %in_a, %a ], [ %in_b, %b ] br label %end
        end: %in_end = add i32 %n, 3 ret void";
    assert_eq!(statuses(body, ["in_some", "in_a", "in_b", "r", "in_end"]), [Masked, Masked, Masked, Masked, Full]);
    // The two sides follow each other there, so the phi is no choice of one scalar.
    assert_eq!(shapes(body, ["in_a", "r"]), [Uniform, Varying]);
}

/// A loop with a counter, which is left over the latch if `latch` says so, and before if `early` does.
fn counting(early: &str, latch: &str) -> String {
    format!(
        "br label %head
        head: %i = phi i32 [ 0, %start ], [ %next, %last ] %p = phi i64 [ %x, %start ], [ %q, %last ]
        %k = zext i32 %i to i64 %more = icmp ult i64 %k, %x %u = icmp ult i32 %i, %n
        br i1 {early}, label %last, label %left
        last: %next = add i32 %i, 1 %q = add i64 %p, 8 br i1 {latch}, label %head, label %done
        left: %early = phi i32 [ %i, %head ] br label %end
        done: %final = phi i32 [ %next, %last ] %pointer = phi i64 [ %q, %last ] br label %end
        end: %at_end = add i32 %n, 1 ret void"
    )
}

#[test]
fn values_of_a_loop_that_lanes_leave_together_stay_equal() {
    let body = counting("%u", "%c");
    assert_eq!(loops(&body, ["i"]), [(Full, false)]);
    let names = ["i", "p", "next", "early", "final", "pointer"];
    assert_eq!(shapes(&body, names), [Uniform, Affine(1), Uniform, Uniform, Uniform, Affine(1)]);
    assert_eq!(statuses(&body, ["i", "next", "early", "final", "at_end"]), [Full, Full, Guard, Guard, Full]);
}

#[test]
fn values_of_a_divergent_loop_are_equal_inside_and_differ_behind() {
    let names = ["i", "p", "next", "early", "final", "pointer"];
    let inside_and_behind = [Uniform, Affine(1), Uniform, Varying, Varying, Varying];
    for (early, latch) in [("%more", "%c"), ("%u", "%more")] {
        let body = counting(early, latch);
        assert_eq!(loops(&body, ["i"]), [(Full, true)]);
        assert_eq!(shapes(&body, names), inside_and_behind);
        assert_eq!(statuses(&body, ["i", "early", "final", "at_end"]), [Full, Masked, Masked, Full]);
    }
    // Lanes that have left do not pass the latch, but all that are there do, if the exit comes after it.
    assert_eq!(statuses(&counting("%more", "%c"), ["next"]), [Masked]);
    assert_eq!(statuses(&counting("%u", "%more"), ["next"]), [Guard]);
}

#[test]
fn a_panic_takes_no_lane_away() {
    let body = "br label %head
        head: %i = phi i32 [ 0, %start ], [ %next, %last ] br i1 %v, label %last, label %fail
        fail: call void @fails() unreachable
        last: %next = add i32 %i, 1 br i1 %c, label %head, label %end
        end: %r = phi i32 [ %next, %last ] ret void";
    assert_eq!(loops(body, ["i"]), [(Full, false)]);
    assert_eq!(statuses(body, ["next", "r"]), [Full, Full]);
    assert_eq!(shapes(body, ["r"]), [Uniform]);
}

#[test]
fn a_loop_that_some_lanes_enter_is_masked_and_uniform_inside() {
    let body = "br i1 %v, label %before, label %end
        before: br label %head
        head: %i = phi i32 [ 0, %before ], [ %next, %head ] %next = add i32 %i, 1 br i1 %c, label %head, label %out
        out: %r = phi i32 [ %next, %head ] br label %end
        end: ret void";
    assert_eq!(loops(body, ["i"]), [(Masked, false)]);
    assert_eq!(statuses(body, ["i", "r"]), [Full, Masked]);
    assert_eq!(shapes(body, ["i", "r"]), [Uniform, Varying]);
}

/// Two loops. The inner one repeats while `inner` holds, and both are left if `both` is a condition that does not hold.
fn nested(inner: &str, both: Option<&str>) -> String {
    let (branch, away) = match both {
        Some(both) => {
            (format!("br i1 {both}, label %inner_last, label %away"), "away: %a = phi i32 [ %o, %inner ] br label %end")
        }
        None => ("br label %inner_last".to_owned(), ""),
    };
    format!(
        "br label %outer
        outer: %o = phi i32 [ 0, %start ], [ %o2, %outer_last ] br label %inner
        inner: %i = phi i32 [ 0, %outer ], [ %i2, %inner_last ] {branch}
        inner_last: %i2 = add i32 %i, 1 br i1 {inner}, label %inner, label %outer_last
        outer_last: %sum = phi i32 [ %i2, %inner_last ] %o2 = add i32 %o, 1 br i1 %c, label %outer, label %done
        done: %d = phi i32 [ %o2, %outer_last ] br label %end
        {away}
        end: ret void"
    )
}

#[test]
fn a_divergent_loop_makes_those_around_it_divergent_if_it_leaves_them() {
    assert_eq!(loops(&nested("%c", Some("%c")), ["o", "i"]), [(Full, false), (Full, false)]);
    assert_eq!(shapes(&nested("%c", Some("%c")), ["sum", "d", "a"]), [Uniform; 3]);
    // Lanes wait behind the inner loop.
    let inner = nested("%v", None);
    assert_eq!(loops(&inner, ["o", "i"]), [(Full, false), (Full, true)]);
    assert_eq!(shapes(&inner, ["i", "sum", "o2", "d"]), [Uniform, Varying, Uniform, Uniform]);
    let both = nested("%c", Some("%v"));
    assert_eq!(loops(&both, ["o", "i"]), [(Full, true), (Full, true)]);
    assert_eq!(shapes(&both, ["o", "i", "sum", "d", "a"]), [Uniform, Uniform, Varying, Varying, Varying]);
    assert_eq!(statuses(&both, ["sum", "d"]), [Masked, Masked]);
}

#[test]
fn edges_are_uniform_for_a_region_or_not() {
    with_shapes(&nested("%v", None), |graph, shapes, place| {
        let instructions = graph.function().instructions();
        let block = |name: &str| graph.index(instructions[place(name)].block());
        let outer = graph.innermost(block("o"));
        let inner = graph.innermost(block("i"));
        assert!(!shapes.is_uniform_edge(block("i2"), block("i"), inner));
        let (from, to) = graph.exits(inner.expect("a loop")).into_iter().next().expect("an exit");
        assert!(!shapes.is_uniform_edge(from, to, outer));
        assert!(
            shapes.is_uniform_edge(block("o2"), block("d"), outer)
                && shapes.is_uniform_edge(block("o2"), block("d"), None)
        );
        assert!(shapes.diverges(block("i2")) && !shapes.diverges(block("o2")));
    });
}
