//! Kinds of instructions.

/// Opcodes of instructions and constant expressions that passes look for. The numbers are those of `LLVMOpcode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opcode(pub(super) i32);

impl Opcode {
    pub(crate) const RET: Self = Self(1);
    pub(crate) const SWITCH: Self = Self(3);
    pub(crate) const BRANCH: Self = Self(2);
    pub(crate) const INDIRECT_BRANCH: Self = Self(4);
    pub(crate) const INVOKE: Self = Self(5);
    pub(crate) const UNREACHABLE: Self = Self(7);
    pub(crate) const ADD: Self = Self(8);
    pub(crate) const FADD: Self = Self(9);
    pub(crate) const SUB: Self = Self(10);
    pub(crate) const FSUB: Self = Self(11);
    pub(crate) const MUL: Self = Self(12);
    pub(crate) const FMUL: Self = Self(13);
    pub(crate) const UDIV: Self = Self(14);
    pub(crate) const SDIV: Self = Self(15);
    pub(crate) const FDIV: Self = Self(16);
    pub(crate) const UREM: Self = Self(17);
    pub(crate) const SREM: Self = Self(18);
    pub(crate) const FREM: Self = Self(19);
    pub(crate) const SHL: Self = Self(20);
    pub(crate) const LSHR: Self = Self(21);
    pub(crate) const ASHR: Self = Self(22);
    pub(crate) const AND: Self = Self(23);
    pub(crate) const OR: Self = Self(24);
    pub(crate) const XOR: Self = Self(25);
    pub(crate) const ALLOCA: Self = Self(26);
    pub(crate) const LOAD: Self = Self(27);
    pub(crate) const STORE: Self = Self(28);
    pub(crate) const GET_ELEMENT_PTR: Self = Self(29);
    pub(crate) const TRUNC: Self = Self(30);
    pub(crate) const ZEXT: Self = Self(31);
    pub(crate) const SEXT: Self = Self(32);
    pub(crate) const FP_TO_UI: Self = Self(33);
    pub(crate) const FP_TO_SI: Self = Self(34);
    pub(crate) const UI_TO_FP: Self = Self(35);
    pub(crate) const SI_TO_FP: Self = Self(36);
    pub(crate) const FP_TRUNC: Self = Self(37);
    pub(crate) const FP_EXT: Self = Self(38);
    pub(crate) const PTR_TO_INT: Self = Self(39);
    pub(crate) const INT_TO_PTR: Self = Self(40);
    pub(crate) const BITCAST: Self = Self(41);
    pub(crate) const FCMP: Self = Self(43);
    pub(crate) const INTEGER_COMPARISON: Self = Self(42);
    pub(crate) const PHI: Self = Self(44);
    pub(crate) const CALL: Self = Self(45);
    pub(crate) const SELECT: Self = Self(46);
    pub(crate) const EXTRACT_ELEMENT: Self = Self(50);
    pub(crate) const INSERT_ELEMENT: Self = Self(51);
    pub(crate) const SHUFFLE_VECTOR: Self = Self(52);
    pub(crate) const EXTRACT_VALUE: Self = Self(53);
    pub(crate) const INSERT_VALUE: Self = Self(54);
    pub(crate) const FENCE: Self = Self(55);
    pub(crate) const ATOMIC_CMP_XCHG: Self = Self(56);
    pub(crate) const ATOMIC_RMW: Self = Self(57);
    pub(crate) const LANDING_PAD: Self = Self(59);
    pub(crate) const ADDRESS_SPACE_CAST: Self = Self(60);
    pub(crate) const FNEG: Self = Self(66);
    pub(crate) const CALL_BRANCH: Self = Self(67);
    pub(crate) const FREEZE: Self = Self(68);
    pub(crate) const PTR_TO_ADDR: Self = Self(69);

    /// Whether the instruction is a cast.
    pub(crate) fn is_cast(self) -> bool {
        matches!(self.0, 30..=41) || self == Self::ADDRESS_SPACE_CAST || self == Self::PTR_TO_ADDR
    }

    /// Whether the instruction computes an integer from two others.
    pub(crate) fn is_integer_arithmetic(self) -> bool {
        matches!(self.0, 8 | 10 | 12 | 14 | 15 | 17 | 18 | 20..=25)
    }
}
