//! The compilation of one link unit: from bitcode to images, one for each kernel and target.

use std::mem;
use std::path::PathBuf;

use oxisycl_image::{DeviceImage, Form, ImageTarget, SpecializedLoad, UnsupportedKernel};

use crate::codegen::{self, Target};
use crate::compiled::{Compiled, Generated, LoweredModule};
use crate::error::CompileError;
use crate::gather::{gather, list};
use crate::instruments::{Instruments, PassTimes};
use crate::isolation::{InThisProcess, Inspect, Isolation, Kept, KeptNowhere, Uninspected};
use crate::kernel::{Captures, Described, HostCapture, Kernel};
use crate::link::library::{Library, Provider};
use crate::link::resolve::Scope;
use crate::llvm::{self, Context};
use crate::options::Options;
use crate::prelink;
use crate::program::{Decision, Program};
use crate::toolchain::Toolchain;

/// The input of a compilation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// Un-optimised bitcode of the program's crates, the final crate first.
    pub modules: Vec<PathBuf>,
    /// The targets to compile for.
    pub targets: Vec<ImageTarget>,
    /// The options of the compilation.
    pub options: Options,
}

/// The result of a link unit for each of its targets, or the error.
pub type ForTargets = Vec<Result<Compiled, CompileError>>;

/// Compiles the kernels of a link unit for each target, in this process. LLVM may end it on code that it cannot handle.
///
/// # Errors
/// Problems of the toolchain and the input; never a construct that the target cannot run.
pub fn compile(toolchain: &Toolchain, request: &Request) -> Result<ForTargets, CompileError> {
    compile_with(toolchain, request, &mut |_| Ok(None), &mut InThisProcess, &KeptNowhere, &Uninspected)
}

/// What is known of a crate's kernels before any of them is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The captured addresses of the host.
    pub captures: Vec<HostCapture>,
    /// The kernels that no target runs because of their captures, with the reasons.
    pub refused: Vec<(String, String)>,
}

/// Checks the captures of the kernels that a crate describes, and compiles none. `modules` is all of its bitcode. Memory that this takes is
/// not given back.
///
/// # Errors
/// The errors of [`compile`].
pub fn check(toolchain: &Toolchain, modules: &[PathBuf]) -> Result<Checked, CompileError> {
    llvm::load(toolchain.llvm_library())?;
    let kernels = list(modules)?;
    let refused = kernels.iter().filter_map(|captures| Some((captures.kernel.clone(), captures.reason()?))).collect();
    Ok(Checked { captures: kernels.iter().flat_map(Captures::of_host).collect(), refused })
}

/// Compiles the kernels of a link unit like [`compile`], for a program some of whose crates have no bitcode yet. For a symbol that no
/// module defines, it calls `provider` before it searches the standard library. `isolation` compiles the kernels, one job for each; only
/// one thread uses it. Results in `kept` are not compiled again. If `inspect` refuses a kernel's code, the kernel counts as one that the
/// target cannot run.
///
/// # Errors
/// The errors of [`compile`], and what `provider` fails with.
pub fn compile_with<'p>(
    toolchain: &Toolchain,
    request: &Request,
    provider: &'p mut Provider<'p>,
    isolation: &mut dyn Isolation,
    kept: &dyn Kept,
    inspect: &dyn Inspect,
) -> Result<ForTargets, CompileError> {
    llvm::load(toolchain.llvm_library())?;
    let mut failures = Vec::new();
    let targets = request.targets.iter().map(|image_target| {
        let target = codegen::of(image_target);
        target.map_err(|error| failures.push((image_target, error))).ok()
    });
    let targets: Vec<Option<Box<dyn Target>>> = targets.collect();
    let mut library = Library::new(provider);
    let known = gather(toolchain, request, &mut library)?;
    if request.options.refuses_host_captures {
        let own = known.iter().filter(|described| described.is_of_final_crate);
        let captures: Vec<HostCapture> = own.flat_map(|described| described.kernel.captures().of_host()).collect();
        if !captures.is_empty() {
            return Err(CompileError::HostCaptures(captures));
        }
    }
    let mut rejected: Vec<Vec<UnsupportedKernel>> = vec![Vec::new(); targets.len()];
    let mut wanted = Vec::new();
    for (target_idx, target) in targets.iter().enumerate() {
        let Some(target) = target else { continue };
        for described in &known {
            match refusal(&described.kernel, &**target) {
                Some(reason) => rejected[target_idx].push(described.kernel.unsupported(reason)),
                None => wanted.push(Wanted { described, target_idx, target: &**target }),
            }
        }
    }
    let mut linking_times = vec![PassTimes::default(); targets.len()];
    let prelinked = prelink::all(&wanted, &request.options.borrowed, &mut library, isolation, &mut linking_times)?;
    let contexts: Vec<Context> = prelinked.iter().map(|_| Context::new()).collect();
    let is_separate = isolation.is_separate();
    let opened = prelink::open(&prelinked, &contexts, is_separate)?;
    isolation.announce("kernel");
    let results = isolation.run(wanted.len(), &mut |job| {
        let Wanted { described, target_idx, target } = wanted[job];
        let image_target = &request.targets[target_idx];
        let folder = |dump: &PathBuf| dump.join(image_target.to_string()).join(&described.kernel.symbol);
        let instruments = Instruments::new(request.options.dump.as_ref().map(folder));
        let own = Context::new();
        let code = prelink::take(&wanted[job], &prelinked, &opened);
        let context = code.opened.as_ref().map_or(&own, |module| module.context());
        let mut program =
            Program::of_kernel(context, described, code, target, image_target, &request.options, &instruments)?;
        program.link(&mut library, Scope::WithoutFormatting)?;
        let bytes = match program.early_refusal() {
            Some(refused) => Generated::without_code(program.image(refused, Vec::new(), toolchain)).encode()?,
            None => {
                let content = program.content();
                match kept.find(&content) {
                    Some(bytes) if Generated::decode(&bytes).is_ok() => bytes,
                    _ => {
                        program.add_kernel()?;
                        let generated = generate(&mut program, &mut library, toolchain)?;
                        let mut coded = generated.images.iter().filter(|image| !image.kernels.is_empty());
                        match coded.try_for_each(|image| inspect.inspect(image)) {
                            Ok(()) => {
                                let bytes = generated.encode()?;
                                kept.keep(&content, !program.was_linked_later(), &bytes);
                                bytes
                            }
                            Err(reason) => {
                                let refused = vec![described.kernel.unsupported(described.kernel.with_place(&reason))];
                                let image = without_code(image_target, &request.options, toolchain, refused);
                                Generated::without_code(image).encode()?
                            }
                        }
                    }
                }
            }
        };
        if is_separate {
            // The process ends with the job.
            mem::forget(program);
            mem::forget(own);
        }
        Ok(instruments.times().encode_with(&bytes))
    })?;
    let mut compiled: Vec<Compiled> = targets.iter().map(|_| Compiled::default()).collect();
    let mut times = linking_times;
    for (Wanted { described, target_idx, .. }, result) in wanted.iter().zip(results) {
        let (kernel, compiled, rejected) = (&described.kernel, &mut compiled[*target_idx], &mut rejected[*target_idx]);
        let generated = result.map(|bytes| match PassTimes::decode_with(&bytes) {
            Some((of_kernel, bytes)) => {
                times[*target_idx].merge(of_kernel);
                Generated::decode(bytes)
            }
            None => Err(format!("its {} bytes are damaged", bytes.len())),
        });
        match generated {
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
    for (compiled, times) in compiled.iter_mut().zip(times) {
        compiled.times = times.into_list();
    }
    let finish = |((image_target, mut compiled), mut rejected): ((_, Compiled), Vec<UnsupportedKernel>)| {
        if let Some(failed) = failures.iter().position(|(of, _)| *of == image_target) {
            return Err(failures.swap_remove(failed).1);
        }
        if !rejected.is_empty() {
            rejected.sort_by(|a, b| (&a.type_name, a.type_id).cmp(&(&b.type_name, b.type_id)));
            compiled.images.push(without_code(image_target, &request.options, toolchain, rejected));
        }
        Ok(compiled)
    };
    Ok(request.targets.iter().zip(compiled).zip(rejected).map(finish).collect())
}

/// A kernel to compile, and its target.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) described: &'a Described,
    /// The target's position in the request.
    pub(crate) target_idx: usize,
    pub(crate) target: &'a dyn Target,
}

/// The reason why the target cannot run a kernel, as far as it is known without the kernel's code.
fn refusal(kernel: &Kernel, target: &dyn Target) -> Option<String> {
    let (size, limit) = (kernel.parameters.size, target.max_arguments(kernel.parameters.align));
    let too_large = || kernel.with_place(&format!("its captures are {size} bytes, the limit is {limit}"));
    let sub_group = kernel.sub_group;
    let no_size = || {
        kernel.with_place(&format!("it states sub-groups of {sub_group} work-items, which no device of the target has"))
    };
    let has_size = sub_group == 0 || target.has_sub_groups_of(sub_group);
    let group = match kernel.form {
        Form::Range(dimensions) => &kernel.group[3 - usize::from(dimensions)..],
        // Theirs is checked when it is launched.
        _ => &[],
    };
    let no_group = || {
        kernel.with_place(&format!("it states work-groups of {group:?} work-items, which no device of the target has"))
    };
    let has_group = group.is_empty() || target.has_groups_of(kernel.group);
    // The program's memory is that of its native code.
    let captured = if target.runs_in_process() { None } else { kernel.refused_capture() };
    let captures = captured.or_else(|| (size > limit).then(too_large));
    captures.or_else(|| (!has_group).then(no_group)).or_else(|| (!has_size).then(no_size))
}

/// Compiles a kernel from un-optimised code to its images.
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
        for kernel in &mut better.kernels {
            kernel.requirements.push(aspect.name().to_owned());
            kernel.specialized = SpecializedLoad::find_for(&better.target, &better.code);
        }
        better
    });
    Ok(Generated { images: better.into_iter().chain([image]).collect(), bitcode })
}

/// Lowers a kernel from un-optimised code to code that the code generator accepts.
pub(crate) fn lower(program: &mut Program<'_, '_>, library: &mut Library<'_>) -> Result<Decision, CompileError> {
    let paired = program.paired();
    optimise(program, library)?;
    if let Some(mut paired) = paired.filter(|_| program.gains_by_pairs()) {
        optimise(&mut paired, library)?;
        if paired.is_soundly_paired() {
            *program = paired;
        }
    }
    let decision = program.decide()?;
    if !decision.is_refusal() {
        program.legalize()?;
    }
    Ok(decision)
}

/// Optimises the kernel of a program, and links code that it turns out to need.
fn optimise(program: &mut Program<'_, '_>, library: &mut Library<'_>) -> Result<(), CompileError> {
    loop {
        program.optimise()?;
        // What is still missing is in code that runs.
        if !program.link(library, Scope::Everything)? {
            return Ok(());
        }
    }
}

fn without_code(
    target: &ImageTarget,
    options: &Options,
    toolchain: &Toolchain,
    unsupported: Vec<UnsupportedKernel>,
) -> DeviceImage {
    let (kernels, sites, code) = (Vec::new(), Vec::new(), Vec::new());
    let (target, build_options) = (target.clone(), toolchain.build_options(options.float));
    DeviceImage { target, kernels, build_options, unsupported, sites, code }
}
