//! Conversions against `as`, and against integers in which every rounding is exact.

use super::super::{Double2, Float2, Float4, Int2, Long2, MArray, Rounding, Uchar4, Uint2, Ulong2, Vector};
use super::{Boundaries, assert_same};

macro_rules! to_all {
    ($from:ident: $($to:ident)*) => { $(
        for (x, _) in $from::rows::<4>() {
            assert_same(Vector::from(x).convert::<$to>(), x.map(|x| x as $to));
        }
    )* };
}

macro_rules! between_all {
    ($($from:ident)*) => { $(
        to_all! { $from: i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }
    )* };
}

#[test]
fn conversions_without_a_mode_are_those_of_as() {
    between_all! { i8 u8 i16 u16 i32 u32 i64 u64 f32 f64 }
}

const ALL: [Rounding; 5] =
    [Rounding::Automatic, Rounding::ToEven, Rounding::TowardZero, Rounding::TowardPositive, Rounding::TowardNegative];

#[test]
fn numbers_become_integers_by_the_mode() {
    for (x, _) in f64::rows::<4>() {
        let rounded = |rounding: Rounding| {
            x.map(|x| match rounding {
                Rounding::Automatic | Rounding::TowardZero => x.trunc(),
                Rounding::ToEven => x.round_ties_even(),
                Rounding::TowardPositive => x.ceil(),
                Rounding::TowardNegative => x.floor(),
            })
        };
        for rounding in ALL {
            assert_same(Vector::from(x).convert_with::<i8>(rounding), rounded(rounding).map(|x| x as i8));
            assert_same(Vector::from(x).convert_with::<u64>(rounding), rounded(rounding).map(|x| x as u64));
            let single = x.map(|x| x as f32);
            assert_same(
                Vector::from(single).convert_with::<i32>(rounding),
                single.map(|x| Float2::splat(x).convert::<f64>().convert_with::<i32>(rounding)[0]),
            );
        }
    }
    assert_eq!(Float2::new(2.5, -2.5).convert_with::<i32>(Rounding::ToEven), Int2::new(2, -2));
    assert_eq!(Float2::new(2.5, -2.5).convert_with::<i32>(Rounding::TowardNegative), Int2::new(2, -3));
}

/// Compares an integer with a number exactly.
fn order(x: i128, y: f64) -> std::cmp::Ordering {
    if y.is_infinite() {
        return if y > 0.0 { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater };
    }
    x.cmp(&(y as i128))
}

macro_rules! from_integers {
    ($($from:ident $to:ident;)*) => { $(
        let near = [1_u64 << 24, 1 << 25, 1 << 53, 1 << 54, 1 << 62, 1 << 63];
        let near = near.iter().flat_map(|x| (0..8).flat_map(|i| [x.wrapping_sub(i), x.wrapping_add(i), u64::MAX - i]));
        let near = near.map(|x| x as $from).chain($from::ALL.iter().copied()).step_by(if cfg!(miri) { 17 } else { 1 });
        for x in near {
            let exact = i128::from(x);
            let convert = |rounding| f64::from(Vector::<$from, 1>::new(x).convert_with::<$to>(rounding).x());
            let down = convert(Rounding::TowardNegative);
            let up = convert(Rounding::TowardPositive);
            // Neighbours, or the number itself.
            assert!(order(exact, down).is_ge() && order(exact, up).is_le(), "{x}: {down} {up}");
            if order(exact, down).is_eq() || order(exact, up).is_eq() {
                assert_eq!(down, up, "{x}");
            } else {
                assert_eq!((down as $to).next_up(), up as $to, "{x}");
            }
            assert_eq!(convert(Rounding::TowardZero), if exact < 0 { up } else { down }, "{x}");
            assert_eq!(convert(Rounding::ToEven), f64::from(x as $to), "{x}");
            assert_eq!(convert(Rounding::Automatic), f64::from(x as $to), "{x}");
        }
    )* };
}

#[test]
fn integers_become_numbers_by_the_mode() {
    from_integers! { i8 f32; u16 f32; i32 f32; u32 f32; i64 f32; u64 f32; i64 f64; u64 f64; }
    let most = Ulong2::splat(u64::MAX);
    assert_eq!(most.convert_with::<f32>(Rounding::TowardZero)[0], 18446742974197923840.0);
    assert_eq!(most.convert_with::<f64>(Rounding::TowardPositive)[0], 18446744073709551616.0);
    assert_eq!(Long2::splat(i64::MAX).convert_with::<f64>(Rounding::TowardNegative)[0], 9223372036854774784.0);
}

#[test]
fn numbers_become_shorter_by_the_mode() {
    let with = |x: f64, rounding| Double2::splat(x).convert_with::<f32>(rounding)[0];
    for (x, _) in f64::rows::<1>() {
        for x in [x[0], x[0].next_up(), x[0].next_down()] {
            let (down, up) = (with(x, Rounding::TowardNegative), with(x, Rounding::TowardPositive));
            if x.is_nan() {
                assert!(down.is_nan() && up.is_nan() && with(x, Rounding::ToEven).is_nan());
                continue;
            }
            assert_eq!(with(x, Rounding::ToEven).to_bits(), (x as f32).to_bits());
            assert!(f64::from(down) <= x && f64::from(up) >= x, "{x}: {down} {up}");
            assert!(down == up || down.next_up() == up, "{x}: {down} {up}");
            assert_eq!(with(x, Rounding::TowardZero), if x < 0.0 { up } else { down });
        }
    }
    assert_eq!(with(1.0e300, Rounding::TowardZero), f32::MAX);
    assert_eq!(with(1.0e-300, Rounding::TowardPositive), f32::from_bits(1));
    assert_eq!(Float4::splat(-0.0).convert::<f64>()[0].to_bits(), (-0.0_f64).to_bits());
}

#[cfg(feature = "half")]
#[test]
fn halves_are_rounded_once() {
    use half::f16;

    use super::super::Half2;

    // 2 to the power of -n. `powi` need not be exact, and Miri's is not.
    let below_one = |n: u32| 1.0 / (1_u64 << n) as f64;
    // Just above the middle of 1 and the next half: a tie in `f32`, which would be rounded down.
    let above = 1.0 + below_one(11) + below_one(40);
    assert_eq!(f64::from(Double2::splat(above).convert::<f16>()[0]), 1.0 + below_one(10));
    assert_eq!(Double2::splat(1.0 + below_one(11)).convert::<f16>()[0], f16::ONE);
    let with = |x: f64, rounding| Double2::splat(x).convert_with::<f16>(rounding)[0].to_f32();
    assert_eq!((with(above, Rounding::TowardNegative), with(-above, Rounding::TowardPositive)), (1.0, -1.0));
    assert_eq!((with(1.0e9, Rounding::TowardZero), with(-1.0e9, Rounding::ToEven)), (65504.0, f32::NEG_INFINITY));
    assert_eq!(f64::from(with(-1.0e-30, Rounding::TowardNegative)), -below_one(24));
    assert!(with(f64::NAN, Rounding::ToEven).is_nan());
    assert_eq!(Int2::splat(2049).convert_with::<f16>(Rounding::TowardPositive)[0].to_f32(), 2050.0);
    // Integers that `f64` has, by way of which numbers come out as well.
    let near_ends = [2048, 65504, 65520, 65536, 1 << 24, 1 << 31, 1 << 40];
    for n in (0..4200).chain(near_ends.into_iter().flat_map(|n: i64| n - 40..n + 40)) {
        for (x, rounding) in [n, -n].into_iter().flat_map(|x| ALL.map(|rounding| (x, rounding))) {
            let (found, expected) = (Long2::splat(x).convert_with::<f16>(rounding)[0], with(x as f64, rounding));
            assert_eq!(found.to_f32(), expected, "{x} {rounding:?}");
            let unsigned = Ulong2::splat(n as u64).convert_with::<f16>(rounding)[0];
            assert_eq!(unsigned.to_f32(), with(n as f64, rounding), "{n} {rounding:?}");
        }
    }
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits);
        let v = Half2::splat(x);
        assert_eq!(v.convert::<i8>()[0], x.to_f32() as i8);
        if !x.is_nan() {
            let back =
                [v.convert::<f32>().convert::<f16>()[0], v.convert::<f64>().convert_with(Rounding::TowardZero)[0]];
            assert_eq!(back.map(f16::to_bits), [bits; 2]);
        }
    }
}

#[test]
fn bits_are_kept() {
    let bits = Float2::new(1.0, -0.0).bit_cast::<u32, 2>();
    assert_eq!(bits, Uint2::new(0x3f80_0000, 0x8000_0000));
    assert_eq!(bits.bit_cast::<f32, 2>()[1].to_bits(), 0x8000_0000);
    assert_eq!(Vector::<f32, 3>::splat(1.0).bit_cast::<i32, 3>(), Vector::splat(0x3f80_0000));
    let bytes = Vector::<u32, 1>::new(u32::from_ne_bytes([1, 2, 3, 4])).bit_cast::<u8, 4>();
    assert_eq!(bytes, Uchar4::new(1, 2, 3, 4));
    assert_eq!(bytes.bit_cast::<u16, 2>().bit_cast::<u8, 4>(), bytes);
    assert_eq!(MArray::from(bytes.to_array()).iter().sum::<u8>(), 10);
}
