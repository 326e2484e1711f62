//! What a work-item of a device does when it panics: it leaves the place and the values of the message for the host.
//!
//! Compiled kernels call one of the functions where native code would begin to unwind, and then end the work-item. Native code
//! never calls them.

use core::sync::atomic::{AtomicU32, Ordering};

use oxisycl_types::{DeviceLaunch, PanicArgument, PanicRecord};

use crate::builtin;
use crate::kernel::grid_position;
use crate::recorded::{Recorded, Text, record};

/// Fills in the record of the launch, unless another work-item was first.
///
/// # Safety
/// Called by compiled kernels only: `launch` is theirs, and `values` are `count` values.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_record_panic(
    launch: *const DeviceLaunch,
    site: u32,
    values: *const Recorded,
    count: u32,
) {
    // SAFETY: by contract.
    unsafe { fill_in::<false>(launch, site, values, count) }
}

/// Fills in the record of a panic whose message has values that only the device can format.
///
/// # Safety
/// As for [`__oxisycl_record_panic`].
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_record_panic_formatted(
    launch: *const DeviceLaunch,
    site: u32,
    values: *const Recorded,
    count: u32,
) {
    // SAFETY: by contract.
    unsafe { fill_in::<true>(launch, site, values, count) }
}

/// Fills in the record of a panic with up to three numbers of at most 64 bits, given by value. The lowest bytes of `kinds` are their kinds, the first one
/// lowest, and the fourth byte says how many there are.
///
/// Nearly every kernel has this function, and compilers of drivers make vector code of what a kernel calls. So there are no loops in it, and no choices
/// by kind: `benches/results/panic-record-2026-11-29.md` has what they cost.
///
/// # Safety
/// Called by compiled kernels only: `launch` is theirs.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_record_panic_numbers(
    launch: *const DeviceLaunch,
    site: u32,
    kinds: u64,
    first: u64,
    second: u64,
    third: u64,
) {
    // SAFETY: by contract.
    let Some((panicked, item)) = (unsafe { of_launch(launch) }) else { return };
    // SAFETY: as in `fill_in`.
    unsafe { tell_numbers(panicked, item, site, kinds, [first, second, third]) }
}

/// # Safety
/// As for [`__oxisycl_record_panic`].
#[inline(always)]
unsafe fn fill_in<const FORMATS: bool>(launch: *const DeviceLaunch, site: u32, values: *const Recorded, count: u32) {
    // SAFETY: by contract.
    let Some((panicked, item)) = (unsafe { of_launch(launch) }) else { return };
    // SAFETY: the backend passes a record that lives until the launch has ended; the rest is this function's contract.
    unsafe { tell::<FORMATS>(panicked, item, site, values, count as usize) }
}

/// The record of a launch that has one, and what gives the id of the calling work-item. Only in device code.
///
/// # Safety
/// As for [`__oxisycl_record_panic`].
#[inline(always)]
unsafe fn of_launch(launch: *const DeviceLaunch) -> Option<(*mut PanicRecord, impl FnOnce() -> [u64; 3])> {
    if !builtin::is_device_code() {
        return None;
    }
    // By functions of the library: a debug build checks addresses that are read otherwise, and all kernels would have the code of that.
    // SAFETY: by contract.
    let (panicked, begin) = unsafe { ((&raw const (*launch).record).read(), (&raw const (*launch).begin).read()) };
    let panicked = panicked as usize as *mut PanicRecord;
    // Ids do not overflow. The check of a debug build would call this function again, and not all devices can do that.
    let item = move || {
        [
            begin[0].wrapping_add(grid_position(0)),
            begin[1].wrapping_add(grid_position(1)),
            begin[2].wrapping_add(grid_position(2)),
        ]
    };
    if panicked.is_null() { None } else { Some((panicked, item)) }
}

/// Makes a record the calling work-item's, unless another one was first, and writes place and item.
///
/// # Safety
/// All access to the record's state is atomic, and nothing reads the rest before it is complete.
#[inline(always)]
unsafe fn claim<'r>(panicked: *mut PanicRecord, item: impl FnOnce() -> [u64; 3], site: u32) -> Option<&'r AtomicU32> {
    // SAFETY: by contract.
    let state = unsafe { AtomicU32::from_ptr(&raw mut (*panicked).state) };
    if state.compare_exchange(PanicRecord::FREE, PanicRecord::CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return None;
    }
    // SAFETY: this work-item alone writes the record now.
    unsafe {
        (&raw mut (*panicked).site).write(site);
        (&raw mut (*panicked).item).write(item());
    }
    Some(state)
}

/// Fills in a record with up to three numbers, unless another work-item was first.
///
/// # Safety
/// As for [`claim`].
#[inline(always)]
pub(crate) unsafe fn tell_numbers(
    panicked: *mut PanicRecord,
    item: impl FnOnce() -> [u64; 3],
    site: u32,
    kinds: u64,
    [first, second, third]: [u64; 3],
) {
    // SAFETY: by contract.
    let Some(state) = (unsafe { claim(panicked, item, site) }) else { return };
    let argument = |kind: u64, number| PanicArgument { kind: kind as u32 & 0xFF, size: 8, bits: [number, 0] };
    // SAFETY: this work-item alone writes the record now, which has room for more values.
    unsafe {
        let arguments = (&raw mut (*panicked).arguments).cast::<PanicArgument>();
        arguments.write(argument(kinds, first));
        arguments.add(1).write(argument(kinds >> 8, second));
        arguments.add(2).write(argument(kinds >> 16, third));
        (&raw mut (*panicked).n_arguments).write((kinds >> 24) as u32);
        (&raw mut (*panicked).text_length).write(0);
    }
    state.store(PanicRecord::COMPLETE, Ordering::Release);
}

/// Fills in a record, unless another work-item was first.
///
/// # Safety
/// All access to the record's state is atomic, and nothing reads the rest before it is complete. `values` are `count` values.
#[inline(always)]
pub(crate) unsafe fn tell<const FORMATS: bool>(
    panicked: *mut PanicRecord,
    item: impl FnOnce() -> [u64; 3],
    site: u32,
    values: *const Recorded,
    count: usize,
) {
    // SAFETY: by contract.
    let Some(state) = (unsafe { claim(panicked, item, site) }) else { return };
    // SAFETY: this work-item alone writes the record now; the values are as this function's contract says.
    unsafe {
        if FORMATS {
            // Code of the values runs now, and may panic, too. That finds the record taken, and ends this work-item.
            state.store(PanicRecord::PLACED, Ordering::Release);
        }
        let mut text = Text::new((&raw mut (*panicked).text).cast(), PanicRecord::MAX_TEXT);
        let mut position = 0;
        while position < count && position < PanicRecord::MAX_ARGUMENTS {
            record::<FORMATS>(&raw mut (*panicked).arguments[position], &*values.add(position), &mut text);
            position += 1;
        }
        (*panicked).n_arguments = position as u32;
        (*panicked).text_length = text.stored() as u32;
    }
    state.store(PanicRecord::COMPLETE, Ordering::Release);
}
