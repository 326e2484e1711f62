//! What a work-item of a device does when it panics: it leaves the place and the values of the message for the host.
//!
//! Compiled kernels call one of the functions where native code would begin to unwind, and then end the work-item. Native code
//! never calls them.

use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use oxisycl_types::{DeviceLaunch, PanicRecord};

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

/// Fills in the record of a panic with up to three numbers of at most 64 bits, given by value. The bytes of `kinds` are their kinds, the first one lowest; zero is
/// none.
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
    // The lowest bytes of a number come first, on the host as on all devices.
    let kinds = [kinds & 0xFF, kinds >> 8 & 0xFF, kinds >> 16 & 0xFF];
    // Without an index, whose check could panic: a function in which a work-item may end costs its callers a variable.
    let recorded = |number: &u64, kind: u64| Recorded { address: ptr::from_ref(number).cast(), kind };
    let values = [recorded(&first, kinds[0]), recorded(&second, kinds[1]), recorded(&third, kinds[2])];
    let count = u32::from(kinds[0] != 0) + u32::from(kinds[1] != 0) + u32::from(kinds[2] != 0);
    // SAFETY: the launch is the kernel's by contract; the values are here, and at least as large as their kinds say.
    unsafe { fill_in::<false>(launch, site, values.as_ptr(), count) }
}

/// # Safety
/// As for [`__oxisycl_record_panic`].
#[inline(always)]
unsafe fn fill_in<const FORMATS: bool>(launch: *const DeviceLaunch, site: u32, values: *const Recorded, count: u32) {
    if !builtin::is_device_code() {
        return;
    }
    // SAFETY: by contract.
    let launch = unsafe { &*launch };
    let panicked = launch.record as usize as *mut PanicRecord;
    if panicked.is_null() {
        return;
    }
    // Ids do not overflow. The check of a debug build would call this function again, and not all devices can do that.
    let item = || {
        [
            launch.begin[0].wrapping_add(grid_position(0)),
            launch.begin[1].wrapping_add(grid_position(1)),
            launch.begin[2].wrapping_add(grid_position(2)),
        ]
    };
    // SAFETY: the backend passes a record that lives until the launch has ended; the rest is this function's contract.
    unsafe { tell::<FORMATS>(panicked, item, site, values, count as usize) }
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
    let state = unsafe { AtomicU32::from_ptr(&raw mut (*panicked).state) };
    if state.compare_exchange(PanicRecord::FREE, PanicRecord::CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: this work-item alone writes the record now; the values are as this function's contract says.
    unsafe {
        (*panicked).site = site;
        (*panicked).item = item();
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
