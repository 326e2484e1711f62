use std::vec::Vec;
use std::{thread, vec};

use super::{Memory, launch, panic_message, run_single};
use crate::{Id, Item, Range, Read, View};

/// The view of a part, with the values that it should have.
fn with_view<const D: usize>(
    buffer: [usize; D],
    range: [usize; D],
    offset: [usize; D],
    check: impl Fn(View<'_, u32, D>, &[u32]) + Copy,
) {
    let mut memory = Memory::new(buffer);
    let data = memory.part::<Read>(range, offset);
    let positions = (0..Range(range).size()).map(|linear| {
        let (mut id, mut rest) = (offset, linear);
        for d in (0..D).rev() {
            id[d] += rest % range[d];
            rest /= range[d];
        }
        Range(buffer).linear(&Id(id)) as u32
    });
    let expected: Vec<u32> = positions.collect();
    run_single(|task| check(data.view(task), &expected));
}

#[test]
fn a_view_gives_its_elements_by_index_row_and_iterator() {
    for (range, offset) in [([4, 5], [0, 0]), ([2, 3], [1, 2]), ([1, 1], [3, 4]), ([4, 1], [0, 4]), ([1, 5], [2, 0])] {
        with_view([4, 5], range, offset, |view, expected| {
            assert_eq!(view.range(), Range(range));
            assert!(view.iter().eq(expected) && view.into_iter().eq(expected));
            assert_eq!(view.iter().len(), expected.len());
            assert!(view.iter().rev().eq(expected.iter().rev()));
            // From both ends in turn, until they meet.
            let (mut both, mut left) = (view.iter(), expected.iter());
            while let Some(element) = both.next() {
                assert_eq!((Some(element), both.next_back(), both.len()), (left.next(), left.next_back(), left.len()));
            }
            assert_eq!((both.next_back(), left.len()), (None, 0));
            for (y, row) in expected.chunks(range[1]).enumerate() {
                assert_eq!(view.row(y), row);
                for (x, value) in row.iter().enumerate() {
                    assert_eq!((view.at([y, x]), &view[[y, x]], view.get([y, x])), (value, value, Some(value)));
                    assert_eq!(&view[Id([y, x])], value);
                }
            }
            for index in [[range[0], 0], [0, range[1]], [usize::MAX; 2]] {
                assert_eq!(view.get(index), None);
                panic_message(|| _ = view.at(index));
            }
            panic_message(|| _ = view.row(range[0]));
            panic_message(|| _ = view.row(usize::MAX));
        });
    }
}

#[test]
fn a_view_of_a_space_gives_rows() {
    with_view([3, 3, 4], [2, 2, 3], [1, 0, 1], |view, expected| {
        assert!(view.iter().eq(expected) && view.iter().rev().eq(expected.iter().rev()));
        for (line, row) in expected.chunks(3).enumerate() {
            assert_eq!(view.row(line / 2, line % 2), row);
        }
        panic_message(|| _ = view.row(2, 0));
        panic_message(|| _ = view.row(0, 2));
    });
}

#[test]
fn a_view_is_one_slice_exactly_if_its_elements_are_adjacent() {
    let extents = [2, 3, 2];
    for z in 0..=2 {
        for y in 0..=3 {
            for x in 0..=2 {
                let range = [z, y, x];
                let offset = [0, 1, 2].map(|d| extents[d] - range[d]);
                with_view(extents, range, offset, |view, expected| match view.to_slice() {
                    Some(slice) => assert_eq!(slice, expected, "{range:?}"),
                    None => {
                        let adjacent = expected.windows(2).all(|pair| pair[0] + 1 == pair[1]);
                        assert!(!adjacent || expected.is_empty(), "{range:?} of {extents:?} is one run");
                    }
                });
            }
        }
    }
}

#[test]
fn a_line_is_a_slice_and_falls_into_chunks() {
    with_view([9], [7], [1], |view, expected| {
        assert_eq!(view.as_slice(), expected);
        assert_eq!(view.to_slice(), Some(expected));
        assert_eq!((view[3], view[[3]]), (expected[3], expected[3]));
    });
    let mut memory = Memory::new([7]);
    let data = memory.all::<Read>();
    launch([5], move |item: Item<'_, 1>| {
        let view = data.view(item);
        let begin = (item.index() * 3).min(7);
        let expected: Vec<u32> = (begin as u32..(begin + 3).min(7) as u32).collect();
        assert_eq!(view.chunk(item, 3), expected);
        assert!(view.chunk(item, 0).is_empty());
        let everything = if item.index() == 0 { 7 } else { 0 };
        assert_eq!(view.chunk(item, usize::MAX).len(), everything);
    });
}

#[test]
fn a_window_is_checked_as_a_whole() {
    with_view([5, 6], [4, 5], [1, 1], |view, expected| {
        for y in 0..=2 {
            for x in 0..=2 {
                let window = view.window::<2, 3>([y, x]);
                for row in 0..2 {
                    let at = (y + row) * 5 + x;
                    assert_eq!(window.row(row), &expected[at..at + 3]);
                    (0..3).for_each(|column| assert_eq!(window[[row, column]], expected[at + column]));
                }
                for index in [[2, 0], [0, 3], [usize::MAX, usize::MAX]] {
                    panic_message(|| _ = window.at(index));
                }
                panic_message(|| _ = window.row(2));
            }
        }
        for origin in [[3, 0], [0, 3], [usize::MAX, 0], [0, usize::MAX], [usize::MAX, usize::MAX]] {
            panic_message(|| _ = view.window::<2, 3>(origin));
        }
        panic_message(|| _ = view.window::<5, 1>([0, 0]));
        panic_message(|| _ = view.window::<1, 6>([0, 0]));
        assert_eq!(*view.window::<4, 5>([0, 0]).at([3, 4]), expected[19]);
    });
}

#[test]
fn a_window_without_elements_may_stand_anywhere() {
    with_view([4, 4], [4, 4], [0, 0], |view, _| {
        for origin in [[0, 0], [4, 0], [0, 4], [4, 4]] {
            panic_message(|| _ = view.window::<0, 0>(origin).at([0, 0]));
            panic_message(|| _ = view.window::<0, 0>(origin).row(0));
        }
        (0..2).for_each(|y| assert!(view.window::<2, 0>([2, 4]).row(y).is_empty()));
        panic_message(|| _ = view.window::<0, 2>([4, 2]).row(0));
        panic_message(|| _ = view.window::<0, 0>([5, 0]));
    });
}

#[test]
fn views_windows_and_elements_are_shared_with_threads_inside_the_kernel() {
    let mut memory = Memory::new([4, 4]);
    let data = memory.all::<Read>();
    run_single(move |task| {
        let view = data.view(task);
        let window = view.window::<2, 2>([1, 1]);
        let sums: Vec<u32> = thread::scope(|scope| {
            let threads = vec![
                scope.spawn(move || view.iter().sum()),
                scope.spawn(move || window.row(0).iter().sum()),
                scope.spawn(move || view.row(3).iter().sum()),
            ];
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(sums, [120, 11, 54]);
    });
}
