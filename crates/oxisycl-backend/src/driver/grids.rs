//! The grids that a launch is cut into.
//!
//! A launch that is larger than a grid can be becomes several, which the kernels see by `begin` and `end` only. Dimensions are in the order
//! `x`, `y`, `z`, the innermost first. Pure arithmetic, without calls of a driver.

use oxisycl_types::{DeviceLaunch, LaunchRange};

/// The most grids of a launch. More are refused: no device would reach the end of such a launch.
const MAX_GRIDS: u64 = 1 << 16;

/// The grids of one launch, as an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grids {
    /// Work-items of the launch.
    extent: [u64; 3],
    /// Work-items of the largest grid.
    step: [u64; 3],
    offset: [u64; 3],
}

/// One grid of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid {
    /// The grid's work-items in `x`, `y` and `z`.
    pub items: [u64; 3],
    /// The launch as the kernel gets it, without the addresses of panic record and print buffer.
    pub launch: DeviceLaunch,
}

impl Grid {
    /// The grid of a launch over groups, whose units are groups. Its launch has ids of work-items and the numbers of groups, as
    /// [`DeviceLaunch`] has them. `local` are the work-items of a group in `x`, `y` and `z`.
    #[inline]
    pub fn of_groups(self, local: [u32; 3]) -> Self {
        let first = self.launch.begin;
        // Ids of the launch do not overflow, which was checked before it.
        let begin = each(|d| first[d].wrapping_mul(u64::from(local[2 - d])));
        Self { launch: DeviceLaunch { begin, offset: first, ..self.launch }, ..self }
    }
}

impl Grids {
    /// The extent of a launch in `x`, `y` and `z`.
    #[inline]
    pub fn extent(range: &LaunchRange) -> [u64; 3] {
        reversed(range.extent)
    }

    /// Cuts a launch into grids of at most `step` work-items, which are below 2^32 per dimension. `None` if the launch exceeds every limit.
    #[inline]
    pub fn new(range: &LaunchRange, step: [u64; 3]) -> Option<Self> {
        let (extent, offset) = (reversed(range.extent), reversed(range.offset));
        let mut n_grids = 1u64;
        for dimension in 0..3 {
            offset[dimension].checked_add(extent[dimension])?;
            if extent[dimension] > step[dimension] {
                n_grids = n_grids.checked_mul(extent[dimension].div_ceil(step[dimension]))?;
            }
        }
        (n_grids <= MAX_GRIDS).then_some(Self { extent, step, offset })
    }

    /// The grid of a launch that has only one; else `None`.
    #[inline]
    pub fn only(&self) -> Option<Grid> {
        let ([x, y, z], [step_x, step_y, step_z]) = (self.extent, self.step);
        (x <= step_x && y <= step_y && z <= step_z).then(|| self.grid([0; 3]))
    }

    /// Calls `launch` for each grid, until it fails.
    #[inline]
    pub fn for_each<E>(&self, mut launch: impl FnMut(Grid) -> Result<(), E>) -> Result<(), E> {
        // Nearly all launches.
        if let Some(grid) = self.only() {
            return launch(grid);
        }
        let [mut x, mut y, mut z] = [0; 3];
        loop {
            launch(self.grid([x, y, z]))?;
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

    #[inline(always)]
    fn grid(&self, first: [u64; 3]) -> Grid {
        let items: [u64; 3] = each(|d| (self.extent[d] - first[d]).min(self.step[d]));
        let begin: [u64; 3] = each(|d| self.offset[d] + first[d]);
        let end: [u64; 3] = each(|d| self.offset[d] + self.extent[d]);
        Grid {
            items,
            launch: DeviceLaunch {
                begin: outermost_first(begin),
                offset: outermost_first(self.offset),
                end: outermost_first(end),
                record: 0,
                print: 0,
                count: outermost_first(each(|d| items[d] as u32)),
                call_stack: 0,
            },
        }
    }
}

/// A value for each dimension. `std::array::from_fn` becomes loops and calls here, for three values.
#[inline(always)]
pub fn each<T>(value: impl Fn(usize) -> T) -> [T; 3] {
    [value(0), value(1), value(2)]
}

/// Innermost first.
fn reversed([a, b, c]: [usize; 3]) -> [u64; 3] {
    [c as u64, b as u64, a as u64]
}

fn outermost_first<T>([x, y, z]: [T; 3]) -> [T; 3] {
    [z, y, x]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(extent: [usize; 3], offset: [usize; 3]) -> LaunchRange {
        LaunchRange { dimensions: 3, extent, offset }
    }

    fn grids(range: &LaunchRange, step: [u64; 3]) -> Vec<Grid> {
        let mut grids = Vec::new();
        let listed: Result<(), ()> = Grids::new(range, step).expect("within the limits").for_each(|grid| {
            grids.push(grid);
            Ok(())
        });
        assert_eq!(listed, Ok(()));
        grids
    }

    #[test]
    fn the_offset_is_in_begin_and_end() {
        let grids = grids(&range([5, 3, 11], [2, 1, 4]), [64; 3]);
        let [Grid { items, launch }] = grids[..] else { panic!("{grids:?}") };
        assert_eq!((items, launch.count), ([11, 3, 5], [5, 3, 11]));
        assert_eq!((launch.begin, launch.offset, launch.end), ([2, 1, 4], [2, 1, 4], [7, 4, 15]));
    }

    #[test]
    fn grids_cover_a_launch_once() {
        let grids = grids(&range([3, 5, 10], [7, 0, 1]), [4, 2, 3]);
        assert_eq!(grids.len(), 3 * 3);
        let mut seen = std::collections::HashSet::new();
        for Grid { items, launch } in grids {
            assert_eq!(launch.end, [10, 5, 11]);
            assert!(items[0] <= 4 && items[1] <= 2 && items[2] <= 3, "{items:?}");
            for (z, y, x) in
                (0..items[2]).flat_map(|z| (0..items[1]).flat_map(move |y| (0..items[0]).map(move |x| (z, y, x))))
            {
                assert!(seen.insert([launch.begin[0] + z, launch.begin[1] + y, launch.begin[2] + x]));
            }
        }
        assert_eq!(seen.len(), 3 * 5 * 10);
        assert!(seen.iter().all(|[z, y, x]| (7..10).contains(z) && *y < 5 && (1..11).contains(x)));
    }

    #[test]
    fn the_first_failure_ends_a_launch() {
        let mut n_calls = 0;
        let failed = Grids::new(&range([1, 1, 10], [0; 3]), [2; 3]).expect("within the limits").for_each(|_| {
            n_calls += 1;
            if n_calls == 2 { Err("no") } else { Ok(()) }
        });
        assert_eq!((failed, n_calls), (Err("no"), 2));
    }

    #[test]
    fn launches_beyond_every_limit_are_refused() {
        assert_eq!(Grids::new(&range([1 << 40, 1 << 40, 1], [0; 3]), [1 << 31; 3]), None);
        assert_eq!(Grids::new(&range([1, 1, 2], [0, 0, usize::MAX]), [1 << 31; 3]), None);
    }
}
