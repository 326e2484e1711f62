//! Arrays of the crate `ndarray` as buffers, and back.
//!
//! Invariant: elements keep their indices. Of arrays in standard layout, which is that of buffers (row-major, without gaps), they keep their memory, too.

use ndarray::{Array, ArrayView, ArrayViewMut, Dim, Dimension, ShapeBuilder};
use oxisycl_device::{DeviceCopyable, Mode, Stores};
use oxisycl_types::Range;

use super::{BorrowedBuffer, Buffer, BufferOptions, IntoVecError};
use crate::{Error, HostAccessor, Read, Result};

/// What `ndarray` calls `Ix1`, `Ix2` and so on.
pub(crate) type Shape<const D: usize> = Dim<[usize; D]>;

impl<const D: usize> BufferOptions<D>
where
    Shape<D>: Dimension,
{
    /// A buffer that takes over the memory of an array; see [`Buffer::from_array`].
    #[track_caller]
    pub fn from_array<T: DeviceCopyable>(self, array: Array<T, Dim<[usize; D]>>) -> Result<Buffer<T, D>> {
        let range = range_of(array.shape());
        self.from_vec_nd(into_row_major(array), range)
    }

    /// A buffer with a copy of the elements of a view; see [`Buffer::from_array_view`].
    #[track_caller]
    pub fn from_array_view<T: DeviceCopyable>(self, view: ArrayView<'_, T, Dim<[usize; D]>>) -> Result<Buffer<T, D>> {
        let range = range_of(view.shape());
        match view.as_slice() {
            Some(slice) => self.from_slice_nd(slice, range),
            None => self.from_vec_nd(view.iter().copied().collect(), range),
        }
    }

    /// A buffer with a copy of the elements of a view, which are written back; see [`Buffer::from_array_view_mut`].
    #[track_caller]
    pub fn from_array_view_mut<T: DeviceCopyable>(
        self,
        view: ArrayViewMut<'_, T, Dim<[usize; D]>>,
    ) -> Result<BorrowedBuffer<'_, T, D>> {
        let range = range_of(view.shape());
        let strides = view.strides().to_vec();
        match view.into_slice() {
            Some(slice) => self.from_slice_mut_nd(slice, range),
            None => Err(Error::invalid(format!(
                "an array view of shape {:?} with strides {strides:?} cannot be written back: expected the standard layout, row-major without gaps",
                range.0
            ))),
        }
    }
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D>
where
    Shape<D>: Dimension,
{
    /// A buffer that takes over the memory of an array, with the array's shape as its range; [`into_array`](Self::into_array) gives it back.
    /// Elements keep their indices. If the array is not in standard layout (row-major without gaps), its elements are copied into it. With the
    /// feature `ndarray`.
    ///
    /// Errors: as those of [`Platform::all`](crate::Platform::all), if the settings are wrong.
    ///
    /// ```
    /// use ndarray::{Array, array};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let matrix = Buffer::from_array(array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])?;
    /// assert_eq!(matrix.range(), Range([2, 3]));
    /// Queue::default()?.submit(|cg| {
    ///     let matrix = cg.access(&matrix, ReadWrite);
    ///     cg.parallel_for([2, 3], move |item: Item<2>| matrix.update(item, |x| x * (1 + item.get(0)) as f64))
    /// })?;
    /// assert_eq!(matrix.into_array()?, array![[1.0, 2.0, 3.0], [8.0, 10.0, 12.0]]); // waits for the kernel
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array(array: Array<T, Dim<[usize; D]>>) -> Result<Self> {
        BufferOptions::new().from_array(array)
    }

    /// A buffer with a copy of the elements of a view of any layout, with the view's shape as its range. With the feature `ndarray`.
    ///
    /// Errors: as those of [`Platform::all`](crate::Platform::all), if the settings are wrong.
    ///
    /// ```
    /// use ndarray::{array, s};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let matrix = array![[1, 2, 3], [4, 5, 6]];
    /// let columns = Buffer::from_array_view(matrix.slice(s![.., 1..]))?;
    /// assert_eq!(columns.into_array()?, array![[2, 3], [5, 6]]);
    /// let transposed = Buffer::from_array_view(matrix.t())?;
    /// assert_eq!(transposed.to_vec()?, [1, 4, 2, 5, 3, 6]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array_view(view: ArrayView<'_, T, Dim<[usize; D]>>) -> Result<Self> {
        BufferOptions::new().from_array_view(view)
    }

    /// A buffer with a copy of the elements of a view, which are written back when the result is dropped. With the feature `ndarray`.
    ///
    /// Errors: `Invalid` if the view is not in standard layout (row-major without gaps).
    ///
    /// ```
    /// use ndarray::Array2;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let mut matrix = Array2::<i32>::zeros([3, 4]);
    /// let buffer = Buffer::from_array_view_mut(matrix.view_mut())?;
    /// Queue::default()?.fill(&buffer, 7)?;
    /// buffer.finish()?; // waits for the command
    /// assert_eq!(matrix, Array2::from_elem([3, 4], 7));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_array_view_mut(view: ArrayViewMut<'_, T, Dim<[usize; D]>>) -> Result<BorrowedBuffer<'_, T, D>> {
        BufferOptions::new().from_array_view_mut(view)
    }

    /// The data as an array in standard layout. Waits for all submitted commands that use the buffer. If the buffer was made with
    /// [`from_array`](Self::from_array) of an array in that layout, or with [`from_vec_nd`](Self::from_vec_nd), it is the same memory. With the
    /// feature `ndarray`.
    ///
    /// Errors: as those of [`into_vec`](Self::into_vec); `Invalid` if the buffer has no elements and a range that no array can have.
    ///
    /// ```
    /// use ndarray::array;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let table = Buffer::<usize, 2>::uninit([2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let table = cg.access(&table, Write.no_init());
    ///     cg.parallel_for([2, 3], move |item: Item<2>| table.set(item, 10 * item.get(0) + item.get(1)))
    /// })?;
    /// let table = table.into_array()?; // waits for the kernel
    /// assert_eq!(table, array![[0, 1, 2], [10, 11, 12]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_array(self) -> Result<Array<T, Dim<[usize; D]>>, IntoVecError<T, D>> {
        let range = self.range;
        if !can_be_shape(&range) {
            let message = format!("{} with range {range:?} cannot become an array", self.view.core);
            return Err(IntoVecError::new(self, Error::invalid(message)));
        }
        match self.take_vec("into_array") {
            Ok(elements) => Ok(Array::from_shape_vec(shape_of(&range), elements)
                .expect("the range is that of the vector, and was looked at")),
            Err(error) => Err(IntoVecError::new(self, error)),
        }
    }

    /// A copy of all elements as an array. Blocks like [`host_access`](Self::host_access). With the feature `ndarray`.
    ///
    /// Errors: as those of [`host_access`](Self::host_access); `Invalid` if the buffer has no elements and a range that no array can have.
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let table = Buffer::from_vec_nd(vec![1, 2, 3, 4], [2, 2])?;
    /// let before = table.to_array()?;
    /// Queue::default()?.fill(&table, 7)?;
    /// assert_eq!(before.sum_axis(Axis(0)), array![4, 6]);
    /// assert_eq!(table.to_array()?, array![[7, 7], [7, 7]]); // waits for the command
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_array(&self) -> Result<Array<T, Dim<[usize; D]>>> {
        if !can_be_shape(&self.range) {
            return Err(Error::invalid(format!(
                "{} with range {:?} cannot become an array",
                self.view.core, self.range
            )));
        }
        Ok(self.host_access(Read)?.array_view().to_owned())
    }
}

impl<T: DeviceCopyable, const D: usize, M: Mode> HostAccessor<T, D, M>
where
    Shape<D>: Dimension,
{
    /// The elements as an array, without a copy; also those of a part of the buffer that is not contiguous. With the feature `ndarray`.
    ///
    /// # Panics
    /// If there are no elements, and the other extents are larger than those of any array.
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let matrix = Buffer::from_vec_nd((1..=6).collect(), [2, 3])?;
    /// assert_eq!(matrix.host_access(Read)?.array_view().sum_axis(Axis(0)), array![5, 7, 9]);
    /// let columns = matrix.host_access_range(Read, [0, 1], [2, 2])?;
    /// assert_eq!(columns.array_view(), array![[2, 3], [5, 6]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn array_view(&self) -> ArrayView<'_, T, Dim<[usize; D]>> {
        let shape = shape_of(&self.range());
        if self.is_empty() {
            return ArrayView::from_shape(shape, &[]).expect("the extents of an array without elements");
        }
        // SAFETY: the shape at these distances names the elements of the accessor's range, and no others; they are in one allocation, that the
        // accessor keeps. Conflicting commands wait until the accessor is dropped, and `&mut` access needs `&mut self`.
        unsafe { ArrayView::from_shape_ptr(shape.strides(self.strides()), self.first()) }
    }

    /// The elements as an array, for writing, without a copy; also those of a part of the buffer that is not contiguous. With the feature
    /// `ndarray`.
    ///
    /// # Panics
    /// If there are no elements, and the other extents are larger than those of any array.
    ///
    /// ```
    /// use ndarray::array;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let matrix = Buffer::from_vec_nd(vec![0; 6], [2, 3])?;
    /// matrix.host_access(ReadWrite)?.array_view_mut().column_mut(1).fill(7);
    /// assert_eq!(matrix.into_array()?, array![[0, 7, 0], [0, 7, 0]]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn array_view_mut(&mut self) -> ArrayViewMut<'_, T, Dim<[usize; D]>>
    where
        M: Stores,
    {
        let shape = shape_of(&self.range());
        if self.is_empty() {
            return ArrayViewMut::from_shape(shape, &mut []).expect("the extents of an array without elements");
        }
        // SAFETY: as in `array_view`, with exclusive access to the accessor, which is the only one for its bytes.
        unsafe { ArrayViewMut::from_shape_ptr(shape.strides(self.strides()), self.first().cast_mut()) }
    }

    /// Elements from one index of each dimension to the next.
    fn strides(&self) -> Shape<D> {
        let buffer = self.buffer_range();
        let mut strides = Range([1; D]);
        for d in (0..D.saturating_sub(1)).rev() {
            strides.0[d] = strides.0[d + 1] * buffer.0[d + 1];
        }
        shape_of(&strides)
    }

    /// The first element that may be used, of one or more.
    fn first(&self) -> *const T {
        self.as_ptr().wrapping_add(self.buffer_range().linear(&self.offset()))
    }
}

fn range_of<const D: usize>(shape: &[usize]) -> Range<D> {
    Range(std::array::from_fn(|d| shape[d]))
}

pub(crate) fn shape_of<const D: usize>(range: &Range<D>) -> Shape<D>
where
    Shape<D>: Dimension,
{
    let mut shape = Shape::<D>::zeros(D);
    shape.slice_mut().copy_from_slice(&range.0);
    shape
}

/// Whether the extents other than zero are those of an array: those of a buffer with elements are.
fn can_be_shape<const D: usize>(range: &Range<D>) -> bool {
    let mut extents = range.0.iter().filter(|extent| **extent > 0);
    let n_elements = extents.try_fold(1usize, |n, extent| n.checked_mul(*extent));
    n_elements.is_some_and(|n| isize::try_from(n).is_ok())
}

/// All elements in row-major order: the array's own vector if they are there in that order, at its begin.
pub(crate) fn into_row_major<T: DeviceCopyable, const D: usize>(array: Array<T, Shape<D>>) -> Vec<T>
where
    Shape<D>: Dimension,
{
    if !array.is_standard_layout() {
        return array.iter().copied().collect();
    }
    let n_elements = array.len();
    let (mut elements, first) = array.into_raw_vec_and_offset();
    let first = first.unwrap_or(0);
    // What a slice of the array has left.
    elements.truncate(first + n_elements);
    elements.drain(..first);
    elements
}
