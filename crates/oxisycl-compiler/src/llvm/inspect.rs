//! Queries of instructions, constants and types for code generators of our own.

use super::attribute::Attribute;
use super::context::{Context, ll};
use super::types::{Type, TypeKind};
use super::value::{Value, ValueKind};

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live value of the right kind"
)]
impl<'c> Value<'c> {
    /// The predicate of a comparison of floats. The numbers are those of `LLVMRealPredicate`.
    pub(crate) fn float_predicate(self) -> i32 {
        unsafe { (ll().LLVMGetFCmpPredicate)(self.raw()) }
    }

    /// The value for which a switch branches to its successor `successor`. Successor 0 is the default.
    pub(crate) fn case(self, successor: u32) -> Self {
        Self::new(unsafe { (ll().LLVMGetSwitchCaseValue)(self.raw(), successor) })
    }

    pub(crate) fn is_volatile(self) -> bool {
        unsafe { (ll().LLVMGetVolatile)(self.raw()) != 0 }
    }

    /// Whether an address computation stays inside its object.
    pub(crate) fn is_in_bounds(self) -> bool {
        unsafe { (ll().LLVMIsInBounds)(self.raw()) != 0 }
    }

    /// Whether an `or` has operands without common bits, so that it is their sum.
    pub(crate) fn is_disjoint_or(self) -> bool {
        self.is(super::Opcode::OR) && unsafe { (ll().LLVMGetIsDisjoint)(self.raw()) != 0 }
    }

    /// The operation of an `atomicrmw`. The numbers are those of `LLVMAtomicRMWBinOp`.
    pub(crate) fn atomic_operation(self) -> i32 {
        unsafe { (ll().LLVMGetAtomicRMWBinOp)(self.raw()) }
    }

    /// The orders of a `cmpxchg` for success and for failure.
    pub(crate) fn exchange_orderings(self) -> (i32, i32) {
        unsafe {
            let success = (ll().LLVMGetCmpXchgSuccessOrdering)(self.raw());
            (success, (ll().LLVMGetCmpXchgFailureOrdering)(self.raw()))
        }
    }

    /// The bits of `LLVMFastMathFlags`; none for instructions that cannot have any.
    pub(crate) fn fast_math(self) -> u32 {
        unsafe {
            if (ll().LLVMCanValueUseFastMathFlags)(self.raw()) == 0 {
                return 0;
            }
            (ll().LLVMGetFastMathFlags)(self.raw())
        }
    }

    /// The indices of `extractvalue` and `insertvalue`.
    pub(crate) fn positions(self) -> Vec<u32> {
        unsafe {
            let count = (ll().LLVMGetNumIndices)(self.raw()) as usize;
            std::slice::from_raw_parts((ll().LLVMGetIndices)(self.raw()), count).to_vec()
        }
    }

    /// The elements that a `shufflevector` selects; negative ones are undefined.
    pub(crate) fn shuffle_mask(self) -> Vec<i32> {
        let count = unsafe { (ll().LLVMGetNumMaskElements)(self.raw()) };
        (0..count).map(|index| unsafe { (ll().LLVMGetMaskValue)(self.raw(), index) }).collect()
    }

    /// The parameters of a function.
    pub(crate) fn parameters(self) -> Vec<Self> {
        (0..unsafe { (ll().LLVMCountParams)(self.raw()) }).map(|index| self.parameter(index)).collect()
    }

    /// The type of a type attribute, such as `byval`.
    pub(crate) fn type_attribute(self, index: u32, name: &str) -> Option<Type<'c>> {
        unsafe {
            let attribute = (ll().LLVMGetEnumAttributeAtIndex)(self.raw(), index, Attribute::kind(name));
            (!attribute.is_null()).then(|| Type::new((ll().LLVMGetTypeAttributeValue)(attribute)))
        }
    }

    /// The number of an integer attribute, such as `align`.
    pub(crate) fn number_attribute(self, index: u32, name: &str) -> Option<u64> {
        unsafe {
            let attribute = (ll().LLVMGetEnumAttributeAtIndex)(self.raw(), index, Attribute::kind(name));
            (!attribute.is_null()).then(|| (ll().LLVMGetEnumAttributeValue)(attribute))
        }
    }

    /// The text of a string attribute.
    pub(crate) fn text_attribute(self, index: u32, name: &str) -> Option<String> {
        let (start, length) = (name.as_ptr().cast(), name.len() as u32);
        let mut value_length = 0;
        unsafe {
            let attribute = (ll().LLVMGetStringAttributeAtIndex)(self.raw(), index, start, length);
            (!attribute.is_null()).then(|| {
                let value = (ll().LLVMGetStringAttributeValue)(attribute, &raw mut value_length);
                let bytes = std::slice::from_raw_parts(value.cast::<u8>(), value_length as usize);
                String::from_utf8_lossy(bytes).into_owned()
            })
        }
    }

    /// The number of an integer attribute of a call's argument.
    pub(crate) fn site_number_attribute(self, index: u32, name: &str) -> Option<u64> {
        unsafe {
            let attribute = (ll().LLVMGetCallSiteEnumAttribute)(self.raw(), index, Attribute::kind(name));
            (!attribute.is_null()).then(|| (ll().LLVMGetEnumAttributeValue)(attribute))
        }
    }

    /// The bits of an integer or floating-point constant of at most 128 bits.
    pub(crate) fn bits(self, context: &'c Context) -> Option<u128> {
        match (self.kind(), self.value_type().kind()) {
            (ValueKind::Integer, TypeKind::Integer(..=64)) => self.integer().map(u128::from),
            // The C API reads no wider ones: `i128 -5`.
            (ValueKind::Integer, TypeKind::Integer(width @ ..=128)) => {
                let text = self.print();
                let digits = text.split(' ').nth(1)?;
                let bits =
                    digits.parse::<i128>().map(|value| value as u128).or_else(|_| digits.parse::<u128>()).ok()?;
                Some(if width == 128 { bits } else { bits & ((1 << width) - 1) })
            }
            (ValueKind::Float, kind) => {
                let width = match kind {
                    TypeKind::Half | TypeKind::BFloat => 16,
                    TypeKind::Float => 32,
                    TypeKind::Double => 64,
                    _ => return None,
                };
                let integer = Type::int(context, width);
                let cast = Self::new(unsafe { (ll().LLVMConstBitCast)(self.raw(), integer.raw()) });
                cast.integer().map(u128::from)
            }
            _ => None,
        }
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live type of the right kind"
)]
impl<'c> Type<'c> {
    /// The element type of an array or vector, and the number of elements.
    pub(crate) fn elements(self) -> (Self, u64) {
        unsafe {
            let count = match self.kind() {
                TypeKind::Vector => u64::from((ll().LLVMGetVectorSize)(self.raw())),
                _ => (ll().LLVMGetArrayLength2)(self.raw()),
            };
            (Self::new((ll().LLVMGetElementType)(self.raw())), count)
        }
    }

    /// The member types of a struct.
    pub(crate) fn members(self) -> Vec<Self> {
        let count = unsafe { (ll().LLVMCountStructElementTypes)(self.raw()) };
        (0..count).map(|index| Self::new(unsafe { (ll().LLVMStructGetTypeAtIndex)(self.raw(), index) })).collect()
    }

    /// The result type of a function.
    pub(crate) fn result(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetReturnType)(self.raw()) })
    }
}
