//! `inspect`: the kernels in a program, library or object, from the images in its own section.

mod assembly;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;
use object::{Object, ObjectSection};
use oxisycl_compiler::SECTION;
use oxisycl_image::{DeviceImage, Form, GroupNeeds, ImageTarget, KernelEntry};

use super::ptxas::Ptxas;
use crate::failure::{Failure, Result};

const HELP: &str = "\
Shows the kernels in a program or library that `cargo sycl` has built

Usage: cargo sycl inspect BINARY [OPTIONS]

  --emit KIND    Write the code instead: ptx for NVIDIA GPUs, where a comment before each kernel's code names kernel and target;
                 amdgcn for AMD GPUs, spirv for devices of OpenCL: the file of one kernel, for other tools;
                 llvm for the LLVM assembly, of all targets, that the code was generated from, if this user built it on this machine
  --out FOLDER   With --emit: one file for each kernel, SYMBOL.ptx, SYMBOL.hsaco, SYMBOL.spv or SYMBOL.ll; the folder is made
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
    let mut images = images(&options.binary)?;
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
        (Some(kind), None) => emit(&images, kind)?,
        (Some(kind), Some(folder)) => return write_files(&images, kind, &folder),
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
fn images(binary: &Path) -> Result<Vec<DeviceImage>> {
    let bytes = fs::read(binary).map_err(|error| Failure::file(binary, error))?;
    let broken = |what: &dyn std::fmt::Display| Failure::new(format!("{}: {what}", binary.display()));
    let file = object::File::parse(&*bytes).map_err(|error| broken(&error))?;
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

/// A kind of code that can be written.
struct Kind {
    /// The usual end of the name of a file with such code.
    extension: &'static str,
    /// What a comment begins with, if such code is text.
    comment: Option<&'static str>,
}

/// Code of a kind, and the image that it is of.
struct Code<'i> {
    image: &'i DeviceImage,
    bytes: Cow<'i, [u8]>,
}

/// The code of a kind of all images that have such code.
fn of_kind<'i>(images: &'i [DeviceImage], name: &str) -> Result<(Vec<Code<'i>>, Kind)> {
    let (extension, comment, wanted): (_, _, fn(&ImageTarget) -> bool) = match name {
        "ptx" => ("ptx", Some("//"), |target| matches!(target, ImageTarget::Ptx { .. })),
        "amdgcn" => ("hsaco", None, |target| matches!(target, ImageTarget::AmdGcn { .. })),
        "spirv" => ("spv", None, |target| matches!(target, ImageTarget::SpirV { .. })),
        "llvm" => ("ll", Some(";"), |_| true),
        _ => return Err(Failure::new(format!("--emit: expected ptx, amdgcn, spirv or llvm, found {name:?}"))),
    };
    let images: Vec<&DeviceImage> =
        images.iter().filter(|image| wanted(&image.target) && !image.kernels.is_empty()).collect();
    if images.is_empty() {
        return Err(Failure::new(format!("--emit: there is no image with code of kind {name}")));
    }
    let code = match name {
        "llvm" => assembly::of(&images)?.into_iter().map(|text| Cow::Owned(text.into_bytes())).collect(),
        // What drivers read of PTX ends with a zero.
        "ptx" => {
            images.iter().map(|image| Cow::Borrowed(image.code.strip_suffix(&[0]).unwrap_or(&image.code))).collect()
        }
        _ => images.iter().map(|image| Cow::Borrowed(&*image.code)).collect::<Vec<_>>(),
    };
    let code = images.into_iter().zip(code).map(|(image, bytes)| Code { image, bytes });
    Ok((code.collect(), Kind { extension, comment }))
}

/// Writes the code of each image to a file of its own. If there are several targets of one kind, file names contain the target's name.
/// Files of images for devices with an aspect, beside one for all devices, contain the aspect's name.
fn write_files(images: &[DeviceImage], kind: &str, folder: &Path) -> Result<ExitCode> {
    let (found, Kind { extension, .. }) = of_kind(images, kind)?;
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let is_one_target = found.iter().all(|code| code.image.target == found[0].image.target);
    for Code { image, bytes } in &found {
        let kernel = &image.kernels[0];
        let mut name = kernel.symbol.clone();
        if !is_one_target {
            name += &format!(".{}", image.target);
        }
        let is_sibling = |other: &&DeviceImage| {
            other.target == image.target
                && other.kernels[0].symbol == kernel.symbol
                && other.kernels[0].requirements.len() < kernel.requirements.len()
        };
        if let Some(sibling) = found.iter().map(|code| code.image).find(is_sibling) {
            let aspects = kernel.requirements.iter().filter(|aspect| !sibling.kernels[0].requirements.contains(aspect));
            aspects.for_each(|aspect| name += &format!(".{aspect}"));
        }
        let path = folder.join(name + "." + extension);
        fs::write(&path, bytes).map_err(|error| Failure::file(&path, error))?;
    }
    println!("{} in {}", count(found.len(), "file"), folder.display());
    Ok(ExitCode::SUCCESS)
}

/// The code of the images: of all of them where that is text, and else of one.
fn emit(images: &[DeviceImage], kind: &str) -> Result<Vec<u8>> {
    let (found, Kind { comment, .. }) = of_kind(images, kind)?;
    match (&found[..], comment) {
        (found, Some(comment)) => Ok(found
            .iter()
            .flat_map(|code| [separator(code.image, comment).as_bytes(), &code.bytes].concat())
            .collect()),
        ([code], None) => Ok(code.bytes.to_vec()),
        (found, None) => Err(Failure::new(format!(
            "--emit {kind}: expected one image, found {}: each is a file of its own; choose one by --target and --kernel, or a folder for all by --out",
            found.len()
        ))),
    }
}

/// A comment: each image is a text of its own, which assemblers take alone only.
fn separator(image: &DeviceImage, comment: &str) -> String {
    let names = image.kernels.iter().map(|kernel| format!("{} ({})", kernel.type_name, kernel.symbol));
    format!("{comment} kernel {}, for {}\n", names.collect::<Vec<_>>().join(", "), image.target)
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

fn form(form: Form) -> String {
    match form {
        Form::Single => "single task".to_owned(),
        Form::Range(1) => "1 dimension".to_owned(),
        Form::Range(dimensions) => format!("{dimensions} dimensions"),
        Form::Group(dimensions) => format!("work-groups of {dimensions} dimensions"),
        _ => "another form".to_owned(),
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn bytes(n: usize) -> String {
    if n < 10_000 { count(n, "byte") } else { format!("{} KiB", n.div_ceil(1024)) }
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
    fn code_is_written_as_text() {
        let separator = "// kernel app::main::{{closure}} (k_1), for sm_70\n";
        let text = format!("{separator}.version 7.7\n{separator}.version 7.8\n");
        let images = [image(b".version 7.7\n\0"), image(b".version 7.8\n\0")];
        assert_eq!(String::from_utf8(emit(&images, "ptx").unwrap()), Ok(text));
        assert!(emit(&[image(b"")], "gcn").unwrap_err().to_string().starts_with("--emit: "));
        assert!(emit(&[image(b"")], "spirv").unwrap_err().to_string().contains("no image with code of kind spirv"));
        let object =
            |code: &[u8]| DeviceImage { target: ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }, ..image(code) };
        assert_eq!(emit(&[object(b"\x7fELF\0")], "amdgcn").unwrap(), b"\x7fELF\0");
        let error = emit(&[object(b"1"), object(b"2")], "amdgcn").unwrap_err().to_string();
        assert!(error.contains("expected one image, found 2"), "{error}");
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
    fn files_of_a_kernel_with_an_image_for_an_aspect_have_two_names() {
        let folder = std::env::temp_dir().join(format!("oxisycl-inspect-{}", std::process::id()));
        let mut better = image(b"2");
        better.kernels[0].requirements.push("ext_oxisycl_float_atomics".to_owned());
        write_files(&[better, image(b"1")], "ptx", &folder).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["k_1.ext_oxisycl_float_atomics.ptx", "k_1.ptx"]);
    }

    #[test]
    fn programs_without_images_have_none() {
        assert_eq!(images(&std::env::current_exe().unwrap()).unwrap(), Vec::new());
        assert!(images("Cargo.toml".as_ref()).is_err());
    }
}
