//! A library whose kernels' code is in the crates that call it.

use oxisycl_device::builtin::group_barrier;

/// Runs a step before a barrier and one after it, under the same condition.
///
/// # Safety
/// All work-items of the group call it.
pub unsafe fn around_a_barrier(is_first: bool, before: impl Fn(), after: impl Fn()) {
    if is_first {
        before();
    }
    // SAFETY: the caller's promise.
    unsafe { group_barrier() };
    if is_first {
        after();
    }
}
