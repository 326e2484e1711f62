//! The shortest program: one kernel adds a number to every element of a buffer.
//!
//! `cargo run --example 01_hello`

use oxisycl::prelude::*;

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let numbers = Buffer::from_elements(0..1000)?;
    let summand = 42;

    queue.submit(|cg| {
        let numbers = cg.access(&numbers, ReadWrite);
        cg.parallel_for(1000, move |item| numbers.update(item, |x| x + summand))
    })?;

    // Getting the data waits for the kernel.
    let result = numbers.into_vec()?;
    assert!(result.iter().zip(summand..).all(|(&x, expected)| x == expected));
    println!("{} added {summand} to {} numbers", queue.device().name(), result.len());
    Ok(())
}
