//! The types that the functions take, and where each function comes from.

use core::fmt::Debug;
use core::ops::{Add, Div, Mul, Neg, Sub};

use oxisycl_builtins::{double, exact, single};

#[cfg(feature = "half")]
use ::half::f16;

#[cfg(feature = "half")]
use super::half::{SIGN, by_single, fma, nextafter, plain_half};
use super::platform;
use crate::{DeviceCopyable, builtin};

/// A floating-point type of SYCL's functions: `f32`, `f64`, or `half::f16` with the feature `half`. Nothing else can implement it.
pub trait Float:
    sealed::Functions
    + DeviceCopyable
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
}

macro_rules! functions {
    ($($arguments:tt -> $result:tt { $($name:ident = $double:expr, $single:expr;)* })*) => {
        pub(super) mod sealed {
            /// What the functions do for one type; not for users.
            pub trait Functions: Copy {
                type Bits;
                const ZERO: Self;
                const ONE: Self;
                const TWO: Self;
                const THREE: Self;
                /// By which radians are multiplied.
                const DEGREES: Self;
                /// By which degrees are multiplied.
                const RADIANS: Self;
                /// Between these, sums of squares neither overflow nor lose bits at the lower end.
                const SQUARES: (Self, Self);
                fn magnitude(self) -> Self;
                fn with_sign_of(self, sign: Self) -> Self;
                fn lesser(self, other: Self) -> Self;
                fn larger(self, other: Self) -> Self;
                fn is_number(self) -> bool;
                fn has_infinity(self) -> bool;
                fn is_usual(self) -> bool;
                fn is_below_zero(self) -> bool;
                fn with_code(code: Self::Bits) -> Self;
                fn select_bits(self, other: Self, mask: Self) -> Self;
                $($(declared!($name $arguments -> $result);)*)*
            }
        }

        impl sealed::Functions for f64 {
            plain!(f64, u64, 1.0e-150, 1.0e150);
            $($(defined!($name $arguments -> $result = $double);)*)*
        }

        impl sealed::Functions for f32 {
            plain!(f32, u32, 1.0e-18, 1.0e18);
            $($(defined!($name $arguments -> $result = $single);)*)*
        }

        #[cfg(feature = "half")]
        impl sealed::Functions for f16 {
            plain_half!();
            $($(by_single!($name $arguments -> $result);)*)*
        }
    };
}

macro_rules! declared {
    ($name:ident ($($argument:ident: $type:ty),*) -> $result:ty) => {
        fn $name(self, $($argument: $type),*) -> $result;
    };
}

macro_rules! defined {
    ($name:ident ($($argument:ident: $type:ty),*) -> $result:ty = $function:expr) => {
        #[inline(always)]
        fn $name(self, $($argument: $type),*) -> $result {
            $function(self, $($argument),*)
        }
    };
}

/// Functions of which the text is the same for all types: classes of numbers, and choices by bits.
macro_rules! classes_and_bits {
    ($type:ident) => {
        #[inline(always)]
        fn is_number(self) -> bool {
            !self.is_nan()
        }

        #[inline(always)]
        fn has_infinity(self) -> bool {
            self.is_infinite()
        }

        #[inline(always)]
        fn is_usual(self) -> bool {
            self.is_normal()
        }

        #[inline(always)]
        fn is_below_zero(self) -> bool {
            self.is_sign_negative()
        }

        #[inline(always)]
        fn select_bits(self, other: Self, mask: Self) -> Self {
            let mask = mask.to_bits();
            $type::from_bits(self.to_bits() & !mask | other.to_bits() & mask)
        }
    };
}

/// What needs no library.
macro_rules! plain {
    ($type:ident, $bits:ty, $least:literal, $largest:literal) => {
        type Bits = $bits;
        const ZERO: Self = 0.0;
        const ONE: Self = 1.0;
        const TWO: Self = 2.0;
        const THREE: Self = 3.0;
        const DEGREES: Self = 180.0 / core::$type::consts::PI;
        const RADIANS: Self = core::$type::consts::PI / 180.0;
        const SQUARES: (Self, Self) = ($least, $largest);

        #[inline(always)]
        fn magnitude(self) -> Self {
            self.abs()
        }

        #[inline(always)]
        fn with_sign_of(self, sign: Self) -> Self {
            self.copysign(sign)
        }

        #[inline(always)]
        fn lesser(self, other: Self) -> Self {
            self.min(other)
        }

        #[inline(always)]
        fn larger(self, other: Self) -> Self {
            self.max(other)
        }

        classes_and_bits!($type);

        #[inline(always)]
        fn with_code(code: $bits) -> Self {
            // The quiet bit and the exponent are those of NaN, whatever the code is.
            let mantissa = (1 << ($type::MANTISSA_DIGITS - 2)) - 1;
            $type::from_bits($type::NAN.to_bits() | (code & mantissa))
        }
    };
}

functions! {
    () -> Self {
        acos = platform::acos, platform::acosf;
        acosh = platform::acosh, platform::acoshf;
        acospi = double::acospi, single::acospi;
        asin = platform::asin, platform::asinf;
        asinh = platform::asinh, platform::asinhf;
        asinpi = double::asinpi, single::asinpi;
        atan = platform::atan, platform::atanf;
        atanh = platform::atanh, platform::atanhf;
        atanpi = double::atanpi, single::atanpi;
        cbrt = platform::cbrt, platform::cbrtf;
        ceil = platform::ceil, platform::ceilf;
        // Not the platform's, which may be wrong for large angles: glibc 2.36 is by 8 ULP at 6381956970095103 * 2^797.
        cos = double::cos, platform::cosf;
        cosh = platform::cosh, platform::coshf;
        cospi = double::cospi, single::cospi;
        erf = platform::erf, platform::erff;
        erfc = platform::erfc, platform::erfcf;
        exp = platform::exp, platform::expf;
        exp10 = double::exp10, single::exp10;
        exp2 = platform::exp2, platform::exp2f;
        expm1 = platform::expm1, platform::expm1f;
        floor = platform::floor, platform::floorf;
        lgamma = double::lgamma, single::lgamma;
        log = platform::log, platform::logf;
        log10 = platform::log10, platform::log10f;
        log1p = platform::log1p, platform::log1pf;
        log2 = platform::log2, platform::log2f;
        logb = exact::double::logb, exact::single::logb;
        rint = platform::rint, platform::rintf;
        round = platform::round, platform::roundf;
        rsqrt = double::rsqrt, single::rsqrt;
        sin = double::sin, platform::sinf;
        sinh = platform::sinh, platform::sinhf;
        sinpi = double::sinpi, single::sinpi;
        sqrt = platform::sqrt, platform::sqrtf;
        tan = double::tan, platform::tanf;
        tanh = platform::tanh, platform::tanhf;
        tanpi = double::tanpi, single::tanpi;
        tgamma = platform::tgamma, platform::tgammaf;
        trunc = platform::trunc, platform::truncf;
        native_cos = double::cos, builtin::native_cos;
        native_exp2 = platform::exp2, builtin::native_exp2;
        native_log2 = platform::log2, builtin::native_log2;
        native_rsqrt = double::rsqrt, builtin::native_rsqrt;
        native_sin = double::sin, builtin::native_sin;
        native_sqrt = platform::sqrt, builtin::native_sqrt;
    }
    (other: Self) -> Self {
        atan2 = platform::atan2, platform::atan2f;
        atan2pi = double::atan2pi, single::atan2pi;
        fdim = exact::double::fdim, exact::single::fdim;
        fmod = platform::fmod, platform::fmodf;
        hypot = platform::hypot, platform::hypotf;
        nextafter = exact::double::nextafter, exact::single::nextafter;
        pow = platform::pow, platform::powf;
        powr = double::powr, single::powr;
        remainder = exact::double::remainder, exact::single::remainder;
        native_divide = |x, y| x / y, builtin::native_divide;
    }
    (factor: Self, term: Self) -> Self {
        fma = platform::fma, platform::fmaf;
    }
    (n: i32) -> Self {
        ldexp = exact::double::ldexp, exact::single::ldexp;
        pown = double::pown, single::pown;
        rootn = double::rootn, single::rootn;
    }
    () -> i32 {
        gamma_sign = double::gamma_sign, single::gamma_sign;
        ilogb = exact::double::ilogb, exact::single::ilogb;
    }
    () -> (Self, i32) {
        frexp = exact::double::frexp, exact::single::frexp;
    }
    (other: Self) -> (Self, i32) {
        remquo = exact::double::remquo, exact::single::remquo;
    }
    () -> (Self, Self) {
        // Native code calls the platform's functions; a device reduces the angle once.
        sincos = double::sincos,
            |x| if builtin::is_device_code() { single::sincos(x) } else { (platform::sinf(x), platform::cosf(x)) };
    }
}

impl Float for f32 {}
impl Float for f64 {}
