//! A total map from the indices `0..n` of one dimension to values, stored as maximal intervals.
//!
//! Invariant (canonical form): neighbouring intervals hold unequal values, the first interval starts
//! at 0, and `Many` holds at least two. Two maps over the same `n` are therefore equal as functions
//! exactly if they are equal as structures.
//!
//! Does not store `n`: the caller passes it, so that nested maps of one dimension share it. Does not
//! check that spans are non-empty and inside `0..n`; [`super::RegionMap`] clips them.

use std::collections::BTreeMap;
use std::mem;

use smallvec::SmallVec;

/// The indices `begin..end`; unlike `Range` it is `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub(super) begin: usize,
    pub(super) end: usize,
}

impl Span {
    pub(super) const fn new(begin: usize, end: usize) -> Self {
        Self { begin, end }
    }
}

/// A total map from the indices of one dimension to values.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum IntervalMap<T> {
    /// One value everywhere: no allocation, no search.
    One(T),
    /// The value of each interval by the interval's start; its end is the next start, or `n`.
    Many(BTreeMap<usize, T>),
}

impl<T> IntervalMap<T> {
    /// The value at one index.
    #[inline]
    pub(super) fn at(&self, index: usize) -> Option<&T> {
        match self {
            Self::One(value) => Some(value),
            Self::Many(map) => map.range(..=index).next_back().map(|(_, value)| value),
        }
    }

    /// All intervals with their values, ascending.
    pub(super) fn iter(&self, n: usize) -> impl Iterator<Item = (Span, &T)> {
        let (one, many) = match self {
            Self::One(value) => (Some((Span::new(0, n), value)), None),
            Self::Many(map) => (None, Some(map)),
        };
        let many = many.into_iter().flat_map(move |map| {
            let ends = map.keys().skip(1).copied().chain([n]);
            map.iter().zip(ends).map(|((&begin, value), end)| (Span::new(begin, end), value))
        });
        one.into_iter().chain(many)
    }

    /// The values of all intervals, ascending.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.iter(0).map(|(_, value)| value)
    }

    /// Calls `f` with each interval that overlaps `span`, clipped to it, ascending.
    #[inline]
    pub(super) fn for_each(&self, span: Span, mut f: impl FnMut(Span, &T)) {
        let map = match self {
            Self::One(value) => return f(span, value),
            Self::Many(map) => map,
        };
        // One search if the span lies in one interval, the usual case for repeated accesses.
        let Some((&last, value)) = map.range(..span.end).next_back() else {
            return;
        };
        if last <= span.begin {
            return f(span, value);
        }
        let Some((_, mut value)) = map.range(..=span.begin).next_back() else {
            return;
        };
        let mut begin = span.begin;
        for (&next, next_value) in map.range(span.begin + 1..span.end) {
            f(Span::new(begin, next), value);
            (begin, value) = (next, next_value);
        }
        f(Span::new(begin, span.end), value);
    }
}

impl<T: Clone> IntervalMap<T> {
    /// Calls `f` with each interval that overlaps `span`, clipped to it, ascending, to change its
    /// value there; then restores the canonical form.
    ///
    /// `same` must be equality of values: it is an argument so that nested maps can look first at
    /// the place where they probably differ. Only touched values and their two neighbours are
    /// compared.
    #[inline]
    pub(super) fn update(
        &mut self,
        n: usize,
        span: Span,
        mut f: impl FnMut(Span, &mut T),
        same: impl Fn(&T, &T) -> bool,
    ) {
        match self {
            Self::One(value) if span == Span::new(0, n) => f(span, value),
            Self::One(value) => {
                let mut changed = value.clone();
                f(span, &mut changed);
                if !same(value, &changed) {
                    *self = Self::Many(split_one(value, n, span, changed));
                }
            }
            Self::Many(map) => {
                if !update_inside_one(map, n, span, &mut f, &same) {
                    update_across(map, n, span, f, same);
                }
                if map.len() == 1
                    && let Some((_, value)) = map.pop_first()
                {
                    *self = Self::One(value);
                }
            }
        }
    }
}

/// `old` everywhere in `0..n` but for `changed` in `span`.
fn split_one<T: Clone>(old: &T, n: usize, span: Span, changed: T) -> BTreeMap<usize, T> {
    let mut map = BTreeMap::new();
    if span.begin > 0 {
        map.insert(0, old.clone());
    }
    map.insert(span.begin, changed);
    if span.end < n {
        map.insert(span.end, old.clone());
    }
    map
}

/// The update of a span that lies in one interval, with one search before the unavoidable changes of the tree. If the
/// span crosses intervals, it does nothing and returns false.
fn update_inside_one<T: Clone>(
    map: &mut BTreeMap<usize, T>,
    n: usize,
    span: Span,
    f: &mut impl FnMut(Span, &mut T),
    same: &impl Fn(&T, &T) -> bool,
) -> bool {
    // From right to left: the neighbour that starts at the span's end (if any), the interval with the span's last
    // index, and its left neighbour.
    let mut leftwards = map.range_mut(..=span.end).map(|(&begin, value)| (begin, value)).rev();
    let Some(mut interval) = leftwards.next() else {
        return false;
    };
    let mut right = None;
    if interval.0 == span.end {
        right = Some(&*interval.1);
        match leftwards.next() {
            Some(next) => interval = next,
            None => return false,
        }
    }
    let (begin, value) = interval;
    if begin > span.begin {
        return false;
    }

    let starts_here = begin == span.begin;
    let ends_here = right.is_some() || span.end == n;
    let (mut middle, mut tail) = (None, None);
    if starts_here && ends_here {
        f(span, value);
    } else {
        let mut changed = value.clone();
        f(span, &mut changed);
        if same(value, &changed) {
            return true;
        }
        if starts_here {
            tail = Some(mem::replace(value, changed));
        } else {
            tail = (!ends_here).then(|| value.clone());
            middle = Some(changed);
        }
    }
    let now = middle.as_ref().unwrap_or(value);
    let joins_right = right.is_some_and(|right| same(now, right));
    let joins_left = starts_here && leftwards.next().is_some_and(|(_, left)| same(left, now));

    if joins_right {
        map.remove(&span.end);
    }
    if joins_left {
        map.remove(&span.begin);
    }
    if let Some(tail) = tail {
        map.insert(span.end, tail);
    }
    if let Some(middle) = middle {
        map.insert(span.begin, middle);
    }
    true
}

/// The update of a span that crosses intervals.
fn update_across<T: Clone>(
    map: &mut BTreeMap<usize, T>,
    n: usize,
    span: Span,
    mut f: impl FnMut(Span, &mut T),
    same: impl Fn(&T, &T) -> bool,
) {
    split_at(map, span.begin);
    if span.end < n {
        split_at(map, span.end);
    }
    let mut intervals = map.range_mut(span.begin..span.end).peekable();
    while let Some((&begin, value)) = intervals.next() {
        let end = intervals.peek().map_or(span.end, |(next, _)| **next);
        f(Span::new(begin, end), value);
    }

    let first = map.range(..span.begin).next_back().map_or(span.begin, |(&begin, _)| begin);
    let mut joined = SmallVec::<[usize; 8]>::new();
    let mut intervals = map.range(first..=span.end);
    if let Some((_, mut left)) = intervals.next() {
        for (&begin, value) in intervals {
            if same(left, value) {
                joined.push(begin);
            }
            left = value;
        }
    }
    if let (Some(&low), Some(&high)) = (joined.first(), joined.last()) {
        // One pass over the touched intervals instead of one search for each that goes.
        let mut joined = joined.into_iter().peekable();
        map.extract_if(low..=high, |begin, _| joined.next_if_eq(begin).is_some()).for_each(drop);
    }
}

/// Makes an interval start at `index`.
fn split_at<T: Clone>(map: &mut BTreeMap<usize, T>, index: usize) {
    if let Some((&begin, value)) = map.range(..=index).next_back()
        && begin != index
    {
        let value = value.clone();
        map.insert(index, value);
    }
}
