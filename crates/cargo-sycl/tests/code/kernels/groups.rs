//! Kernels over groups, whose barriers and shuffles must be in the final code as often as the source has them.

use oxisycl::atomic::Scope;
use oxisycl::group::{Fixed1, Local, Private};
use oxisycl::operator::{BitAnd, BitOr, BitXor, Max, Min, Sum};
use oxisycl::prelude::*;

const ITEMS: usize = 64;

type Numbers = Buffer<u32, 1>;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let numbers = Buffer::from_vec((0..256).collect())?;
    phases_in_a_loop(&queue, &numbers, 3)?;
    sum_of_a_group(&queue, &numbers)?;
    barriers_in_both_arms(&queue, &numbers, true)?;
    barriers_in_a_loop(&queue, &numbers, 3)?;
    barrier_in_a_function(&queue, &numbers, 2)?;
    sums_in_both_arms(&queue, &numbers, 7)?;
    vote_of_a_group(&queue, &numbers)?;
    broadcast_of_a_group(&queue, &numbers, 9)?;
    votes_of_sub_groups(&queue, &numbers)?;
    ballots_of_sub_groups(&queue, &numbers)?;
    broadcasts_of_sub_groups(&queue, &numbers)?;
    shuffles_of_sub_groups(&queue, &numbers)?;
    shuffles_of_work_items(&queue, &numbers)?;
    integers_of_sub_groups(&queue, &numbers)?;
    sort_of_a_tile(&queue, &numbers)?;
    chase_of_indices(&queue, &numbers)?;
    scan_of_a_group(&queue, &numbers)?;
    joint_sum_of_a_tile(&queue, &numbers)?;
    matches_of_sub_groups(&queue, &numbers)?;
    barriers_with_scopes(&queue, &numbers)?;
    barriers_of_sub_groups(&queue, &numbers)?;
    copy_to_local(&queue, &numbers)?;
    numbers.to_vec()?;
    Ok(())
}

/// Two phases, each of which the other waits for.
fn phases_in_a_loop(queue: &Queue, numbers: &Numbers, steps: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, ITEMS>::new(), Private::new(0u32));
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut tile, mut sum)| {
            for step in 0..steps {
                group.for_each(&mut tile, move |item, own| *own = numbers.get(item.global()).wrapping_add(step));
                group.for_each((&tile, &mut sum), move |item, (tile, sum)| {
                    *sum = sum.wrapping_add(tile[ITEMS - 1 - item.local_linear_id()]);
                });
            }
            group.for_each(&sum, move |item, sum| numbers.set(item.global(), *sum));
        })
    })
}

/// Each operation that newer processors have for all lanes at once, and one for 64 bits.
fn integers_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), (), move |mut item, ()| {
            let own = numbers.get(item.global());
            let mut group = item.group();
            let mut all = group.sub_group::<32>();
            let unsigned = [
                all.reduce(own, Sum),
                all.reduce(own, Min),
                all.reduce(own, Max),
                all.reduce(own, BitAnd),
                all.reduce(own, BitOr),
                all.reduce(own, BitXor),
            ];
            let signed = [all.reduce(own as i32, Min), all.reduce(own as i32, Max)];
            let wide = all.reduce(u64::from(own), Sum);
            let sum = unsigned.into_iter().chain(signed.map(|n| n as u32)).fold(wide as u32, u32::wrapping_add);
            numbers.set(item.global(), sum);
        })
    })
}

/// A reduction over the group.
fn sum_of_a_group(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            let sum = group.reduce(&own, Sum);
            group.for_each((), move |item, ()| numbers.set(item.global(), sum));
        })
    })
}

/// A barrier in both arms of a condition.
fn barriers_in_both_arms(queue: &Queue, numbers: &Numbers, forward: bool) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element before the barrier, and reads one behind it.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                let from = if forward {
                    item.group().barrier();
                    (own + 1) % ITEMS
                } else {
                    item.group().barrier();
                    (own + ITEMS - 1) % ITEMS
                };
                numbers.set(item.global(), tile.get(from));
            }
        })
    })
}

/// Two barriers in a loop whose length is captured.
fn barriers_in_a_loop(queue: &Queue, numbers: &Numbers, steps: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let own = item.local_linear_id();
            let mut value = numbers.get(item.global());
            for _ in 0..steps {
                // SAFETY: as in `barriers_in_both_arms`; the second barrier stands between the reads and the next writes.
                unsafe {
                    tile.set(own, value);
                    item.group().barrier();
                    value = value.wrapping_add(tile.get((own + 1) % ITEMS));
                    item.group().barrier();
                }
            }
            numbers.set(item.global(), value);
        })
    })
}

/// Leaves a value for the neighbour.
///
/// # Safety
/// All work-items of a group call it, and use the tile nowhere else.
#[inline(never)]
unsafe fn exchange(item: &mut Wide<'_, '_>, tile: Tile<'_>, value: u32) -> u32 {
    let own = item.local_linear_id();
    // SAFETY: by the contract of this function.
    unsafe {
        tile.set(own, value);
        item.group().barrier();
        tile.get((own + 1) % ITEMS)
    }
}

type Wide<'wi, 'cg> = oxisycl::group::nd::NdItem<'wi, 'cg, 1, Fixed1<ITEMS>>;
type Tile<'wi> = oxisycl::group::nd::LocalAccessor<'wi, u32>;

/// A function that waits, called once.
fn barrier_in_a_function(queue: &Queue, numbers: &Numbers, factor: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = Local::<u32, ITEMS>::new();
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), memory, move |mut item, tile| {
            let value = numbers.get(item.global());
            // SAFETY: all work-items call it, once.
            let other = unsafe { exchange(&mut item, tile, value) };
            numbers.set(item.global(), other.wrapping_mul(factor));
        })
    })
}

/// A reduction in each arm of a condition that all work-items of a group decide alike.
fn sums_in_both_arms(queue: &Queue, numbers: &Numbers, limit: u32) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), (), move |mut item, ()| {
            let value = numbers.get(item.global());
            let largest = item.group().reduce(value, oxisycl::operator::Max);
            let sum = if largest > limit {
                item.group().reduce(value / 2, Sum)
            } else {
                item.group().reduce(value, Sum)
            };
            numbers.set(item.global(), sum);
        })
    })
}

/// A vote of all work-items.
fn vote_of_a_group(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(false), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()) > 7);
            let any = group.any(&own);
            group.for_each((), move |item, ()| numbers.set(item.global(), u32::from(any)));
        })
    })
}

/// One work-item's value for all.
fn broadcast_of_a_group(queue: &Queue, numbers: &Numbers, from: usize) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            let value = group.broadcast(&own, from);
            group.for_each((), move |item, ()| numbers.set(item.global(), value));
        })
    })
}

/// A vote of each sub-group.
fn votes_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(false), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()) > 7);
            group.sub_groups::<32>().all(&mut own);
            group.for_each(&own, move |item, own| numbers.set(item.global(), u32::from(*own)));
        })
    })
}

/// The bits of each sub-group.
fn ballots_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Private::new(false), Private::new(0u64));
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut own, mut bits)| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()) > 7);
            group.sub_groups::<32>().ballot(&own, &mut bits);
            group.for_each(&bits, move |item, bits| numbers.set(item.global(), *bits as u32));
        })
    })
}

/// The value of one work-item of each sub-group.
fn broadcasts_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            group.sub_groups::<32>().broadcast(&mut own, 3);
            group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
        })
    })
}

/// Values that change places within sub-groups, twice.
fn shuffles_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            group.sub_groups::<32>().permute_by_xor(&mut own, 5);
            group.sub_groups::<32>().shift_left(&mut own, 1);
            group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
        })
    })
}

/// Shuffles by work-items of an nd-range, with a ballot.
fn shuffles_of_work_items(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), (), move |mut item, ()| {
            let value = numbers.get(item.global());
            let mut group = item.group();
            let mut sub_group = group.sub_group::<32>();
            let other = sub_group.permute_by_xor(value, 5);
            let bits = sub_group.ballot(other > value) as u32;
            numbers.set(item.global(), other ^ bits);
        })
    })
}

/// A bitonic network, whose loops are counted. Its indices are checked, so that it may panic.
fn sort_of_a_tile(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Local::<u32, ITEMS>::new(), Local::<u32, ITEMS>::new());
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut from, mut to)| {
            group.for_each(&mut from, move |item, slot| *slot = numbers.get(item.global()));
            let mut sorted = 1;
            while sorted < ITEMS {
                let mut distance = sorted;
                sorted *= 2;
                while distance > 0 {
                    group.for_each((&from, &mut to), move |item, (from, to)| {
                        let own = item.local_linear_id();
                        assert!(from[own] != 77, "an unlucky number");
                        let [a, b] = [from[own], from[(own ^ distance) % ITEMS]];
                        *to = if (own & distance == 0) == (own & sorted == 0) { a.min(b) } else { a.max(b) };
                    });
                    std::mem::swap(&mut from, &mut to);
                    distance /= 2;
                }
            }
            group.for_each(&from, move |item, from| numbers.set(item.global(), from[item.local_linear_id()]));
        })
    })
}

/// A loop that only what other work-items wrote ends.
fn chase_of_indices(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Local::<u32, ITEMS>::new(), move |mut group, mut next| {
            group.for_each(&mut next, move |item, next| {
                let number = numbers.get(item.global());
                assert!(number != 77, "an unlucky number");
                *next = number % (item.local_linear_id() as u32 + 1);
            });
            group.for_each(&next, move |item, next| {
                let mut at = item.local_linear_id() % ITEMS;
                while at != 0 {
                    at = next[at] as usize % ITEMS;
                }
                numbers.set(item.global(), next[at]);
            });
        })
    })
}

/// An inclusive scan of the group.
fn scan_of_a_group(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Private::new(0u32), move |mut group, mut own| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()));
            group.inclusive_scan(&mut own, Sum);
            group.for_each(&own, move |item, own| numbers.set(item.global(), *own));
        })
    })
}

/// A reduction of the elements of local memory.
fn joint_sum_of_a_tile(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, Local::<u32, ITEMS>::new(), move |mut group, mut tile| {
            group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
            let sum = group.joint_reduce(&tile, 0, Sum);
            group.for_each((), move |item, ()| numbers.set(item.global(), sum));
        })
    })
}

/// The bits of those in each sub-group that have the same number.
fn matches_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        let memory = (Private::new(0u32), Private::new(0u64));
        cg.parallel_for_work_group(4, Fixed1::<ITEMS>, memory, move |mut group, (mut own, mut bits)| {
            group.for_each(&mut own, move |item, own| *own = numbers.get(item.global()) % 5);
            group.sub_groups::<32>().match_any(&own, &mut bits);
            group.for_each(&bits, move |item, bits| numbers.set(item.global(), *bits as u32));
        })
    })
}

/// Two barriers, of which the second one is a fence of the whole device.
fn barriers_with_scopes(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), Local::<u32, ITEMS>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element. A barrier stands between that and the reads, and one behind these.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                item.group().barrier_in(Scope::WorkGroup);
                let other = tile.get((own + 1) % ITEMS);
                item.group().barrier_in(Scope::Device);
                tile.set(own, other);
                numbers.set(item.global(), tile.get(own));
            }
        })
    })
}

/// Two barriers of sub-groups, which are those of their group.
fn barriers_of_sub_groups(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), Local::<u32, ITEMS>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: as in `barriers_with_scopes`.
            unsafe {
                tile.set(own, numbers.get(item.global()));
                item.group().sub_group::<32>().barrier();
                let other = tile.get(own ^ 1);
                item.group().sub_group::<32>().barrier_in(Scope::SubGroup);
                tile.set(own, other);
                numbers.set(item.global(), tile.get(own));
            }
        })
    })
}

/// A copy to local memory, for which all work-items wait once.
fn copy_to_local(queue: &Queue, numbers: &Numbers) -> oxisycl::Result<Event> {
    queue.submit(|cg| {
        let numbers = cg.access(numbers, ReadWrite);
        cg.parallel_for_nd_range((256, Fixed1::<ITEMS>), Local::<u32, ITEMS>::new(), move |mut item, tile| {
            let (own, first) = (item.local_linear_id(), item.group_linear_id() * ITEMS);
            // SAFETY: each group has a part of its own. The barrier stands between the copy, and what reads and writes.
            unsafe {
                let copy = item.async_copy_to_local(numbers, first, 1, tile);
                item.group().wait_for(copy);
                numbers.set(item.global(), tile.get(ITEMS - 1 - own));
            }
        })
    })
}
