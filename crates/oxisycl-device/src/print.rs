//! `print!` and `println!` in kernels.
//!
//! In native code the text goes where the runtime says. On a device the compiler puts calls of the two functions at the end in the place of
//! [`print`] and [`print_line`]. They leave the values of the message in the launch's print buffer, and the host formats them.
//!
//! Invariants of the device's half: a record is written only within the space that was taken for it. Space is never
//! taken beyond the buffer, and calls that find none are counted. Space that was taken always begins with a head, so
//! that the records after it are found. Nothing waits for another work-item.

use core::fmt;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use oxisycl_types::{DeviceLaunch, PanicArgument, PrintHeader, PrintRecord};

use crate::builtin;
use crate::recorded::{Recorded, Text, record, record_text};

/// Writes to the program's standard output, as `std::print!` does, from a kernel on any device.
///
/// See [`println!`](crate::println!).
#[macro_export]
macro_rules! print {
    ($($argument:tt)*) => { $crate::print::print(::core::format_args!($($argument)*)) };
}

/// Writes a line to the program's standard output, as `std::println!` does, from a kernel on any device (SYCL 2020 section 4.16, class
/// `stream`).
///
/// The host device writes at once. Other devices keep the text in a buffer of the launch, and it is written when the command completes,
/// before a wait for it returns. The calls of one work-item come in their order, those of different work-items in any order, and never one
/// within another. What the buffer has no room for is lost, and reported with its number on standard error.
#[macro_export]
macro_rules! println {
    () => { $crate::print::print_line(::core::format_args!("")) };
    ($($argument:tt)*) => { $crate::print::print_line(::core::format_args!($($argument)*)) };
}

/// Writes a text, and a newline if the second parameter says so.
pub type NativeOutput = fn(fmt::Arguments<'_>, bool);

/// A [`NativeOutput`], or null as long as there is no runtime.
static NATIVE_OUTPUT: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Says where the text goes that native code prints. Called by the runtime before the first kernel runs; without a runtime nothing is
/// written.
#[doc(hidden)]
pub fn set_native_output(output: NativeOutput) {
    NATIVE_OUTPUT.store(output as *mut (), Ordering::Release);
}

/// What [`print!`](crate::print!) calls. The compiler finds it by its path.
#[doc(hidden)]
#[inline(never)]
pub fn print(arguments: fmt::Arguments<'_>) {
    print_natively(arguments, false);
}

/// What [`println!`](crate::println!) calls. The compiler finds it by its path.
#[doc(hidden)]
#[inline(never)]
pub fn print_line(arguments: fmt::Arguments<'_>) {
    print_natively(arguments, true);
}

/// [`print`] by a name that link-time optimisation keeps. Called by native code of kernels alone.
#[unsafe(no_mangle)]
fn __oxisycl_kept_print(arguments: fmt::Arguments<'_>) {
    print_natively(arguments, false);
}

/// [`print_line`], likewise.
#[unsafe(no_mangle)]
fn __oxisycl_kept_print_line(arguments: fmt::Arguments<'_>) {
    print_natively(arguments, true);
}

fn print_natively(arguments: fmt::Arguments<'_>, is_line: bool) {
    let output = NATIVE_OUTPUT.load(Ordering::Acquire);
    if !output.is_null() {
        // SAFETY: only `set_native_output` stores here, a pointer to such a function.
        let output = unsafe { core::mem::transmute::<*mut (), NativeOutput>(output) };
        output(arguments, is_line);
    }
}

/// Leaves a message in the launch's print buffer.
///
/// # Safety
/// Called by compiled kernels only: `launch` is theirs, and `values` are `count` values.
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_print(launch: *const DeviceLaunch, site: u32, values: *const Recorded, count: u32) {
    // SAFETY: by contract.
    unsafe { leave::<false>(launch, site, values, count) }
}

/// Leaves a message with values that only the device can format in the launch's print buffer.
///
/// # Safety
/// As for [`__oxisycl_print`].
#[unsafe(no_mangle)]
unsafe extern "C" fn __oxisycl_print_formatted(
    launch: *const DeviceLaunch,
    site: u32,
    values: *const Recorded,
    count: u32,
) {
    // SAFETY: by contract.
    unsafe { leave::<true>(launch, site, values, count) }
}

/// # Safety
/// As for [`__oxisycl_print`].
#[inline(always)]
unsafe fn leave<const FORMATS: bool>(launch: *const DeviceLaunch, site: u32, values: *const Recorded, count: u32) {
    if !builtin::is_device_code() {
        return;
    }
    // SAFETY: by contract.
    let header = unsafe { (*launch).print } as usize as *mut PrintHeader;
    if header.is_null() {
        return;
    }
    // SAFETY: the buffer lives until the launch has ended, and the values are as this function's contract says.
    unsafe { append::<FORMATS>(header, site, values, count as usize) }
}

/// Adds a record to a print buffer, if there is room.
///
/// # Safety
/// The header is that of a buffer which is used by nothing else than this function, and `values` are `count` values.
#[inline(always)]
pub(crate) unsafe fn append<const FORMATS: bool>(
    header: *mut PrintHeader,
    site: u32,
    values: *const Recorded,
    count: usize,
) {
    // SAFETY: the values are as this function's contract says; the room is this work-item's alone.
    unsafe {
        // Once to know how much room it takes.
        let mut text = Text::nowhere();
        let mut index = 0;
        while index < count {
            record_text::<FORMATS>(&*values.add(index), &mut text);
            index += 1;
        }
        // Saturated sizes find no room. Checks of a debug build would lead to code that records a panic, which not all devices can call.
        let values_size = count.saturating_mul(size_of::<PanicArgument>());
        let sizes = size_of::<PrintRecord>().saturating_add(values_size).saturating_add(text.length());
        let size = sizes.saturating_add(7) & !7;
        let Some(start) = take(header, size) else { return };
        let head = start.cast::<PrintRecord>();
        if FORMATS {
            // Code of the values runs now, and may panic, which ends this work-item. Atomic, so that the stores stay, although nothing
            // here reads them before they are overwritten.
            AtomicU32::from_ptr(&raw mut (*head).size).store(size as u32, Ordering::Relaxed);
            AtomicU32::from_ptr(&raw mut (*head).site).store(PrintRecord::UNFINISHED, Ordering::Relaxed);
        }
        let arguments = start.add(size_of::<PrintRecord>());
        let room = text.length();
        let mut text = Text::new(arguments.add(values_size), room);
        let mut index = 0;
        while index < count {
            record::<FORMATS>(arguments.cast::<PanicArgument>().add(index), &*values.add(index), &mut text);
            index += 1;
        }
        let text_length = text.stored() as u32;
        head.write(PrintRecord { size: size as u32, site, n_arguments: count as u32, text_length });
    }
}

/// Takes room in a print buffer, or counts that there was none.
///
/// # Safety
/// The header is that of a buffer which lives until the launch has ended.
#[inline(always)]
unsafe fn take(header: *mut PrintHeader, size: usize) -> Option<*mut u8> {
    // SAFETY: by contract; all access to the two numbers is atomic, and the host writes the third one before the launch.
    let (used, n_lost, capacity) = unsafe {
        let used = AtomicU32::from_ptr(&raw mut (*header).used);
        (used, AtomicU32::from_ptr(&raw mut (*header).n_lost), (*header).capacity)
    };
    let mut before = used.load(Ordering::Relaxed);
    loop {
        // As wide numbers, so that nothing overflows.
        if u64::from(before).saturating_add(size as u64) > u64::from(capacity) {
            if n_lost.load(Ordering::Relaxed) < PrintHeader::MANY {
                n_lost.fetch_add(1, Ordering::Relaxed);
            }
            return None;
        }
        match used.compare_exchange_weak(before, before.wrapping_add(size as u32), Ordering::Relaxed, Ordering::Relaxed)
        {
            // SAFETY: within the buffer, as was just checked.
            Ok(_) => return Some(unsafe { header.cast::<u8>().add(size_of::<PrintHeader>() + before as usize) }),
            Err(now) => before = now,
        }
    }
}
