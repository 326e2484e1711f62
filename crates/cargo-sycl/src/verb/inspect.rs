//! `inspect`: the kernels in a program, library or object, from the images in its own section.

mod assembly;
mod emit;
mod native;
mod report;
mod text;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;
use object::{Object, ObjectSection};
use oxisycl_compiler::SECTION;
use oxisycl_image::{DeviceImage, Form, GroupNeeds, ImageTarget, KernelEntry};

use self::native::Program;
use self::report::Places;
use self::text::{bytes, count, form};
use super::ptxas::Ptxas;
use crate::failure::{Failure, Result};

const HELP: &str = "\
Shows the kernels in a program or library that `cargo sycl` has built

Usage: cargo sycl inspect BINARY [OPTIONS]

  --emit KIND    Write the code instead: ptx for NVIDIA GPUs, where a comment before each kernel's code names kernel and target;
                 amdgcn for AMD GPUs, spirv for devices of OpenCL: the file of one kernel, for other tools;
                 asm for the assembly of native code for a level of processors, from the program's machine code, if it is not stripped;
                 llvm for the LLVM assembly, of all targets, that the code was generated from, if this user built it on this machine;
                 report for a line on each loop of native code: whether its work-items run in vectors, or why not
  --out FOLDER   With --emit: one file for each kernel, SYMBOL.ptx, SYMBOL.hsaco, SYMBOL.spv, SYMBOL.LEVEL.s or SYMBOL.ll; the
                 folder is made
  --target NAME  Only images for this target, such as sm_70; spirv is SPIR-V of any version
  --kernel TEXT  Only kernels with this text in their type or symbol; the whole symbol chooses one

What a kernel needs of a GPU (registers, memory) is printed for PTX if a CUDA toolkit's ptxas is in PATH or below CUDA_HOME.
";

/// What `--targets` calls SPIR-V, which becomes images of the least version that has what each kernel needs.
const ANY_SPIRV: &str = "spirv";

/// What the user wants to see of which file.
struct Options {
    binary: PathBuf,
    emit: Option<String>,
    out: Option<PathBuf>,
    /// The text of a target, or [`ANY_SPIRV`].
    target: Option<String>,
    kernel: Option<String>,
}

pub(crate) fn run(arguments: Vec<OsString>) -> Result<ExitCode> {
    let Some(options) = parse(arguments)? else {
        print!("{HELP}");
        return Ok(ExitCode::SUCCESS);
    };
    let file = fs::read(&options.binary).map_err(|error| Failure::file(&options.binary, error))?;
    let program = Program { path: &options.binary, bytes: &file };
    let mut images = images(program)?;
    let places = Places::of(&images);
    let has_others = !images.is_empty();
    images.retain(|image| options.target.as_ref().is_none_or(|target| is_for(&image.target, target)));
    if let Some(kernel) = &options.kernel {
        select(&mut images, kernel)?;
    }
    if images.is_empty() {
        println!("{}: {}", options.binary.display(), no_images(options.target.as_deref().filter(|_| has_others)));
        return Ok(ExitCode::SUCCESS);
    }
    let text = match (options.emit.as_deref(), options.out) {
        (None, None) => describe(&images, Ptxas::find().as_ref()).into_bytes(),
        (None, Some(_)) => {
            return Err(Failure::new("--out: expected --emit KIND beside it, which says what is written"));
        }
        (Some("report"), None) => report::of(&images, &places)?.into_bytes(),
        (Some("report"), Some(_)) => {
            return Err(Failure::new("--out: a report is one text for all kernels, which is on standard output alone"));
        }
        (Some(kind), None) => emit::emit(&images, kind, program)?,
        (Some(kind), Some(folder)) => return emit::write_files(&images, kind, program, &folder),
    };
    match std::io::stdout().write_all(&text) {
        // The reader of a pipe may have seen enough.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(format!("output: {error}"))),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// `None` if help is wanted.
fn parse(arguments: Vec<OsString>) -> Result<Option<Options>> {
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut binary, mut emit, mut out, mut target, mut kernel) = (None, None, None, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("emit") => emit = Some(parser.value()?.string()?),
            Long("out") => out = Some(PathBuf::from(parser.value()?)),
            Long("target") => {
                let text = parser.value()?.string()?;
                if text != ANY_SPIRV {
                    text.parse::<ImageTarget>().map_err(|error| Failure::new(format!("--target: {error}")))?;
                }
                target = Some(text);
            }
            Long("kernel") => kernel = Some(parser.value()?.string()?),
            Long("help") | Short('h') => return Ok(None),
            Value(path) if binary.is_none() => binary = Some(PathBuf::from(path)),
            _ => return Err(argument.unexpected().into()),
        }
    }
    let binary =
        binary.ok_or_else(|| Failure::new("inspect: expected the path of a program or library, found none"))?;
    Ok(Some(Options { binary, emit, out, target, kernel }))
}

fn is_for(image: &ImageTarget, target: &str) -> bool {
    image.to_string() == target || (target == ANY_SPIRV && matches!(image, ImageTarget::SpirV { .. }))
}

/// What is said of a file without images for the target, or without any.
fn no_images(target: Option<&str>) -> String {
    match target {
        Some(target) => format!("no device code for {target}"),
        None => "no device code: its kernels run on the host device only".to_owned(),
    }
}

/// The images in a file; none if it has no section for them.
fn images(Program { path, bytes }: Program<'_>) -> Result<Vec<DeviceImage>> {
    let broken = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", path.display()));
    let file = object::File::parse(bytes).map_err(|error| broken(&error))?;
    let Some(section) = file.section_by_name(SECTION) else { return Ok(Vec::new()) };
    let bundle = section.data().map_err(|error| broken(&error))?;
    oxisycl_image::decode_bundle(bundle).map_err(|error| broken(&error))
}

/// Leaves the images of kernels with a text in their type or symbol.
fn select(images: &mut Vec<DeviceImage>, text: &str) -> Result<()> {
    images.retain_mut(|image| {
        image.unsupported.retain(|kernel| kernel.type_name.contains(text));
        let is_it = |kernel: &KernelEntry| kernel.type_name.contains(text) || kernel.symbol.contains(text);
        image.kernels.iter().any(is_it) || !image.unsupported.is_empty()
    });
    if images.is_empty() {
        return Err(Failure::new(format!("--kernel: there is no kernel with {text:?} in its type or symbol")));
    }
    Ok(())
}

/// All images of one target together: each kernel has one of its own.
fn describe(images: &[DeviceImage], ptxas: Option<&Ptxas>) -> String {
    let mut targets: Vec<&ImageTarget> = Vec::new();
    for image in images {
        if !targets.contains(&&image.target) {
            targets.push(&image.target);
        }
    }
    targets.into_iter().map(|target| describe_target(target, images, ptxas)).collect()
}

fn describe_target(target: &ImageTarget, images: &[DeviceImage], ptxas: Option<&Ptxas>) -> String {
    let images = || images.iter().filter(|image| image.target == *target);
    let mut kernels: Vec<(&KernelEntry, &DeviceImage)> =
        images().flat_map(|image| image.kernels.iter().map(move |kernel| (kernel, image))).collect();
    kernels.sort_by_key(|(kernel, _)| (&kernel.type_name, &kernel.symbol));
    let is_native = matches!(target, ImageTarget::Host { .. });
    let size = bytes(images().map(|image| image.code.len()).sum());
    let code = if is_native { "native code".to_owned() } else { format!("{size} of code") };
    let mut text = format!("{target}: {}, {code}\n", count(kernels.len(), "kernel"));
    for (kernel, image) in kernels {
        text += &format!("  {}\n", kernel.type_name);
        let code = match image.native_index() {
            // The program has the code where all of its code is.
            Some(number) => format!("native code {number}"),
            None => format!("{} of code", bytes(image.code.len())),
        };
        let (form, arguments) = (form(kernel.form), bytes(kernel.parameters.size));
        text += &format!("    {form}, {arguments} of arguments, {code}, symbol {}\n", kernel.symbol);
        if !kernel.location.file.is_empty() {
            text += &format!("    {}:{}\n", kernel.location.file, kernel.location.line);
        }
        if let Some(launch) = &kernel.launch {
            text += &format!("    launched at {launch}\n");
        }
        for argument in &kernel.arguments {
            text += &format!("    argument {argument}\n");
        }
        if let ImageTarget::Ptx { sm } = target {
            let usage = ptxas.map_or_else(
                || "unknown: ptxas not found".to_owned(),
                |ptxas| ptxas.usage(*sm, &image.code, &kernel.symbol).unwrap_or_else(|why| format!("unknown: {why}")),
            );
            text += &format!("    registers {usage}\n");
        }
        if kernel.is_paired {
            text += "    two work-items in each thread\n";
        }
        if kernel.has_unbounded_stack {
            text += "    stack unknown: its calls are recursive, or go through pointers\n";
        }
        if !kernel.library.is_empty() {
            text += &format!("    linked with {}\n", kernel.library.join(", "));
        }
        if !image.build_options.is_empty() {
            text += &format!("    built with {}\n", image.build_options);
        }
        if !kernel.requirements.is_empty() {
            text += &format!("    needs {}\n", kernel.requirements.join(", "));
        }
        text += &stated(kernel);
    }
    for kernel in images().flat_map(|image| &image.unsupported) {
        let what = if is_native { "plain code alone" } else { "cannot run" };
        text += &format!("  {}\n    {}, {what}: {}\n", kernel.type_name, form(kernel.form), kernel.reason);
    }
    text
}

/// What the kernel's attribute states, and what it should state beside that.
fn stated(kernel: &KernelEntry) -> String {
    let mut text = String::new();
    if !kernel.aspects.is_empty() {
        text += &format!("    states {}\n", kernel.aspects.join(", "));
    }
    let GroupNeeds { local, sub_group, .. } = kernel.groups;
    if local != [0; 3] {
        let dimensions = match kernel.form {
            Form::Range(dimensions) | Form::Group(dimensions) => usize::from(dimensions.min(3)),
            _ => 3,
        };
        text += &format!("    work-groups of {:?} work-items\n", &local[3 - dimensions..]);
    }
    if sub_group != 0 {
        text += &format!("    sub-groups of {sub_group} work-items\n");
    }
    kernel.unstated.iter().for_each(|what| text += &format!("    does not state: {what}\n"));
    text
}

#[cfg(test)]
pub(super) mod tests {
    use oxisycl_image::{Argument, ParameterLayout, SourceLocation, UnsupportedKernel};

    use super::*;

    pub(super) fn image(code: &[u8]) -> DeviceImage {
        DeviceImage {
            target: ImageTarget::Ptx { sm: 70 },
            kernels: vec![KernelEntry {
                location: SourceLocation { file: "src/main.rs".to_owned(), line: 3, column: 5 },
                requirements: vec!["fp64".to_owned()],
                library: vec!["core::num::dec2flt".to_owned(), "sinf".to_owned()],
                arguments: vec![Argument { path: "1.x".to_owned(), type_name: "f32".to_owned(), offset: 8, size: 4 }],
                is_paired: true,
                has_unbounded_stack: true,
                ..KernelEntry::new(
                    "k_1",
                    [1; 16],
                    Form::Range(2),
                    ParameterLayout { size: 16, align: 8 },
                    "app::main::{{closure}}",
                )
            }],
            build_options: "rustc=1.95.0 float=strict".to_owned(),
            unsupported: vec![UnsupportedKernel {
                type_id: [2; 16],
                form: Form::Single,
                type_name: "app::Reader".to_owned(),
                reason: "it reads a file".to_owned(),
            }],
            sites: Vec::new(),
            code: code.to_vec(),
        }
    }

    #[test]
    fn an_image_is_described_with_all_of_its_kernels() {
        assert_eq!(
            describe(&[image(b"12345")], None),
            "sm_70: 1 kernel, 5 bytes of code\n  app::main::{{closure}}\n    2 dimensions, 16 bytes of arguments, 5 bytes of code, symbol k_1\n    \
             src/main.rs:3\n    argument 1.x: f32, 4 bytes at 8\n    \
             registers unknown: ptxas not found\n    two work-items in each thread\n    stack unknown: its calls are recursive, or go through pointers\n    \
             linked with core::num::dec2flt, sinf\n    \
             built with rustc=1.95.0 float=strict\n    needs fp64\n  app::Reader\n    single task, cannot run: it reads a file\n"
        );
    }

    #[test]
    fn native_code_is_told_by_its_number() {
        let host = || ImageTarget::Host { triple: "x86_64-unknown-linux-gnu".to_owned(), level: None };
        let text = describe(&[DeviceImage { target: host(), ..image(&DeviceImage::native_code(7)) }], None);
        assert!(text.starts_with("host:x86_64-unknown-linux-gnu: 1 kernel, native code\n"), "{text}");
        assert!(text.contains("16 bytes of arguments, native code 7, symbol k_1\n"), "{text}");
        assert!(text.contains("single task, plain code alone: it reads a file\n"), "{text}");
    }

    #[test]
    fn kernels_are_selected_by_their_names() {
        let selected = |text: &str| {
            let mut images = vec![image(b"1")];
            select(&mut images, text).map(|()| images.len())
        };
        assert_eq!((selected("main"), selected("k_1"), selected("Reader")), (Ok(1), Ok(1), Ok(1)));
        assert!(selected("other").unwrap_err().to_string().starts_with("--kernel: "));
    }

    #[test]
    fn a_file_with_images_for_other_targets_alone_is_not_called_one_without() {
        assert_eq!(no_images(Some("sm_70")), "no device code for sm_70");
        assert_eq!(no_images(None), "no device code: its kernels run on the host device only");
    }

    #[test]
    fn images_are_chosen_by_target_and_all_versions_of_spirv_by_one_name() {
        let targets = ["sm_70", "spirv1.2", "spirv1.3"].map(|text| text.parse::<ImageTarget>().unwrap());
        let chosen = |text: &str| targets.each_ref().map(|target| is_for(target, text));
        assert_eq!(chosen("spirv"), [false, true, true]);
        assert_eq!((chosen("spirv1.3"), chosen("sm_70")), ([false, false, true], [true, false, false]));
        let parsed = |target: &str| parse(["app", "--target", target].map(OsString::from).to_vec());
        assert_eq!(parsed("spirv").unwrap().unwrap().target.as_deref(), Some("spirv"));
        assert!(parsed("spirv1").err().unwrap().to_string().starts_with("--target: "));
    }

    #[test]
    fn programs_without_images_have_none() {
        let path = std::env::current_exe().unwrap();
        assert_eq!(images(Program { path: &path, bytes: &fs::read(&path).unwrap() }).unwrap(), Vec::new());
        assert!(images(Program { path: &path, bytes: b"[package]" }).is_err());
    }
}
