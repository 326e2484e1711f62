//! How an index space becomes OpenCL's: a number of work-items per dimension, and of those in a group.
//!
//! OpenCL's first dimension is the innermost. Groups divide the number of work-items, so that it is rounded up; kernels do nothing beyond
//! the end of the launch. A launch that is larger than a grid can be is cut into several. Pure arithmetic; calls nobody.

use oxisycl_types::{DeviceLaunch, LaunchRange};

/// Most positions of a grid per dimension, by the calling convention of kernels.
const MOST_POSITIONS: u64 = u32::MAX as u64;
/// More grids than this are refused: no device would see the end of such a launch.
const MAX_GRIDS: u64 = 1 << 16;
/// Groups are not made smaller than this to have more of them.
const LEAST_GROUP: usize = 32;
/// How many groups there should be for each compute unit, so that all of them have work until the end.
const GROUPS_PER_UNIT: usize = 4;

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
}

/// How a launch is put to OpenCL. Dimensions are in the order `x`, `y`, `z`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchShape {
    pub(crate) dimensions: u32,
    /// Work-items of a group.
    pub(crate) local: [usize; 3],
    /// Work-items of the launch.
    extent: [u64; 3],
    /// Work-items of the largest grid.
    step: [u64; 3],
    offset: [u64; 3],
}

/// One grid of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Grid {
    /// Positions in `x`, `y` and `z`, in whole groups.
    pub(crate) global: [usize; 3],
    /// What the kernel is given, without the record.
    pub(crate) launch: DeviceLaunch,
}

impl LaunchShape {
    /// The shape, or `None` if the launch is beyond every limit.
    pub(crate) fn new(range: &LaunchRange, limits: &GroupLimits) -> Option<Self> {
        let [z, y, x] = range.extent;
        let total = x.checked_mul(y)?.checked_mul(z)?;
        let local = local([x, y, z], total, limits);
        let (extent, offset) = ([x, y, z].map(|n| n as u64), reversed(range.offset));
        let step: [u64; 3] = std::array::from_fn(|d| MOST_POSITIONS / local[d] as u64 * local[d] as u64);
        let mut n_grids = 1u64;
        for dimension in 0..3 {
            offset[dimension].checked_add(extent[dimension])?;
            if extent[dimension] > step[dimension] {
                n_grids = n_grids.checked_mul(extent[dimension].div_ceil(step[dimension]))?;
            }
        }
        let dimensions = match (z, y) {
            (2.., _) => 3,
            (_, 2..) => 2,
            _ => 1,
        };
        (n_grids <= MAX_GRIDS).then_some(Self { dimensions, local, extent, step, offset })
    }

    /// Calls `launch` for each grid, until it fails.
    pub(crate) fn for_each_grid<E>(&self, mut launch: impl FnMut(&Grid) -> Result<(), E>) -> Result<(), E> {
        let [mut x, mut y, mut z] = [0; 3];
        loop {
            launch(&self.grid([x, y, z]))?;
            x += self.step[0];
            if x >= self.extent[0] {
                (x, y) = (0, y + self.step[1]);
            }
            if y >= self.extent[1] {
                (y, z) = (0, z + self.step[2]);
            }
            if z >= self.extent[2] {
                return Ok(());
            }
        }
    }

    fn grid(&self, first: [u64; 3]) -> Grid {
        let items: [u64; 3] = std::array::from_fn(|d| (self.extent[d] - first[d]).min(self.step[d]));
        let begin: [u64; 3] = std::array::from_fn(|d| self.offset[d] + first[d]);
        let end: [u64; 3] = std::array::from_fn(|d| self.offset[d] + self.extent[d]);
        Grid {
            global: std::array::from_fn(|d| (items[d] as usize).next_multiple_of(self.local[d])),
            launch: DeviceLaunch {
                begin: outermost_first(begin),
                offset: outermost_first(self.offset),
                end: outermost_first(end),
                record: 0,
                print: 0,
                count: outermost_first(items).map(|n| n as u32),
            },
        }
    }
}

/// Innermost first.
fn reversed([a, b, c]: [usize; 3]) -> [u64; 3] {
    [c as u64, b as u64, a as u64]
}

fn outermost_first([x, y, z]: [u64; 3]) -> [u64; 3] {
    [z, y, x]
}

/// A group for the extent: along `x` first, of sizes that leave few work-items without a task.
fn local(extent: [usize; 3], total: usize, limits: &GroupLimits) -> [usize; 3] {
    let wanted = (total / (limits.units.max(1) * GROUPS_PER_UNIT)).max(LEAST_GROUP);
    let mut room = limits.items.min(wanted).max(1);
    let mut local = [1; 3];
    for dimension in 0..3 {
        let most = room.min(limits.sizes[dimension]).max(1);
        let even = extent[dimension].div_ceil(extent[dimension].div_ceil(most));
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

    const LIMITS: GroupLimits = GroupLimits { items: 256, sizes: [1024, 1024, 64], multiple: 16, units: 2 };

    fn only_grid(shape: &LaunchShape) -> Grid {
        let mut grids = Vec::new();
        let _: Result<(), ()> = shape.for_each_grid(|grid| {
            grids.push(*grid);
            Ok(())
        });
        let [grid] = grids[..] else { panic!("{} grids", grids.len()) };
        grid
    }

    fn shape(extent: [usize; 3], limits: &GroupLimits) -> LaunchShape {
        LaunchShape::new(&LaunchRange { dimensions: 3, extent, offset: [0; 3] }, limits).expect("within the limits")
    }

    #[test]
    fn groups_are_full_and_leave_little_over() {
        assert_eq!(shape([1, 1, 1 << 20], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 70_001], &LIMITS).local, [256, 1, 1]);
        assert_eq!(shape([1, 1, 1], &LIMITS).local, [16, 1, 1]);
        assert_eq!(only_grid(&shape([1, 1, 5000], &LIMITS)).global, [5120, 1, 1]);
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
                    let limits = GroupLimits { items, sizes, multiple: 16, units: 4 };
                    let shape = shape(extent, &limits);
                    assert!(shape.local.iter().product::<usize>() <= items, "{shape:?}");
                    assert!((0..3).all(|d| shape.local[d] <= sizes[d]), "{shape:?}");
                    assert!((0..3).all(|d| only_grid(&shape).global[d] >= extent[2 - d]), "{shape:?}");
                    assert!((0..3).all(|d| only_grid(&shape).global[d].is_multiple_of(shape.local[d])), "{shape:?}");
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
    fn the_offset_is_in_begin_and_end() {
        let range = LaunchRange { dimensions: 3, extent: [5, 3, 11], offset: [2, 1, 4] };
        let launch = only_grid(&LaunchShape::new(&range, &LIMITS).expect("within the limits")).launch;
        assert_eq!((launch.begin, launch.end), ([2, 1, 4], [7, 4, 15]));
        assert_eq!((launch.offset, launch.count), ([2, 1, 4], [5, 3, 11]));
    }

    #[test]
    fn large_launches_become_several_grids_that_cover_them() {
        let extent = [1, 2, (1usize << 33) + 5];
        let (mut n_grids, mut n_items) = (0, 0u64);
        let counted: Result<(), ()> = shape(extent, &LIMITS).for_each_grid(|grid| {
            assert!(grid.global.iter().all(|n| u64::try_from(*n).is_ok_and(|n| n <= MOST_POSITIONS)), "{grid:?}");
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
