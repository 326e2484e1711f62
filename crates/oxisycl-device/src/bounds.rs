//! Positions of indices in memory, and the panics for indices that are outside of an accessor's range.

use crate::buffer_name::InBuffer;
use crate::builtin;

/// A panic with two indices of one to three dimensions in its message, and the address that tells the runtime which buffer is meant. Each
/// number is an argument of its own, and not a reference. Devices pass numbers on to the host, but run no code that formats arrays, and the
/// compiler may not see what a reference leads to.
macro_rules! panic_with_indices {
    ($before:literal, $a:ident, $between:literal, $b:ident, $first:ident) => {
        match ($a.as_slice(), $b.as_slice()) {
            (&[a], &[b]) => panic_with_indices!($before, "{}", $between, "{}", $first, a, b),
            (&[a], &[b, c]) => panic_with_indices!($before, "{}", $between, "{}, {}", $first, a, b, c),
            (&[a], &[b, c, d]) => panic_with_indices!($before, "{}", $between, "{}, {}, {}", $first, a, b, c, d),
            (&[a, b], &[c, d]) => panic_with_indices!($before, "{}, {}", $between, "{}, {}", $first, a, b, c, d),
            (&[a, b], &[c, d, e]) => {
                panic_with_indices!($before, "{}, {}", $between, "{}, {}, {}", $first, a, b, c, d, e)
            }
            (&[a, b, c], &[d, e, f]) => {
                panic_with_indices!($before, "{}, {}, {}", $between, "{}, {}, {}", $first, a, b, c, d, e, f)
            }
            (a, b) => panic!(concat!($before, "{:?}", $between, "{:?}"), a, b),
        }
    };
    ($before:literal, $a:literal, $between:literal, $b:literal, $first:ident, $($number:ident),*) => {
        if builtin::is_device_code() {
            panic!(concat!($before, "[", $a, "]", $between, "[", $b, "], in the buffer at {:#x}"), $($number),*, $first)
        } else {
            panic!(concat!($before, "[", $a, "]", $between, "[", $b, "]{}"), $($number),*, InBuffer($first))
        }
    };
}

// The arguments of both functions are values: a reference would put them in memory, and every work-item would store a copy of its accessors
// there.

/// Ends the work-item for a launch that goes beyond the accessor's `range`; `first` is the address of an element of the buffer.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn outside<const D: usize>(end: [usize; D], range: [usize; D], first: usize) -> ! {
    panic_with_indices!("the launch goes up to ", end, ", beyond the accessor's range ", range, first)
}

/// Ends the work-item for an index that is not in `range`; `first` is the address of an element of the buffer.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn out_of_bounds<const D: usize, const E: usize>(index: [usize; D], range: [usize; E], first: usize) -> ! {
    panic_with_indices!("index ", index, " is outside the accessor's range ", range, first)
}

/// Row-major position of `index` in memory whose extents are `pitch`.
#[inline(always)]
pub(crate) fn position<const D: usize>(index: [usize; D], pitch: [usize; D]) -> usize {
    let mut position = index[0];
    for d in 1..D {
        position = position * pitch[d] + index[d];
    }
    position
}

/// Row-major position of an index that must be in `range`, which begins at `first`, in memory whose extents are `pitch`.
#[inline(always)]
#[track_caller]
pub(crate) fn checked_position<T, const D: usize>(
    index: [usize; D],
    range: [usize; D],
    pitch: [usize; D],
    first: *const T,
) -> usize {
    for d in 0..D {
        if index[d] >= range[d] {
            out_of_bounds(index, range, first.addr())
        }
    }
    position(index, pitch)
}
