use super::*;
use crate::passes::tests::{context, module};

/// The graph of a function with this body, in which the tests' blocks begin with a value of their own name.
fn with_graph(body: &str, test: impl FnOnce(&Graph<'_>)) {
    let context = context();
    let module = function(&context, body);
    match Graph::of(module.function("f").expect("the function")) {
        Ok(graph) => test(&graph),
        Err(refusal) => panic!("refused: {}", refusal.reason),
    }
}

fn function<'c>(context: &'c crate::llvm::Context, body: &str) -> crate::llvm::Module<'c> {
    let text = format!(
        "declare void @fails() noreturn
        declare void @may_fail()
        declare i32 @personality(...)
        define void @f(i1 %c, i1 %d, i32 %n) personality ptr @personality {{ start: {body} }}"
    );
    module(context, &text)
}

fn refusal(body: &str) -> Option<Reason> {
    let context = context();
    let module = function(&context, body);
    Graph::of(module.function("f").expect("the function")).err().map(|refusal| refusal.reason)
}

fn numbers(blocks: impl IntoIterator<Item = BlockIdx>) -> Vec<usize> {
    blocks.into_iter().map(BlockIdx::index).collect()
}

fn pairs(edges: Vec<Edge>) -> Vec<(usize, usize)> {
    edges.into_iter().map(|(from, to)| (from.index(), to.index())).collect()
}

/// Blocks 0 to 9. The inner loop is left to its parent's body, and to the function.
const NESTED: &str = "br label %outer
    outer: br label %inner
    inner: br i1 %c, label %body, label %left
    body: br i1 %d, label %latch, label %away
    latch: br label %inner
    left: br i1 %c, label %again, label %out
    again: br label %outer
    out: br label %end
    away: br label %end
    end: ret void";

#[test]
fn loops_are_found_with_their_nodes_and_edges() {
    with_graph(NESTED, |graph| {
        let [outer, inner] = [LoopIdx(0), LoopIdx(1)];
        assert_eq!(graph.loops().collect::<Vec<_>>(), [outer, inner]);
        assert_eq!((graph.parent(outer), graph.parent(inner)), (None, Some(outer)));
        assert_eq!(
            [graph.header(outer), graph.latch(outer), graph.header(inner), graph.latch(inner)].map(BlockIdx::index),
            [1, 6, 2, 4]
        );
        assert_eq!(graph.loop_blocks(outer).len(), 6);
        assert_eq!(graph.innermost(BlockIdx(3)), Some(inner));
        assert_eq!((graph.headed(BlockIdx(2)), graph.headed(BlockIdx(3))), (Some(inner), None));
        let block = |index| Node::Block(BlockIdx(index));
        assert_eq!(graph.nodes(Some(outer)), [block(1), Node::Loop(inner), block(5), block(6)]);
        assert_eq!(graph.nodes(Some(inner)), [block(2), block(3), block(4)]);
        let in_function = graph.nodes(None);
        assert_eq!(in_function[..2], [block(0), Node::Loop(outer)]);
        assert_eq!(in_function.last(), Some(&block(9)));
        assert_eq!(in_function.len(), 5);
        assert_eq!(graph.node_of(BlockIdx(3), None), Node::Loop(outer));
        assert_eq!(graph.node_of(BlockIdx(3), Some(outer)), Node::Loop(inner));
        assert_eq!(graph.node_of(BlockIdx(3), Some(inner)), block(3));
        assert_eq!(pairs(graph.in_edges(Node::Loop(outer))), [(0, 1)]);
        assert_eq!(pairs(graph.in_edges(Node::Loop(inner))), [(1, 2)]);
        assert_eq!(pairs(graph.in_edges(block(5))), [(2, 5)]);
        let mut exits = pairs(graph.exits(inner));
        exits.sort_unstable();
        assert_eq!(exits, [(2, 5), (3, 8)]);
        assert!(graph.contains(Some(outer), BlockIdx(3)) && !graph.contains(Some(inner), BlockIdx(5)));
    });
}

#[test]
fn blocks_that_do_not_return_are_taken_out() {
    let body = "br i1 %c, label %check, label %forever
        check: br i1 %d, label %fail, label %call
        fail: call void @fails() unreachable
        call: invoke void @may_fail() to label %end unwind label %pad
        pad: %p = landingpad { ptr, i32 } cleanup resume { ptr, i32 } %p
        forever: br label %forever
        end: ret void
        unreached: br label %end";
    with_graph(body, |graph| {
        assert_eq!(numbers(graph.order().iter().copied()), [0, 1, 3, 6]);
        assert_eq!(numbers(graph.traps(BlockIdx(3))), [4]);
        assert_eq!(numbers(graph.live_successors(BlockIdx(0))), [1]);
        assert_eq!(numbers(graph.successors(BlockIdx(0)).iter().copied()), [1, 5]);
        assert_eq!(numbers(graph.predecessors(BlockIdx(6)).iter().copied()), [3]);
        assert_eq!(graph.loops().count(), 0);
        assert_eq!(graph.exit(), BlockIdx(6));
    });
}

#[test]
fn an_edge_that_stands_twice_counts_once() {
    with_graph("br i1 %c, label %end, label %end end: ret void", |graph| {
        assert_eq!(graph.successors(graph.entry()).len(), 1);
        assert_eq!(graph.predecessors(graph.exit()).len(), 1);
    });
}

#[test]
fn what_has_not_the_form_is_refused() {
    let cases = [
        ("call void @fails() unreachable", Reason::NeverReturns),
        ("br i1 %c, label %a, label %b a: ret void b: ret void", Reason::SeveralReturns),
        (
            "br i1 %c, label %a, label %b a: br i1 %d, label %b, label %end b: br label %a end: ret void",
            Reason::Irreducible,
        ),
        (
            "br label %h h: br i1 %c, label %a, label %b a: br i1 %d, label %h, label %end b: br label %h end: ret void",
            Reason::LoopForm,
        ),
        (
            "br i1 %c, label %h, label %a a: br label %h h: br i1 %d, label %h, label %end end: ret void",
            Reason::LoopForm,
        ),
        (
            "br label %h h: br i1 %c, label %h, label %k k: br i1 %d, label %k, label %end end: ret void",
            Reason::LoopForm,
        ),
        ("switch i32 %n, label %end [ i32 1, label %a ] a: br label %end end: ret void", Reason::Switch),
        ("indirectbr ptr blockaddress(@f, %end), [label %end] end: ret void", Reason::ComputedJump),
        ("callbr void asm \"\", \"!i\"() to label %end [label %a] a: br label %end end: ret void", Reason::ComputedJump),
        (
            "invoke void @may_fail() to label %end unwind label %pad
            pad: %p = landingpad { ptr, i32 } catch ptr null br label %end
            end: ret void",
            Reason::CaughtPanic,
        ),
        (
            "br label %h h: %i = phi i32 [ 0, %start ], [ %next, %h ] %next = add i32 %i, 1 br i1 %c, label %h, label %end
            end: %sum = add i32 %next, 1 ret void",
            Reason::OpenLoop,
        ),
        (
            "br label %h h: %i = phi i32 [ 0, %start ], [ %next, %h ] %next = add i32 %i, 1 br i1 %c, label %h, label %out
            out: br i1 %d, label %fail, label %end
            fail: %sum = add i32 %next, 1 call void @fails() unreachable
            end: ret void",
            Reason::OpenLoop,
        ),
    ];
    for (body, reason) in cases {
        assert_eq!(refusal(body), Some(reason), "{body}");
    }
    let closed =
        "br label %h h: %i = phi i32 [ 0, %start ], [ %next, %h ] %next = add i32 %i, 1 br i1 %c, label %h, label %end
        end: %last = phi i32 [ %next, %h ] %sum = add i32 %last, 1 ret void";
    assert_eq!(refusal(closed), None);
    // The panic is one of the loop's body.
    let panics = "br label %h
        h: %i = phi i32 [ 0, %start ], [ %next, %last ] %next = add i32 %i, 1 br i1 %d, label %fail, label %last
        last: br i1 %c, label %h, label %end
        fail: %sum = add i32 %next, 1 call void @fails() unreachable
        end: ret void";
    assert_eq!(refusal(panics), None);
}

#[test]
fn what_is_too_large_is_refused() {
    let chain = |count: usize| {
        let blocks: String = (1..count).map(|index| format!("br label %b{index} b{index}: ")).collect();
        blocks + "ret void"
    };
    assert_eq!(refusal(&chain(MAX_BLOCKS)), None);
    assert_eq!(refusal(&chain(MAX_BLOCKS + 1)), Some(Reason::TooManyBlocks(MAX_BLOCKS + 1)));
    let nest = |depth: usize| {
        let headers: String = (0..depth).map(|index| format!("br label %h{index} h{index}: ")).collect();
        let latches: String = (0..depth)
            .rev()
            .map(|index| format!("br label %l{index} l{index}: br i1 %c, label %h{index}, label %e{index} e{index}: "))
            .collect();
        headers + &latches + "ret void"
    };
    assert_eq!(refusal(&nest(MAX_NESTED_LOOPS)), None);
    assert_eq!(refusal(&nest(MAX_NESTED_LOOPS + 1)), Some(Reason::TooManyNestedLoops(MAX_NESTED_LOOPS + 1)));
}
