use std::vec::Vec;
use std::{format, thread, vec};

use super::{Memory, launch, launch_cut, panic_message, run_single};
use crate::{Accessor, AccessorParts, Id, Item, Range, Read, ReadWrite, Write};

#[test]
fn own_elements_are_relative_to_the_offset_and_nothing_else_changes() {
    let mut memory = Memory::new([4, 5]);
    let data = memory.part::<ReadWrite>([2, 3], [1, 2]);
    assert_eq!((data.range(), data.offset(), data.buffer_range()), (Range([2, 3]), Id([1, 2]), Range([4, 5])));
    assert_eq!((data.size(), data.is_empty()), (6, false));
    launch([2, 3], move |item: Item<'_, 2>| {
        assert_eq!(data.get(item), ((item.get(0) + 1) * 5 + item.get(1) + 2) as u32);
        data.set(item, 100 + item.linear_id() as u32);
    });
    let mut expected: Vec<u32> = (0..20).collect();
    for (position, value) in [7, 8, 9, 12, 13, 14].into_iter().zip(100..) {
        expected[position] = value;
    }
    assert_eq!(memory.elements, expected);
}

#[test]
fn cells_of_one_item_alias_and_update_sees_them() {
    let mut memory = Memory::new([3]);
    let data = memory.all::<ReadWrite>();
    launch([3], move |item: Item<'_, 1>| {
        let (a, b) = (data.cell(item), data.cell(item));
        a.set(b.get() + 10);
        data.set(item, data.get(item) + 10);
        data.update(item, |x| {
            // Re-entrant use of the same element.
            b.set(0);
            x + a.get() + 10
        });
        assert_eq!(a.get(), b.get());
    });
    assert_eq!(memory.elements, [30, 31, 32]);
}

#[test]
fn a_launch_beyond_the_accessors_range_panics_and_touches_nothing() {
    for (extent, offset) in [([3, 3], [0, 0]), ([2, 4], [0, 0]), ([1, 1], [2, 0]), ([1, 1], [0, 3])] {
        let mut memory = Memory::new([4, 5]);
        let data = memory.part::<ReadWrite>([2, 3], [1, 1]);
        let message = panic_message(|| launch_cut(extent, offset, &[], move |item: Item<'_, 2>| data.set(item, 99)));
        let address = memory.elements.as_ptr().wrapping_add(6).addr();
        let expected = format!("beyond the accessor's range [2, 3]{}{address:x}", oxisycl_types::BUFFER_AT);
        assert!(message.ends_with(&expected), "{message}");
        panic_message(|| launch_cut(extent, offset, &[], move |item: Item<'_, 2>| _ = data.get(item)));
        panic_message(|| launch_cut(extent, offset, &[], move |item: Item<'_, 2>| _ = data.cell(item)));
        panic_message(|| launch_cut(extent, offset, &[], move |item: Item<'_, 2>| data.update(item, |_| 99)));
        assert_eq!(memory.elements, Memory::new([4, 5]).elements);
    }
}

#[test]
fn a_launch_may_be_smaller_than_the_accessors_range() {
    let mut memory = Memory::new([4]);
    let data = memory.all::<Write>();
    launch([2], move |item: Item<'_, 1>| data.set(item, 9));
    assert_eq!(memory.elements, [9, 9, 2, 3]);
}

#[test]
fn every_index_is_checked_against_the_part_and_not_the_buffer() {
    let mut memory = Memory::new([4, 5]);
    let data = memory.part::<Read>([2, 3], [1, 1]);
    launch([1, 1], move |item: Item<'_, 2>| assert_eq!(*data.at(item, [1, 2]), 13));
    for index in [[2, 0], [0, 3], [usize::MAX, 0], [0, usize::MAX], [usize::MAX; 2]] {
        let message = panic_message(|| launch([1, 1], move |item: Item<'_, 2>| _ = data.at(item, index)));
        assert!(message.contains("outside the accessor's range [2, 3]"), "{message}");
    }
    let data = memory.part::<ReadWrite>([2, 3], [1, 1]);
    for index in [[2, 0], [0, 3], [usize::MAX, 1]] {
        panic_message(|| run_single(move |task| data.set_at(task, index, 0)));
        panic_message(|| run_single(move |task| _ = data.get_at(task, index)));
        panic_message(|| run_single(move |task| _ = data.cells(task).at(index)));
        // SAFETY: there is one work-item.
        panic_message(|| launch([1, 1], move |item: Item<'_, 2>| unsafe { data.scatter(item, index, 0) }));
        // SAFETY: there is one work-item.
        panic_message(|| launch([1, 1], move |item: Item<'_, 2>| _ = unsafe { data.gather(item, index) }));
    }
    assert_eq!(memory.elements, Memory::new([4, 5]).elements);
}

#[test]
fn a_single_task_reads_and_writes_anywhere_also_while_it_has_cells() {
    let mut memory = Memory::new([2, 3]);
    let data = memory.all::<ReadWrite>();
    run_single(move |task| {
        let cells = data.cells(task);
        let cell = cells.at([1, 2]);
        data.set_at(task, [1, 2], 50);
        cell.set(cell.get() + data.get_at(task, [0, 1]));
        cells[[0, 0]].set(data.get_at(task, [1, 2]));
        assert_eq!(cells.range(), Range([2, 3]));
    });
    assert_eq!(memory.elements, [51, 1, 2, 3, 4, 51]);
}

#[test]
fn cells_of_a_line_are_a_slice() {
    let mut memory = Memory::new([5]);
    let data = memory.part::<ReadWrite>([3], [1]);
    run_single(move |task| {
        let cells = data.cells(task);
        cells.as_slice().iter().for_each(|cell| cell.set(cell.get() * 2));
        cells[0].swap(&cells[2]);
    });
    assert_eq!(memory.elements, [0, 6, 4, 2, 4]);
}

#[test]
fn scattered_stores_land_where_they_should() {
    let mut memory = Memory::new([4]);
    let data = memory.all::<ReadWrite>();
    // SAFETY: every item stores to another element, which only it loads.
    launch([4], move |item: Item<'_, 1>| unsafe {
        let at = 3 - item.index();
        data.scatter(item, at, data.gather(item, at) + 10 * item.index() as u32);
    });
    assert_eq!(memory.elements, [30, 21, 12, 3]);
}

#[test]
fn an_accessor_without_elements_never_leaves_its_allocation() {
    let mut memory = Memory::new([4, 5]);
    let start = memory.elements.as_mut_ptr();
    for (range, offset) in [([0, 5], [4, 0]), ([4, 0], [0, 5]), ([0, 0], [4, 5])] {
        let data = memory.part::<Read>(range, offset);
        assert_eq!((data.as_ptr(), data.is_empty(), data.size()), (start, true, 0));
        run_single(move |task| {
            let view = data.view(task);
            assert_eq!(view.iter().count(), 0);
            assert!(view.get([0, 0]).is_none());
            (0..range[0]).for_each(|y| assert!(view.row(y).is_empty()));
        });
    }
    // A buffer without elements may have extents whose product overflows, and then offsets that lead anywhere, even to null.
    let pointer = std::ptr::without_provenance_mut::<u8>(64);
    let buffer = Range([0, usize::MAX, usize::MAX]);
    let parts = AccessorParts { pointer, buffer, offset: Id([0, 64, 0]), range: Range([0; 3]) };
    // SAFETY: there are no elements.
    let data: Accessor<'_, u8, 3, Read> = unsafe { Accessor::from_parts(parts) };
    assert_eq!(data.as_ptr(), pointer);
    run_single(|task| assert_eq!(data.view(task).iter().len(), 0));
}

#[test]
fn as_ptr_is_the_buffers_first_element_whatever_the_offset() {
    let mut memory = Memory::new([4, 5]);
    let start = memory.elements.as_mut_ptr();
    assert_eq!(memory.part::<Read>([2, 3], [1, 2]).as_ptr(), start);
    assert_eq!(memory.all::<Read>().as_ptr(), start);
}

#[test]
fn work_items_on_different_threads_own_different_elements() {
    let mut memory = Memory::new([8, 8]);
    let mut input = Memory::new([8, 8]);
    let (data, input) = (memory.all::<ReadWrite>(), input.all::<Read>());
    let kernel = move |item: Item<'_, 2>| {
        let mirrored = input.view(item)[[item.get(1), item.get(0)]];
        data.update(item, |x| x + mirrored);
    };
    thread::scope(|scope| {
        for half in [0, 4] {
            scope.spawn(move || launch_cut([4, 8], [half, 0], &[11], kernel));
        }
    });
    let expected: Vec<u32> = (0..64).map(|i| i + (i % 8) * 8 + i / 8).collect();
    assert_eq!(memory.elements, expected);
}

#[test]
fn elements_may_have_padding_and_be_of_any_kind() {
    let mut elements = vec![(1u8, Some('a'), [0.5f64; 2]); 3];
    let parts =
        AccessorParts { pointer: elements.as_mut_ptr(), buffer: Range([3]), offset: Id([0]), range: Range([3]) };
    // SAFETY: the vector lives, and is not used until the kernel has ended.
    let data: Accessor<'_, (u8, Option<char>, [f64; 2]), 1, ReadWrite> = unsafe { Accessor::from_parts(parts) };
    launch([3], |item: Item<'_, 1>| data.update(item, |(n, _, floats)| (n + 1, None, floats)));
    assert_eq!(elements, [(2, None, [0.5; 2]); 3]);
}

#[test]
fn accessors_print_their_mode_and_place() {
    let mut memory = Memory::new([4, 5]);
    let text = format!("{:?}", memory.part::<Write>([2, 3], [1, 2]));
    assert_eq!(text, "Accessor { mode: Write, offset: [1, 2], range: [2, 3], .. }");
}
