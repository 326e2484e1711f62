//! Pixels in memory: their channels as numbers of up to 32 bits, in the order of memory.

use oxisycl_types::{ChannelType, ImageFormat};

use crate::builtin;
use crate::vector::Uint4;

// The first channel has the lowest bits of a number that has several.
const _: () = assert!(cfg!(target_endian = "little"), "pixels are loaded as numbers of a little-endian processor");
// A pixel is loaded and stored as one number of its size, where it has one. Its alignment is that size.
const _: () = assert!(
    align_of::<u64>() <= 8 && align_of::<Uint4>() <= 16,
    "pixels are aligned for the numbers that they are loaded as"
);

/// Loads a value that nothing writes while the kernel runs if `CONSTANT`.
///
/// # Safety
/// The address is aligned and valid for a load. With `CONSTANT`, nothing writes there while the kernel runs.
#[inline(always)]
unsafe fn load<T: Copy, const CONSTANT: bool>(pixel: *const u8) -> T {
    let pixel = pixel.cast::<T>();
    // SAFETY: by the contract of this function.
    unsafe { if CONSTANT { builtin::load_constant(pixel) } else { *pixel } }
}

/// The channels of a pixel. One that the pixel does not have is zero.
///
/// # Safety
/// A pixel of the format is at the address, with [its alignment](ImageFormat::alignment). With `CONSTANT`, nothing writes it while the kernel
/// runs.
#[inline(always)]
pub(super) unsafe fn load_channels<const CONSTANT: bool>(format: ImageFormat, pixel: *const u8) -> [u32; 4] {
    // SAFETY: each load is a part of the pixel. It is one number of the pixel's size, which is its alignment then, or one of a channel's size.
    unsafe {
        let byte = |i: usize| u32::from(load::<u8, CONSTANT>(pixel.wrapping_add(i)));
        let short = |i: usize| u32::from(load::<u16, CONSTANT>(pixel.wrapping_add(2 * i)));
        let word = |i: usize| load::<u32, CONSTANT>(pixel.wrapping_add(4 * i));
        match format.channel_type() {
            ChannelType::UnormShort565 => {
                let bits = short(0);
                return [bits >> 11, bits >> 5 & 63, bits & 31, 0];
            }
            ChannelType::UnormShort555 => {
                let bits = short(0);
                return [bits >> 10 & 31, bits >> 5 & 31, bits & 31, 0];
            }
            ChannelType::UnormInt101010 => {
                let bits = word(0);
                return [bits >> 20 & 1023, bits >> 10 & 1023, bits & 1023, 0];
            }
            _ => {}
        }
        match (format.channel_type().size(), format.order().n_channels()) {
            (1, 1) => [byte(0), 0, 0, 0],
            (1, 2) => {
                let bits = short(0);
                [bits & 0xff, bits >> 8, 0, 0]
            }
            (1, 3) => [byte(0), byte(1), byte(2), 0],
            (1, _) => {
                let bits = word(0);
                [bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff, bits >> 24]
            }
            (2, 1) => [short(0), 0, 0, 0],
            (2, 2) => {
                let bits = word(0);
                [bits & 0xffff, bits >> 16, 0, 0]
            }
            (2, 3) => [short(0), short(1), short(2), 0],
            (2, _) => {
                let bits = load::<u64, CONSTANT>(pixel);
                [bits & 0xffff, bits >> 16 & 0xffff, bits >> 32 & 0xffff, bits >> 48].map(|channel| channel as u32)
            }
            (_, 1) => [word(0), 0, 0, 0],
            (_, 2) => {
                let bits = load::<u64, CONSTANT>(pixel);
                [bits as u32, (bits >> 32) as u32, 0, 0]
            }
            (_, 3) => [word(0), word(1), word(2), 0],
            (_, _) => load::<Uint4, CONSTANT>(pixel).to_array(),
        }
    }
}

/// Stores a pixel of these channels. The pixel has as many of them as its format, and as many bits of each.
///
/// # Safety
/// A pixel of the format is at the address, with [its alignment](ImageFormat::alignment). Nothing else uses it meanwhile.
#[inline(always)]
pub(super) unsafe fn store_channels(format: ImageFormat, pixel: *mut u8, [a, b, c, d]: [u32; 4]) {
    // SAFETY: as in `load_channels`.
    unsafe {
        let byte = |i: usize, value: u32| *pixel.wrapping_add(i) = value as u8;
        let short = |i: usize, value: u32| *pixel.wrapping_add(2 * i).cast::<u16>() = value as u16;
        let word = |i: usize, value: u32| *pixel.wrapping_add(4 * i).cast::<u32>() = value;
        let double = |low: u32, high: u32| *pixel.cast::<u64>() = u64::from(low) | u64::from(high) << 32;
        let pair = |low: u32, high: u32| low & 0xffff | high << 16;
        match format.channel_type() {
            ChannelType::UnormShort565 => return short(0, a << 11 | b << 5 | c),
            ChannelType::UnormShort555 => return short(0, a << 10 | b << 5 | c),
            ChannelType::UnormInt101010 => return word(0, a << 20 | b << 10 | c),
            _ => {}
        }
        match (format.channel_type().size(), format.order().n_channels()) {
            (1, 1) => byte(0, a),
            (1, 2) => short(0, a & 0xff | b << 8),
            (1, 3) => {
                byte(0, a);
                byte(1, b);
                byte(2, c);
            }
            (1, _) => word(0, a & 0xff | (b & 0xff) << 8 | (c & 0xff) << 16 | d << 24),
            (2, 1) => short(0, a),
            (2, 2) => word(0, pair(a, b)),
            (2, 3) => {
                short(0, a);
                short(1, b);
                short(2, c);
            }
            (2, _) => double(pair(a, b), pair(c, d)),
            (_, 1) => word(0, a),
            (_, 2) => double(a, b),
            (_, 3) => {
                word(0, a);
                word(1, b);
                word(2, c);
            }
            (_, _) => *pixel.cast::<Uint4>() = Uint4::from_array([a, b, c, d]),
        }
    }
}
