//! Assembly of native code that is linked into a program, for people. The compiler never reads what it has written.

use std::collections::BTreeSet;
use std::fmt::Write;

use oxisycl_image::HostLevel;

use crate::codegen::NATIVE_TRIPLE;
use crate::error::CompileError;
use crate::llvm::{self, Disassembler, Referred};
use crate::toolchain::Toolchain;

/// A function of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeFunction<'a> {
    /// The symbol.
    pub symbol: &'a str,
    /// Where it is in the program's memory.
    pub address: u64,
    /// The bytes of its instructions.
    pub code: &'a [u8],
}

/// The assembly of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembly {
    /// The text, in Intel's syntax. Each instruction stands behind its position in the function, and targets of jumps have labels.
    pub text: String,
    /// The addresses outside of the function that it calls, or jumps to.
    pub calls: BTreeSet<u64>,
}

/// The file that a program's symbol table names for its native code.
pub const NATIVE_FILE: &str = crate::program::NAME;

/// Disassembles a function for a level. `name` tells the symbol at an address, or the one that a pointer there is for, as far as there is one.
///
/// # Errors
/// If the toolchain's LLVM cannot be loaded, or has no disassembler.
pub fn disassemble(
    toolchain: &Toolchain,
    level: HostLevel,
    function: NativeFunction<'_>,
    name: &dyn Fn(u64) -> Option<String>,
) -> Result<Assembly, CompileError> {
    llvm::load(toolchain.llvm_library())?;
    let NativeFunction { symbol, address, code } = function;
    let position = |target: u64| target.checked_sub(address).filter(|position| *position < code.len() as u64);
    let label = |target: u64| match position(target) {
        Some(0) => Some(symbol.to_owned()),
        Some(position) => Some(format!(".L{position:x}")),
        None => name(target),
    };
    let reader = Disassembler::new(NATIVE_TRIPLE, level.name(), &label)?;
    let (mut lines, mut labels, mut calls) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut at = 0;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let here = at as u64;
        let Some(read) = reader.read(rest, address + here) else {
            lines.push((here, format!(".byte {:#04x}", rest[0])));
            at += 1;
            continue;
        };
        let mut text = laid_out(&read.text);
        for referred in read.referred {
            let comment = match referred {
                Referred::Branch(target) => match position(target) {
                    Some(0) => shown(symbol),
                    Some(position) => {
                        labels.insert(position);
                        None
                    }
                    None => {
                        calls.insert(target);
                        name(target).and_then(|name| shown(&name))
                    }
                },
                Referred::Memory(target) => {
                    Some(name(target).map_or_else(|| format!("{target:#x}"), |name| shown(&name).unwrap_or(name)))
                }
            };
            if let Some(comment) = comment {
                let _ = write!(text, "  # {comment}");
            }
        }
        lines.push((here, text));
        at += read.size;
    }
    let mut text = format!("{symbol}:\n");
    for (position, line) in lines {
        if labels.contains(&position) {
            let _ = writeln!(text, ".L{position:x}:");
        }
        let _ = writeln!(text, "{position:>8x}:  {line}");
    }
    Ok(Assembly { text, calls })
}

/// An instruction of LLVM's, which has tabs in it and columns of comments.
fn laid_out(text: &str) -> String {
    let parts = text.split('#').map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join("  # ")
}

/// The path of a Rust symbol, if it is one.
fn shown(symbol: &str) -> Option<String> {
    let path = rustc_demangle::try_demangle(symbol).ok()?;
    Some(format!("{path:#}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_positions_labels_and_names() {
        let code: &[u8] = &[
            0xc5, 0xfc, 0x10, 0x07, // 0: vmovups
            0xc5, 0xfc, 0x58, 0x05, 0x00, 0x01, 0x00, 0x00, // 4: vaddps of a constant
            0x75, 0xf6, // c: jne to 4
            0xe8, 0xed, 0x0f, 0x00, 0x00, // e: call of 0x2000
            0xff, 0x15, 0x00, 0x10, 0x00, 0x00, // 13: call by a pointer
            0xe8, 0x00, 0x00, 0x10, 0x00, // 19: call of what has no name
            0x06, // 1e: none
            0xc4, 0xe3, 0xfd, 0x00, 0xc0, 0x1b, // 1f: vpermq
            0x67, 0xe8, 0xd5, 0x0f, 0x00, 0x00, // 25: call of 0x2000, as linkers write it for one by a pointer
            0xc3,
        ];
        let name = |address: u64| match address {
            0x2000 => Some("_RNvCs1_1a4fail".to_owned()),
            0x2019 => Some("memset".to_owned()),
            _ => None,
        };
        let function = NativeFunction { symbol: "f", address: 0x1000, code };
        let read = || disassemble(&Toolchain::of_the_tests(), HostLevel::V3, function, &name).expect("assembly");
        let expected = "f:\n       \
            0:  vmovups ymm0, ymmword ptr [rdi]\n\
            .L4:\n       \
            4:  vaddps ymm0, ymm0, ymmword ptr [rip + 256]  # 0x110c\n       \
            c:  jne .L4\n       \
            e:  call _RNvCs1_1a4fail  # a::fail\n      \
            13:  call qword ptr [rip + 4096]  # memset\n      \
            19:  call 0x10101e\n      \
            1e:  .byte 0x06\n      \
            1f:  vpermq ymm0, ymm0, 27  # ymm0 = ymm0[3,2,1,0]\n      \
            25:  addr32 call _RNvCs1_1a4fail  # a::fail\n      \
            2b:  ret\n";
        assert_eq!(read().text, expected);
        assert_eq!(read().calls, [0x2000, 0x10_101e].into());
    }
}
