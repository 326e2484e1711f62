use crate::Range;

/// A global range divided into work-groups of a local range (SYCL 2020 section 4.9.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct NdRange<const D: usize> {
    global: Range<D>,
    local: Range<D>,
}

impl<const D: usize> NdRange<D> {
    /// An nd-range. `local` may be anything; [`group_range`](Self::group_range) rounds down.
    ///
    /// ```
    /// use oxisycl_types::{NdRange, Range};
    ///
    /// let range = NdRange::new(Range::new([64]), Range::new([16]));
    /// assert_eq!(range.group_range(), Range::new([4]));
    /// ```
    pub const fn new(global: Range<D>, local: Range<D>) -> Self {
        Self { global, local }
    }

    /// The range of all work-items.
    pub const fn global_range(&self) -> Range<D> {
        self.global
    }

    /// The range of one work-group.
    pub const fn local_range(&self) -> Range<D> {
        self.local
    }

    /// The range of work-groups: global divided by local, zero where local is zero.
    pub const fn group_range(&self) -> Range<D> {
        let mut groups = [0; D];
        let mut d = 0;
        while d < D {
            if let Some(n_groups) = self.global.0[d].checked_div(self.local.0[d]) {
                groups[d] = n_groups;
            }
            d += 1;
        }
        Range(groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_global_divided_by_local() {
        assert_eq!(NdRange::new(Range([64]), Range([16])).group_range(), Range([4]));
        assert_eq!(NdRange::new(Range([64, 9]), Range([16, 3])).group_range(), Range([4, 3]));
        assert_eq!(NdRange::new(Range([64, 9, 2]), Range([16, 3, 1])).group_range(), Range([4, 3, 2]));
    }

    #[test]
    fn a_zero_local_extent_gives_no_groups_instead_of_a_panic() {
        assert_eq!(NdRange::new(Range([64, 9]), Range([0, 3])).group_range(), Range([0, 3]));
    }
}
