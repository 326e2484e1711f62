//! Conversions between floats and integers, at the ends of what they hold, and sides of branches with several nodes.

use super::bodies::body;
use super::{check, text_in_lanes};

const DECLARATIONS: &str = "
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i32 @llvm.fshl.i32(i32, i32, i32)
";

/// Code that mixes what `convert` makes of a value `%of` into `%out`. Values begin at these ones, and grow by `step` from item to item.
fn mixture(of: &str, begins: &[u64], step: u64, convert: &str) -> String {
    let mut code = format!("%grown = mul i64 %x, {step}\n %h.0 = trunc i64 %x to i32\n");
    for (number, begin) in begins.iter().enumerate() {
        let next = number + 1;
        code += &format!("%raw.{number} = add i64 %grown, {begin}\n");
        match of {
            "i64" => code += &format!("%of.{number} = add i64 %raw.{number}, 0\n"),
            _ => {
                code += &format!("%bits.{number} = trunc i64 %raw.{number} to i32\n");
                code += &format!("%of.{number} = bitcast i32 %bits.{number} to float\n");
            }
        }
        code += &convert.replace("%of", &format!("%of.{number}")).replace("%result", &format!("%r.{number}"));
        code += &format!("\n %turned.{number} = call i32 @llvm.fshl.i32(i32 %h.{number}, i32 %h.{number}, i32 7)\n");
        code += &format!("%h.{next} = xor i32 %turned.{number}, %r.{number}\n");
    }
    DECLARATIONS.to_owned() + &body(&format!("{code} store i32 %h.{}, ptr %o\n ret void", begins.len()))
}

/// Bits of floats: zeros, small numbers, those around both ends of 32 bits, infinities and what is no number.
const FLOATS: [u64; 10] = [
    0,
    0x8000_0000,
    0x3f7f_fffc,
    0x4eff_fffc,
    0x4f7f_fffc,
    0xcf00_0000 - 4,
    0x7f7f_fffc,
    0xff7f_fffc,
    0x7fc0_0000,
    0xbf7f_fff0,
];

#[test]
fn floats_become_integers_as_by_as() {
    for intrinsic in ["fptosi", "fptoui"] {
        let convert = format!("%result = call i32 @llvm.{intrinsic}.sat.i32.f32(float %of)");
        for step in [1, 0x0410_0001] {
            check(&mixture("float", &FLOATS, step, &convert));
        }
        let text = text_in_lanes(&mixture("float", &FLOATS[..1], 1, &convert));
        assert!(!text.contains(".sat."), "{text}");
    }
}

#[test]
fn indices_become_floats_also_where_they_are_large() {
    let begins = [0, (1 << 24) - 8, (1 << 31) - 8, (1 << 32) - 8, u64::MAX - 16];
    let convert = "%result.f = uitofp i64 %of to float\n %result = bitcast float %result.f to i32";
    for step in [1, 0x0123_4567_89ab_cdef] {
        check(&mixture("i64", &begins, step, convert));
    }
    let text = text_in_lanes(&mixture("i64", &begins[..1], 1, convert));
    assert!(text.contains("f32_of_u64"), "{text}");
}

#[test]
fn sides_of_branches_that_few_lanes_run() {
    // Each arm of each choice loads. The outer one divides lanes, and so does each of the inner ones.
    check(&body(
        "%u = load i32, ptr %a
         %is = icmp ult i32 %u, 3
         br i1 %is, label %seldom, label %often
         seldom:
         %v = load float, ptr %b
         %small = fcmp olt float %v, 8.0
         br i1 %small, label %first.1, label %second.1
         first.1:
         %p1 = load i32, ptr %first
         br label %join.1
         second.1:
         %p2 = load i32, ptr %a
         br label %join.1
         join.1:
         %p = phi i32 [ %p1, %first.1 ], [ %p2, %second.1 ]
         %odd = and i32 %u, 1
         %is_odd = icmp eq i32 %odd, 1
         br i1 %is_odd, label %first.2, label %second.2
         first.2:
         %q1 = load i32, ptr %first
         br label %join.2
         second.2:
         store i32 7, ptr %o
         br label %join.2
         join.2:
         %q = phi i32 [ %q1, %first.2 ], [ %p, %second.2 ]
         br label %end
         often:
         %w = load i32, ptr %first
         br label %end
         end:
         %r = phi i32 [ %q, %join.2 ], [ %w, %often ]
         store i32 %r, ptr %o
         ret void",
    ));
}
