//! A total map from the elements of an index space to values, stored as few boxes.
//!
//! Interval maps nested per dimension, dimension 0 outermost: rows that agree everywhere share one
//! map of their columns. A dimension with one interval costs one comparison, so a one-dimensional
//! buffer pays for one ordered tree and a buffer with one value for none.
//!
//! Invariant: the form is canonical (see [`super::interval_map`]). So the number of regions depends on the values
//! alone, not on the updates that led to them.
//!
//! Does not know pages: a million pages with two values are two or three regions.

use super::Region;
use super::interval_map::{IntervalMap, Span};

#[cfg(test)]
mod tests;

/// A value for each element of an index space; costs grow with the number of boxes of equal value.
///
/// Two maps are equal if they have the same extent and the same value at every element.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionMap<V> {
    extent: [usize; 3],
    planes: IntervalMap<IntervalMap<IntervalMap<V>>>,
}

impl<V> RegionMap<V> {
    /// A map with one value for all elements of the space. Does not allocate.
    pub const fn new(extent: [usize; 3], value: V) -> Self {
        let planes = IntervalMap::One(IntervalMap::One(IntervalMap::One(value)));
        Self { extent, planes }
    }

    /// The extent of the index space.
    pub const fn extent(&self) -> [usize; 3] {
        self.extent
    }

    /// The value of one element, or `None` outside the space.
    pub fn get(&self, point: [usize; 3]) -> Option<&V> {
        let inside = (0..3).all(|dim| point[dim] < self.extent[dim]);
        inside.then(|| self.planes.at(point[0])?.at(point[1])?.at(point[2])).flatten()
    }

    /// The number of stored boxes: 1 if all values are equal, 0 if the space has no elements.
    ///
    /// Counts; linear in the number of boxes.
    pub fn n_regions(&self) -> usize {
        if Region::whole(self.extent).is_empty() {
            return 0;
        }
        let cells = self.planes.values().flat_map(IntervalMap::values);
        cells.map(|cells| cells.values().count()).sum()
    }

    /// All stored boxes with their values: disjoint, covering the space, ascending by `begin`.
    pub fn iter(&self) -> impl Iterator<Item = (Region, &V)> {
        let [x, y, z] = self.extent;
        let planes = self.planes.iter(x);
        let rows = planes.flat_map(move |(a, rows)| rows.iter(y).map(move |(b, row)| (a, b, row)));
        let boxes = rows.flat_map(move |(a, b, row)| row.iter(z).map(move |(c, v)| (join(a, b, c), v)));
        boxes.filter(|(region, _)| !region.is_empty())
    }

    /// Calls `f` with disjoint boxes that cover the part of `query` inside the space, each with the
    /// value that its elements have, ascending by `begin`.
    ///
    /// Boxes with equal values may touch: the stored form is cut along dimension 0 first.
    /// [`coalesce`](super::coalesce) joins them where that matters.
    #[inline]
    pub fn for_each(&self, query: &Region, mut f: impl FnMut(&Region, &V)) {
        let whole = Region::whole(self.extent);
        // A buffer of one page and one value, the usual case, is worth a shortcut.
        if let IntervalMap::One(IntervalMap::One(IntervalMap::One(value))) = &self.planes
            && query.contains(&whole)
            && !whole.is_empty()
        {
            return f(&whole, value);
        }
        let query = query.intersection(&whole);
        if query.is_empty() {
            return;
        }
        let [x, y, z] = spans(&query);
        self.planes.for_each(x, |a, rows| {
            rows.for_each(y, |b, row| row.for_each(z, |c, value| f(&join(a, b, c), value)));
        });
    }
}

impl<V: Clone + PartialEq> RegionMap<V> {
    /// Changes values in the part of `region` inside the space. Cuts the stored boxes at its borders, and calls `f`
    /// once for each resulting box inside it. Then joins boxes of equal value again, also with those just outside.
    ///
    /// Where the region covers stored boxes only in part, `f` gets a clone of the value, so values
    /// should be cheap to clone. For boxes that are not cut, `f` changes the value in place.
    #[inline]
    pub fn update(&mut self, region: &Region, mut f: impl FnMut(&Region, &mut V)) {
        let whole = Region::whole(self.extent);
        // As in `for_each`.
        if let IntervalMap::One(IntervalMap::One(IntervalMap::One(value))) = &mut self.planes
            && region.contains(&whole)
            && !whole.is_empty()
        {
            return f(&whole, value);
        }
        let region = region.intersection(&whole);
        if region.is_empty() {
            return;
        }
        let [x, y, z] = spans(&region);
        let [n_x, n_y, n_z] = self.extent;
        // Neighbouring rows differed somewhere before the update, most probably where it was made:
        // looking there first avoids the comparison of whole rows.
        let probe = |row: &IntervalMap<V>, other: &IntervalMap<V>| row.at(z.begin) == other.at(z.begin);
        let same_row = |row: &_, other: &_| probe(row, other) && row == other;
        let same_plane = |plane: &IntervalMap<IntervalMap<V>>, other: &IntervalMap<_>| {
            let rows = plane.at(y.begin).zip(other.at(y.begin));
            rows.is_none_or(|(row, other)| probe(row, other)) && plane == other
        };
        let update_plane = |a, plane: &mut IntervalMap<IntervalMap<V>>| {
            let update_row = |b, row: &mut IntervalMap<V>| {
                row.update(n_z, z, |c, value| f(&join(a, b, c), value), V::eq);
            };
            plane.update(n_y, y, update_row, same_row);
        };
        self.planes.update(n_x, x, update_plane, same_plane);
    }
}

const fn spans(region: &Region) -> [Span; 3] {
    let Region { begin, end } = *region;
    [Span::new(begin[0], end[0]), Span::new(begin[1], end[1]), Span::new(begin[2], end[2])]
}

const fn join(a: Span, b: Span, c: Span) -> Region {
    Region::new([a.begin, b.begin, c.begin], [a.end, b.end, c.end])
}
