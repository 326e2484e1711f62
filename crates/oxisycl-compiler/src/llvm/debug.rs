//! Debug information: the types of the source, as far as the compiler reads them.
//!
//! Nodes are read through their operands, whose positions are those of LLVM 22's `DebugInfoMetadata.h`.

use std::ffi::{c_char, c_uint, c_void};
use std::marker::PhantomData;

use super::context::{Context, ll};
use super::module::Module;
use super::sys;
use super::value::Value;

/// A node of debug information.
#[derive(Clone, Copy)]
pub(crate) struct Node<'c> {
    metadata: *mut c_void,
    context: *mut sys::Context,
    lives: PhantomData<&'c Context>,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.metadata == other.metadata
    }
}

/// The kind of a node, as far as the compiler distinguishes them. The numbers are those of `LLVMMetadataKind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeKind {
    BasicType,
    DerivedType,
    CompositeType,
    SubroutineType,
    Namespace,
    TemplateType,
    Function,
    Other,
}

/// The DWARF tags that the compiler uses.
pub(crate) mod tag {
    pub(crate) const ARRAY: u16 = 0x01;
    pub(crate) const ENUMERATION: u16 = 0x04;
    pub(crate) const MEMBER: u16 = 0x0D;
    pub(crate) const POINTER: u16 = 0x0F;
    pub(crate) const REFERENCE: u16 = 0x10;
    pub(crate) const STRUCTURE: u16 = 0x13;
    pub(crate) const RVALUE_REFERENCE: u16 = 0x42;
}

#[expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the same for all: LLVM is asked about a live node of the context"
)]
impl<'c> Node<'c> {
    // File, scope, name, size, offset, base type, elements.
    const SCOPE: usize = 1;
    const NAME: usize = 2;
    const BASE: usize = 5;
    // Of a function.
    const UNIT: usize = 5;
    // Of a variable: scope, name, file, type.
    const VARIABLE: usize = 1;
    const ELEMENTS: usize = 6;

    /// The description of a function, if it has one.
    pub(crate) fn of_function(function: Value<'c>) -> Option<Self> {
        Self::maybe(function.raw_context(), unsafe { (ll().LLVMGetSubprogram)(function.raw()) })
    }

    /// The scope that a location is in.
    pub(super) fn of_location(location: *mut c_void, context: *mut sys::Context) -> Option<Self> {
        Self::maybe(context, unsafe { (ll().LLVMDILocationGetScope)(location) })
    }

    /// The file of a scope's code, and the folder that its name is relative to.
    pub(super) fn file(self) -> Option<(String, String)> {
        let file = unsafe { (ll().LLVMDIScopeGetFile)(self.metadata) };
        if file.is_null() {
            return None;
        }
        let text = |get: unsafe extern "C" fn(*mut c_void, *mut c_uint) -> *const c_char| {
            let mut length = 0;
            // An empty text may be null.
            let bytes = unsafe {
                let start = get(file, &raw mut length);
                if length == 0 { &[] } else { std::slice::from_raw_parts(start.cast::<u8>(), length as usize) }
            };
            String::from_utf8_lossy(bytes).into_owned()
        };
        Some((text(ll().LLVMDIFileGetFilename), text(ll().LLVMDIFileGetDirectory)))
    }

    /// The line of a function, or 0.
    pub(super) fn line(self) -> u32 {
        unsafe { (ll().LLVMDISubprogramGetLine)(self.metadata) }
    }

    /// The compile unit of a scope.
    pub(super) fn unit(self) -> Option<Self> {
        let mut scope = self;
        while scope.kind() != NodeKind::Function {
            scope = scope.scope()?;
        }
        scope.operand(Self::UNIT)
    }

    fn maybe(context: *mut sys::Context, metadata: *mut c_void) -> Option<Self> {
        (!metadata.is_null()).then_some(Self { metadata, context, lives: PhantomData })
    }

    pub(crate) fn kind(self) -> NodeKind {
        match unsafe { (ll().LLVMGetMetadataKind)(self.metadata) } {
            11 => NodeKind::BasicType,
            12 => NodeKind::DerivedType,
            13 => NodeKind::CompositeType,
            14 => NodeKind::SubroutineType,
            17 => NodeKind::Function,
            20 => NodeKind::Namespace,
            22 => NodeKind::TemplateType,
            _ => NodeKind::Other,
        }
    }

    pub(crate) fn tag(self) -> u16 {
        unsafe { (ll().LLVMGetDINodeTag)(self.metadata) }
    }

    fn raw_operands(self) -> Vec<*mut sys::Value> {
        unsafe {
            let value = (ll().LLVMMetadataAsValue)(self.context, self.metadata);
            if (ll().LLVMIsAMDNode)(value).is_null() {
                return Vec::new();
            }
            let mut operands = vec![std::ptr::null_mut(); (ll().LLVMGetMDNodeNumOperands)(value) as usize];
            (ll().LLVMGetMDNodeOperands)(value, operands.as_mut_ptr());
            operands
        }
    }

    /// The nodes among the operands.
    pub(crate) fn operands(self) -> Vec<Self> {
        self.raw_operands().into_iter().filter_map(|operand| self.node(operand)).collect()
    }

    fn node(self, operand: *mut sys::Value) -> Option<Self> {
        if operand.is_null() || unsafe { (ll().LLVMIsAMDNode)(operand) }.is_null() {
            return None;
        }
        Self::maybe(self.context, unsafe { (ll().LLVMValueAsMetadata)(operand) })
    }

    fn operand(self, index: usize) -> Option<Self> {
        self.node(self.raw_operands().get(index).copied()?)
    }

    /// The name of a type, namespace or member.
    pub(crate) fn name(self) -> String {
        self.text(Self::NAME)
    }

    /// The name of the variable that a debug record describes.
    pub(super) fn name_of_variable(variable: *mut c_void, context: *mut sys::Context) -> Option<String> {
        Some(Self::maybe(context, variable)?.text(Self::VARIABLE))
    }

    fn text(self, index: usize) -> String {
        let Some(&operand) = self.raw_operands().get(index) else { return String::new() };
        if operand.is_null() || unsafe { (ll().LLVMIsAMDString)(operand) }.is_null() {
            return String::new();
        }
        let mut length = 0;
        unsafe {
            let start = (ll().LLVMGetMDString)(operand, &raw mut length);
            String::from_utf8_lossy(std::slice::from_raw_parts(start.cast::<u8>(), length as usize)).into_owned()
        }
    }

    /// The scope that contains a type or namespace.
    pub(crate) fn scope(self) -> Option<Self> {
        self.operand(Self::SCOPE)
    }

    /// The type of a member, or the type that a pointer points to.
    pub(crate) fn base(self) -> Option<Self> {
        self.operand(Self::BASE)
    }

    /// The elements of a composite type.
    pub(crate) fn elements(self) -> Vec<Self> {
        self.operand(Self::ELEMENTS).map(Self::operands).unwrap_or_default()
    }

    /// The type argument for a parameter of a generic function.
    pub(crate) fn template_type(self) -> Option<Self> {
        // A name and a type.
        self.operands().into_iter().next_back()
    }

    /// The size of a type in bits.
    pub(crate) fn size_in_bits(self) -> u64 {
        unsafe { (ll().LLVMDITypeGetSizeInBits)(self.metadata) }
    }

    /// The offset of a member in bits.
    pub(crate) fn offset_in_bits(self) -> u64 {
        unsafe { (ll().LLVMDITypeGetOffsetInBits)(self.metadata) }
    }
}

/// Describes a function that the compiler made, and places all its instructions at the line of `like`. Code that is inlined into a function
/// without a description would lose its lines. Nothing happens if `like` has none.
pub(crate) fn describe<'c>(module: &Module<'c>, function: Value<'c>, like: Value<'c>) {
    // The numbers of `LLVMDWARFSourceLanguage` and `LLVMDWARFEmissionKind`.
    const RUST: i32 = 27;
    const LINES: i32 = 2;
    const PRODUCER: &str = "oxisycl";
    let Some(model) = Node::of_function(like) else { return };
    let name = function.name();
    let (start, length) = (name.as_ptr().cast(), name.len());
    let none = c"".as_ptr();
    // SAFETY: a live module, function and description; texts with their lengths; the builder is finished and freed.
    unsafe {
        let builder = (ll().LLVMCreateDIBuilderDisallowUnresolved)(module.raw());
        let file = (ll().LLVMDIScopeGetFile)(model.metadata);
        let line = (ll().LLVMDISubprogramGetLine)(model.metadata);
        let producer = PRODUCER.as_ptr().cast();
        let unit = (ll().LLVMDIBuilderCreateCompileUnit)(
            builder,
            RUST,
            file,
            producer,
            PRODUCER.len(),
            1,
            none,
            0,
            0,
            none,
            0,
            LINES,
            0,
            0,
            0,
            none,
            0,
            none,
            0,
        );
        let signature = (ll().LLVMDIBuilderCreateSubroutineType)(builder, file, std::ptr::null_mut(), 0, 0);
        let description = (ll().LLVMDIBuilderCreateFunction)(
            builder, unit, start, length, start, length, file, line, signature, 0, 1, line, 0, 1,
        );
        (ll().LLVMSetSubprogram)(function.raw(), description);
        let context = module.context().raw();
        let place = (ll().LLVMDIBuilderCreateDebugLocation)(context, line, 0, description, std::ptr::null_mut());
        for instruction in function.instructions() {
            (ll().LLVMInstructionSetDebugLoc)(instruction.raw(), place);
        }
        (ll().LLVMDIBuilderFinalize)(builder);
        (ll().LLVMDisposeDIBuilder)(builder);
    }
}

/// Debug information as line directives only, in LLVM's assembly: `.file` and `.loc`. The sections that a debugger reads are left out,
/// since drivers would take the code for a debug build. LLVM's C API has no function for it.
pub(super) fn as_line_directives(assembly: &str) -> String {
    let mut text = String::with_capacity(assembly.len());
    for line in assembly.split_inclusive('\n') {
        let is_unit = line.starts_with('!') && line.contains(" = distinct !DICompileUnit(");
        // What follows the kind are flags and names of no files.
        match line.rfind("emissionKind: ").filter(|_| is_unit) {
            Some(start) => {
                let kind = start + "emissionKind: ".len();
                let rest = &line[kind..];
                text.push_str(&line[..kind]);
                text.push_str("DebugDirectivesOnly");
                text.push_str(rest.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()));
            }
            None => text.push_str(line),
        }
    }
    text
}
