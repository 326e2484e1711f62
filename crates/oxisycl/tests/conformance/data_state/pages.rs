//! Pages: which ones an accessor requires, and few transfers (S-R20 to S-R23, S-R26, S-R30).

use oxisycl::prelude::*;

use crate::harness::{Env, queue_on, tests};
use crate::support::{
    Random, counted, iota, negated, plus_one, read_on, touch, touch_range, update_range, write_positions,
};

tests![
    the_page_range_in_one_dimension_is_every_page_touched,
    the_page_range_in_two_dimensions_is_every_page_touched,
    the_page_range_in_three_dimensions_is_every_page_touched,
    random_page_ranges_are_exact,
    an_empty_range_touches_no_page,
    each_page_has_a_state_of_its_own_on_each_device,
    a_write_to_a_page_moves_that_page_only,
    a_write_across_a_page_border_moves_both_pages,
    adjacent_outdated_pages_are_moved_by_one_copy,
    adjacent_outdated_pages_of_a_plane_are_moved_by_one_copy,
    outdated_pages_with_gaps_are_moved_by_one_copy_each_run,
    pages_with_different_sources_are_fetched_from_each,
    reinterpreted_access_moves_every_byte_it_needs,
];

/// Elements in the pages of `page` that a range touches.
fn elements_in_pages<const D: usize>(
    extent: [usize; D],
    page: [usize; D],
    offset: [usize; D],
    range: [usize; D],
) -> u64 {
    if range.contains(&0) {
        return 0;
    }
    let in_dimension = |d: usize| {
        let begin = offset[d] / page[d] * page[d];
        let end = (offset[d] + range[d]).div_ceil(page[d]) * page[d];
        end.min(extent[d]) - begin
    };
    (0..D).map(in_dimension).product::<usize>() as u64
}

/// Checks how many bytes move for a read of that range after everything was written elsewhere.
#[track_caller]
fn check_page_range<const D: usize>(
    env: &Env,
    extent: [usize; D],
    page: [usize; D],
    offset: [usize; D],
    range: [usize; D],
) {
    let buffer = BufferOptions::new().page_size(page).uninit::<i32>(extent).unwrap();
    write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
    let (since, ()) = counted(|| touch_range(&env.queue(), &buffer, offset, range).wait().unwrap());
    let expected = elements_in_pages(extent, page, offset, range);
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!(since.transferred_bytes(), 4 * expected * hops, "{extent:?} {page:?} {offset:?} {range:?}");
    // A box of pages is one copy.
    assert_eq!(since.transfers(), u64::from(expected > 0) * hops, "{extent:?} {page:?} {offset:?} {range:?}");
}

fn the_page_range_in_one_dimension_is_every_page_touched(env: &Env) {
    assert_eq!(elements_in_pages([10], [4], [3], [2]), 8);
    for (offset, range) in
        [(0, 4), (0, 1), (1, 2), (3, 1), (3, 2), (0, 5), (4, 4), (4, 5), (7, 2), (8, 2), (9, 1), (0, 10), (0, 8)]
    {
        check_page_range(env, [10], [4], [offset], [range]);
    }
}

fn the_page_range_in_two_dimensions_is_every_page_touched(env: &Env) {
    for (offset, range) in [
        ([0, 0], [4, 4]),
        ([1, 1], [2, 2]),
        ([3, 3], [2, 2]),
        ([0, 0], [5, 4]),
        ([0, 0], [4, 5]),
        ([4, 8], [1, 1]),
        ([8, 8], [2, 2]),
        ([3, 0], [1, 10]),
        ([0, 3], [10, 2]),
        ([0, 0], [10, 10]),
    ] {
        check_page_range(env, [10, 10], [4, 4], offset, range);
        check_page_range(env, [10, 10], [3, 7], offset, range);
        check_page_range(env, [10, 10], [1, 10], offset, range);
        check_page_range(env, [10, 10], [20, 1], offset, range);
    }
}

fn the_page_range_in_three_dimensions_is_every_page_touched(env: &Env) {
    for (offset, range) in [
        ([0, 0, 0], [2, 2, 2]),
        ([1, 1, 1], [1, 1, 1]),
        ([1, 1, 1], [2, 2, 2]),
        ([3, 4, 5], [2, 2, 2]),
        ([4, 5, 6], [1, 1, 1]),
        ([0, 5, 0], [5, 1, 7]),
        ([0, 0, 6], [5, 6, 1]),
        ([0, 0, 0], [5, 6, 7]),
    ] {
        check_page_range(env, [5, 6, 7], [2, 2, 2], offset, range);
        check_page_range(env, [5, 6, 7], [3, 1, 4], offset, range);
    }
}

fn random_page_ranges_are_exact(env: &Env) {
    let mut random = Random::new(env.seed());
    for _ in 0..30 {
        let extent: [usize; 3] = std::array::from_fn(|_| 1 + random.below(9));
        let page: [usize; 3] = std::array::from_fn(|_| 1 + random.below(5));
        let intervals: [(usize, usize); 3] = std::array::from_fn(|d| random.interval(extent[d]));
        check_page_range(env, extent, page, intervals.map(|(begin, _)| begin), intervals.map(|(_, length)| length));
    }
}

fn an_empty_range_touches_no_page(env: &Env) {
    for offset in [0, 3, 4, 10] {
        check_page_range(env, [10], [4], [offset], [0]);
    }
    check_page_range(env, [10, 10], [4, 4], [3, 3], [0, 4]);
    check_page_range(env, [10, 10], [4, 4], [3, 3], [4, 0]);
}

fn each_page_has_a_state_of_its_own_on_each_device(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(16)).unwrap();
    let queues: Vec<Queue> = env.devices().iter().map(queue_on).collect();
    for queue in &queues {
        touch(queue, &buffer).wait().unwrap();
    }
    for (i, queue) in queues.iter().enumerate() {
        update_range(queue, &buffer, 4 * i, 4, move |x| x + 100 * (i as i32 + 1)).wait().unwrap();
    }
    // On device `i`, page `i` and the one that nobody wrote are up to date, and the two others are not.
    for (i, queue) in queues.iter().enumerate() {
        for page in [i, 3] {
            let (since, ()) = counted(|| touch_range(queue, &buffer, 4 * page, 4).wait().unwrap());
            assert_eq!(since.transfers(), 0, "page {page} on device {i}");
        }
    }
    let [a, b, c] = env.devices() else { unreachable!() };
    // Of each page, to the devices that did not write it.
    let hops = [env.hops_in_turn(a, [b, c]), env.hops_in_turn(b, [a, c]), env.hops_in_turn(c, [a, b])];
    for (i, queue) in queues.iter().enumerate() {
        for page in (0..3).filter(|&page| page != i) {
            let (since, ()) = counted(|| touch_range(queue, &buffer, 4 * page, 4).wait().unwrap());
            let hops = hops[page][i - usize::from(i > page)];
            assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 16 * hops), "page {page} on device {i}");
        }
    }
    let expected: Vec<i32> = (0..16).map(|i| if i < 12 { i + 100 * (i / 4 + 1) } else { i }).collect();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn a_write_to_a_page_moves_that_page_only(env: &Env) {
    let buffer = BufferOptions::new().page_size([2, 4]).uninit::<i32>([8, 8]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    update_range(&env.other_queue(), &buffer, [5, 1], [1, 2], |_| -1).wait().unwrap();
    let (since, ()) = counted(|| touch_range(&env.queue(), &buffer, [0, 0], [4, 8]).wait().unwrap());
    assert_eq!(since.transfers(), 0);
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 4 * 8 * hops));
    let mut expected = iota(64);
    expected[41..43].fill(-1);
    assert_eq!(read_on(&env.queue(), &buffer), expected);
}

fn a_write_across_a_page_border_moves_both_pages(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    update_range(&env.other_queue(), &buffer, 3, 2, negated).wait().unwrap();
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 32 * hops));
}

fn adjacent_outdated_pages_are_moved_by_one_copy(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(64).unwrap();
    // Written by different kernels in a random order, so that nothing but the pages themselves can join them.
    for page in [3, 0, 6, 5, 1, 7, 2, 4, 15, 9, 11, 10, 8, 14, 13, 12] {
        update_range(&env.other_queue(), &buffer, 4 * page, 4, move |_| page as i32);
    }
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 256 * hops));
    assert_eq!(read_on(&env.queue(), &buffer), (0..64).map(|i| i / 4).collect::<Vec<_>>());
}

fn adjacent_outdated_pages_of_a_plane_are_moved_by_one_copy(env: &Env) {
    let buffer = BufferOptions::new().page_size([2, 2]).uninit::<i32>([8, 8]).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    touch(&env.queue(), &buffer).wait().unwrap();
    let rewrite = |pages: &[[usize; 2]]| {
        for &[y, x] in pages {
            update_range(&env.other_queue(), &buffer, [2 * y, 2 * x], [2, 2], plus_one).wait().unwrap();
        }
        let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
        let hops = env.hops(env.other_device(), env.device());
        assert_eq!(since.transferred_bytes(), 16 * pages.len() as u64 * hops);
        assert!(since.transfers().is_multiple_of(hops));
        since.transfers() / hops
    };
    // A row, a column and a block of pages.
    assert_eq!(rewrite(&[[1, 0], [1, 1], [1, 2], [1, 3]]), 1);
    assert_eq!(rewrite(&[[0, 2], [1, 2], [2, 2], [3, 2]]), 1);
    assert_eq!(rewrite(&[[1, 1], [2, 2], [1, 2], [2, 1]]), 1);
    // An L takes two boxes, a diagonal one each.
    assert_eq!(rewrite(&[[0, 0], [1, 0], [1, 1]]), 2);
    assert_eq!(rewrite(&[[0, 0], [1, 1], [2, 2]]), 3);
    assert_eq!(buffer.to_vec().unwrap(), read_on(&env.other_queue(), &buffer));
}

fn outdated_pages_with_gaps_are_moved_by_one_copy_each_run(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(64).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    touch(&env.other_queue(), &buffer);
    // Runs of 1, 2 and 3 pages.
    for page in [1, 3, 4, 8, 9, 10] {
        update_range(&env.other_queue(), &buffer, 4 * page, 4, negated).wait().unwrap();
    }
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (3 * hops, 6 * 16 * hops));
    let expected =
        iota(64).iter().map(|&x| if [1, 3, 4, 8, 9, 10].contains(&(x / 4)) { -x } else { x }).collect::<Vec<_>>();
    assert_eq!(read_on(&env.queue(), &buffer), expected);
}

fn pages_with_different_sources_are_fetched_from_each(env: &Env) {
    let buffer = BufferOptions::new().page_size(4).uninit::<i32>(16).unwrap();
    update_range(&env.other_queue(), &buffer, 0, 8, |_| 1);
    update_range(&env.third_queue(), &buffer, 8, 8, |_| 2);
    let (since, ()) = counted(|| touch(&env.queue(), &buffer).wait().unwrap());
    let hops = env.hops(env.other_device(), env.device()) + env.hops(env.third_device(), env.device());
    assert_eq!((since.transfers(), since.transferred_bytes()), (hops, 32 * hops));
    assert_eq!(read_on(&env.queue(), &buffer), [[1; 8], [2; 8]].concat());
}

fn reinterpreted_access_moves_every_byte_it_needs(env: &Env) {
    let buffer = BufferOptions::new().page_size([1, 4]).uninit::<i32>([4, 8]).unwrap();
    let view = buffer.reinterpret::<i32, 2>([8, 4]).unwrap();
    for (offset, range) in [([0, 0], [1, 4]), ([1, 1], [3, 2]), ([7, 3], [1, 1]), ([2, 0], [4, 1])] {
        write_positions(&env.other_queue(), &buffer, 0).wait().unwrap();
        let seen = Buffer::<i32, 2>::uninit(range).unwrap();
        let (since, ()) = counted(|| {
            let kernel = env.queue().submit(|cg| {
                let (from, to) = (cg.access_range(&view, Read, offset, range), cg.access(&seen, Write.no_init()));
                cg.parallel_for(range, move |item| to.set(item, from.get(item)))
            });
            kernel.unwrap().wait().unwrap();
        });
        let expected: Vec<i32> = (0..range[0] * range[1])
            .map(|i| ((offset[0] + i / range[1]) * 4 + offset[1] + i % range[1]) as i32)
            .collect();
        assert_eq!(seen.to_vec().unwrap(), expected);
        let (least, hops) = (4 * expected.len() as u64, env.hops(env.other_device(), env.device()));
        assert!((least * hops..=128 * hops).contains(&since.transferred_bytes()), "{offset:?} {range:?}");
    }
}
