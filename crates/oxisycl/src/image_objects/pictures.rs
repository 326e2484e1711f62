//! Images of the crate `image` as images of the runtime, and back.
//!
//! Invariant: a pixel at `(x, y)` there is the pixel at `[y, x]` here, with the same bytes. A format says what the bytes stand for, and is refused
//! where its channels are others than those of the pixels.

use std::fmt::Debug;

use bytemuck::Pod;
use image::{DynamicImage, ImageBuffer, Luma, LumaA, Pixel, Rgb, Rgba};
use oxisycl_device::DeviceCopyable;
use oxisycl_device::images::{ChannelOrder, ChannelType, ImageFormat, ImageSampler, PixelFormat};
use oxisycl_types::Range;

use super::{IntoPixelsError, SampledImage, UnsampledImage};
use crate::{Error, FlatPixel, Result};

/// Pixels of the crate `image` that a format can describe: `Luma`, `LumaA`, `Rgb` and `Rgba`. Their channels are integers of 8, 16 or 32 bits, or
/// `f32`. Cannot be implemented for other types.
pub trait ImagePixel: FlatPixel<Subpixel: Pod> + sealed::Sealed {}

mod sealed {
    use super::{ChannelOrder, ChannelType};

    /// What only this file implements.
    pub trait Sealed {
        /// The orders whose channels are these, in this order.
        const ORDERS: &'static [ChannelOrder];
        /// What each channel may be.
        const TYPES: &'static [ChannelType];
        const NAME: &'static str;
        const CHANNEL: &'static str;
    }

    pub trait Channel {
        const TYPES: &'static [ChannelType];
        const NAME: &'static str;
    }
}

macro_rules! channels {
    ($($channel:ident: $($channel_type:ident)*;)*) => { $(
        impl sealed::Channel for $channel {
            const TYPES: &'static [ChannelType] = &[$(ChannelType::$channel_type),*];
            const NAME: &'static str = stringify!($channel);
        }
    )* };
}

channels! {
    u8: UnormInt8 UnsignedInt8;
    u16: UnormInt16 UnsignedInt16;
    u32: UnsignedInt32;
    i8: SnormInt8 SignedInt8;
    i16: SnormInt16 SignedInt16;
    i32: SignedInt32;
    f32: Float32;
}

macro_rules! pixels {
    ($($name:ident: $($order:ident)*;)*) => { $(
        impl<T: sealed::Channel> sealed::Sealed for $name<T> {
            const ORDERS: &'static [ChannelOrder] = &[$(ChannelOrder::$order),*];
            const TYPES: &'static [ChannelType] = T::TYPES;
            const NAME: &'static str = stringify!($name);
            const CHANNEL: &'static str = T::NAME;
        }
        impl<T: sealed::Channel + DeviceCopyable + Pod> ImagePixel for $name<T> where $name<T>: Pixel<Subpixel = T> {}
    )* };
}

pixels! {
    Luma: Luminance Intensity R Rx A;
    LumaA: Ra;
    Rgb: Rgb Rgbx Srgb;
    Rgba: Rgba Srgba;
}

fn names(all: &[impl Debug]) -> String {
    all.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ")
}

/// An error unless pixels of the format are `P` in memory.
fn check_pixel<P: ImagePixel>(format: ImageFormat) -> Result {
    if P::ORDERS.contains(&format.order()) && P::TYPES.contains(&format.channel_type()) {
        return Ok(());
    }
    let (orders, types) = (names(P::ORDERS), names(P::TYPES));
    Err(Error::invalid(format!(
        "pixels of the format {format} are not `{}<{}>`: that has channels in the order {orders}, each of them {types}",
        P::NAME,
        P::CHANNEL,
    )))
}

fn no_format(variant: &str, conversion: &str) -> Error {
    Error::invalid(format!(
        "a `DynamicImage` of the kind {variant} has channels that no format has: convert it by `{conversion}`, and make the image of the result"
    ))
}

/// The kinds of `DynamicImage` that have a format.
enum Kind {
    Luma8,
    Luma16,
    Rgb8,
    Rgb16,
    Rgb32F,
    Rgba8,
    Rgba16,
    Rgba32F,
}

fn kind_of(format: ImageFormat) -> Result<Kind> {
    use ChannelOrder as Order;
    use ChannelType::{Float32, UnormInt8, UnormInt16};
    Ok(match (format.order(), format.channel_type()) {
        (Order::Luminance | Order::Intensity | Order::R | Order::Rx, UnormInt8) => Kind::Luma8,
        (Order::Luminance | Order::Intensity | Order::R | Order::Rx, UnormInt16) => Kind::Luma16,
        (Order::Rgb | Order::Rgbx | Order::Srgb, UnormInt8) => Kind::Rgb8,
        (Order::Rgb | Order::Rgbx, UnormInt16) => Kind::Rgb16,
        (Order::Rgb | Order::Rgbx, Float32) => Kind::Rgb32F,
        (Order::Rgba | Order::Srgba, UnormInt8) => Kind::Rgba8,
        (Order::Rgba, UnormInt16) => Kind::Rgba16,
        (Order::Rgba, Float32) => Kind::Rgba32F,
        _ => {
            return Err(Error::invalid(format!(
                "no kind of `DynamicImage` has the channels of the format {format}: those are gray, Rgb and Rgba of UnormInt8 and UnormInt16, and Rgb \
                 and Rgba of Float32"
            )));
        }
    })
}

/// The image of channels that are as many as the pixels have.
fn image_of<P: Pixel>(width: u32, height: u32, channels: Vec<P::Subpixel>) -> ImageBuffer<P, Vec<P::Subpixel>> {
    ImageBuffer::from_raw(width, height, channels).expect("the channels are those of all pixels, by the format")
}

impl<F: PixelFormat> UnsampledImage<2, F> {
    /// An image that takes over the memory of one of the crate `image`. Its range is `[height, width]`: the pixel that `image.get_pixel(x, y)`
    /// gives is the one at `[y, x]`. Memory that is not aligned to 16 bytes is copied. With the feature `image`.
    ///
    /// The format says what the channels stand for. It has those of the pixels, in their order. `Rgba<u8>` may be
    /// [`Rgba8Unorm`](crate::images::Rgba8Unorm), [`Rgba8Srgb`](crate::images::Rgba8Srgb) or [`Rgba8Uint`](crate::images::Rgba8Uint).
    ///
    /// Errors: `Invalid` if the format has other channels. `Invalid`, too, if an extent is zero or above 2^30. The picture is dropped then: clone it
    /// if it is still needed.
    ///
    /// ```
    /// use image::{Rgba, RgbaImage};
    /// use oxisycl::images::Rgba8Unorm;
    /// use oxisycl::prelude::*;
    /// use oxisycl::vector::Float4;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = RgbaImage::from_pixel(640, 480, Rgba([10, 20, 30, 255]));
    /// let picture = UnsampledImage::from_image_buffer(Rgba8Unorm, picture)?;
    /// assert_eq!(picture.range(), Range([480, 640]));
    /// Queue::default()?.submit(|cg| {
    ///     let picture = cg.access_image(&picture, ReadWrite);
    ///     cg.parallel_for([480, 640], move |item| picture.update(item, |colour: Float4| Float4::splat(1.0) - colour))
    /// })?;
    /// let negative: RgbaImage = picture.into_image_buffer()?; // waits for the kernel
    /// assert_eq!(negative.get_pixel(639, 479), &Rgba([245, 235, 225, 0]));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_image_buffer<P: ImagePixel>(format: F, image: ImageBuffer<P, Vec<P::Subpixel>>) -> Result<Self> {
        check_pixel::<P>(format.format())?;
        let range = Range([image.height() as usize, image.width() as usize]);
        let mut channels = image.into_raw();
        // Images may have more memory than pixels.
        if let Some(n) = range.checked_size().and_then(|n| n.checked_mul(usize::from(P::CHANNEL_COUNT))) {
            channels.truncate(n);
        }
        Self::from_vec(format, channels, range)
    }

    /// The pixels as an image of the crate `image`. Waits for all submitted commands that use this image. If it was made by
    /// [`from_image_buffer`](Self::from_image_buffer), the memory is the same, unless that had to be copied. With the feature `image`.
    ///
    /// Errors: as those of [`into_vec`](Self::into_vec), and `Invalid` if the format has other channels than `P`. The error gives this image back
    /// by `into_image`.
    pub fn into_image_buffer<P: ImagePixel>(self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>, IntoPixelsError<2, F>> {
        // Before the pixels leave the image.
        match self.check_image_buffer::<P>() {
            Ok((width, height)) => Ok(image_of(width, height, self.into_vec()?)),
            Err(error) => Err(IntoPixelsError::new(self, error)),
        }
    }

    /// A copy of the pixels as an image of the crate `image`. Blocks like [`to_vec`](Self::to_vec). With the feature `image`.
    ///
    /// Errors: as those of [`to_vec`](Self::to_vec), and `Invalid` if the format has other channels than `P`.
    ///
    /// ```
    /// use image::{Luma, Rgb};
    /// use oxisycl::images::R8Unorm;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let levels = UnsampledImage::from_vec(R8Unorm, vec![0u8, 50, 100, 150], [2, 2])?;
    /// assert_eq!(levels.to_image_buffer::<Luma<u8>>()?.get_pixel(1, 0), &Luma([50]));
    /// assert_eq!(levels.to_image_buffer::<Rgb<u8>>().unwrap_err().code(), ErrorCode::Invalid);
    /// # Ok(())
    /// # }
    /// ```
    pub fn to_image_buffer<P: ImagePixel>(&self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        let (width, height) = self.check_image_buffer::<P>()?;
        Ok(image_of(width, height, self.to_vec()?))
    }

    /// Width and height, if the pixels are `P` in memory.
    fn check_image_buffer<P: ImagePixel>(&self) -> Result<(u32, u32)> {
        check_pixel::<P>(self.format())?;
        let [height, width] = self.range().0;
        // No extent is above 2^30.
        Ok((width as u32, height as u32))
    }

    /// The pixels as an image whose kind follows from the format, in the same memory where
    /// [`into_image_buffer`](Self::into_image_buffer) does that. With the feature `image`.
    ///
    /// Formats of gray are those of one channel other than alpha. Those of sRGB give their bytes as they are, which is what files have.
    ///
    /// Errors: as those of [`into_image_buffer`](Self::into_image_buffer), and `Invalid` if no kind has the channels of the format.
    pub fn into_dynamic_image(self) -> Result<DynamicImage, IntoPixelsError<2, F>> {
        match kind_of(self.format()) {
            Ok(Kind::Luma8) => self.into_image_buffer().map(DynamicImage::ImageLuma8),
            Ok(Kind::Luma16) => self.into_image_buffer().map(DynamicImage::ImageLuma16),
            Ok(Kind::Rgb8) => self.into_image_buffer().map(DynamicImage::ImageRgb8),
            Ok(Kind::Rgb16) => self.into_image_buffer().map(DynamicImage::ImageRgb16),
            Ok(Kind::Rgb32F) => self.into_image_buffer().map(DynamicImage::ImageRgb32F),
            Ok(Kind::Rgba8) => self.into_image_buffer().map(DynamicImage::ImageRgba8),
            Ok(Kind::Rgba16) => self.into_image_buffer().map(DynamicImage::ImageRgba16),
            Ok(Kind::Rgba32F) => self.into_image_buffer().map(DynamicImage::ImageRgba32F),
            Err(error) => Err(IntoPixelsError::new(self, error)),
        }
    }

    /// A copy of the pixels as an image whose kind follows from the format, as [`into_dynamic_image`](Self::into_dynamic_image) gives. Blocks like
    /// [`to_vec`](Self::to_vec). With the feature `image`.
    ///
    /// Errors: as those of [`to_image_buffer`](Self::to_image_buffer), and `Invalid` if no kind has the channels of the format.
    pub fn to_dynamic_image(&self) -> Result<DynamicImage> {
        match kind_of(self.format())? {
            Kind::Luma8 => self.to_image_buffer().map(DynamicImage::ImageLuma8),
            Kind::Luma16 => self.to_image_buffer().map(DynamicImage::ImageLuma16),
            Kind::Rgb8 => self.to_image_buffer().map(DynamicImage::ImageRgb8),
            Kind::Rgb16 => self.to_image_buffer().map(DynamicImage::ImageRgb16),
            Kind::Rgb32F => self.to_image_buffer().map(DynamicImage::ImageRgb32F),
            Kind::Rgba8 => self.to_image_buffer().map(DynamicImage::ImageRgba8),
            Kind::Rgba16 => self.to_image_buffer().map(DynamicImage::ImageRgba16),
            Kind::Rgba32F => self.to_image_buffer().map(DynamicImage::ImageRgba32F),
        }
    }
}

impl UnsampledImage<2> {
    /// An image that takes over the memory of a picture whose kind is known when the program runs, such as one from a file. The format follows from
    /// the kind: numbers are 0 to 1, or floats, as they are. With the feature `image`.
    ///
    /// Files mostly follow the curve of sRGB. For linear values take [`from_image_buffer`](Self::from_image_buffer) with
    /// [`Rgba8Srgb`](crate::images::Rgba8Srgb) and `image.into_rgba8()`, which copies nothing if the kind is that already.
    ///
    /// Errors: as those of [`from_image_buffer`](Self::from_image_buffer). `Invalid` for gray with alpha, which no format has.
    ///
    /// ```
    /// use image::{DynamicImage, Rgb, RgbImage};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let file = DynamicImage::ImageRgb8(RgbImage::from_pixel(8, 6, Rgb([1, 2, 3])));
    /// let picture = UnsampledImage::from_dynamic_image(file.clone())?;
    /// assert_eq!(picture.format().to_string(), "Rgb of UnormInt8");
    /// assert_eq!(picture.into_dynamic_image()?, file);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_dynamic_image(image: DynamicImage) -> Result<Self> {
        use ChannelOrder::{Luminance, Rgb, Rgba};
        use ChannelType::{Float32, UnormInt8, UnormInt16};
        const fn format(order: ChannelOrder, channel_type: ChannelType) -> ImageFormat {
            ImageFormat::new(order, channel_type).expect("it exists")
        }
        match image {
            DynamicImage::ImageLuma8(i) => Self::from_image_buffer(const { format(Luminance, UnormInt8) }, i),
            DynamicImage::ImageLuma16(i) => Self::from_image_buffer(const { format(Luminance, UnormInt16) }, i),
            DynamicImage::ImageRgb8(i) => Self::from_image_buffer(const { format(Rgb, UnormInt8) }, i),
            DynamicImage::ImageRgb16(i) => Self::from_image_buffer(const { format(Rgb, UnormInt16) }, i),
            DynamicImage::ImageRgb32F(i) => Self::from_image_buffer(const { format(Rgb, Float32) }, i),
            DynamicImage::ImageRgba8(i) => Self::from_image_buffer(const { format(Rgba, UnormInt8) }, i),
            DynamicImage::ImageRgba16(i) => Self::from_image_buffer(const { format(Rgba, UnormInt16) }, i),
            DynamicImage::ImageRgba32F(i) => Self::from_image_buffer(const { format(Rgba, Float32) }, i),
            DynamicImage::ImageLumaA8(_) => Err(no_format("ImageLumaA8", "to_rgba8")),
            DynamicImage::ImageLumaA16(_) => Err(no_format("ImageLumaA16", "to_rgba16")),
            other => Err(no_format(&format!("{:?}", other.color()), "to_rgba32f")),
        }
    }
}

impl<F: PixelFormat> SampledImage<2, F> {
    /// An image that takes over the memory of one of the crate `image`, as [`UnsampledImage::from_image_buffer`] does, with its errors. With the
    /// feature `image`.
    ///
    /// ```
    /// use image::{Rgba, RgbaImage};
    /// use oxisycl::images::Rgba8Srgb;
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let picture = RgbaImage::from_pixel(4, 3, Rgba([0, 128, 255, 255]));
    /// let picture = SampledImage::from_image_buffer(Rgba8Srgb, ImageSampler::LINEAR.normalized(), picture)?;
    /// assert_eq!(picture.range(), Range([3, 4]));
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn from_image_buffer<P: ImagePixel>(
        format: F,
        sampler: ImageSampler,
        image: ImageBuffer<P, Vec<P::Subpixel>>,
    ) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_image_buffer(format, image)?, sampler))
    }

    /// The pixels as an image of the crate `image`, as [`UnsampledImage::into_image_buffer`] gives, with its errors. The error gives the image back
    /// without its sampler. With the feature `image`.
    pub fn into_image_buffer<P: ImagePixel>(self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>, IntoPixelsError<2, F>> {
        self.into_unsampled().into_image_buffer()
    }

    /// A copy of the pixels as an image of the crate `image`, as [`UnsampledImage::to_image_buffer`] gives, with its errors. With the feature
    /// `image`.
    pub fn to_image_buffer<P: ImagePixel>(&self) -> Result<ImageBuffer<P, Vec<P::Subpixel>>> {
        self.unsampled().to_image_buffer()
    }

    /// The pixels as an image whose kind follows from the format, as [`UnsampledImage::into_dynamic_image`] gives, with its errors. The error gives
    /// the image back without its sampler. With the feature `image`.
    pub fn into_dynamic_image(self) -> Result<DynamicImage, IntoPixelsError<2, F>> {
        self.into_unsampled().into_dynamic_image()
    }

    /// A copy of the pixels as an image whose kind follows from the format, as [`UnsampledImage::to_dynamic_image`] gives, with its errors. With the
    /// feature `image`.
    pub fn to_dynamic_image(&self) -> Result<DynamicImage> {
        self.unsampled().to_dynamic_image()
    }
}

impl SampledImage<2> {
    /// An image that takes over the memory of one whose kind is known when the program runs, as [`UnsampledImage::from_dynamic_image`] does, with its
    /// errors. With the feature `image`.
    #[track_caller]
    pub fn from_dynamic_image(sampler: ImageSampler, image: DynamicImage) -> Result<Self> {
        Ok(Self::new(UnsampledImage::from_dynamic_image(image)?, sampler))
    }
}
