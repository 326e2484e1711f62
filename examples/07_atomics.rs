//! Atomic accessors: any work-item may change any element. Here they count how often each digit begins a power of two, and
//! find the last power that does.
//!
//! `cargo run --example 07_atomics`

use oxisycl::prelude::*;

const POWERS: usize = 10_000;

/// The first digit of two to the power of `exponent`.
fn leading_digit(exponent: usize) -> usize {
    let logarithm = exponent as f64 * 2f64.log10();
    10f64.powf(logarithm.fract()) as usize
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let counts = Buffer::from_vec(vec![0u32; 10])?;
    let highest = Buffer::from_vec(vec![0u64; 10])?;

    queue.submit(|cg| {
        let (counts, highest) = (cg.access(&counts, Atomic), cg.access(&highest, Atomic));
        cg.parallel_for(POWERS, move |item: Item<1>| {
            let digit = leading_digit(item.index());
            counts.fetch_add(item, digit, 1);
            highest.fetch_max(item, digit, item.index() as u64);
        })
    })?;

    let (counts, highest) = (counts.to_vec()?, highest.to_vec()?);
    let mut expected = (vec![0; 10], vec![0; 10]);
    for exponent in 0..POWERS {
        let digit = leading_digit(exponent);
        expected.0[digit] += 1;
        expected.1[digit] = exponent as u64;
    }
    assert_eq!((&counts, &highest), (&expected.0, &expected.1));
    let shares: Vec<String> = counts[1..].iter().map(|&n| format!("{:.1}", 100.0 * n as f64 / POWERS as f64)).collect();
    println!("first digits 1 to 9 of {POWERS} powers of two, in percent: {}", shares.join(" "));
    println!("the last power that begins with 7 is 2^{}", highest[7]);
    Ok(())
}
