//! Positions of indices in memory, and the panics for indices that are outside of an accessor's range.

use crate::buffer_name::InBuffer;
use crate::builtin;

/// Functions that panic with two indices of one to three dimensions in the message. `first` is the address that tells the runtime which buffer
/// is meant. Each number is an argument of its own in the message, and not a reference. Devices pass numbers on to the host, but run no code
/// that formats arrays, and the compiler may not see what a reference leads to. The functions take numbers, too, since arrays are passed in
/// memory. Every work-item would store a copy of its index and of its accessor's range there before the check.
macro_rules! panic_with_indices {
    ($before:literal, $between:literal: $($name:ident($a:literal, $b:literal: $($number:ident),*);)*) => {$(
        #[cold]
        #[inline(never)]
        #[track_caller]
        fn $name($($number: usize,)* first: usize) -> ! {
            if builtin::is_device_code() {
                panic!(concat!($before, "[", $a, "]", $between, "[", $b, "], in the buffer at {:#x}"), $($number),*, first)
            } else {
                panic!(concat!($before, "[", $a, "]", $between, "[", $b, "]{}"), $($number),*, InBuffer(first))
            }
        }
    )*};
}

panic_with_indices! { "the launch goes up to ", ", beyond the accessor's range ":
    launch_1("{}", "{}": a, d);
    launch_2("{}, {}", "{}, {}": a, b, d, e);
    launch_3("{}, {}, {}", "{}, {}, {}": a, b, c, d, e, f);
}

panic_with_indices! { "index ", " is outside the accessor's range ":
    index_1_in_1("{}", "{}": a, d);
    index_1_in_2("{}", "{}, {}": a, d, e);
    index_1_in_3("{}", "{}, {}, {}": a, d, e, f);
    index_2_in_2("{}, {}", "{}, {}": a, b, d, e);
    index_2_in_3("{}, {}", "{}, {}, {}": a, b, d, e, f);
    index_3_in_3("{}, {}, {}", "{}, {}, {}": a, b, c, d, e, f);
}

/// Ends the work-item for a launch that goes beyond the accessor's `range`; `first` is the address of an element of the buffer.
#[inline(always)]
#[track_caller]
pub(crate) fn outside<const D: usize>(end: [usize; D], range: [usize; D], first: usize) -> ! {
    let ([a, b, c], [d, e, f]) = (padded(end), padded(range));
    match D {
        1 => launch_1(a, d, first),
        2 => launch_2(a, b, d, e, first),
        _ => launch_3(a, b, c, d, e, f, first),
    }
}

/// Ends the work-item for an index that is not in `range`; `first` is the address of an element of the buffer.
#[inline(always)]
#[track_caller]
pub(crate) fn out_of_bounds<const D: usize, const E: usize>(index: [usize; D], range: [usize; E], first: usize) -> ! {
    const { assert!(D <= E, "an index has no more dimensions than the range") };
    let ([a, b, c], [d, e, f]) = (padded(index), padded(range));
    match (D, E) {
        (1, 1) => index_1_in_1(a, d, first),
        (1, 2) => index_1_in_2(a, d, e, first),
        (1, _) => index_1_in_3(a, d, e, f, first),
        (2, 2) => index_2_in_2(a, b, d, e, first),
        (2, _) => index_2_in_3(a, b, d, e, f, first),
        _ => index_3_in_3(a, b, c, d, e, f, first),
    }
}

/// The numbers of an index, and zero for each dimension that it does not have.
#[inline(always)]
fn padded<const D: usize>(index: [usize; D]) -> [usize; 3] {
    const { assert!(D >= 1 && D <= 3, "an index has 1, 2 or 3 dimensions") };
    // Without slices, whose own panics would be linked with each kernel.
    let at = |d: usize| index.get(d).copied().unwrap_or(0);
    [at(0), at(1), at(2)]
}

/// Moves an index to the next row of an extent, and from the last one to the first.
#[inline(always)]
pub(crate) fn next_row<const D: usize>(index: &mut [usize; D], extent: [usize; D]) {
    for d in (0..D - 1).rev() {
        index[d] += 1;
        if index[d] < extent[d] {
            break;
        }
        index[d] = 0;
    }
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
