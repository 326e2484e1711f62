//! Host accessors (SYCL 2020 section 4.7.6.11).

use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::slice;

use oxisycl_device::{DeviceCopyable, Mode, Stores};
use oxisycl_runtime::schedule;
use oxisycl_types::{Id, Range};

/// A buffer's data on the host, for the thread that made it. While it exists, commands of other queues and threads that conflict
/// with it are held back; submitting them does not block.
///
/// Indices are relative to its offset. It stays on its thread, so that a wait of that thread which it would block for ever is
/// noticed and reported.
pub struct HostAccessor<T, const D: usize, M> {
    not_send: PhantomData<dyn StaysOnItsThread>,
    access: schedule::HostAccess,
    buffer: Range<D>,
    offset: Id<D>,
    range: Range<D>,
    mode: PhantomData<M>,
    elements: PhantomData<fn() -> T>,
}

/// A trait object that is neither `Send` nor `Sync`, whose name stands in the error.
trait StaysOnItsThread {}

impl<T: DeviceCopyable, const D: usize, M: Mode> HostAccessor<T, D, M> {
    pub(crate) fn new(access: schedule::HostAccess, buffer: Range<D>, offset: Id<D>, range: Range<D>) -> Self {
        let (not_send, mode, elements) = (PhantomData, PhantomData, PhantomData);
        Self { not_send, access, buffer, offset, range, mode, elements }
    }

    /// The extent that may be used.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 12], [3, 4])?;
    /// let host = table.host_access_range(Read, [1, 0], [2, 4])?;
    /// assert_eq!((host.range(), host.offset(), host.size()), (Range([2, 4]), Id([1, 0]), 8));
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self) -> Range<D> {
        self.range
    }

    /// The first element of the buffer that may be used.
    pub fn offset(&self) -> Id<D> {
        self.offset
    }

    /// Number of elements that may be used.
    pub fn size(&self) -> usize {
        self.range.size()
    }

    /// Size in bytes of the elements that may be used.
    pub fn byte_size(&self) -> usize {
        self.size() * size_of::<T>()
    }

    /// Whether no element may be used.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The extent of the buffer.
    #[cfg(feature = "ndarray")]
    pub(crate) fn buffer_range(&self) -> Range<D> {
        self.buffer
    }

    /// The address of the *buffer's* first element on the host.
    pub fn as_ptr(&self) -> *const T {
        self.access.pointer().cast()
    }

    #[inline]
    fn position(&self, index: &Id<D>) -> Option<usize> {
        if !self.range.contains(index) {
            return None;
        }
        let mut at = *index;
        for d in 0..D {
            at.0[d] += self.offset.0[d];
        }
        Some(self.buffer.linear(&at))
    }

    /// The element at `index`, or `None` outside the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let host = numbers.host_access(Read)?;
    /// assert_eq!((host.get(2), host.get(3)), (Some(&3), None));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn get(&self, index: impl Into<Id<D>>) -> Option<&T> {
        let position = self.position(&index.into())?;
        // SAFETY: the position lies in the accessor's range of an allocation that the accessor keeps alive. Conflicting commands wait until
        // the accessor is dropped, and `&mut` access needs `&mut self`.
        Some(unsafe { &*self.as_ptr().add(position) })
    }

    /// All elements in row-major order, from either end.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec_nd(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(numbers.host_access(Read)?.iter().sum::<i32>(), 10);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> HostIter<'_, T, D, M> {
        let n_rows = if self.is_empty() { 0 } else { self.size() / self.range.0[D - 1] };
        HostIter { accessor: self, rows: 0..n_rows, front: [].iter(), back: [].iter() }
    }

    /// All elements as one slice, if they are contiguous in memory.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![1, 2, 3, 4], [2, 2])?;
    /// assert_eq!(table.host_access(Read)?.to_slice(), Some(&[1, 2, 3, 4][..]));
    /// let column = table.host_access_range(Read, [0, 1], [2, 1])?;
    /// assert_eq!(column.to_slice(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_slice(&self) -> Option<&[T]> {
        let first = self.contiguous()?;
        // SAFETY: the elements are contiguous; the rest as in `get`.
        Some(unsafe { std::slice::from_raw_parts(first, self.size()) })
    }

    /// The first element if the range is contiguous.
    fn contiguous(&self) -> Option<*const T> {
        if self.is_empty() {
            return Some(std::ptr::NonNull::dangling().as_ptr());
        }
        let region = crate::buffer::region_of(self.range, self.offset);
        let (begin, _) = region.contiguous_interval(self.buffer.embed())?;
        Some(self.as_ptr().wrapping_add(begin))
    }

    /// The row with that number, counted in row-major order.
    fn row(&self, number: usize) -> &[T] {
        let (mut index, mut rest) = (Id::default(), number);
        for d in (0..D - 1).rev() {
            (index.0[d], rest) = (rest % self.range.0[d], rest / self.range.0[d]);
        }
        match self.position(&index) {
            // SAFETY: a row lies in the range, and is contiguous; the rest as in `get`.
            Some(position) => unsafe { std::slice::from_raw_parts(self.as_ptr().add(position), self.range.0[D - 1]) },
            None => &[],
        }
    }
}

impl<T: DeviceCopyable, M: Mode> HostAccessor<T, 1, M> {
    /// All elements as a slice.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// assert_eq!(numbers.host_access(Read)?.as_slice(), [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_slice(&self) -> &[T] {
        self.to_slice().unwrap_or(&[])
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> HostAccessor<T, D, M> {
    /// The element at `index`, or `None` outside the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// if let Some(last) = numbers.host_access(ReadWrite)?.get_mut(2) {
    ///     *last = 7;
    /// }
    /// assert_eq!(numbers.to_vec()?, [1, 2, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn get_mut(&mut self, index: impl Into<Id<D>>) -> Option<&mut T>
    where
        M: Stores,
    {
        let position = self.position(&index.into())?;
        // SAFETY: as in `get`, with exclusive access to the accessor, which is the only one for its bytes.
        Some(unsafe { &mut *self.as_ptr().cast_mut().add(position) })
    }

    /// All elements as one slice, if they are contiguous in memory.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![4, 3, 2, 1], [2, 2])?;
    /// if let Some(elements) = table.host_access(ReadWrite)?.to_slice_mut() {
    ///     elements.sort();
    /// }
    /// assert_eq!(table.to_vec()?, [1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_slice_mut(&mut self) -> Option<&mut [T]>
    where
        M: Stores,
    {
        let first = self.contiguous()?;
        // SAFETY: the elements are contiguous; the rest as in `get_mut`.
        Some(unsafe { std::slice::from_raw_parts_mut(first.cast_mut(), self.size()) })
    }

    /// Calls `f` with each element's index and the element, in row-major order.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 4], [2, 2])?;
    /// table.host_access(ReadWrite)?.for_each_mut(|index, element| *element = 10 * index[0] + index[1]);
    /// assert_eq!(table.to_vec()?, [0, 1, 10, 11]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_each_mut(&mut self, mut f: impl FnMut(Id<D>, &mut T))
    where
        M: Stores,
    {
        let mut index = Id::default();
        for _ in 0..self.size() {
            if let Some(element) = self.get_mut(index) {
                f(index, element);
            }
            advance(&mut index, &self.range);
        }
    }
}

impl<T: DeviceCopyable, M: Mode> HostAccessor<T, 1, M> {
    /// All elements as a slice.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![3, 1, 2])?;
    /// numbers.host_access(ReadWrite)?.as_mut_slice().sort();
    /// assert_eq!(numbers.to_vec()?, [1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_mut_slice(&mut self) -> &mut [T]
    where
        M: Stores,
    {
        self.to_slice_mut().unwrap_or(&mut [])
    }
}

fn advance<const D: usize>(index: &mut Id<D>, range: &Range<D>) {
    for d in (0..D).rev() {
        index.0[d] += 1;
        if index.0[d] < range.0[d] {
            return;
        }
        index.0[d] = 0;
    }
}

/// Iterator over the elements of a [`HostAccessor`] in row-major order.
pub struct HostIter<'a, T, const D: usize, M> {
    accessor: &'a HostAccessor<T, D, M>,
    /// The rows that neither end has begun.
    rows: std::ops::Range<usize>,
    front: slice::Iter<'a, T>,
    back: slice::Iter<'a, T>,
}

impl<T, const D: usize, M> Clone for HostIter<'_, T, D, M> {
    fn clone(&self) -> Self {
        let Self { accessor, rows, front, back } = self;
        Self { accessor, rows: rows.clone(), front: front.clone(), back: back.clone() }
    }
}

impl<T, const D: usize, M> fmt::Debug for HostIter<'_, T, D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostIter").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<'a, T: DeviceCopyable, const D: usize, M: Mode> Iterator for HostIter<'a, T, D, M> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(element) = self.front.next() {
                return Some(element);
            }
            match self.rows.next() {
                Some(row) => self.front = self.accessor.row(row).iter(),
                None => return self.back.next(),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.front.len() + self.rows.len() * self.accessor.range.0[D - 1] + self.back.len();
        (left, Some(left))
    }
}

impl<'a, T: DeviceCopyable, const D: usize, M: Mode> DoubleEndedIterator for HostIter<'a, T, D, M> {
    #[inline]
    fn next_back(&mut self) -> Option<&'a T> {
        loop {
            if let Some(element) = self.back.next_back() {
                return Some(element);
            }
            match self.rows.next_back() {
                Some(row) => self.back = self.accessor.row(row).iter(),
                None => return self.front.next_back(),
            }
        }
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> ExactSizeIterator for HostIter<'_, T, D, M> {}
impl<T: DeviceCopyable, const D: usize, M: Mode> FusedIterator for HostIter<'_, T, D, M> {}

impl<'a, T: DeviceCopyable, const D: usize, M: Mode> IntoIterator for &'a HostAccessor<T, D, M> {
    type Item = &'a T;
    type IntoIter = HostIter<'a, T, D, M>;
    fn into_iter(self) -> HostIter<'a, T, D, M> {
        self.iter()
    }
}

#[cold]
fn outside<const D: usize>(index: Id<D>, range: Range<D>) -> ! {
    panic!("index {index:?} is outside the host accessor's range {range:?}")
}

macro_rules! index {
    ($([$($generics:tt)*] $index:ty, $d:expr;)*) => { $(
        impl<T: DeviceCopyable, M: Mode, $($generics)*> Index<$index> for HostAccessor<T, $d, M> {
            type Output = T;
            #[inline]
            fn index(&self, index: $index) -> &T {
                let index: Id<$d> = index.into();
                self.get(index).unwrap_or_else(|| outside(index, self.range))
            }
        }
        impl<T: DeviceCopyable, M: Stores, $($generics)*> IndexMut<$index> for HostAccessor<T, $d, M> {
            #[inline]
            fn index_mut(&mut self, index: $index) -> &mut T {
                let (index, range): (Id<$d>, _) = (index.into(), self.range);
                self.get_mut(index).unwrap_or_else(|| outside(index, range))
            }
        }
    )* };
}

index! {
    [const D: usize] [usize; D], D;
    [const D: usize] Id<D>, D;
    [] usize, 1;
}

impl<T, const D: usize, M: Mode> fmt::Debug for HostAccessor<T, D, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostAccessor")
            .field("mode", &M::MODE)
            .field("offset", &self.offset)
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}
