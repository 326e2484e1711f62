//! A panic in each phase of kernels of many forms: it ends the command within a second, and names the work-item.

use std::time::{Duration, Instant};

use oxisycl::group::{Atomically, Fixed1, Fixed2, Local, LocalSlice, Private, Rows, Shares};
use oxisycl::operator::{Max, Sum};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};

tests![
    in_a_stencil,
    in_a_bitonic_sort,
    in_a_histogram,
    in_a_tree_of_sums,
    in_a_scan_of_swapped_tiles,
    in_a_product_of_tiles,
    in_a_transposition_of_rows,
    in_a_loop_that_a_reduction_ends,
    in_an_exchange_within_sub_groups,
    in_a_loop_of_steps_that_a_lane_gives,
    in_a_loop_of_steps_that_a_work_item_gives,
    in_a_chase_of_indices,
    between_barriers_in_a_loop,
    between_algorithms_of_work_items,
];

/// A panic ends its command within that time, once the driver has compiled the kernel.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
const GROUPS: usize = 4;
/// Two sub-groups and a part of a third one.
const N: usize = 80;

/// Where a kernel panics.
#[derive(Clone, Copy)]
struct Failing {
    phase: usize,
    item: usize,
}

impl Failing {
    #[inline(always)]
    fn check(self, phase: usize, item: usize) {
        assert!(phase != self.phase || item != self.item, "phase {phase}");
    }
}

/// Runs a kernel without a panic, which has the driver compile it. Then it must panic in each of its phases: in the first of `items`
/// work-items, in one in the middle, and in the last one.
#[track_caller]
fn fails(env: &Env, phases: usize, items: usize, launch: impl Fn(&Queue, Failing) -> oxisycl::Result<Event>) {
    let queue = env.queue();
    launch(&queue, Failing { phase: phases, item: 0 }).unwrap().wait().unwrap();
    for phase in 0..phases {
        for item in [0, items / 2 + 1, items - 1] {
            let start = Instant::now();
            let error = launch(&queue, Failing { phase, item }).unwrap().wait().unwrap_err();
            let elapsed = start.elapsed();
            assert_eq!(error.code(), ErrorCode::Kernel);
            let text = error.to_string();
            assert!(text.contains(&format!("work-item [{item}] at ")) && text.contains("group/panics.rs:"), "{text}");
            assert!(text.ends_with(&format!(": phase {phase}")), "{text}");
            assert!(elapsed < LIMIT, "{elapsed:?} until the panic of work-item {item} in phase {phase} was known");
        }
    }
    launch(&queue, Failing { phase: phases, item: 0 }).unwrap().wait().unwrap();
}

fn in_a_stencil(env: &Env) {
    let numbers = Buffer::from_vec((0..(GROUPS * N) as u32).collect()).unwrap();
    fails(env, 2, GROUPS * N, |queue, failing| {
        let sums = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write));
            let memory = Local::<u32, { N + 2 }>::new();
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, memory, move |mut group, mut tile| {
                let (view, first) = (numbers.view(group.uniform()), group.linear_id() * N);
                group.for_each(Shares(&mut tile), move |item, share| {
                    for (i, place) in share {
                        *place = *view.at((first + i).saturating_sub(1).min(GROUPS * N - 1));
                    }
                    failing.check(0, item.global().index());
                });
                group.for_each(&tile, move |item, tile| {
                    let own = item.local_linear_id();
                    sums.set(item.global(), tile[own] + tile[own + 1] + tile[own + 2]);
                    failing.check(1, item.global().index());
                });
            })
        })
    });
}

fn in_a_bitonic_sort(env: &Env) {
    const BLOCK: usize = 64;
    fails(env, 23, GROUPS * BLOCK, |queue, failing| {
        let numbers = Buffer::from_vec((0..(GROUPS * BLOCK) as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect())?;
        queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            let memory = (Local::<u32, BLOCK>::new(), Local::<u32, BLOCK>::new());
            cg.parallel_for_work_group(GROUPS, Fixed1::<BLOCK>, memory, move |mut group, (mut from, mut to)| {
                group.for_each(&mut from, move |item, slot| {
                    *slot = numbers.get(item.global());
                    failing.check(0, item.global().index());
                });
                let (mut phase, mut sorted) = (1, 1);
                while sorted < BLOCK {
                    let mut distance = sorted;
                    sorted *= 2;
                    while distance > 0 {
                        group.for_each((&from, &mut to), move |item, (from, to)| {
                            failing.check(phase, item.global().index());
                            let own = item.local_linear_id();
                            let [a, b] = [from[own], from[(own ^ distance) % BLOCK]];
                            *to = if (own & distance == 0) == (own & sorted == 0) { a.min(b) } else { a.max(b) };
                        });
                        std::mem::swap(&mut from, &mut to);
                        distance /= 2;
                        phase += 1;
                    }
                }
                group.for_each(&from, move |item, from| {
                    numbers.set(item.global(), from[item.local_linear_id()]);
                    failing.check(22, item.global().index());
                });
            })
        })
    });
}

fn in_a_histogram(env: &Env) {
    let counts = Buffer::from_vec(vec![0u32; 16]).unwrap();
    fails(env, 3, GROUPS * N, |queue, failing| {
        queue.fill(&counts, 0)?;
        queue.submit(|cg| {
            let counts = cg.access(&counts, Atomic);
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, Local::<u32, 16>::new(), move |mut group, mut bins| {
                group.for_each(Shares(&mut bins), move |item, share| {
                    share.for_each(|(_, bin)| *bin = 0);
                    failing.check(0, item.global().index());
                });
                group.for_each(Atomically(&mut bins), move |item, bins| {
                    bins.fetch_add(item.local_linear_id() * 7 % 16, 1);
                    failing.check(1, item.global().index());
                });
                group.for_each(&bins, move |item, bins| {
                    let own = item.local_linear_id();
                    if own < 16 {
                        counts.fetch_add(item, own, bins[own]);
                    }
                    failing.check(2, item.global().index());
                });
            })
        })
    });
}

fn in_a_tree_of_sums(env: &Env) {
    fails(env, 9, GROUPS * N, |queue, failing| {
        let sums = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let sums = cg.access(&sums, Write);
            let memory = (Local::<u32, N>::new(), Private::new(0u32));
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, memory, move |mut group, (mut tile, mut own)| {
                group.for_each(&mut tile, move |item, slot| {
                    *slot = item.global().index() as u32;
                    failing.check(0, item.global().index());
                });
                // Two phases for each step, in which no work-item writes what another one reads.
                for step in 0..4usize {
                    let half = N.next_power_of_two() >> (step + 1);
                    group.for_each((&tile, &mut own), move |item, (tile, own)| {
                        let at = item.local_linear_id();
                        *own = if at < half && at + half < N { tile[at + half] } else { 0 };
                        failing.check(2 * step + 1, item.global().index());
                    });
                    group.for_each((&mut tile, &own), move |item, (slot, own)| {
                        *slot += own;
                        if step < 3 {
                            failing.check(2 * step + 2, item.global().index());
                        }
                    });
                }
                group.for_each(&tile, move |item, tile| {
                    sums.set(item.global(), tile[0]);
                    failing.check(8, item.global().index());
                });
            })
        })
    });
}

fn in_a_scan_of_swapped_tiles(env: &Env) {
    fails(env, 9, GROUPS * N, |queue, failing| {
        let sums = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let sums = cg.access(&sums, Write);
            let memory = (Local::<u32, N>::new(), Local::<u32, N>::new());
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, memory, move |mut group, (mut from, mut to)| {
                group.for_each(&mut from, move |item, slot| {
                    *slot = 1;
                    failing.check(0, item.global().index());
                });
                let (mut phase, mut step) = (1, 1);
                while step < N {
                    group.for_each((&from, &mut to), move |item, (from, to)| {
                        let own = item.local_linear_id();
                        *to = from[own] + if own < step { 0 } else { from[own - step] };
                        failing.check(phase, item.global().index());
                    });
                    std::mem::swap(&mut from, &mut to);
                    step *= 2;
                    phase += 1;
                }
                group.for_each(&from, move |item, from| {
                    sums.set(item.global(), from[item.local_linear_id()]);
                    failing.check(8, item.global().index());
                });
            })
        })
    });
}

fn in_a_product_of_tiles(env: &Env) {
    const T: usize = 8;
    // The position in a matrix of two tiles by two, of which the first dimension is a group's own.
    let position = |id: Id<2>| id[0] * 2 * T + id[1];
    let queue = env.queue();
    let launch = |failing: Failing| {
        let product = Buffer::from_vec_nd(vec![0.0f32; 4 * T * T], [2 * T, 2 * T])?;
        queue.submit(|cg| {
            let product = cg.access(&product, Write);
            let memory = (Local::<f32, { T * T }>::new(), Local::<f32, { T * T }>::new(), Private::new(0.0f32));
            cg.parallel_for_work_group(
                [2, 2],
                Fixed2::<T, T>,
                memory,
                move |mut group, (mut left, mut right, mut sum)| {
                    for step in 0..2usize {
                        group.for_each((&mut left, &mut right), move |item, (a, b)| {
                            (*a, *b) = ((item.local_linear_id() + step) as f32, item.local_id()[1] as f32);
                            failing.check(2 * step, position(item.global().id()));
                        });
                        group.for_each((&left, &right, &mut sum), move |item, (a, b, sum)| {
                            let [y, x] = item.local_id().0;
                            (0..T).for_each(|k| *sum += a[y * T + k] * b[k * T + x]);
                            failing.check(2 * step + 1, position(item.global().id()));
                        });
                    }
                    group.for_each(&sum, move |item, sum| {
                        product.set(item.global(), *sum);
                        failing.check(4, position(item.global().id()));
                    });
                },
            )
        })
    };
    launch(Failing { phase: 5, item: 0 }).unwrap().wait().unwrap();
    for phase in 0..5 {
        for [y, x] in [[0, 0], [9, 7], [15, 15]] {
            let start = Instant::now();
            let error = launch(Failing { phase, item: position(Id([y, x])) }).unwrap().wait().unwrap_err();
            let (elapsed, text) = (start.elapsed(), error.to_string());
            assert!(text.contains(&format!("work-item [{y}, {x}] at ")), "{text}");
            assert!(text.ends_with(&format!(": phase {phase}")), "{text}");
            assert!(elapsed < LIMIT, "{elapsed:?} until the panic in phase {phase} was known");
        }
    }
}

fn in_a_transposition_of_rows(env: &Env) {
    fails(env, 2, GROUPS * N, |queue, failing| {
        let sums = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let sums = cg.access(&sums, Write);
            let memory = Local::<u32, { 3 * N }>::new();
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, memory, move |mut group, mut tile| {
                group.for_each(Rows(&mut tile, 3), move |item, row| {
                    row.fill(item.local_linear_id() as u32);
                    failing.check(0, item.global().index());
                });
                group.for_each(&tile, move |item, tile| {
                    let own = item.local_linear_id();
                    sums.set(item.global(), tile[own] + tile[own + N] + tile[own + 2 * N]);
                    failing.check(1, item.global().index());
                });
            })
        })
    });
}

fn in_a_loop_that_a_reduction_ends(env: &Env) {
    // Without the shares of the work-item that panicked the loop would never end.
    fails(env, 6, GROUPS * N, |queue, failing| {
        queue.submit(|cg| {
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, Private::new(5u32), move |mut group, mut left| {
                group.for_each((), move |item, ()| failing.check(0, item.global().index()));
                let mut phase = 1;
                while group.reduce(&left, Max) > 0 {
                    group.for_each(&mut left, move |item, left| {
                        failing.check(phase, item.global().index());
                        *left -= 1;
                    });
                    phase += 1;
                }
            })
        })
    });
}

fn in_an_exchange_within_sub_groups(env: &Env) {
    fails(env, 4, GROUPS * N, |queue, failing| {
        let sums = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let sums = cg.access(&sums, Write);
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, Private::new(1u32), move |mut group, mut own| {
                for step in 0..3usize {
                    group.for_each(&mut own, move |item, own| {
                        *own += item.local_linear_id() as u32;
                        failing.check(step, item.global().index());
                    });
                    group.sub_groups::<32>().permute_by_xor(&mut own, 1 << step);
                }
                group.for_each(&own, move |item, own| {
                    sums.set(item.global(), *own);
                    failing.check(3, item.global().index());
                });
            })
        })
    });
}

/// One sub-group.
const LANES: usize = 32;

/// Counts by steps that one lane gives to all. Some devices exchange 0 for the value of a lane that has panicked.
fn in_a_loop_of_steps_that_a_lane_gives(env: &Env) {
    fails(env, 2, LANES, |queue, failing| {
        let counts = Buffer::<u32, 1>::uninit(LANES)?;
        queue.submit(|cg| {
            let counts = cg.access(&counts, Write);
            cg.parallel_for_work_group(1, Fixed1::<LANES>, Private::new(0u32), move |mut group, mut step| {
                group.for_each(&mut step, move |item, step| {
                    failing.check(0, item.global().index());
                    *step = 1;
                });
                group.sub_groups::<LANES>().broadcast(&mut step, failing.item);
                group.for_each(&step, move |item, step| {
                    counts.set(item.global(), count_by(*step));
                    failing.check(1, item.global().index());
                });
            })
        })
    });
}

/// Counts by such steps in an nd-range, whose kernel has no barrier.
fn in_a_loop_of_steps_that_a_work_item_gives(env: &Env) {
    fails(env, 2, LANES, |queue, failing| {
        let counts = Buffer::<u32, 1>::uninit(LANES)?;
        queue.submit(|cg| {
            let counts = cg.access(&counts, Write);
            cg.parallel_for_nd_range((LANES, Fixed1::<LANES>), (), move |mut item, ()| {
                failing.check(0, item.global_linear_id());
                let step = item.group().sub_group::<LANES>().broadcast(1, failing.item);
                counts.set(item.global(), count_by(step));
                failing.check(1, item.global_linear_id());
            })
        })
    });
}

fn count_by(step: u32) -> u32 {
    let mut n = 0;
    while n < 100 {
        n += step;
    }
    n
}

fn in_a_chase_of_indices(env: &Env) {
    // A loop that only what other work-items wrote ends. What one that panicked did not write must not keep them in it.
    fails(env, 4, GROUPS * N, |queue, failing| {
        let steps = Buffer::<u32, 1>::uninit(GROUPS * N)?;
        queue.submit(|cg| {
            let steps = cg.access(&steps, Write);
            let memory = (LocalSlice::<u32>::new(N), Private::new(0u32));
            cg.parallel_for_work_group(GROUPS, Fixed1::<N>, memory, move |mut group, (mut next, mut n)| {
                group.for_each(&mut next, move |item, next| {
                    // At first each index leads to itself.
                    *next = item.local_linear_id() as u32;
                    failing.check(0, item.global().index());
                });
                group.for_each(&mut next, move |item, next| {
                    failing.check(1, item.global().index());
                    *next = (item.local_linear_id() as u32).saturating_sub(3);
                });
                group.for_each((&next, &mut n), move |item, (next, n)| {
                    let mut at = item.local_linear_id();
                    while at != 0 {
                        at = next[at] as usize;
                        *n += 1;
                    }
                    failing.check(2, item.global().index());
                });
                group.for_each(&n, move |item, n| {
                    steps.set(item.global(), *n);
                    failing.check(3, item.global().index());
                });
            })
        })
    });
}

fn between_barriers_in_a_loop(env: &Env) {
    fails(env, 5, GROUPS * N, |queue, failing| {
        let numbers = Buffer::from_vec(vec![1u32; GROUPS * N])?;
        queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            let memory = Local::<u32, N>::new();
            cg.parallel_for_nd_range((GROUPS * N, Fixed1::<N>), memory, move |mut item, tile| {
                let (own, index) = (item.local_linear_id(), item.global_linear_id());
                let mut value = numbers.get(item.global());
                for step in 0..5 {
                    failing.check(step, index);
                    // SAFETY: each work-item writes its own element, and a barrier stands between writes and reads.
                    unsafe {
                        tile.set(own, value);
                        item.group().barrier();
                        value = value.wrapping_add(tile.get((own + 1) % N));
                        item.group().barrier();
                    }
                }
                numbers.set(item.global(), value);
            })
        })
    });
}

fn between_algorithms_of_work_items(env: &Env) {
    fails(env, 4, GROUPS * N, |queue, failing| {
        let numbers = Buffer::from_vec(vec![1u32; GROUPS * N])?;
        queue.submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for_nd_range((GROUPS * N, Fixed1::<N>), (), move |mut item, ()| {
                let index = item.global_linear_id();
                let mut value = numbers.get(item.global());
                for step in 0..4 {
                    failing.check(step, index);
                    value = item.group().reduce(value, Sum) % 7 + item.group().inclusive_scan(value, Max) % 5;
                }
                numbers.set(item.global(), value);
            })
        })
    });
}
