//! All elements of a vector joined: `vector.reduce` of every operation.

use std::fmt::{Debug, Write};

use super::support::{BEGIN, context, run, translated, validated};

/// Vectors that each kernel gets.
const VECTORS: usize = 64;
/// Elements of a vector.
const N: usize = 4;

/// A kernel that reduces one vector for each work-item: the elements' type, what computes `%r` of `%v`, and the result's type.
fn kernel(name: &str, kind: &str, body: &str, result: &str) -> String {
    format!(
        "define void @k_{name}{BEGIN}
  %from = mul i64 %i, 32
  %pv = getelementptr i8, ptr %in, i64 %from
  %v = load <{N} x {kind}>, ptr %pv, align 8
  %to = mul i64 %i, 8
  %place = getelementptr i8, ptr %out, i64 %to
  store i64 0, ptr %place
  {body}
  store {result} %r, ptr %place
  ret void\n}}\n"
    )
}

/// Elements whose bits have no pattern.
fn words() -> Vec<[u64; N]> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ state >> 29
    };
    (0..VECTORS).map(|_| std::array::from_fn(|_| next())).collect()
}

/// Runs kernels on vectors of elements of so many bytes, and compares what each leaves.
fn agree<T: Copy + Debug>(
    code: &str,
    names: &[&str],
    vectors: &[[T; N]],
    bytes_of: &dyn Fn(T) -> Vec<u8>,
    expected: &dyn Fn(&str, [T; N]) -> u64,
) {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    let padded = |vector: &[T; N]| {
        let mut bytes: Vec<u8> = vector.iter().flat_map(|&element| bytes_of(element)).collect();
        bytes.resize(32, 0);
        bytes
    };
    let input: Vec<u8> = vectors.iter().flat_map(padded).collect();
    let symbols: Vec<String> = names.iter().map(|name| format!("k_{name}")).collect();
    let kernels: Vec<_> = symbols.iter().map(|symbol| (symbol.as_str(), input.as_slice(), 8 * VECTORS)).collect();
    let outputs = run(&bytes, &kernels, VECTORS);
    for (name, output) in names.iter().zip(outputs) {
        for (&vector, slot) in vectors.iter().zip(output.chunks(8)) {
            let found = u64::from_le_bytes(slot.try_into().expect("eight bytes"));
            assert_eq!(found, expected(name, vector), "{name} of {vector:?}: {found:#x}");
        }
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn integers_of_a_vector_are_joined() {
    let names = ["add", "mul", "and", "or", "xor", "umin", "umax", "smin", "smax"];
    for width in [8u32, 32, 64] {
        let mask = u64::MAX >> (64 - width);
        let mut code = String::new();
        for name in names {
            let _ = writeln!(code, "declare i{width} @llvm.vector.reduce.{name}.v{N}i{width}(<{N} x i{width}>)");
            let body = format!("%r = call i{width} @llvm.vector.reduce.{name}.v{N}i{width}(<{N} x i{width}> %v)");
            code += &kernel(name, &format!("i{width}"), &body, &format!("i{width}"));
        }
        let signed = |value: u64| (value << (64 - width)) as i64;
        let expected = |name: &str, vector: [u64; N]| {
            let numbers = vector.into_iter().map(|value| value & mask);
            let all = match name {
                "add" => numbers.fold(0, u64::wrapping_add),
                "mul" => numbers.fold(1, u64::wrapping_mul),
                "and" => numbers.fold(u64::MAX, |all, value| all & value),
                "or" => numbers.fold(0, |all, value| all | value),
                "xor" => numbers.fold(0, |all, value| all ^ value),
                "umin" => numbers.min().unwrap_or_default(),
                "umax" => numbers.max().unwrap_or_default(),
                "smin" => numbers.min_by_key(|&value| signed(value)).unwrap_or_default(),
                _ => numbers.max_by_key(|&value| signed(value)).unwrap_or_default(),
            };
            all & mask
        };
        let bytes_of = |value: u64| value.to_le_bytes()[..width as usize / 8].to_vec();
        agree(&code, &names, &words(), &bytes_of, &expected);
    }
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn truths_of_a_vector_are_joined() {
    let mut code = String::new();
    for name in ["and", "or", "xor"] {
        let _ = writeln!(code, "declare i1 @llvm.vector.reduce.{name}.v{N}i1(<{N} x i1>)");
        let body = format!(
            "%c = icmp slt <{N} x i32> %v, zeroinitializer\n%t = call i1 @llvm.vector.reduce.{name}.v{N}i1(<{N} x i1> %c)\n\
             %r = zext i1 %t to i32"
        );
        code += &kernel(name, "i32", &body, "i32");
    }
    let expected = |name: &str, vector: [i32; N]| {
        let n_true = vector.into_iter().filter(|&value| value < 0).count();
        u64::from(match name {
            "and" => n_true == N,
            "or" => n_true > 0,
            _ => n_true % 2 == 1,
        })
    };
    // Each combination of signs several times.
    let vectors: Vec<[i32; N]> =
        (0..VECTORS).map(|i| std::array::from_fn(|bit| if i >> bit & 1 == 1 { -5 } else { 5 })).collect();
    agree(&code, &["and", "or", "xor"], &vectors, &|value| value.to_le_bytes().to_vec(), &expected);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn floats_of_a_vector_are_joined_in_their_order() {
    let mut code = String::new();
    let names = ["fadd", "fmul", "fmin", "fmax", "fminimum", "fmaximum"];
    for name in names {
        let has_start = ["fadd", "fmul"].contains(&name);
        let (start, kind) = if has_start { ("double 1.5, ", "double, ") } else { ("", "") };
        let _ = writeln!(code, "declare double @llvm.vector.reduce.{name}.v{N}f64({kind}<{N} x double>)");
        // Zero stands for what is not a number, whose bits are not told.
        let body = format!(
            "%j = call double @llvm.vector.reduce.{name}.v{N}f64({start}<{N} x double> %v)\n%nan = fcmp uno double %j, %j\n\
             %r = select i1 %nan, double 0.0, double %j"
        );
        code += &kernel(name, "double", &body, "double");
    }
    let expected = |name: &str, vector: [f64; N]| {
        let numbers = vector.into_iter();
        let has_nan = vector.iter().any(|value| value.is_nan());
        let joined = match name {
            // Rounded after each, so that another order gives other bits.
            "fadd" => numbers.fold(1.5, |all, value| all + value),
            "fmul" => numbers.fold(1.5, |all, value| all * value),
            "fmin" => numbers.fold(f64::NAN, f64::min),
            "fmax" => numbers.fold(f64::NAN, f64::max),
            _ if has_nan => f64::NAN,
            "fminimum" => numbers.fold(f64::INFINITY, f64::min),
            _ => numbers.fold(f64::NEG_INFINITY, f64::max),
        };
        if joined.is_nan() { 0 } else { joined.to_bits() }
    };
    let number = |bits: u64| (bits as i64) as f64 * 2f64.powi((bits % 61) as i32 - 90);
    let mut vectors: Vec<[f64; N]> = words().iter().map(|vector| vector.map(number)).collect();
    for (position, vector) in vectors.iter_mut().take(2 * N).enumerate() {
        vector[position % N] = f64::NAN;
    }
    agree(&code, &names, &vectors, &|value| value.to_le_bytes().to_vec(), &expected);
}
