//! Reads the crates of a program: their definitions, and the kernels that they launch.
//!
//! A program of many kernels is a large module, of which each kernel needs little. So it is read as a whole once, here, and the code that
//! its kernels reach is written again without the rest. Each kernel's compilation then reads what it needs of that. Memory of this step is
//! given back when it ends.

use std::path::PathBuf;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::analyses::kernels;
use crate::compile::Request;
use crate::error::CompileError;
use crate::kernel::{Captures, Described, Elsewhere, Found, Kernel, Launch};
use crate::link::library::{Library, read};
use crate::link::standard_library::StandardLibrary;
use crate::llvm::{Context, Module};
use crate::options::Options;
use crate::symbols::path;
use crate::toolchain::Toolchain;

/// With more kernels than this, debug types are dropped from all crates first, since each kernel's compilation would read them. The number
/// is not tuned.
const FEW_KERNELS: usize = 32;

/// What the kernels that a crate describes capture. `paths` is all of its bitcode.
pub(crate) fn list(paths: &[PathBuf]) -> Result<Vec<Captures>, CompileError> {
    let bitcode = paths.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    if !bitcode.iter().any(|bitcode| kernels::may_describe_kernels(bitcode)) {
        return Ok(Vec::new());
    }
    // The caller's process ends soon, and taking all nodes apart would take longer than reading them did.
    let context: &'static Context = Box::leak(Box::new(Context::new()));
    let module = |(bitcode, path): (&Vec<u8>, &PathBuf)| {
        Module::from_bitcode(context, bitcode, &path.display().to_string()).map(std::mem::ManuallyDrop::new)
    };
    let modules = bitcode.iter().zip(paths).map(module).collect::<Result<Vec<_>, _>>()?;
    kernels::list(&modules)
}

/// The kernels of a program, sorted by symbol. The library has the program's crates then and, if there are kernels, the standard library.
pub(crate) fn gather(
    toolchain: &Toolchain,
    request: &Request,
    library: &mut Library<'_>,
) -> Result<Vec<Described>, CompileError> {
    let (mut found, mut elsewhere): (Vec<Described>, Vec<Elsewhere>) = (Vec::new(), Vec::new());
    // In how many modules a function is.
    let mut n_modules: FxHashMap<String, u32> = FxHashMap::default();
    for (module_idx, path) in request.modules.iter().enumerate() {
        let bitcode = Rc::new(read(path)?);
        let name = path.display().to_string();
        let (context, whole) = (Context::new(), Context::new());
        let declared = Module::lazy(&context, &bitcode, &name)?;
        library.add_crate(path, &bitcode, &declared);
        let mut launches = false;
        for function in declared.functions() {
            launches |= kernels::is_description(function.name());
            *n_modules.entry(function.name().to_owned()).or_default() += 1;
        }
        if launches {
            let module = Module::from_bitcode(&whole, &bitcode, &name)?;
            let Found { described, elsewhere: of_others } = kernels::find(module, declared)?;
            elsewhere.extend(of_others);
            found.extend(
                described.into_iter().map(|described| Described { is_of_final_crate: module_idx == 0, ..described }),
            );
        }
    }
    for Described { kernel, .. } in &mut found {
        kernel.launch.take_if(|launch| launch.functions.iter().any(|function| n_modules.get(function) != Some(&1)));
    }
    note_other_launches(&mut found, &elsewhere)?;
    found.sort_by(|a, b| a.kernel.symbol.cmp(&b.kernel.symbol));
    found.dedup_by(|later, first| {
        let is_same = later.kernel.symbol == first.kernel.symbol;
        let place = |kernel: &Kernel| kernel.launch.as_ref().map(|launch| launch.location.clone());
        // Described by several crates.
        if is_same && place(&later.kernel) != place(&first.kernel) {
            first.kernel.launch = None;
        }
        is_same
    });
    if found.len() > FEW_KERNELS {
        library.drop_types()?;
    }
    if !found.is_empty() {
        let standard = StandardLibrary::open(toolchain.standard_library()?)?;
        let Options { exporting, loses_names, .. } = &request.options;
        library.set_standard_library(standard, (!loses_names).then_some(exporting.as_slice()))?;
    }
    Ok(found)
}

/// Notes which kernels are launched by other crates than those that describe them. Each of these has to be known.
fn note_other_launches(found: &mut [Described], elsewhere: &[Elsewhere]) -> Result<(), CompileError> {
    if elsewhere.is_empty() {
        return Ok(());
    }
    let symbols = |(index, described): (usize, &Described)| {
        described.symbols.iter().map(move |symbol| (symbol.clone(), index)).collect::<Vec<_>>()
    };
    let by_symbol: FxHashMap<String, usize> = found.iter().enumerate().flat_map(symbols).collect();
    for Elsewhere { symbol, launch } in elsewhere {
        let Some(index) = by_symbol.get(symbol) else {
            return Err(CompileError::Kernel(format!(
                "{}: no crate of the program has the code of this description of a kernel",
                path(symbol)
            )));
        };
        let known = &mut found[*index].kernel.launch;
        let place = |launch: &Option<Launch>| launch.as_ref().map(|launch| launch.location.clone());
        if place(known) != place(launch) {
            *known = None;
        }
    }
    Ok(())
}
