//! What a host accessor shows and changes.

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{Random, code, iota, plus_one, read_on, update, update_range, write_positions};

tests![
    it_sees_what_kernels_wrote,
    kernels_see_what_it_wrote,
    the_example_of_the_specification_works,
    a_range_is_relative_to_its_offset,
    iteration_is_row_major_and_knows_its_length,
    iteration_over_a_strided_part_stays_inside,
    iteration_over_a_strided_part_of_a_cube_stays_inside,
    iteration_goes_backwards_and_from_both_ends,
    for_each_mut_visits_every_element_in_order,
    slices_of_lines_may_be_written,
    writes_stay_inside_the_range,
    no_init_keeps_what_lies_outside,
    it_shows_the_memory_of_an_owned_vector,
    it_works_on_sub_buffers_and_reinterpretations,
    it_outlives_the_handle,
    lost_data_is_an_error,
    ; once:
    it_says_what_it_covers,
    iteration_of_no_elements_ends_at_once,
    elements_are_indexed_by_numbers_arrays_and_ids,
    an_index_outside_the_range_panics,
    get_gives_nothing_outside_the_range,
    slices_exist_exactly_for_contiguous_parts,
    a_range_outside_the_buffer_is_refused,
    an_empty_range_has_no_elements,
    the_pointer_is_the_start_of_the_buffer,
];

fn it_sees_what_kernels_wrote(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    for (i, queue) in [env.queue(), env.other_queue(), env.third_queue()].iter().enumerate() {
        update(queue, &buffer, plus_one);
        let host = buffer.host_access(Read).unwrap();
        assert_eq!(
            host.iter().copied().collect::<Vec<_>>(),
            iota(6).iter().map(|x| x + 1 + i as i32).collect::<Vec<_>>()
        );
    }
}

fn kernels_see_what_it_wrote(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    for (i, queue) in [env.queue(), env.other_queue(), env.third_queue()].iter().enumerate() {
        update(queue, &buffer, plus_one);
        buffer.host_access(ReadWrite).unwrap()[3] = 100 * i as i32;
        assert_eq!(read_on(queue, &buffer)[2..], [3 + i as i32, 100 * i as i32]);
    }
    let mut host = buffer.host_access(Write).unwrap();
    host[0] = -1;
    drop(host);
    assert_eq!(read_on(&env.queue(), &buffer), [-1, 4, 5, 200]);
}

fn the_example_of_the_specification_works(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(512), [8, 8, 8]).unwrap();
    let val = 12;
    let kernel = env.queue().submit(|cg| {
        let acc = cg.access(&buffer, ReadWrite);
        cg.parallel_for([8, 8, 8], move |item| acc.update(item, |x| x + val))
    });
    kernel.unwrap();
    let host = buffer.host_access(Read).unwrap();
    assert!(host.iter().enumerate().all(|(i, &x)| x == 12 + i as i32));
}

fn a_range_is_relative_to_its_offset(env: &Env) {
    let buffer = Buffer::<i32, 2>::uninit([4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    let mut host = buffer.host_access_range(ReadWrite, [1, 2], [2, 3]).unwrap();
    assert_eq!([host[[0, 0]], host[[0, 2]], host[[1, 0]], host[[1, 2]]], [7, 9, 12, 14]);
    host[[1, 1]] = -13;
    drop(host);
    assert_eq!(read_on(&env.queue(), &buffer)[12..15], [12, -13, 14]);
}

fn it_says_what_it_covers() {
    let buffer = Buffer::from_vec_nd(vec![0u64; 60], [3, 4, 5]).unwrap();
    let host = buffer.host_access_range(Read, [1, 2, 0], [2, 1, 3]).unwrap();
    assert_eq!((host.range(), host.offset()), (Range([2, 1, 3]), Id([1, 2, 0])));
    assert_eq!((host.size(), host.byte_size(), host.is_empty()), (6, 48, false));
}

fn iteration_is_row_major_and_knows_its_length(env: &Env) {
    let buffer = Buffer::<i32, 3>::uninit([3, 4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    let host = buffer.host_access(Read).unwrap();
    let mut elements = host.iter();
    assert_eq!(elements.len(), 60);
    assert_eq!(elements.next(), Some(&0));
    assert_eq!((elements.len(), elements.size_hint()), (59, (59, Some(59))));
    assert!(elements.copied().eq(1..60));
}

fn iteration_over_a_strided_part_stays_inside(env: &Env) {
    let buffer = Buffer::<i32, 2>::uninit([5, 6]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    for (range, offset) in [([3, 2], [1, 4]), ([5, 1], [0, 0]), ([1, 6], [4, 0]), ([2, 3], [3, 3]), ([5, 6], [0, 0])] {
        let host = buffer.host_access_range(Read, offset, range).unwrap();
        let expected: Vec<i32> = (0..range[0] * range[1])
            .map(|i| ((offset[0] + i / range[1]) * 6 + offset[1] + i % range[1]) as i32)
            .collect();
        assert_eq!(host.iter().len(), expected.len());
        assert_eq!(host.iter().copied().collect::<Vec<_>>(), expected, "{range:?} {offset:?}");
    }
}

fn iteration_over_a_strided_part_of_a_cube_stays_inside(env: &Env) {
    let buffer = Buffer::<i32, 3>::uninit([3, 4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    let host = buffer.host_access_range(Read, [1, 1, 3], [2, 2, 2]).unwrap();
    assert_eq!(host.iter().copied().collect::<Vec<_>>(), [28, 29, 33, 34, 48, 49, 53, 54]);
    let mut sum = 0;
    for element in host.iter().skip(3).step_by(2) {
        sum += element;
    }
    assert_eq!(sum, 34 + 49 + 54);
}

fn iteration_goes_backwards_and_from_both_ends(env: &Env) {
    let buffer = Buffer::<i32, 3>::uninit([3, 4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    for (range, offset) in [
        ([3, 4, 5], [0; 3]),
        ([2, 2, 2], [1, 1, 3]),
        ([1, 1, 5], [2, 3, 0]),
        ([3, 1, 1], [0, 2, 4]),
        ([3, 4, 1], [0; 3]),
    ] {
        let host = buffer.host_access_range(Read, offset, range).unwrap();
        let forwards: Vec<i32> = host.iter().copied().collect();
        let mut backwards: Vec<i32> = host.iter().rev().copied().collect();
        backwards.reverse();
        assert_eq!(backwards, forwards, "{range:?} {offset:?}");
        assert!((&host).into_iter().eq(&forwards));
        // Any mixture of both ends gives each element once, and always knows how many are left.
        let mut random = Random::new(env.seed());
        for _ in 0..20 {
            let (mut begin, mut end) = (0, forwards.len());
            let mut elements = host.iter();
            while begin < end {
                assert_eq!((elements.len(), elements.size_hint()), (end - begin, (end - begin, Some(end - begin))));
                if random.below(2) == 0 {
                    assert_eq!(elements.next(), Some(&forwards[begin]));
                    begin += 1;
                } else {
                    end -= 1;
                    assert_eq!(elements.next_back(), Some(&forwards[end]));
                }
                assert!(elements.clone().eq(&forwards[begin..end]), "a copy goes on from the same place");
            }
            assert_eq!((elements.next(), elements.next_back(), elements.len()), (None, None, 0));
        }
    }
    let host = buffer.host_access(Read).unwrap();
    assert_eq!(host.iter().rposition(|&x| x % 7 == 0), Some(56));
    assert_eq!(
        (host.iter().rev().nth(4), host.iter().nth_back(59), host.iter().next_back()),
        (Some(&55), Some(&0), Some(&59))
    );
}

fn iteration_of_no_elements_ends_at_once() {
    let buffer = Buffer::from_vec_nd(iota(24), [2, 3, 4]).unwrap();
    for range in [[0, 3, 4], [2, 0, 4], [2, 3, 0], [0; 3]] {
        let host = buffer.host_access_range(Read, [0; 3], range).unwrap();
        let mut elements = host.iter();
        assert_eq!((elements.len(), elements.next(), elements.next_back()), (0, None, None), "{range:?}");
    }
}

fn elements_are_indexed_by_numbers_arrays_and_ids() {
    let line = Buffer::from_vec(iota(4)).unwrap();
    let mut host = line.host_access(ReadWrite).unwrap();
    host[1] += 10;
    host[[2]] += 20;
    host[Id([3])] += 30;
    assert_eq!([host[0], host[[1]], host[Id([2])], host[3]], [0, 11, 22, 33]);
    let plane = Buffer::from_vec_nd(iota(4), [2, 2]).unwrap();
    let mut host = plane.host_access(ReadWrite).unwrap();
    host[[1, 0]] = 7;
    *host.get_mut((1, 1)).unwrap() = 8;
    assert_eq!((host[Id([1, 0])], host.get([1, 1]), host.get((0, 1))), (7, Some(&8), Some(&1)));
}

fn an_index_outside_the_range_panics() {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let mut host = buffer.host_access_range(ReadWrite, [1, 1], [2, 3]).unwrap();
    for index in [[2, 0], [0, 3], [usize::MAX, 0], [0, usize::MAX]] {
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host[index]));
        assert!(read.is_err());
        let write = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host[index] = -1));
        assert!(write.is_err());
    }
    drop(host);
    assert_eq!(buffer.to_vec().unwrap(), iota(20));
}

fn get_gives_nothing_outside_the_range() {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let mut host = buffer.host_access_range(ReadWrite, [1, 1], [2, 3]).unwrap();
    assert_eq!((host.get([1, 2]), host.get([2, 2]), host.get([1, 3])), (Some(&13), None, None));
    assert!(host.get_mut([usize::MAX, 0]).is_none() && host.get([0, usize::MAX]).is_none());
}

fn for_each_mut_visits_every_element_in_order(env: &Env) {
    let buffer = Buffer::<i32, 2>::uninit([4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    let mut visited = Vec::new();
    let mut host = buffer.host_access_range(ReadWrite, [1, 3], [2, 2]).unwrap();
    host.for_each_mut(|id, element| {
        visited.push((id.0, *element));
        *element = -*element;
    });
    drop(host);
    assert_eq!(visited, [([0, 0], 8), ([0, 1], 9), ([1, 0], 13), ([1, 1], 14)]);
    let expected = iota(20).iter().map(|&x| if [8, 9, 13, 14].contains(&x) { -x } else { x }).collect::<Vec<_>>();
    assert_eq!(read_on(&env.queue(), &buffer), expected);
}

fn slices_exist_exactly_for_contiguous_parts() {
    let buffer = Buffer::from_vec_nd(iota(24), [2, 3, 4]).unwrap();
    for (range, offset, expected) in [
        ([2, 3, 4], [0, 0, 0], true),
        ([1, 3, 4], [1, 0, 0], true),
        ([1, 2, 4], [1, 1, 0], true),
        ([1, 1, 2], [0, 2, 1], true),
        ([1, 1, 1], [1, 2, 3], true),
        ([0, 3, 4], [2, 0, 0], true),
        ([2, 2, 4], [0, 0, 0], false),
        ([1, 2, 3], [0, 0, 0], false),
        ([2, 1, 1], [0, 0, 0], false),
    ] {
        let mut host = buffer.host_access_range(ReadWrite, offset, range).unwrap();
        let n_elements = host.size();
        let all: Vec<i32> = host.iter().copied().collect();
        assert_eq!(host.to_slice().is_some(), expected, "{range:?}");
        assert!(host.to_slice().is_none_or(|slice| slice == all));
        assert_eq!(host.to_slice_mut().map(|slice| slice.len()), expected.then_some(n_elements));
    }
}

fn slices_of_lines_may_be_written(env: &Env) {
    let buffer = Buffer::from_vec(vec![5, 3, 9, 1, 7]).unwrap();
    update(&env.queue(), &buffer, |x| x * 10);
    let mut host = buffer.host_access_range(ReadWrite, 1, 3).unwrap();
    host.as_mut_slice().sort_unstable();
    assert_eq!(host.as_slice(), [10, 30, 90]);
    drop(host);
    assert_eq!(read_on(&env.queue(), &buffer), [50, 10, 30, 90, 70]);
}

fn a_range_outside_the_buffer_is_refused() {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    for (range, offset) in [
        ([5, 1], [0, 0]),
        ([1, 6], [0, 0]),
        ([2, 2], [3, 0]),
        ([2, 2], [0, 4]),
        ([1, 1], [usize::MAX, 0]),
        ([usize::MAX, 1], [1, 0]),
    ] {
        assert_eq!(code(buffer.host_access_range(Read, offset, range)), ErrorCode::Invalid, "{range:?} {offset:?}");
    }
    // Nothing of that stays behind.
    buffer.host_access(ReadWrite).unwrap()[[0, 0]] = 1;
}

fn an_empty_range_has_no_elements() {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let mut host = buffer.host_access_range(ReadWrite, [2, 5], [2, 0]).unwrap();
    assert_eq!((host.size(), host.is_empty(), host.iter().len()), (0, true, 0));
    assert!(host.get([0, 0]).is_none());
    host.for_each_mut(|_, _| panic!("there is an element"));
}

fn writes_stay_inside_the_range(env: &Env) {
    let buffer = Buffer::<i32, 3>::uninit([3, 4, 5]).unwrap();
    write_positions(&env.queue(), &buffer, 0);
    buffer.host_access_range(Write, [1, 1, 1], [1, 2, 3]).unwrap().for_each_mut(|_, x| *x = -1);
    let inside = |i: i32| i / 20 == 1 && (1..3).contains(&(i / 5 % 4)) && (1..4).contains(&(i % 5));
    assert_eq!(
        read_on(&env.other_queue(), &buffer),
        (0..60).map(|i| if inside(i) { -1 } else { i }).collect::<Vec<_>>()
    );
}

fn no_init_keeps_what_lies_outside(env: &Env) {
    let buffer = BufferOptions::new().page_size([3, 3]).uninit::<i32>([4, 5]).unwrap();
    write_positions(&env.queue_apart(), &buffer, 0);
    buffer.host_access_range(Write.no_init(), [1, 1], [2, 2]).unwrap().for_each_mut(|_, x| *x = -1);
    let expected = (0..20).map(|i| if [6, 7, 11, 12].contains(&i) { -1 } else { i }).collect::<Vec<_>>();
    assert_eq!(read_on(&env.queue_apart(), &buffer), expected);
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn the_pointer_is_the_start_of_the_buffer() {
    let buffer = Buffer::from_vec_nd(iota(20), [4, 5]).unwrap();
    let whole = buffer.host_access(Read).unwrap();
    let part = buffer.host_access_range(Read, [1, 3], [2, 2]).unwrap();
    assert_eq!(whole.as_ptr(), part.as_ptr());
    assert_eq!(std::ptr::from_ref(&part[[0, 0]]), whole.as_ptr().wrapping_add(8));
}

fn it_shows_the_memory_of_an_owned_vector(env: &Env) {
    let data = iota(100);
    let address = data.as_ptr();
    let buffer = Buffer::from_vec_nd(data, 100).unwrap();
    assert_eq!(buffer.host_access(Read).unwrap().as_ptr(), address);
    update(&env.queue(), &buffer, plus_one);
    update(&env.other_queue(), &buffer, plus_one);
    let host = buffer.host_access(ReadWrite).unwrap();
    assert_eq!((host.as_ptr(), host[99]), (address, 101));
}

fn it_works_on_sub_buffers_and_reinterpretations(env: &Env) {
    let buffer = Buffer::from_vec(iota(64)).unwrap();
    let part = buffer.sub_buffer(32, 32).unwrap();
    let bytes = part.reinterpret::<u8, 2>([32, 4]).unwrap();
    update_range(&env.queue(), &buffer, 30, 4, |x| x + 1000);
    assert_eq!(part.host_access(Read).unwrap().as_slice()[..2], [1032, 1033]);
    let mut host = bytes.host_access_range(ReadWrite, [1, 0], [1, 4]).unwrap();
    assert_eq!(host.to_slice().unwrap(), 1033u32.to_ne_bytes());
    host.to_slice_mut().unwrap().copy_from_slice(&7u32.to_ne_bytes());
    drop(host);
    assert_eq!(read_on(&env.queue(), &buffer)[30..36], [1030, 1031, 1032, 7, 34, 35]);
}

fn it_outlives_the_handle(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(4).unwrap();
    write_positions(&env.queue(), &buffer, 3);
    let mut host = buffer.host_access(ReadWrite).unwrap();
    drop(buffer);
    host[0] = 9;
    assert_eq!(host.as_slice(), [9, 4, 5, 6]);
}

fn lost_data_is_an_error(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let failed = update(&env.queue(), &buffer, |_| panic!("on purpose"));
    let error = buffer.host_access(Read).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    assert!(format!("{error:?}").contains("on purpose"), "{error:?}");
    assert_eq!(code(buffer.host_access(ReadWrite)), ErrorCode::Kernel);
    assert_eq!(code(failed.wait()), ErrorCode::Kernel);
    buffer.host_access(Write.no_init()).unwrap().as_mut_slice().fill(1);
    assert_eq!(buffer.to_vec().unwrap(), [1; 4]);
    update(&env.queue(), &buffer, plus_one);
    assert_eq!(buffer.to_vec().unwrap(), [2; 4]);
}
