//! Unrolls loops that wait for memory further than LLVM would.
//!
//! LLVM unrolls a loop by the cost of its body, and takes a load for as cheap as a sum. A loop that does little more than load is as fast as
//! the number of its loads that are under way. The device library knows such loops, and marks them by `builtin::unroll_loop`.
//! Once calls are inlined and the size of the body is known, the mark becomes LLVM's own. It is put at the end of the innermost loop around
//! it.
//!
//! Invariant: the mark decides about speed only.

use crate::analyses::natural_loops::Loop;
use crate::llvm::Module;

/// The mark of a loop, with its unroll factor.
const UNROLL_LOOP: &str = "oxisycl.unroll_loop";
/// LLVM's metadata for an unroll factor.
pub(super) const COUNT: &str = "llvm.loop.unroll.count";
/// The most instructions of an unrolled body. Larger ones need more registers than a thread has.
pub(super) const LARGEST_BODY: usize = 512;

/// Replaces the marks by LLVM's metadata.
pub(crate) fn mark_loops(module: &Module<'_>) {
    let Some(mark) = module.function(UNROLL_LOOP) else { return };
    for call in mark.users() {
        let times = call.arguments().first().and_then(|times| times.integer()).unwrap_or(1) as usize;
        let block = call.block();
        call.erase();
        if let Some(found) = Loop::around(block)
            && let Some(times) = divisor(times, LARGEST_BODY / found.n_instructions().max(1))
        {
            found.ends.into_iter().for_each(|end| end.set_loop_hint(COUNT, times as u32));
        }
    }
    mark.delete_function();
}

/// The largest divisor of `of` up to `limit`, if it is above one. A loop with a multiple of it as its count leaves no remainder.
fn divisor(of: usize, limit: usize) -> Option<usize> {
    (2..=of.min(limit)).rev().find(|candidate| of.is_multiple_of(*candidate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::Value;
    use crate::passes::tests::{context, module};

    /// The hint at each branch of a kernel, in their order.
    fn hints(body: &str) -> Vec<Option<u32>> {
        let context = context();
        let text = format!(
            "declare void @{UNROLL_LOOP}(i32) memory(inaccessiblemem: readwrite)
            define void @k(ptr %p, i1 %a, i1 %b) {{
            {body}
            }}"
        );
        let module = module(&context, &text);
        mark_loops(&module);
        module.verify("unrolling").expect("a valid module");
        assert!(module.function(UNROLL_LOOP).is_none());
        let text = module.to_string();
        let definition =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = ")).expect("a node");
        let hint = |end: Value<'_>| {
            let end = end.print();
            let id = end.split_once("!llvm.loop ")?.1.trim();
            // A node that begins with itself, and has the hint behind that.
            let hint =
                definition(id).strip_prefix(&format!("distinct !{{{id}, ")).expect("an id").trim_end_matches('}');
            let number = definition(hint).strip_prefix(&format!("!{{!\"{COUNT}\", i32 ")).expect("a hint");
            Some(number.trim_end_matches('}').parse().expect("a number"))
        };
        let kernel = module.function("k").expect("the kernel");
        kernel.blocks().into_iter().map(|block| hint(block.end())).collect()
    }

    #[test]
    fn the_innermost_loop_around_a_mark_is_marked() {
        let inner = "br label %o
            o: br label %h
            h: br i1 %a, label %l, label %x
            l: call void @oxisycl.unroll_loop(i32 9)
            br label %h
            x: br i1 %b, label %o, label %e
            e: ret void";
        assert_eq!(hints(inner), [None, None, None, Some(9), None, None]);
        // Two ways back.
        let two = "br label %h
            h: call void @oxisycl.unroll_loop(i32 4)
            br i1 %a, label %x, label %y
            x: br label %h
            y: br i1 %b, label %h, label %e
            e: ret void";
        assert_eq!(hints(two), [None, None, Some(4), Some(4), None]);
    }

    #[test]
    fn loops_around_others_and_places_outside_loops_are_not_marked() {
        let outer = "br label %o
            o: call void @oxisycl.unroll_loop(i32 9)
            br label %h
            h: br i1 %a, label %h, label %x
            x: br i1 %b, label %o, label %e
            e: ret void";
        assert_eq!(hints(outer), [None; 5]);
        assert_eq!(hints("call void @oxisycl.unroll_loop(i32 9)\nret void"), [None]);
        // A loop with two heads.
        let two_heads = "br i1 %a, label %x, label %y
            x: call void @oxisycl.unroll_loop(i32 9)
            br label %y
            y: br i1 %b, label %x, label %e
            e: ret void";
        assert_eq!(hints(two_heads), [None, None, None, None]);
    }

    #[test]
    fn a_large_body_is_unrolled_less_or_not_at_all() {
        let of = |n: usize| {
            let stores = "store volatile i32 1, ptr %p\n".repeat(n);
            hints(&format!(
                "br label %h\nh: call void @oxisycl.unroll_loop(i32 9)\n{stores}br i1 %a, label %h, label %e\ne: ret void"
            ))[1]
        };
        assert_eq!((of(10), of(100), of(400)), (Some(9), Some(3), None));
    }

    #[test]
    fn divisors_leave_no_rest() {
        assert_eq!(divisor(9, 100), Some(9));
        assert_eq!(divisor(9, 8), Some(3));
        assert_eq!(divisor(8, 7), Some(4));
        assert_eq!((divisor(9, 2), divisor(1, 100), divisor(0, 100), divisor(9, 0)), (None, None, None, None));
    }
}
