//! Kernels that may panic, beside ones that do the same and cannot.

use oxisycl::prelude::*;

/// The elements that the others name.
fn gathered(
    n: usize,
    f: impl Fn(&[f32; 16], usize) -> f32 + Copy + Send + Sync + 'static,
) -> oxisycl::Result<Vec<f32>> {
    let positions = Buffer::from_vec((0..n).map(|i| i as u32 % 16).collect(), n)?;
    let results = Buffer::from_vec(vec![0.0f32; n], n)?;
    let table: [f32; 16] = std::array::from_fn(|i| i as f32);
    Queue::builder()
        .build()?
        .submit(|cg| {
            let (positions, results) = (cg.access(&positions, Read), cg.access(&results, Write));
            cg.parallel_for(n, move |item| results.set(item, f(&table, positions.get(item) as usize)))
        })?
        .wait()?;
    Ok(results.into_vec()?)
}

fn checked(table: &[f32; 16], position: usize) -> f32 {
    table[position]
}

fn unchecked(table: &[f32; 16], position: usize) -> f32 {
    // SAFETY: all positions in the buffer are below 16.
    unsafe { *table.get_unchecked(position) }
}

/// Sorting ends the program if a comparison panicked within another's clean-up.
fn sorted(x: u32) -> u32 {
    let mut numbers: [u32; 64] = std::array::from_fn(|i| x.wrapping_mul(i as u32 * 7919) ^ 0x55);
    numbers.sort_unstable();
    numbers[3]
}

fn main() -> oxisycl::Result {
    assert_eq!(gathered(64, checked)?, gathered(64, unchecked)?);

    let buffer = Buffer::from_vec(vec![1u32; 64], 64)?;
    Queue::builder()
        .build()?
        .submit(|cg| {
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(64, move |item| data.update(item, sorted))
        })?
        .wait()
}
