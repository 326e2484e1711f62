//! Where addresses come from.

use super::{MultiPtr, space};
use crate::group::nd::LocalAccessor;
use crate::{Accessor, DeviceCopyable, Inside};

impl<T, const D: usize, M> Accessor<'_, T, D, M> {
    /// [`as_ptr`](Self::as_ptr) as an address of global memory (SYCL 2020: `get_multi_ptr`).
    #[inline(always)]
    pub fn multi_ptr<'k>(self, _inside: impl Inside<'k>) -> MultiPtr<T, space::Global> {
        MultiPtr::of(self.as_ptr())
    }
}

impl<T: DeviceCopyable> LocalAccessor<'_, T> {
    /// [`as_ptr`](Self::as_ptr) as an address of local memory.
    #[inline(always)]
    pub fn multi_ptr(self) -> MultiPtr<T, space::Local> {
        MultiPtr::of(self.as_ptr())
    }
}
