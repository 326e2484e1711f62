//! Sizes and positions in memory, as the data layout of a module has them.

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

    /// Distance of two elements of an array, in bytes.
    pub(crate) fn size(self, of: Type<'_>) -> u64 {
        // SAFETY: a live layout, and a type with a size.
        unsafe { (ll().LLVMABISizeOfType)(self.0, of.raw()) }
    }

    /// Bytes that a store writes.
    pub(crate) fn store_size(self, of: Type<'_>) -> u64 {
        // SAFETY: as above.
        unsafe { (ll().LLVMStoreSizeOfType)(self.0, of.raw()) }
    }

    /// Alignment of a variable of the type.
    pub(crate) fn alignment(self, of: Type<'_>) -> u32 {
        // SAFETY: as above.
        unsafe { (ll().LLVMABIAlignmentOfType)(self.0, of.raw()) }
    }

    /// Where a member of a struct starts.
    pub(crate) fn offset(self, of: Type<'_>, member: u32) -> u64 {
        // SAFETY: as above, of a struct with that member.
        unsafe { (ll().LLVMOffsetOfElement)(self.0, of.raw(), member) }
    }
}
