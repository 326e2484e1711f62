//! Hints about managed memory, which are only written down. Old drivers name places by a device's number, newer ones by a structure;
//! these have both calls, as the real ones do.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;

use crate::memory::{Kind, kind_of};
use crate::{Code, INVALID_VALUE, SUCCESS, begin_in_context, config, put};

/// A hint that was received. Its elements are the version of the call (1 or 2), the advice or 0 for a prefetch, and the device (-1 for the
/// host).
type Hint = [i64; 3];

static HINTS: Mutex<Vec<Hint>> = Mutex::new(Vec::new());

/// Gives the hint at a position out; false if there are not so many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_hint(position: usize, hint: *mut Hint) -> bool {
    let hints = HINTS.lock().unwrap();
    hints.get(position).is_some_and(|found| {
        // SAFETY: the test has room for one.
        unsafe { put(hint, *found) };
        true
    })
}

/// Takes a hint for managed memory and a place that there is.
fn take(pointer: u64, size: usize, [version, advice, device]: Hint) -> Code {
    let is_place = device == -1 || (0..i64::from(config(|config| config.devices))).contains(&device);
    if kind_of(pointer, size) != Some(Kind::Managed) || !is_place || !(0..=6).contains(&advice) {
        return INVALID_VALUE;
    }
    HINTS.lock().unwrap().push([version, advice, device]);
    SUCCESS
}

/// `CUmemLocation`
#[repr(C)]
pub struct Location {
    kind: c_int,
    id: c_int,
}

impl Location {
    /// The device; for what is no place a number that no device has.
    fn device(&self) -> i64 {
        match self.kind {
            1 if self.id >= 0 => i64::from(self.id),
            2 => -1,
            _ => i64::MIN,
        }
    }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemPrefetchAsync(pointer: u64, size: usize, device: c_int, _stream: *mut c_void) -> Code {
    begin_in_context!(cuMemPrefetchAsync);
    take(pointer, size, [1, 0, i64::from(device)])
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "system" fn cuMemPrefetchAsync_v2(
    pointer: u64,
    size: usize,
    location: Location,
    flags: c_uint,
    _stream: *mut c_void,
) -> Code {
    begin_in_context!(cuMemPrefetchAsync_v2);
    if flags == 0 { take(pointer, size, [2, 0, location.device()]) } else { INVALID_VALUE }
}

#[unsafe(no_mangle)]
pub extern "system" fn cuMemAdvise(pointer: u64, size: usize, advice: c_int, device: c_int) -> Code {
    begin_in_context!(cuMemAdvise);
    take(pointer, size, [1, i64::from(advice), i64::from(device)])
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
pub extern "system" fn cuMemAdvise_v2(pointer: u64, size: usize, advice: c_int, location: Location) -> Code {
    begin_in_context!(cuMemAdvise_v2);
    take(pointer, size, [2, i64::from(advice), location.device()])
}
