//! bf16: arithmetic, comparisons and conversions, each rounded once.

use super::floats::{agree, case};

/// A number of bf16 by its bits.
fn brain(bits: u64) -> f64 {
    f64::from(f32::from_bits((bits as u32) << 16))
}

/// The number of bf16 that is nearest, found by looking at both neighbours.
fn nearest(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7FC0;
    }
    let sign = u64::from(value.is_sign_negative()) << 15;
    let magnitude = value.abs();
    // The largest number that is not above.
    let below = (0..0x7F80).rev().find(|&bits| brain(bits) <= magnitude).expect("zero is not above");
    // Past the largest number comes what would be the next one, at which rounding begins to give infinity.
    let above = if below == 0x7F7F { 2f64.powi(128) } else { brain(below + 1) };
    let middle = (brain(below) + above) / 2.0;
    let is_up = magnitude > middle || magnitude == middle && below & 1 == 1;
    sign | (below + u64::from(is_up))
}

#[test]
fn neighbours_of_bf16_are_found() {
    for (value, bits) in [(1.0, 0x3F80), (-1.0, 0xBF80), (1.0 + 1.0 / 256.0, 0x3F80), (1.0 + 3.0 / 256.0, 0x3F82)] {
        assert_eq!(nearest(value), bits, "{value}");
    }
    assert_eq!((nearest(f64::INFINITY), nearest(3.4e38), nearest(0.0)), (0x7F80, 0x7F80, 0));
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn arithmetic_of_bf16_is_rounded_once() {
    let two = ("bfloat", "bfloat");
    let cases = [
        case("add", two, "%r = fadd bfloat %a, %b", |a, b| nearest(brain(a) + brain(b))),
        case("sub", two, "%r = fsub bfloat %a, %b", |a, b| nearest(brain(a) - brain(b))),
        case("mul", two, "%r = fmul bfloat %a, %b", |a, b| nearest(brain(a) * brain(b))),
        case("div", two, "%r = fdiv bfloat %a, %b", |a, b| nearest(brain(a) / brain(b))),
        case("neg", two, "%r = fneg bfloat %a", |a, _| nearest(-brain(a))),
        case("sqrt", two, "%r = call bfloat @llvm.sqrt.bf16(bfloat %a)", |a, _| nearest(brain(a).sqrt())),
        case("less", ("bfloat", "i32"), "%c = fcmp olt bfloat %a, %b\n%r = zext i1 %c to i32", |a, b| {
            u64::from(brain(a) < brain(b))
        }),
        case(
            "vector",
            two,
            "%v = insertelement <2 x bfloat> poison, bfloat %a, i32 0
  %w = insertelement <2 x bfloat> %v, bfloat %b, i32 1
  %s = fadd <2 x bfloat> %w, %w
  %r = extractelement <2 x bfloat> %s, i32 1",
            |_, b| nearest(brain(b) + brain(b)),
        ),
    ];
    agree(&cases, "declare bfloat @llvm.sqrt.bf16(bfloat)\n");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn conversions_to_bf16_round_once() {
    let cases = [
        case("of_single", ("float", "bfloat"), "%r = fptrunc float %a to bfloat", |a, _| {
            nearest(f64::from(f32::from_bits(a as u32)))
        }),
        case("of_double", ("double", "bfloat"), "%r = fptrunc double %a to bfloat", |a, _| nearest(f64::from_bits(a))),
        // A little more than half way between two numbers: by way of the nearest `f32` it would be half way.
        case(
            "of_close",
            ("i16", "bfloat"),
            "%d = sitofp i16 %a to double
  %e = fmul double %d, 0x3FF0100000000000
  %f = fadd double %e, 0x3E00000000000000
  %r = fptrunc double %f to bfloat",
            |a, _| nearest(f64::from(a as u16 as i16) * (1.0 + 2f64.powi(-8)) + 2f64.powi(-31)),
        ),
        case("of_short", ("i16", "bfloat"), "%r = sitofp i16 %a to bfloat", |a, _| nearest(f64::from(a as u16 as i16))),
        case("of_int", ("i32", "bfloat"), "%r = uitofp i32 %a to bfloat", |a, _| nearest(f64::from(a as u32))),
        case("to_single", ("bfloat", "float"), "%r = fpext bfloat %a to float", |a, _| {
            u64::from((brain(a) as f32).to_bits())
        }),
        case("to_double", ("bfloat", "double"), "%r = fpext bfloat %a to double", |a, _| brain(a).to_bits()),
        case("to_int", ("bfloat", "i32"), "%r = call i32 @llvm.fptosi.sat.i32.bf16(bfloat %a)", |a, _| {
            u64::from(brain(a) as i32 as u32)
        }),
    ];
    agree(&cases, "declare i32 @llvm.fptosi.sat.i32.bf16(bfloat)\n");
}
