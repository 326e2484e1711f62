//! A kernel that calls itself as often as its work-item's number says, and one that does the same in a loop.

use oxisycl::prelude::*;

fn each(n: usize, f: impl Fn(u64) -> u64 + Copy + Send + Sync + 'static) -> oxisycl::Result<Vec<u64>> {
    let numbers = Buffer::from_vec(vec![0; n])?;
    Queue::builder()
        .build()?
        .submit(|cg| {
            let numbers = cg.access(&numbers, Write.no_init());
            cg.parallel_for(n, move |item| numbers.set(item, f(item.index() as u64)))
        })?
        .wait()?;
    Ok(numbers.into_vec()?)
}

fn calling_itself(n: u64) -> u64 {
    if n == 0 { 1 } else { calling_itself(n - 1).wrapping_mul(3).wrapping_add(n) }
}

fn in_a_loop(n: u64) -> u64 {
    (1..=n).fold(1, |sum: u64, n| sum.wrapping_mul(3).wrapping_add(n))
}

fn main() -> oxisycl::Result {
    assert_eq!(each(64, calling_itself)?, each(64, in_a_loop)?);
    Ok(())
}
