//! Views of read accessors: any element, rows, windows, chunks and iteration (I7, I8).

use oxisycl::Inside;
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{code, iota};

tests![
    a_view_reads_any_element,
    a_view_is_indexed_by_numbers_arrays_and_ids,
    a_view_of_a_part_is_relative_to_its_offset,
    get_gives_nothing_outside_the_range,
    a_view_iterates_in_row_major_order,
    a_view_iterates_backwards,
    a_view_of_a_strided_part_iterates_over_the_part_only,
    to_slice_exists_exactly_for_contiguous_parts,
    rows_of_planes_are_slices,
    rows_of_cubes_are_slices,
    a_row_outside_the_range_is_an_error,
    chunks_cover_the_range_once,
    a_chunk_of_a_huge_length_is_cut_at_the_end,
    a_window_reads_a_block,
    a_window_must_lie_inside_the_range,
    a_window_index_outside_the_block_is_an_error,
    at_is_a_shorthand_for_one_element,
    helpers_take_views_or_tokens,
    references_of_a_view_may_be_compared_and_kept_for_the_call,
];

/// What a kernel over `range` gives for each of its work-items.
fn collect<const D: usize, const E: usize>(
    env: &Env,
    buffer: &Buffer<i32, D>,
    part: ([usize; D], [usize; D]),
    range: [usize; E],
    f: impl for<'k> Fn(View<'k, i32, D>, Item<'k, E>) -> i32 + Copy + Send + Sync + 'static,
) -> Vec<i32> {
    let results = Buffer::<i32, E>::uninit(range).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(buffer, Read, part.1, part.0);
        let results = cg.access(&results, Write);
        cg.parallel_for(range, move |item| results.set(item, f(data.view(item), item)))
    });
    kernel.unwrap().wait().unwrap();
    results.to_vec().unwrap()
}

/// The code of the error that a kernel of one work-item ends with.
fn failure<const D: usize>(
    env: &Env,
    buffer: &Buffer<i32, D>,
    part: ([usize; D], [usize; D]),
    f: impl for<'k> Fn(View<'k, i32, D>) + Copy + Send + Sync + 'static,
) -> ErrorCode {
    let kernel = env.queue().submit(|cg| {
        let data = cg.access_range(buffer, Read, part.1, part.0);
        cg.single_task(move |task| f(data.view(task)))
    });
    code(kernel.unwrap().wait())
}

fn a_view_reads_any_element(env: &Env) {
    let buffer = Buffer::from_vec(iota(100)).unwrap();
    let seen = collect(env, &buffer, ([100], [0]), [100], |view, item| view[99 - item.index()] + view[50]);
    assert_eq!(seen, (0..100).map(|i| 149 - i).collect::<Vec<_>>());
}

fn a_view_is_indexed_by_numbers_arrays_and_ids(env: &Env) {
    let line = Buffer::from_vec(iota(10)).unwrap();
    let seen = collect(env, &line, ([10], [0]), [1], |view, item| {
        view[3] * 1000 + view[[4]] * 100 + view[item.id()] * 10 + view.at(7)
    });
    assert_eq!(seen, [3407]);
    let plane = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let seen = collect(env, &plane, ([4, 5], [0, 0]), [4, 5], |view, item| {
        let [y, x] = item.id().0;
        assert_eq!(view[item.id()], view[[y, x]]);
        *view.at((y, x)) + view.range().size() as i32
    });
    assert_eq!(seen, (20..40).collect::<Vec<_>>());
}

fn a_view_of_a_part_is_relative_to_its_offset(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let part = ([2, 2, 3], [1, 2, 1]);
    let seen = collect(env, &buffer, part, [2, 2, 3], |view, item| view[item.id()]);
    assert_eq!(seen, [31, 32, 33, 36, 37, 38, 51, 52, 53, 56, 57, 58]);
}

fn get_gives_nothing_outside_the_range(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let seen = collect(env, &buffer, ([2, 3], [1, 1]), [5, 6], |view, item| view.get(item.id()).map_or(-1, |&x| x));
    let expected = (0..30).map(|i| if i / 6 < 2 && i % 6 < 3 { (i / 6 + 1) * 5 + i % 6 + 1 } else { -1 });
    assert_eq!(seen, expected.collect::<Vec<i32>>());
    let seen = collect(env, &buffer, ([2, 3], [1, 1]), [1], |view, _| {
        i32::from(view.get([usize::MAX, 0]).is_none() && view.get([0, usize::MAX]).is_none())
    });
    assert_eq!(seen, [1]);
}

/// The elements as decimal digits, most significant first.
fn digits<'a>(elements: impl IntoIterator<Item = &'a i32>) -> i32 {
    elements.into_iter().fold(0, |number, &digit| number * 10 + digit)
}

fn a_view_iterates_in_row_major_order(env: &Env) {
    let buffer = Buffer::from_vec_nd((1..9).collect::<Vec<i32>>(), [2, 2, 2]).unwrap();
    let seen = collect(env, &buffer, ([2, 2, 2], [0; 3]), [2], |view, item| {
        assert_eq!(view.iter().len(), 8);
        if item.index() == 0 { digits(view.iter()) } else { digits(view) }
    });
    assert_eq!(seen, [12_345_678; 2]);
    let empty = collect(env, &buffer, ([0, 2, 2], [2, 0, 0]), [1], |view, _| view.iter().count() as i32);
    assert_eq!(empty, [0]);
}

fn a_view_iterates_backwards(env: &Env) {
    let buffer = Buffer::from_vec_nd((0..27).map(|i| i % 10).collect::<Vec<i32>>(), [3, 3, 3]).unwrap();
    let seen = collect(env, &buffer, ([2, 2, 2], [1, 0, 1]), [1], |view, _| digits(view.iter().rev()));
    // Elements 23, 22, 20, 19, 14, 13, 11, 10.
    assert_eq!(seen, [32_094_310]);
    let empty = collect(env, &buffer, ([2, 0, 2], [0; 3]), [1], |view, _| view.iter().rev().count() as i32);
    assert_eq!(empty, [0]);
}

fn a_view_of_a_strided_part_iterates_over_the_part_only(env: &Env) {
    let buffer = Buffer::from_vec_nd((0..27).map(|i| i % 10).collect::<Vec<i32>>(), [3, 3, 3]).unwrap();
    let seen = collect(env, &buffer, ([2, 2, 2], [1, 0, 1]), [1], |view, _| digits(view.iter()));
    // Elements 10, 11, 13, 14, 19, 20, 22, 23.
    assert_eq!(seen, [1_349_023]);
    let line = Buffer::from_vec(iota(9)).unwrap();
    assert_eq!(collect(env, &line, ([4], [3]), [1], |view, _| digits(view.as_slice())), [3456]);
}

fn to_slice_exists_exactly_for_contiguous_parts(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(24), [2, 3, 4]).unwrap();
    for (range, offset, expected) in [
        ([2, 3, 4], [0, 0, 0], true),
        ([1, 3, 4], [1, 0, 0], true),
        ([1, 2, 4], [1, 1, 0], true),
        ([1, 1, 2], [0, 2, 1], true),
        ([2, 2, 4], [0, 0, 0], false),
        ([1, 2, 3], [0, 0, 0], false),
        ([2, 1, 1], [0, 0, 0], false),
        ([1, 2, 1], [0, 0, 0], false),
    ] {
        let first = (offset[0] * 12 + offset[1] * 4 + offset[2]) as i32;
        let seen = collect(env, &buffer, (range, offset), [1], move |view, _| {
            let slice = view.to_slice();
            let n_elements = view.range().size();
            assert!(slice.is_none_or(|slice| slice.len() == n_elements && slice[0] == first));
            assert!(slice.is_none_or(|slice| slice.iter().eq(view.iter())));
            i32::from(slice.is_some())
        });
        assert_eq!(seen, [i32::from(expected)], "{range:?}");
    }
}

fn rows_of_planes_are_slices(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let sums = collect(env, &buffer, ([4, 5], [0, 0]), [4], |view, item| view.row(item.index()).iter().sum());
    assert_eq!(sums, [10, 35, 60, 85]);
    let sums = collect(env, &buffer, ([2, 3], [1, 1]), [2], |view, item| digits(view.row(item.index())));
    assert_eq!(sums, [678, 1100 + 120 + 13]);
}

fn rows_of_cubes_are_slices(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let sums = collect(env, &buffer, ([2, 2, 2], [1, 2, 3]), [2, 2], |view, item| {
        let row = view.row(item.get(0), item.get(1));
        assert_eq!(row.len(), 2);
        row[0] * 100 + row[1]
    });
    assert_eq!(sums, [3334, 3839, 5354, 5859]);
}

fn a_row_outside_the_range_is_an_error(env: &Env) {
    let plane = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let cube = Buffer::from_vec_nd(iota(60), [3, 4, 5]).unwrap();
    let read = |row: &[i32]| assert!(!row.is_empty());
    assert_eq!(failure(env, &plane, ([2, 3], [1, 1]), move |view| read(view.row(2))), ErrorCode::Kernel);
    assert_eq!(failure(env, &plane, ([2, 3], [1, 1]), move |view| read(view.row(usize::MAX))), ErrorCode::Kernel);
    assert_eq!(failure(env, &cube, ([2, 3, 4], [0; 3]), move |view| read(view.row(2, 0))), ErrorCode::Kernel);
    assert_eq!(failure(env, &cube, ([2, 3, 4], [0; 3]), move |view| read(view.row(0, 3))), ErrorCode::Kernel);
}

fn chunks_cover_the_range_once(env: &Env) {
    let buffer = Buffer::from_vec(iota(23)).unwrap();
    let sums = collect(env, &buffer, ([20], [2]), [8], |view, item| view.chunk(item, 3).iter().sum());
    assert_eq!(sums, [9, 18, 27, 36, 45, 54, 41, 0]);
}

fn a_chunk_of_a_huge_length_is_cut_at_the_end(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let sizes = collect(env, &buffer, ([10], [0]), [4], |view, item| view.chunk(item, usize::MAX).len() as i32);
    assert_eq!(sizes, [10, 0, 0, 0]);
    let sizes = collect(env, &buffer, ([10], [0]), [4], |view, item| view.chunk(item, 0).len() as i32);
    assert_eq!(sizes, [0; 4]);
}

fn a_window_reads_a_block(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(80), [8, 10]).unwrap();
    let seen = collect(env, &buffer, ([6, 8], [1, 1]), [5, 6], |view, item| {
        let window = view.window::<2, 3>(item.id());
        let mut sum = 0;
        for y in 0..2 {
            assert_eq!(window.row(y), &[window[[y, 0]], window[[y, 1]], *window.at([y, 2])]);
            sum += window.row(y).iter().sum::<i32>();
        }
        sum
    });
    let expected = (0..30).map(|i| {
        let first = (i / 6 + 1) * 10 + i % 6 + 1;
        6 * first + 6 + 30
    });
    assert_eq!(seen, expected.collect::<Vec<i32>>());
}

fn a_window_must_lie_inside_the_range(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(80), [8, 10]).unwrap();
    let part = ([4, 5], [0, 0]);
    for origin in [[3, 0], [0, 3], [4, 5], [usize::MAX, 0], [0, usize::MAX]] {
        let failed = failure(env, &buffer, part, move |view| {
            view.window::<2, 3>(origin);
        });
        assert_eq!(failed, ErrorCode::Kernel, "{origin:?}");
    }
    // A window larger than the range.
    let failed = failure(env, &buffer, part, |view| {
        view.window::<5, 1>([0, 0]);
    });
    assert_eq!(failed, ErrorCode::Kernel);
    assert_eq!(collect(env, &buffer, part, [1], |view, _| view.window::<2, 3>([2, 2])[[1, 2]]), [34]);
}

fn a_window_index_outside_the_block_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(80), [8, 10]).unwrap();
    for index in [[2, 0], [0, 3], [usize::MAX, 0]] {
        let failed = failure(env, &buffer, ([8, 10], [0, 0]), move |view| {
            view.window::<2, 3>([0, 0]).at(index);
        });
        assert_eq!(failed, ErrorCode::Kernel, "{index:?}");
    }
    let failed = failure(env, &buffer, ([8, 10], [0, 0]), |view| {
        view.window::<2, 3>([0, 0]).row(2);
    });
    assert_eq!(failed, ErrorCode::Kernel);
}

fn at_is_a_shorthand_for_one_element(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let sum = Buffer::<i32, 1>::uninit(1).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (data, sum) = (cg.access_range(&buffer, Read, [1, 1], [3, 4]), cg.access(&sum, Write));
        cg.single_task(move |task| sum.set_at(task, 0, data.at(task, [0, 0]) + data.at(task, (2, 3))))
    });
    kernel.unwrap();
    assert_eq!(sum.to_vec().unwrap(), [6 + 19]);
}

fn first_of<'k>(view: View<'k, i32, 1>) -> &'k i32 {
    view.at(0)
}

fn last_of<'k>(data: Accessor<'_, i32, 1, Read>, inside: impl Inside<'k>) -> &'k i32 {
    data.view(inside).at(data.size() - 1)
}

fn helpers_take_views_or_tokens(env: &Env) {
    let buffer = Buffer::from_vec_nd((5..15).collect::<Vec<i32>>(), 10).unwrap();
    let ends = Buffer::<i32, 1>::uninit(3).unwrap();
    let queue = env.queue();
    let kernel = queue.submit(|cg| {
        let (data, ends) = (cg.access(&buffer, Read), cg.access(&ends, Write));
        cg.parallel_for(3, move |item| ends.set(item, first_of(data.view(item)) * 100 + last_of(data, item)))
    });
    kernel.unwrap();
    assert_eq!(ends.to_vec().unwrap(), [514; 3]);
    let kernel = queue.submit(|cg| {
        let (data, ends) = (cg.access(&buffer, Read), cg.access(&ends, Write));
        cg.single_task(move |task| ends.set_at(task, 2, first_of(data.view(task)) - last_of(data, task)))
    });
    kernel.unwrap();
    assert_eq!(ends.to_vec().unwrap(), [514, 514, -9]);
}

fn references_of_a_view_may_be_compared_and_kept_for_the_call(env: &Env) {
    let buffer = Buffer::from_vec(vec![4, 9, 2, 7, 5, 9, 1]).unwrap();
    let seen = collect(env, &buffer, ([7], [0]), [7], |view, item| {
        let mut best = view.at(item.index());
        for candidate in view.iter().skip(item.index()) {
            if candidate > best {
                best = candidate;
            }
        }
        *best
    });
    assert_eq!(seen, [9, 9, 9, 9, 9, 9, 1]);
}
