//! Attributes of functions, of their results and parameters, and of calls.

use std::marker::PhantomData;

use super::context::{Context, ll};
use super::sys;
use super::types::Type;
use super::value::Value;

/// An attribute of a function, its result or a parameter.
#[derive(Clone, Copy)]
pub(crate) struct Attribute<'c>(*mut sys::Attribute, PhantomData<&'c Context>);

impl<'c> Attribute<'c> {
    /// The index of attributes of the function itself.
    pub(crate) const FUNCTION: u32 = u32::MAX;

    /// An attribute with a number, which is 0 for attributes without one.
    pub(crate) fn plain(context: &'c Context, name: &str, value: u64) -> Self {
        // SAFETY: a live context; LLVM knows the kind.
        Self(unsafe { (ll().LLVMCreateEnumAttribute)(context.raw(), Self::kind(name), value) }, PhantomData)
    }

    /// An attribute with a type.
    pub(crate) fn typed(context: &'c Context, name: &str, value: Type<'c>) -> Self {
        // SAFETY: as above.
        Self(unsafe { (ll().LLVMCreateTypeAttribute)(context.raw(), Self::kind(name), value.raw()) }, PhantomData)
    }

    /// A string attribute, which only some targets know.
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
    pub(crate) fn add_attribute(self, index: u32, attribute: Attribute<'c>) {
        unsafe { (ll().LLVMAddAttributeAtIndex)(self.raw(), index, attribute.0) }
    }

    /// Adds an attribute to a call.
    pub(crate) fn add_site_attribute(self, index: u32, attribute: Attribute<'c>) {
        unsafe { (ll().LLVMAddCallSiteAttribute)(self.raw(), index, attribute.0) }
    }

    /// Removes an attribute from a call.
    pub(crate) fn remove_site_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveCallSiteEnumAttribute)(self.raw(), index, Attribute::kind(name)) }
    }

    pub(crate) fn has_attribute(self, index: u32, name: &str) -> bool {
        unsafe { !(ll().LLVMGetEnumAttributeAtIndex)(self.raw(), index, Attribute::kind(name)).is_null() }
    }

    pub(crate) fn has_text_attribute(self, index: u32, name: &str) -> bool {
        let (start, length) = (name.as_ptr().cast(), name.len() as u32);
        unsafe { !(ll().LLVMGetStringAttributeAtIndex)(self.raw(), index, start, length).is_null() }
    }

    pub(crate) fn remove_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveEnumAttributeAtIndex)(self.raw(), index, Attribute::kind(name)) }
    }

    pub(crate) fn remove_text_attribute(self, index: u32, name: &str) {
        unsafe { (ll().LLVMRemoveStringAttributeAtIndex)(self.raw(), index, name.as_ptr().cast(), name.len() as u32) }
    }
}
