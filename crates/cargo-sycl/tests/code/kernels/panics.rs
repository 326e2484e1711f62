//! Kernels that may panic, beside ones that do the same and cannot.

use oxisycl::prelude::*;

/// Each number replaced by the element that it names. One accessor, whose own check is the same in all such kernels.
fn replaced(n: usize, f: impl Fn(&[u32; 16], usize) -> u32 + Copy + Send + Sync + 'static) -> oxisycl::Result<Vec<u32>> {
    let numbers = Buffer::from_vec((0..n).map(|i| i as u32 % 16).collect())?;
    let table: [u32; 16] = std::array::from_fn(|i| 3 * i as u32);
    Queue::builder()
        .build()?
        .submit(|cg| {
            let numbers = cg.access(&numbers, ReadWrite);
            cg.parallel_for(n, move |item| numbers.update(item, |x| f(&table, x as usize)))
        })?
        .wait()?;
    Ok(numbers.into_vec()?)
}

fn checked(table: &[u32; 16], position: usize) -> u32 {
    table[position]
}

fn unchecked(table: &[u32; 16], position: usize) -> u32 {
    // SAFETY: all numbers in the buffer are below 16.
    unsafe { *table.get_unchecked(position) }
}

/// Sorting ends the program if a comparison panicked within another's clean-up.
fn sorted(x: u32) -> u32 {
    let mut numbers: [u32; 64] = std::array::from_fn(|i| x.wrapping_mul(i as u32 * 7919) ^ 0x55);
    numbers.sort_unstable();
    numbers[3]
}

/// A loop over three accessors. Each has a range, which the launch may not leave, and a panic that names the place.
fn triad(sums: &Buffer<f32, 1>, a: &Buffer<f32, 1>, b: &Buffer<f32, 1>) -> oxisycl::Result {
    let group = Queue::builder().build()?.submit(|cg| {
        let (sums, a, b) = (cg.access(sums, Write), cg.access(a, Read), cg.access(b, Read));
        cg.parallel_for(64, move |item| sums.set(item, a.get(item) + 3.0 * b.get(item)))
    });
    group?.wait()
}

fn main() -> oxisycl::Result {
    let [sums, a, b] = [0.0, 1.0, 2.0].map(|x| Buffer::from_vec(vec![x; 64]));
    triad(&sums?, &a?, &b?)?;
    assert_eq!(replaced(64, checked)?, replaced(64, unchecked)?);

    let buffer = Buffer::from_vec(vec![1u32; 64])?;
    Queue::builder()
        .build()?
        .submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, sorted))
        })?
        .wait()
}
