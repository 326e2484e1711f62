//! LLVM's reader of instructions.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::{NonNull, null};

use super::context::{c_string, ll};
use super::sys;
use crate::error::CompileError;

/// Intel's syntax, and comments that say what shuffles do.
const OPTIONS: u64 = 4 | 8;

/// How an instruction refers to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Referred {
    /// A jump to the address, or a call of what is there.
    Branch(u64),
    /// An access to memory at the address, or the address alone.
    Memory(u64),
}

/// The instruction at the beginning of some bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Read {
    /// Bytes of the instruction.
    pub(crate) size: usize,
    /// The assembly, with LLVM's comment.
    pub(crate) text: String,
    /// The addresses that it refers to.
    pub(crate) referred: Vec<Referred>,
}

/// A reader of the instructions of a processor.
pub(crate) struct Disassembler<'n> {
    raw: NonNull<sys::Disassembler>,
    names: Box<Names<'n>>,
}

/// What LLVM's questions for names are answered from.
struct Names<'n> {
    /// The name of what is jumped to or called.
    of_target: &'n dyn Fn(u64) -> Option<String>,
    /// What was asked for since the last instruction.
    referred: RefCell<Vec<Referred>>,
    /// The last answer, which LLVM copies.
    answer: RefCell<CString>,
}

impl<'n> Disassembler<'n> {
    /// A reader for a target and a processor. `of_target` names the addresses that instructions jump to and call.
    pub(crate) fn new(
        triple: &str,
        processor: &str,
        of_target: &'n dyn Fn(u64) -> Option<String>,
    ) -> Result<Self, CompileError> {
        let names = Box::new(Names { of_target, referred: RefCell::default(), answer: RefCell::default() });
        let data = (&raw const *names).cast_mut().cast::<c_void>();
        let (c_triple, processor) = (c_string(triple), c_string(processor));
        // SAFETY: LLVM is loaded. The texts are C strings, and the data of the callback lives as long as the disassembler, in one struct.
        let raw = unsafe {
            (ll().LLVMCreateDisasmCPUFeatures)(
                c_triple.as_ptr(),
                processor.as_ptr(),
                c"".as_ptr(),
                data,
                0,
                null(),
                Some(look_up),
            )
        };
        let raw = NonNull::new(raw).ok_or_else(|| CompileError::Llvm(format!("no disassembler for {triple}")))?;
        let reader = Self { raw, names };
        // SAFETY: a live disassembler.
        if unsafe { (ll().LLVMSetDisasmOptions)(reader.raw.as_ptr(), OPTIONS) } == 0 {
            return Err(CompileError::Llvm(format!("the disassembler for {triple} lacks options")));
        }
        Ok(reader)
    }

    /// Reads the instruction at the beginning of bytes, which are at this address; `None` if there is none.
    pub(crate) fn read(&self, bytes: &[u8], address: u64) -> Option<Read> {
        // The longest comments are those of shuffles of bytes.
        let mut text = [0; 4096];
        self.names.referred.take();
        // SAFETY: a live disassembler, which reads the bytes only and ends the text with a zero; both have their lengths.
        let size = unsafe {
            (ll().LLVMDisasmInstruction)(
                self.raw.as_ptr(),
                bytes.as_ptr().cast_mut(),
                bytes.len() as u64,
                address,
                text.as_mut_ptr().cast::<c_char>(),
                text.len(),
            )
        };
        let text = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().trim().to_owned();
        let referred = self.names.referred.take();
        (size > 0).then_some(Read { size, text, referred })
    }
}

impl Drop for Disassembler<'_> {
    fn drop(&mut self) {
        // SAFETY: made in `new`, and nothing else has it.
        unsafe { (ll().LLVMDisasmDispose)(self.raw.as_ptr()) }
    }
}

extern "C" fn look_up(
    data: *mut c_void,
    value: u64,
    kind: *mut u64,
    _at: u64,
    _comment: *mut *const c_char,
) -> *const c_char {
    // The numbers of `llvm-c/DisassemblerTypes.h`.
    const NONE: u64 = 0;
    const BRANCH: u64 = 1;
    const MEMORY: u64 = 2;
    // SAFETY: LLVM calls this with the data that `new` gave it, while `read` runs on a live disassembler, and with the address of a number.
    let (names, kind) = unsafe { (&*data.cast::<Names<'_>>(), &mut *kind) };
    // As an answer, other numbers ask for comments of LLVM's.
    let asked = std::mem::replace(kind, NONE);
    match asked {
        BRANCH => names.referred.borrow_mut().push(Referred::Branch(value)),
        MEMORY => names.referred.borrow_mut().push(Referred::Memory(value)),
        // A number, which need not be an address.
        _ => return null(),
    }
    let name = (asked == BRANCH).then(|| (names.of_target)(value)).flatten();
    name.map_or(null(), |name| {
        let mut answer = names.answer.borrow_mut();
        *answer = c_string(&name);
        answer.as_ptr()
    })
}
