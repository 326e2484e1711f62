//! What kernels see of a pixel: a vector of red, green, blue and alpha.

use oxisycl_types::{ChannelOrder, ChannelType, ImageFormat};

use super::channel::{from_half, part_of_mixture, snorm, to_half, to_snorm, to_unorm, unorm};
use super::srgb;
use crate::DeviceCopyable;
#[cfg(feature = "half")]
use crate::vector::Half4;
use crate::vector::{Float4, Int4, Uint4};

/// What a pixel is read and written as: red, green, blue and alpha (SYCL 2020 section 4.7.6.13, `DataT`). A [`Float4`], [`Int4`], [`Uint4`] or,
/// with the feature `half`, a `Half4`. Implemented by this crate only.
///
/// | channels | data |
/// |---|---|
/// | normalized, floats | `Float4`, `Half4` |
/// | signed integers | `Int4` |
/// | unsigned integers | `Uint4` |
///
/// Normalized numbers are rounded once when they are read. What is written is clamped to the channel's range, and rounded to the nearest number of
/// the channel, the even one of two. A NaN that is written to a channel of integers is 0.
#[diagnostic::on_unimplemented(
    message = "a pixel cannot be read or written as `{Self}`",
    note = "pixels are `Float4`, `Int4`, `Uint4`, or `Half4` with the feature `half`"
)]
pub trait PixelData: sealed::Data + DeviceCopyable {}

pub(super) mod sealed {
    use super::{ChannelType, Float4, ImageFormat};

    /// How pixels are converted; not for users.
    pub trait Data: Copy {
        /// The name of the data, for messages.
        const NAME: &'static str;
        /// Whether pixels between others are mixed.
        const MIXES: bool;
        /// Whether pixels of the channel type are read as this.
        fn takes(channel_type: ChannelType) -> bool;
        /// A pixel by its channels in memory.
        fn decode(format: ImageFormat, channels: [u32; 4]) -> Self;
        /// The channels in memory.
        fn encode(self, format: ImageFormat) -> [u32; 4];
        /// The colour beyond the image.
        fn border(format: ImageFormat) -> Self;
        /// What pixels were mixed to.
        fn of_mixed(mixed: Float4) -> Self;
    }
}

/// Red, green, blue and alpha of channels in the order of memory.
#[inline(always)]
fn from_memory<T: Copy>(order: ChannelOrder, [a, b, c, d]: [T; 4], zero: T, one: T) -> [T; 4] {
    use ChannelOrder as Order;
    match order {
        Order::A => [zero, zero, zero, a],
        Order::R | Order::Rx => [a, zero, zero, one],
        Order::Rg | Order::Rgx => [a, b, zero, one],
        Order::Ra => [a, zero, zero, b],
        Order::Rgb | Order::Rgbx | Order::Srgb => [a, b, c, one],
        Order::Rgba | Order::Srgba => [a, b, c, d],
        Order::Argb => [b, c, d, a],
        Order::Bgra | Order::Sbgra => [c, b, a, d],
        Order::Abgr => [d, c, b, a],
        Order::Intensity => [a, a, a, a],
        Order::Luminance => [a, a, a, one],
    }
}

/// Channels in the order of memory of red, green, blue and alpha. Those that the order does not have are any.
#[inline(always)]
fn to_memory<T: Copy>(order: ChannelOrder, [r, g, b, a]: [T; 4]) -> [T; 4] {
    use ChannelOrder as Order;
    match order {
        Order::A => [a; 4],
        Order::Ra => [r, a, a, a],
        Order::Argb => [a, r, g, b],
        Order::Bgra | Order::Sbgra => [b, g, r, a],
        Order::Abgr => [a, b, g, r],
        _ => [r, g, b, a],
    }
}

/// Whether the channel at that place of memory follows the curve of sRGB. Alpha comes last, and does not.
#[inline(always)]
fn is_curved(format: ImageFormat, place: usize) -> bool {
    format.order().is_srgb() && place < 3
}

#[inline(always)]
fn float_of(format: ImageFormat, place: usize, bits: u32) -> f32 {
    match format.channel_type() {
        ChannelType::SnormInt8 => snorm::<127>(i32::from(bits as u8 as i8)),
        ChannelType::SnormInt16 => snorm::<32767>(i32::from(bits as u16 as i16)),
        ChannelType::UnormInt8 if is_curved(format, place) => srgb::to_linear(bits as u8),
        ChannelType::UnormInt8 => unorm::<255>(bits),
        ChannelType::UnormInt16 => unorm::<65535>(bits),
        ChannelType::UnormShort565 if place == 1 => unorm::<63>(bits),
        ChannelType::UnormShort565 | ChannelType::UnormShort555 => unorm::<31>(bits),
        ChannelType::UnormInt101010 => unorm::<1023>(bits),
        ChannelType::Float16 => from_half(bits as u16),
        _ => f32::from_bits(bits),
    }
}

#[inline(always)]
fn bits_of(format: ImageFormat, place: usize, value: f32) -> u32 {
    match format.channel_type() {
        ChannelType::SnormInt8 => to_snorm::<127>(value) as u32,
        ChannelType::SnormInt16 => to_snorm::<32767>(value) as u32,
        ChannelType::UnormInt8 if is_curved(format, place) => u32::from(srgb::from_linear(value)),
        ChannelType::UnormInt8 => to_unorm::<255>(value),
        ChannelType::UnormInt16 => to_unorm::<65535>(value),
        ChannelType::UnormShort565 if place == 1 => to_unorm::<63>(value),
        ChannelType::UnormShort565 | ChannelType::UnormShort555 => to_unorm::<31>(value),
        ChannelType::UnormInt101010 => to_unorm::<1023>(value),
        ChannelType::Float16 => u32::from(to_half(value)),
        _ => value.to_bits(),
    }
}

/// What a function gives for the four channels of a format. No closure: one that captured the format would be compiled for all formats, and LLVM
/// would not inline it.
macro_rules! each {
    ($channels:expr, $f:ident($format:expr)) => {{
        let [a, b, c, d] = $channels;
        [$f($format, 0, a), $f($format, 1, b), $f($format, 2, c), $f($format, 3, d)]
    }};
}

/// What a channel is mixed as.
#[inline(always)]
fn number_to_mix(format: ImageFormat, place: usize, bits: u32) -> f32 {
    match format.channel_type() {
        _ if whole(format) == 1.0 => float_of(format, place, bits),
        ChannelType::SnormInt8 => i32::from(bits as u8 as i8).max(-127) as f32,
        ChannelType::SnormInt16 => i32::from(bits as u16 as i16).max(-32767) as f32,
        _ => bits as i32 as f32,
    }
}

/// What pixels are mixed as: numbers of normalized channels as they are in memory, if all of them are parts of the same number. So a mixture is
/// divided, and not each pixel of it.
#[inline(always)]
pub(super) fn decode_to_mix(format: ImageFormat, channels: [u32; 4]) -> Float4 {
    let channels = each!(channels, number_to_mix(format));
    Float4::from_array(from_memory(format.order(), channels, 0.0, whole(format)))
}

/// The colour beyond the image, as pixels are mixed.
#[inline(always)]
pub(super) fn border_to_mix(format: ImageFormat) -> Float4 {
    Float4::from_array([0.0, 0.0, 0.0, whole(format) * f32::from(format.border_alpha())])
}

#[inline(always)]
fn part_of_1(format: ImageFormat, _place: usize, mixed: f32) -> f32 {
    match format.channel_type() {
        _ if whole(format) == 1.0 => mixed,
        ChannelType::SnormInt8 => part_of_mixture::<127>(mixed),
        ChannelType::SnormInt16 => part_of_mixture::<32767>(mixed),
        ChannelType::UnormInt8 => part_of_mixture::<255>(mixed),
        _ => part_of_mixture::<65535>(mixed),
    }
}

/// The mixture as parts of 1.
#[inline(always)]
pub(super) fn decode_mixed(format: ImageFormat, mixed: Float4) -> Float4 {
    Float4::from_array(each!(mixed.to_array(), part_of_1(format)))
}

/// What the numbers of pixels that are mixed are parts of.
#[inline(always)]
fn whole(format: ImageFormat) -> f32 {
    match format.channel_type() {
        ChannelType::SnormInt8 => 127.0,
        ChannelType::SnormInt16 => 32767.0,
        ChannelType::UnormInt8 if !format.order().is_srgb() => 255.0,
        ChannelType::UnormInt16 => 65535.0,
        _ => 1.0,
    }
}

/// Whether a pixel of zeros is the colour beyond the image.
#[inline(always)]
pub(super) fn has_border_of_zeros(format: ImageFormat) -> bool {
    // A pixel without alpha has alpha 1, and so has the border where the order has no place for it.
    !matches!(format.order(), ChannelOrder::Rx | ChannelOrder::Rgx | ChannelOrder::Rgbx)
}

impl PixelData for Float4 {}
impl sealed::Data for Float4 {
    const NAME: &'static str = "Float4";
    const MIXES: bool = true;

    #[inline(always)]
    fn takes(channel_type: ChannelType) -> bool {
        channel_type.is_float()
    }

    #[inline(always)]
    fn decode(format: ImageFormat, channels: [u32; 4]) -> Self {
        let channels = each!(channels, float_of(format));
        Self::from_array(from_memory(format.order(), channels, 0.0, 1.0))
    }

    #[inline(always)]
    fn encode(self, format: ImageFormat) -> [u32; 4] {
        each!(to_memory(format.order(), self.to_array()), bits_of(format))
    }

    #[inline(always)]
    fn border(format: ImageFormat) -> Self {
        Self::from_array([0.0, 0.0, 0.0, f32::from(format.border_alpha())])
    }

    #[inline(always)]
    fn of_mixed(mixed: Float4) -> Self {
        mixed
    }
}

#[cfg(feature = "half")]
impl PixelData for Half4 {}
#[cfg(feature = "half")]
impl sealed::Data for Half4 {
    const NAME: &'static str = "Half4";
    const MIXES: bool = true;

    #[inline(always)]
    fn takes(channel_type: ChannelType) -> bool {
        channel_type.is_float()
    }

    #[inline(always)]
    fn decode(format: ImageFormat, channels: [u32; 4]) -> Self {
        Self::of_mixed(Float4::decode(format, channels))
    }

    #[inline(always)]
    fn encode(self, format: ImageFormat) -> [u32; 4] {
        Float4::from_array(self.to_array().map(|x| from_half(x.to_bits()))).encode(format)
    }

    #[inline(always)]
    fn border(format: ImageFormat) -> Self {
        Self::of_mixed(Float4::border(format))
    }

    #[inline(always)]
    fn of_mixed(mixed: Float4) -> Self {
        Self::from_array(mixed.to_array().map(|x| half::f16::from_bits(to_half(x))))
    }
}

macro_rules! integers {
    ($($data:ident $element:ident $takes:ident: $small:ident $medium:ident;)*) => { $(
        impl PixelData for $data {}
        impl sealed::Data for $data {
                    const NAME: &'static str = stringify!($data);
            const MIXES: bool = false;

            #[inline(always)]
            fn takes(channel_type: ChannelType) -> bool {
                channel_type.$takes()
            }

            #[inline(always)]
            fn decode(format: ImageFormat, channels: [u32; 4]) -> Self {
                let channels = channels.map(|bits| match format.channel_type().size() {
                    1 => $element::from(bits as $small),
                    2 => $element::from(bits as $medium),
                    _ => bits as $element,
                });
                Self::from_array(from_memory(format.order(), channels, 0, 1))
            }

            #[inline(always)]
            fn encode(self, format: ImageFormat) -> [u32; 4] {
                to_memory(format.order(), self.to_array()).map(|value| match format.channel_type().size() {
                    1 => value.clamp($small::MIN as $element, $small::MAX as $element) as u32,
                    2 => value.clamp($medium::MIN as $element, $medium::MAX as $element) as u32,
                    _ => value as u32,
                })
            }

            #[inline(always)]
            fn border(format: ImageFormat) -> Self {
                Self::from_array([0, 0, 0, $element::from(format.border_alpha())])
            }

            #[inline(always)]
            fn of_mixed(mixed: Float4) -> Self {
                Self::from_array(mixed.to_array().map(|x| x as $element))
            }
        }
    )* };
}

integers! {
    Int4 i32 is_signed: i8 i16;
    Uint4 u32 is_unsigned: u8 u16;
}
