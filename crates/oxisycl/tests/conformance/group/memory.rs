//! The memory of groups, and the ways to lend it.

use oxisycl::group::{Atomically, Columns, Fixed1, Fixed2, Local, LocalSlice, Private, Rows, Shares};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    shares_reach_each_element_once,
    columns_have_the_elements_of_shares,
    rows_are_blocks_of_neighbours,
    in_two_dimensions_each_work_item_has_its_own_columns_and_rows,
    atomic_elements_count_all_work_items,
    atomic_elements_have_all_operations,
    private_values_live_across_phases,
    six_arguments_are_disjoint,
    a_slice_has_the_length_of_its_launch,
    large_memory_is_as_good_as_small,
    many_types_live_in_local_memory,
    a_function_takes_slices_of_global_local_and_private_memory,
];

const N: usize = 32;

/// What a group leaves in a tile of `LENGTH` elements, of each of three groups. The first phase lends it as the test wishes.
macro_rules! left {
    ($env:expr, $length:expr, |$group:ident, $tile:ident| $phase:expr) => {{
        const LENGTH: usize = $length;
        let left = Buffer::from_vec_nd(vec![0u32; 3 * LENGTH], [3, LENGTH]).unwrap();
        let submitted = $env.queue().submit(|cg| {
            let left = cg.access(&left, Atomic);
            cg.parallel_for_work_group(3, Fixed1::<N>, Local::<u32, LENGTH>::new(), move |mut $group, mut $tile| {
                let Id([id]) = $group.id();
                $group.for_each_of(LENGTH, &mut $tile, move |_, slot| *slot = 9999);
                $phase;
                $group.for_each_of(LENGTH, &$tile, move |item, tile| {
                    left.store(item, [id, item.linear_id()], tile[item.linear_id()]);
                });
            })
        });
        submitted.unwrap().wait().unwrap();
        let left = left.to_vec().unwrap();
        assert!(left.chunks(LENGTH).all(|group| *group == left[..LENGTH]), "groups differ: {left:?}");
        left[..LENGTH].to_vec()
    }};
}

fn shares_reach_each_element_once(env: &Env) {
    let left = left!(env, 75, |group, tile| group.for_each(Shares(&mut tile), move |item, share| {
        for (index, slot) in share {
            *slot = (1000 * index + item.local_linear_id()) as u32;
        }
    }));
    let expected: Vec<u32> = (0..75).map(|n| (1000 * n + n % N) as u32).collect();
    assert_eq!(left, expected);
    // Fewer elements than work-items.
    let left = left!(env, 5, |group, tile| group.for_each(Shares(&mut tile), move |_, share| {
        share.for_each(|(index, slot)| *slot = index as u32);
    }));
    assert_eq!(left, [0, 1, 2, 3, 4]);
}

fn columns_have_the_elements_of_shares(env: &Env) {
    let left = left!(env, 75, |group, tile| group.for_each(Columns(&mut tile), move |item, mut column| {
        for position in 0..column.len() {
            column[position] = (100 * position + item.local_linear_id()) as u32;
        }
    }));
    let expected: Vec<u32> = (0..75).map(|n| (100 * (n / N) + n % N) as u32).collect();
    assert_eq!(left, expected);
}

fn rows_are_blocks_of_neighbours(env: &Env) {
    let left = left!(env, 100, |group, tile| group.for_each(Rows(&mut tile, 3), move |item, row| {
        for (position, slot) in row.iter_mut().enumerate() {
            *slot = (10 * item.local_linear_id() + position) as u32;
        }
    }));
    let expected: Vec<u32> = (0..100).map(|n| if n < 96 { 10 * (n / 3) + n % 3 } else { 9999 }).collect();
    assert_eq!(left, expected);
}

fn in_two_dimensions_each_work_item_has_its_own_columns_and_rows(env: &Env) {
    // Work-items of a column of the group have the same last number.
    const LENGTH: usize = 75;
    let left = Buffer::from_vec(vec![0u32; 3 * LENGTH]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let left = cg.access(&left, Atomic);
        let memory = (Local::<u32, LENGTH>::new(), Local::<u32, LENGTH>::new(), Local::<u32, LENGTH>::new());
        cg.parallel_for_work_group([1, 1], Fixed2::<4, 8>, memory, move |mut group, (mut a, mut b, mut c)| {
            let all = (Shares(&mut a), Shares(&mut b), Shares(&mut c));
            group.for_each(all, move |_, all| {
                let put = |(_, slot): (usize, &mut u32)| *slot = 9999;
                all.0.for_each(put);
                all.1.for_each(put);
                all.2.for_each(put);
            });
            let own = |item: usize, number: usize| (100 * item + number) as u32;
            let all = (Shares(&mut a), Columns(&mut b), Rows(&mut c, 2));
            group.for_each(all, move |item, (share, mut column, row)| {
                let item = item.local_linear_id();
                share.enumerate().for_each(|(number, (_, slot))| *slot = own(item, number));
                (0..column.len()).for_each(|number| column[number] = own(item, number));
                row.iter_mut().enumerate().for_each(|(number, slot)| *slot = own(item, number));
            });
            group.for_each((&a, &b, &c), move |item, (a, b, c)| {
                if item.local_linear_id() == 0 {
                    let all = a.iter().chain(b).chain(c);
                    all.enumerate().for_each(|(i, value)| left.store(item, i, *value));
                }
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    let strided = |i: usize| (100 * (i % 32) + i / 32) as u32;
    let in_rows = |i: usize| if i < 64 { (100 * (i / 2) + i % 2) as u32 } else { 9999 };
    let left = left.to_vec().unwrap();
    assert_eq!(left[..LENGTH], (0..LENGTH).map(strided).collect::<Vec<_>>());
    assert_eq!(left[LENGTH..2 * LENGTH], (0..LENGTH).map(strided).collect::<Vec<_>>());
    assert_eq!(left[2 * LENGTH..], (0..LENGTH).map(in_rows).collect::<Vec<_>>());
}

fn atomic_elements_count_all_work_items(env: &Env) {
    const BINS: usize = 16;
    let values: Vec<u32> = (0..64 * N as u32).map(|n| n.wrapping_mul(2_654_435_761) >> 7).collect();
    let (numbers, bins) = (Buffer::from_vec(values.clone()).unwrap(), Buffer::from_vec(vec![0u32; BINS]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (numbers, bins) = (cg.access(&numbers, Read), cg.access(&bins, Atomic));
        cg.parallel_for_work_group(8, Fixed1::<N>, Local::<u32, BINS>::new(), move |mut group, mut local| {
            let own = &numbers.view(group.uniform()).as_slice()[group.linear_id() * 8 * N..][..8 * N];
            group.for_each(Shares(&mut local), move |_, share| share.for_each(|(_, bin)| *bin = 0));
            group.for_each(Atomically(&mut local), move |item, bins| {
                for number in own.iter().skip(item.local_linear_id()).step_by(N) {
                    bins.fetch_add(*number as usize % BINS, 1);
                }
            });
            group.for_each_of(BINS, &local, move |item, local| {
                bins.fetch_add(item, item.linear_id(), local[item.linear_id()]);
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    let mut expected = vec![0; BINS];
    values.iter().for_each(|value| expected[*value as usize % BINS] += 1);
    assert_eq!(bins.to_vec().unwrap(), expected);
}

fn atomic_elements_have_all_operations(env: &Env) {
    let left = left!(env, 8, |group, tile| {
        group.for_each(Shares(&mut tile), move |_, share| share.for_each(|(_, slot)| *slot = 100));
        group.for_each(Atomically(&mut tile), move |item, elements| {
            let own = item.local_linear_id() as u32;
            elements.fetch_add(0, own);
            elements.fetch_sub(1, 2);
            elements.fetch_min(2, 40 + own);
            elements.fetch_max(3, 80 + own);
            elements.fetch_update(4, |old| old + 3);
            elements.exchange(5, 17);
            elements.store(6, 5);
            if own == 3 {
                let _ = elements.compare_exchange(7, 100, 1 + elements.load(7));
                assert_eq!(elements.compare_exchange(7, 100, 7), Err(101));
            }
        });
    });
    let n = N as u32;
    assert_eq!(left, [100 + n * (n - 1) / 2, 100 - 2 * n, 40, 80 + n - 1, 100 + 3 * n, 17, 5, 101]);
}

fn private_values_live_across_phases(env: &Env) {
    // Larger than what is a variable of the host's entry, and small.
    fn check<P: DeviceCopyable>(
        env: &Env,
        value: P,
        step: impl Fn(&mut P, usize) + Copy + Send + Sync + 'static,
        sum: impl Fn(&P) -> u64 + Copy + Send + Sync + 'static,
    ) {
        let sums = Buffer::from_vec(vec![0u64; 40 * 6]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let sums = cg.access(&sums, Write);
            cg.parallel_for_work_group(6, Fixed1::<40>, Private::new(value), move |mut group, mut own| {
                for round in 0..5 {
                    group.for_each(&mut own, move |item, own| step(own, item.local_linear_id() + round));
                }
                group.for_each(&own, move |item, own| sums.set(item.global(), sum(own)));
            })
        });
        submitted.unwrap().wait().unwrap();
        let expected: Vec<u64> = (0..40 * 6)
            .map(|n| {
                let mut own = value;
                (0..5).for_each(|round| step(&mut own, n % 40 + round));
                sum(&own)
            })
            .collect();
        assert_eq!(sums.to_vec().unwrap(), expected);
    }
    check(env, 7u32, |own, n| *own += n as u32, |own| u64::from(*own));
    check(env, [1u64; 24], |own, n| own[n % 24] += n as u64, |own| own.iter().sum());
}

fn six_arguments_are_disjoint(env: &Env) {
    const M: usize = 16;
    let sums = Buffer::from_vec(vec![0u32; M * 4]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let sums = cg.access(&sums, Write);
        let memory = (
            Local::<u8, M>::new(),
            Local::<u32, M>::new(),
            LocalSlice::<u64>::new(M),
            Private::new(3u16),
            Local::<[u16; 3], M>::new(),
            LocalSlice::<u32>::new(3 * M),
        );
        cg.parallel_for_work_group(
            4,
            Fixed1::<M>,
            memory,
            move |mut group, (mut a, mut b, mut c, mut d, mut e, mut f)| {
                group.for_each(
                    (&mut a, &mut b, &mut c, &mut d, &mut e, Rows(&mut f, 3)),
                    move |item, (a, b, c, d, e, f)| {
                        let own = item.local_linear_id() as u32;
                        (*a, *b, *c, *d) = (own as u8, 100 * own, 10_000 * u64::from(own), *d + own as u16);
                        *e = [1, 2, own as u16];
                        f.fill(own);
                    },
                );
                group.for_each((&a, &b, &c, &d, &e, &f), move |item, (a, b, c, d, e, f)| {
                    let other = M - 1 - item.local_linear_id();
                    let of_f: u32 = f[3 * other..][..3].iter().sum();
                    let sum = u32::from(a[other])
                        + b[other]
                        + c[other] as u32
                        + u32::from(*d)
                        + u32::from(e[other][2])
                        + of_f;
                    sums.set(item.global(), sum);
                });
            },
        )
    });
    submitted.unwrap().wait().unwrap();
    let of = |own: u32, other: u32| other + 100 * other + 10_000 * other + 3 + own + other + 3 * other;
    let m = M as u32;
    let expected: Vec<u32> = (0..4 * m).map(|n| of(n % m, m - 1 - n % m)).collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}

fn a_slice_has_the_length_of_its_launch(env: &Env) {
    for length in [1usize, 8, 9, 333] {
        let lengths = Buffer::from_vec(vec![0usize; 8]).unwrap();
        let submitted = env.queue().submit(|cg| {
            let lengths = cg.access(&lengths, Write);
            cg.parallel_for_work_group(1, Fixed1::<8>, LocalSlice::<u32>::new(length), move |mut group, mut slice| {
                group
                    .for_each(Shares(&mut slice), move |_, share| share.for_each(|(index, slot)| *slot = index as u32));
                group.for_each(&slice, move |item, slice| {
                    let is_right = slice.iter().enumerate().all(|(index, value)| index == *value as usize);
                    lengths.set(item.global(), if is_right { slice.len() } else { 0 });
                });
            })
        });
        submitted.unwrap().wait().unwrap();
        assert_eq!(lengths.to_vec().unwrap(), [length; 8]);
    }
}

fn large_memory_is_as_good_as_small(env: &Env) {
    const LARGE: usize = 6000;
    let limit = env.device().info().local_mem_size;
    if limit < 4 * LARGE as u64 + 1024 {
        env.skip(format!("the device has {limit} bytes of local memory"));
    }
    let sums = Buffer::from_vec_nd(vec![0u64; 64 * 3], [8, 24]).unwrap();
    let submitted = env.queue().submit(|cg| {
        let sums = cg.access(&sums, Write);
        cg.parallel_for_work_group([1, 3], Fixed2::<8, 8>, Local::<u32, LARGE>::new(), move |mut group, mut tile| {
            let id = group.linear_id();
            group.for_each(Shares(&mut tile), move |_, share| {
                share.for_each(|(index, slot)| *slot = (index * (id + 1)) as u32);
            });
            group.for_each(&tile, move |item, tile| {
                let own = tile.iter().skip(item.local_linear_id()).step_by(64).map(|n| u64::from(*n)).sum();
                sums.set(item.global(), own);
            });
        })
    });
    submitted.unwrap().wait().unwrap();
    let total = |group: u64| (0..LARGE as u64).map(|n| n * (group + 1)).sum::<u64>();
    let sums = sums.to_vec().unwrap();
    let mut found = [0; 3];
    sums.iter().enumerate().for_each(|(position, sum)| found[position % 24 / 8] += sum);
    assert_eq!(found, [total(0), total(1), total(2)]);
}

fn many_types_live_in_local_memory(env: &Env) {
    macro_rules! check {
        ($($t:ty),*) => {$({
            let values = Buffer::from_vec(vec![0 as $t; N * 2]).unwrap();
            let submitted = env.queue().submit(|cg| {
                let values = cg.access(&values, Write);
                cg.parallel_for_work_group(2, Fixed1::<N>, Local::<$t, N>::new(), move |mut group, mut tile| {
                    group.for_each(&mut tile, move |item, slot| *slot = item.local_linear_id() as $t);
                    group.for_each(&tile, move |item, tile| {
                        values.set(item.global(), tile[(item.local_linear_id() + 1) % N]);
                    });
                })
            });
            submitted.unwrap().wait().unwrap();
            let expected: Vec<$t> = (0..2 * N).map(|n| ((n + 1) % N) as $t).collect();
            assert_eq!(values.to_vec().unwrap(), expected, stringify!($t));
        })*};
    }
    check!(u8, i8, u16, i16, u32, i32, u64, i64, f32, usize);
    if env.device().has(Aspect::Fp64) {
        check!(f64);
    }
}

/// Not inlined: its address may be in any memory.
#[inline(never)]
fn mixed(values: &[u32], factor: u32) -> u32 {
    values.iter().fold(1, |sum: u32, value| sum.wrapping_mul(31).wrapping_add(value ^ factor))
}

fn a_function_takes_slices_of_global_local_and_private_memory(env: &Env) {
    let host: Vec<u32> = (0..2 * N as u32).map(|n| n * n).collect();
    let (numbers, sums) = (Buffer::from_vec(host.clone()).unwrap(), Buffer::from_vec(vec![0u32; 2 * N]).unwrap());
    let submitted = env.queue().submit(|cg| {
        let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
        cg.parallel_for_work_group(2, Fixed1::<N>, Local::<u32, N>::new(), move |mut group, mut tile| {
            group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()) + 1);
            group.for_each(&tile, move |item, tile| {
                let (own, global) = (item.local_linear_id(), item.global().index());
                let private: [u32; 8] = std::array::from_fn(|i| (own * i) as u32);
                let all = numbers.view(item.global()).as_slice();
                let (values, factor): (&[u32], u32) = match own % 3 {
                    0 => (&all[global / 2..global / 2 + 8], 5),
                    1 => (&tile[own / 2..own / 2 + 8], 6),
                    _ => (&private, 7),
                };
                sums.set(item.global(), mixed(values, factor));
            });
        })
    });
    submitted.unwrap();
    let expected: Vec<u32> = (0..2 * N)
        .map(|global| {
            let (own, group) = (global % N, global / N * N);
            match own % 3 {
                0 => mixed(&host[global / 2..global / 2 + 8], 5),
                1 => mixed(&host[group + own / 2..group + own / 2 + 8].iter().map(|n| n + 1).collect::<Vec<_>>(), 6),
                _ => mixed(&std::array::from_fn::<u32, 8, _>(|i| (own * i) as u32), 7),
            }
        })
        .collect();
    assert_eq!(sums.to_vec().unwrap(), expected);
}
