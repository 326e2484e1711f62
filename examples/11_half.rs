//! Numbers of 16 bits from `half` in a kernel: half the memory and half the traffic of `f32`, with a curve in fewer digits.
//!
//! `cargo run --example 11_half --features half`

use half::f16;
use oxisycl::prelude::*;

const SAMPLES: usize = 4096;

/// A cubic curve by Horner's rule, in half precision.
fn curve(x: f16) -> f16 {
    let [a, b, c] = [0.25, -1.5, 2.0].map(f16::from_f32);
    ((a * x + b) * x + c) * x
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let samples: Vec<f16> = (0..SAMPLES).map(|i| f16::from_f32(i as f32 / SAMPLES as f32)).collect();

    let curved = Buffer::from_slice(&samples)?;
    queue.submit(|cg| {
        let curved = cg.access(&curved, ReadWrite);
        cg.parallel_for(SAMPLES, move |item| curved.update(item, curve))
    })?;

    let curved = curved.into_vec()?;
    // A device may compute a product and a sum in one step, which rounds once instead of twice.
    let difference = |found: f16, expected: f16| (found.to_f32() - expected.to_f32()).abs();
    assert!(curved.iter().zip(&samples).all(|(found, x)| difference(*found, curve(*x)) < 4e-3));
    let errors = curved.iter().zip(&samples).map(|(found, x)| {
        let x = x.to_f32();
        (found.to_f32() - ((0.25 * x - 1.5) * x + 2.0) * x).abs()
    });
    println!("{SAMPLES} samples, at most {:.4} from the curve in f32", errors.fold(0.0, f32::max));
    Ok(())
}
