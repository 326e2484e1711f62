//! Which runtime the kernels of a link unit are registered with: its own, or that of a dynamic library of Rust.
//!
//! A library of its own runtime must not register with the first one of the process, so those functions are hidden. Those of another
//! library have Rust's names, which hold the version of OxiSYCL, its features and the compiler. A library that is loaded beside another
//! version is refused by the dynamic linker, or has the runtime that it was built for.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};
use oxisycl_compiler::Registers;

use super::invocation::Invocation;
use super::sidecar::{Place, Runtime, Sidecar};
use crate::failure::{Failure, Result};

/// The crate of the runtime.
const RUNTIME: &str = "oxisycl_runtime";

/// What its functions are called for other libraries.
const FUNCTIONS: [&str; 3] = [
    "register_images_of_another_library",
    "register_native_of_another_library",
    "unregister_images_of_another_library",
];

/// Which runtime a crate gets from those that it depends on.
pub(super) fn of_dependencies(crate_name: &str, dependencies: &[(Place, Sidecar)]) -> Runtime {
    let mut found = if crate_name == RUNTIME { Runtime::Own } else { Runtime::None };
    for (place, sidecar) in dependencies {
        match sidecar.runtime(place) {
            Runtime::None => {}
            Runtime::Own => found = Runtime::Own,
            // The linker takes the crates in such a library from there, for the crates that name them as well.
            shared => return shared,
        }
    }
    found
}

/// Which runtime the users of a crate get.
pub(super) fn for_users(invocation: &Invocation, own: &Runtime) -> Runtime {
    let is_dynamic = invocation.crate_types().iter().all(|kind| *kind == "dylib") && !invocation.is_program();
    match (own, invocation.out_dir()) {
        (Runtime::Own, Some(out_dir)) if is_dynamic => Runtime::Shared(library(invocation, out_dir)),
        _ => own.clone(),
    }
}

/// The file of a dynamic library.
pub(super) fn library(invocation: &Invocation, out_dir: &Path) -> PathBuf {
    out_dir.join(format!("{}{}{}", std::env::consts::DLL_PREFIX, invocation.stem(), std::env::consts::DLL_SUFFIX))
}

/// The functions that register images.
///
/// # Errors
/// If a library that should have them has not.
pub(super) fn registers(runtime: &Runtime) -> Result<Registers> {
    let Runtime::Shared(library) = runtime else { return Ok(Registers::own()) };
    let bytes = fs::read(library).map_err(|error| Failure::file(library, error))?;
    let file = object::File::parse(&*bytes)
        .map_err(|error| Failure::new(format!("{}: it cannot be read: {error}", library.display())))?;
    let [register, register_native, unregister] = FUNCTIONS.map(|function| {
        // With its length before it, so that no longer name has it.
        let mangled = format!("{}{function}", function.len());
        let mut names = file.dynamic_symbols().filter_map(|symbol| symbol.name().ok());
        names.find(|name| name.contains(RUNTIME) && name.contains(&mangled)).map(str::to_owned)
    });
    match (register, register_native, unregister) {
        (Some(register), Some(register_native), Some(unregister)) => {
            Ok(Registers { register, register_native, unregister, is_hidden: false })
        }
        _ => Err(Failure::new(format!(
            "{}: expected the functions {FUNCTIONS:?} of {RUNTIME}, found none: use `oxisycl-dylib`, or a dynamic library that has \
             `oxisycl` as a dependency",
            library.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn invocation(line: &str) -> Invocation {
        Invocation::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>()).unwrap()
    }

    fn dependency(name: &str, runtime: Runtime) -> (Place, Sidecar) {
        let place = Place::new("/t/debug/deps".as_ref(), name);
        let sidecar = Sidecar::new(&place, "k", name, &[], false, None).with_runtime(&place, runtime);
        (place, sidecar)
    }

    #[test]
    fn a_dynamic_library_of_rust_shares_its_runtime() {
        let shared = || Runtime::Shared("/t/debug/deps/libengine.so".into());
        assert_eq!(of_dependencies("oxisycl_runtime", &[]), Runtime::Own);
        assert_eq!(of_dependencies("app", &[dependency("libc", Runtime::None)]), Runtime::None);
        let own = [dependency("oxisycl", Runtime::Own), dependency("libc", Runtime::None)];
        assert_eq!(of_dependencies("engine", &own), Runtime::Own);
        // Crates of the library, which others name, too.
        let both = [dependency("oxisycl", Runtime::Own), dependency("engine", shared())];
        assert_eq!(of_dependencies("plugin", &both), shared());

        for (line, expected) in [
            ("--crate-name engine --crate-type dylib --out-dir /t/debug/deps", shared()),
            ("--crate-name engine --crate-type dylib --crate-type rlib --out-dir /t/debug/deps", Runtime::Own),
            ("--crate-name engine --crate-type dylib --test --out-dir /t/debug/deps", Runtime::Own),
            ("--crate-name engine --crate-type lib --out-dir /t/debug/deps", Runtime::Own),
            ("--crate-name engine --crate-type cdylib --out-dir /t/debug/deps", Runtime::Own),
        ] {
            assert_eq!(for_users(&invocation(line), &Runtime::Own), expected, "{line}");
        }
        let other = Runtime::Shared("/t/debug/deps/libother.so".into());
        let line = "--crate-name engine --crate-type dylib --out-dir /t/debug/deps";
        assert_eq!(for_users(&invocation(line), &other), other);
        assert_eq!(for_users(&invocation(line), &Runtime::None), Runtime::None);
    }

    #[test]
    fn a_library_without_the_functions_is_an_error() {
        let this = std::env::current_exe().unwrap();
        let error = registers(&Runtime::Shared(this)).unwrap_err().to_string();
        assert!(error.contains("register_images_of_another_library") && error.contains("oxisycl-dylib"), "{error}");
        assert!(registers(&Runtime::Own).unwrap().is_hidden);
    }
}
