//! Types of LLVM.

use std::marker::PhantomData;

use super::context::{Context, ll};
use super::sys;
use super::value::Value;

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type<'c>(*mut sys::Type, PhantomData<&'c Context>);

/// The kind of a type, as far as the compiler distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TypeKind {
    Void,
    Half,
    Float,
    Double,
    BFloat,
    /// `fp128`, `x86_fp80` and the like.
    WideFloat,
    Integer(u32),
    /// A pointer, with its address space.
    Pointer(u32),
    Vector,
    Array,
    Struct,
    Other,
}

impl<'c> Type<'c> {
    pub(super) fn new(raw: *mut sys::Type) -> Self {
        assert!(!raw.is_null(), "LLVM gave no type");
        Self(raw, PhantomData)
    }

    pub(super) fn raw(self) -> *mut sys::Type {
        self.0
    }

    pub(crate) fn kind(self) -> TypeKind {
        // SAFETY: a live type.
        unsafe {
            match (ll().LLVMGetTypeKind)(self.0) {
                0 => TypeKind::Void,
                1 => TypeKind::Half,
                2 => TypeKind::Float,
                3 => TypeKind::Double,
                4..=6 => TypeKind::WideFloat,
                8 => TypeKind::Integer((ll().LLVMGetIntTypeWidth)(self.0)),
                10 => TypeKind::Struct,
                11 => TypeKind::Array,
                12 => TypeKind::Pointer((ll().LLVMGetPointerAddressSpace)(self.0)),
                13 | 17 => TypeKind::Vector,
                18 => TypeKind::BFloat,
                _ => TypeKind::Other,
            }
        }
    }

    pub(crate) fn void(context: &'c Context) -> Self {
        // SAFETY: a live context.
        Self::new(unsafe { (ll().LLVMVoidTypeInContext)(context.raw()) })
    }

    pub(crate) fn int(context: &'c Context, bits: u32) -> Self {
        // SAFETY: a live context.
        Self::new(unsafe { (ll().LLVMIntTypeInContext)(context.raw(), bits) })
    }

    /// The type `float`.
    pub(crate) fn single(context: &'c Context) -> Self {
        // SAFETY: a live context.
        Self::new(unsafe { (ll().LLVMFloatTypeInContext)(context.raw()) })
    }

    pub(crate) fn double(context: &'c Context) -> Self {
        // SAFETY: a live context.
        Self::new(unsafe { (ll().LLVMDoubleTypeInContext)(context.raw()) })
    }

    pub(crate) fn pointer(context: &'c Context, address_space: u32) -> Self {
        // SAFETY: a live context.
        Self::new(unsafe { (ll().LLVMPointerTypeInContext)(context.raw(), address_space) })
    }

    /// The type `[size x i8]`.
    pub(crate) fn bytes(context: &'c Context, size: usize) -> Self {
        // SAFETY: a live type.
        Self::new(unsafe { (ll().LLVMArrayType2)(Self::int(context, 8).0, size as u64) })
    }

    /// An array of so many elements of this type.
    pub(crate) fn array(self, count: u64) -> Self {
        // SAFETY: a live type.
        Self::new(unsafe { (ll().LLVMArrayType2)(self.0, count) })
    }

    pub(crate) fn function(result: Self, parameters: &[Self]) -> Self {
        let mut raw: Vec<_> = parameters.iter().map(|parameter| parameter.0).collect();
        // SAFETY: live types, and their number.
        Self::new(unsafe { (ll().LLVMFunctionType)(result.0, raw.as_mut_ptr(), raw.len() as u32, 0) })
    }

    /// A constant of an integer type.
    pub(crate) fn constant(self, value: u64) -> Value<'c> {
        // SAFETY: a live integer type.
        Value::new(unsafe { (ll().LLVMConstInt)(self.0, value, 0) })
    }

    pub(crate) fn null(self) -> Value<'c> {
        // SAFETY: a live type.
        Value::new(unsafe { (ll().LLVMConstNull)(self.0) })
    }

    pub(crate) fn poison(self) -> Value<'c> {
        // SAFETY: a live type.
        Value::new(unsafe { (ll().LLVMGetPoison)(self.0) })
    }
}
