//! Making buffers: owned, copied-in, uninitialised, over foreign memory.

use std::any::type_name;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_backend::MemoryId;
use oxisycl_device::{AnyBits, DeviceCopyable};
use oxisycl_runtime::memory::{BufferCore, Elements};
use oxisycl_runtime::schedule::BufferView;
use oxisycl_types::Range;

use super::destination::Handle;
use super::memory::VecOwner;
use super::{BorrowedBuffer, Buffer};
use crate::usm::UsmSlice;
use crate::wiring::runtime;
use crate::{Error, Result};

/// How buffers are made. `BufferOptions::new()` makes them like the functions of [`Buffer`].
#[derive(Clone, Copy, Debug)]
pub struct BufferOptions<const D: usize> {
    page: Option<Range<D>>,
    name: Option<&'static str>,
}

impl<const D: usize> Default for BufferOptions<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Extent in bytes innermost, or the error of a buffer that no memory can hold.
fn byte_extent<T, const D: usize>(range: Range<D>) -> Result<[usize; 3]> {
    let mut extent = range.embed();
    let row = extent[2].checked_mul(size_of::<T>());
    match (row, range.checked_size()) {
        (Some(row), Some(_)) => {
            extent[2] = row;
            Ok(extent)
        }
        _ => Err(Error::invalid(format!(
            "a buffer of range {range:?} is larger than memory can be: the product overflows"
        ))),
    }
}

impl<const D: usize> BufferOptions<D> {
    /// The default: one page, the whole buffer.
    pub const fn new() -> Self {
        Self { page: None, name: None }
    }

    /// The page size in elements per dimension: the granularity of data state and dependencies. The last page of a
    /// dimension may be partial. Smaller pages let more commands run at once and move less data, for more bookkeeping.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let numbers = BufferOptions::new().page_size(500).from_vec(vec![0; 1000])?;
    /// // These two may run at the same time, also on different devices.
    /// for begin in [0, 500] {
    ///     queue.submit(|cg| {
    ///         let half = cg.access_range(&numbers, Write, begin, 500);
    ///         cg.parallel_for(500, move |item| half.set(item, begin))
    ///     })?;
    /// }
    /// assert_eq!(numbers.host_access(Read)?[999], 500);
    /// # Ok(())
    /// # }
    /// ```
    pub fn page_size(mut self, page: impl Into<Range<D>>) -> Self {
        self.page = Some(page.into());
        self
    }

    /// A name for messages, beside the place where the buffer is made, which they always have.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let weights = BufferOptions::new().name("weights").from_vec(vec![1.0f32; 8])?;
    /// assert_eq!(weights.name(), Some("weights"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    #[track_caller]
    fn make<T: DeviceCopyable>(self, range: Range<D>, align: usize) -> Result<Buffer<T, D>> {
        const { assert!(size_of::<T>() > 0, "a buffer's elements must not be zero-sized") };
        runtime()?;
        let extent = byte_extent::<T, D>(range)?;
        let page = match self.page {
            Some(page) => {
                if page.0.contains(&0) {
                    return Err(Error::invalid(format!("page size {page:?} of a buffer has a zero")));
                }
                let mut page = page.embed();
                page[2] = page[2].saturating_mul(size_of::<T>());
                Some(page)
            }
            None => None,
        };
        let elements = Elements { name: type_name::<T>(), size: size_of::<T>(), dimensions: D as u8 };
        // SAFETY: this crate's buffers check what is inside before they make views, and change the state by its own methods only.
        let core = unsafe { BufferCore::with_elements(elements, extent, page, align) }?;
        if let Some(name) = self.name {
            core.set_name(name);
        }
        let view = BufferView::whole(core.clone(), range.embed(), size_of::<T>());
        Ok(Buffer { handle: Arc::new(Handle::new(core)), view, range, elements: PhantomData })
    }

    /// A buffer that takes over the vector's memory. Errors: `Invalid` if the number of elements is not that of the range.
    #[track_caller]
    pub fn from_vec_nd<T: DeviceCopyable>(self, data: Vec<T>, range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        let range = range.into();
        if range.checked_size() != Some(data.len()) {
            return Err(Error::invalid(format!(
                "a buffer of range {range:?} cannot be made from {} elements",
                data.len()
            )));
        }
        // SAFETY: the elements are the vector's, and as many as the range has.
        unsafe { self.over_parts(data, range) }
    }

    /// A buffer whose memory on the host is that of a vector of parts of elements.
    ///
    /// # Safety
    /// The vector holds exactly the elements of the range, in row-major order, each of them as one or several `P`, to which `T` is aligned.
    #[track_caller]
    pub(super) unsafe fn over_parts<T: DeviceCopyable, P: DeviceCopyable>(
        self,
        data: Vec<P>,
        range: Range<D>,
    ) -> Result<Buffer<T, D>> {
        // Accessors of reinterpretations rely on the alignment of every allocation, so the vector's own is what counts.
        let address = data.as_ptr() as usize;
        let align = if data.is_empty() { align_of::<T>() } else { 1 << address.trailing_zeros().min(6) };
        let buffer = self.make::<T>(range, align.max(align_of::<T>()))?;
        if !data.is_empty() {
            let mut owner = Box::new(VecOwner(data));
            let pointer = owner.pointer();
            let core = &buffer.view.core;
            let host = runtime()?.host();
            // SAFETY: the vector owns the memory, has exactly the buffer's size, and is not touched while `owner` lives.
            unsafe { core.lock().adopt(core, host, MemoryId::HOST, pointer, owner, true) }?;
        }
        Ok(buffer)
    }

    /// A buffer with a copy of the elements.
    #[track_caller]
    pub fn from_slice_nd<T: DeviceCopyable>(self, data: &[T], range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        self.from_vec_nd(data.to_vec(), range)
    }

    /// A buffer with a copy of shared elements, which are never written back.
    #[track_caller]
    pub fn from_shared_nd<T: DeviceCopyable>(self, data: Arc<[T]>, range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        self.from_vec_nd(data.to_vec(), range)
    }

    /// A buffer whose elements are uninitialised. They may be read, so every bit pattern must be a value; what is read is
    /// unspecified.
    #[track_caller]
    pub fn uninit<T: DeviceCopyable + AnyBits>(self, range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        self.make(range.into(), align_of::<T>().max(64))
    }

    /// A buffer whose elements are uninitialised, of a type some of whose bit patterns may be no values.
    ///
    /// # Safety
    /// Every element is written before it is read.
    #[track_caller]
    pub unsafe fn uninit_unchecked<T: DeviceCopyable>(self, range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        self.make(range.into(), align_of::<T>().max(64))
    }

    /// A buffer with a copy of the elements, which are written back when the result is dropped.
    #[track_caller]
    pub fn from_slice_mut_nd<T: DeviceCopyable>(
        self,
        data: &mut [T],
        range: impl Into<Range<D>>,
    ) -> Result<BorrowedBuffer<'_, T, D>> {
        let buffer = self.from_slice_nd(data, range)?;
        Ok(BorrowedBuffer::new(buffer, data))
    }

    /// A buffer that takes over a USM allocation as its allocation in that memory. The allocation holds the data.
    ///
    /// Errors: `Invalid` if the number of elements is not that of the range. `Invalid`, too, if a copy to or from the
    /// allocation waits for a host accessor of this thread.
    #[track_caller]
    pub fn from_usm_nd<T: DeviceCopyable>(self, data: UsmSlice<T>, range: impl Into<Range<D>>) -> Result<Buffer<T, D>> {
        let range = range.into();
        if range.checked_size() != Some(data.len()) {
            return Err(Error::invalid(format!(
                "a buffer of range {range:?} cannot be made from {} elements",
                data.len()
            )));
        }
        data.wait_for_unfinished()?;
        let buffer = self.make::<T>(range, align_of::<T>())?;
        if let (Some(pointer), false) = (NonNull::new(data.as_ptr().cast::<u8>()), data.is_empty()) {
            let device = data.allocation().device().clone();
            let memory = device.info().memory.id;
            let core = &buffer.view.core;
            // SAFETY: `data` owns the memory and has exactly the buffer's size; giving it away ends all other safe use.
            unsafe { core.lock().adopt(core, &device, memory, pointer, Box::new(data), true) }?;
        }
        Ok(buffer)
    }

    /// A buffer over memory on `device` that the caller owns. With `is_initialized`, it holds the data.
    ///
    /// # Safety
    /// `pointer` is aligned and valid for the range's elements in a USM allocation of `device`. On NVIDIA GPUs that may be memory which other code
    /// has allocated in the [device's context](crate::Device::native_context). It stays so until the buffer and all
    /// commands that use it have ended. Nothing uses the memory meanwhile without being ordered with the commands. Its elements are valid
    /// values of `T` if `is_initialized`; else they are written before they are read.
    #[track_caller]
    pub unsafe fn from_usm_pointer<T: DeviceCopyable>(
        self,
        pointer: *mut T,
        range: impl Into<Range<D>>,
        device: &crate::Device,
        is_initialized: bool,
    ) -> Result<Buffer<T, D>> {
        let buffer = self.make::<T>(range.into(), align_of::<T>())?;
        if let (Some(pointer), false) = (NonNull::new(pointer.cast::<u8>()), buffer.is_empty()) {
            let core = &buffer.view.core;
            let owner = Box::new(());
            let device = device.backend_device();
            // SAFETY: the caller's contract.
            unsafe { core.lock().adopt(core, device, device.info().memory.id, pointer, owner, is_initialized) }?;
        }
        Ok(buffer)
    }
}

impl BufferOptions<1> {
    /// A one-dimensional buffer that takes over the vector's memory.
    #[track_caller]
    pub fn from_vec<T: DeviceCopyable>(self, data: Vec<T>) -> Result<Buffer<T, 1>> {
        let n_elements = data.len();
        self.from_vec_nd(data, n_elements)
    }

    /// A one-dimensional buffer with a copy of the elements.
    #[track_caller]
    pub fn from_slice<T: DeviceCopyable>(self, data: &[T]) -> Result<Buffer<T, 1>> {
        self.from_slice_nd(data, data.len())
    }

    /// A one-dimensional buffer with a copy of shared elements, which are never written back.
    #[track_caller]
    pub fn from_shared<T: DeviceCopyable>(self, data: Arc<[T]>) -> Result<Buffer<T, 1>> {
        let n_elements = data.len();
        self.from_shared_nd(data, n_elements)
    }

    /// A one-dimensional buffer with a copy of the elements, which are written back when the result is dropped.
    #[track_caller]
    pub fn from_slice_mut<T: DeviceCopyable>(self, data: &mut [T]) -> Result<BorrowedBuffer<'_, T, 1>> {
        let n_elements = data.len();
        self.from_slice_mut_nd(data, n_elements)
    }

    /// A one-dimensional buffer that takes over a USM allocation, as [`from_usm_nd`](Self::from_usm_nd) does.
    #[track_caller]
    pub fn from_usm<T: DeviceCopyable>(self, data: UsmSlice<T>) -> Result<Buffer<T, 1>> {
        let n_elements = data.len();
        self.from_usm_nd(data, n_elements)
    }
}

impl<T: DeviceCopyable, const D: usize> Buffer<T, D> {
    /// A buffer of `range` that takes over the vector's memory, the innermost dimension last; [`into_vec`](Self::into_vec) gives it back.
    ///
    /// Errors: `Invalid` if the number of elements is not that of the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let matrix = Buffer::from_vec_nd(vec![1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(matrix.host_access(Read)?[[1, 0]], 4);
    /// assert_eq!(Buffer::from_vec_nd(vec![1, 2, 3], [2, 3]).unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_vec_nd(data: Vec<T>, range: impl Into<Range<D>>) -> Result<Self> {
        BufferOptions::new().from_vec_nd(data, range)
    }

    /// A buffer with a copy of the elements. Errors: `Invalid` if their number is not that of the range.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_slice_nd(&[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(table.host_access(Read)?[[1, 0]], 4);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice_nd(data: &[T], range: impl Into<Range<D>>) -> Result<Self> {
        BufferOptions::new().from_slice_nd(data, range)
    }

    /// A buffer with a copy of shared elements, which are never written back.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let shared = Arc::<[i32]>::from([1, 2, 3, 4, 5, 6]);
    /// let table = Buffer::from_shared_nd(shared.clone(), [2, 3])?;
    /// assert_eq!(table.host_access(Read)?[[1, 0]], shared[3]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_shared_nd(data: Arc<[T]>, range: impl Into<Range<D>>) -> Result<Self> {
        BufferOptions::new().from_shared_nd(data, range)
    }

    /// A buffer with a copy of the elements, which are written back when the result is dropped.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut table = [1, 2, 3, 4];
    /// let buffer = Buffer::from_slice_mut_nd(&mut table, [2, 2])?;
    /// buffer.host_access(ReadWrite)?[[1, 0]] = 7;
    /// drop(buffer);
    /// assert_eq!(table, [1, 2, 7, 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice_mut_nd(data: &mut [T], range: impl Into<Range<D>>) -> Result<BorrowedBuffer<'_, T, D>> {
        BufferOptions::new().from_slice_mut_nd(data, range)
    }

    /// A buffer whose elements are uninitialised. They may be read, so every bit pattern must be a value; what is read is
    /// unspecified.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let squares = Buffer::<u64, 1>::uninit(100)?;
    /// Queue::default()?.submit(|cg| {
    ///     let squares = cg.access(&squares, Write.no_init());
    ///     cg.parallel_for(100, move |item| squares.set(item, (item.index() * item.index()) as u64))
    /// })?;
    /// assert_eq!(squares.to_vec()?[9], 81);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn uninit(range: impl Into<Range<D>>) -> Result<Self>
    where
        T: AnyBits,
    {
        BufferOptions::new().uninit(range)
    }
}

impl<T: DeviceCopyable> Buffer<T, 1> {
    /// A one-dimensional buffer that takes over the vector's memory; [`into_vec`](Self::into_vec) gives it back.
    ///
    /// Errors: as those of [`Platform::all`](crate::Platform::all), if the settings are wrong.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let numbers = Buffer::from_vec(vec![1.0f32, 2.0, 3.0])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for(3, move |item| numbers.update(item, |x| 2.0 * x))
    /// })?;
    /// assert_eq!(numbers.into_vec()?, [2.0, 4.0, 6.0]); // waits for the kernel
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_vec(data: Vec<T>) -> Result<Self> {
        BufferOptions::new().from_vec(data)
    }

    /// A one-dimensional buffer with a copy of the elements.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let array = [1, 2, 3];
    /// assert_eq!(Buffer::from_slice(&array)?.to_vec()?, array);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice(data: &[T]) -> Result<Self> {
        BufferOptions::new().from_slice(data)
    }

    /// A one-dimensional buffer with a copy of shared elements, which are never written back.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let shared = Arc::<[i32]>::from([1, 2, 3]);
    /// assert_eq!(Buffer::from_shared(shared.clone())?.to_vec()?, *shared);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_shared(data: Arc<[T]>) -> Result<Self> {
        BufferOptions::new().from_shared(data)
    }

    /// A one-dimensional buffer with a copy of the elements, which are written back when the result is dropped.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let mut numbers = [1, 2, 3];
    /// let buffer = Buffer::from_slice_mut(&mut numbers)?;
    /// Queue::default()?.fill(&buffer, 7)?;
    /// buffer.finish()?; // waits for the command
    /// assert_eq!(numbers, [7, 7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice_mut(data: &mut [T]) -> Result<BorrowedBuffer<'_, T, 1>> {
        BufferOptions::new().from_slice_mut(data)
    }

    /// A one-dimensional buffer of all elements of an iterator, which is read at once.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let squares = Buffer::from_elements((0..5).map(|i| i * i))?;
    /// assert_eq!(squares.to_vec()?, [0, 1, 4, 9, 16]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_elements(elements: impl IntoIterator<Item = T>) -> Result<Self> {
        let data: Vec<T> = elements.into_iter().collect();
        Self::from_vec(data)
    }
}
