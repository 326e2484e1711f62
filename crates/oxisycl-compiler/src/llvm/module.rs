//! Modules, passes and code generation.

use std::ffi::c_char;
use std::ptr::{NonNull, null_mut};
use std::rc::Rc;

use super::context::{Context, c_string, ll, take_message};
use super::sys;
use super::types::Type;
use super::value::Value;
use crate::error::CompileError;

/// A module; freed when dropped.
pub(crate) struct Module<'c> {
    raw: NonNull<sys::Module>,
    context: &'c Context,
}

impl<'c> Module<'c> {
    fn from_raw(raw: *mut sys::Module, context: &'c Context) -> Self {
        Self { raw: NonNull::new(raw).expect("LLVM gave no module"), context }
    }

    pub(crate) fn context(&self) -> &'c Context {
        self.context
    }

    pub(super) fn raw(&self) -> *mut sys::Module {
        self.raw.as_ptr()
    }

    pub(crate) fn empty(context: &'c Context, name: &str) -> Self {
        let name = c_string(name);
        // SAFETY: a name and a live context.
        Self::from_raw(unsafe { (ll().LLVMModuleCreateWithNameInContext)(name.as_ptr(), context.raw()) }, context)
    }

    /// Reads a whole module from bitcode.
    pub(crate) fn from_bitcode(context: &'c Context, bytes: &[u8], name: &str) -> Result<Self, CompileError> {
        let mut raw = null_mut();
        // SAFETY: LLVM has read the bytes when it returns; the buffer only points to them, and is freed.
        let failed = unsafe {
            let buffer = buffer_of(bytes, name);
            let failed = (ll().LLVMParseBitcodeInContext2)(context.raw(), buffer, &raw mut raw) != 0;
            (ll().LLVMDisposeMemoryBuffer)(buffer);
            failed
        };
        if failed { Err(unreadable(context, name)) } else { Ok(Self::from_raw(raw, context)) }
    }

    /// Reads the declarations of bitcode. Bodies of functions are read when they are linked, and only those that are. Such a module is
    /// read, changed in its declarations, and [linked](Self::link); passes do not run on it.
    pub(crate) fn lazy(context: &'c Context, bytes: &Rc<Vec<u8>>, name: &str) -> Result<Self, CompileError> {
        let mut raw = null_mut();
        context.keep(Rc::clone(bytes));
        // SAFETY: the context, which the module cannot outlive, keeps the bytes. LLVM takes the buffer over, also if it fails.
        let failed =
            unsafe { (ll().LLVMGetBitcodeModuleInContext2)(context.raw(), buffer_of(bytes, name), &raw mut raw) != 0 };
        if failed { Err(unreadable(context, name)) } else { Ok(Self::from_raw(raw, context)) }
    }

    /// The module as bitcode.
    pub(crate) fn to_bitcode(&self) -> Vec<u8> {
        // SAFETY: a live module; the buffer is ours.
        unsafe { take_buffer((ll().LLVMWriteBitcodeToMemoryBuffer)(self.raw())) }
    }

    /// Reads LLVM's assembly.
    pub(crate) fn from_text(context: &'c Context, text: &str, name: &str) -> Result<Self, CompileError> {
        let c_name = c_string(name);
        let (mut raw, mut message) = (null_mut(), null_mut());
        // SAFETY: LLVM copies the text, and takes the copy over.
        let failed = unsafe {
            let start = text.as_ptr().cast::<c_char>();
            let buffer = (ll().LLVMCreateMemoryBufferWithMemoryRangeCopy)(start, text.len(), c_name.as_ptr());
            (ll().LLVMParseIRInContext)(context.raw(), buffer, &raw mut raw, &raw mut message) != 0
        };
        // SAFETY: null, or LLVM's message.
        let message = unsafe { take_message(message) };
        if failed { Err(CompileError::Llvm(format!("{name}: {message}"))) } else { Ok(Self::from_raw(raw, context)) }
    }

    /// Links `other` into the module. Symbols with the linkage `LINK_ONCE_ODR` are linked only where they are used.
    pub(crate) fn link(&self, other: Module<'c>) -> Result<(), CompileError> {
        let source = other.raw();
        std::mem::forget(other);
        // SAFETY: live modules of one context; the source is consumed.
        if unsafe { (ll().LLVMLinkModules2)(self.raw(), source) } != 0 {
            return Err(CompileError::Llvm(format!("modules do not link: {:?}", self.context.take_errors())));
        }
        Ok(())
    }

    pub(crate) fn set_target(&self, triple: &str, data_layout: &str) {
        let (triple, data_layout) = (c_string(triple), c_string(data_layout));
        // SAFETY: two texts.
        unsafe {
            (ll().LLVMSetTarget)(self.raw(), triple.as_ptr());
            (ll().LLVMSetDataLayout)(self.raw(), data_layout.as_ptr());
        }
    }

    pub(crate) fn clear_inline_assembly(&self) {
        // SAFETY: an empty text.
        unsafe { (ll().LLVMSetModuleInlineAsm2)(self.raw(), c"".as_ptr(), 0) }
    }

    pub(crate) fn strip_debug_info(&self) {
        // SAFETY: a live module.
        unsafe { (ll().LLVMStripModuleDebugInfo)(self.raw()) };
    }

    /// A copy of the module with source lines and without other debug information.
    pub(crate) fn with_line_directives(&self) -> Result<Self, CompileError> {
        Self::from_text(self.context, &super::debug::as_line_directives(&self.to_string()), "lines")
    }

    /// The functions, including declared ones. The list does not change with the module.
    pub(crate) fn functions(&self) -> Vec<Value<'c>> {
        // SAFETY: a live module.
        unsafe { list((ll().LLVMGetFirstFunction)(self.raw()), ll().LLVMGetNextFunction) }
    }

    /// The global variables.
    pub(crate) fn globals(&self) -> Vec<Value<'c>> {
        // SAFETY: a live module.
        unsafe { list((ll().LLVMGetFirstGlobal)(self.raw()), ll().LLVMGetNextGlobal) }
    }

    pub(crate) fn aliases(&self) -> Vec<Value<'c>> {
        // SAFETY: a live module.
        unsafe { list((ll().LLVMGetFirstGlobalAlias)(self.raw()), ll().LLVMGetNextGlobalAlias) }
    }

    pub(crate) fn function(&self, name: &str) -> Option<Value<'c>> {
        let name = c_string(name);
        // SAFETY: a name.
        Value::maybe(unsafe { (ll().LLVMGetNamedFunction)(self.raw(), name.as_ptr()) })
    }

    pub(crate) fn global(&self, name: &str) -> Option<Value<'c>> {
        let name = c_string(name);
        // SAFETY: a name.
        Value::maybe(unsafe { (ll().LLVMGetNamedGlobal)(self.raw(), name.as_ptr()) })
    }

    /// Declares a function, or returns the existing one.
    pub(crate) fn declare(&self, name: &str, function_type: Type<'c>) -> Value<'c> {
        if let Some(function) = self.function(name) {
            return function;
        }
        let name = c_string(name);
        // SAFETY: a name and a live type.
        Value::new(unsafe { (ll().LLVMAddFunction)(self.raw(), name.as_ptr(), function_type.raw()) })
    }

    /// Adds a global variable without an initializer.
    pub(crate) fn add_global(&self, name: &str, value_type: Type<'c>, address_space: u32) -> Value<'c> {
        let name = c_string(name);
        // SAFETY: a name and a live type.
        Value::new(unsafe {
            (ll().LLVMAddGlobalInAddressSpace)(self.raw(), value_type.raw(), name.as_ptr(), address_space)
        })
    }

    /// Adds a constant array of bytes.
    pub(crate) fn add_constant(&self, name: &str, bytes: &[u8]) -> Value<'c> {
        let global = self.add_global(name, Type::bytes(self.context, bytes.len()), 0);
        // SAFETY: a live context; bytes and their number, without a NUL byte added; a live global.
        unsafe {
            let text = (ll().LLVMConstStringInContext2)(self.context.raw(), bytes.as_ptr().cast(), bytes.len(), 1);
            (ll().LLVMSetInitializer)(global.raw(), text);
            (ll().LLVMSetGlobalConstant)(global.raw(), 1);
        }
        global.set_linkage(super::Linkage::INTERNAL);
        global
    }

    /// Runs passes, in the syntax of `opt -passes`.
    pub(crate) fn run(&self, passes: &str, machine: Option<&Machine>, tuning: &PassTuning) -> Result<(), CompileError> {
        // SAFETY: a live module, and what `run_with` gives.
        run_with(passes, machine, tuning, |text, machine, options| unsafe {
            (ll().LLVMRunPasses)(self.raw(), text, machine, options)
        })
    }

    /// Runs passes for functions on one function of a module.
    pub(crate) fn run_on(
        function: Value<'c>,
        passes: &str,
        machine: Option<&Machine>,
        tuning: &PassTuning,
    ) -> Result<(), CompileError> {
        // SAFETY: a live function with a body, and what `run_with` gives.
        run_with(passes, machine, tuning, |text, machine, options| unsafe {
            (ll().LLVMRunPassesOnFunction)(function.raw(), text, machine, options)
        })
    }

    /// Checks that the module is well formed.
    pub(crate) fn verify(&self, stage: &str) -> Result<(), CompileError> {
        const RETURN_STATUS: i32 = 2;
        let mut message = null_mut();
        // SAFETY: a live module; the message is freed.
        let (broken, message) = unsafe {
            let broken = (ll().LLVMVerifyModule)(self.raw(), RETURN_STATUS, &raw mut message) != 0;
            (broken, take_message(message))
        };
        if broken { Err(CompileError::Llvm(format!("invalid code after {stage}: {message}"))) } else { Ok(()) }
    }
}

impl Clone for Module<'_> {
    fn clone(&self) -> Self {
        // SAFETY: a live module.
        Self::from_raw(unsafe { (ll().LLVMCloneModule)(self.raw()) }, self.context)
    }
}

impl std::fmt::Display for Module<'_> {
    /// Writes LLVM assembly.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // SAFETY: a live module; the text is freed.
        f.write_str(&unsafe { take_message((ll().LLVMPrintModuleToString)(self.raw())) })
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { (ll().LLVMDisposeModule)(self.raw()) }
    }
}

/// Runs passes by a function of LLVM, which gets their list, the machine and the options.
fn run_with(
    passes: &str,
    machine: Option<&Machine>,
    tuning: &PassTuning,
    run: impl FnOnce(*const c_char, *mut sys::TargetMachine, *mut sys::PassOptions) -> *mut sys::Error,
) -> Result<(), CompileError> {
    let text = c_string(passes);
    let machine = machine.map_or(null_mut(), |machine| machine.raw.as_ptr());
    let of_loops = sys::Bool::from(tuning.vectors != Vectors::None);
    let of_statements = sys::Bool::from(tuning.vectors == Vectors::All);
    // SAFETY: options that were just made.
    let options = unsafe {
        let options = (ll().LLVMCreatePassBuilderOptions)();
        (ll().LLVMPassBuilderOptionsSetLoopVectorization)(options, of_loops);
        (ll().LLVMPassBuilderOptionsSetSLPVectorization)(options, of_statements);
        (ll().LLVMPassBuilderOptionsSetMergeFunctions)(options, 0);
        (ll().LLVMPassBuilderOptionsSetInlinerThreshold)(options, tuning.inliner_threshold);
        options
    };
    let error = run(text.as_ptr(), machine, options);
    // SAFETY: freed after the run.
    unsafe { (ll().LLVMDisposePassBuilderOptions)(options) };
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the message of an error is freed with a function of its own.
    let message = unsafe {
        let message = (ll().LLVMGetErrorMessage)(error);
        let text = std::ffi::CStr::from_ptr(message).to_string_lossy().into_owned();
        (ll().LLVMDisposeErrorMessage)(message);
        text
    };
    Err(CompileError::Llvm(format!("passes {passes}: {message}")))
}

/// A buffer that points to bytes.
///
/// # Safety
/// The bytes outlive the buffer, which the caller frees or gives away.
unsafe fn buffer_of(bytes: &[u8], name: &str) -> *mut sys::MemoryBuffer {
    const NUL_TERMINATED: sys::Bool = 0;
    let name = c_string(name);
    // SAFETY: bytes with their number, and a name, which is copied.
    unsafe {
        let start = bytes.as_ptr().cast::<c_char>();
        (ll().LLVMCreateMemoryBufferWithMemoryRange)(start, bytes.len(), name.as_ptr(), NUL_TERMINATED)
    }
}

fn unreadable(context: &Context, name: &str) -> CompileError {
    CompileError::Llvm(format!("{name} is not bitcode that this LLVM reads: {:?}", context.take_errors()))
}

/// Walks a list of LLVM.
///
/// # Safety
/// `next` belongs to the list that `first` is in.
unsafe fn list<'c>(
    first: *mut sys::Value,
    next: unsafe extern "C" fn(*mut sys::Value) -> *mut sys::Value,
) -> Vec<Value<'c>> {
    let mut values = Vec::new();
    let mut raw = first;
    while let Some(value) = Value::maybe(raw) {
        values.push(value);
        // SAFETY: by contract.
        raw = unsafe { next(raw) };
    }
    values
}

/// Copies and frees a buffer.
///
/// # Safety
/// A buffer of LLVM that the caller owns.
unsafe fn take_buffer(buffer: *mut sys::MemoryBuffer) -> Vec<u8> {
    // SAFETY: by contract.
    unsafe {
        let start = (ll().LLVMGetBufferStart)(buffer).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, (ll().LLVMGetBufferSize)(buffer)).to_vec();
        (ll().LLVMDisposeMemoryBuffer)(buffer);
        bytes
    }
}

/// Parameters of LLVM's cost models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassTuning {
    /// The inliner's threshold; higher means more inlining.
    pub(crate) inliner_threshold: i32,
    /// What becomes instructions on vectors.
    pub(crate) vectors: Vectors,
}

/// What LLVM may make vectors of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Vectors {
    None,
    OfLoops,
    /// Of loops, and of statements beside each other.
    All,
}

impl PassTuning {
    /// For device code: calls cost registers and keep pointers from becoming known.
    pub(crate) const DEVICE: Self = Self { inliner_threshold: 1000, vectors: Vectors::None };

    /// For native code: what rustc does at its highest level. The threshold stands for LLVM's own one.
    pub(crate) const NATIVE: Self = Self { inliner_threshold: -1, vectors: Vectors::All };
}

/// The output of code generation. The numbers are those of `LLVMCodeGenFileType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Codegen {
    Assembly = 0,
    Object = 1,
}

/// The target machine of a processor.
pub(crate) struct Machine {
    raw: NonNull<sys::TargetMachine>,
    triple: String,
}

impl Machine {
    pub(crate) fn new(triple: &str, processor: &str, features: &str) -> Result<Self, CompileError> {
        const AGGRESSIVE: i32 = 3;
        const POSITION_INDEPENDENT: i32 = 2;
        const DEFAULT_CODE_MODEL: i32 = 0;
        let (c_triple, processor, features) = (c_string(triple), c_string(processor), c_string(features));
        let (mut target, mut message) = (null_mut(), null_mut());
        // SAFETY: texts, and addresses of pointers.
        let failed =
            unsafe { (ll().LLVMGetTargetFromTriple)(c_triple.as_ptr(), &raw mut target, &raw mut message) } != 0;
        // SAFETY: null, or LLVM's message.
        let message = unsafe { take_message(message) };
        if failed {
            return Err(CompileError::Llvm(format!("no target {triple}: {message}")));
        }
        // SAFETY: a target that was just found.
        let raw = unsafe {
            (ll().LLVMCreateTargetMachine)(
                target,
                c_triple.as_ptr(),
                processor.as_ptr(),
                features.as_ptr(),
                AGGRESSIVE,
                POSITION_INDEPENDENT,
                DEFAULT_CODE_MODEL,
            )
        };
        let raw = NonNull::new(raw).ok_or_else(|| CompileError::Llvm(format!("no code generator for {triple}")))?;
        Ok(Self { raw, triple: triple.to_owned() })
    }

    pub(crate) fn triple(&self) -> &str {
        &self.triple
    }

    pub(crate) fn data_layout(&self) -> String {
        // SAFETY: a live machine; layout and text are freed.
        unsafe {
            let layout = (ll().LLVMCreateTargetDataLayout)(self.raw.as_ptr());
            let text = take_message((ll().LLVMCopyStringRepOfTargetData)(layout));
            (ll().LLVMDisposeTargetData)(layout);
            text
        }
    }

    /// Generates code. LLVM may end the process on code that the target cannot express.
    pub(crate) fn emit(&self, module: &Module<'_>, kind: Codegen) -> Result<Vec<u8>, CompileError> {
        let (mut message, mut buffer) = (null_mut(), null_mut());
        module.context().take_errors();
        // SAFETY: a live machine and module, and addresses of pointers.
        let failed = unsafe {
            (ll().LLVMTargetMachineEmitToMemoryBuffer)(
                self.raw.as_ptr(),
                module.raw(),
                kind as i32,
                &raw mut message,
                &raw mut buffer,
            )
        } != 0;
        // SAFETY: null, or LLVM's message.
        let message = unsafe { take_message(message) };
        if failed {
            return Err(CompileError::Llvm(format!("no code for {}: {message}", self.triple)));
        }
        // SAFETY: the buffer is ours.
        let code = unsafe { take_buffer(buffer) };
        // LLVM can report an error and still return code.
        let errors = module.context().take_errors();
        if errors.is_empty() {
            Ok(code)
        } else {
            Err(CompileError::Llvm(format!("no code for {}: {}", self.triple, errors.join("; "))))
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: owned.
        unsafe { (ll().LLVMDisposeTargetMachine)(self.raw.as_ptr()) }
    }
}
