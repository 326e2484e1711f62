//! Results that C99 (annex F) and OpenCL C prescribe, of the device library as native code and on every device.

use oxisycl::math;
use oxisycl_builtins::{double, exact, single};

use crate::on_devices::{devices, has_double, mapped};

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

/// Whether both are one number with one sign, or NaN.
fn is_same(found: f64, expected: f32) -> bool {
    let expected = f64::from(expected);
    found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan()
}

macro_rules! edges {
    ($($module:ident $name:ident: $($x:expr => $result:expr),+;)*) => {
        #[test]
        fn functions_of_one_argument_have_the_prescribed_results() {
            let devices = devices();
            $(
                let (inputs, expected) = ([$($x),+].map(|x: f32| x), [$($result),+].map(|x: f32| x));
                let check = |device: &str, found: &[f64]| {
                    for ((x, found), expected) in inputs.iter().zip(found).zip(expected) {
                        assert!(is_same(*found, expected), "{device}: {}({x}) = {found}, expected {expected}", stringify!($name));
                    }
                };
                check("library, f32", &inputs.map(|x| edges!(@ $module single $name)(x).into()));
                check("library, f64", &inputs.map(|x| edges!(@ $module double $name)(x.into()).into()));
                for device in &devices {
                    let found = mapped(&device.1, &inputs, |x| math::$name(x));
                    check(&device.0, &found.into_iter().map(f64::from).collect::<Vec<_>>());
                    if has_double(device) {
                        check(&device.0, &mapped(&device.1, &inputs, |x| math::$name(f64::from(x))));
                    }
                }
            )*
        }
    };
    (@ plain $type:ident $name:ident) => { $type::$name };
    (@ exact $type:ident $name:ident) => { exact::$type::$name };
}

edges! {
    plain sin: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, -INF => NAN, NAN => NAN;
    plain cos: 0.0 => 1.0, -0.0 => 1.0, INF => NAN, NAN => NAN;
    plain tan: 0.0 => 0.0, -0.0 => -0.0, INF => NAN, NAN => NAN;
    plain sinpi: 0.0 => 0.0, -0.0 => -0.0, 1.0 => 0.0, -1.0 => -0.0, 2.0 => 0.0, -7.0 => -0.0, 0.5 => 1.0, 1.5 => -1.0, 1.0e9 => 0.0,
        -1.0e9 => -0.0, INF => NAN, NAN => NAN;
    plain cospi: 0.0 => 1.0, -0.0 => 1.0, 0.5 => 0.0, -0.5 => 0.0, 1.5 => 0.0, 1.0 => -1.0, 1.0e9 => 1.0, INF => NAN, NAN => NAN;
    plain tanpi: 0.0 => 0.0, -0.0 => -0.0, 1.0 => -0.0, -1.0 => 0.0, 2.0 => 0.0, -2.0 => -0.0, 0.5 => INF, 1.5 => -INF, -0.5 => -INF,
        INF => NAN, NAN => NAN;
    plain asin: 0.0 => 0.0, -0.0 => -0.0, 1.5 => NAN, -1.5 => NAN, INF => NAN, NAN => NAN;
    plain acos: 1.0 => 0.0, 1.5 => NAN, -1.5 => NAN, INF => NAN, NAN => NAN;
    plain atan: 0.0 => 0.0, -0.0 => -0.0, NAN => NAN;
    plain asinpi: 0.0 => 0.0, -0.0 => -0.0, 1.0 => 0.5, -1.0 => -0.5, 2.0 => NAN, NAN => NAN;
    plain acospi: 1.0 => 0.0, 0.0 => 0.5, -1.0 => 1.0, 2.0 => NAN, NAN => NAN;
    plain atanpi: 0.0 => 0.0, -0.0 => -0.0, INF => 0.5, -INF => -0.5, NAN => NAN;
    plain sinh: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -INF, NAN => NAN;
    plain cosh: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => INF, NAN => NAN;
    plain tanh: 0.0 => 0.0, -0.0 => -0.0, INF => 1.0, -INF => -1.0, NAN => NAN;
    plain asinh: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -INF, NAN => NAN;
    plain acosh: 1.0 => 0.0, 0.5 => NAN, -3.0 => NAN, -INF => NAN, INF => INF, NAN => NAN;
    plain atanh: 0.0 => 0.0, -0.0 => -0.0, 1.0 => INF, -1.0 => -INF, 2.0 => NAN, INF => NAN, NAN => NAN;
    plain exp: 0.0 => 1.0, -0.0 => 1.0, INF => INF, -INF => 0.0, NAN => NAN;
    plain exp2: 0.0 => 1.0, -1.0 => 0.5, 10.0 => 1024.0, INF => INF, -INF => 0.0, NAN => NAN;
    plain exp10: 0.0 => 1.0, INF => INF, -INF => 0.0, NAN => NAN;
    plain expm1: 0.0 => 0.0, -0.0 => -0.0, INF => INF, -INF => -1.0, NAN => NAN;
    plain log: 0.0 => -INF, -0.0 => -INF, 1.0 => 0.0, -1.0 => NAN, INF => INF, -INF => NAN, NAN => NAN;
    plain log2: 0.0 => -INF, -0.0 => -INF, 1.0 => 0.0, 1024.0 => 10.0, -1.0 => NAN, INF => INF, NAN => NAN;
    plain log10: 0.0 => -INF, -0.0 => -INF, 1.0 => 0.0, -1.0 => NAN, INF => INF, NAN => NAN;
    plain log1p: 0.0 => 0.0, -0.0 => -0.0, -1.0 => -INF, -2.0 => NAN, INF => INF, NAN => NAN;
    plain cbrt: 0.0 => 0.0, -0.0 => -0.0, 27.0 => 3.0, INF => INF, -INF => -INF, NAN => NAN;
    plain rsqrt: 0.0 => INF, -0.0 => -INF, 4.0 => 0.5, INF => 0.0, -1.0 => NAN, NAN => NAN;
    plain erf: 0.0 => 0.0, -0.0 => -0.0, INF => 1.0, -INF => -1.0, NAN => NAN;
    plain erfc: 0.0 => 1.0, INF => 0.0, -INF => 2.0, NAN => NAN;
    plain tgamma: 0.0 => INF, -0.0 => -INF, 1.0 => 1.0, -1.0 => NAN, -INF => NAN, INF => INF, NAN => NAN;
    plain lgamma: 1.0 => 0.0, 2.0 => 0.0, 0.0 => INF, -1.0 => INF, INF => INF, -INF => INF, NAN => NAN;
    exact logb: 0.0 => -INF, 1.0 => 0.0, 10.0 => 3.0, INF => INF, -INF => INF, NAN => NAN;
}

macro_rules! pairs {
    ($($module:ident $name:ident: $($x:expr, $y:expr => $result:expr);+;;)*) => {
        #[test]
        fn functions_of_two_arguments_have_the_prescribed_results() {
            let devices = devices();
            $(
                let (inputs, expected) = ([$([$x, $y]),+].map(|x: [f32; 2]| x), [$($result),+].map(|x: f32| x));
                let check = |device: &str, found: &[f64]| {
                    for (([x, y], found), expected) in inputs.iter().zip(found).zip(expected) {
                        assert!(is_same(*found, expected), "{device}: {}({x}, {y}) = {found}, expected {expected}", stringify!($name));
                    }
                };
                check("library, f32", &inputs.map(|[x, y]| edges!(@ $module single $name)(x, y).into()));
                check("library, f64", &inputs.map(|[x, y]| edges!(@ $module double $name)(x.into(), y.into())));
                for device in &devices {
                    let found = mapped(&device.1, &inputs, |[x, y]| math::$name(x, y));
                    check(&device.0, &found.into_iter().map(f64::from).collect::<Vec<_>>());
                    if has_double(device) {
                        check(&device.0, &mapped(&device.1, &inputs, |[x, y]| math::$name(f64::from(x), f64::from(y))));
                    }
                }
            )*
        }
    };
}

pairs! {
    plain pow: 2.0, 3.0 => 8.0; -2.0, 3.0 => -8.0; -2.0, 0.5 => NAN; NAN, 0.0 => 1.0; 1.0, NAN => 1.0; 1.0, INF => 1.0; -1.0, INF => 1.0;
        0.0, -1.0 => INF; -0.0, -1.0 => -INF; -0.0, -2.0 => INF; -0.0, 3.0 => -0.0; -0.0, 0.5 => 0.0; 0.5, INF => 0.0; 0.5, -INF => INF;
        2.0, INF => INF; 2.0, -INF => 0.0; -INF, 3.0 => -INF; -INF, 2.0 => INF; -INF, 0.5 => INF; -INF, -3.0 => -0.0; INF, -1.0 => 0.0;
        2.0, NAN => NAN; NAN, 1.0 => NAN; 2.0, 200000.0 => INF; 2.0, -200000.0 => 0.0;;
    plain powr: 2.0, 3.0 => 8.0; -2.0, 3.0 => NAN; 0.0, 0.0 => NAN; INF, 0.0 => NAN; 1.0, INF => NAN; 2.0, 0.0 => 1.0; 0.0, -1.0 => INF;
        -0.0, -1.0 => INF; -0.0, 1.0 => 0.0; NAN, 1.0 => NAN; 1.0, NAN => NAN;;
    plain hypot: 3.0, 4.0 => 5.0; INF, NAN => INF; NAN, -INF => INF; 0.0, -0.0 => 0.0; NAN, 1.0 => NAN;;
    plain atan2pi: 0.0, 0.0 => 0.0; -0.0, 0.0 => -0.0; 0.0, -0.0 => 1.0; -0.0, -1.0 => -1.0; 1.0, 0.0 => 0.5; -1.0, 0.0 => -0.5;
        INF, INF => 0.25; INF, -INF => 0.75; -INF, INF => -0.25; 1.0, INF => 0.0; 1.0, -INF => 1.0; INF, 1.0 => 0.5; NAN, 1.0 => NAN;
        1.0, NAN => NAN;;
    exact fmod: 5.5, 2.0 => 1.5; -5.5, 2.0 => -1.5; 4.0, 2.0 => 0.0; -4.0, 2.0 => -0.0; 1.0, INF => 1.0; INF, 1.0 => NAN; 1.0, 0.0 => NAN;
        NAN, 1.0 => NAN; -0.0, 1.0 => -0.0;;
    exact remainder: 5.0, 2.0 => 1.0; 7.0, 2.0 => -1.0; -4.0, 2.0 => -0.0; 1.0, INF => 1.0; INF, 1.0 => NAN; 1.0, 0.0 => NAN;;
    exact fdim: 3.0, 1.0 => 2.0; 1.0, 3.0 => 0.0; INF, INF => 0.0; NAN, 1.0 => NAN; 1.0, NAN => NAN;;
    exact nextafter: 0.0, -0.0 => -0.0; 2.0, 2.0 => 2.0; NAN, 1.0 => NAN;;
}
