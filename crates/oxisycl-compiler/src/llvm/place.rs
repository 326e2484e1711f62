//! Source places of code, by its debug information.

use std::ffi::c_void;

use oxisycl_image::SourceLocation;

use super::context::ll;
use super::debug::Node;
use super::sys;
use super::value::Value;

/// A place in a source file.
pub(crate) struct Place<'c> {
    pub(crate) file: String,
    /// The folder that `file` is relative to.
    pub(crate) folder: String,
    /// The line, from 1; 0 for code that the compiler made.
    pub(crate) line: u32,
    column: u32,
    scope: Node<'c>,
}

impl<'c> Place<'c> {
    /// The line at which a function begins; its column is unknown.
    pub(crate) fn of_function(function: Node<'c>) -> Option<Self> {
        let (file, folder) = function.file()?;
        let line = function.line();
        (line > 0 && !file.is_empty()).then_some(Self { file, folder, line, column: 1, scope: function })
    }

    /// The place for messages, with the file name that rustc was given.
    ///
    /// Cargo gives absolute names to sources of packages outside the workspace. Debug information has them relative to the folder of their
    /// package, where they look like the user's own.
    pub(crate) fn location(self) -> SourceLocation {
        let Self { file, folder, line, column, scope } = self;
        let is_relative = !file.starts_with('/') && !folder.is_empty();
        let is_elsewhere = || scope.unit().and_then(Node::file).is_some_and(|(source, _)| source.starts_with('/'));
        let file = if is_relative && is_elsewhere() { format!("{folder}/{file}") } else { file };
        SourceLocation { file, line, column }
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live instruction or a node that it leads to, which lives as long as its context"
)]
impl<'c> Place<'c> {
    /// The place of a location node. A null pointer has none.
    fn of_location(location: *mut c_void, context: *mut sys::Context) -> Option<Self> {
        if location.is_null() {
            return None;
        }
        let scope = Node::of_location(location, context)?;
        let (file, folder) = scope.file()?;
        let line = unsafe { (ll().LLVMDILocationGetLine)(location) };
        let column = unsafe { (ll().LLVMDILocationGetColumn)(location) };
        Some(Self { file, folder, line, column, scope })
    }
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live instruction or a node that it leads to, which lives as long as its context"
)]
impl<'c> Value<'c> {
    /// The place of an instruction, and then the places where that was inlined, outwards.
    pub(crate) fn places(self) -> Vec<Place<'c>> {
        let context = self.raw_context();
        let mut places = Vec::new();
        let mut location = unsafe { (ll().LLVMInstructionGetDebugLoc)(self.raw()) };
        while !location.is_null() {
            places.extend(Place::of_location(location, context));
            location = unsafe { (ll().LLVMDILocationGetInlinedAt)(location) };
        }
        places
    }

    /// The variables that are declared at an instruction: their names and the places of their declarations in the source.
    pub(crate) fn variables(self) -> Vec<(String, Place<'c>)> {
        // The number of `LLVMDbgRecordLabel`.
        const LABEL: i32 = 0;
        let context = self.raw_context();
        let mut variables = Vec::new();
        let mut record = unsafe { (ll().LLVMGetFirstDbgRecord)(self.raw()) };
        while !record.is_null() {
            if unsafe { (ll().LLVMDbgRecordGetKind)(record) } != LABEL {
                let variable = unsafe { (ll().LLVMDbgVariableRecordGetVariable)(record) };
                let location = unsafe { (ll().LLVMDbgRecordGetDebugLoc)(record) };
                let name = Node::name_of_variable(variable, context);
                variables.extend(name.zip(Place::of_location(location, context)));
            }
            record = unsafe { (ll().LLVMGetNextDbgRecord)(record) };
        }
        variables
    }

    /// The place of an instruction, if it has a line.
    pub(crate) fn place(self) -> Option<Place<'c>> {
        self.places().into_iter().next().filter(|place| place.line > 0)
    }
}
