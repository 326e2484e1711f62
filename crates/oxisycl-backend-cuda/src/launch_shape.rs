//! Conversion of an index space to grids of blocks.
//!
//! The grid's `x` is the innermost dimension. Pure arithmetic, without calls of the driver.

use oxisycl_backend::KernelCommand;
use oxisycl_backend::driver::{Grid, Grids, each};
use oxisycl_types::{GroupSize, LaunchRange};

use crate::module::CudaKernel;

/// Most blocks of a grid in `x`, `y` and `z`.
const MAX_GRID: [u64; 3] = [(1 << 31) - 1, 65_535, 65_535];
/// Most threads of a block in `z`.
const MAX_BLOCK_Z: u64 = 64;
/// Most positions of a grid per dimension: kernels compute them in 32 bits.
const MAX_POSITIONS: u64 = 1 << 32;
/// Threads of a block in `x` before other dimensions get any: a warp, so that rows are read as a whole.
const ROW: u64 = 32;

/// How a launch is divided into blocks. Dimensions are in the order `x`, `y`, `z`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LaunchShape {
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Units of the launch that a block runs.
    group: [u64; 3],
    pub(crate) grids: Grids,
    /// Bytes of a group's local memory, for a kernel over groups.
    local_bytes: Option<u32>,
}

impl LaunchShape {
    /// The shape with blocks of at most `threads`, or `None` if the launch exceeds every limit. In paired kernels each thread runs two
    /// work-items of a row.
    pub(crate) fn new(range: &LaunchRange, threads: u32, is_paired: bool) -> Option<Self> {
        let extent = Grids::extent(range);
        let [x, y, z] = extent;
        // A division by a variable costs as much as all the rest, here and below.
        let (n_items, n_threads) = if is_paired { (2, x.div_ceil(2)) } else { (1, x) };
        let block = block([n_threads, y, z], u64::from(threads.max(1)));
        let group = [block[0] * n_items, block[1], block[2]];
        let step: [u64; 3] = each(|d| match MAX_GRID[d] {
            // Nearly all launches: one grid, whatever a group is.
            most if extent[d] <= most => most,
            most => most.min((MAX_POSITIONS - 1) / group[d]) * group[d],
        });
        Some(Self { block: each(|d| block[d] as u32), group, grids: Grids::new(range, step)?, local_bytes: None })
    }

    /// The shape of a launch over work-items in blocks of that size, the innermost extent last. `None` if the launch exceeds every limit.
    pub(crate) fn in_blocks_of(range: &LaunchRange, [z, y, x]: [u32; 3]) -> Option<Self> {
        let block = [x, y, z];
        let group = block.map(|n| u64::from(n).max(1));
        let step: [u64; 3] = each(|d| MAX_GRID[d].min((MAX_POSITIONS - 1) / group[d]) * group[d]);
        Some(Self { block, group, grids: Grids::new(range, step)?, local_bytes: None })
    }

    /// The shape of a launch over groups, one for each block, or `None` if it exceeds every limit.
    pub(crate) fn of_groups(range: &LaunchRange, group: &GroupSize) -> Option<Self> {
        let [z, y, x] = group.local;
        let block = [x, y, z];
        let step = each(|d| MAX_GRID[d].min((MAX_POSITIONS - 1) / u64::from(block[d]).max(1)));
        let local_bytes = Some(u32::try_from(group.local_bytes).ok()?);
        Some(Self { block, group: [1; 3], grids: Grids::new(range, step)?, local_bytes })
    }

    /// The shape of a kernel's launch, or `None` if that exceeds every limit.
    pub(crate) fn of(kernel: &CudaKernel, command: &KernelCommand) -> Option<Self> {
        match &command.group {
            Some(group) => Self::of_groups(&command.range, group),
            None if kernel.entry.groups.local != [0; 3] => {
                Self::in_blocks_of(&command.range, kernel.entry.groups.local)
            }
            None => Self::new(&command.range, kernel.block_threads, kernel.entry.is_paired),
        }
    }

    /// How many threads the launch has. `None` if it needs several grids.
    pub(crate) fn n_threads(&self) -> Option<u64> {
        let product = |sizes: [u32; 3]| sizes.into_iter().map(u64::from).product::<u64>();
        Some(product(self.blocks(&self.grids.only()?)).saturating_mul(product(self.block)))
    }

    /// The [number of threads](Self::n_threads) of the shape that [`new`](Self::new) gives, if the launch is a line in one grid. Nearly all
    /// launches are, and this takes a fraction of the time.
    #[inline]
    pub(crate) fn n_threads_of_line(range: &LaunchRange, threads: u32, is_paired: bool) -> Option<u64> {
        let [1, 1, x] = range.extent else { return None };
        let fits = x as u64 <= MAX_GRID[0]
            && range.offset[2].checked_add(x).is_some()
            && range.offset[0] != usize::MAX
            && range.offset[1] != usize::MAX;
        if !fits {
            return None;
        }
        let n_threads = if is_paired { (x as u64).div_ceil(2) } else { x as u64 };
        let [block, ..] = block([n_threads, 1, 1], u64::from(threads.max(1)));
        Some(if n_threads <= block { block } else { n_threads.div_ceil(block) * block })
    }

    /// Bytes of dynamic local memory of a block.
    #[inline]
    pub(crate) fn shared(&self) -> u32 {
        self.local_bytes.unwrap_or(0)
    }

    /// A grid of this launch as its kernel sees it.
    #[inline]
    pub(crate) fn grid(&self, grid: Grid) -> Grid {
        if self.local_bytes.is_some() { grid.of_groups(self.block) } else { grid }
    }

    /// Blocks of a grid of this launch.
    #[inline]
    pub(crate) fn blocks(&self, grid: &Grid) -> [u32; 3] {
        each(|d| match (grid.items[d], self.group[d]) {
            (items, group) if items <= group => 1,
            (items, group) => items.div_ceil(group) as u32,
        })
    }
}

/// A block for the extent: whole warps along `x` first, then `y` and `z`, then what is left to `x` again.
fn block(extent: [u64; 3], threads: u64) -> [u64; 3] {
    if extent[1] == 1 && extent[2] == 1 {
        return [threads.min(extent[0].min(threads).next_multiple_of(ROW)), 1, 1];
    }
    // Powers of two, so that the product meets the limit.
    let limit = 1 << threads.ilog2();
    let fit = |extent: u64, most: u64| extent.min(most).next_power_of_two().min(most);
    let x = fit(extent[0], ROW.min(limit));
    let y = fit(extent[1], limit / x);
    let z = fit(extent[2], (limit / (x * y)).min(MAX_BLOCK_Z));
    [fit(extent[0], limit / (y * z)), y, z]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(extent: [usize; 3], offset: [usize; 3]) -> LaunchRange {
        LaunchRange { dimensions: 3, extent, offset }
    }

    fn shape(extent: [usize; 3], threads: u32) -> LaunchShape {
        LaunchShape::new(&range(extent, [0; 3]), threads, false).expect("within the limits")
    }

    #[test]
    fn blocks_have_the_size_that_a_kernel_states() {
        for (extent, local, blocks) in [
            ([1, 1, 1000], [1, 1, 64], [16, 1, 1]),
            ([1, 33, 64], [1, 16, 16], [4, 3, 1]),
            ([5, 1, 1], [2, 4, 8], [1, 1, 3]),
            ([1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ] {
            let shape = LaunchShape::in_blocks_of(&range(extent, [0; 3]), local).expect("within the limits");
            let [z, y, x] = local;
            assert_eq!(shape.block, [x, y, z]);
            assert_eq!(shape.blocks(&shape.grids.only().expect("one grid")), blocks, "{extent:?}");
        }
        // More blocks than a grid has, and more positions than a kernel counts.
        let shape = LaunchShape::in_blocks_of(&range([1, 70_000, 1], [0; 3]), [1, 1, 32]).expect("several grids");
        assert!(shape.grids.only().is_none());
        let shape = LaunchShape::in_blocks_of(&range([1, 1, 1 << 33], [0; 3]), [1, 1, 32]).expect("several grids");
        assert!(shape.grids.only().is_none());
    }

    #[test]
    fn rows_stay_together_and_blocks_stay_full() {
        assert_eq!(shape([1, 1, 1 << 20], 256).block, [256, 1, 1]);
        assert_eq!(shape([1, 1, 1], 256).block, [32, 1, 1]);
        assert_eq!(shape([1, 1, 40], 256).block, [64, 1, 1]);
        assert_eq!(shape([1, 1000, 1000], 256).block, [32, 8, 1]);
        assert_eq!(shape([1, 2, 1000], 256).block, [128, 2, 1]);
        assert_eq!(shape([1, 1000, 3], 256).block, [4, 64, 1]);
        assert_eq!(shape([100, 2, 2], 256).block, [2, 2, 64]);
        assert_eq!(shape([1000, 1, 1], 1024).block, [1, 1, 64]);
    }

    #[test]
    fn blocks_keep_to_the_kernels_limit() {
        for threads in [1, 2, 31, 32, 100, 1024] {
            for extent in [[1, 1, 5000], [1, 70, 90], [7, 9, 11], [1, 1, 1]] {
                let block = shape(extent, threads).block;
                assert!(block.iter().product::<u32>() <= threads.max(1), "{block:?} for {threads}");
            }
        }
    }

    /// Adds up the items of all grids, after checking that each is within the limits.
    fn count(shape: &LaunchShape) -> (u32, u128) {
        let (mut n_grids, mut n_items) = (0, 0u128);
        let counted: Result<(), ()> = shape.grids.for_each(|grid| {
            let blocks = shape.blocks(&grid);
            for (d, most) in MAX_GRID.into_iter().enumerate() {
                assert!(u64::from(blocks[d]) <= most && blocks[d] > 0);
                let items = u64::from(grid.launch.count[2 - d]);
                assert_eq!(u64::from(blocks[d]), items.div_ceil(u64::from(shape.block[d])));
                assert!(u64::from(blocks[d]) * u64::from(shape.block[d]) < MAX_POSITIONS);
            }
            let items = grid.launch.count.into_iter().map(u128::from).product::<u128>();
            (n_grids, n_items) = (n_grids + 1, n_items + items);
            Ok(())
        });
        assert_eq!(counted, Ok(()));
        (n_grids, n_items)
    }

    #[test]
    fn large_launches_become_several_grids_that_cover_them() {
        let most_y = 65_535 * 8;
        assert_eq!(count(&shape([1, most_y, 64], 256)), (1, most_y as u128 * 64));
        assert_eq!(count(&shape([1, most_y + 1, 64], 256)), (2, (most_y as u128 + 1) * 64));
        assert_eq!(count(&shape([70_000, 1, 1], 1)), (2, 70_000));
        assert_eq!(count(&shape([1, 1, (1 << 32) - 256], 256)).0, 1);
        let line = (1usize << 32) * 3;
        assert_eq!(count(&shape([1, 1, line], 256)), (4, line as u128));
        assert_eq!(count(&shape([200_000, 600_000, 2], 256)).1, 200_000 * 600_000 * 2);
    }

    #[test]
    fn a_line_has_as_many_threads_as_its_shape_says() {
        let lengths = [1, 2, 31, 32, 33, 255, 256, 257, 511, 513, 1000, 1 << 20, (1 << 31) - 1];
        for (n, threads, is_paired) in lengths.into_iter().flat_map(|n| {
            [1, 32, 100, 256, 1024].into_iter().flat_map(move |threads| [(n, threads, false), (n, threads, true)])
        }) {
            for offset in [[0; 3], [1, 2, 3]] {
                let line = range([1, 1, n], offset);
                let shape = LaunchShape::new(&line, threads, is_paired).expect("within the limits");
                let n_threads = LaunchShape::n_threads_of_line(&line, threads, is_paired);
                assert!(n_threads.is_some() && n_threads == shape.n_threads(), "{n} by {threads}: {n_threads:?}");
            }
        }
        let last = usize::MAX;
        for (extent, offset) in
            [([1, 1, 1 << 31], [0; 3]), ([1, 2, 1], [0; 3]), ([1, 1, 1], [0, 0, last]), ([1, 1, 1], [last, 0, 0])]
        {
            assert_eq!(LaunchShape::n_threads_of_line(&range(extent, offset), 256, false), None, "{extent:?}");
        }
    }

    #[test]
    fn blocks_of_paired_kernels_have_two_work_items_for_each_thread() {
        for (n, block, blocks) in
            [(1, 32, 1), (64, 32, 1), (65, 64, 1), (512, 256, 1), (513, 256, 2), (1 << 20, 256, 2048)]
        {
            let shape = LaunchShape::new(&range([1, 1, n], [0; 3]), 256, true).expect("within the limits");
            assert_eq!(shape.block, [block, 1, 1], "{n}");
            let launched: Result<(), ()> = shape.grids.for_each(|grid| {
                assert_eq!((shape.blocks(&grid), grid.launch.count), ([blocks, 1, 1], [1, 1, n as u32]));
                Ok(())
            });
            assert_eq!(launched, Ok(()));
        }
        let shape = LaunchShape::new(&range([1, 1, 1 << 32], [0; 3]), 256, true).expect("within the limits");
        let mut grids = Vec::new();
        let _: Result<(), ()> = shape.grids.for_each(|grid| {
            assert!(u64::from(shape.blocks(&grid)[0]) * 512 < MAX_POSITIONS);
            grids.push((grid.launch.begin[2], u64::from(grid.launch.count[2])));
            Ok(())
        });
        assert_eq!(grids, [(0, (1 << 32) - 512), ((1 << 32) - 512, 512)]);
    }

    #[test]
    fn as_many_groups_as_every_device_promises_are_taken_in_any_dimensions() {
        const ALL: usize = i32::MAX as usize;
        for local in [[1, 1, 1], [1, 1, 1024], [64, 4, 4]] {
            let group = GroupSize { local, local_bytes: 0, host_bytes: 0 };
            for [z, y] in [[1, 1], [1, ALL], [ALL, 1], [1 << 16, (1 << 15) - 1], [65_535, 32_768], [3, 1 << 20]] {
                let extent = [z, y, ALL / y / z];
                assert!(LaunchShape::of_groups(&range(extent, [0; 3]), &group).is_some(), "{extent:?} of {local:?}");
            }
        }
    }

    #[test]
    fn launches_beyond_every_limit_are_refused() {
        assert_eq!(LaunchShape::new(&range([1 << 40, 1 << 40, 1], [0; 3]), 256, false), None);
        assert_eq!(LaunchShape::new(&range([1, 1, 2], [0, 0, usize::MAX]), 256, true), None);
    }
}
