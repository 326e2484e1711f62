//! Other views of a buffer: sub-buffers and reinterpretations.

use std::marker::PhantomData;

use bytemuck::Pod;
use oxisycl_device::DeviceCopyable;
use oxisycl_types::{Id, Range};

use super::{Buffer, region_of};
use crate::{Error, Result};

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// Whether this is a sub-buffer, or a reinterpretation of one.
    pub fn is_sub_buffer(&self) -> bool {
        self.view.sub_buffer.is_some()
    }

    /// A contiguous part of the buffer. Commands on sub-buffers that do not overlap may run at the same time.
    ///
    /// Errors: `Invalid` if this is a sub-buffer itself, if the part is not inside, or if it is not contiguous in memory. An
    /// accessor to it is `Invalid` on a device whose `mem_base_addr_align` the part's begin does not keep.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0u64; 4 * 64], [4, 64])?;
    /// let rows = table.sub_buffer([1, 0], [2, 64])?; // begins at byte 512
    /// Queue::default()?.fill(&rows, 7)?;
    /// let host = table.host_access(Read)?;
    /// assert_eq!([host[[0, 63]], host[[1, 0]], host[[2, 63]], host[[3, 0]]], [0, 7, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sub_buffer(&self, offset: impl Into<Id<D>>, range: impl Into<Range<D>>) -> Result<Self> {
        let (offset, range) = (offset.into(), range.into());
        let refuse = |why: &str| {
            let all = self.range;
            let core = &self.view.core;
            Err(Error::invalid(format!("sub-buffer {range:?} at {offset:?} of {core} with range {all:?}: {why}")))
        };
        if self.is_sub_buffer() {
            return refuse("it is a sub-buffer itself");
        }
        let region = region_of(range, offset);
        let extent = self.range.embed();
        if (0..3).any(|d| region.end[d] > extent[d]) {
            return refuse("it is not inside");
        }
        if !region.is_empty() && region.contiguous_interval(extent).is_none() {
            return refuse("it is not contiguous");
        }
        let mut view = self.view.clone();
        if !region.is_empty() {
            view.byte_offset += self.range.linear(&offset) * size_of::<T>();
        }
        view.extent = range.embed();
        view.sub_buffer = Some(self.view.bytes_of(&region).0);
        Ok(Self { handle: self.handle.clone(), view, range, elements: PhantomData })
    }

    /// Views the same bytes as elements of another type, in another shape. Both types must be valid for every bit pattern and have no
    /// padding. It is the same buffer: accessors conflict by bytes.
    ///
    /// Errors: `Invalid` if the number of bytes differs, or if the buffer's allocations are not aligned for `U`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0u32, 1, 2, 3], [2, 2])?;
    /// let bytes = table.reinterpret::<u8, 1>(16)?;
    /// Queue::default()?.fill(&bytes, 1)?;
    /// assert_eq!(table.to_vec()?, [0x0101_0101; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn reinterpret<U: DeviceCopyable + Pod, const E: usize>(
        &self,
        range: impl Into<Range<E>>,
    ) -> Result<Buffer<U, E>>
    where
        T: Pod,
    {
        const { assert!(size_of::<U>() > 0, "a buffer's elements must not be zero-sized") };
        let range = range.into();
        let bytes = range.checked_size().and_then(|size| size.checked_mul(size_of::<U>()));
        if bytes != Some(self.byte_size()) {
            return Err(Error::invalid(format!(
                "{} of {} bytes cannot be reinterpreted as range {range:?} of {}-byte elements",
                self.view.core,
                self.byte_size(),
                size_of::<U>()
            )));
        }
        let align = self.view.core.layout.align();
        if align < align_of::<U>() || !self.view.byte_offset.is_multiple_of(align_of::<U>()) {
            return Err(Error::invalid(format!(
                "{} cannot be reinterpreted as {}: it is aligned to {align} bytes at offset {}, {} are needed",
                self.view.core,
                std::any::type_name::<U>(),
                self.view.byte_offset,
                align_of::<U>()
            )));
        }
        let mut view = self.view.clone();
        view.extent = range.embed();
        view.element_size = size_of::<U>();
        Ok(Buffer { handle: self.handle.clone(), view, range, elements: PhantomData })
    }
}
