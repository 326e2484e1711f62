//! Index spaces: every id once, in one to three dimensions, with offsets, empty and large.

use oxisycl::kernel as kernel_of;
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_completes, assert_held_back, counted, iota, plus_one, update};

tests![
    every_id_of_a_line_runs_once,
    every_id_of_a_plane_runs_once,
    every_id_of_a_cube_runs_once,
    an_item_knows_its_place,
    offsets_are_added_to_ids,
    offsets_in_two_and_three_dimensions,
    offsets_may_be_as_large_as_numbers_are,
    a_range_with_a_zero_runs_nothing,
    a_range_with_a_zero_still_has_dependencies,
    ranges_of_one_item_run_it,
    long_thin_ranges_are_covered,
    millions_of_items_are_covered,
    ranges_are_written_in_several_ways,
    a_single_task_runs_once,
    launches_of_different_sizes_do_not_disturb_each_other,
    the_work_of_items_may_differ_widely,
];

/// Counts in a buffer of `extent` how often each id of a launch ran, the offset taken off.
fn count_runs<const D: usize>(queue: &Queue, extent: [usize; D], offset: [usize; D]) -> Vec<u32> {
    let counts = Buffer::from_vec_nd(vec![0u32; Range(extent).size()], extent).unwrap();
    let kernel = queue.submit(|cg| {
        let counts = cg.access(&counts, Atomic);
        cg.parallel_for_offset(offset, extent, move |item| {
            let at: [usize; D] = std::array::from_fn(|d| item.id()[d] - offset[d]);
            counts.fetch_add(item, at, 1);
        })
    });
    kernel.unwrap();
    counts.to_vec().unwrap()
}

fn every_id_of_a_line_runs_once(env: &Env) {
    for n in [1, 2, 3, 7, 64, 1000, 4097] {
        assert_eq!(count_runs(&env.queue(), [n], [0]), vec![1; n]);
    }
}

fn every_id_of_a_plane_runs_once(env: &Env) {
    for extent in [[1, 1], [1, 17], [17, 1], [3, 5], [64, 64], [31, 129]] {
        assert_eq!(count_runs(&env.queue(), extent, [0; 2]), vec![1; extent[0] * extent[1]]);
    }
}

fn every_id_of_a_cube_runs_once(env: &Env) {
    for extent in [[1, 1, 1], [2, 3, 4], [1, 9, 1], [16, 16, 16], [7, 1, 301]] {
        assert_eq!(count_runs(&env.queue(), extent, [0; 3]), vec![1; extent.iter().product()]);
    }
}

fn an_item_knows_its_place(env: &Env) {
    let places = Buffer::<[u64; 8], 3>::uninit([2, 3, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let places = cg.access(&places, Write);
        cg.parallel_for([2, 3, 5], move |item| {
            let id = item.id();
            let place = [
                id[0],
                item.get(1),
                id.get(2),
                item.linear_id(),
                item.range()[0],
                item.range()[1],
                item.range().get(2),
                item.offset()[0] + item.offset()[1] + item.offset()[2],
            ];
            places.set(item, place.map(|x| x as u64));
        })
    });
    kernel.unwrap();
    for (i, place) in places.to_vec().unwrap().into_iter().enumerate() {
        let i = i as u64;
        assert_eq!(place, [i / 15, i / 5 % 3, i % 5, i, 2, 3, 5, 0]);
    }
}

fn offsets_are_added_to_ids(env: &Env) {
    let seen = Buffer::from_vec(vec![[0u64; 3]; 10]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let seen = cg.access(&seen, Write);
        cg.parallel_for_offset(5, 4, move |item| {
            seen.set(
                item,
                [item.index(), item.linear_id(), item.range().size() * 100 + item.offset()[0]].map(|x| x as u64),
            )
        })
    });
    kernel.unwrap();
    let expected = (0..10).map(|i| if (5..9).contains(&i) { [i, i - 5, 405] } else { [0; 3] });
    assert_eq!(seen.to_vec().unwrap(), expected.collect::<Vec<_>>());
}

fn offsets_in_two_and_three_dimensions(env: &Env) {
    let queue = env.queue();
    assert_eq!(count_runs(&queue, [3, 5], [7, 11]), [1; 15]);
    assert_eq!(count_runs(&queue, [4, 3, 5], [1, 0, 100]), [1; 60]);
    let buffer = Buffer::from_vec_nd(vec![-1; 20], [4, 5]).unwrap();
    let kernel = queue.submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for_offset([1, 2], [2, 3], move |item| data.set(item, item.linear_id() as i32))
    });
    kernel.unwrap();
    let expected = [[-1; 5], [-1, -1, 0, 1, 2], [-1, -1, 3, 4, 5], [-1; 5]].concat();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn offsets_may_be_as_large_as_numbers_are(env: &Env) {
    assert_eq!(count_runs(&env.queue(), [10], [usize::MAX - 10]), [1; 10]);
    assert_eq!(count_runs(&env.queue(), [2, 3], [usize::MAX - 2, 1 << 63]), [1; 6]);
}

fn a_range_with_a_zero_runs_nothing(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let check = |event: oxisycl::Result<Event>| {
        let event = event.unwrap();
        event.wait().unwrap();
        assert_eq!(event.status(), oxisycl::EventStatus::Complete);
    };
    check(queue.parallel_for(0, |_| panic!("it runs")));
    for range in [[0, 4], [4, 0], [0, 0], [usize::MAX, 0]] {
        check(queue.parallel_for(range, |_| panic!("it runs")));
    }
    for range in [[0, 4, 4], [4, 0, 4], [4, 4, 0], [usize::MAX, usize::MAX, 0]] {
        check(queue.parallel_for(range, |_| panic!("it runs")));
    }
    check(queue.submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for_offset(100, 0, move |item| data.set(item, -1))
    }));
    assert_eq!(buffer.to_vec().unwrap(), iota(4));
}

fn a_range_with_a_zero_still_has_dependencies(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let empty = queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(0, move |item| data.set(item, -1))
    });
    let empty = empty.unwrap();
    let after = update(&queue, &buffer, plus_one);
    assert_held_back(&empty);
    assert_held_back(&after);
    gate.open();
    assert_completes(&after);
    assert!(empty.is_complete());
}

fn ranges_of_one_item_run_it(env: &Env) {
    let queue = env.queue();
    assert_eq!(count_runs(&queue, [1], [0]), [1]);
    assert_eq!(count_runs(&queue, [1, 1], [3, 4]), [1]);
    assert_eq!(count_runs(&queue, [1, 1, 1], [0; 3]), [1]);
}

fn long_thin_ranges_are_covered(env: &Env) {
    const N: usize = 200_003;
    for extent in [[1, 1, N], [1, N, 1], [N, 1, 1], [2, N / 2, 1]] {
        let seen = Buffer::<u32, 3>::uninit(extent).unwrap();
        let kernel = env.queue().submit(|cg| {
            let seen = cg.access(&seen, Write.no_init());
            cg.parallel_for(extent, move |item| seen.set(item, item.linear_id() as u32))
        });
        kernel.unwrap();
        assert!(seen.to_vec().unwrap().into_iter().eq(0..extent.iter().product::<usize>() as u32), "{extent:?}");
    }
}

fn millions_of_items_are_covered(env: &Env) {
    const N: usize = (1 << 22) + 3;
    let sums = Buffer::from_vec(vec![0u64; 2]).unwrap();
    let marks = Buffer::<u8, 1>::uninit(N).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (marks, sums) = (cg.access(&marks, Write.no_init()), cg.access(&sums, Atomic));
        cg.parallel_for(N, move |item| {
            marks.set(item, 1);
            if item.index() % 1000 == 0 {
                sums.fetch_add(item, 0, item.index() as u64);
                sums.fetch_add(item, 1, 1);
            }
        })
    });
    kernel.unwrap();
    assert!(marks.to_vec().unwrap().iter().all(|&mark| mark == 1));
    let n_thousands = (N as u64).div_ceil(1000);
    assert_eq!(sums.to_vec().unwrap(), [1000 * n_thousands * (n_thousands - 1) / 2, n_thousands]);
}

fn ranges_are_written_in_several_ways(env: &Env) {
    let queue = env.queue();
    let (line, plane, cube) = (
        Buffer::<i32, 1>::uninit(6).unwrap(),
        Buffer::<i32, 2>::uninit((2, 3)).unwrap(),
        Buffer::<i32, 3>::uninit((1, 2, 3)).unwrap(),
    );
    let shape = [2, 3];
    queue
        .submit(|cg| {
            let d = cg.access(&line, Write);
            cg.parallel_for(6, move |item| d.set(item, 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&line, ReadWrite);
            cg.parallel_for([6], move |item| d.update(item, |x| x + 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&line, ReadWrite);
            cg.parallel_for(Range::new([6]), move |item: Item<'_, 1>| d.update(item, |x| x + 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&plane, Write);
            cg.parallel_for(shape, move |item| d.set(item, 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&plane, ReadWrite);
            cg.parallel_for((2, 3), move |item| d.update(item, |x| x + 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&plane, ReadWrite);
            cg.parallel_for(d.range(), move |item| d.update(item, |x| x + 1))
        })
        .unwrap();
    queue
        .submit(|cg| {
            let d = cg.access(&cube, Write);
            let stored = kernel_of(move |item: Item<'_, 3>| d.set(item, 3));
            cg.parallel_for((1, 2, 3), stored)
        })
        .unwrap();
    for all in [line.to_vec(), plane.to_vec(), cube.to_vec()] {
        assert_eq!(all.unwrap(), [3; 6]);
    }
}

fn a_single_task_runs_once(env: &Env) {
    let counter = Buffer::from_vec(vec![0i32]).unwrap();
    let (since, ()) = counted(|| {
        for _ in 0..10 {
            let task = env.queue().submit(|cg| {
                let counter = cg.access(&counter, ReadWrite);
                cg.single_task(move |task| counter.set_at(task, 0, counter.get_at(task, 0) + 1))
            });
            task.unwrap();
        }
    });
    assert_eq!(since.kernels, 10);
    assert_eq!(counter.to_vec().unwrap(), [10]);
}

fn launches_of_different_sizes_do_not_disturb_each_other(env: &Env) {
    let queue = env.queue();
    let buffers: Vec<Buffer<i32, 1>> = (0..40).map(|i| Buffer::from_vec(vec![0; 1 + i * i * 7]).unwrap()).collect();
    for round in 0..5 {
        for buffer in &buffers {
            update(&queue, buffer, move |x| x * 2 + round);
        }
    }
    let expected = (0..5).fold(0, |x, round| x * 2 + round);
    for buffer in &buffers {
        assert!(buffer.to_vec().unwrap().iter().all(|&x| x == expected));
    }
}

fn the_work_of_items_may_differ_widely(env: &Env) {
    const N: usize = 500;
    let buffer = Buffer::<u32, 1>::uninit(N).unwrap();
    let collatz = |mut n: u64| {
        let mut n_steps = 0;
        while n != 1 {
            n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
            n_steps += 1;
        }
        n_steps
    };
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(N, move |item| data.set(item, collatz(item.index() as u64 + 1)))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), (1..=N as u64).map(collatz).collect::<Vec<_>>());
}
