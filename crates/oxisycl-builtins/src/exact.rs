//! Functions whose results are exact, for `f32` and `f64` by one text: remainders, and parts and neighbours of numbers.

/// A module of the functions for one type: its name, bits, signed integer, number of explicit mantissa bits and largest exponent.
macro_rules! exact {
    ($module:ident, $float:ident, $bits:ident, $signed:ident, $mantissa:literal, $bias:literal) => {
        #[doc = concat!("Functions of `", stringify!($float), "` whose results are exact.")]
        pub mod $module {
            use crate::operation::Operations;

            /// 2 to the power of `n`, for `n` from `1 - BIAS` to `BIAS`.
            #[inline(always)]
            fn power_of_two(n: i32) -> $float {
                $float::from_bits((($bias + n) as $bits) << $mantissa)
            }

            /// The exponent of a positive finite number, also of a subnormal one.
            #[inline(always)]
            fn exponent(x: $float) -> i32 {
                let is_small = x < $float::MIN_POSITIVE;
                let normal = if is_small { x * power_of_two($mantissa) } else { x };
                (normal.to_bits() >> $mantissa) as i32 - $bias - if is_small { $mantissa } else { 0 }
            }

            /// The rest of `x / y` towards zero, and the last bits of the quotient; both numbers are positive and finite.
            ///
            /// Each step takes as many bits of the quotient as a number holds. A rounded quotient is never too small, and at most 1 too
            /// large. The rest is a multiple of the divisor's last bit and not larger than the divisor, hence exact.
            #[inline(always)]
            fn divide(x: $float, y: $float) -> ($float, u64) {
                let (mut rest, mut quotient) = (x, 0_u64);
                let lowest = exponent(y);
                while rest >= y {
                    let up = (exponent(rest) - lowest - ($mantissa - 1)).max(0);
                    let divisor = y * power_of_two(up / 2) * power_of_two(up - up / 2);
                    let mut part = (rest / divisor).truncated();
                    rest = (-part).fma(divisor, rest);
                    if rest < 0.0 {
                        rest += divisor;
                        part -= 1.0;
                    }
                    quotient = quotient.wrapping_add((part as u64).checked_shl(up as u32).unwrap_or(0));
                }
                (rest, quotient)
            }

            #[inline(always)]
            fn is_divisible(x: $float, y: $float) -> bool {
                x.is_finite() && !y.is_nan() && y != 0.0
            }

            /// The rest of `x / y` towards zero, with the sign of `x`: what `%` gives. Exact.
            #[inline]
            pub fn fmod(x: $float, y: $float) -> $float {
                if !is_divisible(x, y) {
                    return $float::NAN;
                }
                if y.is_infinite() {
                    return x;
                }
                divide(x.abs(), y.abs()).0.copysign(x)
            }

            /// The rest of `x / y` to the nearest integer, or to the even one of two nearest. Also the last seven bits of that integer,
            /// with the sign of the quotient. Exact.
            #[inline]
            pub fn remquo(x: $float, y: $float) -> ($float, i32) {
                if !is_divisible(x, y) {
                    return ($float::NAN, 0);
                }
                if y.is_infinite() {
                    return (x, 0);
                }
                let divisor = y.abs();
                let (mut rest, mut quotient) = divide(x.abs(), divisor);
                let other = divisor - rest;
                if rest > other || (rest == other && quotient & 1 == 1) {
                    rest -= divisor;
                    quotient = quotient.wrapping_add(1);
                }
                let bits = (quotient & 0x7f) as i32;
                let is_negative = x.is_sign_negative() != y.is_sign_negative();
                // A rest of zero has the sign of `x`.
                let rest = if x.is_sign_negative() { -rest } else { rest };
                (rest, if is_negative { -bits } else { bits })
            }

            /// The rest of `x / y` to the nearest integer, an even one if two are as near. Exact.
            #[inline]
            pub fn remainder(x: $float, y: $float) -> $float {
                remquo(x, y).0
            }

            /// `x - y` if it is positive, else zero. Correctly rounded.
            #[inline]
            pub fn fdim(x: $float, y: $float) -> $float {
                if x <= y { 0.0 } else { x - y }
            }

            /// Half of the sum, without overflow on the way. Correctly rounded.
            #[inline]
            pub fn midpoint(x: $float, y: $float) -> $float {
                let sum = x + y;
                if sum.is_infinite() { x * 0.5 + y * 0.5 } else { sum * 0.5 }
            }

            /// `x * 2^n`, correctly rounded.
            #[inline]
            pub fn ldexp(x: $float, n: i32) -> $float {
                let (mut x, mut n) = (x, n);
                // Three steps suffice. Downwards each leaves room for a whole mantissa, so that only the last one rounds.
                for _ in 0..2 {
                    if n > $bias {
                        x *= power_of_two($bias);
                        n -= $bias;
                    } else if n < 1 - $bias {
                        x *= power_of_two($mantissa + 2 - $bias);
                        n += $bias - $mantissa - 2;
                    }
                }
                x * power_of_two(n.clamp(1 - $bias, $bias))
            }

            /// A number from 1/2 to 1 and the exponent of two by which it is to be multiplied. Zero, infinity and NaN come back with 0.
            #[inline]
            pub fn frexp(x: $float) -> ($float, i32) {
                if x == 0.0 || !x.is_finite() {
                    return (x, 0);
                }
                let exponent = exponent(x.abs()) + 1;
                (ldexp(x, -exponent), exponent)
            }

            /// The exponent of two. `i32::MIN` for zero, `i32::MAX` for infinity and NaN, as `FP_ILOGB0` and `FP_ILOGBNAN` of OpenCL.
            #[inline]
            pub fn ilogb(x: $float) -> i32 {
                if x == 0.0 {
                    i32::MIN
                } else if x.is_finite() {
                    exponent(x.abs())
                } else {
                    i32::MAX
                }
            }

            /// The exponent of two as a number: negative infinity for zero, infinity for infinities.
            #[inline]
            pub fn logb(x: $float) -> $float {
                if x == 0.0 {
                    $float::NEG_INFINITY
                } else if x.is_finite() {
                    exponent(x.abs()) as $float
                } else {
                    x * x
                }
            }

            /// The next number from `x` in the direction of `y`; `y` if they are equal.
            #[inline]
            pub fn nextafter(x: $float, y: $float) -> $float {
                if x.is_nan() || y.is_nan() {
                    return $float::NAN;
                }
                if x == y {
                    return y;
                }
                if x == 0.0 {
                    return $float::from_bits(1).copysign(y);
                }
                let step: $signed = if (y > x) == (x > 0.0) { 1 } else { -1 };
                $float::from_bits((x.to_bits() as $signed + step) as $bits)
            }
        }
    };
}

/// The sum of two numbers, rounded to odd: towards the neighbour whose last bit is 1, unless it is exact. Rounding it again, to a type with
/// at most 22 bits, gives what rounding the exact sum would.
#[inline]
pub fn sum_to_odd(x: f32, y: f32) -> f32 {
    let sum = x + y;
    // What the sum has lost, exactly.
    let part = sum - x;
    let lost = (x - (sum - part)) + (y - part);
    let is_exact = lost == 0.0 || !sum.is_finite();
    if is_exact || sum.to_bits() & 1 == 1 {
        return sum;
    }
    f32::from_bits(if (lost > 0.0) == (sum > 0.0) { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

exact!(single, f32, u32, i32, 23, 127);
exact!(double, f64, u64, i64, 52, 1023);

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{double, single};

    /// Numbers of all magnitudes, both signs, and what is special.
    fn numbers() -> std::vec::Vec<f32> {
        let mut numbers =
            std::vec![0.0, f32::INFINITY, f32::NAN, 1.0, 3.0, 0.5, f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1)];
        let mut state = 1_u32;
        for _ in 0..200 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            numbers.push(f32::from_bits(state));
        }
        let negative: std::vec::Vec<_> = numbers.iter().map(|x| -x).collect();
        numbers.extend(negative);
        numbers
    }

    fn same(ours: f64, theirs: f64) -> bool {
        ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan())
    }

    #[test]
    fn remainders_are_those_of_exact_division() {
        for x in numbers() {
            for y in numbers() {
                let expected = f64::from(x) % f64::from(y);
                assert!(
                    same(single::fmod(x, y).into(), expected),
                    "{x:e} % {y:e}: {:e} {expected:e}",
                    single::fmod(x, y)
                );
                let (wide_x, wide_y) = (f64::from(x) * 2.0_f64.powi(800), f64::from(y) / 2.0_f64.powi(800));
                assert!(same(double::fmod(wide_x, wide_y), wide_x % wide_y), "{wide_x:e} % {wide_y:e}");
                let nearest = libm::remquo(x.into(), y.into());
                let (rest, quotient) = single::remquo(x, y);
                assert!(same(rest.into(), nearest.0), "remainder of {x:e} / {y:e}: {rest:e} {:e}", nearest.0);
                assert_eq!(quotient & 7, nearest.1 & 7, "quotient of {x:e} / {y:e}");
            }
        }
    }

    #[test]
    fn parts_and_neighbours_are_those_of_the_reference() {
        for x in numbers() {
            for n in
                [-400, -300, -151, -150, -149, -127, -126, -1, 0, 1, 24, 127, 128, 277, 278, 400, i32::MAX, i32::MIN]
            {
                let expected = if x == 0.0 || !x.is_finite() { x } else { libm::scalbnf(x, n) };
                assert!(same(single::ldexp(x, n).into(), expected.into()), "{x:e} * 2^{n}: {:e}", single::ldexp(x, n));
                let wide = double::ldexp(f64::from(x) * 2.0_f64.powi(-930), n);
                assert!(same(wide, libm::scalbn(f64::from(x) * 2.0_f64.powi(-930), n)), "{x:e} * 2^-930 * 2^{n}");
            }
            let (part, exponent) = single::frexp(x);
            if x != 0.0 && x.is_finite() {
                assert_eq!((part, exponent), libm::frexpf(x));
                assert_eq!((single::ilogb(x), single::logb(x)), (exponent - 1, (exponent - 1) as f32));
            }
            for y in numbers() {
                assert!(same(single::nextafter(x, y).into(), libm::nextafterf(x, y).into()), "{x:e} to {y:e}");
                assert!(same(single::midpoint(x, y).into(), x.midpoint(y).into()), "{x:e} and {y:e}");
                assert!(same(single::fdim(x, y).into(), libm::fdimf(x, y).into()), "{x:e} - {y:e}");
            }
        }
        assert_eq!((single::ilogb(0.0), single::ilogb(f32::NAN)), (i32::MIN, i32::MAX));
        assert_eq!((single::logb(0.0), single::logb(f32::NEG_INFINITY)), (f32::NEG_INFINITY, f32::INFINITY));
    }
}
