//! Native code of kernels, which is linked into the program beside the code that rustc makes of them.
//!
//! Owns what a link has to be for that, and the objects. Which kernels have such code is the compiler's matter.

use std::path::{Path, PathBuf};

use oxisycl_compiler::native_symbol;
use oxisycl_image::{DeviceImage, ImageTarget};

use super::invocation::Invocation;
use super::sidecar::Place;
use crate::failure::{Failure, Result};
use crate::files::write_atomically;

/// The one triple that native code is for.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The crates of OxiSYCL that kernels call, and some of whose functions use statics. Their native code calls these functions.
const OURS: [&str; 3] = ["oxisycl", "oxisycl_device", "oxisycl_runtime"];

/// The reason why native code cannot be linked into the crate. `host` is the triple that rustc compiles for by itself.
pub(super) fn obstacle(invocation: &Invocation, host: &str) -> Option<String> {
    let lto = invocation.codegen("lto").filter(|value| !["off", "no", "n", "false"].contains(value));
    let plugin_lto = invocation.codegen("linker-plugin-lto").filter(|value| !["no", "n", "off"].contains(value));
    if lto.or(plugin_lto).is_some() {
        return Some("link-time optimisation takes the names away that it refers to".to_owned());
    }
    if invocation.codegen("instrument-coverage").is_some_and(|value| !["no", "n", "off"].contains(&value)) {
        return Some("it would not be counted in the coverage".to_owned());
    }
    if invocation.values("-Z").any(|value| value.starts_with("sanitizer")) {
        return Some("a sanitizer would not see what it does".to_owned());
    }
    if invocation.codegen("profile-generate").is_some() {
        return Some("it would not be counted in the profile".to_owned());
    }
    if let Some(model) = invocation.codegen("code-model") {
        return Some(format!("its addresses are not for the code model {model}"));
    }
    let triple = invocation.values("--target").next_back().unwrap_or(host);
    (triple != host || host != TRIPLE)
        .then(|| format!("the program is for {triple}, and it can only be made for and on {TRIPLE}"))
}

/// The archive of a crate with the host's code, if it is one of [`OURS`].
pub(super) fn library_of_ours(place: &Place, invocation: &Invocation) -> Option<PathBuf> {
    let archive = place.library();
    let name = archive.file_name()?;
    let crate_name = name.to_str()?.strip_prefix("lib")?.split(['-', '.']).next()?;
    if !OURS.contains(&crate_name) {
        return None;
    }
    let folders = invocation.values("-L").filter_map(|value| value.strip_prefix("dependency="));
    folders.map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

/// Writes the native code in images as objects to link. The images then have the numbers of the functions in the table of these symbols.
pub(super) fn write(images: &mut [DeviceImage], place: &Place) -> Result<(Vec<String>, Vec<PathBuf>)> {
    let (mut symbols, mut objects) = (Vec::new(), Vec::new());
    for image in images {
        let ImageTarget::Host { level: Some(level), .. } = image.target else { continue };
        let [kernel] = &image.kernels[..] else { continue };
        let number = u32::try_from(symbols.len());
        let number = number.map_err(|_| Failure::new(format!("{} kernels have native code", symbols.len())))?;
        let object = place.native_object(symbols.len());
        write_atomically(&object, &image.code)?;
        symbols.push(native_symbol(&kernel.symbol, level));
        objects.push(object);
        image.code = DeviceImage::native_code(number);
    }
    Ok((symbols, objects))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;

    use oxisycl_image::{Form, HostLevel, KernelEntry, ParameterLayout};

    use super::*;
    use crate::files::tests::Scratch;

    #[test]
    fn native_code_needs_a_link_that_finds_its_names() {
        let found = |line: &str, host: &str| {
            let line = format!("--crate-name a --crate-type bin {line}");
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            obstacle(&Invocation::parse(&arguments).unwrap(), host)
        };
        let other = "x86_64-unknown-linux-musl";
        assert!(found("", other).unwrap().contains(other));
        for (line, expected) in [
            ("", None),
            ("-C opt-level=3 -C lto=off --target x86_64-unknown-linux-gnu", None),
            ("-C lto", Some("link-time optimisation")),
            ("-C lto=thin", Some("link-time optimisation")),
            ("-Clinker-plugin-lto", Some("link-time optimisation")),
            ("-C instrument-coverage", Some("coverage")),
            ("-Zsanitizer=thread", Some("sanitizer")),
            ("-C profile-generate", Some("profile")),
            ("-C code-model=large", Some("code model large")),
            ("--target aarch64-unknown-linux-gnu", Some("for aarch64-unknown-linux-gnu")),
        ] {
            let found = found(line, TRIPLE);
            match (expected, &found) {
                (None, None) => {}
                (Some(part), Some(reason)) if reason.contains(part) => {}
                _ => panic!("{line}: expected {expected:?}, found {found:?}"),
            }
        }
    }

    #[test]
    fn our_libraries_are_found_where_rustc_finds_them() {
        let scratch = Scratch::new("native-library");
        let deps = scratch.path().join("deps");
        fs::create_dir_all(&deps).unwrap();
        let line = format!("--crate-name a --crate-type bin -L native=/n -L dependency={}", deps.display());
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let invocation = Invocation::parse(&arguments).unwrap();
        let [ours, other] = ["oxisycl_device-1", "oxisycl_devices-1"].map(|stem| Place::new(&deps, stem));
        assert_eq!(library_of_ours(&ours, &invocation), None, "it has no code yet");
        for name in ["liboxisycl_device-1.rlib", "liboxisycl_devices-1.rlib"] {
            fs::write(deps.join(name), "").unwrap();
        }
        assert_eq!(library_of_ours(&ours, &invocation), Some(deps.join("liboxisycl_device-1.rlib")));
        assert_eq!(library_of_ours(&other, &invocation), None);
    }

    #[test]
    fn images_of_hosts_get_their_numbers_and_the_others_keep_their_code() {
        let scratch = Scratch::new("native");
        let place = Place::new(scratch.path(), "app-1");
        fs::create_dir_all(place.folder()).unwrap();
        let image = |target: ImageTarget, symbol: &str, code: &[u8]| DeviceImage {
            target,
            kernels: vec![KernelEntry::new(
                symbol,
                [1; 16],
                Form::Range(1),
                ParameterLayout { size: 8, align: 8 },
                "app::k",
            )],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code: code.to_vec(),
        };
        let host = || ImageTarget::Host { triple: "t".to_owned(), level: Some(HostLevel::V3) };
        let refused = DeviceImage { kernels: Vec::new(), ..image(host(), "none", b"") };
        let ptx = image(ImageTarget::Ptx { sm: 70 }, "k_0", b"ptx");
        let mut images = [image(host(), "k_a", b"a"), refused.clone(), ptx.clone(), image(host(), "k_b", b"b")];
        let (symbols, objects) = write(&mut images, &place).unwrap();
        assert_eq!(symbols, ["__oxisycl_native_v3_k_a", "__oxisycl_native_v3_k_b"]);
        let written: Vec<Vec<u8>> = objects.iter().map(|object| fs::read(object).unwrap()).collect();
        assert_eq!(written, [b"a", b"b"]);
        assert_eq!([&images[0], &images[3]].map(DeviceImage::native_index), [Some(0), Some(1)]);
        assert_eq!(images[1..3], [refused, ptx]);
        place.clear().unwrap();
        assert!(!objects.iter().any(|object| object.exists()), "they are of the last link alone");
    }
}
