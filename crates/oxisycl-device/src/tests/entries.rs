use std::boxed::Box;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::vec::Vec;
use std::{format, vec};

use oxisycl_types::{DeviceLaunch, HostChunk, LaunchRange};

use super::{launch_cut, run_single, zeros};
use crate::kernel::{is_in_launch, place_in_launch};
use crate::{Id, Item, Range, range_entry};

/// Every way to cut `size` items in up to three chunks.
fn all_cuts(size: usize) -> Vec<Vec<usize>> {
    let mut cuts = vec![vec![]];
    for a in 0..=size {
        cuts.push(vec![a]);
        cuts.extend((a..=size).map(|b| vec![a, b]));
    }
    cuts
}

fn check_all_items<const D: usize>(extent: [usize; D], offset: [usize; D]) {
    let size = Range(extent).size();
    for cuts in all_cuts(size) {
        let seen = RefCell::new(Vec::new());
        launch_cut(extent, offset, &cuts, |item: Item<'_, D>| {
            assert_eq!((item.range(), item.offset()), (Range(extent), Id(offset)));
            seen.borrow_mut().push((item.linear_id(), item.id()));
        });
        let expected: Vec<_> = (0..size)
            .map(|linear| {
                let (mut id, mut rest) = (offset, linear);
                for d in (0..D).rev() {
                    id[d] += rest % extent[d];
                    rest /= extent[d];
                }
                (linear, Id(id))
            })
            .collect();
        assert_eq!(*seen.borrow(), expected, "range {extent:?} at {offset:?} cut at {cuts:?}");
    }
}

#[test]
fn each_item_of_a_line_runs_once_wherever_the_launch_is_cut() {
    for (extent, offset) in [(1, 0), (7, 0), (7, 5), (1, usize::MAX - 1)] {
        check_all_items([extent], [offset]);
    }
}

#[test]
fn each_item_of_a_plane_runs_once_wherever_the_launch_is_cut() {
    for (extent, offset) in [([1, 1], [0, 0]), ([3, 4], [0, 0]), ([4, 1], [2, 3]), ([1, 5], [0, 9]), ([2, 3], [7, 1])] {
        check_all_items(extent, offset);
    }
}

#[test]
fn each_item_of_a_space_runs_once_wherever_the_launch_is_cut() {
    for (extent, offset) in
        [([2, 2, 3], [0, 0, 0]), ([1, 3, 2], [4, 5, 6]), ([3, 1, 1], [0, 1, 0]), ([1, 1, 4], [9, 9, 9])]
    {
        check_all_items(extent, offset);
    }
}

#[test]
fn an_empty_chunk_runs_nothing() {
    let launch = LaunchRange { dimensions: 2, extent: [1, 3, 4], offset: [0; 3] };
    let kernel = |_: Item<'_, 2>| panic!("ran");
    for at in [0, 5, 12] {
        let chunk = HostChunk::new(at, at);
        // SAFETY: the kernel lives, and has two dimensions.
        unsafe { run(&kernel, &launch, &chunk) };
    }
}

/// # Safety
/// The contract of [`range_entry`], for a live kernel.
unsafe fn run<const D: usize, K: Fn(Item<'_, D>) + Copy>(kernel: &K, launch: &LaunchRange, chunk: &HostChunk) {
    // SAFETY: the caller's contract.
    unsafe { range_entry::<K, D>(std::ptr::from_ref(kernel).cast(), launch, chunk) }
}

fn check_unwinding<const D: usize>(extent: [usize; D], offset: [usize; D]) {
    let launch = LaunchRange { dimensions: D as u8, extent: Range(extent).embed(), offset: Id(offset).embed() };
    for stop in 0..launch.size() {
        let ran = RefCell::new(zeros(launch.size()));
        let kernel = |item: Item<'_, D>| {
            if item.linear_id() == stop {
                std::panic::resume_unwind(Box::new(()));
            }
            ran.borrow_mut()[item.linear_id()] += 1;
        };
        let chunk = HostChunk::new(0, launch.size());
        // SAFETY: the kernel lives, and has as many dimensions as the launch.
        let ended = catch_unwind(AssertUnwindSafe(|| unsafe { run(&&kernel, &launch, &chunk) }));
        assert!(ended.is_err());
        let mut id = [0; 3];
        let mut rest = stop;
        for d in (0..D).rev() {
            id[3 - D + d] = offset[d] + rest % extent[d];
            rest /= extent[d];
        }
        assert_eq!(chunk.item.get(), id, "item {stop} of range {extent:?} at {offset:?}");
        let expected: Vec<u32> = (0..launch.size()).map(|linear| u32::from(linear < stop)).collect();
        assert_eq!(*ran.borrow(), expected);
    }
}

#[test]
fn unwinding_leaves_the_id_of_the_item() {
    check_unwinding([5], [0]);
    check_unwinding([3], [100]);
    check_unwinding([2, 3], [10, 20]);
    check_unwinding([2, 1, 3], [10, 20, 30]);
}

#[test]
fn a_chunk_that_ends_well_leaves_no_id() {
    let launch = LaunchRange { dimensions: 1, extent: [1, 1, 4], offset: [0, 0, 7] };
    let chunk = HostChunk::new(0, 4);
    // SAFETY: the kernel lives, and has one dimension.
    unsafe { run(&|_: Item<'_, 1>| {}, &launch, &chunk) };
    assert_eq!(chunk.item.get(), [0; 3]);
}

#[test]
fn kernels_of_any_size_and_alignment_get_their_captures() {
    #[derive(Clone, Copy)]
    #[repr(align(128))]
    struct Wide(u8);
    let seen = RefCell::new(Vec::new());
    let (wide, large) = (Wide(3), [5u64; 100]);
    launch_cut([2], [0], &[1], |item: Item<'_, 1>| {
        seen.borrow_mut().push(usize::from(wide.0) + large[item.index()] as usize);
    });
    assert_eq!(*seen.borrow(), [8, 8]);
    fn nothing(_: Item<'_, 3>) {}
    assert_eq!(size_of_val(&nothing), 0);
    launch_cut([2, 2, 2], [0; 3], &[3], nothing);
}

#[test]
fn a_single_task_runs_once() {
    let n_runs = std::cell::Cell::new(0);
    run_single(|task| {
        n_runs.set(n_runs.get() + 1);
        assert_eq!(format!("{task:?}"), "Single");
    });
    assert_eq!(n_runs.get(), 1);
}

#[test]
fn items_print_their_id_and_range() {
    launch_cut([1, 2], [3, 4], &[1], |item: Item<'_, 2>| {
        let text = format!("{item:?}");
        assert_eq!(text, format!("Item {{ id: [3, {}], range: [1, 2] }}", item.get(1)));
    });
}

fn item_at<const D: usize>(launch: &DeviceLaunch, positions: [u64; 3]) -> Option<[[usize; D]; 3]> {
    is_in_launch::<D>(launch, positions).then(|| place_in_launch(launch, positions))
}

#[test]
fn positions_beyond_a_launch_are_no_work_items_however_large_the_offset() {
    // Regression: the id of a position beyond the launch wrapped around, was less than the end of the launch, and so the kernel ran.
    let offset = u64::MAX - 10;
    let launch = DeviceLaunch {
        begin: [0, 0, offset],
        offset: [0, 0, offset],
        end: [1, 1, u64::MAX],
        record: 0,
        print: 0,
        count: [1, 1, 10],
        call_stack: 0,
    };
    let place = |position: u64| item_at::<1>(&launch, [0, 0, position]);
    for position in 0..10 {
        let id = (offset + position) as usize;
        assert_eq!(place(position), Some([[id], [usize::MAX], [offset as usize]]));
    }
    for position in [10, 11, 12, 31, u64::MAX] {
        assert_eq!(place(position), None, "{position}");
    }
    // The last of several grids of a launch, in three dimensions.
    let launch = DeviceLaunch {
        begin: [3, 4, 7],
        offset: [3, 2, 1],
        end: [5, 5, 9],
        record: 0,
        print: 0,
        count: [2, 1, 2],
        call_stack: 0,
    };
    let place = |positions: [u64; 3]| item_at::<3>(&launch, positions);
    assert_eq!(place([1, 0, 1]), Some([[4, 4, 8], [5, 5, 9], [3, 2, 1]]));
    assert_eq!([place([2, 0, 0]), place([0, 1, 0]), place([0, 0, 2])], [None; 3]);
}
