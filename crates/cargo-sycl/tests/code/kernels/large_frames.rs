//! A kernel that calls itself with more variables than fit into devices without a call stack, and one that does the same in a loop.

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
    let mut memory = [n; 160];
    memory[n as usize % 160] += 1;
    if n == 0 {
        return 1;
    }
    let rest = calling_itself(n - 1);
    rest.wrapping_mul(3).wrapping_add(memory[rest as usize % 160])
}

fn in_a_loop(n: u64) -> u64 {
    let add = |n, rest: u64| rest.wrapping_mul(3).wrapping_add(n + u64::from(rest % 160 == n % 160));
    (1..=n).fold(1, |rest, n| add(n, rest))
}

fn main() -> oxisycl::Result {
    assert_eq!(each(64, calling_itself)?, each(64, in_a_loop)?);
    Ok(())
}
