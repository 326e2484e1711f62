//! What programs compute: the instruction in LLVM's assembly, and the same in Rust.

/// The types of variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    I1,
    I8,
    I32,
    I64,
    F32,
}

use Type::{F32, I1, I8, I32, I64};

impl Type {
    pub(super) const ALL: [Self; 5] = [I1, I8, I32, I64, F32];
    /// The types that memory has.
    pub(super) const OF_MEMORY: [Self; 4] = [I8, I32, I64, F32];

    pub(super) fn name(self) -> &'static str {
        ["i1", "i8", "i32", "i64", "float"][self as usize]
    }

    /// The bytes in memory.
    pub(super) fn size(self) -> u64 {
        [1, 1, 4, 8, 4][self as usize]
    }

    /// A result as variables have it: no other bits, and a number in place of a NaN.
    pub(super) fn value(self, bits: u64) -> u64 {
        let bits = bits & [1, 0xff, 0xffff_ffff, u64::MAX, 0xffff_ffff][self as usize];
        if self == F32 && f32::from_bits(bits as u32).is_nan() { 1_f32.to_bits().into() } else { bits }
    }

    /// A constant in LLVM's assembly.
    pub(super) fn constant(self, bits: u64) -> String {
        match self {
            I1 => (bits != 0).to_string(),
            I8 => (bits as i8).to_string(),
            I32 => (bits as i32).to_string(),
            I64 => (bits as i64).to_string(),
            F32 => format!("{:#018x}", f64::from(f32::from_bits(bits as u32)).to_bits()),
        }
    }
}

/// An instruction: the types of its result and operands, its text with `$a` to `$c` for these, and what it computes.
pub(super) type Operation = (Type, &'static [Type], &'static str, fn([u64; 3]) -> u64);

fn float(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn bits(value: f32) -> u64 {
    value.to_bits().into()
}

pub(super) const OPERATIONS: &[Operation] = &[
    (I1, &[I1, I1], "and i1 $a, $b", |[a, b, _]| a & b),
    (I1, &[I1, I1], "or i1 $a, $b", |[a, b, _]| a | b),
    (I1, &[I1, I1], "xor i1 $a, $b", |[a, b, _]| a ^ b),
    (I1, &[I32, I32], "icmp ult i32 $a, $b", |[a, b, _]| (a < b).into()),
    (I1, &[I32], "trunc i32 $a to i1", |[a, ..]| a),
    (I1, &[I64, I64], "icmp slt i64 $a, $b", |[a, b, _]| ((a as i64) < b as i64).into()),
    (I1, &[I64], "trunc i64 $a to i1", |[a, ..]| a),
    (I1, &[I8, I8], "icmp ne i8 $a, $b", |[a, b, _]| (a != b).into()),
    (I1, &[F32, F32], "fcmp olt float $a, $b", |[a, b, _]| (float(a) < float(b)).into()),
    (I8, &[I8, I8], "add i8 $a, $b", |[a, b, _]| a.wrapping_add(b)),
    (I8, &[I8, I8], "mul i8 $a, $b", |[a, b, _]| a.wrapping_mul(b)),
    (I8, &[I8], "lshr i8 $a, 2", |[a, ..]| a >> 2),
    (I8, &[I64], "trunc i64 $a to i8", |[a, ..]| a),
    (I8, &[I32], "trunc i32 $a to i8", |[a, ..]| a),
    (I8, &[I1, I8, I8], "select i1 $a, i8 $b, i8 $c", |[a, b, c]| if a != 0 { b } else { c }),
    (I32, &[I32, I32], "add i32 $a, $b", |[a, b, _]| a.wrapping_add(b)),
    (I32, &[I32, I32], "sub i32 $a, $b", |[a, b, _]| a.wrapping_sub(b)),
    (I32, &[I32, I32], "mul i32 $a, $b", |[a, b, _]| a.wrapping_mul(b)),
    (I32, &[I32, I32], "xor i32 $a, $b", |[a, b, _]| a ^ b),
    (I32, &[I32], "shl i32 $a, 3", |[a, ..]| a << 3),
    (I32, &[I32], "ashr i32 $a, 2", |[a, ..]| (a as i32 >> 2) as u64),
    (I32, &[I32], "udiv i32 $a, 3", |[a, ..]| a / 3),
    (I32, &[I32], "urem i32 $a, 10", |[a, ..]| a % 10),
    (I32, &[I8], "sext i8 $a to i32", |[a, ..]| a as i8 as u64),
    (I32, &[I1], "zext i1 $a to i32", |[a, ..]| a),
    (I32, &[I64], "trunc i64 $a to i32", |[a, ..]| a),
    (I32, &[F32], "call i32 @llvm.fptosi.sat.i32.f32(float $a)", |[a, ..]| float(a) as i32 as u64),
    (I32, &[I32, I32], "call i32 @llvm.umin.i32(i32 $a, i32 $b)", |[a, b, _]| a.min(b)),
    (I32, &[I1, I32, I32], "select i1 $a, i32 $b, i32 $c", |[a, b, c]| if a != 0 { b } else { c }),
    (I64, &[I64, I64], "add i64 $a, $b", |[a, b, _]| a.wrapping_add(b)),
    (I64, &[I64, I64], "sub i64 $a, $b", |[a, b, _]| a.wrapping_sub(b)),
    (I64, &[I64, I64], "mul i64 $a, $b", |[a, b, _]| a.wrapping_mul(b)),
    (I64, &[I64], "mul i64 $a, 4", |[a, ..]| a.wrapping_mul(4)),
    (I64, &[I64], "and i64 $a, 1023", |[a, ..]| a & 1023),
    (I64, &[I32], "zext i32 $a to i64", |[a, ..]| a),
    (I64, &[I32], "sext i32 $a to i64", |[a, ..]| a as i32 as u64),
    (I64, &[I1], "sext i1 $a to i64", |[a, ..]| 0_u64.wrapping_sub(a)),
    (I64, &[I1, I64, I64], "select i1 $a, i64 $b, i64 $c", |[a, b, c]| if a != 0 { b } else { c }),
    (F32, &[F32, F32], "fadd float $a, $b", |[a, b, _]| bits(float(a) + float(b))),
    (F32, &[F32, F32], "fsub float $a, $b", |[a, b, _]| bits(float(a) - float(b))),
    (F32, &[F32, F32], "fmul float $a, $b", |[a, b, _]| bits(float(a) * float(b))),
    (F32, &[I32], "sitofp i32 $a to float", |[a, ..]| bits(a as i32 as f32)),
    (F32, &[I8], "uitofp i8 $a to float", |[a, ..]| bits(a as f32)),
    (F32, &[I1, F32, F32], "select i1 $a, float $b, float $c", |[a, b, c]| if a != 0 { b } else { c }),
];
