//! A small program that is compiled as users' programs are, and whose kernels are known.
//!
//! It is one file that stands for the device library and a program at once. Finds out whether the compiler still recognises kernels,
//! the bytes of a `TypeId`, captured addresses, and panics with their messages. Does not run a kernel.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use oxisycl_compiler::Toolchain;
use oxisycl_image::{DeviceImage, Form, UnsupportedKernel};

use crate::compile::{self, Request};
use crate::failure::{Failure, Result};
use crate::files::temporary_name;
use crate::settings::hex;
use crate::wrapper::device_arguments::{Bitcode, Outputs, device_arguments};
use crate::wrapper::invocation::Invocation;

const SOURCE: &str = include_str!("probe.rs.txt");

const ARGUMENTS: &str =
    "--crate-name oxisycl_device --edition 2024 --crate-type bin -C opt-level=3 -C metadata=probe --emit link";

/// Compiles the program for both sides, and compares them.
pub(super) fn run(toolchain: &Toolchain) -> Result<()> {
    let folder = Folder::new()?;
    let source = folder.0.join("main.rs");
    fs::write(&source, SOURCE).map_err(|error| Failure::file(&source, error))?;
    let mut arguments: Vec<OsString> = ARGUMENTS.split(' ').map(OsString::from).collect();
    arguments.extend(["--out-dir".into(), folder.0.clone().into(), source.into()]);

    let bitcode = folder.0.join("probe.bc");
    let outputs = Outputs { folder: &folder.0, bitcode: Bitcode::InOne(&bitcode), metadata: None };
    let device = device_arguments(&Invocation::parse(&arguments)?, &outputs, |_| None);
    succeed(Command::new(&toolchain.rustc).args(device))?;
    succeed(Command::new(&toolchain.rustc).args(&arguments))?;
    let type_ids = succeed(&mut Command::new(folder.0.join("oxisycl_device")))?;

    let request = Request {
        rustc: toolchain.rustc.clone(),
        toolchain: toolchain.commit.clone(),
        key: String::new(),
        modules: vec![bitcode],
        deferred: Vec::new(),
        borrowed: Vec::new(),
        targets: vec!["sm_70".to_owned()],
        float: "contract".to_owned(),
        lanes: "1".to_owned(),
        loses_names: false,
        has_lines: false,
        dump: None,
        time_passes: false,
        folder: folder.0.clone(),
        ptxas: None,
        is_kept: false,
        progress: None,
        refuses_host_captures: false,
        exporting: Vec::new(),
    };
    // They are kernels that no target runs here, and no errors.
    let outcomes = compile::run_uncached(&request).unwrap_or_default();
    let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_>>()?;
    let images: Vec<DeviceImage> = outcomes.into_iter().flat_map(|outcome| outcome.images).collect();
    if images.is_empty() {
        return Err(Failure::new("no kernel was found in a program with three"));
    }
    compare(&images, &type_ids)
}

/// Compares the images of the probe with the host's output. Each line of that is a kernel, with its type's name and the bytes of its id.
fn compare(images: &[DeviceImage], type_ids: &str) -> Result<()> {
    let unsupported = || images.iter().flat_map(|image| &image.unsupported);
    for line in type_ids.lines() {
        let (name, id) = line.split_once(' ').ok_or_else(|| Failure::new("the probe says nothing of its kernels"))?;
        if name.ends_with("Borrowed") {
            let is_refused = |kernel: &UnsupportedKernel| kernel.type_name == name && kernel.reason.contains("capture");
            if !unsupported().any(is_refused) {
                return Err(Failure::new("captured addresses of the host are not recognised"));
            }
            continue;
        }
        let mut kernels = images.iter().flat_map(|image| image.kernels.iter().map(move |kernel| (image, kernel)));
        let Some((image, kernel)) = kernels.find(|(_, kernel)| kernel.type_name == name) else {
            let reason = unsupported().find(|kernel| kernel.type_name == name).map(|kernel| &*kernel.reason);
            return Err(Failure::new(format!("no code for kernel {name}: {}", reason.unwrap_or("it was not found"))));
        };
        if hex(&kernel.type_id) != id {
            let found = hex(&kernel.type_id);
            return Err(Failure::new(format!("kernel {name} has the id {id} on the host, but {found} in its image")));
        }
        if kernel.form != Form::Range(1) || kernel.parameters.size != 24 {
            return Err(Failure::new(format!("kernel {name} is described wrongly: {kernel:?}")));
        }
        if kernel.may_panic != name.ends_with("Checked") {
            return Err(Failure::new(format!("kernel {name}: panics are not recognised")));
        }
        if !image.code.windows(kernel.symbol.len()).any(|part| part == kernel.symbol.as_bytes()) {
            return Err(Failure::new(format!("kernel {name} is not in the code")));
        }
    }
    let knows_its_place =
        images.iter().flat_map(|image| &image.sites).any(|site| format!("{site:?}").contains("main.rs"));
    if !knows_its_place {
        return Err(Failure::new("the places of panics are not recognised"));
    }
    Ok(())
}

fn succeed(command: &mut Command) -> Result<String> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|error| Failure::start(&program, error))?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("{} failed on the probe: {}", program.display(), messages.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A temporary folder, which only this user can enter, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;

        let path = temporary_name(&std::env::temp_dir().join("cargo-sycl-probe"));
        fs::DirBuilder::new().mode(0o700).create(&path).map_err(|error| Failure::file(&path, error))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all::<&Path>(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use oxisycl_image::{ImageTarget, KernelEntry, ParameterLayout};

    use super::*;

    fn image(change: impl FnOnce(&mut KernelEntry)) -> DeviceImage {
        let mut kernel =
            KernelEntry::new("k_plain", [0xab; 16], Form::Range(1), ParameterLayout { size: 24, align: 8 }, "Plain");
        change(&mut kernel);
        DeviceImage {
            target: ImageTarget::Ptx { sm: 70 },
            kernels: vec![kernel],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code: b".entry k_plain".to_vec(),
        }
    }

    #[test]
    fn whatever_differs_is_named() {
        let ids = format!("Plain {}", "ab".repeat(16));
        let fails = |image: DeviceImage, with: &str| {
            let error = compare(&[image], &ids).unwrap_err().to_string();
            assert!(error.contains(with), "{error}");
        };
        // Only the last check fails: a probe without panics has no places of them.
        fails(image(|_| {}), "places of panics");
        fails(image(|kernel| kernel.type_id[0] = 0), "in its image");
        fails(image(|kernel| kernel.type_name = "Other".to_owned()), "not found");
        fails(image(|kernel| kernel.parameters.size = 8), "described wrongly");
        fails(image(|kernel| kernel.may_panic = true), "panics are not recognised");
        let borrowed = format!("Borrowed {}", "ab".repeat(16));
        let error = compare(&[image(|_| {})], &borrowed).unwrap_err().to_string();
        assert!(error.contains("captured addresses"), "{error}");
        fails(image(|kernel| kernel.symbol = "k_other".to_owned()), "not in the code");
    }
}
