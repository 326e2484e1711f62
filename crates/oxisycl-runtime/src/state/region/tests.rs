use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::state::property_config;

type Point = [usize; 3];

/// Boxes of a random list. Under Miri forty take minutes.
const MOST_BOXES: usize = if cfg!(miri) { 5 } else { 40 };

/// The elements of a region, one by one.
fn points(region: &Region) -> BTreeSet<Point> {
    let Region { begin: b, end: e } = *region;
    let planes = (b[0]..e[0]).flat_map(|x| (b[1]..e[1]).map(move |y| (x, y)));
    planes.flat_map(|(x, y)| (b[2]..e[2]).map(move |z| [x, y, z])).collect()
}

fn line(begin: usize, end: usize) -> Region {
    Region::new([0, 0, begin], [1, 1, end])
}

/// Boxes of up to eight elements per dimension, some of them empty or beyond a bound.
fn any_region() -> impl Strategy<Value = Region> {
    (any::<[u8; 3]>(), any::<[u8; 3]>()).prop_map(|(begin, extent)| {
        let small = |v: [u8; 3]| v.map(|v| usize::from(v) % 9);
        Region::from_offset_extent(small(begin), small(extent))
    })
}

fn any_extent() -> impl Strategy<Value = [usize; 3]> {
    any::<[u8; 3]>().prop_map(|v| v.map(|v| 1 + usize::from(v) % 8))
}

#[test]
fn a_page_range_starts_and_ends_at_pages() {
    let bounds = [1, 1, 10];
    let pages = |begin, end| line(begin, end).round_out([1, 1, 4], bounds);
    assert_eq!(pages(1, 2), line(0, 4), "an offset inside a page");
    assert_eq!(pages(0, 8), line(0, 8), "an end on a page boundary");
    assert_eq!(pages(3, 5), line(0, 8), "two pages touched by one element each");
    assert_eq!(pages(9, 10), line(8, 10), "the last page is partial");
    assert_eq!(pages(9, 99), line(8, 10), "what is outside the buffer is dropped");
}

#[test]
fn a_region_without_elements_has_no_pages() {
    for region in [line(5, 5), line(7, 5), line(10, 12), Region::EMPTY] {
        assert!(region.round_out([1, 1, 4], [1, 1, 10]).is_empty(), "{region:?}");
    }
    assert!(line(0, 4).round_out([1, 1, 4], [1, 1, 0]).is_empty());
}

#[test]
fn a_page_larger_than_the_buffer_is_the_whole_buffer() {
    let whole = Region::whole([1, 3, 10]);
    let one = Region::new([0, 1, 4], [1, 2, 5]);
    assert_eq!(one.round_out([usize::MAX; 3], [1, 3, 10]), whole);
    assert_eq!(one.round_out([1, 3, 10], [1, 3, 10]), whole);
    assert_eq!(line(3, 6).round_out([0, 0, 0], [1, 1, 10]), line(3, 6));
}

#[test]
fn corners_of_a_three_dimensional_region_touch_all_eight_pages() {
    let region = Region::new([3, 3, 3], [5, 5, 5]);
    assert_eq!(region.round_out([4; 3], [7; 3]), Region::whole([7; 3]));
}

#[test]
fn extents_at_the_limit_do_not_overflow() {
    let huge = Region::from_offset_extent([1, 0, usize::MAX], [usize::MAX; 3]);
    assert_eq!(huge.end, [usize::MAX; 3]);
    assert_eq!(Region::whole([usize::MAX; 3]).size(), usize::MAX);
    let bounds = [1, 1, usize::MAX];
    let pages = line(5, usize::MAX - 1).round_out([1, 1, usize::MAX - 1], bounds);
    assert_eq!(pages, line(0, usize::MAX - 1));
    assert_eq!(line(5, usize::MAX).round_out([1, 1, usize::MAX - 1], bounds), line(0, usize::MAX));
}

#[test]
fn strided_rows_are_not_one_interval() {
    let extent = [2, 4, 8];
    let interval = |begin, end| Region::new(begin, end).contiguous_interval(extent);
    assert_eq!(interval([0, 1, 0], [1, 3, 8]), Some((8, 24)));
    assert_eq!(interval([1, 2, 3], [2, 3, 5]), Some((51, 53)));
    assert_eq!(interval([0, 0, 0], [2, 4, 8]), Some((0, 64)));
    assert_eq!(interval([0, 1, 0], [1, 3, 7]), None);
    assert_eq!(interval([0, 1, 0], [2, 3, 8]), None);
    assert_eq!(interval([0, 0, 0], [1, 5, 8]), None, "outside the space");
}

#[test]
fn an_interval_can_need_five_boxes() {
    let boxes = decompose_interval(1, 71, [4, 3, 6]);
    let sizes: Vec<_> = boxes.iter().map(Region::size).collect();
    assert_eq!(sizes, [5, 12, 36, 12, 5]);
    assert!(decompose_interval(3, 3, [4, 3, 6]).is_empty());
    assert!(decompose_interval(0, 9, [4, 0, 6]).is_empty());
}

#[test]
fn shuffled_pages_coalesce_into_the_whole() {
    let mut pages = Vec::new();
    for idx in 0..512_usize {
        let page = idx * 211 % 512;
        let begin = [page / 64 * 4, page / 8 % 8 * 2, page % 8 * 3];
        pages.push(Region::from_offset_extent(begin, [4, 2, 3]));
    }
    coalesce(&mut pages);
    assert_eq!(pages, [Region::whole([32, 16, 24])]);
}

#[test]
fn strided_boxes_stay_apart_and_runs_become_one_box() {
    let mut runs: Vec<_> = (0..90).filter(|i| i % 3 != 2).map(|i| line(i, i + 1)).collect();
    coalesce(&mut runs);
    runs.sort_by_key(|r| r.begin);
    assert_eq!(runs, (0..30).map(|i| line(3 * i, 3 * i + 2)).collect::<Vec<_>>());
}

#[test]
fn a_spiral_of_boxes_costs_a_bounded_number_of_passes() {
    let mut core = Region::new([0, 10_000, 10_000], [1, 10_001, 10_001]);
    let mut boxes = vec![core];
    for turn in 0..4000 {
        let dim = 1 + turn % 2;
        let mut strip = core;
        (strip.begin[dim], strip.end[dim]) = (core.end[dim], core.end[dim] + 1);
        core.end[dim] += 1;
        boxes.push(strip);
    }
    coalesce(&mut boxes);
    assert!(boxes.len() < 4000);
    assert_eq!(boxes.iter().map(Region::size).sum::<usize>(), core.size());
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn set_operations_agree_with_element_sets(a in any_region(), b in any_region()) {
        let (in_a, in_b) = (points(&a), points(&b));
        let common: BTreeSet<_> = in_a.intersection(&in_b).copied().collect();
        prop_assert_eq!(points(&a.intersection(&b)), common.clone());
        prop_assert_eq!(a.overlaps(&b), !common.is_empty());
        prop_assert_eq!(a.contains(&b), in_b.is_subset(&in_a));
        prop_assert_eq!(a.size(), in_a.len());
        prop_assert_eq!(a.is_empty(), in_a.is_empty());
        prop_assert_eq!(Region::from_offset_extent(a.begin, a.extent()), a);
    }

    #[test]
    fn page_ranges_are_the_pages_that_overlap(
        region in any_region(),
        page in any_extent(),
        bounds in any_extent(),
    ) {
        let mut expected = BTreeSet::new();
        let n_pages = [0, 1, 2].map(|dim| bounds[dim].div_ceil(page[dim]));
        for index in points(&Region::whole(n_pages)) {
            let begin = [0, 1, 2].map(|dim| index[dim] * page[dim]);
            let one = Region::from_offset_extent(begin, page).intersection(&Region::whole(bounds));
            if one.overlaps(&region) {
                expected.extend(points(&one));
            }
        }
        let pages = region.round_out(page, bounds);
        prop_assert_eq!(points(&pages), expected.clone());
        prop_assert!(pages.is_page_aligned(page, bounds));
        prop_assert_eq!(region.is_page_aligned(page, bounds), points(&region) == expected);
    }

    #[test]
    fn contiguous_intervals_are_exact(region in any_region(), extent in any_extent()) {
        let linear = |p: Point| (p[0] * extent[1] + p[1]) * extent[2] + p[2];
        let inside = Region::whole(extent).contains(&region);
        let positions: BTreeSet<_> = points(&region).into_iter().map(linear).collect();
        let first = positions.first().copied().unwrap_or(0);
        let one_run = positions.iter().copied().eq(first..first + positions.len());
        let expected = (inside && one_run).then_some((first, first + positions.len()));
        prop_assert_eq!(region.contiguous_interval(extent), expected);
    }

    #[test]
    fn an_interval_is_covered_exactly_by_at_most_five_boxes(
        extent in any_extent(),
        a in 0_usize..520,
        b in 0_usize..520,
    ) {
        let linear = |p: Point| (p[0] * extent[1] + p[1]) * extent[2] + p[2];
        let boxes = decompose_interval(a, b, extent);
        prop_assert!(boxes.len() <= 5);
        // In ascending order, without duplicates: a flat list, not a set.
        let covered: Vec<_> = boxes.iter().flat_map(points).map(linear).collect();
        let n_elements = Region::whole(extent).size();
        prop_assert_eq!(covered, (a..b.min(n_elements)).collect::<Vec<_>>());
    }

    #[test]
    fn coalescing_keeps_the_elements(candidates in prop::collection::vec(any_region(), 0..MOST_BOXES)) {
        let mut boxes: Vec<Region> = Vec::new();
        for region in candidates {
            if boxes.iter().all(|earlier| !earlier.overlaps(&region)) {
                boxes.push(region);
            }
        }
        assert_coalesces(boxes);
    }

    #[test]
    fn coalescing_unit_boxes_leaves_nothing_to_join(chosen in prop::collection::vec(any::<bool>(), 60)) {
        let cells = points(&Region::whole([3, 4, 5])).into_iter().zip(chosen);
        assert_coalesces(
            cells.filter(|(_, chosen)| *chosen).map(|(p, _)| Region::from_offset_extent(p, [1; 3])).collect(),
        );
    }
}

/// The result is disjoint, has the same elements, is not longer and has no joinable pair left.
fn assert_coalesces(before: Vec<Region>) {
    let mut after = before.clone();
    coalesce(&mut after);
    let flat = |boxes: &[Region]| {
        let mut all: Vec<_> = boxes.iter().flat_map(points).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(flat(&after), flat(&before));
    assert!(after.len() <= before.len());
    for a in &after {
        assert!(!a.is_empty());
        for b in &after {
            let touches = |d: usize| a.end[d] == b.begin[d];
            let agrees = |d: usize| (a.begin[d], a.end[d]) == (b.begin[d], b.end[d]);
            let joinable = |d: usize| touches(d) && agrees((d + 1) % 3) && agrees((d + 2) % 3);
            assert!(!(0..3).any(joinable), "{a:?} and {b:?} could be one box");
        }
    }
}
