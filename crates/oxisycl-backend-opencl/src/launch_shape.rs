//! How an index space becomes OpenCL's: a number of work-items per dimension, and of those in a group.
//!
//! OpenCL's first dimension is the innermost. Groups divide the number of work-items, so that it is rounded up; kernels do nothing beyond
//! the end of the launch. Pure arithmetic; calls nobody.

use oxisycl_backend::driver::{Grid, Grids};
use oxisycl_types::LaunchRange;

/// Most positions of a grid per dimension, by the calling convention of kernels.
const MOST_POSITIONS: u64 = u32::MAX as u64;
/// Groups are not made smaller than this to have more of them.
const LEAST_GROUP: usize = 32;

/// What groups a device and a kernel take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GroupLimits {
    /// Most work-items of a group.
    pub(crate) items: usize,
    /// Most per dimension, the innermost first.
    pub(crate) sizes: [usize; 3],
    /// Groups are best a multiple of this in the innermost dimension.
    pub(crate) multiple: usize,
    /// Compute units of the device.
    pub(crate) units: usize,
    /// How many groups there should be for each compute unit, so that all of them have work until the end.
    pub(crate) groups_per_unit: usize,
}

/// How a launch is put to OpenCL. Dimensions are in the order `x`, `y`, `z`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchShape {
    pub(crate) dimensions: u32,
    /// Work-items of a group.
    pub(crate) local: [usize; 3],
    pub(crate) grids: Grids,
}

impl LaunchShape {
    /// The shape, or `None` if the launch is beyond every limit.
    pub(crate) fn new(range: &LaunchRange, limits: &GroupLimits) -> Option<Self> {
        let [z, y, x] = range.extent;
        let total = x.checked_mul(y)?.checked_mul(z)?;
        let local = local([x, y, z], total, limits);
        // Divisions are dear, and most dimensions have one work-item.
        let step = local.map(|n| if n == 1 { MOST_POSITIONS } else { MOST_POSITIONS / n as u64 * n as u64 });
        let dimensions = match (z, y) {
            (2.., _) => 3,
            (_, 2..) => 2,
            _ => 1,
        };
        Some(Self { dimensions, local, grids: Grids::new(range, step)? })
    }

    /// Positions of a grid of this launch in `x`, `y` and `z`, in whole groups.
    pub(crate) fn global(&self, grid: &Grid) -> [usize; 3] {
        std::array::from_fn(|d| (grid.items[d] as usize).next_multiple_of(self.local[d]))
    }
}

/// A group for the extent: along `x` first, of sizes that leave few work-items without a task.
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
    fn global(shape: &LaunchShape) -> [usize; 3] {
        let mut grids = Vec::new();
        let _: Result<(), ()> = shape.grids.for_each(|grid| {
            grids.push(grid);
            Ok(())
        });
        let [grid] = grids[..] else { panic!("{} grids", grids.len()) };
        shape.global(&grid)
    }

    fn shape(extent: [usize; 3], limits: &GroupLimits) -> LaunchShape {
        LaunchShape::new(&LaunchRange { dimensions: 3, extent, offset: [0; 3] }, limits).expect("within the limits")
    }

    #[test]
    fn groups_are_full_and_leave_little_over() {
        assert_eq!(shape([1, 1, 1 << 20], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 70_001], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 1], &LIMITS).local, [16, 1, 1]);
        assert_eq!(global(&shape([1, 1, 5000], &LIMITS)), [5120, 1, 1]);
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
                    let shape = shape(extent, &limits);
                    assert!(shape.local.iter().product::<usize>() <= items, "{shape:?}");
                    assert!((0..3).all(|d| shape.local[d] <= sizes[d]), "{shape:?}");
                    assert!((0..3).all(|d| global(&shape)[d] >= extent[2 - d]), "{shape:?}");
                    assert!((0..3).all(|d| global(&shape)[d].is_multiple_of(shape.local[d])), "{shape:?}");
                }
            }
        }
    }

    #[test]
    fn only_dimensions_that_are_used_are_told() {
        let dimensions = [[1, 1, 9], [1, 9, 1], [9, 1, 1]].map(|extent| shape(extent, &LIMITS).dimensions);
        assert_eq!(dimensions, [1, 2, 3]);
    }

    #[test]
    fn large_launches_become_several_grids_that_cover_them() {
        let shape = shape([1, 2, (1usize << 33) + 5], &LIMITS);
        let (mut n_grids, mut n_items) = (0, 0u64);
        let counted: Result<(), ()> = shape.grids.for_each(|grid| {
            assert!(
                shape.global(&grid).iter().all(|n| u64::try_from(*n).is_ok_and(|n| n <= MOST_POSITIONS)),
                "{grid:?}"
            );
            assert_eq!(grid.launch.end, [1, 2, (1 << 33) + 5]);
            n_items += grid.launch.count.iter().map(|n| u64::from(*n)).product::<u64>();
            n_grids += 1;
            Ok(())
        });
        assert_eq!((counted, n_grids, n_items), (Ok(()), 3, 2 * ((1 << 33) + 5)));
    }

    #[test]
    fn launches_beyond_every_limit_are_refused() {
        let refused =
            |extent, offset| LaunchShape::new(&LaunchRange { dimensions: 3, extent, offset }, &LIMITS).is_none();
        assert!(refused([1 << 40, 1 << 40, 1], [0; 3]) && refused([1, 1, 2], [0, 0, usize::MAX]));
    }
}
