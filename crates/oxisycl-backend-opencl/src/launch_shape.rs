//! Conversion of an index space to OpenCL's: a number of work-items per dimension, and the number of those in a group.
//!
//! OpenCL's first dimension is the innermost. Groups divide the number of work-items, so that it is rounded up; kernels do nothing beyond
//! the end of the launch. Pure arithmetic, without calls of the driver.

use std::num::NonZeroU32;

use oxisycl_backend::driver::{Grid, Grids};
use oxisycl_types::{GroupSize, LaunchRange};

use crate::quirks::max_positions;

/// Groups are not made smaller than this for the sake of more groups.
const LEAST_GROUP: usize = 32;

/// The groups that a device and a kernel accept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupLimits {
    /// Most work-items of a group.
    pub(crate) items: usize,
    /// Most per dimension, the innermost first.
    pub(crate) sizes: [usize; 3],
    /// The preferred multiple of a group's size in the innermost dimension.
    pub(crate) multiple: usize,
    /// Compute units of the device.
    pub(crate) units: usize,
    /// How many groups there should be for each compute unit, so that all of them have work until the end.
    pub(crate) groups_per_unit: usize,
}

/// The shape of a launch for OpenCL. Dimensions are in the order `x`, `y`, `z`. Small, since every unfinished launch has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchShape {
    dimensions: NonZeroU32,
    /// Work-items of a group.
    local: [u32; 3],
}

impl LaunchShape {
    /// The shape, or `None` if the launch exceeds every limit.
    pub(crate) fn new(range: &LaunchRange, limits: &GroupLimits) -> Option<Self> {
        let [z, y, x] = range.extent;
        let total = x.checked_mul(y)?.checked_mul(z)?;
        let local = local([x, y, z], total, limits).map(|n| n as u32);
        let dimensions = NonZeroU32::MIN.saturating_add(u32::from(y > 1 || z > 1) + u32::from(z > 1));
        let shape = Self { dimensions, local };
        shape.grids(range).map(|_| shape)
    }

    /// The shape of a launch over work-items in groups of that size, the innermost extent last. `None` if it exceeds every limit.
    pub(crate) fn in_groups_of(range: &LaunchRange, [z, y, x]: [u32; 3]) -> Option<Self> {
        let local = [x, y, z];
        let shape = Self { dimensions: dimensions(range, local), local };
        shape.grids(range).map(|_| shape)
    }

    /// The shape of a launch over groups, or `None` if it exceeds every limit.
    pub(crate) fn of_groups(range: &LaunchRange, group: &GroupSize) -> Option<Self> {
        let [z, y, x] = group.local;
        let local = [x, y, z];
        let shape = Self { dimensions: dimensions(range, local), local };
        shape.grids_of_groups(range).map(|_| shape)
    }

    /// The grids of a launch over groups with this shape, in groups.
    pub(crate) fn grids_of_groups(&self, range: &LaunchRange) -> Option<Grids> {
        Grids::new(range, self.local.map(|n| max_positions() / u64::from(n).max(1)))
    }

    /// Positions of a grid of groups in `x`, `y` and `z`.
    pub(crate) fn global_of_groups(&self, grid: &Grid) -> [usize; 3] {
        std::array::from_fn(|d| (grid.items[d] * u64::from(self.local[d])) as usize)
    }

    /// The number of dimensions that OpenCL gets.
    pub(crate) fn dimensions(&self) -> u32 {
        self.dimensions.get()
    }

    /// Work-items of a group.
    pub(crate) fn local(&self) -> [usize; 3] {
        self.local.map(|n| n as usize)
    }

    /// The grids of a launch with this shape.
    pub(crate) fn grids(&self, range: &LaunchRange) -> Option<Grids> {
        // Divisions are dear, and most dimensions have one work-item.
        let step = self.local.map(u64::from).map(|n| if n == 1 { max_positions() } else { max_positions() / n * n });
        Grids::new(range, step)
    }

    /// Positions of a grid of this launch in `x`, `y` and `z`, in whole groups.
    pub(crate) fn global(&self, grid: &Grid) -> [usize; 3] {
        std::array::from_fn(|d| grid.items[d].next_multiple_of(u64::from(self.local[d])) as usize)
    }
}

/// The number of dimensions in which there is more than one work-item. `local` has the extents along `x`, `y` and `z`.
fn dimensions(range: &LaunchRange, local: [u32; 3]) -> NonZeroU32 {
    let used = |d: usize| local[d] > 1 || range.extent[2 - d] > 1;
    NonZeroU32::MIN.saturating_add(u32::from(used(1) || used(2)) + u32::from(used(2)))
}

/// The group size for an extent: along `x` first, of sizes that leave few work-items without a task.
fn local(extent: [usize; 3], total: usize, limits: &GroupLimits) -> [usize; 3] {
    let groups = limits.units.max(1) * limits.groups_per_unit.max(1);
    let wanted = if total <= LEAST_GROUP { LEAST_GROUP } else { (total / groups).max(LEAST_GROUP) };
    let mut room = limits.items.min(wanted).max(1);
    let mut local = [1; 3];
    for dimension in 0..3 {
        let most = room.min(limits.sizes[dimension]).max(1);
        // In as many groups as are needed, of even sizes. One group needs no division, and one work-item no rounding.
        let even = match extent[dimension] {
            1 if dimension > 0 => continue,
            n if n <= most => n,
            n => n.div_ceil(n.div_ceil(most)),
        };
        let multiple = if dimension == 0 { limits.multiple.max(1) } else { 1 };
        let rounded = even.next_multiple_of(multiple);
        local[dimension] = if rounded <= most { rounded } else { even };
        room /= local[dimension];
    }
    local
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: GroupLimits =
        GroupLimits { items: 256, sizes: [1024, 1024, 64], multiple: 16, units: 2, groups_per_unit: 4 };

    /// The positions of a launch that is one grid.
    fn global(extent: [usize; 3], limits: &GroupLimits) -> [usize; 3] {
        let shape = shape(extent, limits);
        let grid = shape.grids(&range(extent)).and_then(|grids| grids.only()).expect("one grid");
        shape.global(&grid)
    }

    fn range(extent: [usize; 3]) -> LaunchRange {
        LaunchRange { dimensions: 3, extent, offset: [0; 3] }
    }

    fn shape(extent: [usize; 3], limits: &GroupLimits) -> LaunchShape {
        LaunchShape::new(&range(extent), limits).expect("within the limits")
    }

    #[test]
    fn groups_have_the_size_that_a_kernel_states() {
        for (extent, local, positions, dimensions) in [
            ([1, 1, 1000], [1, 1, 64], [1024, 1, 1], 1),
            ([1, 33, 64], [1, 16, 16], [64, 48, 1], 2),
            ([1, 1, 5], [2, 1, 4], [8, 1, 2], 3),
        ] {
            let shape = LaunchShape::in_groups_of(&range(extent), local).expect("within the limits");
            assert_eq!(shape.local(), [2, 1, 0].map(|d| local[d] as usize));
            let grid = shape.grids(&range(extent)).and_then(|grids| grids.only()).expect("one grid");
            assert_eq!((shape.global(&grid), shape.dimensions()), (positions, dimensions), "{extent:?}");
        }
    }

    #[test]
    fn groups_are_full_and_leave_little_over() {
        assert_eq!(shape([1, 1, 1 << 20], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 70_001], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 1], &LIMITS).local, [16, 1, 1]);
        assert_eq!(global([1, 1, 5000], &LIMITS), [5120, 1, 1]);
        assert_eq!(shape([1, 100, 65], &LIMITS).local, [80, 3, 1]);
        assert_eq!(shape([1, 1000, 1000], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([200, 2, 2], &LIMITS).local, [16, 2, 3]);
    }

    #[test]
    fn small_launches_are_spread_over_the_device() {
        let wide = GroupLimits { units: 64, ..LIMITS };
        assert_eq!(shape([1, 1, 4096], &wide).local, [32, 1, 1]);
        assert_eq!(shape([1, 1, 1 << 16], &wide).local, [256, 1, 1]);
    }

    #[test]
    fn groups_keep_to_the_limits_and_cover_the_launch() {
        for items in [1, 2, 31, 100, 8192] {
            for sizes in [[8192; 3], [64, 1, 1], [1, 7, 3]] {
                for extent in [[1, 1, 5000], [1, 70, 90], [7, 9, 11], [1, 1, 1], [3, 1, 1]] {
                    let limits = GroupLimits { items, sizes, multiple: 16, units: 4, groups_per_unit: 4 };
                    let (local, global) = (shape(extent, &limits).local(), global(extent, &limits));
                    assert!(local.iter().product::<usize>() <= items, "{local:?}");
                    assert!((0..3).all(|d| local[d] <= sizes[d]), "{local:?}");
                    assert!((0..3).all(|d| global[d] >= extent[2 - d]), "{local:?}");
                    assert!((0..3).all(|d| global[d].is_multiple_of(local[d])), "{local:?}");
                }
            }
        }
    }

    #[test]
    fn only_dimensions_that_are_used_are_told() {
        let dimensions = [[1, 1, 9], [1, 9, 1], [9, 1, 1]].map(|extent| shape(extent, &LIMITS).dimensions());
        assert_eq!(dimensions, [1, 2, 3]);
    }

    #[test]
    fn large_launches_become_several_grids_that_cover_them() {
        let extent = [1, 2, (1usize << 33) + 5];
        let shape = shape(extent, &LIMITS);
        let (mut n_grids, mut n_items) = (0, 0u64);
        let grids = shape.grids(&range(extent)).expect("within the limits");
        let counted: Result<(), ()> = grids.for_each(|grid| {
            assert!(
                shape.global(&grid).iter().all(|n| u64::try_from(*n).is_ok_and(|n| n <= max_positions())),
                "{grid:?}"
            );
            assert_eq!(grid.launch.end, [1, 2, (1 << 33) + 5]);
            n_items += grid.launch.count.iter().map(|n| u64::from(*n)).product::<u64>();
            n_grids += 1;
            Ok(())
        });
        assert_eq!((counted, n_grids, n_items), (Ok(()), 5, 2 * ((1 << 33) + 5)));
    }

    #[test]
    fn as_many_groups_as_every_device_promises_are_taken_in_any_dimensions() {
        const ALL: usize = i32::MAX as usize;
        for local in [[1, 1, 1], [1, 1, 8192], [8192, 1, 1], [64, 4, 4]] {
            let group = GroupSize { local, local_bytes: 0, host_bytes: 0 };
            for [z, y] in [[1, 1], [1, ALL], [ALL, 1], [1 << 16, (1 << 15) - 1], [65_535, 32_768], [3, 1 << 20]] {
                let extent = [z, y, ALL / y / z];
                assert!(LaunchShape::of_groups(&range(extent), &group).is_some(), "{extent:?} of {local:?}");
            }
        }
    }

    #[test]
    fn launches_beyond_every_limit_are_refused() {
        let refused =
            |extent, offset| LaunchShape::new(&LaunchRange { dimensions: 3, extent, offset }, &LIMITS).is_none();
        assert!(refused([1 << 40, 1 << 40, 1], [0; 3]) && refused([1, 1, 2], [0, 0, usize::MAX]));
    }
}
