//! One link unit, one target: from bitcode to an image.

use std::path::{Path, PathBuf};

use oxisycl_image::{DeviceImage, ImageTarget, KernelEntry, SourceLocation, UnsupportedKernel};

use crate::library::{Library, Provider, link_where_used, read};
use crate::llvm::{self, Builder, Context, Linkage, Module, PassTuning, Value};
use crate::stage::resolve::Scope;
use crate::stage::{builtins, float, kernels, legality, panics, resolve, sanitize};
use crate::target::{self, Target};
use crate::{CompileError, Toolchain};

/// How strictly floating-point code is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
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
    let program = Program::gather(&context, toolchain, request, &*target, provider)?;
    if program.kernels.is_empty() {
        return Ok(Compiled { image: None, warnings: Vec::new() });
    }
    let mut warnings = Vec::new();
    let image = program.into_code(&*target, request, &mut warnings)?;
    Ok(Compiled { image: Some(image), warnings })
}

const OPTIMISE: &str = "globaldce,strip-nonlinetable-debuginfo,default<O3>,globaldce";
/// After panics were lowered: what only their messages needed is dead.
const CLEAN_UP: &str = "function(sroa,instcombine<no-verify-fixpoint>,dse,adce,simplifycfg<no-sink-common-insts;no-hoist-common-insts>),globaldce";

/// The kernels of a link unit, and the code that they reach.
struct Program<'c, 'p> {
    module: Module<'c>,
    kernels: Vec<kernels::Kernel>,
    library: Library<'p>,
}

impl<'c, 'p> Program<'c, 'p> {
    /// Finds the kernels, and links their entries.
    fn gather(
        context: &'c Context,
        toolchain: &Toolchain,
        request: &Request,
        target: &dyn Target,
        provider: &'p mut Provider<'p>,
    ) -> Result<Self, CompileError> {
        let layout = target.machine().data_layout();
        let module = Module::empty(context, "program");
        module.set_target(target.machine().triple(), &layout);
        let mut found: Vec<kernels::Kernel> = Vec::new();
        let mut library = Library::new(provider);
        for path in &request.modules {
            let bitcode = read(path)?;
            let mut launches = false;
            library.add_crate(context, path, bitcode.clone(), |symbol| launches |= kernels::is_description(symbol))?;
            if !launches {
                continue;
            }
            let unit = Module::from_bitcode(context, &bitcode, &path.display().to_string(), false)?;
            let new = kernels::find(context, &bitcode, &unit)?;
            link_where_used(&unit);
            for kernel in &new {
                let entry = unit.function(&kernel.entry).expect("the search has just named it");
                entry.set_linkage(llvm::Linkage::EXTERNAL);
            }
            unit.set_target(target.machine().triple(), &layout);
            module.link(unit)?;
            found.extend(new);
        }
        library.set_archives(toolchain.standard_library()?);
        found.sort_by(|a, b| a.symbol.cmp(&b.symbol));
        found.dedup();
        Ok(Self { module, kernels: found, library })
    }

    fn into_code(
        self,
        target: &dyn Target,
        request: &Request,
        warnings: &mut Vec<String>,
    ) -> Result<DeviceImage, CompileError> {
        let Self { module, kernels, mut library } = self;
        let dump = |stage: &str| dump(&module, request.options.dump.as_deref(), stage);
        let tuning = PassTuning::DEVICE;
        let machine = Some(target.machine());
        let is_entry = |name: &str| kernels.iter().any(|kernel| kernel.entry == name);
        let is_kernel = |name: &str| kernels.iter().any(|kernel| kernel.symbol == name);
        dump("0-linked")?;
        let mut round = 1;
        let mut sites = panics::Sites::default();
        let mut functions: Vec<Value<'_>> = Vec::new();
        let mut scope = Scope::WithoutFormatting;
        let mut calls = legality::Calls::default();
        loop {
            loop {
                builtins::replace(&module, target.builtins())?;
                float::replace_functions(&module);
                panics::hook(&module);
                sanitize::sanitize(&module, &is_entry, &is_kernel);
                sanitize::drop_library_checks(&module);
                module.run(sanitize::LOWER_INVOKES, machine, &tuning)?;
                sanitize::remove_personalities(&module);
                module.run("globaldce", machine, &tuning)?;
                if !resolve::link_missing(&module, &mut library, target.machine(), scope)? {
                    break;
                }
            }
            module.verify("linking")?;
            calls.add(&module);
            float::apply_policy(&module, request.options.float);
            dump(&format!("1-resolved-{round}"))?;
            if functions.is_empty() {
                for kernel in &kernels {
                    functions.push(target.add_kernel(&module, kernel)?);
                    module.function(&kernel.entry).expect("a kernel was made of it").set_linkage(Linkage::INTERNAL);
                }
            }
            module.run(OPTIMISE, machine, &tuning)?;
            dump(&format!("2-optimised-{round}"))?;
            round += 1;
            let launch = |builder: &Builder<'c>| builtins::launch(&module, builder);
            panics::lower(&module, &mut sites, &launch, &|builder| target.end_work_item(&module, builder));
            module.run(CLEAN_UP, machine, &tuning)?;
            // What is still missing is in code that runs.
            scope = Scope::Everything;
            if !resolve::link_missing(&module, &mut library, target.machine(), scope)? {
                break;
            }
        }
        let mut entries = Vec::new();
        let mut unsupported = Vec::new();
        let mut remaining = Vec::new();
        let is_ours = |name: &str| target.is_own_global(name);
        for (kernel, &function) in kernels.into_iter().zip(&functions) {
            let mut findings = legality::examine(function, &kernel.entry, &calls, &is_ours);
            let (size, limit) = (kernel.parameters.size, target.max_arguments());
            if kernel.refused_captures.is_some() {
                findings.unsupported.clone_from(&kernel.refused_captures);
            } else if size > limit {
                findings.unsupported = Some(format!("its captures are {size} bytes, the limit is {limit}"));
            }
            if let Some(reason) = findings.unsupported {
                warnings.push(format!("kernel `{}` cannot run on {}: {reason}", kernel.type_name, request.target));
                unsupported.push(UnsupportedKernel {
                    type_id: kernel.type_id,
                    form: kernel.form,
                    type_name: kernel.type_name,
                    reason,
                });
                function.delete_function();
            } else {
                remaining.push(function);
                entries.push(entry_of(kernel, findings));
            }
        }
        module.run("globaldce", machine, &tuning)?;
        builtins::lower_launch(&module, &remaining, || target.launch_slot(&module));
        target.legalize(&module);
        module.run("globaldce", machine, &tuning)?;
        module.verify("lowering")?;
        dump("3-lowered")?;
        module.strip_debug_info();
        let code = target.machine().emit(&module, target.codegen())?;
        Ok(DeviceImage {
            target: request.target.clone(),
            kernels: entries,
            build_options: String::new(),
            unsupported,
            sites: sites.list,
            code,
        })
    }
}

fn entry_of(kernel: kernels::Kernel, findings: legality::Findings) -> KernelEntry {
    KernelEntry {
        symbol: kernel.symbol,
        type_id: kernel.type_id,
        form: kernel.form,
        parameters: kernel.parameters,
        type_name: kernel.type_name,
        // Not known: the place is an argument of the launch, and a kernel can be launched from several.
        location: SourceLocation { file: String::new(), line: 1, column: 1 },
        requirements: findings.requirements.into_iter().map(str::to_owned).collect(),
        may_panic: findings.may_panic,
    }
}

/// Writes the module for people to read.
fn dump(module: &Module<'_>, folder: Option<&Path>, stage: &str) -> Result<(), CompileError> {
    let Some(folder) = folder else { return Ok(()) };
    let path = folder.join(format!("{stage}.ll"));
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, module.to_string()));
    written.map_err(|error| CompileError::File { path, error })
}
