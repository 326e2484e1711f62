//! Numbers for tests that make random programs: the same ones for the same seed.

/// Marsaglia's xorshift.
pub(crate) struct Random(u64);

impl Random {
    /// Numbers that follow from a seed, which is not 0.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
