//! What the floating-point policy makes of a loop with lanes.

use oxisycl_image::Form;

use super::loops::{LOOP, compile_with};
use crate::options::{FloatPolicy, Lanes, Options};

/// The device library's exponential function, and one of a user's crate that has the name of another.
const LIBRARY: &str = "
declare float @llvm.exp.f32(float)
declare float @cosf(float)
declare float @fmaf(float, float, float)
define i32 @__oxisycl_cosf(i32 %x) { ret i32 %x }
define float @__oxisycl_expf(float %x) #0 {
  %p = fmul float %x, 3.0
  %s = fadd float %p, 1.0
  %r = call float @fmaf(float %s, float %x, float 1.0)
  ret float %r
}
";

/// The code and the options of a kernel that multiplies a power of e and adds the element.
fn compile(float: FloatPolicy, lanes: u32) -> (String, String) {
    let statements = "%e = call float @llvm.exp.f32(float %v)
        %c = call float @cosf(float %e)
        %m = fmul float %c, %v
        %r = fadd float %m, %v";
    let text = LOOP.replace("CODE\n  %r = fadd float %v, %v", statements).replace("DROP", "");
    assert!(text.contains(statements), "{text}");
    let options = Options { float, lanes: Lanes::Number(lanes), ..Options::default() };
    compile_with(&(text + LIBRARY), &options, Form::Range(1))
}

#[test]
fn functions_of_singles_are_vectors_unless_the_policy_is_strict() {
    let (text, options) = compile(FloatPolicy::Contract, 8);
    assert!(options.contains("float=contract; its work-items run in vectors of 8 lanes"), "{options}");
    assert!(!text.contains("@llvm.exp.f32") && !text.contains("__oxisycl_expf"), "all of it is inlined: {text}");
    let count = |part: &str| text.matches(part).count();
    // A user's function that has the name of ours, and another type.
    assert!(count("float @cosf(float %") > 8, "{text}");
    // The library's product and sum are rounded one by one, its fused one and that of the kernel are one operation, for all work-items alike.
    for [product, sum, fused] in [
        ["fmul <8 x float>", "fadd <8 x float>", "call <8 x float> @llvm.fma.v8f32("],
        ["fmul float", "fadd float", "call float @llvm.fma.f32("],
    ] {
        let n = count(product);
        assert!(n > 0 && [count(sum), count(fused)] == [n, 2 * n], "{product}: {text}");
    }
    assert_eq!([count("fmul contract"), count("fadd contract")], [0, 0], "nothing is fused later: {text}");

    let (text, options) = compile(FloatPolicy::Strict, 8);
    assert!(options.contains("float=strict; its work-items run in vectors of 8 lanes"), "{options}");
    assert!(text.contains("float @llvm.exp.f32(float %") && !text.contains("llvm.fma"), "{text}");
}

#[test]
fn without_lanes_only_fast_code_differs_from_strict_code() {
    let [strict, contract, fast] =
        [FloatPolicy::Strict, FloatPolicy::Contract, FloatPolicy::Fast].map(|float| compile(float, 1).0);
    assert_eq!(contract, strict);
    assert!(strict.contains("float @llvm.exp.f32(float %") && !strict.contains("__oxisycl_expf"), "{strict}");
    assert!(fast.contains("fmul reassoc nsz arcp contract afn") && fast.contains("@llvm.exp.f32(float %"), "{fast}");
}
