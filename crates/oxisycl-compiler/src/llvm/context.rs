//! The LLVM library, loaded once, and the contexts that own everything made with it.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::sys;
use crate::error::CompileError;

/// The version of LLVM whose C API the compiler was written for.
pub(crate) const VERSION: u32 = 22;

/// LLVM options that hold for the whole process. Loops of up to this cost are unrolled in part: twice LLVM's limit for NVIDIA's GPUs, and
/// about the limit of `nvcc`. A loop over an array spends a third less on counting and jumping.
const OPTIONS: [&CStr; 2] = [c"oxisycl", c"-unroll-partial-threshold=150"];

struct Loaded {
    path: PathBuf,
    functions: sys::Functions,
    // Never unloaded: LLVM keeps global state.
    _library: libloading::Library,
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

/// The function table.
pub(super) fn ll() -> &'static sys::Functions {
    &LOADED.get().expect("a context is only made after LLVM was loaded").functions
}

/// Loads LLVM from the toolchain. A process uses one library only.
pub(crate) fn load(path: &Path) -> Result<(), CompileError> {
    static LOADING: Mutex<()> = Mutex::new(());
    let _guard = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = LOADED.get() {
        return if loaded.path == path {
            Ok(())
        } else {
            Err(CompileError::Llvm(format!(
                "{} is loaded, {} cannot be loaded, too",
                loaded.path.display(),
                path.display()
            )))
        };
    }
    let unusable = |reason: String| CompileError::Llvm(format!("{}: {reason}", path.display()));
    // SAFETY: the caller found the library in the toolchain's own folder; loading it runs LLVM's initialisers, as rustc does.
    let library = unsafe { libloading::Library::new(path) }.map_err(|error| unusable(error.to_string()))?;
    // SAFETY: the version is checked below, before any other function is called, and the library is kept.
    let functions =
        unsafe { sys::Functions::load(&library) }.map_err(|name| unusable(format!("it has no function {name}")))?;
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: three addresses of numbers.
    unsafe { (functions.LLVMGetVersion)(&raw mut major, &raw mut minor, &raw mut patch) };
    if major != VERSION {
        return Err(unusable(format!("it is LLVM {major}.{minor}.{patch}, supported is LLVM {VERSION}")));
    }
    // SAFETY: registering targets; done once, under the lock.
    unsafe {
        (functions.LLVMInitializeX86TargetInfo)();
        (functions.LLVMInitializeX86Target)();
        (functions.LLVMInitializeX86TargetMC)();
        (functions.LLVMInitializeX86AsmPrinter)();
        (functions.LLVMInitializeX86AsmParser)();
        (functions.LLVMInitializeX86Disassembler)();
        (functions.LLVMInitializeNVPTXTargetInfo)();
        (functions.LLVMInitializeNVPTXTarget)();
        (functions.LLVMInitializeNVPTXTargetMC)();
        (functions.LLVMInitializeNVPTXAsmPrinter)();
        (functions.LLVMInitializeAMDGPUTargetInfo)();
        (functions.LLVMInitializeAMDGPUTarget)();
        (functions.LLVMInitializeAMDGPUTargetMC)();
        (functions.LLVMInitializeAMDGPUAsmPrinter)();
        (functions.LLVMInitializeAArch64TargetInfo)();
        (functions.LLVMInitializeAArch64Target)();
        (functions.LLVMInitializeAArch64TargetMC)();
        (functions.LLVMInitializeAArch64AsmPrinter)();
    }
    let options = OPTIONS.map(CStr::as_ptr);
    // SAFETY: C strings with their count; done once, under the lock. The first one stands for the program's name.
    unsafe { (functions.LLVMParseCommandLineOptions)(options.len() as i32, options.as_ptr(), c"".as_ptr()) };
    let loaded = Loaded { path: path.to_owned(), functions, _library: library };
    LOADED.set(loaded).ok().expect("set once, under the lock");
    Ok(())
}

/// An LLVM context, which owns everything that is made in it.
pub(crate) struct Context {
    raw: NonNull<sys::Context>,
    /// The errors that LLVM has reported through the diagnostic handler since the last call of [`take_errors`](Self::take_errors).
    errors: Box<RefCell<Vec<String>>>,
    /// Bitcode that modules may still read from. `drop` disposes of the context before the fields are dropped.
    bitcode: RefCell<Vec<Rc<Vec<u8>>>>,
}

impl Context {
    pub(crate) fn new() -> Self {
        let errors = Box::new(RefCell::new(Vec::new()));
        // SAFETY: LLVM is loaded.
        let raw = unsafe { (ll().LLVMContextCreate)() };
        let raw = NonNull::new(raw).expect("LLVM makes contexts");
        let handler_data = (&raw const *errors).cast_mut().cast::<c_void>();
        // SAFETY: the handler's data lives as long as the context.
        unsafe { (ll().LLVMContextSetDiagnosticHandler)(raw.as_ptr(), Some(on_diagnostic), handler_data) };
        Self { raw, errors, bitcode: RefCell::default() }
    }

    pub(crate) fn raw(&self) -> *mut sys::Context {
        self.raw.as_ptr()
    }

    /// Keeps bytes for as long as the context lives.
    pub(super) fn keep(&self, bitcode: Rc<Vec<u8>>) {
        self.bitcode.borrow_mut().push(bitcode);
    }

    /// The errors that LLVM has reported since the last call.
    pub(crate) fn take_errors(&self) -> Vec<String> {
        std::mem::take(&mut *self.errors.borrow_mut())
    }

    /// The number of a synchronization scope.
    pub(crate) fn sync_scope(&self, name: &str) -> u32 {
        // SAFETY: a name with its length.
        unsafe { (ll().LLVMGetSyncScopeID)(self.raw(), name.as_ptr().cast(), name.len()) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made in `new`; modules and handles borrow the context, so none is left.
        unsafe { (ll().LLVMContextDispose)(self.raw.as_ptr()) }
    }
}

extern "C" fn on_diagnostic(diagnostic: *mut c_void, data: *mut c_void) {
    const ERROR: i32 = 0;
    // SAFETY: LLVM calls the handler with a live diagnostic, and with the data that `Context::new` gave it.
    let (severity, text, errors) = unsafe {
        let severity = (ll().LLVMGetDiagInfoSeverity)(diagnostic);
        let text = take_message((ll().LLVMGetDiagInfoDescription)(diagnostic));
        (severity, text, &*data.cast::<RefCell<Vec<String>>>())
    };
    if severity == ERROR {
        errors.borrow_mut().push(text);
    }
}

/// Copies and frees a message of LLVM.
///
/// # Safety
/// Null, or a string that LLVM expects to be disposed of.
pub(super) unsafe fn take_message(message: *mut std::ffi::c_char) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: a C string by contract.
    let text = unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned();
    // SAFETY: it is ours to free by contract.
    unsafe { (ll().LLVMDisposeMessage)(message) };
    text
}

/// A C string for LLVM. Names of Rust symbols have no zero bytes; a text with one would be cut there.
pub(super) fn c_string(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).expect("cut at the first zero byte")
}
