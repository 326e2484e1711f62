//! Sizes and offsets in memory, by the data layout of a module.

use super::context::ll;
use super::module::Module;
use super::sys;
use super::types::Type;

/// The data layout of a live module.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'m>(*mut sys::TargetData, std::marker::PhantomData<&'m ()>);

impl<'m> Layout<'m> {
    pub(crate) fn of(module: &'m Module<'_>) -> Self {
        // SAFETY: a live module, whose layout lives as long as the borrow.
        Self(unsafe { (ll().LLVMGetModuleDataLayout)(module.raw()) }, std::marker::PhantomData)
    }

    /// The distance of two elements of an array, in bytes.
    pub(crate) fn size(self, of: Type<'_>) -> u64 {
        // SAFETY: a live layout, and a type with a size.
        unsafe { (ll().LLVMABISizeOfType)(self.0, of.raw()) }
    }

    /// The number of bytes that a store writes.
    pub(crate) fn store_size(self, of: Type<'_>) -> u64 {
        // SAFETY: as above.
        unsafe { (ll().LLVMStoreSizeOfType)(self.0, of.raw()) }
    }

    /// The alignment of a variable of the type, in bytes.
    pub(crate) fn alignment(self, of: Type<'_>) -> u32 {
        // SAFETY: as above.
        unsafe { (ll().LLVMABIAlignmentOfType)(self.0, of.raw()) }
    }

    /// The offset of a struct's member, in bytes.
    pub(crate) fn offset(self, of: Type<'_>, member: u32) -> u64 {
        // SAFETY: as above, of a struct with that member.
        unsafe { (ll().LLVMOffsetOfElement)(self.0, of.raw(), member) }
    }
}
