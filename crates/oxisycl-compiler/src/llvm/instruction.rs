//! Queries and changes of instructions.

use std::ffi::c_void;

use super::builder::Block;
use super::context::ll;
use super::deleted;
use super::opcode::Opcode;
use super::types::Type;
use super::value::{Value, ValueKind};

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live value of the right kind"
)]
impl<'c> Value<'c> {
    pub(crate) fn opcode(self) -> Option<Opcode> {
        (self.kind() == ValueKind::Instruction).then(|| Opcode(unsafe { (ll().LLVMGetInstructionOpcode)(self.raw()) }))
    }

    pub(crate) fn is(self, opcode: Opcode) -> bool {
        self.opcode() == Some(opcode)
    }

    /// The callee, if the value is a call or an invoke.
    pub(crate) fn callee(self) -> Option<Self> {
        let is_call = self.is(Opcode::CALL) || self.is(Opcode::INVOKE);
        is_call.then(|| Self::new(unsafe { (ll().LLVMGetCalledValue)(self.raw()) }))
    }

    /// The function type of a call.
    pub(crate) fn called_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetCalledFunctionType)(self.raw()) })
    }

    /// Replaces the callee of a call by another function of the same type.
    pub(crate) fn set_callee(self, callee: Self) {
        let last = unsafe { (ll().LLVMGetNumOperands)(self.raw()) } - 1;
        unsafe { (ll().LLVMSetOperand)(self.raw(), last as u32, callee.raw()) }
    }

    pub(crate) fn set_operand(self, index: u32, value: Self) {
        unsafe { (ll().LLVMSetOperand)(self.raw(), index, value.raw()) }
    }

    /// Clears the tail-call marker of a call, so that it may use the caller's variables.
    pub(crate) fn clear_tail_call(self) {
        unsafe { (ll().LLVMSetTailCall)(self.raw(), 0) }
    }

    /// The arguments of a call.
    pub(crate) fn arguments(self) -> Vec<Self> {
        let count = unsafe { (ll().LLVMGetNumArgOperands)(self.raw()) };
        (0..count).map(|index| self.operand(index)).collect()
    }

    /// The function that contains an instruction.
    pub(crate) fn function(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetBasicBlockParent)((ll().LLVMGetInstructionParent)(self.raw())) })
    }

    /// The next instruction; every instruction has one except terminators.
    pub(crate) fn next(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetNextInstruction)(self.raw()) })
    }

    /// Deletes an instruction that nothing uses: LLVM would go on with uses of freed memory. Its handles must not be used afterwards.
    pub(crate) fn erase(self) {
        debug_assert!(!self.is_used(), "an instruction is deleted that others use: {}", self.print());
        let raw = self.raw();
        deleted::note(raw);
        unsafe { (ll().LLVMInstructionEraseFromParent)(raw) }
    }

    /// Whether an instruction has metadata of that kind.
    pub(crate) fn has_metadata(self, kind: &str) -> bool {
        unsafe { !(ll().LLVMGetMetadata)(self.raw(), self.metadata_kind(kind)).is_null() }
    }

    /// Removes metadata of the kind `kind` from an instruction.
    pub(crate) fn unmark(self, kind: &str) {
        unsafe { (ll().LLVMSetMetadata)(self.raw(), self.metadata_kind(kind), std::ptr::null_mut()) }
    }

    /// Adds empty metadata of the kind `kind` to an instruction.
    pub(crate) fn mark(self, kind: &str) {
        unsafe {
            let context = self.raw_context();
            let node = (ll().LLVMMDNodeInContext2)(context, std::ptr::null_mut(), 0);
            (ll().LLVMSetMetadata)(self.raw(), self.metadata_kind(kind), (ll().LLVMMetadataAsValue)(context, node));
        }
    }

    /// Adds loop metadata to a branch that ends a loop: the number `number` under a name that LLVM's passes know.
    pub(crate) fn set_loop_hint(self, name: &str, number: u32) {
        self.set_loop_hints(&[(name, number)]);
    }

    /// Adds loop metadata to a branch that ends a loop: numbers under names that LLVM's passes know.
    pub(crate) fn set_loop_hints(self, hints: &[(&str, u32)]) {
        // SAFETY: a live branch, whose context owns the nodes. Replacing the temporary node frees it, and nothing else refers to it.
        unsafe {
            let context = self.raw_context();
            let node = |operands: &mut [*mut c_void]| {
                (ll().LLVMMDNodeInContext2)(context, operands.as_mut_ptr(), operands.len())
            };
            // What stands for a loop begins with itself, so that no other loop is the same.
            let itself = (ll().LLVMTemporaryMDNode)(context, std::ptr::null_mut(), 0);
            let mut operands = vec![itself];
            for (name, number) in hints {
                let name = (ll().LLVMMDStringInContext2)(context, name.as_ptr().cast(), name.len());
                let number = (ll().LLVMConstInt)((ll().LLVMIntTypeInContext)(context, 32), (*number).into(), 0);
                operands.push(node(&mut [name, (ll().LLVMValueAsMetadata)(number)]));
            }
            let id = node(&mut operands);
            (ll().LLVMMetadataReplaceAllUsesWith)(itself, id);
            let id = (ll().LLVMMetadataAsValue)(context, id);
            (ll().LLVMSetMetadata)(self.raw(), self.metadata_kind("llvm.loop"), id);
        }
    }

    fn metadata_kind(self, kind: &str) -> u32 {
        unsafe { (ll().LLVMGetMDKindIDInContext)(self.raw_context(), kind.as_ptr().cast(), kind.len() as u32) }
    }

    /// The block that contains an instruction.
    pub(crate) fn block(self) -> Block<'c> {
        Block::new(unsafe { (ll().LLVMGetInstructionParent)(self.raw()) })
    }

    /// The predicate of a comparison of integers or pointers; the numbers are those of `LLVMIntPredicate`.
    pub(crate) fn predicate(self) -> i32 {
        unsafe { (ll().LLVMGetICmpPredicate)(self.raw()) }
    }

    /// The values of a phi, with the blocks that they come from.
    pub(crate) fn incoming(self) -> Vec<(Self, Block<'c>)> {
        let count = unsafe { (ll().LLVMCountIncoming)(self.raw()) };
        let value = |index| Self::new(unsafe { (ll().LLVMGetIncomingValue)(self.raw(), index) });
        let block = |index| Block::new(unsafe { (ll().LLVMGetIncomingBlock)(self.raw(), index) });
        (0..count).map(|index| (value(index), block(index))).collect()
    }

    /// Adds incoming values to a phi.
    pub(crate) fn add_incoming(self, incoming: &[(Self, Block<'c>)]) {
        let mut values: Vec<_> = incoming.iter().map(|(value, _)| value.raw()).collect();
        let mut blocks: Vec<_> = incoming.iter().map(|(_, block)| block.raw()).collect();
        let count = incoming.len() as u32;
        unsafe { (ll().LLVMAddIncoming)(self.raw(), values.as_mut_ptr(), blocks.as_mut_ptr(), count) };
    }

    /// The source element type of an address computation.
    pub(crate) fn gep_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetGEPSourceElementType)(self.raw()) })
    }

    /// The order of an atomic instruction. The numbers are those of `LLVMAtomicOrdering`.
    pub(crate) fn ordering(self) -> i32 {
        unsafe { (ll().LLVMGetOrdering)(self.raw()) }
    }

    pub(crate) fn set_ordering(self, ordering: i32) {
        unsafe { (ll().LLVMSetOrdering)(self.raw(), ordering) }
    }

    /// Whether the instruction is an atomic operation or a fence.
    pub(crate) fn is_atomic(self) -> bool {
        self.kind() == ValueKind::Instruction && unsafe { (ll().LLVMIsAtomic)(self.raw()) != 0 }
    }

    pub(crate) fn set_sync_scope(self, scope: u32) {
        unsafe { (ll().LLVMSetAtomicSyncScopeID)(self.raw(), scope) }
    }

    /// The type of a local variable.
    pub(crate) fn allocated_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetAllocatedType)(self.raw()) })
    }

    /// The alignment of a memory access or variable, in bytes.
    pub(crate) fn alignment(self) -> u32 {
        unsafe { (ll().LLVMGetAlignment)(self.raw()) }
    }

    pub(crate) fn sync_scope(self) -> u32 {
        unsafe { (ll().LLVMGetAtomicSyncScopeID)(self.raw()) }
    }

    /// Adds fast-math flags to an arithmetic instruction, by the bits of `LLVMFastMathFlags`.
    pub(crate) fn add_fast_math(self, flags: u32) {
        unsafe {
            if (ll().LLVMCanValueUseFastMathFlags)(self.raw()) != 0 {
                (ll().LLVMSetFastMathFlags)(self.raw(), flags);
            }
        }
    }
}
