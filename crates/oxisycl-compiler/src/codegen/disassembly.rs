//! The instructions of code objects for AMD GPUs, read back by the toolchain's own LLVM. For tests, those of `cargo-sycl` among them: the
//! compiler never reads what it has written.
//!
//! Invariant: what is given is all of each function; a byte that is no instruction of the processor is an error.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::Once;

use libloading::{Library, Symbol};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

type Initialize = unsafe extern "C" fn();
type Create = unsafe extern "C" fn(
    *const c_char,
    *const c_char,
    *const c_char,
    *mut c_void,
    c_int,
    *const c_void,
    *const c_void,
) -> *mut c_void;
type Read = unsafe extern "C" fn(*mut c_void, *mut u8, u64, u64, *mut c_char, usize) -> usize;
type Dispose = unsafe extern "C" fn(*mut c_void);

const TRIPLE: &CStr = c"amdgcn-amd-amdhsa";

/// Disassembles a code object: its functions by name, with the text of each instruction in order.
///
/// # Errors
/// The error names the function, and its first bytes that are no instruction of the processor.
pub(crate) fn disassemble(
    llvm: &Path,
    processor: &str,
    code_object: &[u8],
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let file = object::File::parse(code_object).map_err(|error| error.to_string())?;
    let reader = Reader::new(llvm, processor)?;
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0) {
        let name = symbol.name().map_err(|error| error.to_string())?.to_owned();
        let section = symbol.section_index().ok_or_else(|| format!("{name}: it is in no section"))?;
        let section = file.section_by_index(section).map_err(|error| error.to_string())?;
        let bytes = section.data_range(symbol.address(), symbol.size()).map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("{name}: it is not whole"))?;
        let instructions = reader.instructions(bytes, symbol.address()).map_err(|what| format!("{name}: {what}"))?;
        functions.insert(name, instructions);
    }
    Ok(functions)
}

/// LLVM's reader of one processor's instructions.
struct Reader {
    context: *mut c_void,
    read: Read,
    dispose: Dispose,
    // Dropped last; LLVM itself stays loaded, since the compiler has it open.
    _library: Library,
}

impl Reader {
    fn new(llvm: &Path, processor: &str) -> Result<Self, String> {
        static INITIALIZED: Once = Once::new();
        let text = |error: libloading::Error| error.to_string();
        let processor = CString::new(processor).map_err(|error| error.to_string())?;
        // SAFETY: the toolchain's own library, whose initialisers rustc runs as well; the types are those of `llvm-c/Disassembler.h` and
        // `llvm-c/Target.h` of LLVM 22.
        unsafe {
            let library = Library::new(llvm).map_err(text)?;
            let initialize = ["TargetInfo", "TargetMC", "Disassembler"]
                .map(|part| library.get(format!("LLVMInitializeAMDGPU{part}\0").as_bytes()));
            let initialize =
                initialize.into_iter().collect::<Result<Vec<Symbol<'_, Initialize>>, _>>().map_err(text)?;
            INITIALIZED.call_once(|| initialize.iter().for_each(|function| function()));
            let create: Symbol<'_, Create> = library.get(b"LLVMCreateDisasmCPUFeatures\0").map_err(text)?;
            let (read, dispose) = (
                *library.get::<Read>(b"LLVMDisasmInstruction\0").map_err(text)?,
                *library.get::<Dispose>(b"LLVMDisasmDispose\0").map_err(text)?,
            );
            // No callback is asked for the names of addresses.
            let context = create(
                TRIPLE.as_ptr(),
                processor.as_ptr(),
                c"".as_ptr(),
                null_mut(),
                0,
                null::<c_void>(),
                null::<c_void>(),
            );
            if context.is_null() {
                return Err(format!("LLVM reads no instructions of {processor:?}"));
            }
            Ok(Self { context, read, dispose, _library: library })
        }
    }

    fn instructions(&self, bytes: &[u8], address: u64) -> Result<Vec<String>, String> {
        let mut rest = bytes.to_vec();
        let mut instructions = Vec::new();
        let mut position = 0;
        while position < rest.len() {
            let mut text = [0; 256];
            let bytes = &mut rest[position..];
            // SAFETY: a live context; bytes and a text with their sizes. LLVM ends the text with a zero.
            let (size, text) = unsafe {
                let size = (self.read)(
                    self.context,
                    bytes.as_mut_ptr(),
                    bytes.len() as u64,
                    address + position as u64,
                    text.as_mut_ptr(),
                    text.len(),
                );
                (size, CStr::from_ptr(text.as_ptr()).to_string_lossy().trim().to_owned())
            };
            if size == 0 || text.is_empty() {
                let found = &bytes[..bytes.len().min(8)];
                return Err(format!("no instruction at byte {position}, where {found:02x?} is"));
            }
            instructions.push(text);
            position += size;
        }
        Ok(instructions)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and nothing else has it.
        unsafe { (self.dispose)(self.context) }
    }
}
