//! Placeholders: accessors that are made once and required by many command groups.

use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use oxisycl_device::{DeviceCopyable, ModeFor};
use oxisycl_types::{Id, Range};

use super::Buffer;

/// What an accessor will be; [`Handler::require`](crate::Handler::require) makes it one. Gives no access itself, and keeps the
/// buffer alive.
#[derive(Clone, Debug)]
pub struct Placeholder<T, const D: usize, M> {
    pub(crate) buffer: Buffer<T, D>,
    pub(crate) range: Range<D>,
    pub(crate) offset: Id<D>,
    mode: PhantomData<M>,
}

impl<T, const D: usize, M> PartialEq for Placeholder<T, D, M> {
    /// Whether one command group gets the same accessor for both.
    fn eq(&self, other: &Self) -> bool {
        (&self.buffer, self.range, self.offset) == (&other.buffer, other.range, other.offset)
    }
}
impl<T, const D: usize, M> Eq for Placeholder<T, D, M> {}
impl<T, const D: usize, M> Hash for Placeholder<T, D, M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.buffer, self.range, self.offset).hash(state);
    }
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// A placeholder for an accessor to the whole buffer.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let placeholder = numbers.placeholder(ReadWrite);
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.require(&placeholder);
    ///     cg.parallel_for(3, move |item| numbers.update(item, |x| 2 * x))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [2, 4, 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn placeholder<M: ModeFor<T>>(&self, mode: M) -> Placeholder<T, D, M> {
        self.placeholder_range(mode, Id::default(), self.range)
    }

    /// A placeholder for an accessor to a part. Whether it is inside the buffer is checked when it is required.
    pub fn placeholder_range<M: ModeFor<T>>(
        &self,
        _mode: M,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> Placeholder<T, D, M> {
        Placeholder { buffer: self.clone(), range: range.into(), offset: offset.into(), mode: PhantomData }
    }
}
