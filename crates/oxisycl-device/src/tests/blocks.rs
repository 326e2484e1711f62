use std::thread;

use super::{Memory, launch, launch_cut, panic_message, zeros};
use crate::{Chunked, Id, Item, Range, ReadWrite, Write};

/// The blocks of a part of a memory.
fn blocks<const D: usize>(
    memory: &mut Memory<D>,
    range: [usize; D],
    offset: [usize; D],
    block: [usize; D],
) -> Chunked<'static, u32, D, ReadWrite> {
    // SAFETY: the accessor is used through the blocks only.
    unsafe { Chunked::from_accessor(memory.part(range, offset), Range(block)) }
}

/// Every element of the part is written by exactly one of the items, and nothing outside.
fn check_disjoint<const D: usize>(buffer: [usize; D], range: [usize; D], offset: [usize; D], block: [usize; D]) {
    let mut memory = Memory::new(buffer);
    memory.elements = zeros(Range(buffer).size());
    let chunks = blocks(&mut memory, range, offset, block);
    assert_eq!((chunks.range(), chunks.block_range()), (Range(range), Range(block)));
    let n_blocks = chunks.n_blocks();
    for d in 0..D {
        assert_eq!(n_blocks.0[d], range[d].div_ceil(block[d]));
    }
    // One item too many in each dimension: its block is empty.
    launch(n_blocks.0.map(|n| n + 1), move |item: Item<'_, D>| {
        let own = chunks.block(item);
        let is_beyond = (0..D).any(|d| item.get(d) >= n_blocks.0[d]);
        assert_eq!((own.is_empty(), own.len()), (is_beyond, own.range().size()));
        let mut n_elements = 0;
        own.fill_with(|index| {
            assert!(own.range().contains(&index));
            let old = own.get(index);
            n_elements += 1;
            old + 1
        });
        assert_eq!(n_elements, own.len());
    });
    for (position, &value) in memory.elements.iter().enumerate() {
        let (mut id, mut rest) = ([0; D], position);
        for d in (0..D).rev() {
            id[d] = rest % buffer[d];
            rest /= buffer[d];
        }
        let is_inside = (0..D).all(|d| (offset[d]..offset[d] + range[d]).contains(&id[d]));
        assert_eq!(value, u32::from(is_inside), "element {id:?}, blocks {block:?} of {range:?} at {offset:?}");
    }
}

#[test]
fn blocks_cover_their_range_once() {
    for (range, offset, block) in [(10, 0, 3), (7, 2, 7), (7, 2, 100), (1, 9, 1), (9, 1, usize::MAX)] {
        check_disjoint([10], [range], [offset], [block]);
    }
    for (range, offset, block) in [([5, 6], [0, 0], [2, 4]), ([3, 4], [1, 2], [2, 2]), ([5, 1], [0, 3], [3, 9])] {
        check_disjoint([5, 6], range, offset, block);
    }
    for (range, offset, block) in [([3, 3, 4], [0, 0, 0], [2, 2, 3]), ([2, 1, 2], [1, 1, 1], [1, 1, 1])] {
        check_disjoint([3, 3, 4], range, offset, block);
    }
}

#[test]
fn huge_ids_and_blocks_do_not_wrap_around() {
    let mut memory = Memory::new([10]);
    let half = usize::MAX / 2 + 1;
    for block in [1, 2, 3, half, usize::MAX] {
        let chunks = blocks(&mut memory, [10], [0], [block]);
        for id in [half, half + 1, usize::MAX - 1] {
            launch_cut([1], [id], &[], move |item: Item<'_, 1>| {
                let own = chunks.block(item);
                assert!(own.is_empty(), "id {id} owns {:?} at {:?}", own.range(), own.origin());
                assert!(own.as_cells().is_empty());
                own.fill(99);
            });
        }
    }
    let mut memory = Memory::new([4, 4]);
    let chunks = blocks(&mut memory, [4, 4], [0, 0], [half, 2]);
    launch_cut([1, 1], [2, 0], &[], move |item: Item<'_, 2>| assert!(chunks.block(item).is_empty()));
    launch_cut([1, 1], [0, usize::MAX - 1], &[], move |item: Item<'_, 2>| {
        assert!(chunks.block(item).is_empty());
        (0..4).for_each(|y| assert!(chunks.block(item).row(y).is_empty()));
    });
}

#[test]
fn indices_are_relative_to_the_block_and_checked_against_it() {
    let mut memory = Memory::new([5, 6]);
    let chunks = blocks(&mut memory, [5, 6], [0, 0], [2, 4]);
    launch([3, 2], move |item: Item<'_, 2>| {
        let own = chunks.block(item);
        let origin = own.origin();
        assert_eq!(origin, Id([item.get(0) * 2, item.get(1) * 4]));
        let value = |y: usize, x: usize| ((origin[0] + y) * 6 + origin[1] + x) as u32;
        let [rows, columns] = own.range().0;
        for y in 0..rows {
            assert!(own.row(y).iter().map(|cell| cell.get()).eq((0..columns).map(|x| value(y, x))));
            (0..columns)
                .for_each(|x| assert_eq!((own.get([y, x]), own.cell([y, x]).get()), (value(y, x), value(y, x))));
        }
        for index in [[rows, 0], [0, columns], [usize::MAX, 0], [usize::MAX; 2]] {
            panic_message(|| own.set(index, 0));
            panic_message(|| _ = own.get(index));
            panic_message(|| _ = own.cell(index));
        }
        panic_message(|| _ = own.row(rows));
    });
    assert_eq!(memory.elements, Memory::new([5, 6]).elements);
}

#[test]
fn cells_and_stores_of_a_block_may_alias() {
    let mut memory = Memory::new([6]);
    let chunks = blocks(&mut memory, [6], [0], [3]);
    launch([2], move |item: Item<'_, 1>| {
        let (own, same) = (chunks.block(item), chunks.block(item));
        let cells = own.as_cells();
        same.set(0, 10);
        cells[1].set(cells[0].get() + 1);
        same.fill_with(|index| own.get(index) + cells[1].get());
        assert_eq!(cells[1].get(), own.get(1));
    });
    assert_eq!(memory.elements, [21, 22, 24, 21, 22, 27]);
}

#[test]
fn blocks_of_a_write_accessor_are_filled() {
    let mut memory = Memory::new([5]);
    // SAFETY: the accessor is used through the blocks only.
    let chunks = unsafe { Chunked::from_accessor(memory.all::<Write>(), Range([2])) };
    launch([3], move |item: Item<'_, 1>| chunks.block(item).fill(item.index() as u32));
    assert_eq!(memory.elements, [0, 0, 1, 1, 2]);
}

#[test]
fn blocks_of_different_threads_are_disjoint() {
    let mut memory = Memory::new([7, 7]);
    let chunks = blocks(&mut memory, [7, 7], [0, 0], [2, 3]);
    let kernel = move |item: Item<'_, 2>| chunks.block(item).fill_with(|index| (item.linear_id() + index[0]) as u32);
    thread::scope(|scope| {
        for begin in [0, 2] {
            scope.spawn(move || launch_cut([2, 3], [begin, 0], &[2, 5], kernel));
        }
    });
    assert_eq!(memory.elements.iter().filter(|&&value| value < 7).count(), 49);
}

#[test]
fn an_accessor_without_elements_has_no_blocks() {
    let mut memory = Memory::new([4, 5]);
    let chunks = blocks(&mut memory, [0, 5], [4, 0], [2, 2]);
    assert_eq!(chunks.n_blocks(), Range([0, 3]));
    launch([2, 3], move |item: Item<'_, 2>| {
        let own = chunks.block(item);
        assert!(own.is_empty());
        own.fill(1);
        panic_message(|| own.set([0, 0], 1));
    });
    assert_eq!(memory.elements, Memory::new([4, 5]).elements);
}
