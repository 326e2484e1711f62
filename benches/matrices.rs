//! The product of two matrices by tiles of 16 x 16 with the example's kernel, its inputs and its check.

use oxisycl::prelude::*;

use crate::random::Random;

#[path = "../examples/14_tiled_gemm.rs"]
#[expect(dead_code, reason = "its `main` is the example's")]
mod example;

/// Rows and columns.
pub(crate) const N: usize = 1024;
/// Operations of a product, in 10^9.
pub(crate) const AMOUNT: f64 = 2e-9 * (N * N * N) as f64;
/// Elements that are checked.
const PLACES: usize = 200;

/// Two matrices and their product.
pub(crate) struct Matrices {
    pub(crate) left: Vec<f32>,
    pub(crate) right: Vec<f32>,
    a: Buffer<f32, 2>,
    b: Buffer<f32, 2>,
    c: Buffer<f32, 2>,
}

impl Matrices {
    pub(crate) fn new(random: &mut Random) -> oxisycl::Result<Self> {
        let [left, right] = [random.floats(N * N), random.floats(N * N)];
        let (a, b) = (Buffer::from_slice_nd(&left, [N, N])?, Buffer::from_slice_nd(&right, [N, N])?);
        Ok(Self { left, right, a, b, c: Buffer::uninit([N, N])? })
    }

    /// Multiplies with our kernel.
    pub(crate) fn multiply(&self, queue: &Queue) {
        let multiplied = example::multiply(queue, &self.a, &self.b, &self.c).and_then(|event| event.wait());
        multiplied.expect("the command succeeds");
    }

    /// Checks what our kernel made.
    pub(crate) fn check_ours(&self, random: &mut Random) -> oxisycl::Result {
        self.check("ours", &self.c.to_vec()?, random);
        Ok(())
    }

    /// Compares elements of a product with sums of `f64`.
    pub(crate) fn check(&self, whose: &str, product: &[f32], random: &mut Random) {
        for _ in 0..PLACES {
            let (y, x) = (random.below(N), random.below(N));
            let terms = (0..N).map(|k| f64::from(self.left[y * N + k]) * f64::from(self.right[k * N + x]));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term: f64| (sum + term, size + term.abs()));
            let found = f64::from(product[y * N + x]);
            assert!((found - sum).abs() < 1e-5 * size, "{whose}: {found} in row {y}, column {x}, {sum} in plain Rust");
        }
    }
}
