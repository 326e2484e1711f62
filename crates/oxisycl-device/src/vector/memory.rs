//! Vectors in rows of elements: loads and stores at multiples of their length.

use core::cell::Cell;

use super::{Vector, VectorElement};

#[cold]
#[inline(never)]
#[track_caller]
fn outside(offset: usize, n: usize, len: usize) -> ! {
    panic!("vector {offset} of {n} elements lies outside of a slice of {len} elements")
}

impl<T: VectorElement<N>, const N: usize> Vector<T, N> {
    /// The elements from `offset * N` on (SYCL 2020 `load`). They need not be aligned as a vector is.
    ///
    /// ```
    /// use oxisycl_device::vector::Int4;
    ///
    /// let mut row: Vec<i32> = (0..12).collect();
    /// let last = Int4::load(2, &row);
    /// (last * 10).store(0, &mut row);
    /// assert_eq!(row[..5], [80, 90, 100, 110, 4]);
    /// ```
    ///
    /// # Panics
    /// The slice ends before the last of them. The message has the offset and the length of the slice.
    #[inline(always)]
    #[track_caller]
    pub fn load(offset: usize, slice: &[T]) -> Self {
        match slice.as_chunks::<N>().0.get(offset) {
            Some(elements) => Self::from_array(*elements),
            None => outside(offset, N, slice.len()),
        }
    }

    /// Writes the elements from `offset * N` on (SYCL 2020 `store`).
    ///
    /// # Panics
    /// The slice ends before the last of them. The message has the offset and the length of the slice.
    #[inline(always)]
    #[track_caller]
    pub fn store(self, offset: usize, slice: &mut [T]) {
        let len = slice.len();
        match slice.as_chunks_mut::<N>().0.get_mut(offset) {
            Some(elements) => *elements = self.elements,
            None => outside(offset, N, len),
        }
    }

    /// Reads the elements from `offset * N` on, of cells: the elements that a work-item has of an accessor that writes.
    ///
    /// # Panics
    /// The slice ends before the last of them. The message has the offset and the length of the slice.
    #[inline(always)]
    #[track_caller]
    pub fn load_cells(offset: usize, slice: &[Cell<T>]) -> Self {
        match slice.as_chunks::<N>().0.get(offset) {
            Some(cells) => Self::from_fn(|i| cells[i].get()),
            None => outside(offset, N, slice.len()),
        }
    }

    /// Writes the elements from `offset * N` on, to cells: the elements that a work-item has of an accessor that writes.
    ///
    /// # Panics
    /// The slice ends before the last of them. The message has the offset and the length of the slice.
    #[inline(always)]
    #[track_caller]
    pub fn store_cells(self, offset: usize, slice: &[Cell<T>]) {
        match slice.as_chunks::<N>().0.get(offset) {
            Some(cells) => {
                for (cell, element) in cells.iter().zip(&self) {
                    cell.set(*element);
                }
            }
            None => outside(offset, N, slice.len()),
        }
    }
}
