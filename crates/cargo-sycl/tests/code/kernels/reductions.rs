//! Kernels that give values to reductions. Prints the bits of the results, and how a panic looks. The arguments name work-items that panic.

use oxisycl::observe;
use oxisycl::operator::{BitXor, Max, Min, Sum};
use oxisycl::prelude::*;
use oxisycl::reduction::{reduction, reduction_without_identity};

/// No multiple of any number of lanes, and more than the accumulators of a tile.
const N: usize = 203;
/// One element more than the tiles of one group have.
const LARGE: usize = 8 * 4096 + 1;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    // Two vectors of up to 32 lanes and one more, the accumulators of a tile, and tiles.
    for n in (0..=65).chain([96, 127, 128, 129, 203, 4095, 4096, 4097, LARGE]) {
        println!("rounds {n}: {:08x}", rounds(&queue, n)?.to_bits());
        println!("several {n}: {:x?}", several(&queue, n)?);
        println!("seldom {n}: {:?}", seldom(&queue, n)?);
        println!("rests {n}: {:?}", rests(&queue, n)?);
    }
    for [height, width] in [[1, 1], [3, 1], [1, 70], [67, 3], [5, 64], [9, 63], [7, 200], [50, 129]] {
        println!("planes {height} x {width}: {:08x}", planes(&queue, [height, width])?.to_bits());
        println!("spaces 3 x {height} x {width}: {:x}", spaces(&queue, [3, height, width])?);
    }
    for at in std::env::args().skip(1) {
        let at: usize = at.parse().expect("the number of a work-item");
        println!("failing {at}: {}", failing(&queue, at)?.wait().expect_err("a work-item panics"));
    }
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

fn of_number(x: f32, n: u32) -> f32 {
    let (start, mut x) = (x * 1e-3, 0.1);
    for round in 0..n % 9 {
        x = if x < 0.5 { x * x + start } else { (x - 0.25).sqrt() + round as f32 };
    }
    x
}

fn numbers(n: usize) -> oxisycl::Result<Buffer<f32, 1>> {
    Buffer::from_elements((0..n as u32).map(|i| (i.wrapping_mul(0x9E37_79B9) >> 22) as f32 - 512.0))
}

/// A loop of its own length in each work-item.
fn rounds(queue: &Queue, n: usize) -> oxisycl::Result<f32> {
    let (numbers, sum) = (numbers(n)?, Buffer::from_vec(vec![0.5f32])?);
    queue.submit(|cg| {
        let (numbers, sum) = (cg.access(&numbers, Read), reduction(cg.access(&sum, ReadWrite), Sum));
        cg.parallel_reduce(n, sum, move |item, sum| *sum += of_number(numbers.get(item), item.index() as u32))
    })?;
    Ok(sum.to_vec()?[0])
}

/// Three reductions, one of which has no identity. Their operators do not commute with roundings, or tell which element was first.
fn several(queue: &Queue, n: usize) -> oxisycl::Result<[u32; 4]> {
    let numbers = numbers(n)?;
    let (sum, most) = (Buffer::from_vec(vec![0.0f32])?, Buffer::from_vec(vec![0u32])?);
    let first = Buffer::from_vec(vec![[u32::MAX, 0]])?;
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        let (sum, most) = (reduction(cg.access(&sum, Write), Sum), reduction(cg.access(&most, Write), Max));
        let lower = |a: [u32; 2], b: [u32; 2]| if b[0] < a[0] { b } else { a };
        let first = reduction_without_identity(cg.access(&first, ReadWrite), lower);
        cg.parallel_reduce(n, (sum, most, first), move |item, (sum, most, first)| {
            let value = of_number(numbers.get(item), 7 + (item.index() as u32 & 1));
            *sum += value;
            most.combine(value.abs().to_bits());
            first.combine([value.abs().to_bits() >> 20, item.index() as u32]);
        })
    })?;
    let [least, number] = first.to_vec()?[0];
    Ok([sum.to_vec()?[0].to_bits(), most.to_vec()?[0], least, number])
}

/// Some work-items give nothing, and some more than one value.
fn seldom(queue: &Queue, n: usize) -> oxisycl::Result<i32> {
    let (numbers, last) = (numbers(n)?, Buffer::from_vec(vec![-1i32])?);
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        let later = reduction_without_identity(cg.access(&last, ReadWrite), |a: i32, b: i32| (a ^ b).wrapping_mul(3).wrapping_add(a));
        cg.parallel_reduce(n, later, move |item, later| {
            let number = numbers.get(item) as i32;
            for part in 0..number % 4 {
                later.combine(number.wrapping_mul(part + 5));
            }
        })
    })?;
    Ok(last.to_vec()?[0])
}

/// A reduction into several elements, which a work-item chooses from.
fn rests(queue: &Queue, n: usize) -> oxisycl::Result<Vec<u32>> {
    let (numbers, rests) = (numbers(n)?, Buffer::from_vec(vec![0u32; 3])?);
    queue.submit(|cg| {
        let numbers = cg.access(&numbers, Read);
        let rests = reduction(cg.access(&rests, Write), Sum).span::<3>();
        cg.parallel_reduce(n, rests, move |item, rests| rests[numbers.get(item).abs() as usize % 3] += 1)
    })?;
    Ok(rests.to_vec()?)
}

/// Rows that are shorter and longer than what accumulators take at once.
fn planes(queue: &Queue, range: [usize; 2]) -> oxisycl::Result<f32> {
    let values: Vec<f32> = numbers(range[0] * range[1])?.into_vec()?;
    let (picture, sum) = (Buffer::from_vec_nd(values, range)?, Buffer::from_vec(vec![0.0f32])?);
    queue.submit(|cg| {
        let (picture, sum) = (cg.access(&picture, Read), reduction(cg.access(&sum, Write), Sum));
        cg.parallel_reduce(range, sum, move |item, sum| {
            let (picture, [y, x]) = (picture.view(item), [item.get(0), item.get(1)]);
            if y > 0 && x > 0 {
                *sum += (picture[[y, x]] - picture[[y, x - 1]]).abs().sqrt() + of_number(picture[[y - 1, x]], x as u32);
            }
        })
    })?;
    Ok(sum.to_vec()?[0])
}

fn spaces(queue: &Queue, range: [usize; 3]) -> oxisycl::Result<u32> {
    let (all, least) = (Buffer::from_vec(vec![0u32])?, Buffer::from_vec(vec![u32::MAX])?);
    queue.submit(|cg| {
        let into = (reduction(cg.access(&all, Write), BitXor), reduction(cg.access(&least, ReadWrite), Min));
        cg.parallel_reduce(range, into, move |item, (all, least)| {
            let [z, y, x] = [item.get(0), item.get(1), item.get(2)].map(|at| at as u32 + 1);
            let mut hash = z.wrapping_mul(0x85EB_CA6B) ^ y.wrapping_mul(0xC2B2_AE35) ^ x.wrapping_mul(0x27D4_EB2F);
            for _ in 0..5 {
                hash = (hash ^ (hash >> 15)).wrapping_mul(0x2C1B_3C6D);
            }
            *all ^= hash;
            least.combine(hash);
        })
    })?;
    Ok(all.to_vec()?[0] ^ least.to_vec()?[0])
}

fn failing(queue: &Queue, at: usize) -> oxisycl::Result<Event> {
    let (numbers, sum) = (numbers(N)?, Buffer::from_vec(vec![0.0f32])?);
    queue.submit(|cg| {
        let (numbers, sum) = (cg.access(&numbers, Read), reduction(cg.access(&sum, Write), Sum));
        cg.parallel_reduce(N, sum, move |item, sum| {
            let value = of_number(numbers.get(item), item.index() as u32);
            assert!(item.index() != at, "item {} of {N}", item.index());
            *sum += value;
        })
    })
}
