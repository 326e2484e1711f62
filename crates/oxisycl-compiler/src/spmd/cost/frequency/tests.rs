use super::*;
use crate::llvm::{Layout, Module, PassTuning};
use crate::passes::tests::{context, module};
use crate::spmd::PREPARE;

const LANES: u32 = 8;

/// The frequencies of the blocks that define these values: of an item, of a vector, and the part with all lanes. In the function with this body, `%x` is
/// the item's number, `%n` and `%c` are the same for all, and `%v` varies.
fn frequencies<const N: usize>(body: &str, names: [&str; N]) -> [(u64, u64, u64); N] {
    let context = context();
    let text = format!(
        "target datalayout = \"e-m:e-i64:64-i128:128-n8:16:32:64-S128\"
        declare void @fails() noreturn
        define void @f(ptr %p, i64 %n, i1 %c, i64 %x) {{
        start: %at = getelementptr i32, ptr %p, i64 %x %v = load i32, ptr %at {body} }}"
    );
    let module: Module<'_> = module(&context, &text);
    module.run(PREPARE, None, &PassTuning::NATIVE).expect("it runs");
    let function = module.function("f").expect("the function");
    let graph = Graph::of(function).unwrap_or_else(|refusal| panic!("{}: {body}", refusal.reason));
    let shapes = Shapes::of(&graph, Layout::of(&module));
    let all = Frequencies::of(&graph, &shapes, LANES);
    names.map(|name| {
        let found = function.instructions().into_iter().find(|instruction| instruction.name() == name);
        let index = graph.index(found.unwrap_or_else(|| panic!("there is no {name}")).block()).index();
        (all.scalar[index], all.vector[index], all.whole[index])
    })
}

/// A branch on `%is`, whose block `then` stores.
const THEN: &str = "br i1 %is, label %then, label %end
    then: %in = add i32 %v, 1 store i32 %in, ptr %at br label %end
    end: %out = add i32 %v, 2 ret void";

#[test]
fn a_block_that_all_items_run() {
    assert_eq!(frequencies("%a = add i32 %v, 1 ret void", ["a"]), [(ONE, ONE, ONE)]);
}

#[test]
fn a_block_behind_a_branch_runs_if_one_lane_does() {
    let [then, end] = frequencies(&format!("%is = icmp ult i32 %v, 9 {THEN}"), ["in", "out"]);
    assert_eq!(then, (ONE / 2, ONE - (ONE >> LANES), ONE / 4));
    assert_eq!(end, (ONE, ONE, ONE));
    let [then] = frequencies(&format!("%is = icmp eq i32 %v, 9 {THEN}"), ["in"]);
    assert!(then.0 == ONE / 4 && then.1 > ONE / 8 * 7 && then.1 < ONE, "{then:?}");
}

#[test]
fn a_block_without_a_branch_of_its_own_always_runs() {
    let body = "%is = icmp ult i32 %v, 9 br i1 %is, label %then, label %end
        then: %in = add i32 %v, 1 br label %end
        end: %out = phi i32 [ 0, %start ], [ %in, %then ] store i32 %out, ptr %at ret void";
    assert_eq!(frequencies(body, ["in"]), [(ONE / 2, ONE, 0)]);
}

#[test]
fn a_branch_that_all_lanes_take_together_is_taken_as_by_an_item() {
    assert_eq!(frequencies(&format!("%is = and i1 %c, %c {THEN}"), ["in"])[0].1, ONE / 4);
    let [then] = frequencies(&THEN.replace("%is", "%c"), ["in"]);
    assert_eq!(then, (ONE / 2, ONE / 2, ONE));
}

#[test]
fn lanes_agree_but_at_borders() {
    let [then, end] = frequencies(&format!("%is = icmp ult i64 %x, %n {THEN}"), ["in", "out"]);
    assert_eq!(then, (ONE / 16 * 15, ONE / 16 * 15, ONE / 8 * 7));
    assert_eq!(end.0, ONE);
    let both = "%l = icmp ugt i64 %x, 0 %r = icmp ult i64 %x, %n %is = select i1 %l, i1 %r, i1 false";
    let [then] = frequencies(&format!("{both} {THEN}"), ["in"]);
    assert_eq!((then.0, then.1), (ONE / 16 * 15, ONE / 16 * 15));
    // Few are at the begin of a row.
    let [then] = frequencies(&format!("%is = icmp ult i64 %x, 3 {THEN}"), ["in"]);
    assert_eq!((then.0, then.1), (ONE / 16, ONE / 16));
    // What is behind a block of a border is behind the border.
    let body = "%is = icmp ult i64 %x, %n br i1 %is, label %then, label %end
        then: store i32 %v, ptr %at br i1 %c, label %more, label %end
        more: %deep = add i32 %v, 3 store i32 %deep, ptr %p br label %end
        end: ret void";
    let [deep] = frequencies(body, ["deep"]);
    assert_eq!((deep.0, deep.1), (ONE / 32 * 15, ONE / 32 * 15));
}

#[test]
fn a_trap_is_never_taken() {
    let body = "%is = icmp ult i32 %v, 9 br i1 %is, label %good, label %bad
        bad: call void @fails() unreachable
        good: %in = add i32 %v, 1 ret void";
    assert_eq!(frequencies(body, ["in"]), [(ONE, ONE, ONE)]);
}

/// A loop that ends by the condition `%done`.
fn repeats(condition: &str) -> String {
    format!(
        "br label %head
        head: %i = phi i64 [ 2, %start ], [ %next, %head ] %next = add i64 %i, 2 %done = {condition}
        br i1 %done, label %end, label %head
        end: %out = add i32 %v, 1 ret void"
    )
}

#[test]
fn the_length_of_a_loop_may_be_a_constant() {
    let [head, end] = frequencies(&repeats("icmp eq i64 %next, 22"), ["i", "out"]);
    assert_eq!((head, end), ((10 * ONE, 10 * ONE, ONE), (ONE, ONE, ONE)));
    let down = repeats("icmp eq i64 %next, -8").replace("add i64 %i, 2", "add i64 %i, -2");
    assert_eq!(frequencies(&down, ["i"])[0].0, 5 * ONE);
    assert_eq!(frequencies(&repeats("icmp eq i64 %next, %n"), ["i"])[0].0, UNKNOWN_TRIPS * ONE);
    // Not the number that the loop counts.
    assert_eq!(frequencies(&repeats("icmp eq i64 %n, 22"), ["i"])[0].0, UNKNOWN_TRIPS * ONE);
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_is_as_long_as_the_longest() {
    let body = format!("%w = zext i32 %v to i64 {}", repeats("icmp ugt i64 %next, %w"));
    let [head, end] = frequencies(&body, ["i", "out"]);
    assert_eq!(head, (UNKNOWN_TRIPS * ONE, UNKNOWN_TRIPS * 3 / 2 * ONE, 0));
    assert_eq!(end, (ONE, ONE, ONE));
    // No lane goes on for longer than that.
    let ends = "%w = zext i32 %v to i64 br label %head
        head: %i = phi i64 [ 0, %start ], [ %next, %latch ] %next = add i64 %i, 1 %early = icmp ugt i64 %i, %w
        br i1 %early, label %end, label %latch
        latch: store i32 %v, ptr %at %done = icmp eq i64 %next, 100 br i1 %done, label %end, label %head
        end: ret void";
    let [head] = frequencies(ends, ["i"]);
    assert_eq!((head.0, head.1), (100 * ONE, 100 * ONE));
}

#[test]
fn loops_in_loops_multiply_up_to_a_limit() {
    let mut body = "br label %head0 ".to_owned();
    for depth in 0..6 {
        let from = if depth == 0 { "start".to_owned() } else { format!("head{}", depth - 1) };
        let next = if depth == 5 { "latch5".to_owned() } else { format!("head{}", depth + 1) };
        body +=
            &format!("head{depth}: %i{depth} = phi i64 [ 0, %{from} ], [ %n{depth}, %latch{depth} ] br label %{next} ");
    }
    for depth in (0..6).rev() {
        let next = if depth == 0 { "end".to_owned() } else { format!("latch{}", depth - 1) };
        body += &format!(
            "latch{depth}: %n{depth} = add i64 %i{depth}, 1 %d{depth} = icmp eq i64 %n{depth}, 100
            br i1 %d{depth}, label %{next}, label %head{depth} "
        );
    }
    let [first, second, last] = frequencies(&format!("{body} end: ret void"), ["i0", "i1", "i5"]);
    assert_eq!([first.0, second.0, last.0], [100 * ONE, 10_000 * ONE, MOST]);
}
