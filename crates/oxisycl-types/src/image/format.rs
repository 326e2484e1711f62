//! Formats of pixels: which channels a pixel has, in which order, and what each of them is.

use core::fmt;

/// Which channels a pixel has, in the order of its memory. What it lacks is read as 0, and alpha as 1 unless said otherwise.
///
/// An `x` at the end takes no memory: the border colour has an alpha of 0 instead of 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ChannelOrder {
    /// Alpha.
    A,
    /// Red.
    R,
    /// Red.
    Rx,
    /// Red and green.
    Rg,
    /// Red and green.
    Rgx,
    /// Red and alpha.
    Ra,
    /// Red, green and blue.
    Rgb,
    /// Red, green and blue.
    Rgbx,
    /// Red, green, blue and alpha.
    Rgba,
    /// Alpha, red, green and blue.
    Argb,
    /// Blue, green, red and alpha.
    Bgra,
    /// Alpha, blue, green and red.
    Abgr,
    /// One number, for all four.
    Intensity,
    /// One number, for red, green and blue.
    Luminance,
    /// Red, green and blue by the curve of sRGB. They are read as linear values.
    Srgb,
    /// Red, green and blue by the curve of sRGB, and alpha.
    Srgba,
    /// Blue, green and red by the curve of sRGB, and alpha.
    Sbgra,
}

impl ChannelOrder {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::A,
        Self::R,
        Self::Rx,
        Self::Rg,
        Self::Rgx,
        Self::Ra,
        Self::Rgb,
        Self::Rgbx,
        Self::Rgba,
        Self::Argb,
        Self::Bgra,
        Self::Abgr,
        Self::Intensity,
        Self::Luminance,
        Self::Srgb,
        Self::Srgba,
        Self::Sbgra,
    ];

    /// How many channels a pixel has in memory.
    #[inline(always)]
    pub const fn n_channels(self) -> usize {
        match self {
            Self::A | Self::R | Self::Rx | Self::Intensity | Self::Luminance => 1,
            Self::Rg | Self::Rgx | Self::Ra => 2,
            Self::Rgb | Self::Rgbx | Self::Srgb => 3,
            Self::Rgba | Self::Argb | Self::Bgra | Self::Abgr | Self::Srgba | Self::Sbgra => 4,
        }
    }

    /// Whether red, green and blue follow the curve of sRGB.
    #[inline(always)]
    pub const fn is_srgb(self) -> bool {
        matches!(self, Self::Srgb | Self::Srgba | Self::Sbgra)
    }
}

/// What a channel is in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ChannelType {
    /// 8 bits for -1 to 1.
    SnormInt8,
    /// 16 bits for -1 to 1.
    SnormInt16,
    /// 8 bits for 0 to 1.
    UnormInt8,
    /// 16 bits for 0 to 1.
    UnormInt16,
    /// 16 bits for three channels of 0 to 1. Red has the uppermost five, green the next six, blue the lowest five.
    UnormShort565,
    /// 16 bits for three channels of 0 to 1, five bits each. Blue has the lowest ones; the uppermost bit is ignored.
    UnormShort555,
    /// 32 bits for three channels of 0 to 1, ten bits each. Blue has the lowest ones; the uppermost two are ignored.
    UnormInt101010,
    /// A signed integer of 8 bits.
    SignedInt8,
    /// A signed integer of 16 bits.
    SignedInt16,
    /// A signed integer of 32 bits.
    SignedInt32,
    /// An unsigned integer of 8 bits.
    UnsignedInt8,
    /// An unsigned integer of 16 bits.
    UnsignedInt16,
    /// An unsigned integer of 32 bits.
    UnsignedInt32,
    /// A float of 16 bits.
    Float16,
    /// A float of 32 bits.
    Float32,
}

impl ChannelType {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::SnormInt8,
        Self::SnormInt16,
        Self::UnormInt8,
        Self::UnormInt16,
        Self::UnormShort565,
        Self::UnormShort555,
        Self::UnormInt101010,
        Self::SignedInt8,
        Self::SignedInt16,
        Self::SignedInt32,
        Self::UnsignedInt8,
        Self::UnsignedInt16,
        Self::UnsignedInt32,
        Self::Float16,
        Self::Float32,
    ];

    /// Bytes of one channel, or of a whole pixel if it [is packed](Self::is_packed).
    #[inline(always)]
    pub const fn size(self) -> usize {
        match self {
            Self::SnormInt8 | Self::UnormInt8 | Self::SignedInt8 | Self::UnsignedInt8 => 1,
            Self::SnormInt16
            | Self::UnormInt16
            | Self::UnormShort565
            | Self::UnormShort555
            | Self::SignedInt16
            | Self::UnsignedInt16
            | Self::Float16 => 2,
            Self::UnormInt101010 | Self::SignedInt32 | Self::UnsignedInt32 | Self::Float32 => 4,
        }
    }

    /// Whether all channels of a pixel share one number.
    #[inline(always)]
    pub const fn is_packed(self) -> bool {
        matches!(self, Self::UnormShort565 | Self::UnormShort555 | Self::UnormInt101010)
    }

    /// Whether pixels are read as signed integers.
    #[inline(always)]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::SignedInt8 | Self::SignedInt16 | Self::SignedInt32)
    }

    /// Whether pixels are read as unsigned integers.
    #[inline(always)]
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::UnsignedInt8 | Self::UnsignedInt16 | Self::UnsignedInt32)
    }

    /// Whether pixels are read as floats.
    #[inline(always)]
    pub const fn is_float(self) -> bool {
        !self.is_signed() && !self.is_unsigned()
    }
}

/// How a pixel lies in memory (SYCL 2020 `image_format`).
///
/// The constants are the formats of SYCL 2020. [`new`](Self::new) makes those of OpenCL, and some more. It lacks the
/// order `sRGBx`, depth images, `UNORM_INT24` and `UNORM_INT_101010_2`.
///
/// ```
/// use oxisycl_types::{ChannelOrder, ChannelType, ImageFormat};
///
/// assert_eq!(ImageFormat::R8G8B8A8_UNORM.pixel_size(), 4);
/// let gray = ImageFormat::new(ChannelOrder::Luminance, ChannelType::UnormInt16).unwrap();
/// assert_eq!(gray.pixel_size(), 2);
/// assert_eq!(gray.to_string(), "Luminance of UnormInt16");
/// assert_eq!(ImageFormat::new(ChannelOrder::Rgba, ChannelType::UnormShort565), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageFormat {
    order: ChannelOrder,
    channel_type: ChannelType,
}

macro_rules! formats_of_sycl {
    ($($name:ident = $order:ident $channel_type:ident;)*) => {
        /// The formats of SYCL 2020.
        impl ImageFormat {
            $(
                #[doc = concat!(stringify!($order), " channels, each of them ", stringify!($channel_type), ".")]
                pub const $name: Self = Self { order: ChannelOrder::$order, channel_type: ChannelType::$channel_type };
            )*
        }
    };
}

formats_of_sycl! {
    R8G8B8A8_UNORM = Rgba UnormInt8;
    R16G16B16A16_UNORM = Rgba UnormInt16;
    R8G8B8A8_SINT = Rgba SignedInt8;
    R16G16B16A16_SINT = Rgba SignedInt16;
    R32G32B32A32_SINT = Rgba SignedInt32;
    R8G8B8A8_UINT = Rgba UnsignedInt8;
    R16G16B16A16_UINT = Rgba UnsignedInt16;
    R32G32B32A32_UINT = Rgba UnsignedInt32;
    R16G16B16A16_SFLOAT = Rgba Float16;
    R32G32B32A32_SFLOAT = Rgba Float32;
    B8G8R8A8_UNORM = Bgra UnormInt8;
}

impl ImageFormat {
    /// The format with these channels; `None` if there is no such format.
    ///
    /// Packed types have red, green and blue. Those of sRGB, and those whose alpha or blue comes first, have 8 bits for each channel. Intensity and
    /// luminance are no integers. Channels that follow the curve of sRGB are `UnormInt8`.
    pub const fn new(order: ChannelOrder, channel_type: ChannelType) -> Option<Self> {
        use ChannelOrder as Order;
        let exists = match order {
            Order::Srgb | Order::Srgba | Order::Sbgra => matches!(channel_type, ChannelType::UnormInt8),
            Order::Argb | Order::Bgra | Order::Abgr => channel_type.size() == 1,
            Order::Intensity | Order::Luminance => channel_type.is_float() && !channel_type.is_packed(),
            Order::Rgb | Order::Rgbx => true,
            _ => !channel_type.is_packed(),
        };
        if exists { Some(Self { order, channel_type }) } else { None }
    }

    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        let of_order = |&order| ChannelType::ALL.iter().filter_map(move |&channel_type| Self::new(order, channel_type));
        ChannelOrder::ALL.iter().flat_map(of_order)
    }

    /// Which channels a pixel has.
    #[inline(always)]
    pub const fn order(self) -> ChannelOrder {
        self.order
    }

    /// What each channel is.
    #[inline(always)]
    pub const fn channel_type(self) -> ChannelType {
        self.channel_type
    }

    /// Bytes of a pixel.
    #[inline(always)]
    pub const fn pixel_size(self) -> usize {
        if self.channel_type.is_packed() {
            self.channel_type.size()
        } else {
            self.channel_type.size() * self.order.n_channels()
        }
    }

    /// The alignment of a pixel, which divides its size: that of all its channels together, or of each if there are three.
    #[inline(always)]
    pub const fn alignment(self) -> usize {
        let size = self.pixel_size();
        if size.is_power_of_two() { size } else { self.channel_type.size() }
    }

    /// The alpha of the border colour, 0 or 1. The other channels of that colour are 0.
    ///
    /// ```
    /// use oxisycl_types::{ChannelOrder, ChannelType, ImageFormat};
    ///
    /// assert_eq!(ImageFormat::R8G8B8A8_UNORM.border_alpha(), 0);
    /// assert_eq!(ImageFormat::new(ChannelOrder::R, ChannelType::Float32).unwrap().border_alpha(), 1);
    /// ```
    #[inline(always)]
    pub const fn border_alpha(self) -> u8 {
        use ChannelOrder as Order;
        matches!(self.order, Order::R | Order::Rg | Order::Rgb | Order::Luminance | Order::Srgb) as u8
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.order, self.channel_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_aligned_to_what_divides_their_size() {
        let mut n_formats = 0;
        for format in ImageFormat::all() {
            let (size, alignment) = (format.pixel_size(), format.alignment());
            assert!(alignment.is_power_of_two() && size.is_multiple_of(alignment), "{format}");
            assert!((1..=16).contains(&size), "{format}");
            n_formats += 1;
        }
        // Twelve channel types that are not packed; seven orders take them all.
        assert_eq!(n_formats, 7 * 12 + 2 * 15 + 3 * 4 + 2 * 6 + 3);
    }

    #[test]
    fn the_constants_are_formats_that_exist() {
        for format in [ImageFormat::B8G8R8A8_UNORM, ImageFormat::R16G16B16A16_SFLOAT, ImageFormat::R32G32B32A32_SINT] {
            assert_eq!(ImageFormat::new(format.order(), format.channel_type()), Some(format));
        }
        assert_eq!(ImageFormat::new(ChannelOrder::Intensity, ChannelType::SignedInt8), None);
        assert_eq!(ImageFormat::new(ChannelOrder::Argb, ChannelType::Float32), None);
        assert_eq!(ImageFormat::new(ChannelOrder::Srgba, ChannelType::UnormInt16), None);
        assert_eq!(
            ImageFormat::new(ChannelOrder::Rgb, ChannelType::UnormShort555).map(ImageFormat::pixel_size),
            Some(2)
        );
    }
}
