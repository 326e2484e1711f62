//! Copies that the work-items of a group make together (U6).

use oxisycl::group::nd::LocalAccessor;
use oxisycl::group::{Fixed1, Local, LocalSlice};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    a_group_copies_its_part_to_local_memory_and_back,
    elements_may_lie_apart,
    tiles_of_any_size_are_copied_whole,
    copies_beyond_the_end_panic_on_each_device,
];

fn a_group_copies_its_part_to_local_memory_and_back(env: &Env) {
    let numbers = Buffer::from_vec((0..1024u32).collect()).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let memory = (Local::<u32, 64>::new(), Local::<u32, 64>::new());
        cg.parallel_for_nd_range((1024, Fixed1::<64>), memory, move |mut item, (tile, turned)| {
            let (own, first) = (item.local_linear_id(), item.group_linear_id() * 64);
            // SAFETY: each group has a part of its own, and barriers are between all accesses.
            unsafe {
                let copy = item.async_copy_to_local(numbers, first, 1, tile);
                item.group().wait_for(copy);
                turned.set(own, tile.get(63 - own) + 1);
                item.group().barrier();
                let copy = item.async_copy_from_local(turned, numbers, first, 1);
                item.group().wait_for(copy);
            }
        })
    });
    submitted.unwrap();
    let expected: Vec<u32> = (0..1024).map(|i| i / 64 * 64 + 63 - i % 64 + 1).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn elements_may_lie_apart(env: &Env) {
    // Columns of a matrix of 8 x 40 become rows of its transpose.
    let matrix = Buffer::from_vec((0..320u16).collect()).unwrap();
    let transpose = Buffer::from_vec(vec![0u16; 320]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (matrix, transpose) = (cg.access(&matrix, Read), cg.access(&transpose, Write));
        cg.parallel_for_nd_range((160, Fixed1::<4>), Local::<u16, 8>::new(), move |mut item, column| {
            let x = item.group_linear_id();
            // SAFETY: each group has a row of its own, and barriers are between all accesses.
            unsafe {
                let copy = item.async_copy_to_local(matrix, x, 40, column);
                item.group().wait_for(copy);
                let copy = item.async_copy_from_local(column, transpose, x * 8, 1);
                item.group().wait_for(copy);
            }
        })
    });
    submitted.unwrap();
    let expected: Vec<u16> = (0..320).map(|i| i % 8 * 40 + i / 8).collect();
    assert_eq!(transpose.to_vec().unwrap(), expected);
}

fn tiles_of_any_size_are_copied_whole(env: &Env) {
    for len in [0, 1, 31, 32, 33, 1000] {
        let numbers = Buffer::from_vec((0..1100u64).map(|n| n * n).collect()).unwrap();
        let copied = Buffer::from_vec(vec![7u64; 2200]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let (numbers, copied) = (cg.access(&numbers, Read), cg.access(&copied, ReadWrite));
            let memory = LocalSlice::<u64>::new(len);
            cg.parallel_for_nd_range((64, Fixed1::<32>), memory, move |mut item, tile: LocalAccessor<'_, u64>| {
                let group = item.group_linear_id();
                // SAFETY: each group has a part of its own, and barriers are between all accesses.
                unsafe {
                    let copy = item.async_copy_to_local(numbers, 100 * group, 1, tile);
                    item.group().wait_for(copy);
                    let copy = item.async_copy_from_local(tile, copied, 1100 * group, 1);
                    item.group().wait_for(copy);
                }
            })
        });
        submitted.unwrap();
        let expected: Vec<u64> =
            (0..2200).map(|i| if i % 1100 < len { ((i % 1100 + 100 * (i / 1100)) as u64).pow(2) } else { 7 }).collect();
        assert_eq!(copied.to_vec().unwrap(), expected, "{len}");
    }
}

fn copies_beyond_the_end_panic_on_each_device(env: &Env) {
    let numbers = Buffer::from_vec(vec![1u32; 100]).unwrap();
    let run = |first: usize, stride: usize| {
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, Read);
            cg.parallel_for_nd_range((16, Fixed1::<16>), Local::<u32, 10>::new(), move |mut item, tile| {
                // SAFETY: no code writes the numbers.
                let copy = unsafe { item.async_copy_to_local(numbers, first, stride, tile) };
                item.group().wait_for(copy);
            })
        });
        submitted.unwrap().wait()
    };
    for (first, stride) in [(90, 1), (0, 11), (99, 0), (91, 1), (1, 11), (100, 1), (usize::MAX, 1), (0, usize::MAX)] {
        let fits = matches!((first, stride), (90, 1) | (0, 11));
        match run(first, stride) {
            Ok(()) => assert!(fits, "{first}, {stride}"),
            Err(error) if stride == 0 => assert!(error.to_string().contains("a stride of zero"), "{error}"),
            Err(error) => {
                let expected = format!("a copy of 10 elements from {first} on, {stride} apart, of an accessor of 100");
                assert!(!fits && error.to_string().contains(&expected), "{error}");
            }
        }
    }
}
