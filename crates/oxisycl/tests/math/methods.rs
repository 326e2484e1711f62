//! Rust's own methods in kernels. What they give on the host is the standard library's affair; on a device it is the compiler's.

use crate::inputs;
use crate::measure::{Report, worst};
use crate::on_devices::{devices, has_double, mapped};

/// Compares a method in kernels with its result on the host: within a few ULP of each, or with limit 0 exactly.
macro_rules! methods {
    ($test:ident, $inputs:ident, $float:ident, $has:expr; $($name:literal $limit:literal $method:expr;)*) => {
        #[test]
        fn $test() {
            let inputs = inputs::$inputs(inputs::n_inputs() / 8);
            let mut report = Report::default();
            for device in devices().into_iter().filter($has) {
                $(
                    let method = $method;
                    let results = mapped(&device.1, &inputs, method);
                    let judged = worst(inputs.len(), |i| {
                        let expected: f64 = method(inputs[i]).into();
                        (format!("{:?}", inputs[i]), results[i], expected, expected)
                    });
                    report.add(&device.0, concat!(stringify!($float), "::", $name), $limit as f64, &judged);
                )*
            }
            report.end();
        }
    };
}

macro_rules! both {
    (#[test] fn $single:ident() #[test] fn $double:ident() $($name:literal $limit:literal |$x:ident| $body:expr;)*) => {
        methods! { $single, single, f32, |_| true; $($name $limit |$x: f32| $body;)* }
        methods! { $double, double, f64, has_double; $($name $limit |$x: f64| $body;)* }
    };
}

// Limits are the sums of both sides'.
both! {
    #[test]
    fn f32_methods_in_kernels_give_what_they_give_on_the_host()
    #[test]
    fn f64_methods_in_kernels_give_what_they_give_on_the_host()
    "abs" 0 |x| x.abs();
    "acos" 8 |x| x.acos();
    "asin" 8 |x| x.asin();
    "atan" 10 |x| x.atan();
    "cbrt" 4 |x| x.cbrt();
    "ceil" 0 |x| x.ceil();
    "clamp" 0 |x| x.clamp(-1.5, 2.5);
    "cos" 8 |x| x.cos();
    "cosh" 8 |x| x.cosh();
    "exp" 6 |x| x.exp();
    "exp2" 6 |x| x.exp2();
    "exp_m1" 6 |x| x.exp_m1();
    "floor" 0 |x| x.floor();
    "fract" 0 |x| x.fract();
    "ln" 6 |x| x.ln();
    "ln_1p" 4 |x| x.ln_1p();
    "log" 12 |x| x.log(3.0);
    "log10" 6 |x| x.log10();
    "log2" 6 |x| x.log2();
    "midpoint" 0 |x| x.midpoint(3.25);
    "mul_add" 0 |x| x.mul_add(1.1, -0.7);
    "recip" 0 |x| x.recip();
    "round" 0 |x| x.round();
    "round_ties_even" 0 |x| x.round_ties_even();
    "signum" 0 |x| x.signum();
    "sin" 8 |x| x.sin();
    "sin_cos" 8 |x| x.sin_cos().0;
    "sinh" 8 |x| x.sinh();
    "sqrt" 0 |x| x.sqrt();
    "tan" 20 |x| x.tan();
    "tanh" 10 |x| x.tanh();
    "to_degrees" 0 |x| x.to_degrees();
    "to_radians" 0 |x| x.to_radians();
    "trunc" 0 |x| x.trunc();
    // Made of others by the standard library.
    "acosh" 16 |x| x.acosh();
    "asinh" 16 |x| x.asinh();
    "atanh" 16 |x| x.atanh();
    "atan2" 12 |x| x.atan2(0.75);
    "copysign" 0 |x| x.copysign(-1.0);
    "div_euclid" 0 |x| x.div_euclid(0.75);
    "hypot" 8 |x| x.hypot(0.75);
    "max" 0 |x| x.max(0.75);
    "min" 0 |x| x.min(0.75);
    "next_up" 0 |x| x.next_up();
    "powf" 32 |x| x.powf(1.75);
    "powi" 8 |x| x.powi(5);
    "powi by a variable" 16 |x| x.powi((x.abs() % 7.0) as i32 - 3);
    "rem_euclid" 0 |x| x.rem_euclid(0.75);
    "%" 0 |x| x % 0.75;
    "% of a constant" 0 |x| x.copysign(1.0e30) % x;
}

#[test]
fn integer_methods_on_floats_give_what_they_give_on_the_host() {
    let inputs = inputs::single(inputs::n_inputs() / 8);
    for (name, queue) in devices() {
        let found = mapped(&queue, &inputs, |x: f32| {
            (
                x as i32,
                x as u64,
                x as i8,
                x.to_bits().count_ones(),
                (x.total_cmp(&0.5) as i32, u32::from(x.is_normal())),
            )
        });
        for (x, found) in inputs.iter().zip(found) {
            let expected = (
                *x as i32,
                *x as u64,
                *x as i8,
                x.to_bits().count_ones(),
                (x.total_cmp(&0.5) as i32, u32::from(x.is_normal())),
            );
            assert_eq!(found, expected, "{name}: {x:e}");
        }
    }
}

/// The compiler's rule for what is exact: the same bits, not only no error.
#[test]
fn zeros_keep_their_signs_in_methods() {
    let inputs = [0.0_f32, -0.0];
    for (name, queue) in devices() {
        for (found, expected) in [
            (mapped(&queue, &inputs, f32::sin), inputs.map(f32::sin)),
            (mapped(&queue, &inputs, f32::round), inputs.map(f32::round)),
            (mapped(&queue, &inputs, |x| x % 1.0), inputs.map(|x| x % 1.0)),
            (mapped(&queue, &inputs, f32::cbrt), inputs.map(f32::cbrt)),
        ] {
            assert_eq!(found.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), expected.map(f32::to_bits), "{name}");
        }
    }
}
