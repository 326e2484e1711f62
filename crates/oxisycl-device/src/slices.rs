//! Slices of the memory that kernels get.

/// A slice of elements. Says that its address is not null, which code that rustc has not optimised says of no reference. Device code begins as such
/// code, where an iterator would ask each element for it.
///
/// # Safety
/// As for [`core::slice::from_raw_parts`].
#[inline(always)]
pub(crate) unsafe fn slice<'a, T>(first: *const T, len: usize) -> &'a [T] {
    if first.is_null() {
        // SAFETY: the first element of a slice has an address, says the caller. `assert_unchecked` is nothing in such code.
        unsafe { core::hint::unreachable_unchecked() }
    }
    // SAFETY: as the caller says.
    unsafe { core::slice::from_raw_parts(first, len) }
}
