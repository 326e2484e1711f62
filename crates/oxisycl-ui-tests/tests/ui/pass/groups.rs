//! What the refused programs over groups look like when they are right.
#![forbid(unsafe_code)]

use oxisycl::group::{Atomically, Fixed1, Fixed2, Local, LocalSlice, Private, Shares};
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    tiles_of_the_size_of_their_group()?;
    smaller_tiles_that_are_shared()?;
    swapped_tiles_and_private_values()
}

/// `tile_smaller_than_its_group`, `slot_of_another_item`, `row_kept_after_its_phase`.
fn tiles_of_the_size_of_their_group() -> oxisycl::Result<()> {
    let numbers = Buffer::from_vec_nd(vec![0u32; 32], [4, 8])?;
    Queue::default()?.submit(|cg| {
        let numbers = cg.access(&numbers, Write);
        let memory = (Local::<u32, 32>::new(), Private::new(3u32));
        cg.parallel_for_work_group([1, 1], Fixed2::<4, 8>, memory, move |mut group, (mut tile, mut own)| {
            group.for_each((&mut own, &mut tile), |item, (own, slot)| *slot = *own + item.local_linear_id() as u32);
            group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[31 - item.local_linear_id()]));
        })
    })?;
    assert_eq!(numbers.to_vec()?, (3..35).rev().collect::<Vec<_>>());
    Ok(())
}

/// Fewer elements than work-items are no fault where a phase does not lend one to each.
fn smaller_tiles_that_are_shared() -> oxisycl::Result<()> {
    let sums = Buffer::from_vec(vec![0u32; 32])?;
    Queue::default()?.submit(|cg| {
        let sums = cg.access(&sums, Write);
        let memory = (Local::<u32, 4>::new(), LocalSlice::<u32>::new(4));
        cg.parallel_for_work_group(1, Fixed1::<32>, memory, move |mut group, (mut bins, mut slice)| {
            group.for_each((Shares(&mut bins), Shares(&mut slice)), |_, (bins, slice)| {
                bins.chain(slice).for_each(|(_, place)| *place = 0);
            });
            group.for_each(Atomically(&mut bins), |item, bins| _ = bins.fetch_add(item.local_linear_id() % 4, 1));
            group.for_each_of(4, &mut slice, |item, slot| *slot = item.linear_id() as u32);
            group.for_each((&bins, &slice), move |item, (bins, slice)| {
                sums.set(item.global(), bins.iter().sum::<u32>() + slice[3]);
            });
        })
    })?;
    assert_eq!(sums.to_vec()?, vec![35; 32]);
    Ok(())
}

/// `private_value_lent_twice`, `algorithm_inside_a_phase`, `phase_in_a_phase`.
fn swapped_tiles_and_private_values() -> oxisycl::Result<()> {
    let sums = Buffer::from_vec(vec![0u32; 16])?;
    Queue::default()?.submit(|cg| {
        let sums = cg.access(&sums, Write);
        let memory = (Local::<u32, 16>::new(), Local::<u32, 16>::new(), Private::new(0u32));
        cg.parallel_for_work_group(1, Fixed1::<16>, memory, move |mut group, (mut from, mut to, mut own)| {
            group.for_each(&mut from, |_, slot| *slot = 1);
            let mut step = 1;
            while step < 16 {
                group.for_each((&from, &mut to), move |item, (from, to)| {
                    let id = item.local_linear_id();
                    *to = from[id] + if id < step { 0 } else { from[id - step] };
                });
                std::mem::swap(&mut from, &mut to);
                step *= 2;
            }
            group.for_each((&mut own, &mut from), |_, (own, slot)| *own = *slot);
            let sum = group.reduce(&own, Sum);
            group.for_each((), move |item, ()| sums.set(item.global(), sum));
        })
    })?;
    assert_eq!(sums.to_vec()?, vec![136; 16]);
    Ok(())
}
