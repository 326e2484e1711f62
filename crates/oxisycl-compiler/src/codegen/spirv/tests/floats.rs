//! Floats: arithmetic, comparisons, conversions and intrinsics, bit for bit.

use super::support::{BEGIN, context, run, translated, validated};

/// Whether two values compare so.
type Comparison = fn(f32, f32) -> bool;
/// Whether a value is of a class.
type Class = fn(f32) -> bool;
/// What is computed of two values, by their bits.
type Reference = Box<dyn Fn(u64, u64) -> u64>;

pub(super) struct Case {
    pub(super) name: String,
    /// Types of the operands and of the result.
    pub(super) types: (&'static str, &'static str),
    /// Computes `%r` of `%a` and `%b`.
    pub(super) body: String,
    pub(super) reference: Reference,
}

/// A case whose kernel is called after it.
pub(super) fn case(
    name: &str,
    types: (&'static str, &'static str),
    body: &str,
    reference: impl Fn(u64, u64) -> u64 + 'static,
) -> Case {
    Case { name: format!("k_{name}"), types, body: body.to_owned(), reference: Box::new(reference) }
}

const SINGLES: [f32; 22] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.25,
    1e-40,
    -1e-40,
    f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    127.9,
    -128.4,
    4.294_967e9,
    9.3e18,
];

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Whether both have equal bits, or are not a number.
fn agrees(kind: &str, found: u64, expected: u64) -> bool {
    found == expected
        || match kind {
            "float" => single(found).is_nan() && single(expected).is_nan(),
            "double" => double(found).is_nan() && double(expected).is_nan(),
            "bfloat" => single(found << 16).is_nan() && single(expected << 16).is_nan(),
            "half" => super::half::value(found).is_nan() && super::half::value(expected).is_nan(),
            _ => false,
        }
}

fn width(kind: &str) -> u32 {
    match kind {
        "float" => 32,
        "double" => 64,
        "bfloat" | "half" => 16,
        integer => integer[1..].parse().expect("an integer type"),
    }
}

pub(super) fn agree(cases: &[Case], declarations: &str) {
    let bits = |kind: &str, value: f32| match kind {
        "float" => u64::from(value.to_bits()),
        "bfloat" => u64::from(value.to_bits() >> 16),
        // With digits that single precision has not.
        "double" => (f64::from(value) * (1.0 + 1e-12)).to_bits(),
        _ => f64::from(value).to_bits().rotate_left(13),
    };
    agree_on(cases, declarations, &|kind| {
        SINGLES.iter().flat_map(|&a| SINGLES.map(|b| (bits(kind, a), bits(kind, b)))).collect()
    });
}

/// Each kernel on the pairs of operands of its type.
pub(super) fn agree_on(cases: &[Case], declarations: &str, pairs_of: &dyn Fn(&str) -> Vec<(u64, u64)>) {
    let context = context();
    let mut text = declarations.to_owned();
    for Case { name, types: (operand, result), body, .. } in cases {
        text += &format!(
            "define void @{name}{BEGIN}
  %offset = mul i64 %i, 24
  %pa = getelementptr i8, ptr %in, i64 %offset
  %pb = getelementptr i8, ptr %pa, i64 8
  %po.offset = mul i64 %i, 8
  %po = getelementptr i8, ptr %out, i64 %po.offset
  %a = load {operand}, ptr %pa
  %b = load {operand}, ptr %pb
  {body}
  store {result} %r, ptr %po, align 1
  ret void\n}}\n"
        );
    }
    let bytes = validated(&translated(&context, &text).module);
    let pairs: Vec<_> = cases.iter().map(|case| pairs_of(case.types.0)).collect();
    let n_pairs = pairs[0].len();
    assert!(pairs.iter().all(|pairs| pairs.len() == n_pairs), "as many of each type");
    let bytes_of = |&(a, b): &(u64, u64)| [a, b, 0].map(u64::to_le_bytes).concat();
    let inputs: Vec<Vec<u8>> = pairs.iter().map(|pairs| pairs.iter().flat_map(bytes_of).collect()).collect();
    let kernels: Vec<_> =
        cases.iter().zip(&inputs).map(|(case, input)| (case.name.as_str(), input.as_slice(), n_pairs * 8)).collect();
    let outputs = run(&bytes, &kernels, n_pairs);
    for ((case, pairs), output) in cases.iter().zip(&pairs).zip(outputs) {
        for (&(a, b), slot) in pairs.iter().zip(output.chunks(8)) {
            let (operand, result) = case.types;
            let cut = |bits: u64, kind: &str| if width(kind) == 64 { bits } else { bits & ((1 << width(kind)) - 1) };
            let (a, b) = (cut(a, operand), cut(b, operand));
            let expected = cut((case.reference)(a, b), result);
            let found = cut(u64::from_le_bytes(slot.try_into().expect("eight bytes")), result);
            assert!(
                agrees(result, found, expected),
                "{} of {a:#x}, {b:#x}: {found:#x}, expected {expected:#x}",
                case.name
            );
        }
    }
}

macro_rules! arithmetic {
    ($($name:ident: $body:literal, |$a:ident, $b:ident| $value:expr;)*) => {{
        let mut cases = Vec::new();
        $(
            cases.push(Case {
                name: concat!("k_f32_", stringify!($name)).to_owned(),
                types: ("float", "float"),
                body: $body.replace('T', "float").replace('S', "f32"),
                reference: Box::new(|a, b| {
                    let ($a, $b) = (single(a), single(b));
                    let _ = $b;
                    u64::from(f32::to_bits($value))
                }),
            });
            cases.push(Case {
                name: concat!("k_f64_", stringify!($name)).to_owned(),
                types: ("double", "double"),
                body: $body.replace('T', "double").replace('S', "f64"),
                reference: Box::new(|a, b| {
                    let ($a, $b) = (double(a), double(b));
                    let _ = $b;
                    f64::to_bits($value)
                }),
            });
        )*
        cases
    }};
}

fn declared(names: &[(&str, usize)]) -> String {
    let mut text = String::new();
    for (name, count) in names {
        for (kind, suffix) in [("float", "f32"), ("double", "f64")] {
            let arguments = vec![kind; *count].join(", ");
            text += &format!("declare {kind} @llvm.{name}.{suffix}({arguments})\n");
        }
    }
    text
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn arithmetic_is_rounded_as_in_rust() {
    let cases = arithmetic! {
        add: "%r = fadd T %a, %b", |a, b| a + b;
        sub: "%r = fsub T %a, %b", |a, b| a - b;
        mul: "%r = fmul T %a, %b", |a, b| a * b;
        div: "%r = fdiv T %a, %b", |a, b| a / b;
        rem: "%r = frem T %a, %b", |a, b| a % b;
        neg: "%r = fneg T %a", |a, b| -a;
        apart: "%p = fmul T %a, %b\n %r = fadd T %p, %a", |a, b| a * b + a;
    };
    agree(&cases, "");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn intrinsics_give_what_rust_gives() {
    let cases = arithmetic! {
        sqrt: "%r = call T @llvm.sqrt.S(T %a)", |a, b| a.sqrt();
        fabs: "%r = call T @llvm.fabs.S(T %a)", |a, b| a.abs();
        floor: "%r = call T @llvm.floor.S(T %a)", |a, b| a.floor();
        ceil: "%r = call T @llvm.ceil.S(T %a)", |a, b| a.ceil();
        trunc: "%r = call T @llvm.trunc.S(T %a)", |a, b| a.trunc();
        round: "%r = call T @llvm.round.S(T %a)", |a, b| a.round();
        even: "%r = call T @llvm.roundeven.S(T %a)", |a, b| a.round_ties_even();
        copysign: "%r = call T @llvm.copysign.S(T %a, T %b)", |a, b| a.copysign(b);
        fma: "%r = call T @llvm.fma.S(T %a, T %b, T %a)", |a, b| a.mul_add(b, a);
        larger: "%s = fadd T %b, 1.0\n%r = call T @llvm.maxnum.S(T %a, T %s)", |a, b| a.max(b + 1.0);
        smaller: "%s = fadd T %b, 1.0\n%r = call T @llvm.minnum.S(T %a, T %s)", |a, b| a.min(b + 1.0);
        minimum: "%r = call T @llvm.minimum.S(T %a, T %b)", |a, b| {
            if a.is_nan() || b.is_nan() { a + b } else if a == b { if a.is_sign_negative() { a } else { b } } else { a.min(b) }
        };
        maximum: "%r = call T @llvm.maximum.S(T %a, T %b)", |a, b| {
            if a.is_nan() || b.is_nan() { a + b } else if a == b { if a.is_sign_negative() { b } else { a } } else { a.max(b) }
        };
    };
    let names = ["sqrt", "fabs", "floor", "ceil", "trunc", "round", "roundeven"].map(|name| (name, 1));
    let more = ["copysign", "maxnum", "minnum", "minimum", "maximum"].map(|name| (name, 2));
    agree(&cases, &(declared(&names) + &declared(&more) + &declared(&[("fma", 3)])));
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn comparisons_know_what_is_not_a_number() {
    let predicates: [(&str, Comparison); 14] = [
        ("oeq", |a, b| a == b),
        ("ogt", |a, b| a > b),
        ("oge", |a, b| a >= b),
        ("olt", |a, b| a < b),
        ("ole", |a, b| a <= b),
        ("one", |a, b| a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne)),
        ("ord", |a, b| !a.is_nan() && !b.is_nan()),
        ("uno", |a, b| a.is_nan() || b.is_nan()),
        ("ueq", |a, b| a.partial_cmp(&b).is_none_or(std::cmp::Ordering::is_eq)),
        ("ugt", |a, b| a.partial_cmp(&b) != Some(std::cmp::Ordering::Less) && a != b),
        ("uge", |a, b| a.partial_cmp(&b) != Some(std::cmp::Ordering::Less)),
        ("ult", |a, b| a.partial_cmp(&b) != Some(std::cmp::Ordering::Greater) && a != b),
        ("ule", |a, b| a.partial_cmp(&b) != Some(std::cmp::Ordering::Greater)),
        ("une", |a, b| a != b),
    ];
    let cases: Vec<_> = predicates
        .into_iter()
        .map(|(predicate, reference)| Case {
            name: format!("k_{predicate}"),
            types: ("float", "i32"),
            body: format!("%c = fcmp {predicate} float %a, %b\n%r = zext i1 %c to i32"),
            reference: Box::new(move |a, b| u64::from(reference(single(a), single(b)))),
        })
        .collect();
    agree(&cases, "");
}

/// `as` of Rust, for any width of at most 64 bits.
fn as_integer(value: f64, width: u32, is_signed: bool) -> u64 {
    if is_signed {
        let (least, greatest) = (i64::MIN >> (64 - width), i64::MAX >> (64 - width));
        (value as i64).clamp(least, greatest) as u64
    } else {
        (value as u64).min(u64::MAX >> (64 - width))
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn conversions_to_integers_stop_at_the_limits() {
    let mut cases = Vec::new();
    let mut declarations = String::new();
    for (to, width) in [("i8", 8), ("i16", 16), ("i24", 24), ("i32", 32), ("i40", 40), ("i64", 64)] {
        for (name, is_signed) in [("fptosi", true), ("fptoui", false)] {
            for (from, suffix) in [("float", "f32"), ("double", "f64")] {
                declarations += &format!("declare {to} @llvm.{name}.sat.{to}.{suffix}({from})\n");
                cases.push(Case {
                    name: format!("k_{name}_{to}_{suffix}"),
                    types: (from, to),
                    body: format!("%r = call {to} @llvm.{name}.sat.{to}.{suffix}({from} %a)"),
                    reference: Box::new(move |a, _| {
                        let value = if from == "float" { f64::from(single(a)) } else { double(a) };
                        as_integer(value, width, is_signed)
                    }),
                });
            }
        }
    }
    agree(&cases, &declarations);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn integers_become_the_nearest_float() {
    let signed = |a: u64, width: u32| (a << (64 - width)) as i64 >> (64 - width);
    let mut cases = Vec::new();
    for (from, width) in [("i8", 8), ("i16", 16), ("i24", 24), ("i32", 32), ("i64", 64)] {
        for (op, is_signed) in [("sitofp", true), ("uitofp", false)] {
            cases.push(Case {
                name: format!("k_{op}_{from}_f32"),
                types: (from, "float"),
                body: format!("%r = {op} {from} %a to float"),
                reference: Box::new(move |a, _| {
                    u64::from(if is_signed { signed(a, width) as f32 } else { a as f32 }.to_bits())
                }),
            });
            cases.push(Case {
                name: format!("k_{op}_{from}_f64"),
                types: (from, "double"),
                body: format!("%r = {op} {from} %a to double"),
                reference: Box::new(move |a, _| (if is_signed { signed(a, width) as f64 } else { a as f64 }).to_bits()),
            });
        }
    }
    cases.push(Case {
        name: "k_shorter".to_owned(),
        types: ("double", "float"),
        body: "%r = fptrunc double %a to float".to_owned(),
        reference: Box::new(|a, _| u64::from((double(a) as f32).to_bits())),
    });
    cases.push(Case {
        name: "k_longer".to_owned(),
        types: ("float", "double"),
        body: "%r = fpext float %a to double".to_owned(),
        reference: Box::new(|a, _| f64::from(single(a)).to_bits()),
    });
    agree(&cases, "");
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn integers_of_128_bits_become_floats_and_come_back() {
    let cases = vec![
        Case {
            name: "k_wide_to_float".to_owned(),
            types: ("i64", "double"),
            body: "%w = sext i64 %a to i128\n%x = mul i128 %w, %w\n%y = xor i128 %x, -1\n%r = sitofp i128 %y to double"
                .to_owned(),
            reference: Box::new(|a, _| {
                let wide = i128::from(a as i64);
                (!wide.wrapping_mul(wide) as f64).to_bits()
            }),
        },
        Case {
            name: "k_float_to_wide".to_owned(),
            types: ("double", "i64"),
            body: "%m = call double @llvm.fabs.f64(double %a)\n%n = call double @llvm.minnum.f64(double %m, double 0x47D0000000000000)
  %w = fptoui double %n to i128\n%h = lshr i128 %w, 64\n%x = xor i128 %h, %w\n%r = trunc i128 %x to i64"
                .to_owned(),
            reference: Box::new(|a, _| {
                let wide = double(a).abs().min(f64::from_bits(0x47D0_0000_0000_0000)) as u128;
                ((wide >> 64) ^ wide) as u64
            }),
        },
    ];
    agree(&cases, &declared(&[("fabs", 1), ("minnum", 2)]));
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn classes_of_floats_are_told_apart() {
    let classes: [(u32, Class); 8] = [
        (0x3, f32::is_nan),
        (0x204, f32::is_infinite),
        (0x1F8, f32::is_finite),
        (0x90, f32::is_subnormal),
        (0x108, f32::is_normal),
        (0x20, |a| a == 0.0 && a.is_sign_negative()),
        (0x40, |a| a == 0.0 && a.is_sign_positive()),
        (0x200, |a| a == f32::INFINITY),
    ];
    let cases: Vec<_> = classes
        .into_iter()
        .map(|(mask, reference)| Case {
            name: format!("k_class_{mask}"),
            types: ("float", "i32"),
            body: format!("%c = call i1 @llvm.is.fpclass.f32(float %a, i32 {mask})\n%r = zext i1 %c to i32"),
            reference: Box::new(move |a, _| u64::from(reference(single(a)))),
        })
        .collect();
    agree(&cases, "declare i1 @llvm.is.fpclass.f32(float, i32 immarg)\n");
}

#[test]
fn products_and_sums_become_one_operation_only_if_allowed() {
    let context = context();
    let kernel = |flag: &str| {
        let text = format!(
            "define void @k{BEGIN}\n%a = load float, ptr %in\n%p = fmul {flag} float %a, %a\n%s = fadd {flag} float %p, %a\n\
             store float %s, ptr %out\nret void\n}}\n"
        );
        super::golden::text(&translated(&context, &text).module)
    };
    assert!(kernel("contract").contains("mad"), "{}", kernel("contract"));
    assert!(!kernel("contract").contains("OpFMul"));
    assert!(!kernel("").contains("mad") && kernel("").contains("OpFMul"), "{}", kernel(""));
    for flag in ["", "contract"] {
        assert!(kernel(flag).contains("ContractionOff"), "the driver decides nothing itself");
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_product_of_two_sums_is_rounded_with_both() {
    let context = context();
    // Of the two products that both sums use, one stays.
    let text = format!(
        "define void @k{BEGIN}\n%a = load float, ptr %in\n%pb = getelementptr float, ptr %in, i64 1\n%b = load float, ptr %pb\n\
         %x = fmul contract float %a, %a\n%y = fmul contract float %b, %b\n%s = fadd contract float %x, %y\n\
         %d = fsub contract float %x, %y\nstore float %s, ptr %out\n%po = getelementptr float, ptr %out, i64 1\n\
         store float %d, ptr %po\nret void\n}}\n"
    );
    let translation = translated(&context, &text);
    let assembly = super::golden::text(&translation.module);
    assert_eq!((assembly.matches(" mad ").count(), assembly.matches("OpFMul").count()), (2, 1), "{assembly}");
    let input = [3.0f32, 5.0].map(f32::to_le_bytes).concat();
    let outputs = run(&validated(&translation.module), &[("k", &input, 8)], 1);
    assert_eq!(outputs[0], [34.0f32, -16.0].map(f32::to_le_bytes).concat());
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn products_and_sums_stay_apart_in_loops_that_work_items_leave_at_different_times() {
    let context = context();
    // `%end` is the loop's last pass.
    let kernel = |end: &str| {
        let text = format!(
            "define void @k{BEGIN}\n%count = load i64, ptr %in\n%place = getelementptr i64, ptr %in, i64 %i\nbr label %head\n\
             head:\n%n = phi i64 [ 0, %0 ], [ %m, %head ]\n%x = phi float [ 1.0, %0 ], [ %s, %head ]\n%p = fmul contract float %x, 2.0\n\
             %s = fadd contract float %p, 3.0\n%m = add i64 %n, 1\n{end}\nbr i1 %last, label %done, label %head\n\
             done:\n%q = fmul contract float %s, 0.5\n%r = fadd contract float %q, 1.0\n%o = getelementptr float, ptr %out, i64 %i\n\
             store float %r, ptr %o\nret void\n}}\n"
        );
        translated(&context, &text)
    };
    let fused = |end: &str| super::golden::text(&kernel(end).module).matches(" mad ").count();
    // All work-items know the same: a number, the kernel's arguments, and what they lead to.
    assert_eq!(fused("%last = icmp uge i64 %m, 7"), 2);
    assert_eq!(fused("%limit = load i64, ptr %in\n%last = icmp uge i64 %m, %limit"), 2);
    assert_eq!(fused("%last = fcmp ogt float %s, 100.0"), 2);
    // Each knows its own. What comes after the loop is executed by all again.
    for end in [
        "%last = icmp ugt i64 %m, %i",
        "%mine = load i64, ptr %place\n%last = icmp ugt i64 %m, %mine",
        "%old = atomicrmw add ptr %out, i32 0 monotonic\n%last = icmp ne i32 %old, 1",
    ] {
        assert_eq!(fused(end), 1, "{end}");
    }
    let bytes = validated(&kernel("%last = icmp ugt i64 %m, %i").module);
    let outputs = run(&bytes, &[("k", &[0; 64], 32)], 8);
    let expected = (0..8).map(|i| (0..=i).fold(1.0f32, |x, _| x * 2.0 + 3.0) * 0.5 + 1.0);
    assert_eq!(outputs[0], expected.flat_map(f32::to_le_bytes).collect::<Vec<_>>());
}
