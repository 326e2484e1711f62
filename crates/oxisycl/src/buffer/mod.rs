//! Buffers: data that moves by itself to where it is used (SYCL 2020 section 4.7.2, and the AdaptiveCpp runtime specification).

mod access;
mod advice;
#[cfg(feature = "ndarray")]
pub(crate) mod array;
mod borrowed;
mod bytes;
mod create;
mod destination;
mod memory;
#[cfg(feature = "image")]
mod pixels;
mod placeholder;
mod views;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use oxisycl_device::{DeviceCopyable, ModeFor};
use oxisycl_runtime::schedule::{self, BufferView};
use oxisycl_runtime::state::Region;
use oxisycl_types::{Id, Range};

use crate::{Error, HostAccessor, Read, Result};

pub use access::{BufferAccess, ChunkedAccess};
pub use borrowed::BorrowedBuffer;
pub(crate) use bytes::PIXEL_ALIGNMENT;
pub use create::BufferOptions;
pub use destination::FinalData;
pub use memory::IntoVecError;
#[cfg(feature = "image")]
pub use pixels::FlatPixel;
pub use placeholder::Placeholder;

use destination::Handle;

/// Storage of a fixed size, accessible on any number of devices and on the host.
///
/// - Each memory gets at most one allocation, of the full size, at the buffer's first use there. It stays
///   where it is until the buffer ends, unless [`release`](Buffer::release) is called.
/// - Copies of the handle are the same buffer. Commands keep the memory alive, so that a buffer can be dropped while they run.
/// - Dropping the last handle blocks only if the buffer has a destination for its data; see [`FinalData`].
pub struct Buffer<T, const D: usize> {
    handle: Arc<Handle>,
    view: BufferView,
    range: Range<D>,
    elements: PhantomData<fn() -> T>,
}

impl<T, const D: usize> Clone for Buffer<T, D> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), view: self.view.clone(), range: self.range, elements: PhantomData }
    }
}

impl<T, const D: usize> fmt::Debug for Buffer<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("id", &self.view.core.id)
            .field("name", &self.view.core.name())
            .field("created", &format_args!("{}", self.view.core.created))
            .field("element", &std::any::type_name::<T>())
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

impl<T, const D: usize> PartialEq for Buffer<T, D> {
    /// Whether both are the same view of the same buffer.
    fn eq(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}
impl<T, const D: usize> Eq for Buffer<T, D> {}
impl<T, const D: usize> Hash for Buffer<T, D> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

impl<T, const D: usize> Buffer<T, D> {
    /// What makes two handles the same view of the same buffer.
    fn identity(&self) -> (u64, bool, usize, Range<D>) {
        (self.view.core.id.number(), self.view.sub_buffer.is_some(), self.view.byte_offset, self.range)
    }
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    pub(crate) fn buffer_view(&self) -> &BufferView {
        &self.view
    }

    /// A number of the buffer, as messages use it. The same for its sub-buffers and reinterpretations.
    pub fn id(&self) -> u64 {
        self.view.core.id.number()
    }

    /// The name that [`named`](Self::named) or [`BufferOptions::name`] gave it.
    pub fn name(&self) -> Option<&'static str> {
        self.view.core.name()
    }

    /// Gives the buffer a name for messages, beside its number, its elements and the place where it was made, which they always tell. Its
    /// copies, sub-buffers and reinterpretations are the same buffer, and have the same name.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let weights = Buffer::from_vec(vec![1.0f32; 8])?.named("weights");
    /// let event = Queue::default()?.submit(|cg| {
    ///     let weights = cg.access(&weights, ReadWrite);
    ///     cg.parallel_for(9, move |item| weights.update(item, |x| 2.0 * x))
    /// })?;
    /// let error = event.wait().unwrap_err().to_string();
    /// assert!(error.contains("\"weights\" of f32 with range [8]"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        self.view.core.set_name(name);
        self
    }

    /// Extent in elements.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0u16; 12], [3, 4])?;
    /// assert_eq!(table.range(), Range([3, 4]));
    /// assert_eq!((table.size(), table.byte_size()), (12, 24));
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self) -> Range<D> {
        self.range
    }

    /// Number of elements.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let buffer = Buffer::from_vec_nd(vec![0u32; 6], [2, 3])?;
    /// assert_eq!((buffer.size(), buffer.byte_size(), buffer.is_empty()), (6, 24, false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn size(&self) -> usize {
        self.range.size()
    }

    /// Size in bytes.
    pub fn byte_size(&self) -> usize {
        self.view.byte_size()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// The data on the host. Blocks until the commands submitted before that conflict with the access have ended.
    ///
    /// Errors: what the command that wrote the data failed with. `Invalid` if this thread holds a host accessor that
    /// the new one would wait for, or inside a kernel.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![1, 2, 3, 4], [2, 2])?;
    /// Queue::default()?.fill(&table, 7)?;
    /// let mut host = table.host_access(ReadWrite)?; // waits for the command
    /// assert!(host.iter().all(|&x| x == 7));
    /// host[[1, 0]] = 8;
    /// drop(host); // lets later commands use the buffer
    /// assert_eq!(table.to_vec()?, [7, 7, 8, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn host_access<M: ModeFor<T>>(&self, mode: M) -> Result<HostAccessor<T, D, M>> {
        self.host_access_range(mode, Id::default(), self.range)
    }

    /// A part of the data on the host; indices are relative to `offset`. Blocks until the commands submitted before that conflict with the
    /// access have ended.
    ///
    /// Errors: as those of [`host_access`](Self::host_access), and `Invalid` if the part is not inside the buffer.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0, 1, 2, 3, 4, 5])?;
    /// numbers.host_access_range(ReadWrite, 2, 3)?.as_mut_slice().fill(7);
    /// assert_eq!(numbers.to_vec()?, [0, 1, 7, 7, 7, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn host_access_range<M: ModeFor<T>>(
        &self,
        _mode: M,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> Result<HostAccessor<T, D, M>> {
        let (range, offset) = (range.into(), offset.into());
        self.check_inside(range, offset)?;
        let region = region_of(range, offset);
        let access = schedule::HostAccess::new(&self.view, &region, M::MODE, M::NO_INIT)?;
        Ok(HostAccessor::new(access, self.range, offset, range))
    }

    /// An error unless the part that an accessor names lies inside the buffer. The runtime checks it again, but knows
    /// all buffers as three-dimensional.
    pub(crate) fn check_inside(&self, range: Range<D>, offset: Id<D>) -> Result {
        let fits = |d: usize| offset.0[d].checked_add(range.0[d]).is_some_and(|end| end <= self.range.0[d]);
        if (0..D).all(fits) {
            return Ok(());
        }
        let (core, all) = (&self.view.core, self.range);
        let message = format!("accessor range {range:?} at offset {offset:?} is outside {core} with range {all:?}");
        Err(Error::invalid(message))
    }

    /// A copy of all elements, in row-major order. Blocks like [`host_access`](Self::host_access).
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 3])?;
    /// Queue::default()?.fill(&numbers, 7)?;
    /// assert_eq!(numbers.to_vec()?, [7, 7, 7]); // waits for the command
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let host = self.host_access(Read)?;
        Ok(host.iter().copied().collect())
    }
}

/// The box of elements that an accessor names, embedded in three dimensions. An end beyond `usize` stays outside every buffer.
pub(crate) fn region_of<const D: usize>(range: Range<D>, offset: Id<D>) -> Region {
    let (begin, extent) = (offset.embed(), range.embed());
    let mut end = [0; 3];
    for d in 0..3 {
        end[d] = begin[d].saturating_add(extent[d]);
    }
    Region::new(begin, end)
}

const _: () = {
    const fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Buffer<f32, 1>>();
};
