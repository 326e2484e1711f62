//! One link unit, one target: from bitcode to images, one for each kernel.

use std::fmt;
use std::mem;
use std::path::PathBuf;

use oxisycl_image::{DeviceImage, ImageTarget, UnsupportedKernel};

use crate::compiled::{Compiled, Generated, LoweredModule};
use crate::gather::gather;
use crate::isolation::{InThisProcess, Isolation};
use crate::library::{Library, Provider};
use crate::llvm::{self, Context};
use crate::program::{Decision, Program};
use crate::stage::kernels::Kernel;
use crate::stage::resolve::Scope;
use crate::target::{self, Target};
use crate::{CompileError, Toolchain};

/// How strictly floating-point code is compiled, the strictest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum FloatPolicy {
    /// Every operation is rounded on its own.
    Strict,
    /// A product and a sum may become one operation that rounds once.
    #[default]
    Contract,
    /// Also what assumes that there are no infinities and NaNs, and that the order of operations does not matter; and the target's
    /// imprecise functions.
    Fast,
}

impl fmt::Display for FloatPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Strict => "strict",
            Self::Contract => "contract",
            Self::Fast => "fast",
        })
    }
}

/// How a program is compiled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Floating-point policy.
    pub float: FloatPolicy,
    /// A folder for LLVM assembly after each stage, in `TARGET/SYMBOL` for each kernel, and for how long code generation took.
    pub dump: Option<PathBuf>,
    /// For tests of what happens then: a kernel in whose name this is ends the process as LLVM does where it cannot go on.
    pub fault: Option<String>,
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

/// Compiles the kernels of a link unit for one target, in this process. LLVM may end it on code that it cannot handle.
///
/// # Errors
/// Problems of the toolchain and the input; never a construct that the target cannot run.
pub fn compile(toolchain: &Toolchain, request: &Request) -> Result<Compiled, CompileError> {
    compile_with(toolchain, request, &mut |_| Ok(None), &mut InThisProcess)
}

/// The same for a program some of whose crates have no bitcode yet: asks `provider` for a symbol that no module defines, before it looks
/// for it in the standard library. The kernels are compiled by `isolation`, one job for each; it is not used by more than one thread.
///
/// # Errors
/// As [`compile`], and what `provider` fails with.
pub fn compile_with<'p>(
    toolchain: &Toolchain,
    request: &Request,
    provider: &'p mut Provider<'p>,
    isolation: &mut dyn Isolation,
) -> Result<Compiled, CompileError> {
    llvm::load(&toolchain.llvm_library)?;
    let target = target::of(&request.target)?;
    let mut library = Library::new(provider);
    let known = gather(toolchain, request, &mut library)?;
    let mut rejected = Vec::new();
    let mut wanted = Vec::new();
    for described in &known {
        match refusal(&described.kernel, &*target) {
            Some(reason) => rejected.push(described.kernel.unsupported(reason)),
            None => wanted.push(described),
        }
    }
    let is_separate = isolation.is_separate();
    let fault = request.options.fault.as_ref();
    let results = isolation.run(wanted.len(), &mut |job| {
        let described = wanted[job];
        if fault.is_some_and(|fault| described.kernel.type_name.contains(fault)) {
            eprintln!("LLVM ERROR: a test asked for this");
            std::process::abort();
        }
        let context = Context::new();
        let mut program = Program::of_kernel(&context, described, request, &*target)?;
        program.link(&mut library, Scope::WithoutFormatting)?;
        let generated = match program.early_refusal() {
            Some(refused) => Generated::without_code(program.image(refused, Vec::new(), toolchain)),
            None => {
                program.add_kernel()?;
                generate(&mut program, &mut library, toolchain)?
            }
        };
        if is_separate {
            // The process ends with the job.
            mem::forget(program);
            mem::forget(context);
        }
        generated.encode()
    })?;
    let mut compiled = Compiled::default();
    for (described, result) in wanted.iter().zip(results) {
        let kernel = &described.kernel;
        match result.map(|bytes| Generated::decode(&bytes)) {
            Ok(Ok(Generated { images, bitcode })) => {
                for mut image in images {
                    rejected.append(&mut image.unsupported);
                    if !image.kernels.is_empty() {
                        compiled.images.push(image);
                    }
                }
                if !bitcode.is_empty() {
                    compiled.modules.push(LoweredModule { symbol: kernel.symbol.clone(), bitcode });
                }
            }
            Ok(Err(error)) => return Err(CompileError::Kernel(format!("{}: {error}", kernel.type_name))),
            Err(death) => rejected.push(kernel.unsupported(kernel.with_place(&death))),
        }
    }
    if !rejected.is_empty() {
        rejected.sort_by(|a, b| (&a.type_name, a.type_id).cmp(&(&b.type_name, b.type_id)));
        compiled.images.push(without_code(request, toolchain, rejected));
    }
    Ok(compiled)
}

/// Why the target cannot run a kernel, as far as that is known without its code.
fn refusal(kernel: &Kernel, target: &dyn Target) -> Option<String> {
    let (size, limit) = (kernel.parameters.size, target.max_arguments(kernel.parameters.align));
    let too_large = || kernel.with_place(&format!("its captures are {size} bytes, the limit is {limit}"));
    kernel.refused_capture().or_else(|| (size > limit).then(too_large))
}

/// From un-optimised code to the images of the kernel.
pub(crate) fn generate(
    program: &mut Program<'_, '_>,
    library: &mut Library<'_>,
    toolchain: &Toolchain,
) -> Result<Generated, CompileError> {
    let decision = lower(program, library)?;
    if decision.is_refusal() {
        return Ok(Generated::without_code(program.image(decision, Vec::new(), toolchain)));
    }
    // Code generation changes the module.
    let bitcode = program.module().to_bitcode();
    let code = program.emit(toolchain)?;
    let better = program.emit_for_aspect(toolchain)?;
    let image = program.image(decision, code, toolchain);
    let better = better.map(|(aspect, code)| {
        let mut better = DeviceImage { code, ..image.clone() };
        better.kernels.iter_mut().for_each(|kernel| kernel.requirements.push(aspect.name().to_owned()));
        better
    });
    Ok(Generated { images: better.into_iter().chain([image]).collect(), bitcode })
}

/// From un-optimised code to code that the code generator takes.
pub(crate) fn lower<'c>(
    program: &mut Program<'c, '_>,
    library: &mut Library<'_>,
) -> Result<Decision<'c>, CompileError> {
    let paired = program.paired();
    optimise(program, library)?;
    if let Some(mut paired) = paired.filter(|_| program.gains_by_pairs()) {
        optimise(&mut paired, library)?;
        if paired.is_soundly_paired() {
            *program = paired;
        }
    }
    let decision = program.decide()?;
    if let Decision::Runs(function, _) = &decision {
        program.legalize(*function)?;
    }
    Ok(decision)
}

/// Optimises the kernel of a program with all that it turns out to need.
fn optimise(program: &mut Program<'_, '_>, library: &mut Library<'_>) -> Result<(), CompileError> {
    loop {
        program.optimise()?;
        program.lower_panics()?;
        // What is still missing is in code that runs.
        if !program.link(library, Scope::Everything)? {
            return Ok(());
        }
    }
}

/// How an image was made: what two images of the same program can differ in, beside their target.
pub(crate) fn build_options(toolchain: &Toolchain, float: FloatPolicy) -> String {
    let own = env!("CARGO_PKG_VERSION");
    let Toolchain { release, commit, .. } = toolchain;
    let commit = commit.get(..9).unwrap_or(commit);
    format!("oxisycl={own} rustc={release}-{commit} opt-level=3 float={float}")
}

fn without_code(request: &Request, toolchain: &Toolchain, unsupported: Vec<UnsupportedKernel>) -> DeviceImage {
    let (kernels, sites, code) = (Vec::new(), Vec::new(), Vec::new());
    let (target, build_options) = (request.target.clone(), build_options(toolchain, request.options.float));
    DeviceImage { target, kernels, build_options, unsupported, sites, code }
}
