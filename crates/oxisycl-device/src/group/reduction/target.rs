//! Where the results of reductions go.

use oxisycl_types::AccessMode;

use crate::{Accessor, DeviceCopyable, ModeFor, Stores};

/// Elements that results go to. Implemented by this crate only.
///
/// # Safety
/// The command that the target was made for may write the elements, and nothing else uses them meanwhile. They have values where the old ones
/// count.
pub unsafe trait Target<T>: Copy + Send + Sync {
    /// Whether old values are part of the results.
    #[doc(hidden)]
    const INCLUDES_OLD: bool;

    /// The first element.
    #[doc(hidden)]
    fn first(&self) -> *mut T;

    /// How many there are; `None` if that is the user's promise.
    #[doc(hidden)]
    fn size(&self) -> Option<usize>;
}

// SAFETY: an accessor that stores is alone with its elements in the command, and waits for all others. With a mode that loads, they have values.
unsafe impl<T: DeviceCopyable, M: ModeFor<T> + Stores> Target<T> for Accessor<'_, T, 1, M> {
    const INCLUDES_OLD: bool = matches!(M::MODE, AccessMode::ReadWrite) && !M::NO_INIT;

    #[inline(always)]
    fn first(&self) -> *mut T {
        self.as_ptr()
    }

    fn size(&self) -> Option<usize> {
        Some(Accessor::size(*self))
    }
}

/// Elements in memory of USM, see [`reduction_usm`](super::reduction_usm). Old values are part of the results if `INCLUDES_OLD`.
#[derive(Debug)]
pub struct UsmTarget<T, const INCLUDES_OLD: bool>(pub(super) *mut T);

impl<T, const INCLUDES_OLD: bool> Clone for UsmTarget<T, INCLUDES_OLD> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, const INCLUDES_OLD: bool> Copy for UsmTarget<T, INCLUDES_OLD> {}

// SAFETY: an address. The caller of `reduction_usm` has promised that the command may write there.
unsafe impl<T: DeviceCopyable, const INCLUDES_OLD: bool> Send for UsmTarget<T, INCLUDES_OLD> {}
// SAFETY: an address. The caller of `reduction_usm` has promised that the command may write there.
unsafe impl<T: DeviceCopyable, const INCLUDES_OLD: bool> Sync for UsmTarget<T, INCLUDES_OLD> {}

// SAFETY: by the promise of `reduction_usm`'s caller.
unsafe impl<T: DeviceCopyable, const OLD: bool> Target<T> for UsmTarget<T, OLD> {
    const INCLUDES_OLD: bool = OLD;

    #[inline(always)]
    fn first(&self) -> *mut T {
        self.0
    }

    fn size(&self) -> Option<usize> {
        None
    }
}
