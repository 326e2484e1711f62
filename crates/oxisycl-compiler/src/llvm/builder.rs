//! Basic blocks, and the builder that adds instructions to them.

use std::marker::PhantomData;

use super::context::{Context, ll};
use super::sys;
use super::types::Type;
use super::value::Value;

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block<'c>(*mut sys::BasicBlock, PhantomData<&'c Context>);

impl<'c> Block<'c> {
    pub(super) fn new(raw: *mut sys::BasicBlock) -> Self {
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> *mut sys::BasicBlock {
        self.0
    }

    /// Adds an empty block to a function.
    pub(crate) fn append(context: &'c Context, function: Value<'c>) -> Self {
        // SAFETY: a live function.
        Self(unsafe { (ll().LLVMAppendBasicBlockInContext)(context.raw(), function.raw(), c"".as_ptr()) }, PhantomData)
    }

    /// Moves the block behind `other`, in whose function it already is.
    pub(crate) fn move_after(self, other: Self) {
        // SAFETY: live blocks of one function.
        unsafe { (ll().LLVMMoveBasicBlockAfter)(self.0, other.0) };
    }

    /// Moves the block before `other`. Before the first block it becomes the function's entry.
    pub(crate) fn move_before(self, other: Self) {
        // SAFETY: live blocks of one function.
        unsafe { (ll().LLVMMoveBasicBlockBefore)(self.0, other.0) };
    }

    /// The block's terminator, which every block of valid code has.
    pub(crate) fn end(self) -> Value<'c> {
        // SAFETY: a live block.
        Value::new(unsafe { (ll().LLVMGetBasicBlockTerminator)(self.0) })
    }

    /// The block's successors.
    pub(crate) fn successors(self) -> Vec<Self> {
        let end = self.end().raw();
        // SAFETY: a live instruction that ends a block, and positions below the count.
        unsafe {
            let count = (ll().LLVMGetNumSuccessors)(end);
            (0..count).map(|index| Self((ll().LLVMGetSuccessor)(end, index), PhantomData)).collect()
        }
    }

    pub(crate) fn instructions(self) -> Vec<Value<'c>> {
        let mut instructions = Vec::new();
        // SAFETY: a live block.
        unsafe {
            let mut instruction = (ll().LLVMGetFirstInstruction)(self.0);
            while let Some(value) = Value::maybe(instruction) {
                instructions.push(value);
                instruction = (ll().LLVMGetNextInstruction)(instruction);
            }
        }
        instructions
    }
}

/// A builder that adds instructions at an insertion point.
pub(crate) struct Builder<'c>(*mut sys::Builder, PhantomData<&'c Context>);

impl<'c> Builder<'c> {
    pub(crate) fn at_end(context: &'c Context, block: Block<'c>) -> Self {
        // SAFETY: a live context and block.
        unsafe {
            let builder = (ll().LLVMCreateBuilderInContext)(context.raw());
            (ll().LLVMPositionBuilderAtEnd)(builder, block.0);
            Self(builder, PhantomData)
        }
    }

    pub(crate) fn before(context: &'c Context, instruction: Value<'c>) -> Self {
        // SAFETY: a live context and instruction.
        unsafe {
            let builder = (ll().LLVMCreateBuilderInContext)(context.raw());
            (ll().LLVMPositionBuilderBefore)(builder, instruction.raw());
            Self(builder, PhantomData)
        }
    }

    pub(super) fn raw(&self) -> *mut sys::Builder {
        self.0
    }

    /// Calls a function.
    pub(crate) fn call(&self, callee: Value<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        self.call_as(callee.held_type(), callee, arguments)
    }

    /// Calls a value with a given function type.
    pub(crate) fn call_as(&self, function_type: Type<'c>, callee: Value<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        let mut raw: Vec<_> = arguments.iter().map(|argument| argument.raw()).collect();
        let count = raw.len() as u32;
        // SAFETY: live values; the verifier checks types.
        let call = unsafe {
            (ll().LLVMBuildCall2)(self.0, function_type.raw(), callee.raw(), raw.as_mut_ptr(), count, c"".as_ptr())
        };
        Value::new(call)
    }

    pub(crate) fn ret_void(&self) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildRetVoid)(self.0) };
    }

    pub(crate) fn ret(&self, value: Value<'c>) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildRet)(self.0, value.raw()) };
    }

    pub(crate) fn unreachable(&self) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildUnreachable)(self.0) };
    }

    pub(crate) fn branch(&self, target: Block<'c>) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildBr)(self.0, target.0) };
    }

    pub(crate) fn branch_if(&self, condition: Value<'c>, yes: Block<'c>, no: Block<'c>) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildCondBr)(self.0, condition.raw(), yes.0, no.0) };
    }

    /// The logical negation of a value.
    pub(crate) fn not(&self, value: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildNot)(self.0, value.raw(), c"".as_ptr()) })
    }

    /// Selects one of two values by a condition.
    pub(crate) fn select(&self, condition: Value<'c>, yes: Value<'c>, no: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildSelect)(self.0, condition.raw(), yes.raw(), no.raw(), c"".as_ptr()) })
    }

    /// Moves an instruction from elsewhere in the function to this point.
    pub(crate) fn take(&self, instruction: Value<'c>) {
        // SAFETY: as above; an instruction is in one block at a time.
        unsafe {
            (ll().LLVMInstructionRemoveFromParent)(instruction.raw());
            (ll().LLVMInsertIntoBuilder)(self.0, instruction.raw());
        }
    }

    /// Compares integers or pointers; the numbers of predicates are those of `LLVMIntPredicate`.
    pub(crate) fn compare(&self, predicate: i32, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildICmp)(self.0, predicate, left.raw(), right.raw(), c"".as_ptr()) })
    }

    /// Whether two integers or pointers are equal.
    pub(crate) fn is_equal(&self, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        self.compare(32, left, right)
    }

    /// Whether two integers or pointers are not equal.
    pub(crate) fn is_unequal(&self, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        self.compare(33, left, right)
    }

    /// The sum of two integers, which wraps.
    pub(crate) fn add(&self, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildAdd)(self.0, left.raw(), right.raw(), c"".as_ptr()) })
    }

    /// The difference of two integers, which wraps.
    pub(crate) fn subtract(&self, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildSub)(self.0, left.raw(), right.raw(), c"".as_ptr()) })
    }

    /// The product of two integers, which wraps.
    pub(crate) fn multiply(&self, left: Value<'c>, right: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildMul)(self.0, left.raw(), right.raw(), c"".as_ptr()) })
    }

    /// Zero-extends a number.
    pub(crate) fn widen(&self, value: Value<'c>, wider: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildZExt)(self.0, value.raw(), wider.raw(), c"".as_ptr()) })
    }

    /// Truncates a number.
    pub(crate) fn narrow(&self, value: Value<'c>, narrower: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildTrunc)(self.0, value.raw(), narrower.raw(), c"".as_ptr()) })
    }

    /// A phi: a value by the predecessor block.
    pub(crate) fn phi(&self, value_type: Type<'c>, incoming: &[(Value<'c>, Block<'c>)]) -> Value<'c> {
        // SAFETY: as above.
        let phi = Value::new(unsafe { (ll().LLVMBuildPhi)(self.0, value_type.raw(), c"".as_ptr()) });
        phi.add_incoming(incoming);
        phi
    }

    pub(crate) fn load(&self, value_type: Type<'c>, pointer: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildLoad2)(self.0, value_type.raw(), pointer.raw(), c"".as_ptr()) })
    }

    pub(crate) fn store(&self, value: Value<'c>, pointer: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildStore)(self.0, value.raw(), pointer.raw()) })
    }

    pub(crate) fn alloca(&self, value_type: Type<'c>, count: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildArrayAlloca)(self.0, value_type.raw(), count.raw(), c"".as_ptr()) })
    }

    /// Casts an address to an integer.
    pub(crate) fn address_to_int(&self, pointer: Value<'c>, integer: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildPtrToInt)(self.0, pointer.raw(), integer.raw(), c"".as_ptr()) })
    }

    /// Casts an integer to an address.
    pub(crate) fn int_to_address(&self, number: Value<'c>, pointer: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildIntToPtr)(self.0, number.raw(), pointer.raw(), c"".as_ptr()) })
    }

    /// Casts an address to another address space.
    pub(crate) fn cast_address(&self, pointer: Value<'c>, target: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildAddrSpaceCast)(self.0, pointer.raw(), target.raw(), c"".as_ptr()) })
    }

    /// The address `count` elements further.
    pub(crate) fn offset(&self, element: Type<'c>, pointer: Value<'c>, count: Value<'c>) -> Value<'c> {
        let mut index = count.raw();
        // SAFETY: as above.
        Value::new(unsafe {
            (ll().LLVMBuildGEP2)(self.0, element.raw(), pointer.raw(), &raw mut index, 1, c"".as_ptr())
        })
    }

    /// A fence of the given order and scope.
    pub(crate) fn fence(&self, ordering: i32, scope: u32) {
        // SAFETY: as above.
        unsafe { (ll().LLVMBuildFenceSyncScope)(self.0, ordering, scope, c"".as_ptr()) };
    }
}

impl Drop for Builder<'_> {
    fn drop(&mut self) {
        // SAFETY: made by this type.
        unsafe { (ll().LLVMDisposeBuilder)(self.0) }
    }
}
