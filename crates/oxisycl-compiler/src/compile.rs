//! One link unit, one target: from bitcode to an image.

use std::path::PathBuf;

use oxisycl_image::{DeviceImage, ImageTarget};

use crate::library::Provider;
use crate::llvm::{self, Context};
use crate::program::Program;
use crate::stage::resolve::Scope;
use crate::{CompileError, Toolchain, target};

/// How strictly floating-point code is compiled, the strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FloatPolicy {
    /// Every operation is rounded on its own.
    Strict,
    /// A product and a sum may become one operation that rounds once.
    #[default]
    Contract,
    /// Also what assumes that there are no infinities and NaNs, and that the order of operations does not matter.
    Fast,
}

/// How a program is compiled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Floating-point policy.
    pub float: FloatPolicy,
    /// A folder for LLVM assembly after each stage.
    pub dump: Option<PathBuf>,
}

/// What to compile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Un-optimised bitcode of the program's crates, the final crate first.
    pub modules: Vec<PathBuf>,
    /// What for.
    pub target: ImageTarget,
    /// How.
    pub options: Options,
}

/// What came out.
#[derive(Debug)]
pub struct Compiled {
    /// The image; `None` if the program launches no kernels.
    pub image: Option<DeviceImage>,
    /// What the user should know, one text each.
    pub warnings: Vec<String>,
}

/// Compiles the kernels of a link unit for one target. LLVM may end the process on code that it cannot handle.
///
/// # Errors
/// Problems of the toolchain and the input; never a construct that the target cannot run.
pub fn compile(toolchain: &Toolchain, request: &Request) -> Result<Compiled, CompileError> {
    compile_with(toolchain, request, &mut |_| Ok(None))
}

/// The same for a program some of whose crates have no bitcode yet: asks `provider` for a symbol that no module defines, before it looks
/// for it in the standard library.
///
/// # Errors
/// As [`compile`], and what `provider` fails with.
pub fn compile_with<'p>(
    toolchain: &Toolchain,
    request: &Request,
    provider: &'p mut Provider<'p>,
) -> Result<Compiled, CompileError> {
    llvm::load(&toolchain.llvm_library)?;
    let context = Context::new();
    let target = target::of(&request.target)?;
    let mut program = Program::gather(&context, toolchain, request, &*target, provider)?;
    if program.has_no_kernels() {
        return Ok(Compiled { image: None, warnings: Vec::new() });
    }
    program.link(Scope::WithoutFormatting)?;
    program.add_kernels()?;
    loop {
        program.optimise()?;
        program.lower_panics()?;
        // What is still missing is in code that runs.
        if !program.link(Scope::Everything)? {
            break;
        }
    }
    let mut warnings = Vec::new();
    let kernels = program.sort_out(&mut warnings)?;
    program.legalize(&kernels)?;
    let code = program.emit(toolchain)?;
    let image = program.into_image(kernels, code);
    Ok(Compiled { image: Some(image), warnings })
}
