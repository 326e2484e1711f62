//! Buffers that hold the pixels of images, as bytes.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use bytemuck::Pod;
use oxisycl_backend::MemoryId;
use oxisycl_device::DeviceCopyable;
use oxisycl_runtime::memory::{BufferCore, Elements};
use oxisycl_runtime::schedule::BufferView;
use oxisycl_types::{ErrorCode, Range};

use super::Buffer;
use super::destination::{FinalData, Handle};
use super::memory::VecOwner;
use crate::wiring::runtime;
use crate::{Error, Read, Result};

/// The alignment of pixels in each memory: that of all formats. Allocations have more.
pub(crate) const PIXEL_ALIGNMENT: usize = 16;

/// A vector of zeroes, or an error if there is no memory for it.
fn zeroed<P: Pod>(n: usize) -> Result<Vec<P>> {
    bytemuck::allocation::try_zeroed_vec(n).map_err(|()| {
        let n_bytes = n.saturating_mul(size_of::<P>());
        Error::new(ErrorCode::MemoryAllocation, format!("no memory on the host for {n_bytes} bytes of pixels"))
    })
}

impl<const D: usize> Buffer<u8, D> {
    /// The error for pixels with gaps, which a whole image never has.
    fn not_contiguous() -> Error {
        Error::new(ErrorCode::Runtime, "the pixels of an image are not contiguous on the host")
    }

    /// A buffer of pixels of that many bytes, in the order of the range. They are uninitialised, as any bytes are pixels.
    #[track_caller]
    pub(crate) fn of_pixels(range: Range<D>, pixel_size: usize) -> Result<Self> {
        Self::make_pixels(range, pixel_size, 64)
    }

    #[track_caller]
    fn make_pixels(range: Range<D>, pixel_size: usize, align: usize) -> Result<Self> {
        runtime()?;
        let row = range.0[D - 1].checked_mul(pixel_size);
        let (Some(row), Some(_)) = (row, range.checked_size()) else {
            return Err(Error::invalid(format!("an image of range {range:?} is larger than memory can be")));
        };
        let mut bytes = range;
        bytes.0[D - 1] = row;
        let elements = Elements { name: "pixels", size: pixel_size, dimensions: D as u8 };
        // SAFETY: this crate's buffers check what is inside before they make views, and change the state by its own methods only.
        let core = unsafe { BufferCore::with_elements(elements, bytes.embed(), None, align) }?;
        let view = BufferView::whole(core.clone(), bytes.embed(), 1);
        Ok(Self { handle: Arc::new(Handle::new(core)), view, range: bytes, elements: PhantomData })
    }

    /// A buffer that takes over a vector of as many bytes as the pixels have. If the vector's memory is not aligned for pixels, it is copied.
    #[track_caller]
    pub(crate) fn over_pixels<P: DeviceCopyable + Pod>(
        data: Vec<P>,
        range: Range<D>,
        pixel_size: usize,
    ) -> Result<Self> {
        let address = data.as_ptr().addr();
        if !address.is_multiple_of(PIXEL_ALIGNMENT) {
            return Self::copy_of_pixels(range, pixel_size, |bytes| bytes.copy_from_slice(bytemuck::cast_slice(&data)));
        }
        let buffer = Self::make_pixels(range, pixel_size, 1 << address.trailing_zeros().min(6))?;
        assert_eq!(size_of_val(&data[..]), buffer.byte_size(), "the pixels are those of the range");
        buffer.adopt(VecOwner(data))?;
        Ok(buffer)
    }

    /// A buffer with pixels that `write` puts into zeroed memory of the host.
    #[track_caller]
    pub(crate) fn copy_of_pixels(range: Range<D>, pixel_size: usize, write: impl FnOnce(&mut [u8])) -> Result<Self> {
        const { assert!(align_of::<u128>() >= PIXEL_ALIGNMENT) };
        let buffer = Self::make_pixels(range, pixel_size, PIXEL_ALIGNMENT)?;
        let n_bytes = buffer.byte_size();
        let mut words = zeroed::<u128>(n_bytes.div_ceil(size_of::<u128>()))?;
        write(&mut bytemuck::cast_slice_mut(&mut words)[..n_bytes]);
        buffer.adopt(VecOwner(words))?;
        Ok(buffer)
    }

    /// Makes the vector's memory the buffer's on the host. It has at least the buffer's bytes, and its alignment.
    fn adopt<P: DeviceCopyable>(&self, data: VecOwner<P>) -> Result {
        assert!(size_of_val(&data.0[..]) >= self.byte_size(), "the vector is too short");
        let mut owner = Box::new(data);
        let pointer: NonNull<u8> = owner.pointer();
        assert!(pointer.addr().get().is_multiple_of(self.view.core.layout.align()), "the vector is not aligned");
        let (core, host) = (&self.view.core, runtime()?.host());
        // SAFETY: the vector owns the memory, has the buffer's bytes and alignment, and is not touched while `owner` lives.
        unsafe { core.lock().adopt(core, host, MemoryId::HOST, pointer, owner, true) }.map(|_| ())
    }

    /// A copy of all bytes as a vector. Blocks like `host_access`.
    pub(crate) fn to_pixels<P: DeviceCopyable + Pod>(&self) -> Result<Vec<P>> {
        self.check_pixels::<P>()?;
        let host = self.host_access(Read)?;
        let mut data = zeroed::<P>(self.byte_size() / size_of::<P>())?;
        let bytes = host.to_slice().ok_or_else(Self::not_contiguous)?;
        bytemuck::cast_slice_mut(&mut data).copy_from_slice(bytes);
        Ok(data)
    }

    /// All bytes as a vector, the one that the buffer was made from if it is of `P`. After an error the buffer is as it was.
    pub(crate) fn take_pixels<P: DeviceCopyable + Pod>(&self) -> Result<Vec<P>> {
        self.check_pixels::<P>()?;
        if let Some(own) = self.take_owner::<P>("into_vec")? {
            return Ok(own);
        }
        let data = self.to_pixels()?;
        self.handle.cancel();
        Ok(data)
    }

    /// Says where all bytes go when the last handle is dropped. After an error nothing has changed.
    pub(crate) fn set_final_pixels<P: DeviceCopyable + Pod>(&self, destination: FinalData<P>) -> Result {
        self.check_pixels::<P>()?;
        self.deliver_at_end(destination, Self::to_pixels);
        Ok(())
    }

    fn check_pixels<P>(&self) -> Result {
        const { assert!(size_of::<P>() > 0, "a pixel does not consist of zero-sized parts") };
        if self.byte_size().is_multiple_of(size_of::<P>()) {
            return Ok(());
        }
        let (core, name) = (&self.view.core, std::any::type_name::<P>());
        let n_bytes = self.byte_size();
        Err(Error::invalid(format!("{core} has {n_bytes} bytes, which are no whole number of {name}")))
    }
}
