//! Numbers of 16 bits with the precision of `f16`: all of them, through arithmetic, comparisons, conversions and intrinsics.

use super::floats::{Case, agree_on, case};
use super::support::device;

/// One past the largest finite number, by its bits.
const INFINITY: u64 = 0x7C00;

/// A number of `f16` by its bits.
pub(super) fn value(bits: u64) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 & 1 == 1 { -magnitude } else { magnitude }
}

/// The number of `f16` that is nearest, found by looking at both neighbours; of two, the even one.
fn nearest(number: f64) -> u64 {
    if number.is_nan() {
        return 0x7E00;
    }
    let sign = u64::from(number.is_sign_negative()) << 15;
    let magnitude = number.abs();
    let (mut below, mut above) = (0, INFINITY);
    while above - below > 1 {
        let middle = (below + above) / 2;
        if value(middle) <= magnitude { below = middle } else { above = middle }
    }
    // Past the largest number comes what would be the next one, at which rounding begins to give infinity.
    let next = if above == INFINITY { 65536.0 } else { value(above) };
    let middle = (value(below) + next) / 2.0;
    let is_up = magnitude > middle || magnitude == middle && below & 1 == 1;
    sign | (below + u64::from(is_up))
}

/// Operands of each type. Of `f16` every one, with another one.
fn pairs(kind: &str) -> Vec<(u64, u64)> {
    // Half way to the next number, and a little less and more.
    let between = |i: u64| {
        let (low, high) = (value(i), value((i & 0x8000) | ((i & 0x7FFF) + 1).min(INFINITY - 1)));
        (low + high) / 2.0
    };
    let close = |i: u64, step: f64| between(i) * (1.0 + step * (i % 3) as f64 - step);
    let one = |i: u64| match kind {
        "half" => i,
        "float" => u64::from((close(i, 2f64.powi(-22)) as f32).to_bits()),
        "double" => close(i, 2f64.powi(-40)).to_bits(),
        _ => (i.wrapping_sub(0x8000)).wrapping_mul(5),
    };
    (0..1 << 16).map(|i| (one(i), one((i * 40503 + 12345) & 0xFFFF))).collect()
}

/// Compares all kernels on a device that has `f16`.
fn agree(cases: &[Case], declarations: &str) {
    let device = device();
    assert!(device.has_extension("cl_khr_fp16"), "{} has no cl_khr_fp16", device.description);
    agree_on(cases, declarations, &pairs);
}

const HALF: (&str, &str) = ("half", "half");

#[test]
fn neighbours_of_f16_are_found() {
    for bits in (0..INFINITY).chain(0x8000..0x8000 + INFINITY) {
        assert_eq!(nearest(value(bits)), bits);
    }
    for (number, bits) in [
        (1.0, 0x3C00),
        (-2.0, 0xC000),
        (65504.0, 0x7BFF),
        (65519.9, 0x7BFF),
        (65520.0, INFINITY),
        (2f64.powi(-24), 1),
        (2f64.powi(-25), 0),
        (1.0 + 3.0 * 2f64.powi(-11), 0x3C02),
    ] {
        assert_eq!(nearest(number), bits, "{number}");
    }
}

#[test]
#[ignore = "needs an OpenCL driver whose device has f16"]
fn arithmetic_of_f16_is_rounded_once() {
    let unary = |name: &str| format!("%r = call half @llvm.{name}.f16(half %a)");
    let binary = |name: &str| format!("%r = call half @llvm.{name}.f16(half %a, half %b)");
    let cases = [
        case("add", HALF, "%r = fadd half %a, %b", |a, b| nearest(value(a) + value(b))),
        case("sub", HALF, "%r = fsub half %a, %b", |a, b| nearest(value(a) - value(b))),
        case("mul", HALF, "%r = fmul half %a, %b", |a, b| nearest(value(a) * value(b))),
        case("div", HALF, "%r = fdiv half %a, %b", |a, b| nearest(value(a) / value(b))),
        case("rem", HALF, "%r = frem half %a, %b", |a, b| nearest(value(a) % value(b))),
        case("neg", HALF, "%r = fneg half %a", |a, _| nearest(-value(a))),
        case("sqrt", HALF, &unary("sqrt"), |a, _| nearest(value(a).sqrt())),
        case("fabs", HALF, &unary("fabs"), |a, _| nearest(value(a).abs())),
        case("floor", HALF, &unary("floor"), |a, _| nearest(value(a).floor())),
        case("trunc", HALF, &unary("trunc"), |a, _| nearest(value(a).trunc())),
        case("even", HALF, &unary("roundeven"), |a, _| nearest(value(a).round_ties_even())),
        case("canonical", HALF, &unary("canonicalize"), |a, _| nearest(value(a))),
        case("sign", HALF, &binary("copysign"), |a, b| (a & 0x7FFF) | (b & 0x8000)),
        case("larger", HALF, &binary("maximum"), |a, b| {
            let (x, y) = (value(a), value(b));
            if x.is_nan() || y.is_nan() {
                0x7E00
            } else if x == y {
                a & b
            } else {
                nearest(x.max(y))
            }
        }),
    ];
    let names = ["sqrt", "fabs", "floor", "trunc", "roundeven", "canonicalize"];
    let mut declarations = names.map(|name| format!("declare half @llvm.{name}.f16(half)\n")).concat();
    declarations +=
        &["copysign", "maximum"].map(|name| format!("declare half @llvm.{name}.f16(half, half)\n")).concat();
    agree(&cases, &declarations);
}

#[test]
#[ignore = "needs an OpenCL driver whose device has f16"]
fn comparisons_and_classes_of_f16_know_every_number() {
    let compared = |predicate: &str| format!("%c = fcmp {predicate} half %a, %b\n%r = zext i1 %c to i32");
    let of_class =
        |mask: u32| format!("%c = call i1 @llvm.is.fpclass.f16(half %a, i32 {mask})\n%r = zext i1 %c to i32");
    let magnitude = |a: u64| a & 0x7FFF;
    let cases = [
        case("less", ("half", "i32"), &compared("olt"), |a, b| u64::from(value(a) < value(b))),
        case("at_least", ("half", "i32"), &compared("uge"), |a, b| {
            u64::from(value(a).partial_cmp(&value(b)) != Some(std::cmp::Ordering::Less))
        }),
        case("same", ("half", "i32"), &compared("oeq"), |a, b| u64::from(value(a) == value(b))),
        case("nan", ("half", "i32"), &of_class(0x3), move |a, _| u64::from(magnitude(a) > INFINITY)),
        case("finite", ("half", "i32"), &of_class(0x1F8), move |a, _| u64::from(magnitude(a) < INFINITY)),
        case("subnormal", ("half", "i32"), &of_class(0x90), move |a, _| u64::from((1..0x400).contains(&magnitude(a)))),
    ];
    agree(&cases, "declare i1 @llvm.is.fpclass.f16(half, i32 immarg)\n");
}

#[test]
#[ignore = "needs an OpenCL driver whose device has f16"]
fn conversions_from_and_to_f16_round_once() {
    let cases = [
        case("of_single", ("float", "half"), "%r = fptrunc float %a to half", |a, _| {
            nearest(f64::from(f32::from_bits(a as u32)))
        }),
        case("of_double", ("double", "half"), "%r = fptrunc double %a to half", |a, _| nearest(f64::from_bits(a))),
        case("to_single", ("half", "float"), "%r = fpext half %a to float", |a, _| {
            u64::from((value(a) as f32).to_bits())
        }),
        case("to_double", ("half", "double"), "%r = fpext half %a to double", |a, _| value(a).to_bits()),
        case("of_short", ("i16", "half"), "%r = sitofp i16 %a to half", |a, _| nearest(f64::from(a as u16 as i16))),
        case("of_int", ("i32", "half"), "%r = sitofp i32 %a to half", |a, _| nearest(f64::from(a as u32 as i32))),
        case("of_long", ("i64", "half"), "%r = sitofp i64 %a to half", |a, _| nearest(a as i64 as f64)),
        case("to_byte", ("half", "i8"), "%r = call i8 @llvm.fptosi.sat.i8.f16(half %a)", |a, _| {
            u64::from(value(a) as i8 as u8)
        }),
        case("to_int", ("half", "i32"), "%r = call i32 @llvm.fptosi.sat.i32.f16(half %a)", |a, _| {
            u64::from(value(a) as i32 as u32)
        }),
        case("to_long", ("half", "i64"), "%r = call i64 @llvm.fptoui.sat.i64.f16(half %a)", |a, _| value(a) as u64),
        case("bits", ("half", "i16"), "%n = bitcast half %a to i16\n%r = xor i16 %n, 1", |a, _| a ^ 1),
    ];
    agree(
        &cases,
        "declare i8 @llvm.fptosi.sat.i8.f16(half)
declare i32 @llvm.fptosi.sat.i32.f16(half)
declare i64 @llvm.fptoui.sat.i64.f16(half)
",
    );
}
