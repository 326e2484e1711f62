use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::state::property_config;

/// Changes of a random map. Under Miri forty take minutes.
const MOST_CHANGES: usize = if cfg!(miri) { 5 } else { 40 };

fn line(begin: usize, end: usize) -> Region {
    Region::new([0, 0, begin], [1, 1, end])
}

/// The boxes of a query, with values.
fn boxes<V: Clone>(map: &RegionMap<V>, query: &Region) -> Vec<(Region, V)> {
    let mut found = Vec::new();
    map.for_each(query, |region, value| found.push((*region, value.clone())));
    found
}

#[test]
fn a_new_map_is_one_region() {
    let map = RegionMap::new([2, 3, 4], 'a');
    assert_eq!(map.n_regions(), 1);
    assert_eq!(boxes(&map, &Region::whole([2, 3, 4])), [(Region::whole([2, 3, 4]), 'a')]);
    assert_eq!(boxes(&map, &Region::new([1, 1, 1], [9, 9, 2])), [(Region::new([1, 1, 1], [2, 3, 2]), 'a')]);
    assert_eq!((map.get([1, 2, 3]), map.get([1, 2, 4])), (Some(&'a'), None));
}

#[test]
fn an_update_cuts_at_its_borders() {
    let mut map = RegionMap::new([1, 1, 10], 'a');
    map.update(&line(3, 6), |region, value| {
        assert_eq!(*region, line(3, 6));
        *value = 'b';
    });
    let expected = [(line(0, 3), 'a'), (line(3, 6), 'b'), (line(6, 10), 'a')];
    assert_eq!(boxes(&map, &Region::whole([1, 1, 10])), expected);
    assert!(map.iter().eq(expected.iter().map(|(region, value)| (*region, value))));
    assert_eq!(boxes(&map, &line(4, 8)), [(line(4, 6), 'b'), (line(6, 8), 'a')]);
}

#[test]
fn an_update_across_boxes_visits_each_once_in_order() {
    let mut map = RegionMap::new([1, 1, 12], 'a');
    map.update(&line(3, 6), |_, value| *value = 'b');
    let mut seen = Vec::new();
    map.update(&line(2, 9), |region, value| seen.push((*region, *value)));
    assert_eq!(seen, [(line(2, 3), 'a'), (line(3, 6), 'b'), (line(6, 9), 'a')]);
    assert_eq!(map.n_regions(), 3, "an update that changes no value leaves no cut");
}

#[test]
fn equal_neighbours_just_outside_are_joined() {
    let mut map = RegionMap::new([1, 1, 9], 0);
    for (begin, value) in [(0, 1), (3, 2), (6, 3)] {
        map.update(&line(begin, begin + 3), |_, v| *v = value);
    }
    assert_eq!(map.n_regions(), 3);
    map.update(&line(3, 6), |_, v| *v = 1);
    assert_eq!(boxes(&map, &line(0, 9)), [(line(0, 6), 1), (line(6, 9), 3)]);
    map.update(&line(4, 6), |_, v| *v = 3);
    assert_eq!(boxes(&map, &line(0, 9)), [(line(0, 4), 1), (line(4, 9), 3)]);
    map.update(&line(4, 9), |_, v| *v = 1);
    assert_eq!(map, RegionMap::new([1, 1, 9], 1));
}

#[test]
fn a_tile_that_takes_its_neighbours_value_disappears() {
    let extent = [4, 6, 8];
    let tile = Region::new([1, 2, 3], [3, 4, 5]);
    let mut map = RegionMap::new(extent, 'a');
    map.update(&tile, |_, value| *value = 'b');
    // Planes before, in (rows before, in (columns before, in, after), after), after.
    assert_eq!(map.n_regions(), 7);
    map.update(&tile, |_, value| *value = 'a');
    assert_eq!(map, RegionMap::new(extent, 'a'));
}

#[test]
fn empty_queries_and_empty_spaces_do_nothing() {
    let mut map = RegionMap::new([1, 1, 10], 0);
    for empty in [line(4, 4), line(6, 4), line(10, 12), Region::EMPTY] {
        map.for_each(&empty, |_, _| unreachable!());
        map.update(&empty, |_, _| unreachable!());
    }
    let mut map = RegionMap::new([1, 0, 10], 0);
    map.for_each(&Region::whole([1, 1, 10]), |_, _| unreachable!());
    map.update(&Region::whole([1, 1, 10]), |_, _| unreachable!());
    assert_eq!((map.n_regions(), map.iter().count(), map.get([0, 0, 0])), (0, 0, None));
}

#[test]
fn regions_do_not_grow_with_elements() {
    let mut map = RegionMap::new([1, 1, usize::MAX], 0);
    map.update(&line(usize::MAX - 2, usize::MAX - 1), |_, v| *v = 1);
    map.update(&line(1 << 40, 1 << 50), |_, v| *v = 2);
    assert_eq!(map.n_regions(), 5);
}

/// As the disjoint accessors of one command group: a look at each, then a note of it. Doubling their number may double what is visited.
#[test]
fn disjoint_updates_in_any_order_visit_a_bounded_number_of_boxes_each() {
    const SIDE: usize = if cfg!(miri) { 12 } else { 60 };
    let count = SIDE * SIDE;
    let element = |number: usize| line(number, number + 1);
    let tile = |number: usize| {
        let (y, x) = (number / SIDE * 2, number % SIDE * 2);
        Region::new([0, y, x], [1, y + 2, x + 2])
    };
    for region_of in [&element as &dyn Fn(usize) -> Region, &tile] {
        let extent = region_of(count - 1).end;
        for stride in [1, count - 1, 7 * SIDE + 11] {
            let mut map = RegionMap::new(extent, usize::MAX);
            let mut n_visited = 0;
            for step in 0..count {
                let region = region_of(step * stride % count);
                map.for_each(&region, |_, value| {
                    assert_eq!(*value, usize::MAX);
                    n_visited += 1;
                });
                map.update(&region, |_, value| {
                    *value = step;
                    n_visited += 1;
                });
            }
            assert_eq!(map.n_regions(), count);
            assert!(n_visited <= 6 * count, "{n_visited} for {count} by {stride}");
        }
    }
}

/// As the pages of a buffer of which devices wrote single ones, and that one of them then accesses as a whole.
#[test]
fn one_update_of_the_whole_joins_all_pieces_but_those_that_differ() {
    let (extent, whole) = ([4, 5, 60], Region::whole([4, 5, 60]));
    let mut fragmented = RegionMap::new(extent, (0, 0));
    for (number, x) in (0..60).step_by(3).enumerate() {
        fragmented.update(&Region::new([0, 0, x], [4, 5, x + 1]), |_, value| *value = (number + 1, 0));
    }
    assert_eq!(fragmented.n_regions(), 40);

    let mut all_equal = fragmented.clone();
    all_equal.update(&whole, |_, value| *value = (0, 1));
    assert_eq!(all_equal.n_regions(), 1);
    assert_eq!(all_equal, RegionMap::new(extent, (0, 1)));

    // An update that changes a part of each value joins those that are equal then: what was never written, and three more pieces.
    let mut some_differ = fragmented.clone();
    some_differ.update(&whole, |_, value| *value = (if value.0 % 7 == 1 { value.0 } else { 0 }, 1));
    let written = [1, 8, 15];
    assert_eq!(some_differ.n_regions(), 6, "three pieces, the first at the begin, and what is behind each");
    for (number, x) in (0..60).step_by(3).enumerate() {
        let expected = if written.contains(&(number + 1)) { number + 1 } else { 0 };
        assert_eq!(some_differ.get([3, 4, x]), Some(&(expected, 1)));
    }

    fragmented.update(&whole, |_, value| value.1 = 1);
    assert_eq!(fragmented.n_regions(), 40, "all differ as before");
}

#[test]
fn values_that_are_overwritten_are_dropped() {
    let old = Arc::new(0);
    let mut map = RegionMap::new([1, 4, 100], Arc::clone(&old));
    for begin in (0..100).step_by(10) {
        map.update(&Region::new([0, 1, begin], [1, 3, begin + 5]), |_, v| *v = Arc::new(begin + 1));
    }
    // Ten pieces between the blocks, one row above, one below, and the one held here.
    assert_eq!(Arc::strong_count(&old), 13);
    map.update(&Region::whole([1, 4, 100]), |_, v| *v = Arc::new(1));
    assert_eq!(Arc::strong_count(&old), 1);
}

/// One value per element: what the map must be equivalent to.
struct Model {
    extent: [usize; 3],
    values: Vec<u8>,
}

impl Model {
    fn points(&self, region: &Region) -> Vec<[usize; 3]> {
        let Region { begin: b, end: e } = region.intersection(&Region::whole(self.extent));
        let planes = (b[0]..e[0]).flat_map(|x| (b[1]..e[1]).map(move |y| (x, y)));
        planes.flat_map(|(x, y)| (b[2]..e[2]).map(move |z| [x, y, z])).collect()
    }

    fn at(&mut self, point: [usize; 3]) -> &mut u8 {
        let [x, y, z] = point;
        &mut self.values[(x * self.extent[1] + y) * self.extent[2] + z]
    }

    /// The boxes of the canonical form: of each run of equal planes, each run of equal rows, each
    /// run of equal elements.
    fn n_regions(&self) -> usize {
        let [_, n_y, n_z] = self.extent;
        let mut planes: Vec<_> = self.values.chunks(n_y * n_z).collect();
        planes.dedup();
        let runs_of_row = |row: &[u8]| row.chunk_by(u8::eq).count();
        let runs_of_plane = |plane: &[u8]| {
            let mut rows: Vec<_> = plane.chunks(n_z).collect();
            rows.dedup();
            rows.into_iter().map(runs_of_row).sum::<usize>()
        };
        planes.into_iter().map(runs_of_plane).sum()
    }
}

/// How an update computes the new value from the old one.
#[derive(Clone, Copy, Debug)]
enum Change {
    Set(u8),
    Or(u8),
    Keep,
}

impl Change {
    fn apply(self, value: &mut u8) {
        match self {
            Self::Set(new) => *value = new,
            Self::Or(bits) => *value |= bits,
            Self::Keep => {}
        }
    }
}

fn any_change() -> impl Strategy<Value = Change> {
    // Few values, so that neighbours often become equal.
    prop_oneof![(0..3_u8).prop_map(Change::Set), (1..3_u8).prop_map(Change::Or), Just(Change::Keep)]
}

fn any_extent() -> impl Strategy<Value = [usize; 3]> {
    let side = || 1..=8_usize;
    prop_oneof![
        (1..=40_usize).prop_map(|n| [1, 1, n]),
        (side(), side()).prop_map(|(y, z)| [1, y, z]),
        (side(), side(), side()).prop_map(|(x, y, z)| [x, y, z]),
    ]
}

/// A box with corners in or near a space; whole dimensions are common, as in programs.
fn fit(seed: [(u8, u8, bool); 3], extent: [usize; 3]) -> Region {
    let spans = [0, 1, 2].map(|dim| {
        let (a, b, whole) = seed[dim];
        let corner = |v: u8| usize::from(v) % (extent[dim] + 2);
        if whole { (0, extent[dim]) } else { (corner(a).min(corner(b)), corner(a).max(corner(b))) }
    });
    Region::new(spans.map(|s| s.0), spans.map(|s| s.1))
}

proptest! {
    #![proptest_config(property_config())]

    #[test]
    fn a_map_is_equivalent_to_one_value_per_element(
        extent in any_extent(),
        steps in prop::collection::vec((any::<[(u8, u8, bool); 3]>(), any_change()), 0..MOST_CHANGES),
    ) {
        let mut map = RegionMap::new(extent, 0_u8);
        let mut model = Model { extent, values: vec![0; extent.iter().product()] };
        for (seed, change) in steps {
            let region = fit(seed, extent);
            let mut updated = Vec::new();
            map.update(&region, |piece, value| {
                updated.push((*piece, *value));
                change.apply(value);
            });
            assert_tiles(&mut model, &region, updated);
            for point in model.points(&region) {
                change.apply(model.at(point));
            }
            assert_tiles(&mut model, &region, boxes(&map, &region));
            let whole = Region::whole(extent);
            assert_tiles(&mut model, &whole, boxes(&map, &whole));
            prop_assert!(map.iter().map(|(r, v)| (r, *v)).eq(boxes(&map, &whole)));
            for point in model.points(&whole) {
                prop_assert_eq!(map.get(point), Some(&*model.at(point)));
            }
            prop_assert_eq!(map.n_regions(), model.n_regions());
        }
        map.update(&Region::whole(extent), |_, value| *value = 7);
        prop_assert_eq!(map.n_regions(), 1);
        prop_assert_eq!(map, RegionMap::new(extent, 7));
    }
}

/// The boxes cover the region inside the space exactly once, in ascending order, with the values of
/// the model.
fn assert_tiles(model: &mut Model, region: &Region, boxes: Vec<(Region, u8)>) {
    assert!(boxes.is_sorted_by_key(|(piece, _)| piece.begin));
    let mut covered = Vec::new();
    for (piece, value) in boxes {
        assert!(!piece.is_empty() && Region::whole(model.extent).contains(&piece));
        for point in model.points(&piece) {
            assert_eq!(*model.at(point), value, "at {point:?}");
            covered.push(point);
        }
    }
    covered.sort_unstable();
    assert_eq!(covered, model.points(region));
}
