//! Copies and fills of images as commands.
//!
//! Invariant: each is a copy or fill of the buffer under the image, by the code of buffers. What is checked here is what an image adds: its
//! extent, its format and the kind of its pixels.

use bytemuck::Pod;
use oxisycl_device::DeviceCopyable;
use oxisycl_device::images::{PixelData, PixelFormat, Pixels};
use oxisycl_types::ErrorCode;

use super::UnsampledImage;
use super::access::check_data;
use crate::{Buffer, Error, Event, Handler, HostCopy, HostMemory, HostSlot, Queue, Read, Result, Write};

/// A pixel in memory, at an address that suits all formats.
type AnyPixel = u128;

/// The bytes of a pixel of that format, and zeroes behind them.
fn encoded<V: PixelData, F: PixelFormat>(format: F, pixel: V) -> AnyPixel {
    const { assert!(align_of::<AnyPixel>() >= crate::buffer::PIXEL_ALIGNMENT) };
    let mut memory: AnyPixel = 0;
    let one = Pixels::<1, F>::new((&raw mut memory).cast(), [1], format);
    // SAFETY: no pixel is larger or needs more alignment than `memory`, which nothing else uses.
    unsafe { one.store([0], pixel) };
    memory
}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    /// What messages of copies call the image.
    pub(super) fn label(&self) -> String {
        let name = self.name().map_or_else(String::new, |name| format!(" \"{name}\""));
        format!("image {}{name} of range {:?} and format {}", self.id(), self.range, self.format())
    }

    /// The bytes of all pixels as elements of another type, whose size divides their number.
    fn elements<P: DeviceCopyable + Pod>(&self) -> Result<Buffer<P, 1>> {
        self.bytes.reinterpret(self.byte_size() / size_of::<P>())
    }

    /// An error unless `other` has exactly the bytes of the pixels.
    fn check_size(&self, other: impl FnOnce() -> String, n_bytes: usize) -> Result {
        let own = self.byte_size();
        if own == n_bytes {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{} has {own} bytes, and {} has {n_bytes}: a copy needs as many",
            self.label(),
            other()
        )))
    }

    fn check_host_memory<P>(&self, n: usize) -> Result {
        let name = std::any::type_name::<P>();
        self.check_size(|| format!("the memory of the host with {n} of {name}"), n.saturating_mul(size_of::<P>()))
    }

    fn check_buffer<P: DeviceCopyable, const E: usize>(&self, buffer: &Buffer<P, E>) -> Result {
        self.check_size(|| format!("{} with range {:?}", buffer.buffer_view().core, buffer.range()), buffer.byte_size())
    }

    /// An error unless pixels of `other` can take the place of those of this image.
    fn check_image<G: PixelFormat>(&self, other: &UnsampledImage<D, G>) -> Result {
        let what = if self.range != other.range {
            "extents"
        } else if self.format() != other.format() {
            "formats"
        } else {
            return Ok(());
        };
        Err(Error::invalid(format!("a copy of {} to {}: the {what} differ", self.label(), other.label())))
    }
}

impl Handler<'_> {
    /// Keeps an error if an image cannot be on the device.
    fn check_fits<const D: usize, F: PixelFormat>(&mut self, image: &UnsampledImage<D, F>) -> Result {
        let checked = image.check_fits(self.queue().device());
        self.recorded(checked)
    }

    /// Keeps an error of what is to be a command, as its accessors would.
    fn recorded<T>(&mut self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.record(error.clone()))
    }

    /// Copies the pixels of one image to another one. In SYCL 2020 copies of images are no commands (section 4.9.4.3); here they are as those of
    /// buffers.
    ///
    /// Errors: `Invalid` if the images differ in range or format, or for a second command in the group. `Accessor` if both are the same image.
    /// `MemoryAllocation` if they are larger than the device's largest allocation.
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(R8Unorm, vec![1u8, 2, 3, 4, 5, 6], [2, 3])?;
    /// let (copy, wide) = (UnsampledImage::uninit(R8Unorm, [2, 3])?, UnsampledImage::uninit(R8Unorm, [2, 4])?);
    /// let queue = Queue::default()?;
    /// queue.submit(|cg| cg.copy_image(&picture, &copy))?;
    /// assert_eq!(copy.to_vec::<u8>()?, [1, 2, 3, 4, 5, 6]);
    /// let refused = queue.submit(|cg| cg.copy_image(&picture, &wide));
    /// assert_eq!(refused.unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image<const D: usize, F: PixelFormat, G: PixelFormat>(
        &mut self,
        source: &UnsampledImage<D, F>,
        target: &UnsampledImage<D, G>,
    ) -> Result {
        self.recorded(source.check_image(target))?;
        self.check_fits(source)?;
        self.check_fits(target)?;
        let (source, target) = (self.access(&source.bytes, Read), self.access(&target.bytes, Write));
        self.copy(source, target)
    }

    /// Copies the elements of a buffer, in row-major order, to the bytes of an image. One element may be a channel, a pixel or more.
    ///
    /// Errors: `Invalid` if buffer and image have different numbers of bytes, or for a second command in the group. `MemoryAllocation` if the image
    /// is larger than the device's largest allocation.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let channels = Buffer::from_vec((0..24).collect::<Vec<u8>>())?;
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [2, 3])?;
    /// Queue::default()?.submit(|cg| cg.copy_image_from_buffer(&channels, &picture))?;
    /// assert_eq!(picture.to_vec::<[u8; 4]>()?[5], [20, 21, 22, 23]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_from_buffer<P: DeviceCopyable + Pod, const D: usize, const E: usize, F: PixelFormat>(
        &mut self,
        source: &Buffer<P, E>,
        target: &UnsampledImage<D, F>,
    ) -> Result {
        self.recorded(target.check_buffer(source))?;
        self.check_fits(target)?;
        let pixels = self.recorded(target.elements::<P>())?;
        let (source, target) = (self.access(source, Read), self.access(&pixels, Write));
        self.copy(source, target)
    }

    /// Copies the bytes of an image to the elements of a buffer, in row-major order. One element may be a channel, a pixel or more.
    ///
    /// Errors: as those of [`copy_image_from_buffer`](Self::copy_image_from_buffer).
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, vec![[1u8, 2, 3, 4]; 6], [2, 3])?;
    /// let pixels = Buffer::from_vec_nd(vec![[0u8; 4]; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| cg.copy_image_to_buffer(&picture, &pixels))?;
    /// assert_eq!(pixels.to_vec()?, [[1, 2, 3, 4]; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_to_buffer<P: DeviceCopyable + Pod, const D: usize, const E: usize, F: PixelFormat>(
        &mut self,
        source: &UnsampledImage<D, F>,
        target: &Buffer<P, E>,
    ) -> Result {
        self.recorded(source.check_buffer(target))?;
        self.check_fits(source)?;
        let pixels = self.recorded(source.elements::<P>())?;
        let (source, target) = (self.access(&pixels, Read), self.access(target, Write));
        self.copy(source, target)
    }

    /// Copies host memory, which the command owns until it completes, to the bytes of an image, as [`copy_from_host`](Self::copy_from_host) does
    /// to a buffer. The slot gives it back. On an error it is dropped.
    ///
    /// Errors: `Invalid` if memory and image have different numbers of bytes, or for a second command in the group. `MemoryAllocation` if the image
    /// is larger than the device's largest allocation.
    pub fn copy_image_from_host<P, const D: usize, F, H>(
        &mut self,
        source: H,
        target: &UnsampledImage<D, F>,
    ) -> Result<HostSlot<H>>
    where
        P: DeviceCopyable + Pod,
        F: PixelFormat,
        H: HostMemory<P>,
    {
        self.recorded(target.check_host_memory::<P>(source.len()))?;
        self.check_fits(target)?;
        let pixels = self.recorded(target.elements::<P>())?;
        let target = self.access(&pixels, Write);
        self.copy_from_host(source, target)
    }

    /// Copies the bytes of an image to a vector, which the command owns until it completes, as [`copy_to_host`](Self::copy_to_host) does from a
    /// buffer. The slot gives it back.
    ///
    /// Errors: as those of [`copy_image_from_host`](Self::copy_image_from_host).
    pub fn copy_image_to_host<P: DeviceCopyable + Pod, const D: usize, F: PixelFormat>(
        &mut self,
        source: &UnsampledImage<D, F>,
        target: Vec<P>,
    ) -> Result<HostSlot<Vec<P>>> {
        self.recorded(source.check_host_memory::<P>(target.len()))?;
        self.check_fits(source)?;
        let pixels = self.recorded(source.elements::<P>())?;
        let source = self.access(&pixels, Read);
        self.copy_to_host(source, target)
    }

    /// Stores one pixel to all of an image. `pixel` becomes what [`write`](crate::HostUnsampledImageAccessor::write) makes of it.
    ///
    /// Errors: `Invalid` if pixels of the format are not written as `V`, or for a second command in the group. `MemoryAllocation` if the image is
    /// larger than the device's largest allocation.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [2, 3])?;
    /// Queue::default()?.submit(|cg| cg.fill_image(&picture, Float4::new(1.0, 0.0, 0.2, 1.0)))?;
    /// assert_eq!(picture.to_vec::<[u8; 4]>()?, [[255, 0, 51, 255]; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_image<V: PixelData, const D: usize, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        pixel: V,
    ) -> Result {
        self.recorded(check_data::<V>(image.format(), image.id()))?;
        let memory = encoded(image.format, pixel);
        match image.format().pixel_size() {
            1 => self.fill_elements::<u8, D, F>(image, memory),
            2 => self.fill_elements::<u16, D, F>(image, memory),
            3 => self.fill_elements::<[u8; 3], D, F>(image, memory),
            4 => self.fill_elements::<u32, D, F>(image, memory),
            6 => self.fill_elements::<[u16; 3], D, F>(image, memory),
            8 => self.fill_elements::<u64, D, F>(image, memory),
            12 => self.fill_elements::<[u32; 3], D, F>(image, memory),
            16 => self.fill_elements::<u128, D, F>(image, memory),
            n => {
                let message = format!("a fill of {}: no element has {n} bytes", image.label());
                self.recorded(Err(Error::new(ErrorCode::Runtime, message)))
            }
        }
    }

    /// Stores the first bytes of `memory` to all pixels, which have the size of `P`.
    fn fill_elements<P: DeviceCopyable + Pod, const D: usize, F: PixelFormat>(
        &mut self,
        image: &UnsampledImage<D, F>,
        memory: AnyPixel,
    ) -> Result {
        self.check_fits(image)?;
        let pixels = self.recorded(image.elements::<P>())?;
        let target = self.access(&pixels, Write);
        self.fill(target, bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&memory)[..size_of::<P>()]))
    }

    /// The host has the newest pixels of `image` when the command completes, as [`update_host`](Self::update_host) says of buffers.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access_image` recorded.
    pub fn update_image_on_host<const D: usize, F: PixelFormat>(&mut self, image: &UnsampledImage<D, F>) -> Result {
        self.update_host(&image.bytes)
    }
}

impl Queue {
    /// Shortcut: copies one image to another, as [`Handler::copy_image`] does, with its errors.
    pub fn copy_image<const D: usize, F: PixelFormat, G: PixelFormat>(
        &self,
        source: &UnsampledImage<D, F>,
        target: &UnsampledImage<D, G>,
    ) -> Result<Event> {
        self.submit(|cg| cg.copy_image(source, target))
    }

    /// Shortcut: copies a buffer to an image, as [`Handler::copy_image_from_buffer`] does, with its errors.
    pub fn copy_image_from_buffer<P: DeviceCopyable + Pod, const D: usize, const E: usize, F: PixelFormat>(
        &self,
        source: &Buffer<P, E>,
        target: &UnsampledImage<D, F>,
    ) -> Result<Event> {
        self.submit(|cg| cg.copy_image_from_buffer(source, target))
    }

    /// Shortcut: copies an image to a buffer, as [`Handler::copy_image_to_buffer`] does, with its errors.
    pub fn copy_image_to_buffer<P: DeviceCopyable + Pod, const D: usize, const E: usize, F: PixelFormat>(
        &self,
        source: &UnsampledImage<D, F>,
        target: &Buffer<P, E>,
    ) -> Result<Event> {
        self.submit(|cg| cg.copy_image_to_buffer(source, target))
    }

    /// Copies host memory to an image. The memory belongs to the command until it completes; the result gives it back.
    ///
    /// Errors: as those of [`Handler::copy_image_from_host`].
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [2, 3])?;
    /// let copy = Queue::default()?.copy_image_from_host(vec![[1u8, 2, 3, 4]; 6], &picture)?;
    /// assert_eq!(copy.wait()?, [[1, 2, 3, 4]; 6]); // or `copy.await?`
    /// assert_eq!(picture.to_vec::<u8>()?[22..], [3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_from_host<P, const D: usize, F, H>(
        &self,
        source: H,
        target: &UnsampledImage<D, F>,
    ) -> Result<HostCopy<H>>
    where
        P: DeviceCopyable + Pod,
        F: PixelFormat,
        H: HostMemory<P>,
    {
        let (event, slot) = self.submit_with(|cg| cg.copy_image_from_host(source, target))?;
        Ok(HostCopy { event, slot })
    }

    /// Copies an image to host memory. The memory belongs to the command until it completes; the result gives it back.
    ///
    /// Errors: as those of [`Handler::copy_image_to_host`].
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, vec![[1u8, 2, 3, 4]; 6], [2, 3])?;
    /// let copy = Queue::default()?.copy_image_to_host(&picture, vec![[0u8; 4]; 6])?;
    /// assert_eq!(copy.wait()?, [[1, 2, 3, 4]; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_to_host<P: DeviceCopyable + Pod, const D: usize, F: PixelFormat>(
        &self,
        source: &UnsampledImage<D, F>,
        target: Vec<P>,
    ) -> Result<HostCopy<Vec<P>>> {
        let (event, slot) = self.submit_with(|cg| cg.copy_image_to_host(source, target))?;
        Ok(HostCopy { event, slot })
    }

    /// Shortcut: stores one pixel to all of an image, as [`Handler::fill_image`] does, with its errors.
    pub fn fill_image<V: PixelData, const D: usize, F: PixelFormat>(
        &self,
        image: &UnsampledImage<D, F>,
        pixel: V,
    ) -> Result<Event> {
        self.submit(|cg| cg.fill_image(image, pixel))
    }

    /// Shortcut: makes sure that the host has the image's newest pixels when the event completes.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (queue, levels) = (Queue::default()?, UnsampledImage::uninit(R32Float, 4)?);
    /// queue.fill_image(&levels, Float4::splat(0.5))?;
    /// queue.update_image_on_host(&levels)?.wait()?;
    /// assert_eq!(levels.host_access::<Float4, _>(Read)?.read(3)[0], 0.5); // nothing is left to wait for, or to copy
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_image_on_host<const D: usize, F: PixelFormat>(&self, image: &UnsampledImage<D, F>) -> Result<Event> {
        self.submit(|cg| cg.update_image_on_host(image))
    }
}
