//! Native code of kernels, which is linked into the program beside the code that rustc makes of them.
//!
//! Owns what a link has to be for that, and the objects. Which kernels have such code is the compiler's matter.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use object::{Object, ObjectSymbol};
use oxisycl_compiler::native_symbol;
use oxisycl_image::{DeviceImage, ImageTarget, KernelEntry, UnsupportedKernel, user_name};

use super::invocation::Invocation;
use super::sidecar::{Place, Runtime};
use crate::failure::{Failure, Result};
use crate::files::write_atomically;

/// The one triple that native code is for.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The crates of OxiSYCL that kernels call, and some of whose functions use statics. Their native code calls these functions.
const OURS: [&str; 3] = ["oxisycl", "oxisycl_device", "oxisycl_runtime"];

/// A reason that the user may not know of.
pub(super) const LTO: &str = "link-time optimisation by the linker may take the names away that it refers to";

/// Whether rustc takes the names of Rust's functions away before it links, as it does where it optimises a program as a whole. Those of dynamic
/// libraries stay, and the standard library is one beside a runtime that is.
pub(super) fn loses_names(invocation: &Invocation, runtime: &Runtime) -> bool {
    let is_whole = invocation.codegen("lto").is_some_and(|value| !["off", "no", "n", "false"].contains(&value));
    is_whole && !matches!(runtime, Runtime::Shared(_))
}

/// The reason why native code cannot be linked into the crate. `host` is the triple that rustc compiles for by itself.
pub(super) fn obstacle(invocation: &Invocation, host: &str) -> Option<String> {
    if invocation.codegen("linker-plugin-lto").is_some_and(|value| !["no", "n", "off"].contains(&value)) {
        return Some(LTO.to_owned());
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

/// The native code of a kernel for a level, to be linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NativeObject {
    pub(super) path: PathBuf,
    /// The function in it.
    pub(super) symbol: String,
    /// The kernel, as the user knows it.
    kernel: String,
}

/// Writes the native code in images as objects to link. The images then have the numbers of the functions in the table of these objects' symbols.
pub(super) fn write(images: &mut [DeviceImage], place: &Place) -> Result<Vec<NativeObject>> {
    let mut objects = Vec::new();
    for image in images {
        let Some(symbol) = symbol(image) else { continue };
        let path = place.native_object(objects.len());
        write_atomically(&path, &image.code)?;
        image.code = code(objects.len())?;
        objects.push(NativeObject { path, symbol, kernel: user_name(&image.kernels[0].type_name).to_owned() });
    }
    Ok(objects)
}

/// The symbol of the native code of an image; `None` if it has none.
fn symbol(image: &DeviceImage) -> Option<String> {
    let ImageTarget::Host { level: Some(level), .. } = image.target else { return None };
    let [kernel] = &image.kernels[..] else { return None };
    Some(native_symbol(&kernel.symbol, level))
}

/// What stands in an image for the function of this number.
fn code(number: usize) -> Result<Vec<u8>> {
    let number = u32::try_from(number);
    number.map(DeviceImage::native_code).map_err(|_| Failure::new("too many kernels have native code"))
}

/// Native code that cannot be linked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Blamed {
    object: NativeObject,
    /// What the linker does not find, as far as it can be told.
    missing: Vec<String>,
}

impl Blamed {
    fn reason(&self) -> String {
        let missing: Vec<String> = self.missing.iter().map(|symbol| format!("`{symbol}`")).collect();
        match &missing[..] {
            [] => "the linker refuses its native code".to_owned(),
            _ => format!("it needs {}, which the linker does not find", missing.join(" and ")),
        }
    }
}

impl fmt::Display for Blamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.object.kernel, self.reason())
    }
}

/// The objects that a linker names in what it said when it failed, and which of the symbols that they need.
pub(super) fn blamed(objects: &[NativeObject], said: &str) -> Result<Vec<Blamed>> {
    let is_named = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || "_$".contains(c);
        said.match_indices(name).any(|(at, _)| {
            let (before, after) = (&said[..at], &said[at + name.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    let named = objects.iter().filter(|object| is_named(&object.path.to_string_lossy()));
    named
        .map(|object| {
            let bytes = fs::read(&object.path).map_err(|error| Failure::file(&object.path, error))?;
            let missing = undefined(&bytes).into_iter().filter(|symbol| is_named(symbol)).collect();
            Ok(Blamed { object: object.clone(), missing })
        })
        .collect()
}

/// The symbols that an object needs from others.
fn undefined(bytes: &[u8]) -> Vec<String> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let symbols = file.symbols().filter(|symbol| symbol.is_undefined()).filter_map(|symbol| symbol.name().ok());
    symbols.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Takes native code out of images and objects. The images say why, and the rest get other numbers.
pub(super) fn remove(images: &mut [DeviceImage], objects: &mut Vec<NativeObject>, blamed: &[Blamed]) -> Result<()> {
    objects.retain(|object| !blamed.iter().any(|blamed| blamed.object == *object));
    for image in images {
        let Some(symbol) = symbol(image) else { continue };
        match blamed.iter().find(|blamed| blamed.object.symbol == symbol) {
            Some(blamed) => {
                let kernels = std::mem::take(&mut image.kernels);
                let unsupported = |kernel: KernelEntry| {
                    let KernelEntry { type_id, form, type_name, location, .. } = kernel;
                    let place = match location {
                        place if place.file.is_empty() => String::new(),
                        place => format!(" (the kernel is at {}:{})", place.file, place.line),
                    };
                    UnsupportedKernel { type_id, form, type_name, reason: blamed.reason() + &place }
                };
                image.unsupported.extend(kernels.into_iter().map(unsupported));
                image.code = Vec::new();
                image.sites = Vec::new();
            }
            None => {
                let number = objects.iter().position(|object| object.symbol == symbol);
                image.code = code(number.ok_or_else(|| Failure::new(format!("{symbol} has no object")))?)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use oxisycl_image::{Form, HostLevel, ParameterLayout, SourceLocation};

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
            ("-C lto", None),
            ("-C lto=thin", None),
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
    fn names_are_lost_where_rustc_optimises_a_program_as_a_whole() {
        let lost = |line: &str, runtime: Runtime| {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            loses_names(&Invocation::parse(&arguments).unwrap(), &runtime)
        };
        for (line, expected) in
            [("", false), ("-C lto=off", false), ("-C lto=no", false), ("-C lto", true), ("-Clto=thin", true)]
        {
            assert_eq!(lost(line, Runtime::Own), expected, "{line}");
            assert!(!lost(line, Runtime::Shared("/t/liboxisycl_dylib.so".into())), "{line}");
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
        let mut objects = write(&mut images, &place).unwrap();
        let symbols: Vec<&str> = objects.iter().map(|object| &*object.symbol).collect();
        assert_eq!(symbols, ["__oxisycl_native_v3_k_a", "__oxisycl_native_v3_k_b"]);
        let written: Vec<Vec<u8>> = objects.iter().map(|object| fs::read(&object.path).unwrap()).collect();
        assert_eq!(written, [b"a", b"b"]);
        assert_eq!([&images[0], &images[3]].map(DeviceImage::native_index), [Some(0), Some(1)]);
        assert_eq!(images[1..3], [refused.clone(), ptx.clone()]);

        let path = |number: usize| objects[number].path.display().to_string();
        assert_eq!(blamed(&objects, &format!("cannot find {}x", path(0))).unwrap(), [], "another file");
        let found = blamed(&objects, &format!("undefined symbol: x\n>>> {}:(function f)", path(0))).unwrap();
        assert_eq!(found, [Blamed { object: objects[0].clone(), missing: Vec::new() }]);
        images[0].kernels[0].location = SourceLocation { file: "src/main.rs".to_owned(), line: 3, column: 1 };
        let all = objects.clone();
        let found = [Blamed { missing: vec!["x".to_owned()], ..found[0].clone() }];
        remove(&mut images, &mut objects, &found).unwrap();
        assert_eq!(objects, all[1..]);
        assert_eq!(images[1..3], [refused, ptx]);
        assert_eq!([&images[0], &images[3]].map(DeviceImage::native_index), [None, Some(0)]);
        let [kernel] = &images[0].unsupported[..] else { panic!("{:?}", images[0]) };
        assert_eq!(kernel.reason, "it needs `x`, which the linker does not find (the kernel is at src/main.rs:3)");
        assert_eq!(found[0].to_string(), "kernel `app::k`: it needs `x`, which the linker does not find");

        place.clear().unwrap();
        assert!(!all.iter().any(|object| object.path.exists()), "they are of the last link alone");
    }
}
