//! Which of a buffer's allocations: one, or a set of them.

use std::fmt;

/// A position in a buffer's list of allocations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AllocationIdx(u8);

impl AllocationIdx {
    /// How many there are: at most this many memories can hold one buffer.
    pub const MOST: usize = u32::BITS as usize;

    /// The position; `None` from [`MOST`](Self::MOST) on.
    pub fn new(position: usize) -> Option<Self> {
        if position < Self::MOST { u8::try_from(position).ok().map(Self) } else { None }
    }

    /// The position, for an index.
    pub fn position(self) -> usize {
        usize::from(self.0)
    }
}

/// A set of a buffer's allocations.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct AllocationSet(u32);

impl AllocationSet {
    /// No allocation.
    pub const EMPTY: Self = Self(0);

    /// One allocation.
    pub const fn of(allocation: AllocationIdx) -> Self {
        Self(1 << allocation.0)
    }

    /// Whether it has no allocation.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the allocation is in it.
    pub const fn contains(self, allocation: AllocationIdx) -> bool {
        self.0 & Self::of(allocation).0 != 0
    }

    /// The set with the allocation.
    #[must_use]
    pub const fn with(self, allocation: AllocationIdx) -> Self {
        Self(self.0 | Self::of(allocation).0)
    }

    /// The set without the allocation.
    #[must_use]
    pub const fn without(self, allocation: AllocationIdx) -> Self {
        Self(self.0 & !Self::of(allocation).0)
    }

    /// The set without those of the other.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Debug for AllocationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let positions = (0..AllocationIdx::MOST).filter_map(AllocationIdx::new).filter(|index| self.contains(*index));
        f.debug_set().entries(positions.map(AllocationIdx::position)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_what_was_put_into_them() {
        let [first, last] = [0, 31].map(|position| AllocationIdx::new(position).expect("within the limit"));
        let both = AllocationSet::of(first).with(last);
        assert!(both.contains(first) && both.contains(last) && !both.is_empty());
        assert_eq!(both.without(first), AllocationSet::of(last));
        assert_eq!(both.minus(AllocationSet::of(last)), AllocationSet::of(first));
        assert!(both.minus(both).is_empty() && AllocationSet::EMPTY.is_empty());
        assert_eq!(format!("{both:?}"), "{0, 31}");
        assert_eq!(AllocationIdx::new(32), None);
    }
}
