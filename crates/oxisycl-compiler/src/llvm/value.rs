//! Values: common queries, and those of functions, globals and constants.

use std::marker::PhantomData;

use super::builder::Block;
use super::context::{Context, ll, take_message};
use super::deleted;
use super::opcode::Opcode;
use super::sys;
use super::types::{Type, TypeKind};

/// A value.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value<'c>(*mut sys::Value, PhantomData<&'c Context>);

/// The kind of a value, as far as the compiler distinguishes them.
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
    pub(crate) const WEAK_ODR: Self = Self(6);
    pub(crate) const APPENDING: Self = Self(7);
    pub(crate) const INTERNAL: Self = Self(8);
    pub(crate) const PRIVATE: Self = Self(9);

    /// Whether other modules cannot see the symbol.
    pub(crate) fn is_local(self) -> bool {
        self == Self::INTERNAL || self == Self::PRIVATE
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
        if raw.is_null() {
            return None;
        }
        deleted::forget(raw);
        Some(Self(raw, PhantomData))
    }

    /// The raw pointer, for immediate use. Debug builds panic if the value was deleted.
    pub(super) fn raw(self) -> *mut sys::Value {
        deleted::refuse(self.0);
        self.0
    }

    pub(super) fn raw_context(self) -> *mut sys::Context {
        unsafe { (ll().LLVMGetTypeContext)((ll().LLVMTypeOf)(self.raw())) }
    }

    pub(crate) fn kind(self) -> ValueKind {
        match unsafe { (ll().LLVMGetValueKind)(self.raw()) } {
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
        unsafe { (ll().LLVMIsNull)(self.raw()) != 0 }
    }

    pub(crate) fn name(self) -> &'c str {
        let mut length = 0;
        let bytes = unsafe {
            let start = (ll().LLVMGetValueName2)(self.raw(), &raw mut length);
            std::slice::from_raw_parts(start.cast::<u8>(), length)
        };
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(crate) fn set_name(self, name: &str) {
        unsafe { (ll().LLVMSetValueName2)(self.raw(), name.as_ptr().cast(), name.len()) }
    }

    pub(crate) fn value_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMTypeOf)(self.raw()) })
    }

    pub(crate) fn replace_all_uses_with(self, other: Self) {
        unsafe { (ll().LLVMReplaceAllUsesWith)(self.raw(), other.raw()) }
    }

    pub(crate) fn is_used(self) -> bool {
        unsafe { !(ll().LLVMGetFirstUse)(self.raw()).is_null() }
    }

    /// The calls of a function. Other uses of its address do not count.
    pub(crate) fn calls(self) -> Vec<Self> {
        self.users().into_iter().filter(|user| user.callee() == Some(self)).collect()
    }

    pub(crate) fn users(self) -> Vec<Self> {
        let mut users = Vec::new();
        unsafe {
            let mut place = (ll().LLVMGetFirstUse)(self.raw());
            while !place.is_null() {
                users.push(Self::new((ll().LLVMGetUser)(place)));
                place = (ll().LLVMGetNextUse)(place);
            }
        }
        users
    }

    pub(crate) fn operands(self) -> Vec<Self> {
        let count = unsafe { (ll().LLVMGetNumOperands)(self.raw()) }.max(0) as u32;
        (0..count).filter_map(|index| Self::maybe(unsafe { (ll().LLVMGetOperand)(self.raw(), index) })).collect()
    }

    pub(crate) fn operand(self, index: u32) -> Self {
        Self::new(unsafe { (ll().LLVMGetOperand)(self.raw(), index) })
    }

    /// The value in LLVM assembly.
    pub(crate) fn print(self) -> String {
        unsafe { take_message((ll().LLVMPrintValueToString)(self.raw())) }
    }

    // Constants.

    /// The value of an integer constant of at most 64 bits.
    pub(crate) fn integer(self) -> Option<u64> {
        (self.kind() == ValueKind::Integer).then(|| unsafe { (ll().LLVMConstIntGetZExtValue)(self.raw()) })
    }

    /// The number that a constant integer of at most 64 bits is, with its sign.
    pub(crate) fn signed(self) -> Option<i64> {
        let TypeKind::Integer(width @ 1..=64) = self.value_type().kind() else { return None };
        self.integer().map(|bits| bits.cast_signed() << (64 - width) >> (64 - width))
    }

    /// The bytes of a constant array of bytes.
    pub(crate) fn data(self) -> Option<&'c [u8]> {
        if self.kind() != ValueKind::DataArray || self.value_type().kind() != TypeKind::Array {
            return None;
        }
        let mut length = 0;
        unsafe {
            let start = (ll().LLVMGetAsString)(self.raw(), &raw mut length);
            Some(std::slice::from_raw_parts(start.cast::<u8>(), length))
        }
    }

    /// The element of a constant aggregate.
    pub(crate) fn element(self, index: u32) -> Option<Self> {
        Self::maybe(unsafe { (ll().LLVMGetAggregateElement)(self.raw(), index) })
    }

    /// The opcode of a constant expression.
    pub(crate) fn expression(self) -> Option<Opcode> {
        (self.kind() == ValueKind::ConstantExpression).then(|| Opcode(unsafe { (ll().LLVMGetConstOpcode)(self.raw()) }))
    }

    /// Casts an integer constant to a pointer.
    pub(crate) fn int_to_pointer(self, target: Type<'c>) -> Self {
        Self::new(unsafe { (ll().LLVMConstIntToPtr)(self.raw(), target.raw()) })
    }

    // Functions and globals.

    pub(crate) fn is_declaration(self) -> bool {
        unsafe { (ll().LLVMIsDeclaration)(self.raw()) != 0 }
    }

    pub(crate) fn linkage(self) -> Linkage {
        Linkage(unsafe { (ll().LLVMGetLinkage)(self.raw()) })
    }

    pub(crate) fn set_linkage(self, linkage: Linkage) {
        unsafe { (ll().LLVMSetLinkage)(self.raw(), linkage.0) }
    }

    /// Removes section and group of a symbol, and sets the default visibility.
    pub(crate) fn clear_placement(self) {
        unsafe {
            (ll().LLVMSetSection)(self.raw(), c"".as_ptr());
            (ll().LLVMSetComdat)(self.raw(), std::ptr::null_mut());
            (ll().LLVMSetVisibility)(self.raw(), 0);
        }
    }

    /// Makes a symbol one of the final link alone, which exports it to no other library.
    pub(crate) fn hide(self) {
        const HIDDEN: i32 = 1;
        unsafe { (ll().LLVMSetVisibility)(self.raw(), HIDDEN) }
    }

    /// The type of a function, or of a global's value.
    pub(crate) fn held_type(self) -> Type<'c> {
        Type::new(unsafe { (ll().LLVMGlobalGetValueType)(self.raw()) })
    }

    pub(crate) fn initializer(self) -> Option<Self> {
        (self.kind() == ValueKind::GlobalVariable)
            .then(|| Self::maybe(unsafe { (ll().LLVMGetInitializer)(self.raw()) }))?
    }

    pub(crate) fn set_initializer(self, value: Self) {
        unsafe { (ll().LLVMSetInitializer)(self.raw(), value.0) }
    }

    pub(crate) fn is_constant_global(self) -> bool {
        unsafe { (ll().LLVMIsGlobalConstant)(self.raw()) != 0 }
    }

    /// Marks a global as constant.
    pub(crate) fn make_constant(self) {
        unsafe { (ll().LLVMSetGlobalConstant)(self.raw(), 1) }
    }

    /// Marks a global as one whose content LLVM does not know.
    pub(crate) fn make_variable(self) {
        unsafe { (ll().LLVMSetGlobalConstant)(self.raw(), 0) }
    }

    /// Whether nothing relies on the address of a global: there may be several copies of it.
    pub(crate) fn is_unnamed(self) -> bool {
        unsafe { (ll().LLVMGetUnnamedAddress)(self.raw()) != 0 }
    }

    pub(crate) fn is_thread_local(self) -> bool {
        unsafe { (ll().LLVMIsThreadLocal)(self.raw()) != 0 }
    }

    /// Deletes a function with its body. Handles of it, its parameters and its instructions must not be used afterwards.
    pub(crate) fn delete_function(self) {
        if cfg!(debug_assertions) {
            let parameters = (0..self.parameter_count()).map(|index| self.parameter(index));
            self.instructions().into_iter().chain(parameters).for_each(|value| deleted::note(value.raw()));
        }
        let raw = self.raw();
        deleted::note(raw);
        unsafe { (ll().LLVMDeleteFunction)(raw) }
    }

    /// Deletes a global variable. Its handles must not be used afterwards.
    pub(crate) fn delete_global(self) {
        let raw = self.raw();
        deleted::note(raw);
        unsafe { (ll().LLVMDeleteGlobal)(raw) }
    }

    pub(crate) fn aliasee(self) -> Self {
        Self::new(unsafe { (ll().LLVMAliasGetAliasee)(self.raw()) })
    }

    pub(crate) fn set_alignment(self, bytes: u32) {
        unsafe { (ll().LLVMSetAlignment)(self.raw(), bytes) }
    }

    /// Sets the calling convention of a function.
    pub(crate) fn set_call_convention(self, number: u32) {
        unsafe { (ll().LLVMSetFunctionCallConv)(self.raw(), number) }
    }

    /// The calling convention of a function.
    pub(crate) fn call_convention(self) -> u32 {
        unsafe { (ll().LLVMGetFunctionCallConv)(self.raw()) }
    }

    /// Sets the calling convention of a call.
    pub(crate) fn set_site_call_convention(self, number: u32) {
        unsafe { (ll().LLVMSetInstructionCallConv)(self.raw(), number) }
    }

    pub(crate) fn remove_personality(self) {
        unsafe {
            if (ll().LLVMHasPersonalityFn)(self.raw()) != 0 {
                (ll().LLVMSetPersonalityFn)(self.raw(), std::ptr::null_mut());
            }
        }
    }

    /// The function of a parameter.
    pub(crate) fn parent(self) -> Self {
        Self::new(unsafe { (ll().LLVMGetParamParent)(self.raw()) })
    }

    /// The number of a function's parameters.
    pub(crate) fn parameter_count(self) -> u32 {
        unsafe { (ll().LLVMCountParams)(self.raw()) }
    }

    pub(crate) fn parameter(self, index: u32) -> Self {
        Self::new(unsafe { (ll().LLVMGetParam)(self.raw(), index) })
    }

    pub(crate) fn blocks(self) -> Vec<Block<'c>> {
        let mut blocks = Vec::new();
        unsafe {
            let mut block = (ll().LLVMGetFirstBasicBlock)(self.raw());
            while !block.is_null() {
                blocks.push(Block::new(block));
                block = (ll().LLVMGetNextBasicBlock)(block);
            }
        }
        blocks
    }

    /// All instructions of a function. The list does not change when instructions are added or removed.
    pub(crate) fn instructions(self) -> Vec<Self> {
        self.blocks().into_iter().flat_map(Block::instructions).collect()
    }
}
