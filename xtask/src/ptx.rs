//! The device code of the repository's suites, benchmarks and examples, and what was written by hand, assembled for old and new NVIDIA GPUs. No GPU is needed.
//! The conformance suite and the accuracy of mathematics are not among them: [`device_programs`] has the reason.
//!
//! Builds suites, benchmarks and examples with `cargo sycl`, takes the PTX out of each program and gives every module to `ptxas`. Invariants:
//! no module is refused by `ptxas`. The kernels that the device compiler refuses are exactly those that are [listed](REFUSED) with a reason.
//! Each kernel that a program promises code for is in a module. There are about as many kernels as there were. Does not run anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::device_programs;
use crate::outcome::{Failure, Outcome, Result};
use crate::process::{self, cargo, command};
use crate::ptxas;
use crate::workspace::Workspace;

/// Programs that must have at least so many kernels with code; the other programs have the rest.
const FEWEST: &[(&str, usize)] = &[
    ("test kernels", 207),
    ("test fuzz", 64),
    ("bench gpu", 16),
    ("bench groups", 5),
    ("bench host", 20),
    ("bench images", 11),
    ("bench runtime", 20),
    ("example tour", 7),
];
/// The fewest kernels of all programs.
const FEWEST_OF_ALL: usize = 347;

/// Programs, a part of the name of a kernel of theirs that has no code, and a part of the reason for that.
const REFUSED: &[(&str, &str, &str)] = &[
    // Only the host runs it: it spins until a thread of the host stores to a static.
    ("bench runtime", "memory::blocked", "a static that is not constant"),
];

/// The oldest processor, which images are made for, and that of the GPUs that figures are kept of.
const PROCESSORS: &[&str] = &[device_programs::PTX, "sm_90"];

/// Modules that no compiler made.
const WRITTEN_BY_HAND: &[&str] = &["crates/oxisycl-backend-cuda/tests/gpu/kernels.ptx"];

/// What an assembler that checks anything refuses.
const NONSENSE: &str =
    ".version 7.7\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n\tadd.nonsense %r1, %r2;\n\tret;\n}\n";

/// Builds, extracts and assembles.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome> {
    let Some(assembler) = ptxas::find(workspace) else {
        let reason = "ptxas is neither installed nor in PATH: `cargo xtask test` installs it";
        return Ok(Outcome::Skipped(reason.to_owned()));
    };
    let folder = Folder::empty(workspace, "ptx")?;
    let programs = device_programs::all(workspace)?;
    let (mut counts, mut modules, mut refusals, mut findings) =
        (BTreeMap::new(), BTreeSet::new(), Vec::new(), Vec::new());
    for (name, program) in programs {
        let description = inspect(workspace, program, &[])?;
        let promised = n_promised(&description);
        refusals.extend(refused_kernels(name, &description));
        let found = match promised {
            0 => Vec::new(),
            _ => modules_of(&inspect(workspace, program, &["--emit", "ptx"])?),
        };
        let n_kernels = n_kernels(&found);
        findings.extend(misses(name, promised, n_kernels));
        counts.insert(name.clone(), n_kernels);
        // Programs share kernels of the crates and modules that they share.
        modules.extend(found);
    }
    findings.extend(lacking(&counts));
    findings.extend(unexpected(&refusals));
    let mut modules = folder.write(&modules)?;
    modules.extend(
        WRITTEN_BY_HAND
            .iter()
            .map(|path| workspace.root.join(path))
            .map(|path| folder.copy(&path))
            .collect::<Result<Vec<_>>>()?,
    );
    findings.extend(assemble(workspace, &assembler, &modules));
    if assemble_one(workspace, &assembler, &folder.file("nonsense", NONSENSE)?, PROCESSORS[0]).is_ok() {
        findings.push(format!("{} takes instructions that there are not", assembler.display()));
    }
    Failure::unless_empty("fault of device code", findings)?;
    counts.retain(|_, count| *count > 0);
    Ok(Outcome::Passed(format!(
        "{} kernels of {} programs, {} different modules, assembled for {}",
        counts.values().sum::<usize>(),
        counts.len(),
        modules.len(),
        PROCESSORS.join(" and ")
    )))
}

/// Assembles the modules of a program that another stage has built. Gives the number of their kernels, or nothing where there is no `ptxas`.
pub(crate) fn assemble_program(workspace: &Workspace, name: &str, program: &Path) -> Result<Option<usize>> {
    let Some(assembler) = ptxas::find(workspace) else { return Ok(None) };
    let folder = Folder::empty(workspace, &format!("ptx-{name}"))?;
    let promised = n_promised(&inspect(workspace, program, &[])?);
    let modules = modules_of(&inspect(workspace, program, &["--emit", "ptx"])?);
    let n_kernels = n_kernels(&modules);
    let mut findings: Vec<String> = misses(name, promised, n_kernels).into_iter().collect();
    findings.extend(assemble(workspace, &assembler, &folder.write(&modules.into_iter().collect())?));
    Failure::unless_empty("fault of device code", findings)?;
    Ok(Some(n_kernels))
}

/// Where the modules are while they are looked at, and afterwards for people.
struct Folder(PathBuf);

impl Folder {
    fn empty(workspace: &Workspace, name: &str) -> Result<Self> {
        let folder = workspace.target_directory.join(name);
        let removed = if folder.exists() { fs::remove_dir_all(&folder) } else { Ok(()) };
        removed.and_then(|()| fs::create_dir_all(&folder)).map_err(|error| failure(&folder, &error))?;
        Ok(Self(folder))
    }

    fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(format!("{name}.ptx"));
        fs::write(&path, text).map_err(|error| failure(&path, &error))?;
        Ok(path)
    }

    fn copy(&self, module: &Path) -> Result<PathBuf> {
        let name = module.file_stem().unwrap_or_default().to_string_lossy();
        self.file(&name, &fs::read_to_string(module).map_err(|error| failure(module, &error))?)
    }

    fn write(&self, modules: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
        (1..).zip(modules).map(|(number, module)| self.file(&format!("{number}"), module)).collect()
    }
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

fn inspect(workspace: &Workspace, program: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = cargo(workspace);
    command.args(["sycl", "inspect"]).arg(program).args(["--target", device_programs::PTX]).args(arguments);
    Ok(process::run_quietly(&mut command)?.succeeded()?.stdout)
}

/// How many kernels with code a program has, as `inspect` tells it: `sm_70: 3 kernels, ..` for each target.
fn n_promised(description: &str) -> usize {
    let of_target =
        |line: &str| line.strip_prefix("sm_")?.split_once(": ")?.1.split_once(" kernel")?.0.parse::<usize>().ok();
    description.lines().filter_map(of_target).sum()
}

/// How many kernels are in modules.
fn n_kernels(modules: &[String]) -> usize {
    modules.iter().map(|module| module.matches(".visible .entry ").count()).sum()
}

/// A finding if the modules of a program have another number of kernels than it promises.
fn misses(program: &str, promised: usize, found: usize) -> Option<String> {
    let text = || format!("{program}: the program promises {promised} kernels, and its modules have {found}");
    (found != promised).then(text)
}

/// The modules of a text that holds one after the other: each begins with its version.
fn modules_of(ptx: &str) -> Vec<String> {
    let mut modules: Vec<String> = Vec::new();
    for line in ptx.lines() {
        if line.starts_with(".version ") {
            modules.push(String::new());
        }
        // What comes before the first version is a comment, and so is the name of a module at the end of the one before.
        if let Some(module) = modules.last_mut().filter(|_| !line.starts_with("//")) {
            module.push_str(line);
            module.push('\n');
        }
    }
    modules
}

/// What is not as it should be with the numbers of kernels by program.
fn lacking(counts: &BTreeMap<String, usize>) -> Vec<String> {
    let of_program = FEWEST.iter().map(|(name, fewest)| (*name, *fewest, counts.get(*name).copied().unwrap_or(0)));
    let all = of_program.chain([("all programs", FEWEST_OF_ALL, counts.values().sum())]);
    all.filter(|(_, fewest, found)| found < fewest)
        .map(|(what, fewest, found)| format!("{what}: {found} kernels have code, at least {fewest} expected"))
        .collect()
}

/// A kernel that the device compiler refused.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    program: String,
    kernel: String,
    reason: String,
}

/// The kernels without code in what `inspect` says of a program: a line with the name, and below it one with the reason.
fn refused_kernels(program: &str, description: &str) -> Vec<Refusal> {
    let lines: Vec<&str> = description.lines().map(str::trim).collect();
    let refused = lines.windows(2).filter_map(|pair| {
        let (_, reason) = pair[1].split_once("cannot run: ")?;
        Some(Refusal { program: program.to_owned(), kernel: pair[0].to_owned(), reason: reason.to_owned() })
    });
    refused.collect()
}

/// Refusals that are not listed, and what is listed and is not refused.
fn unexpected(refusals: &[Refusal]) -> Vec<String> {
    let is_meant = |entry: &(&str, &str, &str), refusal: &Refusal| {
        entry.0 == refusal.program && refusal.kernel.contains(entry.1) && refusal.reason.contains(entry.2)
    };
    let unlisted = refusals.iter().filter(|refusal| !REFUSED.iter().any(|entry| is_meant(entry, refusal)));
    let unlisted = unlisted.map(|Refusal { program, kernel, reason }| format!("{program}: {kernel}: {reason}"));
    let idle = REFUSED.iter().filter(|entry| !refusals.iter().any(|refusal| is_meant(entry, refusal)));
    let idle = idle.map(|(program, kernel, reason)| {
        format!(
            "{program}: {kernel}: listed as a kernel without code because of \"{reason}\", which nothing says any more"
        )
    });
    unlisted.chain(idle).collect()
}

/// Assembles each module for each processor, several at a time. Gives what the assembler says of those that it refuses.
fn assemble(workspace: &Workspace, assembler: &Path, modules: &[PathBuf]) -> Vec<String> {
    let jobs: Vec<(&PathBuf, &str)> =
        modules.iter().flat_map(|module| PROCESSORS.iter().map(move |processor| (module, *processor))).collect();
    let (next, refused) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((module, processor)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(message) = assemble_one(workspace, assembler, module, processor) {
                        refused.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                    }
                }
            });
        }
    });
    let mut refused = refused.into_inner().unwrap_or_else(PoisonError::into_inner);
    refused.sort();
    refused
}

fn assemble_one(workspace: &Workspace, assembler: &Path, module: &Path, processor: &str) -> Result<(), String> {
    let output = module.with_extension(format!("{processor}.cubin"));
    let mut command = command(workspace, &assembler.as_os_str().to_owned());
    // Whether the code is valid does not depend on how well it is optimised.
    command.args(["-O0", "-arch", processor, "-o"]).arg(&output).arg(module);
    let captured = process::run_quietly(&mut command).map_err(|failure| failure.message)?;
    // What cannot be removed is overwritten the next time.
    let _ = fs::remove_file(&output);
    if captured.success {
        return Ok(());
    }
    let output = captured.output();
    let message = output.lines().find(|line| line.contains("error") || line.contains("fatal"));
    Err(format!("{} for {processor}: {}", module.display(), message.unwrap_or("ptxas failed and says nothing")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_told_apart_by_their_versions() {
        let text = "// kernel a\n.version 7.7\n.target sm_70\n.entry a\n// kernel b\n.version 8.0\n.entry b\n";
        assert_eq!(modules_of(text), [".version 7.7\n.target sm_70\n.entry a\n", ".version 8.0\n.entry b\n"]);
        assert!(modules_of("no device code").is_empty());
    }

    #[test]
    fn the_kernels_that_a_program_promises_are_those_of_all_its_processors() {
        let text = "sm_70: 12 kernels, 5 bytes of code\n  app::sm_70: 9 kernels\nsm_90: 1 kernel, 3 bytes of code\n\
            spirv1.2: 4 kernels, 8 bytes of code\n";
        assert_eq!(n_promised(text), 13);
        assert_eq!(n_promised("app: no device code for sm_70\n"), 0);
    }

    #[test]
    fn too_few_kernels_of_a_program_or_of_all_are_findings() {
        let mut counts: BTreeMap<String, usize> =
            FEWEST.iter().map(|(name, fewest)| ((*name).to_owned(), *fewest)).collect();
        counts.insert("others".to_owned(), FEWEST_OF_ALL);
        assert_eq!(lacking(&counts), Vec::<String>::new());
        counts.insert("example tour".to_owned(), 3);
        assert_eq!(lacking(&counts), ["example tour: 3 kernels have code, at least 7 expected"]);
        assert_eq!(lacking(&BTreeMap::new()).len(), FEWEST.len() + 1);
    }

    #[test]
    fn refused_kernels_are_exactly_those_that_are_listed() {
        let listed = |(program, kernel, reason): &(&str, &str, &str)| {
            refused_kernels(program, &format!("sm_70: 0 kernels\n  {kernel}\n    1 dimension, cannot run: {reason}\n"))
        };
        let mut refusals: Vec<Refusal> = REFUSED.iter().flat_map(listed).collect();
        assert_eq!(refusals.len(), REFUSED.len());
        assert_eq!(unexpected(&refusals), Vec::<String>::new());
        let text =
            "sm_70: 1 kernel\n  app::fine\n    1 dimension\n  app::k\n    1 dimension, cannot run: it reads a file\n";
        let other = refused_kernels("test kernels", text);
        assert_eq!(unexpected(&other).len(), 1 + REFUSED.len());
        refusals.extend(other);
        assert_eq!(unexpected(&refusals), ["test kernels: app::k: it reads a file"]);
    }
}
