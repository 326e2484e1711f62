//! Making images, and taking their pixels.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use oxisycl_device::DeviceCopyable;
use oxisycl_device::images::{PixelFormat, Pixels};
use oxisycl_types::{ImageFormat, Range};

use super::UnsampledImage;
use crate::{Buffer, Error, FinalData, Result};

/// An error for an image that cannot be.
pub(super) fn check<const D: usize>(range: Range<D>) -> Result {
    const { assert!(D >= 1 && D <= 3, "an image has 1, 2 or 3 dimensions") };
    let most = Pixels::<D, ImageFormat>::MAX_EXTENT;
    if range.0.contains(&0) {
        return Err(Error::invalid(format!("an image of range {range:?} has no pixels: expected at least one")));
    }
    if range.0.iter().any(|&n| n > most) {
        return Err(Error::invalid(format!("an image of range {range:?} is too large: no extent is above {most}")));
    }
    Ok(())
}

/// The most that an extent of a sampled image can be: coordinates that are floats tell half pixels apart up to there.
const MAX_SAMPLED_EXTENT: usize = (1 << 23) - 1;

/// An error for an image that is too large to be read by coordinates.
pub(super) fn check_sampled<const D: usize>(range: Range<D>) -> Result {
    match range.0.into_iter().find(|&n| n > MAX_SAMPLED_EXTENT) {
        None => Ok(()),
        Some(n) => Err(Error::invalid(format!(
            "an image of range {range:?} is too large to be sampled: the extent {n} is above {MAX_SAMPLED_EXTENT}"
        ))),
    }
}

/// Why [`UnsampledImage::into_vec`] or another method that takes the pixels failed, and the image.
pub struct IntoPixelsError<const D: usize, F = ImageFormat> {
    image: Box<UnsampledImage<D, F>>,
    error: Error,
}

impl<const D: usize, F> IntoPixelsError<D, F> {
    pub(super) fn new(image: UnsampledImage<D, F>, error: Error) -> Self {
        Self { image: Box::new(image), error }
    }

    /// The image, unchanged.
    pub fn into_image(self) -> UnsampledImage<D, F> {
        *self.image
    }

    /// What went wrong.
    pub fn error(&self) -> &Error {
        &self.error
    }
}

impl<const D: usize, F> From<IntoPixelsError<D, F>> for Error {
    fn from(failed: IntoPixelsError<D, F>) -> Self {
        failed.error
    }
}

impl<const D: usize, F> fmt::Debug for IntoPixelsError<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<const D: usize, F> fmt::Display for IntoPixelsError<D, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<const D: usize, F> std::error::Error for IntoPixelsError<D, F> {}

impl<const D: usize, F: PixelFormat> UnsampledImage<D, F> {
    fn check_data<P>(format: F, data: &[P], range: Range<D>) -> Result {
        check(range)?;
        let expected = range.checked_size().and_then(|n| n.checked_mul(format.format().pixel_size()));
        if expected == Some(size_of_val(data)) {
            return Ok(());
        }
        let (n_bytes, n, name) = (size_of_val(data), data.len(), type_name::<P>());
        let pixel = format.format();
        Err(Error::invalid(format!(
            "an image of range {range:?} and format {pixel} has pixels of {} bytes: expected {} bytes, found {n_bytes} in {n} of {name}",
            pixel.pixel_size(),
            expected.map_or("more than memory has".to_owned(), |n| n.to_string()),
        )))
    }

    /// An image whose pixels are uninitialised. They may be read; what is read is unspecified.
    ///
    /// Errors: `Invalid` if an extent is zero or above 2^30.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [480, 640])?;
    /// assert_eq!((picture.range(), picture.byte_size()), (Range([480, 640]), 4 * 480 * 640));
    /// assert_eq!(UnsampledImage::uninit(Rgba8Unorm, [0, 640]).unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn uninit(format: F, range: impl Into<Range<D>>) -> Result<Self> {
        let range = range.into();
        check(range)?;
        Ok(Self { bytes: Buffer::of_pixels(range, format.format().pixel_size())?, range, format })
    }

    /// An image whose bytes are all zero, on the host.
    ///
    /// Errors: as those of [`uninit`](Self::uninit), and `MemoryAllocation` if there is no memory.
    #[track_caller]
    pub fn zeroed(format: F, range: impl Into<Range<D>>) -> Result<Self> {
        let range = range.into();
        check(range)?;
        let bytes = Buffer::copy_of_pixels(range, format.format().pixel_size(), |_| {})?;
        Ok(Self { bytes, range, format })
    }

    /// An image that takes over the vector's memory. It has the bytes of all pixels, rows first: one `P` may be a channel, a pixel or more.
    /// [`into_vec`](Self::into_vec) gives it back. Memory that is not aligned to 16 bytes is copied.
    ///
    /// Errors: `Invalid` if an extent is zero or above 2^30, or if the vector has another number of bytes than the pixels. An error drops the
    /// vector, as [`Buffer::from_vec`] does.
    ///
    /// ```
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = UnsampledImage::from_vec(Rgba8Unorm, vec![[255u8, 0, 0, 255]; 6], [2, 3])?;
    /// assert_eq!(picture.to_vec::<[u8; 4]>()?, [[255, 0, 0, 255]; 6]);
    /// let short = UnsampledImage::from_vec(Rgba8Unorm, vec![0u8; 23], [2, 3]);
    /// assert_eq!(short.unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_vec<P: DeviceCopyable + Pod>(format: F, data: Vec<P>, range: impl Into<Range<D>>) -> Result<Self> {
        let range = range.into();
        Self::check_data(format, &data, range)?;
        Ok(Self { bytes: Buffer::over_pixels(data, range, format.format().pixel_size())?, range, format })
    }

    /// An image with a copy of the bytes of all pixels, rows first.
    ///
    /// Errors: as those of [`from_vec`](Self::from_vec).
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = [0u8, 1, 2, 3, 4, 5];
    /// assert_eq!(UnsampledImage::from_slice(R8Unorm, &levels, [2, 3])?.to_vec::<u8>()?, levels);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_slice<P: DeviceCopyable + Pod>(format: F, data: &[P], range: impl Into<Range<D>>) -> Result<Self> {
        let range = range.into();
        Self::check_data(format, data, range)?;
        let source = bytemuck::cast_slice(data);
        let bytes = Buffer::copy_of_pixels(range, format.format().pixel_size(), |bytes| bytes.copy_from_slice(source))?;
        Ok(Self { bytes, range, format })
    }

    /// An image with a copy of the bytes of all pixels, which others share and which are never written back.
    ///
    /// Errors: as those of [`from_vec`](Self::from_vec).
    ///
    /// ```
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    /// use std::sync::Arc;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = Arc::<[u8]>::from([0, 1, 2, 3, 4, 5]);
    /// let image = UnsampledImage::from_shared(R8Unorm, levels.clone(), [2, 3])?;
    /// assert_eq!(image.to_vec::<u8>()?, *levels);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_shared<P: DeviceCopyable + Pod>(format: F, data: Arc<[P]>, range: impl Into<Range<D>>) -> Result<Self> {
        Self::from_slice(format, &data, range)
    }

    /// A copy of the bytes of all pixels, rows first. Blocks like [`Buffer::to_vec`].
    ///
    /// Errors: as those of [`Buffer::to_vec`], and `Invalid` if the bytes are no whole number of `P`.
    pub fn to_vec<P: DeviceCopyable + Pod>(&self) -> Result<Vec<P>> {
        self.bytes.to_pixels()
    }

    /// The bytes of all pixels, rows first. Waits for all submitted commands that use the image. If the image was made by
    /// [`from_vec`](Self::from_vec) of a vector of `P`, it is the same memory, unless that had to be copied.
    ///
    /// Errors: as those of [`Buffer::into_vec`], and `Invalid` if the bytes are no whole number of `P`. The error gives the image back by
    /// `into_image`.
    ///
    /// ```
    /// use oxisycl::images::R32Float;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let image = UnsampledImage::from_vec(R32Float, vec![1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let failed = image.into_vec::<[f32; 3]>().unwrap_err(); // no whole number of them
    /// assert_eq!(failed.into_image().into_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_vec<P: DeviceCopyable + Pod>(self) -> Result<Vec<P>, IntoPixelsError<D, F>> {
        match self.bytes.take_pixels() {
            Ok(data) => Ok(data),
            Err(error) => Err(IntoPixelsError::new(self, error)),
        }
    }

    /// Says where the bytes of all pixels go when the last handle of the image is dropped, as [`Buffer::set_final_data`] does. Copies are handles,
    /// and so is the same image with another format or with a sampler. One `P` may be a channel, a pixel or more.
    ///
    /// Errors: `Invalid` if the bytes are no whole number of `P`. An earlier destination stays then.
    ///
    /// ```
    /// use oxisycl::FinalData;
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    /// use std::sync::{Arc, Mutex};
    ///
    /// # fn main() -> oxisycl::Result {
    /// let result = Arc::new(Mutex::new(Vec::<[u8; 4]>::new()));
    /// let picture = UnsampledImage::uninit(Rgba8Unorm, [2, 3])?;
    /// picture.set_final_data(FinalData::weak(Arc::downgrade(&result)))?;
    /// Queue::default()?.fill_image(&picture, Float4::splat(1.0))?;
    /// drop(picture); // waits for the command
    /// assert_eq!(*result.lock().unwrap(), [[255; 4]; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_final_data<P: DeviceCopyable + Pod>(&self, destination: FinalData<P>) -> Result {
        self.bytes.set_final_pixels(destination)
    }
}
