//! What kernels would call on a buffer that they should have an accessor of. None of it can be called; the compiler says why.

use std::ops::{Index, IndexMut};

use super::Buffer;

/// A buffer that can be used inside a kernel. There is none.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "a buffer is not used inside a kernel",
    label = "needs an accessor",
    note = "before the kernel: `let data = cg.access(&buffer, ReadWrite);`, or `Read`, or `Write`; then the kernel uses `data`",
    note = "on the host: `buffer.host_access(ReadWrite)?`"
)]
pub trait UsedInKernels {
    /// What the use would give. There is nothing to call it with.
    fn never<R>(&self) -> R;
}

impl<T, const D: usize> Buffer<T, D> {
    #[doc(hidden)]
    pub fn get<I>(&self, _item: I) -> T
    where
        Self: UsedInKernels,
    {
        self.never()
    }

    #[doc(hidden)]
    pub fn set<I, V>(&self, _item: I, _value: V)
    where
        Self: UsedInKernels,
    {
        self.never()
    }

    #[doc(hidden)]
    pub fn cell<I>(&self, _item: I) -> &T
    where
        Self: UsedInKernels,
    {
        self.never()
    }

    #[doc(hidden)]
    pub fn view<I>(&self, _item: I) -> &[T]
    where
        Self: UsedInKernels,
    {
        self.never()
    }

    #[doc(hidden)]
    pub fn at<I, X>(&self, _item: I, _index: X) -> &T
    where
        Self: UsedInKernels,
    {
        self.never()
    }
}

impl<T, const D: usize, I> Index<I> for Buffer<T, D>
where
    Self: UsedInKernels,
{
    type Output = T;
    fn index(&self, _index: I) -> &T {
        self.never()
    }
}

impl<T, const D: usize, I> IndexMut<I> for Buffer<T, D>
where
    Self: UsedInKernels,
{
    fn index_mut(&mut self, _index: I) -> &mut T {
        self.never()
    }
}
