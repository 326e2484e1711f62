//! Source places in a copy of a function, which has a description of its own: the original counts as inlined there.

use std::cell::RefCell;
use std::ffi::c_void;

use rustc_hash::FxHashMap;

use super::builder::Builder;
use super::context::ll;
use super::sys;
use super::value::Value;

/// Maps places in a function to places in a copy of it.
pub(crate) struct Places {
    /// The place in the copy's own description; null if it has none.
    outer: *mut c_void,
    context: *mut sys::Context,
    known: RefCell<FxHashMap<*mut c_void, *mut c_void>>,
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about live functions, instructions and nodes that they lead to, which live as long as their context"
)]
impl Places {
    /// The places of a copy, which [`describe`](super::describe) has described.
    pub(crate) fn in_copy(copy: Value<'_>) -> Self {
        let context = copy.raw_context();
        let description = unsafe { (ll().LLVMGetSubprogram)(copy.raw()) };
        let outer = if description.is_null() {
            std::ptr::null_mut()
        } else {
            let line = unsafe { (ll().LLVMDISubprogramGetLine)(description) };
            unsafe { (ll().LLVMDIBuilderCreateDebugLocation)(context, line, 0, description, std::ptr::null_mut()) }
        };
        Self { outer, context, known: RefCell::default() }
    }

    /// Places what the builder adds from here on where an instruction of the original is.
    pub(crate) fn enter(&self, builder: &Builder<'_>, original: Value<'_>) {
        let location = unsafe { (ll().LLVMInstructionGetDebugLoc)(original.raw()) };
        builder.set_location(self.moved(location));
    }

    /// Places an instruction of the copy where one of the original is.
    pub(crate) fn set(&self, instruction: Value<'_>, original: Value<'_>) {
        let location = unsafe { (ll().LLVMInstructionGetDebugLoc)(original.raw()) };
        unsafe { (ll().LLVMInstructionSetDebugLoc)(instruction.raw(), self.moved(location)) };
    }

    fn moved(&self, location: *mut c_void) -> *mut c_void {
        if location.is_null() || self.outer.is_null() {
            return self.outer;
        }
        if let Some(known) = self.known.borrow().get(&location) {
            return *known;
        }
        let at = self.moved(unsafe { (ll().LLVMDILocationGetInlinedAt)(location) });
        let moved = unsafe {
            let scope = (ll().LLVMDILocationGetScope)(location);
            let (line, column) = ((ll().LLVMDILocationGetLine)(location), (ll().LLVMDILocationGetColumn)(location));
            (ll().LLVMDIBuilderCreateDebugLocation)(self.context, line, column, scope, at)
        };
        self.known.borrow_mut().insert(location, moved);
        moved
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about live instructions of one function"
)]
impl Value<'_> {
    /// Places an instruction where another one of its function is.
    pub(crate) fn place_as(self, other: Self) {
        let location = unsafe { (ll().LLVMInstructionGetDebugLoc)(other.raw()) };
        unsafe { (ll().LLVMInstructionSetDebugLoc)(self.raw(), location) };
    }
}
