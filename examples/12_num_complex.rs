//! Complex numbers of `num-complex` in a kernel: a Julia set, drawn in letters.
//!
//! `cargo run --example 12_num_complex --features num-complex`

use num_complex::Complex;
use oxisycl::prelude::*;

const WIDTH: usize = 72;
const HEIGHT: usize = 24;
const STEPS: u32 = 64;

/// How many steps of `z² + c` the number stays within a distance of two.
fn steps(mut z: Complex<f32>, c: Complex<f32>) -> u32 {
    let mut n = 0;
    while n < STEPS && z.norm_sqr() < 4.0 {
        z = z * z + c;
        n += 1;
    }
    n
}

/// The number at a place of the picture.
fn number([y, x]: [usize; 2]) -> Complex<f32> {
    Complex::new(3.2 * x as f32 / WIDTH as f32 - 1.6, 2.4 * y as f32 / HEIGHT as f32 - 1.2)
}

fn main() -> oxisycl::Result<()> {
    let queue = Queue::default()?;
    let c = Complex::new(-0.8, 0.156);

    let counts = Buffer::<u32, 2>::uninit([HEIGHT, WIDTH])?;
    queue.submit(|cg| {
        let counts = cg.access(&counts, Write);
        cg.parallel_for([HEIGHT, WIDTH], move |item: Item<2>| {
            let [y, x] = item.id().into();
            counts.set(item, steps(number([y, x]), c));
        })
    })?;

    let counts = counts.into_vec()?;
    // What is far from the border of the set does not depend on how a device rounds.
    assert_eq!(counts[0], steps(number([0, 0]), c));
    assert!(counts.contains(&STEPS), "nothing is in the set");
    for row in counts.chunks(WIDTH) {
        let letter = |n: &u32| b" .:-=+*#%@"[(n.ilog2() as usize * 9 / STEPS.ilog2() as usize).min(9)] as char;
        println!("{}", row.iter().map(|n| letter(&(n + 1))).collect::<String>().trim_end());
    }
    Ok(())
}
