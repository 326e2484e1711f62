//! Kernels whose results say nothing of how many work-items ran at once: ranges of all lengths around those of vectors, blocks of some sizes. Prints what
//! long ranges compute, as bits.

use oxisycl::float::fast;
use oxisycl::observe;
use oxisycl::prelude::*;

/// More than twice the most lanes.
const SHORT: usize = 65;
const LONG: usize = 5003;
const TABLE: [u32; 8] = [100, 101, 102, 103, 104, 105, 106, 107];
const OUTSIDE: u32 = 99;

fn main() -> oxisycl::Result {
    let queue = Queue::default()?;
    let kernels: [(&str, fn(&Queue, usize) -> oxisycl::Result<Vec<u32>>); 3] =
        [("row", row), ("rows", rows), ("quick", quick)];
    for (name, kernel) in kernels {
        let long = kernel(&queue, LONG)?;
        for n in 1..=SHORT {
            assert_eq!(kernel(&queue, n)?, long[..n], "{name} of {n}");
        }
        println!("{name} {:016x}", hash(&long));
    }
    let whole = blocks(&queue, 1)?;
    for size in [2, 3, 8, 17, 64, LONG] {
        assert_eq!(blocks(&queue, size)?, whole, "blocks of {size}");
    }
    println!("blocks {:016x}", hash(&whole));
    let (quick, worst) = (quick(&queue, LONG)?, 2e-6);
    for (number, bits) in numbers(LONG).into_iter().zip(quick) {
        let (x, found) = (f64::from(number), f64::from(f32::from_bits(bits)));
        let exact = (x * x + 3.0) / (x.abs() + 0.7) + x.abs().sqrt();
        assert!((found - exact).abs() <= worst * exact, "of {x}: {found}, not {exact}");
    }
    println!("wild {:?}", wild(&queue)?);
    eprintln!("native launches: {}", observe::counters().native_kernels);
    Ok(())
}

fn hash(values: &[u32]) -> u64 {
    values.iter().fold(0xcbf2_9ce4_8422_2325, |hash, value| (hash ^ u64::from(*value)).wrapping_mul(0x0100_0000_01b3))
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.37).sin() * 2.5).collect()
}

/// Products and sums that can be fused in two ways, a loop that work-items leave one by one, and functions.
#[inline(always)]
fn computed(x: f32, at: usize) -> u32 {
    let mut y = x * x + 0.3 * x;
    for k in 0..at % 5 {
        y = y * x - k as f32 * 0.1;
    }
    (y.sin() * x + (x * 0.5).exp() * y).to_bits()
}

fn row(queue: &Queue, n: usize) -> oxisycl::Result<Vec<u32>> {
    let (input, output) = (Buffer::from_vec(numbers(n))?, Buffer::from_vec(vec![0u32; n])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        cg.parallel_for(n, move |item| output.set(item, computed(input.get(item), item.index())))
    })?;
    Ok(output.into_vec()?)
}

/// Several rows, all of which are alike.
fn rows(queue: &Queue, n: usize) -> oxisycl::Result<Vec<u32>> {
    const ROWS: usize = 3;
    let (input, output) = (Buffer::from_vec(numbers(n))?, Buffer::from_vec_nd(vec![0u32; ROWS * n], [ROWS, n])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        cg.parallel_for([ROWS, n], move |item: Item<2>| {
            let x = item.get(1);
            output.set(item, computed(input.view(item)[x], x));
        })
    })?;
    let all = output.into_vec()?;
    assert!(all.chunks(n).all(|row| row == &all[..n]), "rows of {n} differ");
    Ok(all[..n].to_vec())
}

/// Elements of each block, one after the other.
fn blocks(queue: &Queue, size: usize) -> oxisycl::Result<Vec<u32>> {
    let (input, output) = (Buffer::from_vec(numbers(LONG))?, Buffer::from_vec(vec![0u32; LONG])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access_chunks(&output, Write, size));
        cg.parallel_for(output.n_blocks(), move |item: Item<1>| {
            let (numbers, first) = (input.view(item), item.index() * size);
            output.block(item).fill_with(|id| computed(numbers[first + id[0]], first + id[0]));
        })
    })?;
    Ok(output.into_vec()?)
}

fn quick(queue: &Queue, n: usize) -> oxisycl::Result<Vec<u32>> {
    let (input, output) = (Buffer::from_vec(numbers(n))?, Buffer::from_vec(vec![0u32; n])?);
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        let kernel = move |item: Item<1>| {
            let x = input.get(item);
            output.set(item, ((x * x + 3.0) / (x.abs() + 0.7) + x.abs().sqrt()).to_bits());
        };
        cg.parallel_for(n, fast(kernel))
    })?;
    Ok(output.into_vec()?)
}

/// Places of a table by numbers that have none, too.
fn wild(queue: &Queue) -> oxisycl::Result<Vec<u32>> {
    let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -f32::MAX, -0.0, 1e-42, 3.5, 7.75, 8.0, -1.0];
    let n = 6 * numbers.len();
    let input = Buffer::from_elements((0..n).map(|i| numbers[i % numbers.len()]))?;
    let output = Buffer::from_vec(vec![[0u32; 2]; n])?;
    queue.submit(|cg| {
        let (input, output) = (cg.access(&input, Read), cg.access(&output, Write));
        let kernel = move |item: Item<1>| {
            let x = input.get(item) * 3.0 - input.get(item) * 2.0;
            let is_inside = (0.0..8.0).contains(&x);
            // SAFETY: the number is one from 0 to 8.
            let place = if is_inside { unsafe { x.to_int_unchecked::<usize>() } } else { TABLE.len() };
            let other = TABLE[((x + 1.0) as usize).min(TABLE.len() - 1)];
            output.set(item, [*TABLE.get(place).unwrap_or(&OUTSIDE), other]);
        };
        cg.parallel_for(n, fast(kernel))
    })?;
    let found = output.into_vec()?;
    assert!(found.chunks(numbers.len()).all(|part| part == &found[..numbers.len()]), "{found:?}");
    let exact = [(0, [OUTSIDE, 100]), (5, [100, 101]), (6, [100, 101]), (7, [103, 104]), (8, [107; 2]), (9, [OUTSIDE, 107])];
    assert!(exact.iter().all(|(at, expected)| found[*at] == *expected), "{found:?}");
    // What is infinite may become no number, which is at place 0.
    assert!(found[1..5].iter().all(|[place, other]| *place == OUTSIDE && TABLE.contains(other)), "{found:?}");
    Ok(found[..numbers.len()].iter().map(|[place, other]| 1000 * place + other).collect())
}
