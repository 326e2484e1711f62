//! Roots of fixed degree.

use crate::operation::Operations;

/// The cube root. Limit 2 ULP.
#[inline]
pub fn cbrt(x: f32) -> f32 {
    let magnitude = x.abs();
    if magnitude == 0.0 || !magnitude.is_finite() {
        return x;
    }
    // 2^-60 or 2^84, so that neither cubes nor their sums leave the range, and what undoes it.
    let (up, down) = if magnitude > 1.0e18 {
        (1.0 / 1_152_921_504_606_846_976.0, 1_048_576.0)
    } else if magnitude < 1.0e-18 {
        (19_342_813_113_834_066_795_298_816.0, 1.0 / 268_435_456.0)
    } else {
        (1.0, 1.0)
    };
    let a = magnitude * up;
    // A third of the exponent, within 4 percent: bits are about linear in the logarithm.
    let y = f32::from_bits(a.to_bits() / 3 + 709_952_852);
    // Halley's step, then Newton's with an exact rest.
    let cube = y * y * y;
    let y = y * ((cube + 2.0 * a) / (2.0 * cube + a));
    let square = y * y;
    let square_low = y.fma(y, -square);
    let rest = square_low.fma(y, square.fma(y, -a));
    let y = y - rest / (3.0 * square);
    (y * down).copysign(x)
}

/// The length of the hypotenuse, without overflow on the way. Infinity beside NaN is infinity. Limit 4 ULP.
#[inline]
pub fn hypot(x: f32, y: f32) -> f32 {
    let (x, y) = (x.abs(), y.abs());
    if x == f32::INFINITY || y == f32::INFINITY {
        return f32::INFINITY;
    }
    let largest = if x > y { x } else { y };
    let (up, down) = if largest > 1.0e18 {
        (1.0 / 1_237_940_039_285_380_274_899_124_224.0, 1_237_940_039_285_380_274_899_124_224.0)
    } else if largest < 1.0e-15 {
        (1_237_940_039_285_380_274_899_124_224.0, 1.0 / 1_237_940_039_285_380_274_899_124_224.0)
    } else {
        (1.0, 1.0)
    };
    let (x, y) = (x * up, y * up);
    x.fma(x, y * y).root() * down
}

/// One over the square root. Limit 2 ULP.
#[inline]
pub fn rsqrt(x: f32) -> f32 {
    1.0 / x.root()
}
