//! Moves blocks that end the work-item to the ends of their functions.
//!
//! A panic is built where it was in the source, between the code before and after its check. Code generators keep that order, so that
//! each check jumps over the panic's code in what nearly every work-item executes. Only the order changes.

use crate::llvm::{Block, Module, Opcode};
use rustc_hash::FxHashSet;

/// Moves the blocks after which a work-item always ends to the ends of their functions.
pub(crate) fn move_endings_back(module: &Module<'_>) {
    for function in module.functions() {
        if function.is_declaration() {
            continue;
        }
        let blocks = function.blocks();
        let endings = endings(&blocks);
        // A function that never returns is called where it is wanted.
        if endings.contains(&blocks[0]) {
            continue;
        }
        let end = blocks[blocks.len() - 1];
        let mut last = end;
        for block in blocks.into_iter().filter(|block| endings.contains(block) && *block != end) {
            block.move_after(last);
            last = block;
        }
    }
}

/// The blocks from which every path ends at an `unreachable`.
pub(crate) fn endings<'c>(blocks: &[Block<'c>]) -> FxHashSet<Block<'c>> {
    let mut endings = FxHashSet::default();
    loop {
        let before = endings.len();
        // Backwards, since most blocks come after those that lead to them.
        for &block in blocks.iter().rev() {
            let successors = block.successors();
            let is_ending = if successors.is_empty() {
                block.end().is(Opcode::UNREACHABLE)
            } else {
                successors.iter().all(|successor| endings.contains(successor))
            };
            if is_ending {
                endings.insert(block);
            }
        }
        if endings.len() == before {
            return endings;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::tests::{context, module, ptx};

    #[test]
    fn what_ends_the_work_item_comes_after_what_goes_on() {
        let context = context();
        let text = "
            declare void @record(i64)
            define void @f(i64 %i, i64 %n, ptr %p) {
            start:
              %inside = icmp ult i64 %i, %n
              br i1 %inside, label %read, label %outside
            outside:
              call void @record(i64 %i)
              br label %end
            end:
              unreachable
            read:
              %place = getelementptr i64, ptr %p, i64 %i
              %value = load i64, ptr %place
              %more = icmp ult i64 %value, %n
              br i1 %more, label %write, label %large
            large:
              call void @record(i64 %value)
              unreachable
            write:
              store i64 0, ptr %place
              ret void
            }";
        let module = module(&context, text);
        move_endings_back(&module);
        let code = ptx(&module);
        let place = |what: &str| code.find(what).unwrap_or_else(|| panic!("no {what} in {code}"));
        assert!(place("ret;") < place("call.uni"), "{code}");
        // Each check jumps away where it fails, and goes on where it does not.
        assert_eq!(code.matches(" bra ").count(), 2, "{code}");
        assert_eq!(code.matches("bra.uni").count(), 0, "{code}");
    }
}
