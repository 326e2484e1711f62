//! What the vectoriser builds: vectors and their lanes, copies of instructions, and flags.

use std::ffi::c_void;

use super::builder::{Block, Builder};
use super::context::{Context, ll};
use super::module::Module;
use super::opcode::Opcode;
use super::sys::Bool;
use super::types::Type;
use super::value::{Value, ValueKind};

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live type of the right kind"
)]
impl<'c> Type<'c> {
    /// A vector of so many elements of this type.
    pub(crate) fn vector(self, lanes: u32) -> Self {
        Self::new(unsafe { (ll().LLVMVectorType)(self.raw(), lanes) })
    }

    pub(crate) fn structure(context: &'c Context, members: &[Self]) -> Self {
        let mut raw: Vec<_> = members.iter().map(|member| member.raw()).collect();
        Self::new(unsafe { (ll().LLVMStructTypeInContext)(context.raw(), raw.as_mut_ptr(), raw.len() as u32, 0) })
    }

    /// The constant all of whose bits are set.
    pub(crate) fn all_ones(self) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMConstAllOnes)(self.raw()) })
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live value of the right kind"
)]
impl<'c> Value<'c> {
    /// A constant vector of these elements.
    pub(crate) fn vector(elements: &[Self]) -> Self {
        let mut raw: Vec<_> = elements.iter().map(|element| element.raw()).collect();
        Self::new(unsafe { (ll().LLVMConstVector)(raw.as_mut_ptr(), raw.len() as u32) })
    }

    /// Whether the value is a constant, a global or a function: the same in each work-item.
    pub(crate) fn is_constant(self) -> bool {
        unsafe { (ll().LLVMIsConstant)(self.raw()) != 0 }
    }

    /// Whether an operand is a block, as those of terminators are.
    pub(crate) fn is_block(self) -> bool {
        unsafe { (ll().LLVMValueIsBasicBlock)(self.raw()) != 0 }
    }

    /// A copy of an instruction with the same operands, which is in no block yet.
    pub(crate) fn copy(self) -> Self {
        Self::new(unsafe { (ll().LLVMInstructionClone)(self.raw()) })
    }

    pub(crate) fn set_successor(self, index: u32, block: Block<'c>) {
        unsafe { (ll().LLVMSetSuccessor)(self.raw(), index, block.raw()) }
    }

    /// The function that decides what unwinding does in this one.
    pub(crate) fn personality(self) -> Option<Self> {
        unsafe {
            ((ll().LLVMHasPersonalityFn)(self.raw()) != 0).then(|| Self::new((ll().LLVMGetPersonalityFn)(self.raw())))
        }
    }

    pub(crate) fn set_personality(self, personality: Self) {
        unsafe { (ll().LLVMSetPersonalityFn)(self.raw(), personality.raw()) }
    }

    /// The intrinsic's number, if the value is a function that is one.
    pub(crate) fn intrinsic(self) -> Option<u32> {
        let id = (self.kind() == ValueKind::Function).then(|| unsafe { (ll().LLVMGetIntrinsicID)(self.raw()) });
        id.filter(|id| *id != 0)
    }

    /// Gives a widened instruction the flags of the instruction that it stands for: wrapping, exactness, signs and floating-point flags.
    pub(crate) fn copy_flags(self, from: Self) {
        let (Some(opcode), Some(of)) = (self.opcode(), from.opcode()) else { return };
        if opcode != of {
            return;
        }
        let (to, from) = (self.raw(), from.raw());
        let get = |flag: unsafe extern "C" fn(*mut _) -> Bool| unsafe { flag(from) };
        unsafe {
            match opcode {
                Opcode::ADD | Opcode::SUB | Opcode::MUL | Opcode::SHL => {
                    (ll().LLVMSetNUW)(to, get(ll().LLVMGetNUW));
                    (ll().LLVMSetNSW)(to, get(ll().LLVMGetNSW));
                }
                Opcode::UDIV | Opcode::SDIV | Opcode::LSHR | Opcode::ASHR => {
                    (ll().LLVMSetExact)(to, get(ll().LLVMGetExact));
                }
                Opcode::OR => (ll().LLVMSetIsDisjoint)(to, get(ll().LLVMGetIsDisjoint)),
                Opcode::ZEXT | Opcode::UI_TO_FP => (ll().LLVMSetNNeg)(to, get(ll().LLVMGetNNeg)),
                Opcode::GET_ELEMENT_PTR => {
                    (ll().LLVMGEPSetNoWrapFlags)(to, (ll().LLVMGEPGetNoWrapFlags)(from));
                }
                _ => {
                    if (ll().LLVMCanValueUseFastMathFlags)(to) != 0 && (ll().LLVMCanValueUseFastMathFlags)(from) != 0 {
                        (ll().LLVMSetFastMathFlags)(to, (ll().LLVMGetFastMathFlags)(from));
                    }
                }
            }
        }
    }
}

impl<'c> Module<'c> {
    /// The declaration of an overloaded intrinsic for these types.
    pub(crate) fn intrinsic(&self, name: &str, types: &[Type<'c>]) -> Value<'c> {
        // SAFETY: a text with its length.
        let id = unsafe { (ll().LLVMLookupIntrinsicID)(name.as_ptr().cast(), name.len()) };
        assert!(id != 0, "LLVM has no intrinsic {name}");
        self.intrinsic_of(id, types)
    }

    /// The declaration of the overloaded intrinsic with that number.
    pub(crate) fn intrinsic_of(&self, id: u32, types: &[Type<'c>]) -> Value<'c> {
        let mut raw: Vec<_> = types.iter().map(|of| of.raw()).collect();
        // SAFETY: a live module, and types with their number.
        Value::new(unsafe { (ll().LLVMGetIntrinsicDeclaration)(self.raw(), id, raw.as_mut_ptr(), raw.len()) })
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: a live builder, live values; the verifier checks types"
)]
impl<'c> Builder<'c> {
    /// Continues at the end of a block.
    pub(crate) fn move_to(&self, block: Block<'c>) {
        unsafe { (ll().LLVMPositionBuilderAtEnd)(self.raw(), block.raw()) }
    }

    /// The block that instructions are added to.
    pub(crate) fn block(&self) -> Block<'c> {
        Block::new(unsafe { (ll().LLVMGetInsertBlock)(self.raw()) })
    }

    /// Adds an instruction that is in no block.
    pub(crate) fn insert(&self, instruction: Value<'c>) {
        unsafe { (ll().LLVMInsertIntoBuilder)(self.raw(), instruction.raw()) }
    }

    /// Places all that is added from here on at a location node; null for none.
    pub(super) fn set_location(&self, location: *mut c_void) {
        unsafe { (ll().LLVMSetCurrentDebugLocation2)(self.raw(), location) }
    }

    pub(crate) fn binary(&self, opcode: Opcode, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildBinOp)(self.raw(), opcode.0, left.raw(), right.raw(), c"".as_ptr()) })
    }

    pub(crate) fn cast(&self, opcode: Opcode, value: Value<'c>, to: Type<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildCast)(self.raw(), opcode.0, value.raw(), to.raw(), c"".as_ptr()) })
    }

    /// Compares floats. The numbers of predicates are those of `LLVMRealPredicate`.
    pub(crate) fn compare_floats(&self, predicate: i32, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildFCmp)(self.raw(), predicate, left.raw(), right.raw(), c"".as_ptr()) })
    }

    pub(crate) fn negate_float(&self, value: Value<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildFNeg)(self.raw(), value.raw(), c"".as_ptr()) })
    }

    pub(crate) fn freeze(&self, value: Value<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildFreeze)(self.raw(), value.raw(), c"".as_ptr()) })
    }

    pub(crate) fn extract_lane(&self, vector: Value<'c>, lane: Value<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildExtractElement)(self.raw(), vector.raw(), lane.raw(), c"".as_ptr()) })
    }

    /// A vector with another value in a lane.
    pub(crate) fn insert_lane(&self, vector: Value<'c>, value: Value<'c>, lane: Value<'c>) -> Value<'c> {
        let (vector, value, lane) = (vector.raw(), value.raw(), lane.raw());
        Value::new(unsafe { (ll().LLVMBuildInsertElement)(self.raw(), vector, value, lane, c"".as_ptr()) })
    }

    /// A vector whose lanes all have the value.
    pub(crate) fn splat(&self, value: Value<'c>, lanes: u32, index: Type<'c>) -> Value<'c> {
        if value.is_constant() && value.kind() != ValueKind::Function {
            return Value::vector(&vec![value; lanes as usize]);
        }
        let none = value.value_type().vector(lanes).poison();
        let zeros = index.vector(lanes).null();
        unsafe {
            let first = index.null().raw();
            let one = (ll().LLVMBuildInsertElement)(self.raw(), none.raw(), value.raw(), first, c"".as_ptr());
            Value::new((ll().LLVMBuildShuffleVector)(self.raw(), one, none.raw(), zeros.raw(), c"".as_ptr()))
        }
    }

    /// The elements of two vectors whose numbers are in a constant vector.
    pub(crate) fn shuffle(&self, first: Value<'c>, second: Value<'c>, wanted: Value<'c>) -> Value<'c> {
        let (first, second, wanted) = (first.raw(), second.raw(), wanted.raw());
        Value::new(unsafe { (ll().LLVMBuildShuffleVector)(self.raw(), first, second, wanted, c"".as_ptr()) })
    }

    pub(crate) fn extract_member(&self, aggregate: Value<'c>, index: u32) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildExtractValue)(self.raw(), aggregate.raw(), index, c"".as_ptr()) })
    }

    pub(crate) fn insert_member(&self, aggregate: Value<'c>, member: Value<'c>, index: u32) -> Value<'c> {
        Value::new(unsafe {
            (ll().LLVMBuildInsertValue)(self.raw(), aggregate.raw(), member.raw(), index, c"".as_ptr())
        })
    }

    /// A local variable.
    pub(crate) fn variable(&self, of: Type<'c>) -> Value<'c> {
        Value::new(unsafe { (ll().LLVMBuildAlloca)(self.raw(), of.raw(), c"".as_ptr()) })
    }

    /// An address computation; with a vector among its operands the result is a vector of addresses.
    pub(crate) fn address(&self, element: Type<'c>, base: Value<'c>, indices: &[Value<'c>]) -> Value<'c> {
        let mut raw: Vec<_> = indices.iter().map(|index| index.raw()).collect();
        let count = raw.len() as u32;
        Value::new(unsafe {
            (ll().LLVMBuildGEP2)(self.raw(), element.raw(), base.raw(), raw.as_mut_ptr(), count, c"".as_ptr())
        })
    }
}
