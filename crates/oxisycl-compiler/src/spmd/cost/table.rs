//! What kinds of instructions cost, in eighths of a cycle.
//!
//! One binary runs on all processors of a level. So the numbers are between those of Zen 2, Zen 3 and Skylake: rather high for vectors, and rather low for
//! scalars. Vectors are of registers of 256 bits on both levels, since LLVM splits wider ones.

use oxisycl_image::HostLevel;

use crate::llvm::{Opcode, Type, TypeKind, Value, ValueKind};
use crate::spmd::borders::is_question;
use crate::spmd::widen::{elementwise, is_note};

const REGISTER_BITS: u32 = 256;

/// The time of an instruction: how long it keeps a unit of the processor busy, and how late its result is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Work {
    pub(super) busy: u64,
    pub(super) late: u64,
}

/// Instructions that cost alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// No code, or a part of another instruction.
    Nothing,
    /// Sums and bits of integers, and addresses.
    Simple,
    /// By the same count in all lanes.
    Shift,
    ShiftEach,
    Multiply,
    DivideByConstant,
    Divide,
    Compare,
    FloatCompare,
    Select,
    MinMax,
    Overflow,
    MultiplyOverflow,
    Saturate,
    CountOnes,
    CountZeros,
    Swap,
    Reverse,
    /// Sums and products of floats.
    Float,
    /// The bits of floats, such as their signs.
    FloatBits,
    FloatMinMax,
    FloatDivide,
    FloatRemainder,
    Root,
    Round,
    /// Halves are rounded away from zero, which no processor does.
    RoundAway,
    Extend,
    Truncate,
    IntToFloat,
    UnsignedToFloat,
    FloatToInt,
    FloatToUnsigned,
    FloatToIntSaturated,
    FloatToFloat,
    Branch,
    /// A function that computes, which is called.
    Call,
    Atomic,
    AtomicAccess,
    /// Known by its address: see [`Table::access`].
    Access,
}

/// The places that the lanes of an access have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    /// One for all.
    Uniform,
    /// Consecutive elements.
    Consecutive,
    /// Fields of structures: see [`Table::fields`].
    Fields,
    Anywhere,
}

/// The costs on a level.
#[derive(Clone, Copy)]
pub(super) struct Table {
    /// AVX-512: masks have registers of their own, each access may have one, and there are twice as many registers.
    pub(super) has_masks: bool,
}

impl Kind {
    /// The kind of an instruction. `is_uniform` says whether an operand is the same in all lanes.
    pub(super) fn of<'c>(instruction: Value<'c>, is_uniform: impl Fn(Value<'c>) -> bool) -> Self {
        let Some(opcode) = instruction.opcode() else { return Self::Nothing };
        if opcode == Opcode::CALL {
            return match elementwise(instruction) {
                _ if is_note(instruction) => Self::Nothing,
                _ if is_question(instruction) => Self::Compare,
                // What has no row would be dear.
                Some(name) => Self::of_intrinsic(name).unwrap_or(Self::Call),
                None => Self::Call,
            };
        }
        match Self::of_opcode(opcode).unwrap_or(Self::Call) {
            Self::Divide if instruction.operand(1).kind() == ValueKind::Integer => Self::DivideByConstant,
            Self::ShiftEach if is_uniform(instruction.operand(1)) => Self::Shift,
            Self::Access if instruction.is_atomic() => Self::AtomicAccess,
            kind => kind,
        }
    }

    /// The kind of an instruction of which only the opcode is known. None if there is no row for it.
    pub(super) fn of_opcode(opcode: Opcode) -> Option<Self> {
        Some(match opcode {
            Opcode::ADD | Opcode::SUB | Opcode::AND | Opcode::OR | Opcode::XOR | Opcode::GET_ELEMENT_PTR => {
                Self::Simple
            }
            Opcode::EXTRACT_ELEMENT | Opcode::INSERT_ELEMENT | Opcode::SHUFFLE_VECTOR => Self::Simple,
            Opcode::SHL | Opcode::LSHR | Opcode::ASHR => Self::ShiftEach,
            Opcode::MUL => Self::Multiply,
            Opcode::UDIV | Opcode::SDIV | Opcode::UREM | Opcode::SREM => Self::Divide,
            Opcode::INTEGER_COMPARISON => Self::Compare,
            Opcode::FCMP => Self::FloatCompare,
            Opcode::SELECT => Self::Select,
            Opcode::FADD | Opcode::FSUB | Opcode::FMUL => Self::Float,
            Opcode::FNEG => Self::FloatBits,
            Opcode::FDIV => Self::FloatDivide,
            Opcode::FREM => Self::FloatRemainder,
            Opcode::ZEXT | Opcode::SEXT => Self::Extend,
            Opcode::TRUNC => Self::Truncate,
            Opcode::SI_TO_FP => Self::IntToFloat,
            Opcode::UI_TO_FP => Self::UnsignedToFloat,
            Opcode::FP_TO_SI => Self::FloatToInt,
            Opcode::FP_TO_UI => Self::FloatToUnsigned,
            Opcode::FP_TRUNC | Opcode::FP_EXT => Self::FloatToFloat,
            Opcode::BITCAST | Opcode::PTR_TO_INT | Opcode::PTR_TO_ADDR | Opcode::INT_TO_PTR => Self::Nothing,
            Opcode::ADDRESS_SPACE_CAST | Opcode::EXTRACT_VALUE | Opcode::INSERT_VALUE => Self::Nothing,
            Opcode::FREEZE | Opcode::PHI | Opcode::ALLOCA | Opcode::RET | Opcode::FENCE => Self::Nothing,
            Opcode::BRANCH | Opcode::INVOKE => Self::Branch,
            Opcode::LOAD | Opcode::STORE => Self::Access,
            Opcode::ATOMIC_RMW => Self::Atomic,
            _ => return None,
        })
    }

    /// The kind of an intrinsic that acts on each element, by its name without `llvm.` and types. None if there is no row for it.
    pub(super) fn of_intrinsic(name: &str) -> Option<Self> {
        Some(match name {
            "sqrt" => Self::Root,
            "fma" | "fmuladd" => Self::Float,
            "fabs" | "copysign" | "canonicalize" | "is.fpclass" => Self::FloatBits,
            "minnum" | "maxnum" | "minimum" | "maximum" | "minimumnum" | "maximumnum" => Self::FloatMinMax,
            "floor" | "ceil" | "trunc" | "rint" | "nearbyint" | "roundeven" => Self::Round,
            "round" => Self::RoundAway,
            "smin" | "smax" | "umin" | "umax" | "abs" | "scmp" | "ucmp" => Self::MinMax,
            "fshl" | "fshr" => Self::ShiftEach,
            "bswap" => Self::Swap,
            "bitreverse" => Self::Reverse,
            "ctpop" => Self::CountOnes,
            "ctlz" | "cttz" => Self::CountZeros,
            "sadd.sat" | "ssub.sat" | "uadd.sat" | "usub.sat" => Self::Saturate,
            "sadd.with.overflow" | "ssub.with.overflow" | "uadd.with.overflow" | "usub.with.overflow" => Self::Overflow,
            "smul.with.overflow" | "umul.with.overflow" => Self::MultiplyOverflow,
            "fptosi.sat" | "fptoui.sat" => Self::FloatToIntSaturated,
            _ => return None,
        })
    }
}

impl Table {
    pub(super) fn of(level: HostLevel) -> Self {
        Self { has_masks: level != HostLevel::V3 }
    }

    /// The lanes of one register, for elements of so many bits.
    pub(super) fn lanes(self, bits: u32) -> u32 {
        REGISTER_BITS / bits
    }

    /// The registers of vectors that values may fill.
    pub(super) fn registers(self) -> u64 {
        if self.has_masks { 28 } else { 14 }
    }

    /// The cost of an instruction on numbers of so many bits, for one item.
    pub(super) fn scalar(self, kind: Kind, bits: u32) -> Work {
        let is_wide = bits > 32;
        let (busy, late) = match kind {
            Kind::Nothing => (0, 0),
            Kind::Simple | Kind::Compare | Kind::FloatCompare | Kind::Extend | Kind::Truncate => (2, 8),
            Kind::Select | Kind::Shift | Kind::ShiftEach | Kind::Overflow | Kind::MinMax => (4, 8),
            Kind::Multiply | Kind::MultiplyOverflow => (8, 24),
            Kind::DivideByConstant => (16, 40),
            Kind::Divide => (if is_wide { 80 } else { 48 }, if is_wide { 200 } else { 120 }),
            Kind::Saturate | Kind::CountOnes | Kind::CountZeros | Kind::Swap => (8, 16),
            Kind::Reverse => (40, 64),
            Kind::Float => (4, 32),
            Kind::FloatBits => (4, 8),
            Kind::FloatMinMax => (8, 48),
            Kind::FloatDivide => (if is_wide { 36 } else { 28 }, if is_wide { 104 } else { 88 }),
            Kind::FloatRemainder => (240, 240),
            Kind::Root => (if is_wide { 48 } else { 36 }, if is_wide { 144 } else { 96 }),
            Kind::Round => (8, 64),
            Kind::RoundAway => (24, 80),
            Kind::IntToFloat | Kind::UnsignedToFloat | Kind::FloatToFloat => (8, 32),
            Kind::FloatToInt | Kind::FloatToUnsigned => (8, 48),
            Kind::FloatToIntSaturated => (32, 64),
            Kind::Branch => (4, 0),
            Kind::Call => (320, 320),
            Kind::Atomic => (160, 160),
            Kind::Access | Kind::AtomicAccess => (4, 40),
        };
        Work { busy, late }
    }

    /// The cost of an instruction for all lanes, whose vectors have elements of so many bits.
    pub(super) fn vector(self, kind: Kind, bits: u32, lanes: u32) -> Work {
        let is_v4 = self.has_masks;
        let of_level = |v3, v4| if is_v4 { v4 } else { v3 };
        let of_lanes = |more: u64| {
            let Work { busy, late } = self.scalar(kind, bits);
            (u64::from(lanes) * (busy + more), late + u64::from(lanes) * 8)
        };
        let is_wide = bits > 32;
        let (busy, late) = match kind {
            Kind::Nothing => (0, 0),
            Kind::Divide | Kind::Atomic | Kind::AtomicAccess => return work(of_lanes(24)),
            // The caller's registers are saved.
            Kind::Call => return work(of_lanes(56)),
            Kind::FloatRemainder => return work(of_lanes(40)),
            Kind::FloatToInt | Kind::FloatToUnsigned | Kind::FloatToIntSaturated if is_wide && !is_v4 => {
                return work(of_lanes(24));
            }
            Kind::Simple => (4, 8),
            Kind::Shift => (if bits == 8 { 12 } else { 4 }, 8),
            Kind::ShiftEach => match bits {
                8 => (40, 48),
                16 => (of_level(24, 8), 24),
                _ => (8, 8),
            },
            Kind::Multiply => match bits {
                8 => (24, 56),
                16 => (8, 40),
                32 => (of_level(12, 8), 80),
                _ => (of_level(40, 24), 120),
            },
            Kind::DivideByConstant => match bits {
                8 | 16 => (24, 64),
                32 => (of_level(40, 32), 112),
                _ => (of_level(96, 72), 200),
            },
            // Half of them are unsigned, which costs one more on the third level.
            Kind::Compare => (of_level(if is_wide { 8 } else { 6 }, 8), 16),
            Kind::FloatCompare => (of_level(4, 8), 32),
            Kind::Select => (of_level(8, 4), 16),
            Kind::MinMax => (if is_wide { of_level(16, 4) } else { 4 }, 16),
            Kind::Overflow => (of_level(24, 16), 32),
            Kind::MultiplyOverflow => (96, 160),
            Kind::Saturate => (if bits > 16 { 20 } else { 4 }, 32),
            Kind::CountOnes => (of_level(40, 24), 64),
            Kind::CountZeros => (of_level(72, 24), 96),
            Kind::Swap => (8, 8),
            Kind::Reverse => (40, 48),
            Kind::Float | Kind::FloatBits => (4, if kind == Kind::Float { 32 } else { 8 }),
            Kind::FloatMinMax => (12, 64),
            Kind::FloatDivide => (if is_wide { 64 } else { 40 }, 104),
            Kind::Root => (if is_wide { 96 } else { 48 }, 144),
            Kind::Round => (8, 64),
            Kind::RoundAway => (32, 96),
            Kind::Extend => (of_level(8, 8), 24),
            Kind::Truncate => (of_level(12, 8), 32),
            Kind::IntToFloat => (if is_wide { of_level(48, 8) } else { 8 }, 32),
            Kind::UnsignedToFloat => (if is_wide { of_level(48, 8) } else { of_level(24, 8) }, 48),
            Kind::FloatToInt => (8, 32),
            Kind::FloatToUnsigned => (of_level(32, 8), 64),
            Kind::FloatToIntSaturated => (of_level(32, 24), 64),
            Kind::FloatToFloat => (12, 40),
            Kind::Branch => (4, 0),
            Kind::Access => (4, 40),
        };
        work((busy * registers(bits, lanes), late))
    }

    /// The cost of a load or store for all lanes, or for those of a mask.
    pub(super) fn access(self, access: Access, bits: u32, lanes: u32, is_store: bool, is_masked: bool) -> Work {
        let (n, of_lanes) = (registers(bits, lanes), u64::from(lanes));
        let is_v4 = self.has_masks;
        let busy = match (access, is_masked) {
            (Access::Uniform, _) => {
                if is_store {
                    16
                } else {
                    4
                }
            }
            (Access::Consecutive, false) => {
                if is_store {
                    8 * n
                } else {
                    4 * n
                }
            }
            (Access::Consecutive, true) if is_v4 => {
                if is_store {
                    12 * n
                } else {
                    8 * n
                }
            }
            // Of small elements, LLVM makes a branch for each lane.
            (Access::Consecutive, true) if bits < 32 => of_lanes * 36,
            (Access::Consecutive, true) => {
                if is_store {
                    48 * n
                } else {
                    8 * n
                }
            }
            (Access::Anywhere | Access::Fields, _) if is_v4 => {
                let all = if is_store { of_lanes * 8 + 64 } else { of_lanes * 6 + 32 };
                all + if is_masked { 8 } else { 0 }
            }
            // Taken apart, without a branch: lanes that are not active load from elsewhere.
            (Access::Anywhere | Access::Fields, _) if !is_store => of_lanes * if is_masked { 26 } else { 20 },
            // LLVM takes them apart, with a branch for each lane of a mask.
            (Access::Anywhere | Access::Fields, false) => of_lanes * 24,
            (Access::Anywhere | Access::Fields, true) => of_lanes * 44 + 24,
        };
        let late = if access == Access::Anywhere { 80 } else { 40 };
        Work { busy, late }
    }

    /// The cost of a load or store of integers of 3, 5, 6 or 7 bytes, which differ from lane to lane.
    pub(super) fn packed_access(self, access: Access, bits: u32, lanes: u32, is_store: bool, is_masked: bool) -> Work {
        let busy = match access {
            // Bytes are moved between the halves of a register, and within them.
            Access::Consecutive if !is_masked => registers(bits, lanes) * if is_store { 40 } else { 24 },
            // One lane after the other.
            _ => u64::from(lanes) * (if is_store { 32 } else { 28 } + if is_masked { 16 } else { 0 }),
        };
        Work { busy, late: 64 }
    }

    /// The cost of a load of a register.
    pub(super) fn of_load(self) -> u64 {
        4
    }

    pub(super) fn of_store(self) -> u64 {
        8
    }

    /// The cost of a move into or out of half a register.
    pub(super) fn of_half(self) -> u64 {
        4
    }

    /// The cost of elements of two registers, each at its place.
    pub(super) fn of_blend(self, unit: u64) -> u64 {
        if unit < 4 { 8 } else { 4 }
    }

    /// The cost of elements of one register or two at other places.
    pub(super) fn of_shuffle(self, unit: u64, is_of_two: bool) -> u64 {
        if unit < 4 && is_of_two { 20 } else { 8 }
    }

    /// The cost of the bytes of a register that get or lose gaps.
    pub(super) fn of_bytes(self) -> u64 {
        24
    }

    /// The cost of a field that is parted from an integer or joined with it, for a register.
    pub(super) fn of_part(self) -> u64 {
        8
    }

    /// The cost of copying or filling so many bytes for one item.
    pub(super) fn copy(self, bytes: u64) -> Work {
        Work { busy: 8 + bytes / 4, late: 40 }
    }

    /// The cost of copying or filling so many bytes for each lane.
    pub(super) fn copies(self, bytes: u64, lanes: u32) -> Work {
        let Work { busy, late } = self.copy(bytes);
        Work { busy: u64::from(lanes) * (busy + 8), late }
    }

    /// The cost of an operation on a mask of all lanes.
    pub(super) fn of_mask(self, lanes: u32) -> u64 {
        if self.has_masks { 4 } else { 4 * registers(32, lanes) }
    }
}

fn work((busy, late): (u64, u64)) -> Work {
    Work { busy, late }
}

/// The registers that a vector of elements of so many bits has.
pub(super) fn registers(bits: u32, lanes: u32) -> u64 {
    (bits * lanes).div_ceil(REGISTER_BITS).into()
}

/// The bits of the elements that vectors of a type have in registers.
pub(super) fn bits(of: Type<'_>) -> u32 {
    match of.kind() {
        // A mask is as wide as what was compared.
        TypeKind::Integer(1) | TypeKind::Float => 32,
        TypeKind::Integer(width @ ..=64) => width.next_power_of_two().max(8),
        TypeKind::Struct => of.members().into_iter().map(bits).max().unwrap_or(32),
        _ => 64,
    }
}
