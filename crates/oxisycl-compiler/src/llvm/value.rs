//! Values: functions, globals, constants and instructions, and the builder that makes instructions.

use std::marker::PhantomData;

use super::{Context, Opcode, Type, TypeKind, ll, sys, take_message};

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value<'c>(*mut sys::Value, PhantomData<&'c Context>);

/// What a value is, as far as the compiler asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    Argument,
    Function,
    GlobalVariable,
    Alias,
    ConstantExpression,
    /// An array or struct constant.
    Aggregate,
    /// An array of plain numbers.
    DataArray,
    Integer,
    Float,
    /// Zero of an aggregate, or a null pointer.
    Null,
    Undefined,
    InlineAsm,
    Instruction,
    Other,
}

/// Linkage; the numbers are those of `LLVMLinkage`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Linkage(i32);

impl Linkage {
    pub(crate) const EXTERNAL: Self = Self(0);
    pub(crate) const LINK_ONCE_ODR: Self = Self(3);
    pub(crate) const APPENDING: Self = Self(7);
    pub(crate) const INTERNAL: Self = Self(8);
    pub(crate) const PRIVATE: Self = Self(9);

    /// Whether other modules cannot see the symbol.
    pub(crate) fn is_local(self) -> bool {
        self == Self::INTERNAL || self == Self::PRIVATE
    }
}

/// An attribute of a function, its result or a parameter.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'c>(*mut sys::Attribute, PhantomData<&'c Context>);

impl<'c> Attribute<'c> {
    /// The index of attributes of the function itself.
    pub(crate) const FUNCTION: u32 = u32::MAX;

    /// An attribute without or with a number.
    pub(crate) fn plain(context: &'c Context, name: &str, value: u64) -> Self {
        // SAFETY: a live context; LLVM knows the kind.
        Self(unsafe { (ll().LLVMCreateEnumAttribute)(context.raw(), Self::kind(name), value) }, PhantomData)
    }

    /// An attribute with a type.
    pub(crate) fn typed(context: &'c Context, name: &str, value: Type<'c>) -> Self {
        // SAFETY: as above.
        Self(unsafe { (ll().LLVMCreateTypeAttribute)(context.raw(), Self::kind(name), value.raw()) }, PhantomData)
    }

    /// An attribute that only some targets know.
    pub(crate) fn text(context: &'c Context, name: &str, value: &str) -> Self {
        let (name_length, value_length) = (name.len() as u32, value.len() as u32);
        // SAFETY: texts with their lengths.
        let raw = unsafe {
            (ll().LLVMCreateStringAttribute)(
                context.raw(),
                name.as_ptr().cast(),
                name_length,
                value.as_ptr().cast(),
                value_length,
            )
        };
        Self(raw, PhantomData)
    }

    pub(super) fn kind(name: &str) -> u32 {
        // SAFETY: a text with its length.
        let kind = unsafe { (ll().LLVMGetEnumAttributeKindForName)(name.as_ptr().cast(), name.len()) };
        assert!(kind != 0, "LLVM has no attribute {name}");
        kind
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live value of the right kind"
)]
impl<'c> Value<'c> {
    pub(super) fn new(raw: *mut sys::Value) -> Self {
        Self::maybe(raw).expect("LLVM gave no value")
    }

    pub(super) fn maybe(raw: *mut sys::Value) -> Option<Self> {
        (!raw.is_null()).then_some(Self(raw, PhantomData))
    }

    pub(super) fn raw(self) -> *mut sys::Value {
        self.0
    }

    pub(crate) fn kind(self) -> ValueKind {
        match unsafe { (ll().LLVMGetValueKind)(self.0) } {
            0 => ValueKind::Argument,
            5 => ValueKind::Function,
            6 => ValueKind::Alias,
            8 => ValueKind::GlobalVariable,
            10 => ValueKind::ConstantExpression,
            11..=13 => ValueKind::Aggregate,
            14 | 25 => ValueKind::Undefined,
            15 | 20 => ValueKind::Null,
            16 | 17 => ValueKind::DataArray,
            18 => ValueKind::Integer,
            19 => ValueKind::Float,
            23 => ValueKind::InlineAsm,
            24 => ValueKind::Instruction,
            _ => ValueKind::Other,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        unsafe { (ll().LLVMIsNull)(self.0) != 0 }
    }

    pub(crate) fn name(self) -> &'c str {
        let mut length = 0;
        let bytes = unsafe {
            let start = (ll().LLVMGetValueName2)(self.0, &raw mut length);
            std::slice::from_raw_parts(start.cast::<u8>(), length)
        };
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn set_name(self, name: &str) {
        unsafe { (ll().LLVMSetValueName2)(self.0, name.as_ptr().cast(), name.len()) }
    }

    pub(crate) fn value_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMTypeOf)(self.0) })
    }

    pub(crate) fn replace_all_uses_with(self, other: Self) {
        unsafe { (ll().LLVMReplaceAllUsesWith)(self.0, other.0) }
    }

    pub(crate) fn is_used(self) -> bool {
        unsafe { !(ll().LLVMGetFirstUse)(self.0).is_null() }
    }

    pub(crate) fn users(self) -> Vec<Self> {
        let mut users = Vec::new();
        unsafe {
            let mut place = (ll().LLVMGetFirstUse)(self.0);
            while !place.is_null() {
                users.push(Self::new((ll().LLVMGetUser)(place)));
                place = (ll().LLVMGetNextUse)(place);
            }
        }
        users
    }

    pub(crate) fn operands(self) -> Vec<Self> {
        let count = unsafe { (ll().LLVMGetNumOperands)(self.0) }.max(0) as u32;
        (0..count).filter_map(|index| Self::maybe(unsafe { (ll().LLVMGetOperand)(self.0, index) })).collect()
    }

    pub(crate) fn operand(self, index: u32) -> Self {
        Self::new(unsafe { (ll().LLVMGetOperand)(self.0, index) })
    }

    /// The text of the value in LLVM's assembly.
    pub(crate) fn print(self) -> String {
        unsafe { take_message((ll().LLVMPrintValueToString)(self.0)) }
    }

    // Constants.

    /// Of an integer constant of at most 64 bits.
    pub(crate) fn integer(self) -> Option<u64> {
        (self.kind() == ValueKind::Integer).then(|| unsafe { (ll().LLVMConstIntGetZExtValue)(self.0) })
    }

    /// Of an array of bytes.
    pub(crate) fn data(self) -> Option<&'c [u8]> {
        if self.kind() != ValueKind::DataArray || self.value_type().kind() != TypeKind::Array {
            return None;
        }
        let mut length = 0;
        unsafe {
            let start = (ll().LLVMGetAsString)(self.0, &raw mut length);
            Some(std::slice::from_raw_parts(start.cast::<u8>(), length))
        }
    }

    /// The element of a constant aggregate.
    pub(crate) fn element(self, index: u32) -> Option<Self> {
        Self::maybe(unsafe { (ll().LLVMGetAggregateElement)(self.0, index) })
    }

    /// The operation of a constant expression.
    pub(crate) fn expression(self) -> Option<Opcode> {
        (self.kind() == ValueKind::ConstantExpression).then(|| Opcode(unsafe { (ll().LLVMGetConstOpcode)(self.0) }))
    }

    /// An integer as a pointer.
    pub(crate) fn int_to_pointer(self, target: Type<'c>) -> Self {
        Self::new(unsafe { (ll().LLVMConstIntToPtr)(self.0, target.raw()) })
    }

    // Functions and globals.

    pub(crate) fn is_declaration(self) -> bool {
        unsafe { (ll().LLVMIsDeclaration)(self.0) != 0 }
    }

    pub(crate) fn linkage(self) -> Linkage {
        Linkage(unsafe { (ll().LLVMGetLinkage)(self.0) })
    }

    pub(crate) fn set_linkage(self, linkage: Linkage) {
        unsafe { (ll().LLVMSetLinkage)(self.0, linkage.0) }
    }

    /// Makes it an ordinary symbol: no section, no group, default visibility.
    pub(crate) fn clear_placement(self) {
        unsafe {
            (ll().LLVMSetSection)(self.0, c"".as_ptr());
            (ll().LLVMSetComdat)(self.0, std::ptr::null_mut());
            (ll().LLVMSetVisibility)(self.0, 0);
        }
    }

    /// The type of a function or of what a global holds.
    pub(crate) fn held_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGlobalGetValueType)(self.0) })
    }

    pub(crate) fn initializer(self) -> Option<Self> {
        (self.kind() == ValueKind::GlobalVariable).then(|| Self::maybe(unsafe { (ll().LLVMGetInitializer)(self.0) }))?
    }

    pub(crate) fn set_initializer(self, value: Self) {
        unsafe { (ll().LLVMSetInitializer)(self.0, value.0) }
    }

    pub(crate) fn is_constant_global(self) -> bool {
        unsafe { (ll().LLVMIsGlobalConstant)(self.0) != 0 }
    }

    pub(crate) fn is_thread_local(self) -> bool {
        unsafe { (ll().LLVMIsThreadLocal)(self.0) != 0 }
    }

    pub(crate) fn delete_function(self) {
        unsafe { (ll().LLVMDeleteFunction)(self.0) }
    }

    pub(crate) fn delete_global(self) {
        unsafe { (ll().LLVMDeleteGlobal)(self.0) }
    }

    pub(crate) fn aliasee(self) -> Self {
        Self::new(unsafe { (ll().LLVMAliasGetAliasee)(self.0) })
    }

    pub(crate) fn set_alignment(self, bytes: u32) {
        unsafe { (ll().LLVMSetAlignment)(self.0, bytes) }
    }

    /// Of a function.
    pub(crate) fn set_call_convention(self, number: u32) {
        unsafe { (ll().LLVMSetFunctionCallConv)(self.0, number) }
    }

    /// Of a function.
    pub(crate) fn call_convention(self) -> u32 {
        unsafe { (ll().LLVMGetFunctionCallConv)(self.0) }
    }

    /// Of a call.
    pub(crate) fn set_site_call_convention(self, number: u32) {
        unsafe { (ll().LLVMSetInstructionCallConv)(self.0, number) }
    }

    pub(crate) fn remove_personality(self) {
        unsafe {
            if (ll().LLVMHasPersonalityFn)(self.0) != 0 {
                (ll().LLVMSetPersonalityFn)(self.0, std::ptr::null_mut());
            }
        }
    }

    /// The function that has this parameter.
    pub(crate) fn parent(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetParamParent)(self.0) })
    }

    /// How many parameters a function has.
    pub(crate) fn parameter_count(self) -> u32 {
        unsafe { (ll().LLVMCountParams)(self.0) }
    }

    pub(crate) fn parameter(self, index: u32) -> Self {
        Self::new(unsafe { (ll().LLVMGetParam)(self.0, index) })
    }

    pub(crate) fn add_attribute(self, index: u32, attribute: Attribute<'c>) {
        unsafe { (ll().LLVMAddAttributeAtIndex)(self.0, index, attribute.0) }
    }

    /// Of a call.
    pub(crate) fn add_site_attribute(self, index: u32, attribute: Attribute<'c>) {
        unsafe { (ll().LLVMAddCallSiteAttribute)(self.0, index, attribute.0) }
    }

    /// Of a call.
    pub(crate) fn remove_site_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveCallSiteEnumAttribute)(self.0, index, Attribute::kind(name)) }
    }

    pub(crate) fn has_attribute(self, index: u32, name: &str) -> bool {
        unsafe { !(ll().LLVMGetEnumAttributeAtIndex)(self.0, index, Attribute::kind(name)).is_null() }
    }

    pub(crate) fn has_text_attribute(self, index: u32, name: &str) -> bool {
        let (start, length) = (name.as_ptr().cast(), name.len() as u32);
        unsafe { !(ll().LLVMGetStringAttributeAtIndex)(self.0, index, start, length).is_null() }
    }

    pub(crate) fn remove_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveEnumAttributeAtIndex)(self.0, index, Attribute::kind(name)) }
    }

    pub(crate) fn remove_text_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveStringAttributeAtIndex)(self.0, index, name.as_ptr().cast(), name.len() as u32) }
    }

    pub(crate) fn blocks(self) -> Vec<Block<'c>> {
        let mut blocks = Vec::new();
        unsafe {
            let mut block = (ll().LLVMGetFirstBasicBlock)(self.0);
            while !block.is_null() {
                blocks.push(Block(block, PhantomData));
                block = (ll().LLVMGetNextBasicBlock)(block);
            }
        }
        blocks
    }

    /// All instructions of a function. The list does not change when instructions are added or removed.
    pub(crate) fn instructions(self) -> Vec<Self> {
        self.blocks().into_iter().flat_map(Block::instructions).collect()
    }

    // Instructions.

    pub(crate) fn opcode(self) -> Option<Opcode> {
        (self.kind() == ValueKind::Instruction).then(|| Opcode(unsafe { (ll().LLVMGetInstructionOpcode)(self.0) }))
    }

    pub(crate) fn is(self, opcode: Opcode) -> bool {
        self.opcode() == Some(opcode)
    }

    /// What a call calls, if the value is a call or an invoke.
    pub(crate) fn callee(self) -> Option<Self> {
        let is_call = self.is(Opcode::CALL) || self.is(Opcode::INVOKE);
        is_call.then(|| Self::new(unsafe { (ll().LLVMGetCalledValue)(self.0) }))
    }

    /// The type of what a call calls.
    pub(crate) fn called_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetCalledFunctionType)(self.0) })
    }

    /// Makes a call one of another function of the same type.
    pub(crate) fn set_callee(self, callee: Self) {
        let last = unsafe { (ll().LLVMGetNumOperands)(self.0) } - 1;
        unsafe { (ll().LLVMSetOperand)(self.0, last as u32, callee.0) }
    }

    /// The arguments of a call.
    pub(crate) fn arguments(self) -> Vec<Self> {
        let count = unsafe { (ll().LLVMGetNumArgOperands)(self.0) };
        (0..count).map(|index| self.operand(index)).collect()
    }

    /// The function that an instruction is in.
    pub(crate) fn function(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetBasicBlockParent)((ll().LLVMGetInstructionParent)(self.0)) })
    }

    /// The instruction that follows; every instruction that does not end a block has one.
    pub(crate) fn next(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetNextInstruction)(self.0) })
    }

    pub(crate) fn erase(self) {
        unsafe { (ll().LLVMInstructionEraseFromParent)(self.0) }
    }

    /// Whether an instruction has metadata of that kind.
    pub(crate) fn has_metadata(self, kind: &str) -> bool {
        unsafe { !(ll().LLVMGetMetadata)(self.0, self.metadata_kind(kind)).is_null() }
    }

    /// Gives an instruction empty metadata of that kind.
    pub(crate) fn mark(self, kind: &str) {
        unsafe {
            let context = (ll().LLVMGetTypeContext)((ll().LLVMTypeOf)(self.0));
            let node = (ll().LLVMMDNodeInContext2)(context, std::ptr::null_mut(), 0);
            (ll().LLVMSetMetadata)(self.0, self.metadata_kind(kind), (ll().LLVMMetadataAsValue)(context, node));
        }
    }

    fn metadata_kind(self, kind: &str) -> u32 {
        unsafe {
            let context = (ll().LLVMGetTypeContext)((ll().LLVMTypeOf)(self.0));
            (ll().LLVMGetMDKindIDInContext)(context, kind.as_ptr().cast(), kind.len() as u32)
        }
    }

    /// The block that an instruction is in.
    pub(crate) fn block(self) -> Block<'c> {
        Block(unsafe { (ll().LLVMGetInstructionParent)(self.0) }, PhantomData)
    }

    /// The predicate of a comparison of integers or pointers; the numbers are those of `LLVMIntPredicate`.
    pub(crate) fn predicate(self) -> i32 {
        unsafe { (ll().LLVMGetICmpPredicate)(self.0) }
    }

    /// The values of a phi, with the blocks that they come from.
    pub(crate) fn incoming(self) -> Vec<(Self, Block<'c>)> {
        let count = unsafe { (ll().LLVMCountIncoming)(self.0) };
        let value = |index| Self::new(unsafe { (ll().LLVMGetIncomingValue)(self.0, index) });
        let block = |index| Block(unsafe { (ll().LLVMGetIncomingBlock)(self.0, index) }, PhantomData);
        (0..count).map(|index| (value(index), block(index))).collect()
    }

    /// The type that the indices of an address computation count.
    pub(crate) fn gep_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetGEPSourceElementType)(self.0) })
    }

    /// Of an atomic instruction; the numbers are those of `LLVMAtomicOrdering`.
    pub(crate) fn ordering(self) -> i32 {
        unsafe { (ll().LLVMGetOrdering)(self.0) }
    }

    pub(crate) fn set_ordering(self, ordering: i32) {
        unsafe { (ll().LLVMSetOrdering)(self.0, ordering) }
    }

    /// Whether it is an atomic operation or a fence.
    pub(crate) fn is_atomic(self) -> bool {
        self.kind() == ValueKind::Instruction && unsafe { (ll().LLVMIsAtomic)(self.0) != 0 }
    }

    pub(crate) fn set_sync_scope(self, scope: u32) {
        unsafe { (ll().LLVMSetAtomicSyncScopeID)(self.0, scope) }
    }

    /// Of a variable.
    pub(crate) fn allocated_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGetAllocatedType)(self.0) })
    }

    /// In bytes.
    pub(crate) fn alignment(self) -> u32 {
        unsafe { (ll().LLVMGetAlignment)(self.0) }
    }

    pub(crate) fn sync_scope(self) -> u32 {
        unsafe { (ll().LLVMGetAtomicSyncScopeID)(self.0) }
    }

    /// File, line and column of an instruction, where known.
    pub(crate) fn place(self) -> Option<(String, u32, u32)> {
        unsafe {
            let line = (ll().LLVMGetDebugLocLine)(self.0);
            let mut length = 0;
            let file = (ll().LLVMGetDebugLocFilename)(self.0, &raw mut length);
            if line == 0 || file.is_null() {
                return None;
            }
            let file = std::slice::from_raw_parts(file.cast::<u8>(), length as usize);
            Some((String::from_utf8_lossy(file).into_owned(), line, (ll().LLVMGetDebugLocColumn)(self.0)))
        }
    }

    /// Lets an arithmetic instruction be computed less strictly, by the bits of `LLVMFastMathFlags`.
    pub(crate) fn add_fast_math(self, flags: u32) {
        unsafe {
            if (ll().LLVMCanValueUseFastMathFlags)(self.0) != 0 {
                (ll().LLVMSetFastMathFlags)(self.0, flags);
            }
        }
    }
}

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block<'c>(*mut sys::BasicBlock, PhantomData<&'c Context>);

impl<'c> Block<'c> {
    /// Adds an empty block to a function.
    pub(crate) fn append(context: &'c Context, function: Value<'c>) -> Self {
        // SAFETY: a live function.
        Self(unsafe { (ll().LLVMAppendBasicBlockInContext)(context.raw(), function.raw(), c"".as_ptr()) }, PhantomData)
    }

    /// Changes the block's place in its function, which is that of `other`, too.
    pub(crate) fn move_after(self, other: Self) {
        // SAFETY: live blocks of one function.
        unsafe { (ll().LLVMMoveBasicBlockAfter)(self.0, other.0) };
    }

    /// The instruction that ends the block; every block of valid code has one.
    pub(crate) fn end(self) -> Value<'c> {
        // SAFETY: a live block.
        Value::new(unsafe { (ll().LLVMGetBasicBlockTerminator)(self.0) })
    }

    /// The blocks that may follow.
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

/// Adds instructions at a place.
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

    /// Calls a function.
    pub(crate) fn call(&self, callee: Value<'c>, arguments: &[Value<'c>]) -> Value<'c> {
        self.call_as(callee.held_type(), callee, arguments)
    }

    /// Calls something with a given function type.
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

    /// The opposite of a truth value.
    pub(crate) fn not(&self, value: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildNot)(self.0, value.raw(), c"".as_ptr()) })
    }

    /// One of two values.
    pub(crate) fn select(&self, condition: Value<'c>, yes: Value<'c>, no: Value<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildSelect)(self.0, condition.raw(), yes.raw(), no.raw(), c"".as_ptr()) })
    }

    /// Puts an instruction here that was elsewhere in the function.
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

    /// A number with zeros in front.
    pub(crate) fn widen(&self, value: Value<'c>, wider: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildZExt)(self.0, value.raw(), wider.raw(), c"".as_ptr()) })
    }

    /// Chooses a value by the block that control comes from.
    pub(crate) fn phi(&self, value_type: Type<'c>, incoming: &[(Value<'c>, Block<'c>)]) -> Value<'c> {
        let mut values: Vec<_> = incoming.iter().map(|(value, _)| value.raw()).collect();
        let mut blocks: Vec<_> = incoming.iter().map(|(_, block)| block.0).collect();
        // SAFETY: as above; two lists of the same length.
        unsafe {
            let phi = (ll().LLVMBuildPhi)(self.0, value_type.raw(), c"".as_ptr());
            (ll().LLVMAddIncoming)(phi, values.as_mut_ptr(), blocks.as_mut_ptr(), incoming.len() as u32);
            Value::new(phi)
        }
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

    /// The same address in another address space.
    pub(crate) fn cast_address(&self, pointer: Value<'c>, target: Type<'c>) -> Value<'c> {
        // SAFETY: as above.
        Value::new(unsafe { (ll().LLVMBuildAddrSpaceCast)(self.0, pointer.raw(), target.raw(), c"".as_ptr()) })
    }

    /// An address so many elements further.
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
