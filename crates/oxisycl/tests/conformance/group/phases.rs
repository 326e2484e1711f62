//! Phases: which work-items they run, and what a later one sees of an earlier one.

use oxisycl::KernelId;
use oxisycl::group::{
    Fixed1, Fixed2, Fixed3, Group, GroupKernel, Local, LocalSlice, Private, PrivateValues, Shape, Tile,
};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::iota;

tests![
    each_item_of_each_group_runs_once,
    groups_know_their_place,
    a_phase_sees_what_the_one_before_wrote,
    phases_in_loops_meet_as_often_as_the_loops_run,
    both_arms_of_a_branch_may_have_phases,
    tiles_change_places_between_phases,
    a_phase_may_have_a_range_of_its_own,
    a_phase_may_allocate,
    a_phase_may_panic_after_it_has_allocated,
    a_named_kernel_runs_over_groups,
    one_kernel_in_two_shapes_is_two_kernels,
    views_and_windows_are_read_at_group_scope,
    groups_do_not_see_each_others_memory,
    two_queues_run_groups_at_once,
    no_groups_are_no_work,
    a_shortcut_and_an_id_are_of_kernels_over_groups,
];

/// Launches `groups` of `shape`, in which each work-item adds one to its element, and leaves its local linear id in another one.
#[track_caller]
fn check<const D: usize, S: Shape<D> + std::fmt::Debug>(env: &Env, groups: [usize; D], shape: S) {
    let extent = shape.extent();
    let range: [usize; D] = std::array::from_fn(|d| groups[d] * extent[d]);
    let n = range.iter().product::<usize>();
    let counts = Buffer::from_vec_nd(vec![0u32; n], range).unwrap();
    let locals = Buffer::from_vec_nd(vec![u32::MAX; n], range).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (counts, locals) = (cg.access(&counts, ReadWrite), cg.access(&locals, Write));
        cg.parallel_for_work_group(groups, shape, (), move |mut group, ()| {
            group.for_each((), move |item, ()| {
                counts.update(item.global(), |n| n + 1);
                locals.set(item.global(), item.local_linear_id() as u32);
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(counts.to_vec().unwrap(), vec![1; n], "{groups:?} of {shape:?}");
    for (position, local) in locals.to_vec().unwrap().into_iter().enumerate() {
        let (mut rest, mut expected, mut scale) = (position, 0, 1);
        for d in (0..D).rev() {
            expected += rest % range[d] % extent[d] * scale;
            scale *= extent[d];
            rest /= range[d];
        }
        assert_eq!(local as usize, expected, "{groups:?} of {shape:?}: element {position}");
    }
}

fn each_item_of_each_group_runs_once(env: &Env) {
    for groups in [1, 2, 7, 300] {
        check(env, [groups], Fixed1::<1>);
        check(env, [groups], Fixed1::<7>);
        check(env, [groups], Fixed1::<64>);
        check(env, [groups], Range::new([33]));
    }
    check(env, [3, 5], Fixed2::<4, 8>);
    check(env, [3, 5], Fixed2::<1, 31>);
    check(env, [5, 1], Range::new([7, 3]));
    check(env, [2, 3, 4], Fixed3::<2, 3, 4>);
    check(env, [4, 3, 2], Range::new([1, 5, 9]));
    let info = env.device().info();
    let (most, limits) = (info.max_work_group_size.min(1024), info.max_work_item_sizes);
    // The longest groups along each axis.
    check(env, [3], Range::new([most.min(limits[2])]));
    check(env, [3, 2], Range::new([most.min(limits[1]), 1]));
    check(env, [3, 2, 1], Range::new([most.min(limits[0]), 1, 1]));
    check(env, [1, 2, 3], Range::new([1, most.min(limits[1]), 1]));
    // The largest square, and the largest cube.
    let side = most.isqrt().min(limits[1]);
    check(env, [2, 3], Range::new([side, side]));
    let edge = (1..=limits[0]).take_while(|n| n * n * n <= most).last().unwrap();
    check(env, [2, 1, 2], Range::new([edge; 3]));
}

fn groups_know_their_place(env: &Env) {
    let seen = Buffer::from_vec_nd(vec![[0usize; 6]; 12], [3, 4]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let seen = cg.access(&seen, Write);
        cg.parallel_for_work_group([3, 4], Fixed2::<1, 1>, (), move |mut group, ()| {
            let (Id([y, x]), Range([groups_y, groups_x])) = (group.id(), group.group_range());
            let (linear, items) = (group.linear_id(), group.local_range().size());
            group.for_each((), move |item, ()| seen.set(item.global(), [y, x, groups_y, groups_x, linear, items]));
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<_> = (0..12).map(|n| [n / 4, n % 4, 3, 4, n, 1]).collect();
    assert_eq!(seen.to_vec().unwrap(), expected);
}

fn a_phase_sees_what_the_one_before_wrote(env: &Env) {
    const N: usize = 128;
    let numbers = Buffer::from_vec(iota(N * 9)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_work_group(9, Fixed1::<N>, Local::<i32, N>::new(), move |mut group, mut tile| {
            group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
            group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[N - 1 - item.local_linear_id()]));
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..9).flat_map(|group| (0..N).rev().map(move |n| (group * N + n) as i32)).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn phases_in_loops_meet_as_often_as_the_loops_run(env: &Env) {
    const N: usize = 64;
    // Sums over neighbours in a ring, some rounds of them: each needs the other's value of the round before.
    for rounds in [0usize, 1, 2, 9] {
        let numbers = Buffer::from_vec(iota(N * 4).into_iter().map(|n| n as u32).collect()).unwrap();
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            let memory = (Local::<u32, N>::new(), Private::new(0u32));
            cg.parallel_for_work_group(4, Fixed1::<N>, memory, move |mut group, (mut tile, mut sum)| {
                group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
                for _ in 0..rounds {
                    group.for_each((&tile, &mut sum), move |item, (tile, sum)| {
                        let own = item.local_linear_id();
                        *sum = tile[(own + 1) % N].wrapping_add(tile[(own + N - 1) % N]);
                    });
                    group.for_each((&mut tile, &sum), move |_, (slot, sum)| *slot = *sum);
                }
                group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[item.local_linear_id()]));
            })
        });
        submitted.unwrap().wait().unwrap();
        let mut expected = Vec::new();
        for group in 0..4 {
            let mut ring: Vec<u32> = (0..N).map(|n| (group * N + n) as u32).collect();
            for _ in 0..rounds {
                ring = (0..N).map(|n| ring[(n + 1) % N].wrapping_add(ring[(n + N - 1) % N])).collect();
            }
            expected.extend(ring);
        }
        assert_eq!(numbers.to_vec().unwrap(), expected, "{rounds} rounds");
    }
}

fn both_arms_of_a_branch_may_have_phases(env: &Env) {
    const N: usize = 32;
    let numbers = Buffer::from_vec(vec![0i32; N * 6]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        cg.parallel_for_work_group(6, Fixed1::<N>, Local::<i32, N>::new(), move |mut group, mut tile| {
            let Id([id]) = group.id();
            if id % 2 == 0 {
                group.for_each(&mut tile, move |item, slot| *slot = item.local_linear_id() as i32);
            } else {
                group.for_each(&mut tile, move |_, slot| *slot = 7);
                group.for_each(&mut tile, move |item, slot| *slot *= item.local_linear_id() as i32);
            }
            group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[N - 1 - item.local_linear_id()]));
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> =
        (0..6).flat_map(|group| (0..N as i32).rev().map(move |n| if group % 2 == 0 { n } else { 7 * n })).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn tiles_change_places_between_phases(env: &Env) {
    const N: usize = 256;
    let (numbers, sums) = (Buffer::from_vec(vec![1u32; N * 5]).unwrap(), Buffer::from_vec(vec![0u32; N * 5]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
        let memory = (Local::<u32, N>::new(), Local::<u32, N>::new());
        cg.parallel_for_work_group(5, Fixed1::<N>, memory, move |mut group, (mut from, mut to)| {
            group.for_each(&mut from, move |item, slot| *slot = numbers.get(item.global()));
            let mut step = 1;
            while step < N {
                group.for_each((&from, &mut to), move |item, (from, slot)| {
                    let own = item.local_linear_id();
                    *slot = if own >= step { from[own] + from[own - step] } else { from[own] };
                });
                std::mem::swap(&mut from, &mut to);
                step *= 2;
            }
            group.for_each(&from, move |item, from| sums.set(item.global(), from[item.local_linear_id()]));
        })
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<u32> = (0..5).flat_map(|_| 1..=N as u32).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}

fn a_phase_may_have_a_range_of_its_own(env: &Env) {
    const N: usize = 24;
    // A tile with a border, filled by fewer work-items than it has elements, in two dimensions.
    let sums = Buffer::from_vec(vec![0usize; N * 3]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let sums = cg.access(&sums, Write);
        cg.parallel_for_work_group(3, Fixed1::<N>, LocalSlice::<usize>::new(10 * 11), move |mut group, mut tile| {
            group.for_each_of([10, 11], &mut tile, move |item, slot| {
                let Id([y, x]) = item.id();
                *slot = 100 * y + x + item.linear_id();
            });
            group.for_each(&tile, move |item, tile| {
                sums.set(item.global(), if item.local_linear_id() == 0 { tile.iter().sum() } else { tile[1] });
            });
            // Fewer positions than work-items.
            group.for_each_of(3, &mut tile, move |item, slot| *slot = item.linear_id());
        })
    });
    submitted.unwrap().wait().unwrap();
    let all: usize = (0..110).map(|n| 100 * (n / 11) + n % 11 + n).sum();
    let expected: Vec<usize> = (0..N * 3).map(|n| if n % N == 0 { all } else { 2 }).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}

/// Phases of [`launch_allocating`] that fill memory. Without an end they would take more than a work-item of a GPU has.
const ROUNDS: u32 = 40;

/// Launches three groups, whose phases allocate. The work-item with the id `failing` panics while it has memory.
fn launch_allocating<const N: usize>(queue: &Queue, numbers: &Buffer<u32, 1>, failing: usize) -> oxisycl::Result {
    let submitted = queue.submit(|cg| {
        let numbers = cg.access(numbers, Write);
        cg.parallel_for_work_group(3, Fixed1::<N>, Local::<u32, N>::new(), move |mut group, mut tile| {
            group.for_each(&mut tile, |_, slot| *slot = 0);
            for round in 0..ROUNDS {
                group.for_each(&mut tile, move |item, slot| {
                    let own = item.local_linear_id() as u32;
                    let list: Vec<u32> = (0..own % 16 + 16).map(|n| own * n + round).collect();
                    let both = Box::new([list.iter().sum::<u32>(), list[own as usize % 16]]);
                    *slot += both[0] - both[1];
                });
            }
            group.for_each(&tile, move |item, tile| {
                let own = item.local_linear_id();
                let seen: Vec<u32> = (0..own % 7 + 1).map(|n| tile[(own + n) % N]).collect();
                assert!(item.global().index() != failing, "on purpose");
                numbers.set(item.global(), seen.iter().sum());
            });
        })
    });
    submitted?.wait()
}

fn a_phase_may_allocate(env: &Env) {
    const N: usize = 48;
    let numbers = Buffer::from_vec(vec![0u32; 3 * N]).unwrap();
    launch_allocating::<N>(&env.queue(), &numbers, usize::MAX).unwrap();
    let of_round =
        |own: u32, round: u32| (0..own % 16 + 16).filter(|n| *n != own % 16).map(|n| own * n + round).sum::<u32>();
    let of_first = |own: usize| (0..ROUNDS).map(|round| of_round(own as u32, round)).sum::<u32>();
    let of_second = |own: usize| (0..own % 7 + 1).map(|n| of_first((own + n) % N)).sum::<u32>();
    let expected: Vec<u32> = (0..3 * N).map(|n| of_second(n % N)).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

fn a_phase_may_panic_after_it_has_allocated(env: &Env) {
    const N: usize = 48;
    let queue = env.queue();
    let expected = Buffer::from_vec(vec![0u32; 3 * N]).unwrap();
    launch_allocating::<N>(&queue, &expected, usize::MAX).unwrap();
    let expected = expected.to_vec().unwrap();
    for failing in [0, N + 17, 3 * N - 1] {
        let numbers = Buffer::from_vec(vec![0u32; 3 * N]).unwrap();
        let error = launch_allocating::<N>(&queue, &numbers, failing).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("in work-item [{failing}] ")) && text.ends_with("on purpose"), "{text}");
        // The next command has all of its memory.
        let numbers = Buffer::from_vec(vec![0u32; 3 * N]).unwrap();
        launch_allocating::<N>(&queue, &numbers, usize::MAX).unwrap();
        assert_eq!(numbers.to_vec().unwrap(), expected);
    }
}

/// Turns each block round.
#[derive(Clone, Copy)]
struct Reverse<'cg>(Accessor<'cg, i32, 1, ReadWrite>);

impl<'cg> GroupKernel<'cg, 1, Fixed1<16>, Local<i32, 16>> for Reverse<'cg> {
    fn run<'wg>(&self, mut group: Group<'wg, 'cg, 1, Fixed1<16>>, mut tile: Tile<'wg, i32, 16>) {
        let numbers = self.0;
        group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
        group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[15 - item.local_linear_id()]));
    }
}

fn a_named_kernel_runs_over_groups(env: &Env) {
    let numbers = Buffer::from_vec(iota(48)).unwrap();
    let submitted = env.queue().submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.launch_work_group(3, Fixed1, Local::new(), Reverse(numbers))
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<i32> = (0..3).flat_map(|group| (0..16).rev().map(move |n| group * 16 + n)).collect();
    assert_eq!(numbers.to_vec().unwrap(), expected);
}

/// Gives each work-item the number of its group, the size of that, and the sum of the local ids up to its own.
#[derive(Clone, Copy)]
struct Numbered<'cg>(Accessor<'cg, [u32; 3], 1, Write>);

impl<'cg, S: Shape<1>> GroupKernel<'cg, 1, S, Private<u32>> for Numbered<'cg> {
    #[inline]
    fn run<'wg>(&self, mut group: Group<'wg, 'cg, 1, S>, mut sums: PrivateValues<'wg, u32>) {
        let output = self.0;
        let (number, size) = (group.linear_id() as u32, group.local_range().size() as u32);
        group.for_each(&mut sums, |item, sum| *sum = item.local_linear_id() as u32);
        group.inclusive_scan(&mut sums, Sum);
        group.for_each(&sums, move |item, sum| output.set(item.global(), [number, size, *sum]));
    }
}

/// A closure has one shape, but a kernel with a name may have many.
fn one_kernel_in_two_shapes_is_two_kernels(env: &Env) {
    #[track_caller]
    fn launch<S: Shape<1>>(env: &Env, shape: S) {
        let [size] = shape.extent();
        let output = Buffer::from_vec(vec![[u32::MAX; 3]; 240]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let output = cg.access(&output, Write);
            cg.launch_work_group(240 / size, shape, Private::new(0), Numbered(output))
        });
        submitted.unwrap().wait().unwrap();
        let size = size as u32;
        let expected = |i: u32| [i / size, size, (0..=i % size).sum()];
        assert_eq!(output.to_vec().unwrap(), (0..240).map(expected).collect::<Vec<_>>(), "groups of {size}");
    }
    // Each once more when the others have run.
    for _ in 0..2 {
        launch(env, Fixed1::<8>);
        launch(env, Fixed1::<16>);
        launch(env, Range::new([10]));
        launch(env, Range::new([24]));
    }
}

fn views_and_windows_are_read_at_group_scope(env: &Env) {
    const T: usize = 8;
    const N: usize = 32;
    let values = |seed: usize| (0..N * N).map(|n| ((n * seed + 3) % 11) as f32).collect::<Vec<_>>();
    let (a, b) = (values(5), values(7));
    let [of_a, of_b] = [&a, &b].map(|values| Buffer::from_vec_nd(values.clone(), [N, N]).unwrap());
    let product = Buffer::from_vec_nd(vec![0f32; N * N], [N, N]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let (a, b, product) = (cg.access(&of_a, Read), cg.access(&of_b, Read), cg.access(&product, Write));
        let memory = (Local::<f32, { T * T }>::new(), Local::<f32, { T * T }>::new(), Private::new(0f32));
        cg.parallel_for_work_group(
            [N / T, N / T],
            Fixed2::<T, T>,
            memory,
            move |mut group, (mut of_a, mut of_b, mut sum)| {
                let (a, b) = (a.view(group.uniform()), b.view(group.uniform()));
                let Id([y, x]) = group.id();
                for step in 0..N / T {
                    let a = a.window::<T, T>([y * T, step * T]);
                    let b = b.window::<T, T>([step * T, x * T]);
                    group.for_each((&mut of_a, &mut of_b), move |item, (of_a, of_b)| {
                        *of_a = a[item.local_id().0];
                        *of_b = b[item.local_id().0];
                    });
                    group.for_each((&of_a, &of_b, &mut sum), move |item, (of_a, of_b, sum)| {
                        let Id([y, x]) = item.local_id();
                        for k in 0..T {
                            *sum += of_a[y * T + k] * of_b[k * T + x];
                        }
                    });
                }
                group.for_each(&sum, move |item, sum| product.set(item.global(), *sum));
            },
        )
    });
    submitted.unwrap().wait().unwrap();
    let expected: Vec<f32> = (0..N * N).map(|n| (0..N).map(|k| a[n / N * N + k] * b[k * N + n % N]).sum()).collect();
    assert_eq!(product.to_vec().unwrap(), expected);
}

fn groups_do_not_see_each_others_memory(env: &Env) {
    const N: usize = 64;
    let wrong = Buffer::from_vec(vec![0u32; 1]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let wrong = cg.access(&wrong, Atomic);
        cg.parallel_for_work_group(500, Fixed1::<N>, Local::<u32, N>::new(), move |mut group, mut tile| {
            let id = group.linear_id() as u32;
            for round in 0..8 {
                group.for_each(&mut tile, move |_, slot| *slot = 8 * id + round);
                group.for_each(&tile, move |item, tile| {
                    if tile.iter().any(|value| *value != 8 * id + round) {
                        wrong.fetch_add(item, 0, 1);
                    }
                });
            }
        })
    });
    submitted.unwrap().wait().unwrap();
    assert_eq!(wrong.to_vec().unwrap(), [0]);
}

fn two_queues_run_groups_at_once(env: &Env) {
    const N: usize = 96;
    let queues = [env.queue(), env.queue()];
    let buffers: Vec<_> = (0..8).map(|_| Buffer::from_vec(iota(N * 20)).unwrap()).collect();
    for (number, buffer) in buffers.iter().enumerate() {
        let submitted = queues[number % 2].submit(|cg| {
            let numbers = cg.access(buffer, ReadWrite);
            cg.parallel_for_work_group(20, Fixed1::<N>, LocalSlice::<i32>::new(N), move |mut group, mut tile| {
                group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
                group.for_each(&tile, move |item, tile| {
                    numbers.set(item.global(), tile[(item.local_linear_id() + number) % N]);
                });
            })
        });
        submitted.unwrap();
    }
    for (number, buffer) in buffers.iter().enumerate() {
        let expected: Vec<i32> =
            (0..20).flat_map(|group| (0..N).map(move |n| (group * N + (n + number) % N) as i32)).collect();
        assert_eq!(buffer.to_vec().unwrap(), expected, "buffer {number}");
    }
}

fn no_groups_are_no_work(env: &Env) {
    let numbers = Buffer::from_vec(iota(4)).unwrap();
    for groups in [[0, 3], [3, 0], [0, 0]] {
        let submitted = env.queue().submit(|cg| {
            let numbers = cg.access(&numbers, Atomic);
            cg.parallel_for_work_group(groups, Fixed2::<2, 2>, (), move |mut group, ()| {
                group.for_each((), move |item, ()| {
                    numbers.fetch_add(item, 0, 1);
                });
            })
        });
        submitted.unwrap().wait().unwrap();
    }
    assert_eq!(numbers.to_vec().unwrap(), iota(4));
}

fn a_shortcut_and_an_id_are_of_kernels_over_groups(env: &Env) {
    let kernel = |mut group: Group<'_, '_, 1, Fixed1<16>>, mut own: PrivateValues<'_, u32>| {
        group.for_each(&mut own, |item, own| *own = item.local_linear_id() as u32);
        assert_eq!(group.reduce(&own, Sum), 120, "of {}", group.linear_id());
    };
    let id = KernelId::of_work_group(Fixed1::<16>, &Private::new(0u32), &kernel);
    assert!(env.device().is_compatible([&id]));
    let queue = env.queue();
    queue.parallel_for_work_group(3, Fixed1::<16>, Private::new(0u32), kernel).unwrap().wait().unwrap();
    let error = queue
        .parallel_for_work_group(3, Fixed1::<16>, Private::new(0u32), |mut group, own| {
            let none = group.reduce(&own, Sum);
            group.for_each((), move |item, ()| assert!(none > 0 || item.global().index() != 33, "on purpose"));
        })
        .unwrap()
        .wait()
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("in work-item [33] ") && text.ends_with("on purpose"), "{text}");
}
