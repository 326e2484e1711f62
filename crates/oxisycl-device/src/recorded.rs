//! Values of messages, on the way from a work-item to the host. Numbers are copied as they are, and strings into a
//! text. What the host cannot format is formatted here.
//!
//! Run by compiled kernels only. Nothing here allocates or panics, not even by the checks of a debug build. A panic
//! would lead here again, and not all devices can do that. Nothing is written beyond the space that is given.
//!
//! Formatting is the user's code, and may go deep. A work-item has little stack, and one that takes more ends all work on its device. So a
//! value within values within values is cut off, and says so.

use core::fmt;

use oxisycl_types::{DeviceLaunch, PanicArgument};

use crate::builtin;

/// The address of a value, and what type it has: the numbers of `oxisycl_image::ArgumentKind`.
#[repr(C)]
pub(crate) struct Recorded {
    pub(crate) address: *const u8,
    pub(crate) kind: u64,
}

/// The kind of a value whose address leads to a `&str`.
const STR: u64 = 17;
/// The kind of a value that is formatted here. Its address leads to a `fmt::Arguments`.
const TEXT: u64 = 19;

/// Bytes of a value by its kind.
const SIZES: [u8; 20] = [0, 1, 4, 1, 2, 4, 8, 16, 8, 1, 2, 4, 8, 16, 8, 4, 8, 0, 8, 0];

/// What stands for the rest of a value that is cut off.
const TOO_DEEP: &[u8] = b"(too deep to be shown)";

/// Where strings go, one after the other. What finds no room is only counted.
pub(crate) struct Text {
    start: *mut u8,
    room: usize,
    length: usize,
    /// Where the stack was when formatting began. Zero as long as nothing is formatted.
    stack: usize,
    is_too_deep: bool,
}

impl Text {
    /// # Safety
    /// `room` bytes from `start` are the caller's as long as the text is used.
    pub(crate) unsafe fn new(start: *mut u8, room: usize) -> Self {
        Self { start, room, length: 0, stack: 0, is_too_deep: false }
    }

    /// One that only counts.
    pub(crate) fn nowhere() -> Self {
        Self { start: core::ptr::null_mut(), room: 0, length: 0, stack: 0, is_too_deep: false }
    }

    /// How many bytes it would have with room enough.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// How many bytes it has.
    pub(crate) fn stored(&self) -> usize {
        if self.length < self.room { self.length } else { self.room }
    }

    /// Adds `length` bytes.
    ///
    /// # Safety
    /// So many bytes can be read from `start`.
    unsafe fn add(&mut self, start: *const u8, length: usize) {
        let mut index = 0;
        while index < length && self.length.wrapping_add(index) < self.room {
            // SAFETY: within the string by contract, and within the room, as was just checked.
            unsafe { *self.start.add(self.length.wrapping_add(index)) = *start.add(index) };
            index += 1;
        }
        self.length = self.length.saturating_add(length);
    }

    /// Adds a message, as far as the stack allows.
    fn format(&mut self, message: fmt::Arguments<'_>) {
        let here = 0_u8;
        self.stack = (&raw const here).addr();
        builtin::begin_message();
        // An error is the value's own; what it has written stands.
        let _ = fmt::write(self, message);
        if core::mem::take(&mut self.is_too_deep) | builtin::formatting_was_cut_off() {
            // SAFETY: a constant.
            unsafe { self.add(TOO_DEEP.as_ptr(), TOO_DEEP.len()) };
        }
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let here = 0_u8;
        // Stacks grow in either direction. What calls this ends at an error, if it does as `Formatter` says.
        let taken = self.stack.abs_diff((&raw const here).addr());
        self.is_too_deep |= builtin::has_call_stack() && taken > DeviceLaunch::MAX_FORMATTING;
        if self.is_too_deep {
            return Err(fmt::Error);
        }
        // SAFETY: a string.
        unsafe { self.add(text.as_ptr(), text.len()) };
        Ok(())
    }
}

/// Copies one value: to `argument` what has a size of its own, and to `text` what has not. `FORMATS` says whether values may be of the
/// kind that is formatted here; without it no formatting code is reached.
///
/// # Safety
/// `argument` can be written. `value` has the address of a value of its kind, or null.
pub(crate) unsafe fn record<const FORMATS: bool>(argument: *mut PanicArgument, value: &Recorded, text: &mut Text) {
    // SAFETY: by contract.
    unsafe {
        let length = record_text::<FORMATS>(value, text);
        (*argument).kind = value.kind as u32;
        let size = if value.address.is_null() { 0 } else { SIZES.get(value.kind as usize).copied().unwrap_or(0) };
        (*argument).size = if size == 0 { length as u32 } else { u32::from(size) };
        // Values are aligned to their size, of 16 bytes to 8 at least.
        let low = match size {
            0 => 0,
            1 => u64::from(*value.address),
            2 => u64::from(*value.address.cast::<u16>()),
            4 => u64::from(*value.address.cast::<u32>()),
            _ => *value.address.cast::<u64>(),
        };
        let high = if size == 16 { *value.address.cast::<u64>().add(1) } else { 0 };
        (*argument).bits = [low, high];
    }
}

/// Adds what a value has in the text. Returns its length, also of what found no room.
///
/// # Safety
/// As for [`record`].
pub(crate) unsafe fn record_text<const FORMATS: bool>(value: &Recorded, text: &mut Text) -> usize {
    let before = text.length;
    // SAFETY: by contract the address leads to what the kind says: a string slice is an address and a length.
    unsafe {
        if value.kind == STR {
            text.add(*value.address.cast::<*const u8>(), *value.address.cast::<usize>().add(1));
        } else if FORMATS && value.kind == TEXT {
            text.format(arguments(value.address));
        }
    }
    text.length.wrapping_sub(before)
}

/// The message that the compiler has put together.
///
/// # Safety
/// The address leads to the template and the values of a message, as `format_args!` arranges them.
unsafe fn arguments<'a>(address: *const u8) -> fmt::Arguments<'a> {
    // The compiler knows how this version of the language arranges them, and has made them so.
    if size_of::<fmt::Arguments<'_>>() != size_of::<[*const u8; 2]>() {
        return format_args!("");
    }
    // SAFETY: by contract; of the same size, as was just checked.
    unsafe { core::mem::transmute_copy(&*address.cast::<[*const u8; 2]>()) }
}
