//! The function of a group: it runs the regions in their order, each for all work-items.

use super::code::{Code, Exit};
use super::keeping::{ALIGNMENT, Keeping, Way};
use super::regions::{Frame, number_of};
use crate::error::CompileError;
use crate::llvm::{self, Attribute, Block, Builder, Module, Type, Value};
use crate::spmd::item_loops::{ItemLoop, add_loop};

/// Defines the function of a group, from its declaration.
pub(super) fn define<'c>(
    module: &Module<'c>,
    code: &Code<'c>,
    keeping: &Keeping<'c>,
    (group, body): (Value<'c>, Value<'c>),
    loops: &[ItemLoop],
) -> Result<(), CompileError> {
    let context = module.context();
    let number = Type::int(context, 64);
    let [planes, rows, row] = counts(group);
    let blocks: Vec<Block<'c>> = (0..=loops.len()).map(|_| Block::append(context, group)).collect();
    let end = Block::append(context, group);
    let block_of = |exit: Exit| match exit {
        Exit::Barrier(barrier) => blocks[barrier + 2],
        Exit::End => end,
    };
    let builder = Builder::at_end(context, blocks[0]);
    let layout = Frame::of(context, keeping);
    let frame = builder.alloca(number.array(layout.places() as u64), Type::int(context, 32).constant(1));
    let at = |builder: &Builder<'c>, place: usize| layout.address(builder, frame, place);
    builder.store(group.parameter(0), at(&builder, Frame::CAPTURES));
    // With one more, for the result of an algorithm.
    let items = builder.add(builder.multiply(builder.multiply(planes, rows), row), number.constant(1));
    for (index, array) in keeping.arrays.iter().enumerate() {
        let bytes = builder.multiply(items, number.constant(array.stride));
        let first = builder.alloca(Type::int(context, 8), bytes);
        first.set_alignment(array.alignment.max(ALIGNMENT));
        builder.store(first, at(&builder, layout.array(index)));
    }
    builder.branch(blocks[1]);
    for (region, of_region) in loops.iter().enumerate() {
        let steps = of_region.steps(module)?;
        let builder = Builder::at_end(context, blocks[region + 1]);
        let zero = number.constant(0);
        add_loop(context, group, &builder, (zero, planes, 1), &[], |z| {
            builder.store(z, at(&builder, Frame::PLANE));
            add_loop(context, group, &builder, (zero, rows, 1), &[], |y| {
                builder.store(y, at(&builder, Frame::ROW));
                let first = builder.multiply(builder.add(builder.multiply(z, rows), y), row);
                builder.store(first, at(&builder, Frame::FIRST));
                _ = builder.call(steps, &[frame, row]);
            });
        });
        for same in left(code, keeping, region) {
            let now = builder.load(keeping.same[same], at(&builder, layout.same(same, true)));
            builder.store(now, at(&builder, layout.same(same, false)));
        }
        let exits = code.exits(region);
        match exits[..] {
            // All work-items panic, or go round for ever.
            [] => builder.branch(end),
            [exit] => builder.branch(block_of(exit)),
            [ref others @ .., last] => {
                let next = builder.load(number, at(&builder, Frame::NEXT));
                for exit in others {
                    let otherwise = Block::append(context, group);
                    let is_it = builder.is_equal(next, number.constant(number_of(*exit)));
                    builder.branch_if(is_it, block_of(*exit), otherwise);
                    builder.move_to(otherwise);
                }
                builder.branch(block_of(last));
            }
        }
    }
    Builder::at_end(context, end).ret_void();
    llvm::describe(module, group, body);
    // Its arrays are on the stack, once for each call.
    group.add_attribute(Attribute::FUNCTION, Attribute::plain(context, "noinline", 0));
    Ok(())
}

/// The extent of a group. One that has a fixed shape has constants, so that loops have them.
pub(super) fn counts(group: Value<'_>) -> [Value<'_>; 3] {
    let calls = group.calls();
    [1, 2, 3].map(|index| match calls[..] {
        [call] if call.operand(index).integer().is_some() => call.operand(index),
        _ => group.parameter(index),
    })
}

/// The places of values that a region leaves for all work-items.
fn left(code: &Code<'_>, keeping: &Keeping<'_>, region: usize) -> Vec<usize> {
    let pieces = code.region(region);
    let mut left = Vec::new();
    for exit in code.exits(region) {
        let Exit::Barrier(barrier) = exit else { continue };
        for value in keeping.alive_at(code, barrier + 1) {
            if let Some(Way::Same(number)) = keeping.way(value)
                && code.piece(value).is_some_and(|piece| pieces.contains(&piece))
                && !left.contains(&number)
            {
                left.push(number);
            }
        }
    }
    left
}
