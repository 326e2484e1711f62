//! What a work-item of a device does when it panics: it leaves the place and the values of the message for the host.
//!
//! Compiled kernels call [`__oxisycl_record_panic`] where native code would begin to unwind, and then end the work-item. Native code
//! never calls it.

use core::sync::atomic::{AtomicU32, Ordering};

use oxisycl_types::{DeviceLaunch, PanicArgument, PanicRecord};

use crate::builtin;

/// The address of a value, and what type it has: the numbers of `oxisycl_image::ArgumentKind`.
#[repr(C)]
struct Recorded {
    address: *const u8,
    kind: u64,
}

/// The kind of a value whose address leads to a `&str`.
const STR: u64 = 17;

/// Bytes of a value by its kind.
const SIZES: [u8; 19] = [0, 1, 4, 1, 2, 4, 8, 16, 8, 1, 2, 4, 8, 16, 8, 4, 8, 0, 8];

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
    if !builtin::is_device_code() {
        return;
    }
    // SAFETY: by contract.
    let launch = unsafe { &*launch };
    let record = launch.record as usize as *mut PanicRecord;
    if record.is_null() {
        return;
    }
    // SAFETY: the backend passes a record that lives until the launch has ended, and all access to its state is atomic.
    let state = unsafe { AtomicU32::from_ptr(&raw mut (*record).state) };
    if state.compare_exchange(PanicRecord::FREE, PanicRecord::CLAIMED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: this work-item alone writes the record now; the values are as this function's contract says.
    unsafe {
        (*record).site = site;
        (*record).item[0] = launch.begin[0] + builtin::grid_position_z();
        (*record).item[1] = launch.begin[1] + builtin::grid_position_y();
        (*record).item[2] = launch.begin[2] + builtin::grid_position_x();
        let mut text_length = 0;
        let mut position = 0;
        while position < count as usize && position < PanicRecord::MAX_ARGUMENTS {
            let value = &*values.add(position);
            let argument = &raw mut (*record).arguments[position];
            (*argument).kind = value.kind as u32;
            if value.kind == STR {
                text_length = record_text(record, argument, value, text_length);
            } else {
                record_bits(argument, value);
            }
            position += 1;
        }
        (*record).n_arguments = position as u32;
        (*record).text_length = text_length as u32;
    }
    state.store(PanicRecord::COMPLETE, Ordering::Release);
}

/// Copies the value, by its kind.
///
/// # Safety
/// The address leads to a value of the kind, or is null.
unsafe fn record_bits(argument: *mut PanicArgument, value: &Recorded) {
    let size = if value.address.is_null() { 0 } else { SIZES.get(value.kind as usize).copied().unwrap_or(0) };
    // SAFETY: by contract; values are aligned to their size, of 16 bytes to 8 at least.
    unsafe {
        let low = match size {
            0 => 0,
            1 => u64::from(*value.address),
            2 => u64::from(*value.address.cast::<u16>()),
            4 => u64::from(*value.address.cast::<u32>()),
            _ => *value.address.cast::<u64>(),
        };
        let high = if size == 16 { *value.address.cast::<u64>().add(1) } else { 0 };
        (*argument).size = u32::from(size);
        (*argument).bits = [low, high];
    }
}

/// Copies a string to the end of the record's text. Returns the length of the text.
///
/// # Safety
/// The address leads to a `&str`, and the record is the caller's.
unsafe fn record_text(
    record: *mut PanicRecord,
    argument: *mut PanicArgument,
    value: &Recorded,
    mut text_length: usize,
) -> usize {
    // SAFETY: a string slice is an address and a length; positions stay inside the string and the record.
    unsafe {
        let (start, length) = (*value.address.cast::<*const u8>(), *value.address.cast::<usize>().add(1));
        (*argument).size = length as u32;
        let mut index = 0;
        while index < length && text_length < PanicRecord::MAX_TEXT {
            (*record).text[text_length] = *start.add(index);
            index += 1;
            text_length += 1;
        }
    }
    text_length
}
