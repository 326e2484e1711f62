//! Powers that are made of products or of `pow`, for `f32` and `f64` by one text.

/// The functions for one type, in a module that has `pow`.
macro_rules! powers {
    ($float:ident) => {
        /// `x` to the power of `y`, for `x` that is not negative: C's `exp2(y * log2(x))`. Limit 16 ULP.
        #[inline]
        pub fn powr(x: $float, y: $float) -> $float {
            let is_undefined = x < 0.0
                || x.is_nan()
                || y.is_nan()
                || ((x == 0.0 || x == $float::INFINITY) && y == 0.0)
                || (x == 1.0 && y.abs() == $float::INFINITY);
            if is_undefined { $float::NAN } else { pow(x.abs(), y) }
        }

        /// `x` to the power of an integer, by repeated squaring, as in LLVM's own runtime library. That is fast for small exponents, which
        /// the compiler knows in most cases.
        #[inline]
        pub fn powi(x: $float, n: i32) -> $float {
            let mut result = 1.0;
            let mut factor = x;
            let mut exponent = n.unsigned_abs();
            loop {
                if exponent & 1 == 1 {
                    result *= factor;
                }
                exponent >>= 1;
                if exponent == 0 {
                    break;
                }
                factor *= factor;
            }
            if n < 0 { 1.0 / result } else { result }
        }
    };
}
pub(crate) use powers;
