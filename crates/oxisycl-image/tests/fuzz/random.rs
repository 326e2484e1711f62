//! Numbers that follow from a seed.

/// SplitMix64: each seed has a sequence of its own.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`; 0 if that is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.next() % end as u64) as usize }
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A number as they stand in lengths, counts and offsets: small, near `around`, or at a limit.
    pub(crate) fn length(&mut self, around: usize) -> u64 {
        let around = around as u64;
        match self.below(6) {
            0 => self.next() % 9,
            1 => around.wrapping_add(self.next() % 17).wrapping_sub(8),
            2 => u64::MAX - self.next() % 9,
            3 => (1 << 31) + self.next() % 3 - 1,
            4 => u64::from(u32::MAX) - self.next() % 9,
            _ => 1 << (self.next() % 64),
        }
    }
}
