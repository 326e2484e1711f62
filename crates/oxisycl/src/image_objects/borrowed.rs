//! Images over borrowed data, written back when the borrow ends.

use bytemuck::Pod;
use oxisycl_device::images::{ImageFormat, PixelFormat};
use oxisycl_types::Range;

use super::create::check;
use super::pitch::Rows;
use super::{ImagePitch, UnsampledImage};
use crate::borrowed::written_back;
use crate::{Buffer, Result};

/// An image with a copy of borrowed pixels, which are written back when this is dropped.
///
/// Dropping it blocks until all commands that use the image have ended. The commands never see the borrowed memory itself, so forgetting this
/// only means that nothing is written back. Write-back is all or nothing, and leaves what lies between rows alone.
#[derive(Debug)]
pub struct BorrowedImage<'a, const D: usize, F: PixelFormat = ImageFormat> {
    image: UnsampledImage<D, F>,
    data: Option<&'a mut [u8]>,
    rows: Rows,
}

impl<const D: usize, F: PixelFormat> BorrowedImage<'_, D, F> {
    /// Waits, writes back, and says whether that worked. On an error the borrowed pixels are as they were.
    ///
    /// ```
    /// use oxisycl::images::R8Uint;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Uint4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut levels = [1u8, 2, 3, 4];
    /// let image = UnsampledImage::from_slice_mut(R8Uint, &mut levels, [2, 2])?;
    /// Queue::default()?.submit(|cg| {
    ///     let image = cg.access_image(&image, ReadWrite);
    ///     cg.parallel_for([2, 2], move |item| image.update(item, |x: Uint4| x * 10))
    /// })?;
    /// image.finish()?; // waits for the command
    /// assert_eq!(levels, [10, 20, 30, 40]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish(mut self) -> Result {
        self.write_back()
    }

    /// Ends without writing back, and without waiting.
    pub fn discard(mut self) {
        self.data = None;
    }

    fn write_back(&mut self) -> Result {
        let Some(data) = self.data.take() else { return Ok(()) };
        let rows = self.rows;
        let write = |bytes: &[u8]| rows.for_each(|to, from| data[to].copy_from_slice(&bytes[from]));
        self.image.bytes.read_after_commands(write)
    }
}

written_back!([const D: usize, F: PixelFormat] BorrowedImage<'_, D, F>, image: UnsampledImage<D, F>, this => format_args!("image {}", this.image.id()));

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    #[track_caller]
    fn copy_rows(format: F, data: &[u8], range: Range<D>, pitch: Option<ImagePitch>) -> Result<(Self, Rows)> {
        check(range)?;
        let rows = Rows::new(format.format(), range, pitch, data.len())?;
        let bytes = Buffer::copy_of_pixels(range, format.format().pixel_size(), |bytes| {
            rows.for_each(|from, to| bytes[to].copy_from_slice(&data[from]));
        })?;
        Ok((Self { bytes, range, format }, rows))
    }

    /// An image with a copy of pixels whose rows begin `pitch` bytes after each other.
    ///
    /// Errors: `Invalid` if an extent is zero or above 2^30. `Invalid`, too, if the pitch is smaller than a row, or if the data ends before the
    /// last pixel.
    ///
    /// ```
    /// use oxisycl::ImagePitch;
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let padded = [1u8, 2, 3, 0, 4, 5, 6, 0];
    /// let image = UnsampledImage::from_slice_pitched(R8Unorm, &padded, [2, 3], ImagePitch::rows(4))?;
    /// assert_eq!(image.to_vec::<u8>()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice_pitched<P: Pod>(
        format: F,
        data: &[P],
        range: impl Into<Range<D>>,
        pitch: ImagePitch,
    ) -> Result<Self> {
        Ok(Self::copy_rows(format, bytemuck::cast_slice(data), range.into(), Some(pitch))?.0)
    }

    /// An image with a copy of pixels, which are written back when the result is dropped.
    ///
    /// Errors: as those of [`from_vec`](Self::from_vec).
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let mut levels = [1.0f32, 2.0];
    /// let image = UnsampledImage::from_slice_mut(R32Float, &mut levels, 2)?;
    /// image.host_access(ReadWrite)?.write(1, Float4::splat(7.0));
    /// drop(image);
    /// assert_eq!(levels, [1.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice_mut<P: Pod>(
        format: F,
        data: &mut [P],
        range: impl Into<Range<D>>,
    ) -> Result<BorrowedImage<'_, D, F>> {
        Self::borrow(format, bytemuck::cast_slice_mut(data), range.into(), None)
    }

    /// An image with a copy of pixels whose rows begin `pitch` bytes after each other. They are written back when the result is dropped.
    ///
    /// Errors: as those of [`from_slice_pitched`](Self::from_slice_pitched).
    #[track_caller]
    pub fn from_slice_mut_pitched<P: Pod>(
        format: F,
        data: &mut [P],
        range: impl Into<Range<D>>,
        pitch: ImagePitch,
    ) -> Result<BorrowedImage<'_, D, F>> {
        Self::borrow(format, bytemuck::cast_slice_mut(data), range.into(), Some(pitch))
    }

    #[track_caller]
    fn borrow(
        format: F,
        data: &mut [u8],
        range: Range<D>,
        pitch: Option<ImagePitch>,
    ) -> Result<BorrowedImage<'_, D, F>> {
        let (image, rows) = Self::copy_rows(format, data, range, pitch)?;
        Ok(BorrowedImage { image, data: Some(data), rows })
    }
}
