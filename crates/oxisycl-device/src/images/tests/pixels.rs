//! Single pixels of every format.

use std::vec::Vec;

use half::f16;
use oxisycl_types::{ChannelOrder, ChannelType, ImageFormat};

use super::super::channel::{
    from_half, part_by_products, quotient, snorm, to_half, to_snorm, to_unorm, unorm, unorm_by_products,
};
use super::super::srgb;
use super::model::{decode, linear, names, packed, random_bytes};
use super::{Memory, Random};
use crate::vector::{Float4, Int4, Uint4};

#[test]
fn every_number_of_a_normalized_channel_is_rounded_once_on_host_and_devices() {
    fn check<const MAX: u32>() {
        for bits in (0..=MAX).step_by(if cfg!(miri) { 97 } else { 1 }).chain([MAX]) {
            let exact = (f64::from(bits) / f64::from(MAX)) as f32;
            assert_eq!(unorm::<MAX>(bits), exact, "{bits} of {MAX}");
            assert_eq!(part_by_products::<MAX>(bits as f32), exact, "{bits} of {MAX}");
            assert!(MAX > 1023 || unorm_by_products::<MAX>(bits) == exact, "{bits} of {MAX}");
            assert_eq!(to_unorm::<MAX>(exact), bits);
        }
    }
    check::<31>();
    check::<63>();
    check::<255>();
    check::<1023>();
    check::<65535>();
    fn check_signed<const MAX: u32>() {
        let max = MAX as i32;
        for bits in (-max - 1..=max).step_by(if cfg!(miri) { 97 } else { 1 }).chain([max]) {
            let exact = (f64::from(bits) / f64::from(MAX)).max(-1.0) as f32;
            assert_eq!(snorm::<MAX>(bits), exact, "{bits} of {MAX}");
            assert_eq!(part_by_products::<MAX>(bits.max(-max) as f32), exact, "{bits} of {MAX}");
            assert_eq!(to_snorm::<MAX>(exact), bits.max(-max));
        }
    }
    check_signed::<127>();
    check_signed::<32767>();
}

#[test]
fn floats_of_16_bits_are_those_of_the_crate_half() {
    for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 251 } else { 1 }) {
        let (ours, theirs) = (from_half(bits), f16::from_bits(bits).to_f32());
        assert!(ours == theirs || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        let back = to_half(ours);
        assert!(back == bits || ours.is_nan() && f16::from_bits(back).is_nan(), "{bits:#x}");
    }
    let mut random = Random(1);
    for i in 0..if cfg!(miri) { 100 } else { 200_000 } {
        // Small ones, and any.
        let bits = random.next() as u32;
        let x = f32::from_bits(if i % 2 == 0 { bits } else { bits & 0x8fff_ffff | 0x3000_0000 });
        let theirs = f16::from_f32(x);
        assert!(to_half(x) == theirs.to_bits() || x.is_nan() && f16::from_bits(to_half(x)).is_nan(), "{x:e}");
    }
    for x in [65519.0, 65520.0, 65535.0, 65536.0, f32::INFINITY, -65520.0, 5.9604645e-8, 2.9802322e-8, 2.98023e-8] {
        assert_eq!(to_half(x), f16::from_f32(x).to_bits(), "{x:e}");
    }
}

/// Any floats up to `MAX`: devices divide as the host does.
fn mixtures_are_divided_as_on_the_host<const MAX: u32>() {
    let (mut random, n) = (Random(u64::from(MAX)), if cfg!(miri) { 50 } else { 200_000 });
    for _ in 0..n {
        let number = (random.next() as u32 % (MAX << 8)) as f32 / 256.0 + (random.next() as u32 % 256) as f32 / 65536.0;
        assert_eq!(quotient::<MAX>(number), number / MAX as f32, "{number:e} of {MAX}");
        assert_eq!(quotient::<MAX>(-number), -number / MAX as f32, "-{number:e} of {MAX}");
    }
}

#[test]
fn mixtures_of_pixels_are_rounded_once() {
    mixtures_are_divided_as_on_the_host::<127>();
    mixtures_are_divided_as_on_the_host::<255>();
    mixtures_are_divided_as_on_the_host::<32767>();
    mixtures_are_divided_as_on_the_host::<65535>();
}

#[test]
fn the_tables_of_srgb_are_its_curve_and_lead_back() {
    for channel in 0..=255 {
        let value = srgb::to_linear(channel);
        let exact = linear(f64::from(channel) / 255.0);
        assert!((f64::from(value) - exact).abs() <= exact * f64::from(f32::EPSILON) / 2.0 * 1.001, "{channel}");
        assert_eq!(srgb::from_linear(value), channel);
        // The channel changes in the middle to the next one.
        let middle = linear((f64::from(channel) + 0.5) / 255.0);
        assert_eq!(srgb::from_linear((middle * 0.999_999) as f32), channel);
        assert_eq!(srgb::from_linear((middle * 1.000_001) as f32), channel.saturating_add(1));
    }
    for (value, channel) in [(-1.0, 0), (f32::NAN, 0), (2.0, 255), (f32::INFINITY, 255)] {
        assert_eq!(srgb::from_linear(value), channel);
    }
}

#[test]
fn pixels_of_every_format_are_read_as_their_bytes_say() {
    let mut random = Random(2);
    for format in ImageFormat::all() {
        let n = if cfg!(miri) { 3 } else { 500 };
        let bytes = random_bytes(&mut random, format, n);
        let mut memory = Memory::new(format, &bytes);
        let pixels = memory.pixels([n]);
        for (i, pixel) in bytes.chunks(format.pixel_size()).take(n).enumerate() {
            let expected = decode(format, pixel);
            // SAFETY: the memory lives, and nothing writes it.
            let read = unsafe {
                match format.channel_type() {
                    t if t.is_signed() => pixels.load::<Int4, false>([i]).to_array().map(f64::from),
                    t if t.is_unsigned() => pixels.load::<Uint4, false>([i]).to_array().map(f64::from),
                    _ => pixels.load::<Float4, false>([i]).to_array().map(f64::from),
                }
            };
            if format.channel_type().is_float() {
                let is_near =
                    |(x, y): (f64, f64)| x == f64::from(y as f32) || format.order().is_srgb() && (x - y).abs() < 1e-7;
                assert!(read.into_iter().zip(expected).all(is_near), "{format} {pixel:?}: {read:?}, not {expected:?}");
            } else {
                assert_eq!(read, expected, "{format} {pixel:?}");
            }
        }
        // SAFETY: as above.
        let outside = unsafe { pixels.load::<Float4, false>([n]) };
        assert_eq!(outside.to_array(), [0.0, 0.0, 0.0, f32::from(format.border_alpha())], "{format}");
    }
}

/// What is stored for one channel: the number nearest to `value`, as bytes.
fn stored(channel_type: ChannelType, value: f32) -> Vec<u8> {
    let nearest = |max: f32| {
        let scaled = f64::from(value * max).clamp(0.0, f64::from(max)).round_ties_even();
        if value.is_nan() { 0 } else { scaled as u64 }
    };
    let nearest_signed = |max: f32| {
        let scaled = f64::from(value * max).clamp(-f64::from(max), f64::from(max)).round_ties_even();
        if value.is_nan() { 0 } else { scaled as i64 }
    };
    match channel_type {
        ChannelType::SnormInt8 => [nearest_signed(127.0) as u8].into(),
        ChannelType::SnormInt16 => (nearest_signed(32767.0) as u16).to_le_bytes().into(),
        ChannelType::UnormInt8 => [nearest(255.0) as u8].into(),
        ChannelType::UnormInt16 => (nearest(65535.0) as u16).to_le_bytes().into(),
        ChannelType::Float16 => f16::from_f32(value).to_bits().to_le_bytes().into(),
        _ => value.to_le_bytes().into(),
    }
}

fn part(colour: [f32; 4], name: u8) -> f32 {
    match name {
        b'g' => colour[1],
        b'b' => colour[2],
        b'a' => colour[3],
        _ => colour[0],
    }
}

#[test]
fn pixels_of_every_float_format_are_stored_rounded_to_the_nearest_and_touch_no_neighbour() {
    let mut random = Random(3);
    let special =
        [0.5, 0.0, -0.0, 1.0, -1.0, 7.0, -7.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.5 / 255.0, 2.5 / 255.0];
    for format in ImageFormat::all().filter(|format| format.channel_type().is_float()) {
        for _ in 0..if cfg!(miri) { 2 } else { 300 } {
            let colour: [f32; 4] = core::array::from_fn(|_| match random.next() % 3 {
                0 => special[random.next() as usize % special.len()],
                _ => random.float(-1.2, 1.2) as f32,
            });
            let mut expected = Vec::new();
            if let Some(places) = packed(format.channel_type()) {
                let mut bits = 0;
                for ((begin, n_bits), name) in places.into_iter().zip(names(format.order()).bytes()) {
                    let max = ((1 << n_bits) - 1) as f32;
                    let value = part(colour, name);
                    let scaled = f64::from(value * max).clamp(0.0, f64::from(max)).round_ties_even();
                    bits |= if value.is_nan() { 0 } else { (scaled as u32) << begin };
                }
                expected.extend(&bits.to_le_bytes()[..format.pixel_size()]);
            } else {
                for name in names(format.order()).bytes() {
                    let value = part(colour, name);
                    if format.order().is_srgb() && name != b'a' {
                        expected.push(srgb::from_linear(value));
                    } else {
                        expected.extend(stored(format.channel_type(), value));
                    }
                }
            }
            let size = format.pixel_size();
            let mut memory = Memory::new(format, &std::vec![0xa5; 3 * size]);
            let pixels = memory.pixels([3]);
            // SAFETY: nothing else uses the memory.
            unsafe {
                pixels.store([1], Float4::from_array(colour));
                pixels.store([3], Float4::from_array(colour));
                pixels.store([usize::MAX], Float4::from_array(colour));
            }
            let bytes = memory.bytes();
            // Which NaN a float becomes is not said.
            let holds_floats = matches!(format.channel_type(), ChannelType::Float16 | ChannelType::Float32);
            if !holds_floats || !colour.iter().any(|x| x.is_nan()) {
                assert_eq!(&bytes[size..2 * size], expected, "{format} {colour:?}");
            }
            assert!(bytes[..size].iter().chain(&bytes[2 * size..3 * size]).all(|&byte| byte == 0xa5), "{format}");
        }
    }
}

#[test]
fn integers_are_clamped_to_the_channel() {
    let format = |channel_type| ImageFormat::new(ChannelOrder::Ra, channel_type).unwrap();
    let store = |channel_type, value: Int4| {
        let mut memory = Memory::new(format(channel_type), &[0; 16]);
        let pixels = memory.pixels([1]);
        // SAFETY: nothing else uses the memory.
        unsafe {
            pixels.store([0], value);
            pixels.load::<Int4, false>([0]).to_array()
        }
    };
    let value = Int4::new(i32::MIN, 1, 1, i32::MAX);
    assert_eq!(store(ChannelType::SignedInt8, value), [-128, 0, 0, 127]);
    assert_eq!(store(ChannelType::SignedInt16, value), [-32768, 0, 0, 32767]);
    assert_eq!(store(ChannelType::SignedInt32, value), [i32::MIN, 0, 0, i32::MAX]);
    let mut memory = Memory::new(format(ChannelType::UnsignedInt16), &[0; 16]);
    let pixels = memory.pixels([1]);
    // SAFETY: nothing else uses the memory.
    let read = unsafe {
        pixels.store([0], Uint4::new(u32::MAX, 1, 1, 7));
        pixels.load::<Uint4, false>([0])
    };
    assert_eq!(read.to_array(), [65535, 0, 0, 7]);
}

#[cfg(feature = "half")]
#[test]
fn pixels_as_half_floats_are_those_as_floats_rounded() {
    use crate::vector::Half4;

    let mut random = Random(4);
    for format in ImageFormat::all().filter(|format| format.channel_type().is_float()) {
        let mut memory = Memory::new(format, &random_bytes(&mut random, format, 1));
        let pixels = memory.pixels([1]);
        // SAFETY: nothing else uses the memory.
        unsafe {
            let (single, half) = (pixels.load::<Float4, false>([0]), pixels.load::<Half4, false>([0]));
            assert_eq!(half.to_array(), single.to_array().map(f16::from_f32), "{format}");
            pixels.store([0], half);
            let stored = pixels.load::<Float4, false>([0]);
            pixels.store([0], Float4::from_array(half.to_array().map(f16::to_f32)));
            assert_eq!(stored, pixels.load::<Float4, false>([0]), "{format}");
        }
    }
}
