//! Ids of nd-ranges, and what is refused before one runs.

use oxisycl::group::nd::{LocalAccessor, NdItem, NdKernel};
use oxisycl::group::{Fixed1, Fixed2, Fixed3, Local, LocalSlice, Shape};
use oxisycl::prelude::*;
use oxisycl::{KernelId, Result};

use crate::harness::{Env, tests};
use crate::support::{counted, iota};

tests![
    ids_of_one_dimension,
    ids_of_two_dimensions,
    ids_of_three_dimensions,
    a_group_of_the_largest_size,
    an_extent_of_zero_runs_nothing,
    a_range_of_broken_groups_is_refused,
    groups_without_work_items_are_refused,
    a_group_beyond_the_devices_limit_is_refused,
    more_local_memory_than_the_device_has_is_refused,
    a_named_kernel_runs,
    a_kernel_has_an_identity,
    one_closure_with_other_memory_is_another_kernel,
    an_index_outside_local_memory_is_a_panic,
];

/// What a work-item knows of itself.
type Known = [u64; 11];

fn ids<const D: usize, S: Shape<D>>(env: &Env, global: [usize; D], shape: S, local: [usize; D]) {
    let size = Range::new(global).size();
    let output = Buffer::from_vec_nd(vec![Known::default(); size], global).unwrap();
    let submitted = env.queue().submit(|cg| {
        let output = cg.access(&output, Write);
        cg.parallel_for_nd_range((Range::new(global), shape), (), move |item, ()| {
            assert_eq!(item.nd_range(), NdRange::new(item.global_range(), item.local_range()));
            let Id(global) = item.global_id();
            let (Id(group), Id(own)) = (item.group_id(), item.local_id());
            let (groups, local) = (item.group_range(), item.local_range());
            let consistent = (0..D)
                .all(|d| global[d] == group[d] * local[d] + own[d] && groups[d] * local[d] == item.global_range()[d]);
            let known = [
                item.global_linear_id(),
                item.local_linear_id(),
                item.group_linear_id(),
                group[0],
                group[D - 1],
                own[0],
                own[D - 1],
                groups.size(),
                local.size(),
                usize::from(item.is_leader()),
                usize::from(consistent),
            ];
            output.set(item.global(), known.map(|n| n as u64));
        })
    });
    submitted.unwrap().wait().unwrap();
    let groups: [usize; D] = std::array::from_fn(|d| global[d] / local[d]);
    for (linear, known) in output.to_vec().unwrap().into_iter().enumerate() {
        let mut id = [0; D];
        let mut rest = linear;
        for d in (0..D).rev() {
            (id[d], rest) = (rest % global[d], rest / global[d]);
        }
        let group: [usize; D] = std::array::from_fn(|d| id[d] / local[d]);
        let own: [usize; D] = std::array::from_fn(|d| id[d] % local[d]);
        let row_major = |at: [usize; D], of: [usize; D]| (0..D).fold(0, |n, d| n * of[d] + at[d]);
        let own_linear = row_major(own, local);
        let expected = [
            linear,
            own_linear,
            row_major(group, groups),
            group[0],
            group[D - 1],
            own[0],
            own[D - 1],
            Range::new(groups).size(),
            Range::new(local).size(),
            usize::from(own_linear == 0),
            1,
        ];
        assert_eq!(known, expected.map(|n| n as u64), "{id:?} of {global:?} in groups of {local:?}");
    }
}

fn ids_of_one_dimension(env: &Env) {
    ids(env, [96], Range::new([32]), [32]);
    ids(env, [7], Range::new([1]), [1]);
    ids(env, [7], Fixed1::<7>, [7]);
}

fn ids_of_two_dimensions(env: &Env) {
    ids(env, [6, 20], Range::new([2, 5]), [2, 5]);
    ids(env, [4, 24], Fixed2::<4, 8>, [4, 8]);
    for local in longest::<2>(env) {
        ids(env, local.map(|n| 2 * n), Range::new(local), local);
    }
}

fn ids_of_three_dimensions(env: &Env) {
    ids(env, [4, 6, 10], Range::new([2, 3, 5]), [2, 3, 5]);
    ids(env, [2, 6, 8], Fixed3::<1, 3, 4>, [1, 3, 4]);
    for local in longest::<3>(env) {
        ids(env, local.map(|n| 2 * n), Range::new(local), local);
    }
}

/// The longest groups along each axis. The kernel keeps so much that its code may allow no more work-items.
fn longest<const D: usize>(env: &Env) -> [[usize; D]; D] {
    let info = env.device().info();
    let most = info.max_work_group_size.min(512);
    std::array::from_fn(|axis| {
        std::array::from_fn(|d| if d == axis { most.min(info.max_work_item_sizes[3 - D + d]) } else { 1 })
    })
}

fn a_group_of_the_largest_size(env: &Env) {
    let (queue, info) = (env.queue(), env.device().info());
    let memory = queue.malloc_device::<u32>(info.max_work_group_size).unwrap();
    let numbers = memory.pointer();
    let turn_round = move |mut item: NdItem<'_, '_, 1>, tile: LocalAccessor<'_, u32>| {
        let (own, size) = (item.local_linear_id(), tile.len());
        // SAFETY: own elements before the barrier and of the allocation, no writes to the tile behind it, and all come to it.
        unsafe {
            tile.set(own, own as u32);
            item.unchecked().barrier();
            numbers.write(own, tile.get(size - 1 - own));
        }
    };
    let of = |size| (NdRange::new(Range::new([size]), Range::new([size])), LocalSlice::<u32>::new(size));
    let launch = |size| {
        let (range, tile) = of(size);
        queue.submit(|cg| cg.parallel_for_nd_range(range, tile, turn_round))
    };
    // A kernel's code may allow fewer than the device.
    let (range, tile) = of(1);
    let of_code = env.device().kernel_info(&KernelId::of_nd_range(&range, &tile, &turn_round)).unwrap();
    let limit = of_code.max_work_group_size.min(info.max_work_item_sizes[2]);
    assert!(limit >= 64, "{of_code:?}");
    launch(limit).unwrap().wait().unwrap();
    assert!(memory.to_vec(&queue).unwrap().into_iter().take(limit).eq((0..limit as u32).rev()));
    let error = refused(|| launch(limit + 1));
    assert_eq!(error.code(), ErrorCode::NdRange, "{error}");
    let text = error.to_string();
    let expected = format!("work-groups of [{}] work-items, the limit ", limit + 1);
    assert!(text.contains(&expected) && text.contains(&format!(" is {limit} ")), "{text}");
}

fn an_extent_of_zero_runs_nothing(env: &Env) {
    for (global, local) in [([0, 4], [2, 2]), ([4, 0], [2, 2]), ([0, 0], [0, 0])] {
        let range = NdRange::new(Range::new(global), Range::new(local));
        let event = env.queue().submit(|cg| cg.parallel_for_nd_range(range, (), |_, ()| panic!("it ran")));
        event.unwrap().wait().unwrap();
    }
}

/// The error of a launch that must be refused, with nothing submitted.
#[track_caller]
fn refused(submit: impl FnOnce() -> Result<Event>) -> oxisycl::Error {
    let (since, result) = counted(submit);
    assert_eq!(since.nodes, 0);
    result.expect_err("a launch was accepted")
}

#[track_caller]
fn refused_range<const D: usize>(env: &Env, global: [usize; D], local: [usize; D], expected: &str) {
    let range = NdRange::new(Range::new(global), Range::new(local));
    let error = refused(|| {
        env.queue().submit(|cg| {
            cg.name("odd");
            cg.parallel_for_nd_range(range, (), |_, ()| {})
        })
    });
    assert_eq!(error.code(), ErrorCode::NdRange);
    let expected = format!("kernel \"odd\" on device \"{}\": {expected}", env.device().name());
    assert!(error.to_string().ends_with(&expected), "{error}");
}

fn a_range_of_broken_groups_is_refused(env: &Env) {
    let text = |global, d, local| {
        format!("the global extent {global} in dimension {d} is no multiple of the local extent {local}")
    };
    refused_range(env, [10], [4], &text(10, 0, 4));
    refused_range(env, [3], [4], &text(3, 0, 4));
    refused_range(env, [8, 9], [4, 4], &text(9, 1, 4));
    refused_range(env, [8, 9, 4], [4, 2, 4], &text(9, 1, 2));
    // Of a fixed shape, too.
    let error = refused(|| env.queue().submit(|cg| cg.parallel_for_nd_range((12, Fixed1::<8>), (), |_, ()| {})));
    assert!(error.to_string().ends_with(&text(12, 0, 8)), "{error}");
}

fn groups_without_work_items_are_refused(env: &Env) {
    refused_range(env, [8], [0], "work-groups of [0] have no work-items");
    refused_range(env, [8, 8], [0, 4], "work-groups of [0, 4] have no work-items");
    refused_range(env, [8, 8], [4, 0], "work-groups of [4, 0] have no work-items");
}

fn a_group_beyond_the_devices_limit_is_refused(env: &Env) {
    let limit = env.device().info().max_work_group_size;
    for local in [[1, limit + 1], [2, limit], [1 << 32, 1 << 32]] {
        let range = NdRange::new(Range::new(local), Range::new(local));
        let error = refused(|| env.queue().submit(|cg| cg.parallel_for_nd_range(range, (), |_, ()| {})));
        assert_eq!(error.code(), ErrorCode::NdRange, "{error}");
        assert!(error.to_string().contains(&format!("work-groups of {local:?} work-items, the limit is ")), "{error}");
    }
}

fn more_local_memory_than_the_device_has_is_refused(env: &Env) {
    let limit = usize::try_from(env.device().info().local_mem_size).unwrap();
    for length in [limit + 1, usize::MAX / 4, usize::MAX] {
        let error = refused(|| {
            env.queue().submit(|cg| {
                cg.name("large");
                let memory = (LocalSlice::<u8>::new(length), Local::<u8, 64>::new());
                // SAFETY: nothing is accessed.
                cg.parallel_for_nd_range((8, Fixed1::<8>), memory, move |_, (a, b)| unsafe {
                    b.set(0, a.get(1));
                })
            })
        });
        assert_eq!(error.code(), ErrorCode::MemoryAllocation);
        let text = error.to_string();
        assert!(
            text.contains("kernel \"large\" on device") && text.contains(&format!("the limit is {limit}")),
            "{text}"
        );
    }
}

/// Turns each block round.
#[derive(Clone, Copy)]
struct Reverse<'cg>(Accessor<'cg, i32, 1, ReadWrite>);

impl<'cg> NdKernel<'cg, 1, Range<1>, LocalSlice<i32>> for Reverse<'cg> {
    #[inline]
    fn run<'wi>(&self, mut item: NdItem<'wi, 'cg, 1>, tile: LocalAccessor<'wi, i32>) {
        let own = item.local_linear_id();
        // SAFETY: own elements before the barrier, nobody writes behind it, and all come to it.
        unsafe {
            tile.set(own, self.0.get(item.global()));
            item.unchecked().barrier();
            self.0.set(item.global(), tile.get(tile.len() - 1 - own));
        }
    }
}

fn a_named_kernel_runs(env: &Env) {
    let numbers = Buffer::from_vec(iota(60)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let range = NdRange::new(Range::new([60]), Range::new([20]));
        cg.launch_nd_range(range, LocalSlice::new(20), Reverse(numbers))
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..60).map(|i| i / 20 * 20 + 19 - i % 20).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn a_kernel_has_an_identity(env: &Env) {
    let kernel = |item: NdItem<'_, '_, 1, Fixed1<8>>, (): ()| assert!(item.local_linear_id() < 8);
    env.queue().parallel_for_nd_range((16, Fixed1::<8>), (), kernel).unwrap().wait().unwrap();
    let id = KernelId::of_nd_range(&(16, Fixed1::<8>), &(), &kernel);
    assert_eq!(id, KernelId::of_nd_range(&(8, Fixed1::<8>), &(), &kernel));
    env.device().check_compatible([&id]).unwrap();
}

/// A slice of any length is one kind of memory.
fn one_closure_with_other_memory_is_another_kernel(env: &Env) {
    const GROUPS: usize = 3;
    let queue = env.queue();
    let mut found = queue.malloc_device::<u64>(GROUPS).unwrap();
    let pointer = found.pointer();
    // Leaves the length of the memory, and the sum of the squares of its indices.
    let kernel = move |mut item: NdItem<'_, '_, 1, Fixed1<16>>, memory: LocalAccessor<'_, u32>| {
        let (own, len) = (item.local_linear_id(), memory.len());
        // SAFETY: each element is written by one work-item, and read behind the barrier. One work-item writes the group's element.
        unsafe {
            for index in (own..len).step_by(16) {
                memory.set(index, (index * index) as u32);
            }
            item.group().barrier();
            if item.is_leader() {
                let sum: u32 = (0..len).map(|index| memory.get(index)).sum();
                pointer.write(item.group_linear_id(), (len as u64) << 32 | u64::from(sum));
            }
        }
    };
    let range = (16 * GROUPS, Fixed1::<16>);
    let (short, long) = (Local::<u32, 16>::new(), Local::<u32, 50>::new());
    let slice = LocalSlice::<u32>::new;
    let ids = [
        KernelId::of_nd_range(&range, &short, &kernel),
        KernelId::of_nd_range(&range, &long, &kernel),
        KernelId::of_nd_range(&range, &slice(7), &kernel),
    ];
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[2] != ids[0], "{ids:?}");
    assert_eq!(ids[2], KernelId::of_nd_range(&range, &slice(33), &kernel));
    // Each once more when the others have run.
    for _ in 0..2 {
        for len in [16, 50, 7, 33] {
            found.copy_from_slice(&queue, &[0; GROUPS]).unwrap();
            let launched = match len {
                16 => queue.parallel_for_nd_range(range, short, kernel),
                50 => queue.parallel_for_nd_range(range, long, kernel),
                _ => queue.parallel_for_nd_range(range, slice(len), kernel),
            };
            launched.unwrap().wait().unwrap();
            let expected = (len as u64) << 32 | (0..len as u64).map(|index| index * index).sum::<u64>();
            assert_eq!(found.to_vec(&queue).unwrap(), [expected; GROUPS], "{len}");
        }
    }
}

fn an_index_outside_local_memory_is_a_panic(env: &Env) {
    let event = env.queue().submit(|cg| {
        cg.name("outside");
        cg.parallel_for_nd_range((24, Fixed1::<8>), Local::<i32, 8>::new(), |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: own elements, and all come to the barrier.
            unsafe {
                item.unchecked().barrier();
                tile.set(own + usize::from(item.global_linear_id() == 15), 1);
            }
        })
    });
    let error = event.unwrap().wait().unwrap_err();
    assert_eq!(error.code(), ErrorCode::Kernel);
    let text = error.to_string();
    assert!(text.contains("index 8 of local memory of 8 elements") && text.contains("[15]"), "{text}");
}
