//! Kernels over an nd-range whose work-items wait. Prints what they compute, and how a panic behind a barrier looks.

use oxisycl::group::{Fixed1, Fixed2, Local, LocalSlice};
use oxisycl::observe;
use oxisycl::operator::{Max, Sum};
use oxisycl::prelude::*;

const N: usize = 48;
const TILE: usize = 16;

type Numbers = Buffer<u32, 1>;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    println!("product {:?}", &product::<0>(&queue, N)?[..4]);
    println!("product {:?}", &product::<N>(&queue, N)?[..4]);
    println!("scanned {:?}", scanned(&queue, 3 * 20, 20)?);
    println!("collective {:?}", collective(&queue)?);
    println!("planes {:?}", planes(&queue)?);
    println!("promised {:?}", promised(&queue, 40)?);
    println!("dropped {:?}", dropped(&queue)?);
    if cfg!(panic = "unwind") {
        println!("failed {}", failing(&queue, 37)?.wait().expect_err("it panics"));
    }
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

fn numbers(n: usize) -> oxisycl::Result<Numbers> {
    Buffer::from_elements((0..n as u32).map(|i| i.wrapping_mul(0x9E37_79B9) >> 20))
}

/// A product of matrices by tiles: sums live over barriers in a loop. The kernel knows how many rounds there are, or learns it from the program.
fn product<const SIZE: usize>(queue: &Queue, n: usize) -> oxisycl::Result<Vec<u32>> {
    let (a, b) = (numbers(n * n)?, numbers(n * n)?);
    let c = Buffer::from_vec_nd(vec![0u32; n * n], [n, n])?;
    queue.submit(|cg| {
        let (a, b, c) = (cg.access(&a, Read), cg.access(&b, Read), cg.access(&c, Write));
        let tile = Local::<u32, { TILE * TILE }>::new();
        cg.parallel_for_nd_range(([n, n], Fixed2::<TILE, TILE>), (tile, tile), move |mut item, (left, above)| {
            let (a, b) = (a.view(item.global()), b.view(item.global()));
            let ([y, x], [row, column]) = (item.local_id().0, item.global_id().0);
            let n = if SIZE > 0 { SIZE } else { n };
            let mut sum = 0u32;
            for round in 0..n / TILE {
                // SAFETY: each work-item writes its own elements before a barrier, and all only read behind it.
                unsafe {
                    left.set(y * TILE + x, a[row * n + round * TILE + x]);
                    above.set(y * TILE + x, b[(round * TILE + y) * n + column]);
                }
                item.group().barrier();
                for k in 0..TILE {
                    // SAFETY: as above.
                    sum = sum.wrapping_add(unsafe { left.get(y * TILE + k).wrapping_mul(above.get(k * TILE + x)) });
                }
                item.group().barrier();
            }
            c.set(item.global(), sum);
        })
    })?;
    Ok(c.into_vec()?)
}

/// Sums of each group up to an element, for groups of a size that the program computes.
fn scanned(queue: &Queue, n: usize, of_group: usize) -> oxisycl::Result<Vec<u32>> {
    let numbers = numbers(n)?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        let range = NdRange::new(Range::new([n]), Range::new([of_group]));
        cg.parallel_for_nd_range(range, LocalSlice::<u32>::new(of_group), move |mut item, tile| {
            let (own, mut step) = (item.local_linear_id(), 1);
            // SAFETY: between two barriers, work-items write their own elements alone, or read.
            unsafe { tile.set(own, numbers.get(item.global())) };
            item.group().barrier();
            while step < of_group {
                let before = if own >= step { unsafe { tile.get(own - step) } } else { 0 };
                item.group().barrier();
                unsafe { tile.set(own, tile.get(own) + before) };
                item.group().barrier();
                step *= 2;
            }
            numbers.set(item.global(), unsafe { tile.get(own) });
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Algorithms of a group and of sub-groups, and a loop that ends when all agree.
fn collective(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = numbers(2 * 32)?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((64, Fixed1::<32>), (), move |mut item, ()| {
            let own = numbers.get(item.global()) % 100 + 1;
            let at = item.local_linear_id();
            let sum = item.group().reduce(own, Sum);
            let before = item.group().exclusive_scan(own, Sum);
            let opposite = item.group().select(own, 31 - at);
            let most = item.group().sub_group::<8>().reduce(own, Max);
            let (mut x, mut rounds) = (own, 0);
            while item.group().any(x != 1) {
                if x != 1 {
                    (x, rounds) = (if x % 2 == 0 { x / 2 } else { 3 * x + 1 }, rounds + 1);
                }
            }
            numbers.set(item.global(), ((sum * 31 + before) * 31 + opposite) * 31 + most * 1000 + rounds);
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Three dimensions, and rows that are shorter than a vector. An array of each work-item lives over a barrier.
fn planes(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let result = Buffer::from_vec_nd(vec![0u32; 4 * 6 * 5], [4, 6, 5])?;
    queue.submit(|cg| {
        let result = cg.access(&result, Write);
        let range = NdRange::new(Range::new([4, 6, 5]), Range::new([2, 3, 5]));
        cg.parallel_for_nd_range(range, Local::<u32, 30>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            let mut powers = [own as u32; 4];
            for n in 1..4 {
                powers[n] = powers[n - 1].wrapping_mul(own as u32 + 3);
            }
            // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
            unsafe { tile.set(own, item.global_linear_id() as u32) };
            item.group().barrier();
            let other = unsafe { tile.get(29 - own) };
            result.set(item.global(), other * 1000 + powers[other as usize % 4] % 1000);
        })
    })?;
    Ok(result.into_vec()?)
}

/// A barrier that all come to, as the program promises: the compiler cannot prove it.
fn promised(queue: &Queue, limit: u32) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_vec(vec![limit; 8])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((8, Fixed1::<4>), Local::<u32, 4>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            if numbers.get(item.global()) == limit {
                // SAFETY: all elements are that number, so that all work-items come here.
                unsafe {
                    tile.set(own, item.global_linear_id() as u32);
                    item.unchecked().barrier();
                    numbers.set(item.global(), tile.get(3 - own));
                }
            }
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// Memory of each work-item that is given back, also if another one panics.
fn dropped(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = numbers(8)?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for_nd_range((8, Fixed1::<4>), (), move |mut item, ()| {
            let own = vec![numbers.get(item.global()); item.local_linear_id() + 1];
            let sum = item.group().reduce(own[0], Sum);
            numbers.set(item.global(), sum + own.len() as u32);
        })
    })?;
    Ok(numbers.into_vec()?)
}

/// The work-item opposite of `bad` panics behind a barrier.
fn failing(queue: &Queue, bad: u32) -> oxisycl::Result<Event> {
    let words = Buffer::from_vec(vec![0u32; 128])?;
    queue.submit(|cg| {
        let words = cg.access(&words, Write);
        cg.parallel_for_nd_range((128, Fixed1::<64>), Local::<u32, 64>::new(), move |mut item, tile| {
            let own = item.local_linear_id();
            // SAFETY: each work-item writes its own element before the barrier, and all only read behind it.
            unsafe { tile.set(own, item.global_linear_id() as u32) };
            item.group().barrier();
            let other = unsafe { tile.get(63 - own) };
            assert!(other != bad, "{other} is bad");
            words.set(item.global(), other);
        })
    })
}
