//! The model: pixels as bytes, channels by their definition, images that go on for ever.

use std::vec::Vec;

use half::f16;
use oxisycl_types::{
    AddressingMode, ChannelOrder as Order, ChannelType as Type, CoordinateMode, FilteringMode, ImageFormat,
    ImageSampler,
};

use super::Random;

/// The names of the channels in memory. `i` is for all of red, green, blue and alpha, `l` for the first three.
pub(super) fn names(order: Order) -> &'static str {
    match order {
        Order::A => "a",
        Order::R | Order::Rx => "r",
        Order::Rg | Order::Rgx => "rg",
        Order::Ra => "ra",
        Order::Rgb | Order::Rgbx | Order::Srgb => "rgb",
        Order::Rgba | Order::Srgba => "rgba",
        Order::Argb => "argb",
        Order::Bgra | Order::Sbgra => "bgra",
        Order::Abgr => "abgr",
        Order::Intensity => "i",
        Order::Luminance => "l",
    }
}

/// Where the bits of a packed channel begin, and how many there are.
pub(super) fn packed(channel_type: Type) -> Option<[(u32, u32); 3]> {
    match channel_type {
        Type::UnormShort565 => Some([(11, 5), (5, 6), (0, 5)]),
        Type::UnormShort555 => Some([(10, 5), (5, 5), (0, 5)]),
        Type::UnormInt101010 => Some([(20, 10), (10, 10), (0, 10)]),
        _ => None,
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    (unsigned(bytes) << unused) as i64 >> unused
}

/// The linear value of a part of 1 along the curve of sRGB.
pub(super) fn linear(part: f64) -> f64 {
    if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
}

/// The number of a channel.
fn channel(channel_type: Type, is_curved: bool, bytes: &[u8]) -> f64 {
    let unorm = |max: f64| unsigned(bytes) as f64 / max;
    match channel_type {
        Type::SnormInt8 => (signed(bytes) as f64 / 127.0).max(-1.0),
        Type::SnormInt16 => (signed(bytes) as f64 / 32767.0).max(-1.0),
        Type::UnormInt8 if is_curved => linear(unorm(255.0)),
        Type::UnormInt8 => unorm(255.0),
        Type::UnormInt16 => unorm(65535.0),
        Type::SignedInt8 | Type::SignedInt16 | Type::SignedInt32 => signed(bytes) as f64,
        Type::UnsignedInt8 | Type::UnsignedInt16 | Type::UnsignedInt32 => unsigned(bytes) as f64,
        Type::Float16 => f16::from_bits(unsigned(bytes) as u16).to_f64(),
        Type::Float32 => f64::from(f32::from_bits(unsigned(bytes) as u32)),
        _ => unreachable!("packed"),
    }
}

/// Red, green, blue and alpha of a pixel's bytes.
pub(super) fn decode(format: ImageFormat, pixel: &[u8]) -> [f64; 4] {
    let names = names(format.order());
    let mut channels = Vec::new();
    if let Some(places) = packed(format.channel_type()) {
        let bits = unsigned(pixel);
        for (begin, n_bits) in places {
            let max = (1 << n_bits) - 1;
            channels.push((bits >> begin & max) as f64 / max as f64);
        }
    } else {
        for (bytes, name) in pixel.chunks(format.channel_type().size()).zip(names.bytes()) {
            let is_curved = format.order().is_srgb() && name != b'a';
            channels.push(channel(format.channel_type(), is_curved, bytes));
        }
    }
    let mut colour = [0.0, 0.0, 0.0, 1.0];
    for (value, name) in channels.into_iter().zip(names.bytes()) {
        match name {
            b'r' => colour[0] = value,
            b'g' => colour[1] = value,
            b'b' => colour[2] = value,
            b'a' => colour[3] = value,
            b'l' => colour = [value, value, value, 1.0],
            _ => colour = [value; 4],
        }
    }
    colour
}

/// Bytes of pixels that are all different, with the ends of each channel's range among them, and floats that are finite.
pub(super) fn random_bytes(random: &mut Random, format: ImageFormat, n_pixels: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < n_pixels * format.pixel_size() {
        match format.channel_type() {
            Type::Float16 => bytes.extend(f16::from_f64(random.float(-2.0, 2.0)).to_bits().to_le_bytes()),
            Type::Float32 => bytes.extend((random.float(-2.0, 2.0) as f32).to_le_bytes()),
            _ if random.next().is_multiple_of(8) => {
                bytes.extend([0x80, 0xff, 0x7f, 0x00][random.next() as usize % 4..][..1].iter())
            }
            _ => bytes.push(random.next() as u8),
        }
    }
    bytes
}

/// Which position an integer beyond the extent stands for; `None` is the border.
fn tiled(addressing: AddressingMode, at: i64, extent: i64) -> Option<i64> {
    match addressing {
        AddressingMode::Repeat => Some(at.rem_euclid(extent)),
        AddressingMode::MirroredRepeat => {
            let at = at.rem_euclid(2 * extent);
            Some(if at < extent { at } else { 2 * extent - 1 - at })
        }
        AddressingMode::ClampToEdge => Some(at.clamp(0, extent - 1)),
        _ => (0..extent).contains(&at).then_some(at),
    }
}

/// What a sampler gives, and how near the coordinates are to where a nearest pixel changes.
pub(super) fn sample(
    format: ImageFormat,
    bytes: &[u8],
    extent: &[usize],
    sampler: ImageSampler,
    coordinates: &[f32],
) -> ([f64; 4], f64) {
    let pixel = |index: &[i64]| {
        let mut position = 0;
        for (&at, &n) in index.iter().zip(extent) {
            match tiled(sampler.addressing, at, n as i64) {
                Some(at) => position = position * n + at as usize,
                None => return [0.0, 0.0, 0.0, f64::from(format.border_alpha())],
            }
        }
        decode(format, &bytes[position * format.pixel_size()..][..format.pixel_size()])
    };
    let mut distance = f64::INFINITY;
    let places: Vec<f64> = coordinates
        .iter()
        .zip(extent)
        .map(|(&coordinate, &n)| match sampler.coordinates {
            CoordinateMode::Normalized => f64::from(coordinate) * n as f64,
            CoordinateMode::Unnormalized => f64::from(coordinate),
        })
        .inspect(|place| distance = distance.min((place - place.round()).abs()))
        .collect();
    if sampler.filtering == FilteringMode::Nearest || !format.channel_type().is_float() {
        let position = |(&place, &n): (&f64, &usize)| {
            let at = place.floor();
            // In a mirrored copy, the end between two pixels belongs to the other one.
            let is_mirrored =
                sampler.addressing == AddressingMode::MirroredRepeat && (at / n as f64).floor() % 2.0 != 0.0;
            at as i64 - i64::from(is_mirrored && at == place)
        };
        let index: Vec<i64> = places.iter().zip(extent).map(position).collect();
        return (pixel(&index), distance);
    }
    // All corners, each with the product of its weights.
    let mut sum = [0.0; 4];
    for corner in 0..1 << extent.len() {
        let mut weight = 1.0;
        let mut index = Vec::new();
        for (d, place) in places.iter().enumerate() {
            let first = (place - 0.5).floor();
            let part = place - 0.5 - first;
            let is_second = corner >> d & 1 == 1;
            weight *= if is_second { part } else { 1.0 - part };
            index.push(first as i64 + i64::from(is_second));
        }
        for (sum, value) in sum.iter_mut().zip(pixel(&index)) {
            *sum += weight * value;
        }
    }
    (sum, distance)
}
