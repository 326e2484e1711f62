//! Images of the crate `image` as buffers of pixels, and back.
//!
//! Invariant: a pixel at `(x, y)` of the image is the element at `[y, x]` of the buffer. The image's memory is the buffer's: pixels are not copied
//! one by one, unless the buffer was made otherwise.

use image::{ImageBuffer, Luma, LumaA, Pixel, Rgb, Rgba};
use oxisycl_device::DeviceCopyable;
use oxisycl_types::Range;

use super::{Buffer, BufferOptions, IntoVecError};
use crate::{Error, Read, Result};

/// Pixels that are nothing but their channels side by side: `Luma`, `LumaA`, `Rgb` and `Rgba` of the crate `image`. Cannot be implemented for
/// other types.
pub trait FlatPixel: Pixel<Subpixel: DeviceCopyable> + DeviceCopyable + sealed::Sealed {}

mod sealed {
    /// What only this file implements, for types whose layout it knows.
    pub trait Sealed: super::Pixel {
        /// The channels of all pixels, in the same memory where the standard library can do that.
        fn channels_of(pixels: Vec<Self>) -> Vec<Self::Subpixel>;
    }
}

macro_rules! flat {
    ($($name:ident)*) => { $(
        impl<T: DeviceCopyable> FlatPixel for $name<T> where $name<T>: Pixel<Subpixel = T> {}
        impl<T: DeviceCopyable> sealed::Sealed for $name<T>
        where
            $name<T>: Pixel<Subpixel = T>,
        {
            fn channels_of(pixels: Vec<Self>) -> Vec<T> {
                pixels.into_iter().map(|pixel| pixel.0).collect::<Vec<_>>().into_flattened()
            }
        }
    )* };
}

flat! { Luma LumaA Rgb Rgba }

impl BufferOptions<2> {
    /// A buffer that takes over the memory of an image; see [`Buffer::from_image`].
    #[track_caller]
    pub fn from_image<P: FlatPixel>(self, image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result<Buffer<P, 2>> {
        let range = Range([image.height() as usize, image.width() as usize]);
        let mut channels = image.into_raw();
        let n_channels = range.checked_size().and_then(|n| n.checked_mul(usize::from(P::CHANNEL_COUNT)));
        // Images may have more memory than pixels.
        match n_channels {
            Some(n_channels) if n_channels <= channels.len() => channels.truncate(n_channels),
            _ => {
                return Err(Error::invalid(format!(
                    "a buffer of range {range:?} cannot be made from {} channels of an image with {} for each pixel",
                    channels.len(),
                    P::CHANNEL_COUNT
                )));
            }
        }
        // SAFETY: a `FlatPixel` is a transparent array of its channels, and the vector was cut to those of the range, rows first.
        unsafe { self.over_parts::<P, P::Subpixel>(channels, range) }
    }
}

impl<P: FlatPixel> Buffer<P, 2> {
    /// A buffer that takes over the memory of an image. Its range is `[height, width]`: the pixel that `image.get_pixel(x, y)` gives is the
    /// element at `[y, x]`. With the feature `image`.
    ///
    /// Errors: as those of [`Platform::all`](crate::Platform::all), if the settings are wrong.
    ///
    /// ```
    /// use image::{Rgba, RgbaImage};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let picture = RgbaImage::from_pixel(640, 480, Rgba([10, 20, 30, 255]));
    /// let pixels = Buffer::from_image(picture)?;
    /// assert_eq!(pixels.range(), Range([480, 640]));
    /// Queue::default()?.submit(|cg| {
    ///     let pixels = cg.access(&pixels, ReadWrite);
    ///     cg.parallel_for([480, 640], move |item| {
    ///         pixels.update(item, |Rgba([r, g, b, a])| Rgba([255 - r, 255 - g, 255 - b, a]))
    ///     })
    /// })?;
    /// let negative = pixels.into_image()?; // waits for the kernel
    /// assert_eq!(negative.get_pixel(639, 479), &Rgba([245, 235, 225, 255]));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_image(image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result<Self> {
        BufferOptions::new().from_image(image)
    }

    /// The data as an image, as high as the first extent and as wide as the second. Waits for all submitted commands that use the buffer. If the
    /// buffer was made with [`from_image`](Self::from_image), it is the same memory. With the feature `image`.
    ///
    /// Errors: as those of [`into_vec`](Self::into_vec); `Invalid` if an extent is too large for an image, 2^32 or more.
    ///
    /// ```
    /// use image::{GrayImage, Luma};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let pixels = Buffer::from_vec_nd(vec![Luma([0u8]); 512], [2, 256])?;
    /// Queue::default()?.submit(|cg| {
    ///     let pixels = cg.access(&pixels, Write);
    ///     cg.parallel_for([2, 256], move |item: Item<2>| pixels.set(item, Luma([item.get(1) as u8])))
    /// })?;
    /// let ramp: GrayImage = pixels.into_image()?; // waits for the kernel
    /// assert_eq!((ramp.width(), ramp.height()), (256, 2));
    /// assert_eq!(ramp.get_pixel(200, 1), &Luma([200]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_image(self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>, IntoVecError<P, 2>> {
        match self.take_image() {
            Ok(image) => Ok(image),
            Err(error) => Err(IntoVecError::new(self, error)),
        }
    }

    /// A copy of all pixels as an image. Blocks like [`host_access`](Self::host_access). With the feature `image`.
    ///
    /// Errors: as those of [`host_access`](Self::host_access); `Invalid` if an extent is too large for an image, 2^32 or more.
    ///
    /// ```
    /// use image::{Rgb, RgbImage};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result<()> {
    /// let pixels = Buffer::from_image(RgbImage::new(4, 3))?;
    /// let before = pixels.to_image()?;
    /// Queue::default()?.fill(&pixels, Rgb([255, 0, 0]))?;
    /// assert_eq!(before.get_pixel(3, 2), &Rgb([0, 0, 0]));
    /// assert_eq!(pixels.to_image()?.get_pixel(3, 2), &Rgb([255, 0, 0])); // waits for the command
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_image(&self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        self.image_extents()?;
        let host = self.host_access(Read)?;
        self.image_of(P::channels_of(host.iter().copied().collect()))
    }

    fn take_image(&self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        // Before the data leaves the buffer.
        self.image_extents()?;
        let channels = match self.take_owner::<P::Subpixel>("into_image")? {
            Some(channels) => channels,
            None => P::channels_of(self.take_vec("into_image")?),
        };
        self.image_of(channels)
    }

    fn image_of(&self, channels: Vec<P::Subpixel>) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        let (width, height) = self.image_extents()?;
        ImageBuffer::from_raw(width, height, channels).ok_or_else(|| self.no_image())
    }

    /// Width and height.
    fn image_extents(&self) -> Result<(u32, u32)> {
        let [height, width] = self.range().0;
        match (u32::try_from(width), u32::try_from(height)) {
            (Ok(width), Ok(height)) => Ok((width, height)),
            _ => Err(self.no_image()),
        }
    }

    fn no_image(&self) -> Error {
        Error::invalid(format!(
            "{} with range {:?} cannot become an image: expected extents below 2^32",
            self.view.core, self.range
        ))
    }
}
