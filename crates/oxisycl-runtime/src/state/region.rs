//! Boxes of a buffer's index space, and what can be computed from boxes alone.
//!
//! Invariant: every operation is exact on element sets; only [`Region::round_out`] enlarges, and
//! says by how much. Does not know about data, devices or allocations.

use smallvec::SmallVec;

#[cfg(test)]
mod tests;

/// A half-open box of elements: `begin <= index < end` in each dimension.
///
/// Dimension 2 is contiguous in memory. A region with `begin >= end` in any dimension is empty,
/// wherever it lies; empty regions that were made differently compare unequal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Region {
    /// The lowest index in each dimension.
    pub begin: [usize; 3],
    /// One past the highest index in each dimension.
    pub end: [usize; 3],
}

impl Region {
    /// A region without elements.
    pub const EMPTY: Self = Self::new([0; 3], [0; 3]);

    /// The box from `begin` up to, but not including, `end`.
    #[inline]
    pub const fn new(begin: [usize; 3], end: [usize; 3]) -> Self {
        Self { begin, end }
    }

    /// All elements of an index space of this extent.
    #[inline]
    pub const fn whole(extent: [usize; 3]) -> Self {
        Self::new([0; 3], extent)
    }

    /// The box of `extent` elements per dimension that starts at `offset`, as a ranged accessor
    /// names it (SYCL 2020 section 4.7.6.9). Ends that no `usize` can hold saturate.
    #[inline]
    pub const fn from_offset_extent(offset: [usize; 3], extent: [usize; 3]) -> Self {
        let [x, y, z] = offset;
        let end = [x.saturating_add(extent[0]), y.saturating_add(extent[1]), z.saturating_add(extent[2])];
        Self::new(offset, end)
    }

    /// Whether the region has no element.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.begin[0] >= self.end[0] || self.begin[1] >= self.end[1] || self.begin[2] >= self.end[2]
    }

    /// The number of indices in each dimension.
    #[inline]
    pub const fn extent(&self) -> [usize; 3] {
        [
            self.end[0].saturating_sub(self.begin[0]),
            self.end[1].saturating_sub(self.begin[1]),
            self.end[2].saturating_sub(self.begin[2]),
        ]
    }

    /// The number of elements; saturates where no `usize` can hold it.
    #[inline]
    pub const fn size(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let [x, y, z] = self.extent();
        x.saturating_mul(y).saturating_mul(z)
    }

    /// The elements that are in both regions; empty if there are none.
    #[inline]
    pub const fn intersection(&self, other: &Self) -> Self {
        let (a, b) = (self, other);
        Self::new(
            [max(a.begin[0], b.begin[0]), max(a.begin[1], b.begin[1]), max(a.begin[2], b.begin[2])],
            [min(a.end[0], b.end[0]), min(a.end[1], b.end[1]), min(a.end[2], b.end[2])],
        )
    }

    /// Whether any element is in both regions.
    #[inline]
    pub const fn overlaps(&self, other: &Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Whether every element of `other` is in this region; an empty `other` always is.
    #[inline]
    pub const fn contains(&self, other: &Self) -> bool {
        other.is_empty() || {
            let (a, b) = (self, other);
            a.begin[0] <= b.begin[0]
                && a.begin[1] <= b.begin[1]
                && a.begin[2] <= b.begin[2]
                && a.end[0] >= b.end[0]
                && a.end[1] >= b.end[1]
                && a.end[2] >= b.end[2]
        }
    }

    /// The page range of an access to this region: every page of which it touches an element. The buffer has
    /// the extent `bounds`, and pages of `page` elements per dimension.
    ///
    /// Pages start at index 0; the last one of a dimension ends at the bound. What lies outside the
    /// bounds is dropped, and a region without elements has no pages. A page size of zero counts as
    /// one: buffers refuse it before any region exists.
    #[inline]
    pub const fn round_out(&self, page: [usize; 3], bounds: [usize; 3]) -> Self {
        let mut pages = self.intersection(&Self::whole(bounds));
        if pages.is_empty() {
            return Self::EMPTY;
        }
        let mut dim = 0;
        while dim < 3 {
            (pages.begin[dim], pages.end[dim]) = round_out_1d(pages.begin[dim], pages.end[dim], page[dim], bounds[dim]);
            dim += 1;
        }
        pages
    }

    /// Whether the region consists of whole pages, that is, [`Self::round_out`] would not change
    /// its elements.
    #[inline]
    pub const fn is_page_aligned(&self, page: [usize; 3], bounds: [usize; 3]) -> bool {
        self.contains(&self.round_out(page, bounds)) && Self::whole(bounds).contains(self)
    }

    /// The row-major positions `[first, past_last)` of the region in a space of this extent, if they are one run
    /// without gaps. An empty region is the run `(0, 0)`.
    ///
    /// `None` also for a region that is not inside the space. The space must have no more elements
    /// than a `usize` can count.
    #[inline]
    pub const fn contiguous_interval(&self, extent: [usize; 3]) -> Option<(usize, usize)> {
        if self.is_empty() {
            return Some((0, 0));
        }
        if !Self::whole(extent).contains(self) {
            return None;
        }
        let [x, y, z] = self.extent();
        let (full_y, full_z) = (y == extent[1], z == extent[2]);
        if !((x == 1 && (y == 1 || full_z)) || (full_y && full_z)) {
            return None;
        }
        let first = (self.begin[0] * extent[1] + self.begin[1]) * extent[2] + self.begin[2];
        Some((first, first + x * y * z))
    }
}

/// The boxes that together cover exactly the row-major positions `[begin, end)` of a space of this extent. They are
/// disjoint and in ascending order. There are at most five: the rest of a row, the rest of a plane, whole planes, whole
/// rows, part of a row.
///
/// Positions past the end of the space are dropped. The space must have no more elements than a
/// `usize` can count.
pub fn decompose_interval(begin: usize, end: usize, extent: [usize; 3]) -> SmallVec<[Region; 5]> {
    let mut boxes = SmallVec::new();
    let row = extent[2];
    let plane = extent[1].saturating_mul(row);
    let end = min(end, Region::whole(extent).size());
    let mut at = begin;
    while at < end {
        let left = end - at;
        let (x, y, z) = (at / plane, at % plane / row, at % row);
        let corner = if at.is_multiple_of(plane) && left >= plane {
            [x + left / plane, extent[1], row]
        } else if z == 0 && left >= row {
            [x + 1, min(extent[1], y + left / row), row]
        } else {
            [x + 1, y + 1, min(row, z + left)]
        };
        let piece = Region::new([x, y, z], corner);
        at += piece.size();
        boxes.push(piece);
    }
    boxes
}

/// Replaces disjoint boxes by fewer disjoint boxes with the same elements. Joins boxes that touch in one
/// dimension and agree in the other two. Empty boxes are dropped.
///
/// Runs along memory (dimension 2) are joined first, because they make the cheapest copies. The
/// result is not always the smallest possible; its order is unspecified.
pub fn coalesce(regions: &mut Vec<Region>) {
    let n_kept = coalesce_slice(regions);
    regions.truncate(n_kept);
}

/// [`coalesce`] for boxes in any container: the result is the first elements of the slice, whose
/// number is returned; the rest has no meaning.
pub fn coalesce_slice(regions: &mut [Region]) -> usize {
    // Pieces laid around each other in a spiral free one join per pass. The limit keeps them from
    // costing a pass, O(n log n), for every box; other layouts settle long before.
    const MAX_PASSES: usize = 48;

    let mut n_kept = 0;
    for idx in 0..regions.len() {
        if !regions[idx].is_empty() {
            regions[n_kept] = regions[idx];
            n_kept += 1;
        }
    }
    let mut n_settled_dims = 0;
    for dim in [2, 1, 0].into_iter().cycle().take(MAX_PASSES) {
        if n_settled_dims == 3 || n_kept < 2 {
            break;
        }
        let n_joined = join_along(dim, &mut regions[..n_kept]);
        // A dimension in which everything is joined can gain from joins in the other two only.
        n_settled_dims = if n_joined < n_kept { 1 } else { n_settled_dims + 1 };
        n_kept = n_joined;
    }
    n_kept
}

/// Joins all boxes that touch in `dim` and agree in the other dimensions; returns how many are left.
fn join_along(dim: usize, regions: &mut [Region]) -> usize {
    let (p, q) = ((dim + 1) % 3, (dim + 2) % 3);
    let cross_section = |r: &Region| [r.begin[p], r.end[p], r.begin[q], r.end[q]];
    regions.sort_unstable_by_key(|r| (cross_section(r), r.begin[dim]));
    let mut last = 0;
    for idx in 1..regions.len() {
        let (kept, next) = (regions[last], regions[idx]);
        if kept.end[dim] == next.begin[dim] && cross_section(&kept) == cross_section(&next) {
            regions[last].end[dim] = next.end[dim];
        } else {
            last += 1;
            regions[last] = next;
        }
    }
    regions.len().min(last + 1)
}

/// `round_out` in one dimension, for `begin < end <= bound`.
const fn round_out_1d(begin: usize, end: usize, page: usize, bound: usize) -> (usize, usize) {
    // Dimensions of extent 1 and buffers of one page are the common case and need no division.
    if page >= bound {
        return (0, bound);
    }
    let page = max(page, 1);
    (begin / page * page, min(end.div_ceil(page).saturating_mul(page), bound))
}

// `Ord::min` and `Ord::max` are not const.
const fn min(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}
