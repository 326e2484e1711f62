//! The code of kernels, as text or as files for other tools.

use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use oxisycl_image::{DeviceImage, ImageTarget};

use super::assembly;
use super::native::{self, Program};
use super::text::count;
use crate::failure::{Failure, Result};

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

/// The code of a kind of all images that have such code. They are those of a program.
fn of_kind<'i>(images: &'i [DeviceImage], name: &str, program: Program<'_>) -> Result<(Vec<Code<'i>>, Kind)> {
    let (extension, comment, wanted): (_, _, fn(&ImageTarget) -> bool) = match name {
        "ptx" => ("ptx", Some("//"), |target| matches!(target, ImageTarget::Ptx { .. })),
        "amdgcn" => ("hsaco", None, |target| matches!(target, ImageTarget::AmdGcn { .. })),
        "spirv" => ("spv", None, |target| matches!(target, ImageTarget::SpirV { .. })),
        "asm" => ("s", Some("#"), |target| native::level(target).is_some()),
        "llvm" => ("ll", Some(";"), |_| true),
        _ => {
            return Err(Failure::new(format!(
                "--emit: expected ptx, amdgcn, spirv, asm, llvm or report, found {name:?}"
            )));
        }
    };
    let images: Vec<&DeviceImage> =
        images.iter().filter(|image| wanted(&image.target) && !image.kernels.is_empty()).collect();
    if images.is_empty() {
        return Err(Failure::new(format!("--emit: there is no image with code of kind {name}")));
    }
    let code = match name {
        "llvm" => owned(assembly::of(&images)?),
        "asm" => owned(native::of(&images, program)?),
        // What drivers read of PTX ends with a zero.
        "ptx" => {
            images.iter().map(|image| Cow::Borrowed(image.code.strip_suffix(&[0]).unwrap_or(&image.code))).collect()
        }
        _ => images.iter().map(|image| Cow::Borrowed(&*image.code)).collect::<Vec<_>>(),
    };
    let code = images.into_iter().zip(code).map(|(image, bytes)| Code { image, bytes });
    Ok((code.collect(), Kind { extension, comment }))
}

fn owned<'i>(texts: Vec<String>) -> Vec<Cow<'i, [u8]>> {
    texts.into_iter().map(|text| Cow::Owned(text.into_bytes())).collect()
}

/// Writes the code of each image to a file of its own. If there are several targets of one kind, file names contain the target's name.
/// Files of images for devices with an aspect, beside one for all devices, contain the aspect's name. Those of assembly contain the level.
pub(super) fn write_files(images: &[DeviceImage], kind: &str, program: Program<'_>, folder: &Path) -> Result<ExitCode> {
    let (found, Kind { extension, .. }) = of_kind(images, kind, program)?;
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    let is_one_target = found.iter().all(|code| code.image.target == found[0].image.target);
    for Code { image, bytes } in &found {
        let kernel = &image.kernels[0];
        let mut name = kernel.symbol.clone();
        match native::level(&image.target) {
            Some(level) if kind == "asm" => name += &format!(".{level}"),
            _ if is_one_target => {}
            _ => name += &format!(".{}", image.target),
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
pub(super) fn emit(images: &[DeviceImage], kind: &str, program: Program<'_>) -> Result<Vec<u8>> {
    let (found, Kind { comment, .. }) = of_kind(images, kind, program)?;
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

#[cfg(test)]
mod tests {
    use super::super::tests::image;
    use super::*;

    /// For images that have their code themselves.
    fn any() -> Program<'static> {
        Program { path: Path::new("app"), bytes: b"" }
    }

    fn emitted(images: &[DeviceImage], kind: &str) -> Result<Vec<u8>> {
        emit(images, kind, any())
    }

    #[test]
    fn code_is_written_as_text() {
        let separator = "// kernel app::main::{{closure}} (k_1), for sm_70\n";
        let text = format!("{separator}.version 7.7\n{separator}.version 7.8\n");
        let images = [image(b".version 7.7\n\0"), image(b".version 7.8\n\0")];
        assert_eq!(String::from_utf8(emitted(&images, "ptx").unwrap()), Ok(text));
        assert!(emitted(&[image(b"")], "gcn").unwrap_err().to_string().starts_with("--emit: "));
        assert!(emitted(&[image(b"")], "spirv").unwrap_err().to_string().contains("no image with code of kind spirv"));
        let object =
            |code: &[u8]| DeviceImage { target: ImageTarget::AmdGcn { arch: "gfx90a".to_owned() }, ..image(code) };
        assert_eq!(emitted(&[object(b"\x7fELF\0")], "amdgcn").unwrap(), b"\x7fELF\0");
        let error = emitted(&[object(b"1"), object(b"2")], "amdgcn").unwrap_err().to_string();
        assert!(error.contains("expected one image, found 2"), "{error}");
    }

    #[test]
    fn files_of_a_kernel_with_an_image_for_an_aspect_have_two_names() {
        let folder = std::env::temp_dir().join(format!("oxisycl-inspect-{}", std::process::id()));
        let mut better = image(b"2");
        better.kernels[0].requirements.push("ext_oxisycl_float_atomics".to_owned());
        write_files(&[better, image(b"1")], "ptx", any(), &folder).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(names, ["k_1.ext_oxisycl_float_atomics.ptx", "k_1.ptx"]);
    }
}
