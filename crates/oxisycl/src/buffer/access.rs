//! How a kernel with arguments uses a buffer.

use std::marker::PhantomData;

use oxisycl_device::{DeviceCopyable, ModeFor, Stores};
use oxisycl_types::{Id, Range};

use super::Buffer;
use crate::{Atomic, Read, ReadWrite, Write};

/// A buffer as an [argument](crate::argument) of a kernel, and how the kernel uses it. The kernel gets an [`Accessor`](crate::Accessor).
///
/// Two of them in one command group must not overlap if one writes, as accessors must not.
#[derive(Clone, Copy, Debug)]
#[must_use = "it is an argument of a kernel"]
pub struct BufferAccess<'b, T, const D: usize, M> {
    pub(crate) buffer: &'b Buffer<T, D>,
    pub(crate) offset: Id<D>,
    pub(crate) range: Range<D>,
    mode: PhantomData<M>,
}

/// A buffer as an argument of a kernel whose work-items own blocks of it. The kernel gets a [`Chunked`](crate::Chunked).
#[derive(Clone, Copy, Debug)]
#[must_use = "it is an argument of a kernel"]
pub struct ChunkedAccess<'b, T, const D: usize, M> {
    pub(crate) access: BufferAccess<'b, T, D, M>,
    pub(crate) block: Range<D>,
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// The buffer as an argument of a kernel that reads it.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (numbers, squares) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0; 3])?);
    /// let arguments = (numbers.read(), squares.write());
    /// Queue::default()?.parallel_for_with(3, arguments, |item, (numbers, squares)| {
    ///     let number = numbers.get(item);
    ///     squares.set(item, number * number)
    /// })?;
    /// assert_eq!(squares.to_vec()?, [1, 4, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read(&self) -> BufferAccess<'_, T, D, Read> {
        self.with(Read)
    }

    /// The buffer as an argument of a kernel that writes to it. Elements that it does not write keep their values.
    pub fn write(&self) -> BufferAccess<'_, T, D, Write> {
        self.with(Write)
    }

    /// The buffer as an argument of a kernel that reads and writes it.
    pub fn update(&self) -> BufferAccess<'_, T, D, ReadWrite> {
        self.with(ReadWrite)
    }

    /// The buffer as an argument of a kernel that uses its elements atomically.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let bins = Buffer::from_vec(vec![0u32; 2])?;
    /// Queue::default()?.parallel_for_with(10, bins.atomic(), |item, bins| {
    ///     bins.fetch_add(item, item.index() % 2, 1);
    /// })?;
    /// assert_eq!(bins.to_vec()?, [5, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn atomic(&self) -> BufferAccess<'_, T, D, Atomic>
    where
        Atomic: ModeFor<T>,
    {
        self.with(Atomic)
    }

    /// The buffer as an argument of a kernel that uses it as `mode` says, such as `Write.no_init()`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::uninit(4)?;
    /// let arguments = numbers.with(Write.no_init()); // nothing is copied to the device
    /// Queue::default()?.parallel_for_with(4, arguments, |item, numbers| numbers.set(item, item.index()))?;
    /// assert_eq!(numbers.to_vec()?, [0, 1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with<M: ModeFor<T>>(&self, _mode: M) -> BufferAccess<'_, T, D, M> {
        BufferAccess { buffer: self, offset: Id::default(), range: self.range, mode: PhantomData }
    }
}

impl<'b, T: DeviceCopyable, const D: usize, M> BufferAccess<'b, T, D, M> {
    /// Only a part of the buffer. Indices are relative to `offset`.
    ///
    /// Errors, when the command group is recorded: `Invalid` if the part is not inside the buffer.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0, 1, 2, 3, 4, 5])?;
    /// let middle = numbers.update().range(2, 3); // from 2, three of them
    /// Queue::default()?.parallel_for_with(3, middle, |item, middle| middle.update(item, |x| 10 * x))?;
    /// assert_eq!(numbers.to_vec()?, [0, 1, 20, 30, 40, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(self, offset: impl Into<Id<D>>, range: impl Into<Range<D>>) -> Self {
        Self { offset: offset.into(), range: range.into(), ..self }
    }

    /// In blocks: the work-item with id `i` owns block `i`.
    ///
    /// Errors, when the command group is recorded: `Invalid` if the block has a zero extent.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 5])?;
    /// Queue::default()?.parallel_for_with(3, numbers.write().chunks(2), |item, numbers| {
    ///     numbers.block(item).fill(item.index())
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 0, 1, 1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn chunks(self, block: impl Into<Range<D>>) -> ChunkedAccess<'b, T, D, M>
    where
        M: Stores,
    {
        ChunkedAccess { access: self, block: block.into() }
    }
}
