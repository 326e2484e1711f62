//! Integers of every kind of width, through arithmetic, comparisons, conversions and intrinsics.

use std::fmt::Write;

use super::support::{BEGIN, UNTOUCHED, context, run, translated, validated};

/// The widths of SPIR-V, odd ones between them, and those of more than a word.
const WIDTHS: [u32; 12] = [1, 7, 8, 16, 24, 32, 33, 63, 64, 65, 96, 128];
/// Bytes between two values in memory.
const STRIDE: usize = 16;

fn mask(width: u32) -> u128 {
    u128::MAX >> (128 - width)
}

fn signed(value: u128, width: u32) -> i128 {
    (value as i128) << (128 - width) >> (128 - width)
}

/// Values of a width with interesting neighbours, and some without pattern.
fn values(width: u32) -> Vec<u128> {
    let mask = mask(width);
    let half = 1u128 << (width - 1);
    let mut all =
        vec![0, 1, 2, mask, mask - 1, half, half.wrapping_sub(1), half.wrapping_add(1), 0x55, 1 << (width / 2)];
    let mut state = 0x9E37_79B9_7F4A_7C15_u128;
    for _ in 0..6 {
        state = state.wrapping_mul(0x2545_F491_4F6C_DD1D_1234_5678_9ABC_DEF1).wrapping_add(0xDEAD_BEEF);
        all.push(state >> 3);
    }
    all.into_iter().map(|value| value & mask).collect()
}

/// An operation: its name, how LLVM writes it, and what Rust computes. `None` where LLVM's result is undefined.
struct Operation {
    name: &'static str,
    text: fn(u32) -> String,
    reference: fn(u128, u128, u32) -> Option<u128>,
}

fn binary(op: &str, width: u32) -> String {
    format!("%r = {op} i{width} %a, %b")
}

fn intrinsic(name: &str, width: u32) -> String {
    format!("%r = call i{width} @llvm.{name}.i{width}(i{width} %a, i{width} %b)")
}

fn unary(name: &str, width: u32, more: &str) -> String {
    format!("%r = call i{width} @llvm.{name}.i{width}(i{width} %a{more})")
}

fn comparison(predicate: &str, width: u32) -> String {
    format!("%c = icmp {predicate} i{width} %a, %b\n%r = zext i1 %c to i{}", width.max(2)).replace(
        &format!("%r = zext i1 %c to i{}", width.max(2)),
        &if width == 1 { "%r = or i1 %c, false".to_owned() } else { format!("%r = zext i1 %c to i{width}") },
    )
}

/// The result and, in its lowest bit exchanged, whether it overflowed.
fn overflow(name: &str, width: u32) -> String {
    format!(
        "%p = call {{ i{width}, i1 }} @llvm.{name}.with.overflow.i{width}(i{width} %a, i{width} %b)
  %v = extractvalue {{ i{width}, i1 }} %p, 0
  %o = extractvalue {{ i{width}, i1 }} %p, 1
  %n = xor i{width} %v, -1
  %r = select i1 %o, i{width} %n, i{width} %v"
    )
}

/// Wrapped result of exact arithmetic, and whether it differs. Exact products of 128 bits are computed by Rust's own checks.
fn checked(name: &str, a: u128, b: u128, width: u32) -> (u128, bool) {
    let (sa, sb) = (signed(a, width), signed(b, width));
    let (wrapped, overflow) = match name {
        "uadd" => (a.wrapping_add(b), a.checked_add(b).is_none_or(|sum| sum > mask(width))),
        "usub" => (a.wrapping_sub(b), a < b),
        "umul" => (a.wrapping_mul(b), a.checked_mul(b).is_none_or(|product| product > mask(width))),
        _ => {
            let exact = match name {
                "sadd" => sa.checked_add(sb),
                "ssub" => sa.checked_sub(sb),
                _ => sa.checked_mul(sb),
            };
            let wrapped = match name {
                "sadd" => sa.wrapping_add(sb),
                "ssub" => sa.wrapping_sub(sb),
                _ => sa.wrapping_mul(sb),
            };
            (wrapped as u128, exact.is_none_or(|exact| exact != signed(wrapped as u128, width)))
        }
    };
    (wrapped & mask(width), overflow)
}

fn flagged(name: &str, a: u128, b: u128, width: u32) -> Option<u128> {
    let (value, overflow) = checked(name, a, b, width);
    Some(if overflow { !value & mask(width) } else { value })
}

fn saturated(name: &str, a: u128, b: u128, width: u32) -> Option<u128> {
    let (value, overflow) = checked(name, a, b, width);
    if !overflow {
        return Some(value);
    }
    Some(match name {
        "uadd" => mask(width),
        "usub" => 0,
        _ if signed(a, width) < 0 => 1 << (width - 1),
        _ => mask(width) >> 1,
    })
}

fn reversed(a: u128, width: u32) -> u128 {
    a.reverse_bits() >> (128 - width)
}

/// Rotation of two numbers as one, to the left.
fn funnel(a: u128, b: u128, distance: u32, width: u32) -> u128 {
    let distance = distance % width;
    if distance == 0 { a } else { (a << distance | b >> (width - distance)) & mask(width) }
}

macro_rules! operations {
    ($($name:literal, |$w:ident| $text:expr, |$a:ident, $b:ident, $width:pat_param| $reference:expr;)*) => {
        &[$(Operation { name: $name, text: |$w| $text, reference: |$a, $b, $width| $reference },)*]
    };
}

const OPERATIONS: &[Operation] = operations! {
    "add", |w| binary("add", w), |a, b, _| Some(a.wrapping_add(b));
    "sub", |w| binary("sub", w), |a, b, _| Some(a.wrapping_sub(b));
    "mul", |w| binary("mul", w), |a, b, _| Some(a.wrapping_mul(b));
    "and", |w| binary("and", w), |a, b, _| Some(a & b);
    "or", |w| binary("or", w), |a, b, _| Some(a | b);
    "xor", |w| binary("xor", w), |a, b, _| Some(a ^ b);
    "shl", |w| binary("shl", w), |a, b, w| (b < u128::from(w)).then(|| a << b);
    "lshr", |w| binary("lshr", w), |a, b, w| (b < u128::from(w)).then(|| a >> b);
    "ashr", |w| binary("ashr", w), |a, b, w| (b < u128::from(w)).then(|| (signed(a, w) >> b) as u128);
    "eq", |w| comparison("eq", w), |a, b, _| Some(u128::from(a == b));
    "ne", |w| comparison("ne", w), |a, b, _| Some(u128::from(a != b));
    "ult", |w| comparison("ult", w), |a, b, _| Some(u128::from(a < b));
    "ule", |w| comparison("ule", w), |a, b, _| Some(u128::from(a <= b));
    "ugt", |w| comparison("ugt", w), |a, b, _| Some(u128::from(a > b));
    "uge", |w| comparison("uge", w), |a, b, _| Some(u128::from(a >= b));
    "slt", |w| comparison("slt", w), |a, b, w| Some(u128::from(signed(a, w) < signed(b, w)));
    "sle", |w| comparison("sle", w), |a, b, w| Some(u128::from(signed(a, w) <= signed(b, w)));
    "sgt", |w| comparison("sgt", w), |a, b, w| Some(u128::from(signed(a, w) > signed(b, w)));
    "sge", |w| comparison("sge", w), |a, b, w| Some(u128::from(signed(a, w) >= signed(b, w)));
    "umin", |w| intrinsic("umin", w), |a, b, _| Some(a.min(b));
    "umax", |w| intrinsic("umax", w), |a, b, _| Some(a.max(b));
    "smin", |w| intrinsic("smin", w), |a, b, w| Some(signed(a, w).min(signed(b, w)) as u128);
    "smax", |w| intrinsic("smax", w), |a, b, w| Some(signed(a, w).max(signed(b, w)) as u128);
    "abs", |w| unary("abs", w, ", i1 false"), |a, _b, w| Some(signed(a, w).wrapping_abs() as u128);
    "ctpop", |w| unary("ctpop", w, ""), |a, _b, _| Some(a.count_ones().into());
    "ctlz", |w| unary("ctlz", w, ", i1 false"), |a, _b, w| Some((a.leading_zeros() - (128 - w)).into());
    "cttz", |w| unary("cttz", w, ", i1 false"), |a, _b, w| Some(a.trailing_zeros().min(w).into());
    "bitreverse", |w| unary("bitreverse", w, ""), |a, _b, w| Some(reversed(a, w));
    "uadd_o", |w| overflow("uadd", w), |a, b, w| flagged("uadd", a, b, w);
    "usub_o", |w| overflow("usub", w), |a, b, w| flagged("usub", a, b, w);
    "umul_o", |w| overflow("umul", w), |a, b, w| flagged("umul", a, b, w);
    "sadd_o", |w| overflow("sadd", w), |a, b, w| flagged("sadd", a, b, w);
    "ssub_o", |w| overflow("ssub", w), |a, b, w| flagged("ssub", a, b, w);
    "smul_o", |w| overflow("smul", w), |a, b, w| flagged("smul", a, b, w);
    "uadd_s", |w| intrinsic("uadd.sat", w), |a, b, w| saturated("uadd", a, b, w);
    "usub_s", |w| intrinsic("usub.sat", w), |a, b, w| saturated("usub", a, b, w);
    "sadd_s", |w| intrinsic("sadd.sat", w), |a, b, w| saturated("sadd", a, b, w);
    "ssub_s", |w| intrinsic("ssub.sat", w), |a, b, w| saturated("ssub", a, b, w);
};

/// Divisions, whose divisor is not zero and whose result fits.
const DIVISIONS: &[Operation] = operations! {
    "udiv", |w| binary("udiv", w), |a, b, _| a.checked_div(b);
    "urem", |w| binary("urem", w), |a, b, _| a.checked_rem(b);
    "sdiv", |w| binary("sdiv", w), |a, b, w| signed(a, w).checked_div(signed(b, w)).map(|q| q as u128);
    "srem", |w| binary("srem", w), |a, b, w| signed(a, w).checked_rem(signed(b, w)).map(|r| r as u128);
};

/// Other functions of one width only.
const OF_SOME_WIDTHS: &[(u32, Operation)] = &[
    (
        16,
        Operation {
            name: "bswap",
            text: |w| unary("bswap", w, ""),
            reference: |a, _, _| Some((a as u16).swap_bytes().into()),
        },
    ),
    (
        32,
        Operation {
            name: "bswap",
            text: |w| unary("bswap", w, ""),
            reference: |a, _, _| Some((a as u32).swap_bytes().into()),
        },
    ),
    (48, Operation { name: "bswap", text: |w| unary("bswap", w, ""), reference: |a, _, _| Some(a.swap_bytes() >> 80) }),
    (
        64,
        Operation {
            name: "bswap",
            text: |w| unary("bswap", w, ""),
            reference: |a, _, _| Some((a as u64).swap_bytes().into()),
        },
    ),
    (96, Operation { name: "bswap", text: |w| unary("bswap", w, ""), reference: |a, _, _| Some(a.swap_bytes() >> 32) }),
    (128, Operation { name: "bswap", text: |w| unary("bswap", w, ""), reference: |a, _, _| Some(a.swap_bytes()) }),
];

fn kernel(name: &str, width: u32, body: &str, result: u32) -> String {
    format!(
        "define void @{name}{BEGIN}
  %place = mul i64 %i, {pair}
  %pa = getelementptr i8, ptr %in, i64 %place
  %pb = getelementptr i8, ptr %pa, i64 {STRIDE}
  %po.offset = mul i64 %i, {STRIDE}
  %po = getelementptr i8, ptr %out, i64 %po.offset
  %a = load i{width}, ptr %pa, align 16
  %b = load i{width}, ptr %pb, align 1
  {body}
  store i{result}, ptr %po, align 1
  ret void\n}}\n",
        pair = 2 * STRIDE,
    )
    .replace(&format!("store i{result}, ptr %po"), &format!("store i{result} %r, ptr %po"))
}

fn undefined_division(name: &str, a: u128, b: u128, width: u32) -> bool {
    let is_signed = name.starts_with('s');
    is_signed && signed(b, width) == -1 && a == 1 << (width - 1)
}

/// Runs operations of the given widths on all pairs of values, and compares.
fn agree(operations: &[(u32, &Operation)]) {
    let context = context();
    let mut text = String::new();
    let mut declared = std::collections::BTreeSet::new();
    let mut cases = Vec::new();
    for &(width, operation) in operations {
        let name = format!("k_{}_{width}", operation.name);
        let body = (operation.text)(width);
        declared.extend(declarations(&body));
        text += &kernel(&name, width, &body, width);
        let mut pairs = Vec::new();
        for a in values(width) {
            for b in values(width).into_iter().chain([3, u128::from(width) - 1, u128::from(width / 2)]) {
                let b = b & mask(width);
                let defined =
                    (operation.reference)(a, b, width).is_some() && !undefined_division(operation.name, a, b, width);
                pairs.extend(defined.then_some((a, b)));
            }
        }
        let input: Vec<u8> = pairs.iter().flat_map(|(a, b)| [a.to_le_bytes(), b.to_le_bytes()].concat()).collect();
        cases.push((name, width, operation, pairs, input));
    }
    let most = cases.iter().map(|(_, _, _, pairs, _)| pairs.len()).max().expect("there are operations");
    for (_, _, _, _, input) in &mut cases {
        // As many work-items for each; those beyond the pairs divide one by one.
        while input.len() < most * 2 * STRIDE {
            input.extend([1u128.to_le_bytes(), 1u128.to_le_bytes()].concat());
        }
    }
    text.extend(declared);
    let bytes = validated(&translated(&context, &text).module);
    let kernels: Vec<_> =
        cases.iter().map(|(name, _, _, _, input)| (name.as_str(), input.as_slice(), most * STRIDE)).collect();
    let outputs = run(&bytes, &kernels, most);
    for ((name, width, operation, pairs, _), output) in cases.iter().zip(outputs) {
        for (&(a, b), slot) in pairs.iter().zip(output.chunks(STRIDE)) {
            let expected = (operation.reference)(a, b, *width).expect("only defined ones were kept") & mask(*width);
            let size = width.div_ceil(8) as usize;
            let mut bytes = [0; STRIDE];
            bytes[..size].copy_from_slice(&slot[..size]);
            assert_eq!(u128::from_le_bytes(bytes), expected, "{name}({a:#x}, {b:#x})");
            assert!(slot[size..].iter().all(|&byte| byte == UNTOUCHED), "{name} writes beyond its {size} bytes");
        }
    }
}

/// Declarations of the intrinsics that a body calls.
fn declarations(body: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in body.lines().filter(|line| line.contains("@llvm.")) {
        let (before, call) = line.split_once("call ").expect("intrinsics are called");
        let _ = before;
        let (signature, arguments) = call.split_once('(').expect("a list of arguments");
        let types =
            arguments.trim_end_matches(')').split(", ").map(|argument| argument.split(' ').next().unwrap_or(""));
        let mut text = String::new();
        let _ = writeln!(text, "declare {signature}({})", types.collect::<Vec<_>>().join(", "));
        found.push(text);
    }
    found
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn arithmetic_and_comparisons_hold_at_every_width() {
    let operations: Vec<_> = WIDTHS.iter().flat_map(|&w| OPERATIONS[..19].iter().map(move |op| (w, op))).collect();
    agree(&operations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn intrinsics_hold_at_every_width() {
    let operations: Vec<_> = WIDTHS.iter().flat_map(|&w| OPERATIONS[19..28].iter().map(move |op| (w, op))).collect();
    agree(&operations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn overflow_and_saturation_hold_at_every_width() {
    let operations: Vec<_> = WIDTHS[1..].iter().flat_map(|&w| OPERATIONS[28..].iter().map(move |op| (w, op))).collect();
    agree(&operations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn divisions_hold_at_every_width() {
    let operations: Vec<_> = WIDTHS[1..].iter().flat_map(|&w| DIVISIONS.iter().map(move |op| (w, op))).collect();
    agree(&operations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn bytes_are_swapped_at_every_width() {
    let operations: Vec<_> = OF_SOME_WIDTHS.iter().map(|(w, op)| (*w, op)).collect();
    agree(&operations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn two_numbers_are_shifted_as_one() {
    const SHIFTS: &[Operation] = operations! {
        "fshl", |w| format!("%r = call i{w} @llvm.fshl.i{w}(i{w} %a, i{w} %b, i{w} %b)"), |a, b, w| Some(funnel(a, b, (b % u128::from(w)) as u32, w));
        "fshr", |w| format!("%r = call i{w} @llvm.fshr.i{w}(i{w} %a, i{w} %b, i{w} %b)"), |a, b, w| {
            let distance = (b % u128::from(w)) as u32;
            Some(if distance == 0 { b } else { funnel(a, b, w - distance, w) })
        };
    };
    let widths = [8, 16, 24, 32, 33, 64, 128];
    let operations: Vec<_> = widths.iter().flat_map(|&w| SHIFTS.iter().map(move |op| (w, op))).collect();
    agree(&operations);
}
