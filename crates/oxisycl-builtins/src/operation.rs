//! Operations that processors have an instruction for, and that Rust offers with `std` only.
//!
//! They carry C's names. The device compiler makes instructions of them (`oxisycl-compiler`, `passes/libcalls.rs`). Native code gets them
//! from the platform's mathematical library, as from `std`. A device has a fused multiply-add. On a processor without one it is a slow
//! call, which only tests and our few functions for the host pay for.

mod c {
    // SAFETY: functions of C11's mathematical library, with its signatures. They take and give values, and have no effects but
    // floating-point flags, which Rust code does not look at.
    unsafe extern "C" {
        pub(super) safe fn fmaf(x: f32, y: f32, z: f32) -> f32;
        pub(super) safe fn fma(x: f64, y: f64, z: f64) -> f64;
        pub(super) safe fn sqrtf(x: f32) -> f32;
        pub(super) safe fn sqrt(x: f64) -> f64;
        pub(super) safe fn rintf(x: f32) -> f32;
        pub(super) safe fn rint(x: f64) -> f64;
        pub(super) safe fn truncf(x: f32) -> f32;
        pub(super) safe fn trunc(x: f64) -> f64;
        pub(super) safe fn floorf(x: f32) -> f32;
        pub(super) safe fn floor(x: f64) -> f64;
    }
}

/// A floating-point type with its instructions.
pub(crate) trait Operations: Copy {
    /// `self * factor + term`, rounded once.
    fn fma(self, factor: Self, term: Self) -> Self;
    /// The square root, correctly rounded.
    fn root(self) -> Self;
    /// The nearest integer, an even one if two are.
    fn nearest(self) -> Self;
    /// The integer next to it towards zero.
    fn truncated(self) -> Self;
    /// The integer next to it downwards.
    fn lower(self) -> Self;
}

impl Operations for f32 {
    #[inline(always)]
    fn fma(self, factor: Self, term: Self) -> Self {
        c::fmaf(self, factor, term)
    }

    #[inline(always)]
    fn root(self) -> Self {
        c::sqrtf(self)
    }

    #[inline(always)]
    fn nearest(self) -> Self {
        c::rintf(self)
    }

    #[inline(always)]
    fn truncated(self) -> Self {
        c::truncf(self)
    }

    #[inline(always)]
    fn lower(self) -> Self {
        c::floorf(self)
    }
}

impl Operations for f64 {
    #[inline(always)]
    fn fma(self, factor: Self, term: Self) -> Self {
        c::fma(self, factor, term)
    }

    #[inline(always)]
    fn root(self) -> Self {
        c::sqrt(self)
    }

    #[inline(always)]
    fn nearest(self) -> Self {
        c::rint(self)
    }

    #[inline(always)]
    fn truncated(self) -> Self {
        c::trunc(self)
    }

    #[inline(always)]
    fn lower(self) -> Self {
        c::floor(self)
    }
}

/// `horner!(z; a, b, c)` is `a + b * z + c * z * z`, by fused multiply-adds.
macro_rules! horner {
    ($z:expr; $last:expr) => { $last };
    ($z:expr; $first:expr, $($rest:expr),+ $(,)?) => {
        $crate::operation::Operations::fma(horner!($z; $($rest),+), $z, $first)
    };
}
pub(crate) use horner;
