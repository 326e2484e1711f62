//! Sums of two numbers, the second of which is what rounding took from the first: about 48 bits.

use crate::operation::Operations;

/// The value `high + low`.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    pub(super) high: f32,
    pub(super) low: f32,
}

/// `a + b`, exactly.
#[inline(always)]
pub(super) fn sum(a: f32, b: f32) -> Pair {
    let high = a + b;
    let part = high - a;
    Pair { high, low: (a - (high - part)) + (b - part) }
}

/// `a + b` if `a` is not smaller in magnitude, exactly.
#[inline(always)]
pub(super) fn ordered_sum(a: f32, b: f32) -> Pair {
    let high = a + b;
    Pair { high, low: b - (high - a) }
}

impl Pair {
    /// A product with another pair.
    #[inline(always)]
    pub(super) fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let rest = self.high.fma(other.high, -high);
        Self { high, low: self.high.fma(other.low, self.low.fma(other.high, rest)) }
    }

    /// A sum with another pair.
    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        let Self { high, low } = sum(self.high, other.high);
        Self { high, low: low + (self.low + other.low) }
    }
}
