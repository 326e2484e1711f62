//! Assembly of native code, which is in the program beside all other code of the host. Images have but the number of its function.
//!
//! Finds functions by the program's symbols. Does not look for the sources of instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionIndex, SymbolKind};
use oxisycl_compiler::{NATIVE_FILE, NativeFunction, Toolchain, disassemble, native_symbol};
use oxisycl_image::{DeviceImage, HostLevel, ImageTarget};

use crate::failure::{Failure, Result};
use crate::toolchain;
use crate::verb::cargo::Cargo;

/// A file with kernels.
#[derive(Clone, Copy)]
pub(super) struct Program<'p> {
    pub(super) path: &'p Path,
    pub(super) bytes: &'p [u8],
}

/// The level that a target's native code is for.
pub(super) fn level(target: &ImageTarget) -> Option<HostLevel> {
    match target {
        ImageTarget::Host { level, .. } => *level,
        _ => None,
    }
}

/// The text for each image.
pub(super) fn of(images: &[&DeviceImage], program: Program<'_>) -> Result<Vec<String>> {
    let broken = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", program.path.display()));
    let file = object::File::parse(program.bytes).map_err(|error| broken(&error))?;
    let symbols = Symbols::of(&file);
    if symbols.by_name.is_empty() {
        return Err(broken(
            &"it is stripped: assembly is found by symbols, which `strip = \"none\"` in the profile of the build keeps",
        ));
    }
    let toolchain = toolchain::ask(&Cargo::here(Vec::new())?.rustc())?;
    let text = |image: &&DeviceImage| {
        let names = image.kernels.iter().zip(level(&image.target));
        let names = names.map(|(kernel, level)| (native_symbol(&kernel.symbol, level), level));
        names.map(|(name, level)| symbols.assembly(&toolchain, level, &name).map_err(|error| broken(&error))).collect()
    };
    images.iter().map(text).collect()
}

/// A function of a program.
#[derive(Clone, Copy)]
struct Function<'p> {
    symbol: &'p str,
    address: u64,
    size: u64,
    section: Option<SectionIndex>,
    /// Whether it is a part of native code that has no other name outside of its kernel.
    is_part: bool,
}

/// The functions of a program.
struct Symbols<'p> {
    file: &'p object::File<'p>,
    by_address: BTreeMap<u64, Function<'p>>,
    by_name: BTreeMap<&'p str, Function<'p>>,
    /// The functions that pointers are for which the loader sets, by the pointers' addresses.
    pointers: BTreeMap<u64, &'p str>,
}

impl<'p> Symbols<'p> {
    fn of(file: &'p object::File<'p>) -> Self {
        let (mut by_address, mut by_name, mut of_file) = (BTreeMap::new(), BTreeMap::new(), "");
        for symbol in file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if symbol.kind() == SymbolKind::File {
                of_file = name;
            }
            if symbol.kind() != SymbolKind::Text || !symbol.is_definition() {
                continue;
            }
            let (address, size, section) = (symbol.address(), symbol.size(), symbol.section_index());
            // Local symbols follow the name of their file. Those of the device compiler are local to the code of one kernel.
            let is_part = symbol.is_local() && of_file == NATIVE_FILE;
            let function = Function { symbol: name, address, size, section, is_part };
            by_name.entry(name).or_insert(function);
            by_address.entry(address).or_insert(function);
        }
        let mut symbols = Self { file, by_address, by_name, pointers: BTreeMap::new() };
        symbols.pointers = symbols.pointers();
        symbols
    }

    fn pointers(&self) -> BTreeMap<u64, &'p str> {
        let table = self.file.dynamic_symbol_table();
        let relocations = self.file.dynamic_relocations().into_iter().flatten();
        let pointers = relocations.filter_map(|(address, relocation)| {
            let name = match relocation.target() {
                RelocationTarget::Symbol(index) => table.as_ref()?.symbol_by_index(index).ok()?.name().ok()?,
                _ => self.by_address.get(&u64::try_from(relocation.addend()).ok()?)?.symbol,
            };
            Some((address, name))
        });
        pointers.collect()
    }

    /// The symbol of a function at an address, or of the function that a pointer or a stub there leads to.
    fn name(&self, address: u64) -> Option<&'p str> {
        let function = self.by_address.get(&address).map(|function| function.symbol);
        function.or_else(|| self.pointers.get(&address).copied()).or_else(|| self.stub(address))
    }

    /// The symbol of the function that a stub of the linker jumps to.
    fn stub(&self, address: u64) -> Option<&'p str> {
        const MARK: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
        const JUMP: [u8; 2] = [0xff, 0x25];
        let is_of_stubs = |section: &object::Section<'p, 'p>| section.name().is_ok_and(|name| name.starts_with(".plt"));
        let code =
            self.file.sections().filter(is_of_stubs).find_map(|section| section.data_range(address, 16).ok()?)?;
        let jump = code.strip_prefix(&MARK).unwrap_or(code);
        let distance = jump.strip_prefix(&JUMP)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes))?;
        let end = address + (code.len() - jump.len() + JUMP.len() + size_of::<i32>()) as u64;
        self.pointers.get(&end.wrapping_add_signed(distance.into())).copied()
    }

    /// The assembly of a kernel: its function, and the functions that are a part of its code.
    fn assembly(&self, toolchain: &Toolchain, level: HostLevel, name: &str) -> Result<String> {
        let kernel = self.by_name.get(name).ok_or_else(|| Failure::new(format!("it has no symbol {name}")))?;
        let (mut text, mut seen, mut queue) = (String::new(), BTreeSet::from([kernel.address]), vec![*kernel]);
        while let Some(function) = queue.pop() {
            let native =
                NativeFunction { symbol: function.symbol, address: function.address, code: self.code(function)? };
            let names = |address: u64| self.name(address).map(str::to_owned);
            let assembly = disassemble(toolchain, level, native, &names)?;
            text += &assembly.text;
            // The first one that is called comes next.
            for address in assembly.calls.into_iter().rev() {
                let part = self.by_address.get(&address).filter(|function| function.is_part);
                queue.extend(part.filter(|_| seen.insert(address)));
            }
        }
        Ok(text)
    }

    fn code(&self, Function { symbol, address, size, section, .. }: Function<'p>) -> Result<&'p [u8]> {
        let section = section.and_then(|index| self.file.section_by_index(index).ok());
        let code = section.and_then(|section| section.data_range(address, size).ok()?);
        code.ok_or_else(|| Failure::new(format!("the code of {symbol} is not in it")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::image;
    use super::*;

    #[test]
    fn programs_without_the_symbol_of_a_kernel_are_told() {
        let path = std::env::current_exe().unwrap();
        let program = Program { path: &path, bytes: &std::fs::read(&path).unwrap() };
        let target = ImageTarget::Host { triple: "t".to_owned(), level: Some(HostLevel::V4) };
        let error = of(&[&DeviceImage { target, ..image(b"") }], program).unwrap_err().to_string();
        assert_eq!(error, format!("{}: it has no symbol __oxisycl_native_v4_k_1", path.display()));
    }

    #[test]
    fn functions_are_found_by_their_addresses_and_pointers() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let symbols = Symbols::of(&file);
        let main = symbols.by_name["main"];
        assert_eq!((symbols.name(main.address), main.is_part), (Some("main"), false));
        assert!(!symbols.code(main).unwrap().is_empty());
        let memcpy = symbols.pointers.iter().find(|(_, name)| **name == "memcpy").map(|(address, _)| *address);
        assert_eq!(symbols.name(memcpy.expect("a pointer to a function of C")), Some("memcpy"));
    }
}
