//! What the wrapper leaves beside each crate for the crates that use it.
//!
//! Owns the folder `.oxisycl` beside cargo's `deps`, and the names in it. A sidecar is written last, when everything that it names is
//! there, and is removed first. Does not run anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};

/// Changes when a field or the folder does: then everything is compiled again, instead of being missed.
pub(crate) const VERSION: u32 = 3;

/// What is known of a crate that was compiled through the wrapper.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Sidecar {
    version: u32,
    /// The tool that made its device code.
    key: String,
    /// The crate.
    pub(crate) crate_name: String,
    /// Whether the crate, or one that it depends on, is the device library. Only then was there a device pass.
    pub(crate) device: bool,
    /// The files of the crates that it depends on directly; relative to the sidecar's folder if they are in it.
    dependencies: Vec<PathBuf>,
    /// How to run the device pass later, if a kernel turns out to need it.
    pub(crate) deferred: Option<Deferred>,
    /// Which runtime the crates that use this one get.
    runtime: Runtime,
}

/// The runtime that kernels are registered with.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) enum Runtime {
    /// There is none in the crate, nor in those that it depends on.
    #[default]
    None,
    /// Each program and each library that the crate is linked to has its own.
    Own,
    /// The one in this dynamic library of Rust, for everything that uses the library.
    Shared(PathBuf),
}

/// A command line of rustc that was not run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Deferred {
    /// The compiler.
    pub(crate) rustc: PathBuf,
    /// The host's arguments.
    pub(crate) arguments: Vec<String>,
    /// Where it ran.
    pub(crate) directory: PathBuf,
    /// What cargo tells crates in the environment.
    pub(crate) environment: BTreeMap<String, String>,
}

impl Deferred {
    /// The folder of cargo's outputs, as the arguments name it.
    fn outputs(&self) -> Option<String> {
        let position = self.arguments.iter().position(|argument| argument.starts_with("--out-dir"))?;
        let out_dir = match self.arguments[position].strip_prefix("--out-dir=") {
            Some(out_dir) => out_dir,
            None => self.arguments.get(position + 1)?,
        };
        Some(self.directory.join(out_dir).parent()?.to_str()?.to_owned())
    }

    /// How to run it where the sidecar lies now. A target folder may have been renamed or copied, and cargo takes what is in it to be up to date.
    pub(crate) fn moved_to(mut self, place: &Place) -> (Self, Moved) {
        let now = place.outputs().to_str().filter(|_| place.outputs().is_absolute());
        let moved = Moved(self.outputs().zip(now.map(str::to_owned)).filter(|(from, to)| from != to));
        self.arguments.iter_mut().chain(self.environment.values_mut()).for_each(|text| *text = moved.apply(text));
        (self, moved)
    }
}

/// A folder of cargo's outputs that has moved, and where it is now; `None` if it is where it was.
#[derive(Debug)]
pub(crate) struct Moved(Option<(String, String)>);

impl Moved {
    /// A text in which paths into the folder are such where it is now.
    pub(crate) fn apply(&self, text: &str) -> String {
        let Some((from, to)) = &self.0 else { return text.to_owned() };
        let mut parts = text.split(from.as_str());
        let mut moved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // A folder whose name only begins like it is another.
            let is_it = part.is_empty() || part.starts_with(std::path::is_separator);
            moved += if is_it { to } else { from };
            moved += part;
        }
        moved
    }
}

/// Where the sidecar of a crate and everything beside it lies.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place {
    folder: PathBuf,
    stem: String,
}

/// The name of the folder of sidecars. It stands beside programs, and no crate has a name with a dot.
const FOLDER: &str = ".oxisycl";

/// The folder of sidecars for a folder of cargo's outputs.
pub(crate) fn device_folder(outputs: &Path) -> PathBuf {
    outputs.parent().unwrap_or(outputs).join(FOLDER)
}

impl Place {
    /// The place for a crate whose outputs with this stem go to the folder.
    pub(crate) fn new(out_dir: &Path, stem: &str) -> Self {
        Self { folder: device_folder(out_dir), stem: stem.to_owned() }
    }

    /// The place of the crate that a library's file is of.
    pub(crate) fn of_library(library: &Path) -> Option<Self> {
        let stem = library.file_stem()?.to_str()?.strip_prefix("lib")?;
        Some(Self::new(library.parent()?, stem))
    }

    /// The place with this sidecar.
    pub(crate) fn of_sidecar(sidecar: &Path) -> Option<Self> {
        let stem = sidecar.file_name()?.to_str()?.strip_suffix(".json")?.to_owned();
        Some(Self { folder: sidecar.parent()?.to_owned(), stem })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn sidecar(&self) -> PathBuf {
        self.file("", "json")
    }

    /// The bitcode of the device pass.
    pub(crate) fn bitcode(&self) -> PathBuf {
        self.file("", "bc")
    }

    /// The metadata of the device pass.
    pub(crate) fn metadata(&self) -> PathBuf {
        self.file("lib", "rmeta")
    }

    /// The metadata in the form of a library, which programs want.
    pub(crate) fn library(&self) -> PathBuf {
        self.file("lib", "rlib")
    }

    /// The bitcode of a device pass that was put off, made by a tool of this key.
    pub(crate) fn deferred_bitcode(&self, key: &str) -> PathBuf {
        self.file("", &format!("{key}.bc"))
    }

    /// The folder of the bitcode of a crate that is checked.
    pub(crate) fn units(&self) -> PathBuf {
        self.file("", "units")
    }

    /// What is linked to the host's code.
    pub(crate) fn object(&self) -> PathBuf {
        self.file("", "o")
    }

    /// The native code of a kernel, by its number, which is linked to the host's code, too.
    pub(crate) fn native_object(&self, number: usize) -> PathBuf {
        self.file("", &format!("{number}.o"))
    }

    /// Held while a deferred device pass runs.
    pub(crate) fn lock(&self) -> PathBuf {
        self.file("", "lock")
    }

    /// The folder that has those of cargo's outputs.
    fn outputs(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// A path as it stays right when the target folder moves.
    fn relative(&self, path: PathBuf) -> PathBuf {
        path.strip_prefix(self.outputs()).map(Path::to_owned).unwrap_or(path)
    }

    fn file(&self, prefix: &str, extension: &str) -> PathBuf {
        // Not `with_extension`: a stem may contain a dot.
        self.folder.join(format!("{prefix}{}.{extension}", self.stem))
    }

    /// Takes away what an earlier compilation left.
    pub(crate) fn clear(&self) -> Result<()> {
        let mut paths = vec![self.sidecar(), self.bitcode(), self.metadata(), self.library(), self.object()];
        let made_later = format!("{}.", self.stem);
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_made = |name: &str| name.starts_with(&made_later) && (name.ends_with(".bc") || name.ends_with(".o"));
            if name.to_str().is_some_and(is_made) {
                paths.push(entry.path());
            }
        }
        for path in paths {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(Failure::file(&path, error)),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Sidecar {
    /// Describes a crate at a place.
    pub(crate) fn new(
        place: &Place,
        key: &str,
        crate_name: &str,
        dependencies: &[Place],
        device: bool,
        deferred: Option<Deferred>,
    ) -> Self {
        let relative = |path: PathBuf| match path.strip_prefix(&place.folder) {
            Ok(name) => name.to_owned(),
            Err(_) => path,
        };
        let dependencies = dependencies.iter().map(|dependency| relative(dependency.sidecar())).collect();
        let (key, crate_name) = (key.to_owned(), crate_name.to_owned());
        Self { version: VERSION, key, crate_name, device, dependencies, deferred, runtime: Runtime::None }
    }

    /// Says which runtime the crates that use this one get.
    pub(crate) fn with_runtime(mut self, place: &Place, runtime: Runtime) -> Self {
        self.runtime = match runtime {
            Runtime::Shared(library) => Runtime::Shared(place.relative(library)),
            other => other,
        };
        self
    }

    /// Which runtime the crates that use this one get.
    pub(crate) fn runtime(&self, place: &Place) -> Runtime {
        match &self.runtime {
            Runtime::Shared(library) => Runtime::Shared(place.outputs().join(library)),
            other => other.clone(),
        }
    }

    /// Writes it, whole or not at all.
    pub(crate) fn write(&self, place: &Place) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(|error| Failure::new(error.to_string()))?;
        crate::files::write_atomically(&place.sidecar(), &text)
    }

    /// Reads the sidecar of a crate; `None` if there is none.
    ///
    /// # Errors
    /// If the file is not one of this tool with these settings, or files that it names are gone. Cargo takes the crate to be up to date,
    /// and it is not.
    pub(crate) fn read(place: &Place, key: &str) -> Result<Option<Self>> {
        let path = place.sidecar();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::file(&path, error)),
        };
        let sidecar = serde_json::from_slice::<Self>(&bytes).ok().filter(|sidecar| sidecar.version == VERSION);
        // Without device code, nothing in it depends on the tool.
        let Some(sidecar) = sidecar.filter(|sidecar| sidecar.key == key || !sidecar.device) else {
            return Err(outdated(&format!("{} is of another version of this tool", path.display())));
        };
        if sidecar.device && !place.bitcode().is_file() {
            return Err(outdated(&format!("{} is missing", place.bitcode().display())));
        }
        Ok(Some(sidecar))
    }

    /// The places of the crates that it depends on directly.
    pub(crate) fn dependencies(&self, place: &Place) -> impl Iterator<Item = Place> {
        self.dependencies.iter().filter_map(|dependency| Place::of_sidecar(&place.folder.join(dependency)))
    }
}

/// Why the device code of a crate cannot be used.
pub(crate) fn outdated(what: &str) -> Failure {
    Failure::new(format!(
        "{what}, but cargo takes its crate to be up to date: run `cargo sycl clean`, then build again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::tests::{Scratch, damaged};

    fn places(folder: &Path) -> (Place, Place, Place) {
        let deps = folder.join("debug/deps");
        fs::create_dir_all(device_folder(&deps)).unwrap();
        let elsewhere = Place::new(&folder.join("x86/debug/deps"), "far-3");
        (Place::new(&deps, "app-1"), Place::new(&deps, "near-2"), elsewhere)
    }

    #[test]
    fn a_crate_is_found_by_the_file_of_its_library() {
        for (library, folder, stem) in [
            ("/t/debug/deps/libkernels-12.rmeta", "/t/debug/.oxisycl", "kernels-12"),
            ("/t/debug/deps/libkernels.so", "/t/debug/.oxisycl", "kernels"),
            ("/t/debug/examples/libshared.dylib", "/t/debug/.oxisycl", "shared"),
        ] {
            let place = Place::of_library(library.as_ref()).unwrap();
            assert_eq!((place.folder().to_str(), place.stem.as_str()), (Some(folder), stem));
        }
        assert_eq!(Place::of_library("/t/debug/deps/app".as_ref()), None);
    }

    #[test]
    fn dependencies_are_found_again_also_when_the_target_folder_moved() {
        let scratch = Scratch::new("sidecar-moved");
        let (app, near, far) = places(scratch.path());
        Sidecar::new(&app, "k", "app", &[near, far.clone()], false, None).write(&app).unwrap();
        let moved = scratch.path().join("moved");
        fs::rename(scratch.path().join("debug"), &moved).unwrap();
        let app = Place::new(&moved.join("deps"), "app-1");
        let sidecar = Sidecar::read(&app, "k").unwrap().unwrap();
        let found: Vec<_> = sidecar.dependencies(&app).collect();
        assert_eq!(found, [Place::new(&moved.join("deps"), "near-2"), far]);
    }

    #[test]
    fn a_sidecar_is_absent_or_right() {
        let scratch = Scratch::new("sidecar-right");
        let (app, ..) = places(scratch.path());
        assert_eq!(Sidecar::read(&app, "k"), Ok(None));
        fs::write(app.bitcode(), "").unwrap();
        let sidecar = Sidecar::new(&app, "k", "app", &[], true, None);
        sidecar.write(&app).unwrap();
        assert_eq!(Sidecar::read(&app, "k"), Ok(Some(sidecar)));
        let other = Sidecar::read(&app, "other").unwrap_err().to_string();
        assert!(other.contains("cargo sycl clean"), "{other}");
        fs::write(app.sidecar(), "{}").unwrap();
        assert!(Sidecar::read(&app, "k").is_err());
        app.clear().unwrap();
        assert_eq!(Sidecar::read(&app, "k"), Ok(None));
    }

    #[test]
    fn the_library_of_a_shared_runtime_is_found_again_also_when_the_target_folder_moved() {
        let scratch = Scratch::new("sidecar-runtime");
        let (app, near, far) = places(scratch.path());
        let library = scratch.path().join("debug/deps/libnear.so");
        let write = |place: &Place, runtime: Runtime| {
            fs::create_dir_all(place.folder()).unwrap();
            Sidecar::new(place, "k", "near", &[], false, None).with_runtime(place, runtime).write(place).unwrap();
        };
        write(&near, Runtime::Shared(library.clone()));
        write(&far, Runtime::Shared(library.clone()));
        write(&app, Runtime::Own);
        let read = |place: &Place| Sidecar::read(place, "k").unwrap().unwrap().runtime(place);
        assert_eq!([read(&near), read(&far)], [Runtime::Shared(library.clone()), Runtime::Shared(library)]);
        assert_eq!(read(&app), Runtime::Own);
        fs::rename(scratch.path().join("debug"), scratch.path().join("moved")).unwrap();
        let near = Place::new(&scratch.path().join("moved/deps"), "near-2");
        assert_eq!(read(&near), Runtime::Shared(scratch.path().join("moved/deps/libnear.so")));
    }

    #[test]
    fn a_pass_that_was_put_off_has_the_paths_of_a_target_folder_that_moved() {
        let deferred = |outputs: &str| Deferred {
            rustc: "/old/debug/rustc".into(),
            arguments: [
                "--crate-name".to_owned(),
                "far".to_owned(),
                "--out-dir".to_owned(),
                format!("{outputs}/deps"),
                "-Ldependency=/old/debug2/deps".to_owned(),
                format!("near={outputs}/deps/libnear-2.rmeta"),
            ]
            .into(),
            directory: "/registry/far".into(),
            environment: [("OUT_DIR".to_owned(), format!("{outputs}/build/far/out"))].into(),
        };
        let place = Place::new("/new/debug/deps".as_ref(), "far-3");
        let (now, moved) = deferred("/old/debug").moved_to(&place);
        assert_eq!(now, deferred("/new/debug"));
        assert_eq!([moved.apply("/old/debug"), moved.apply("a /old/debug/b")], ["/new/debug", "a /new/debug/b"]);
        let (same, stays) = now.clone().moved_to(&place);
        assert_eq!((same, stays.apply("/old/debug/build").as_str()), (now, "/old/debug/build"));
    }

    #[test]
    fn bitcode_that_was_deleted_is_an_error_that_says_what_to_do() {
        let scratch = Scratch::new("sidecar-deleted");
        let (app, ..) = places(scratch.path());
        Sidecar::new(&app, "k", "app", &[], true, None).write(&app).unwrap();
        let error = Sidecar::read(&app, "k").unwrap_err().to_string();
        assert!(error.contains("app-1.bc is missing") && error.contains("cargo sycl clean"), "{error}");
        fs::write(app.bitcode(), "").unwrap();
        assert!(Sidecar::read(&app, "k").unwrap().is_some());
    }

    #[test]
    fn a_sidecar_of_any_bytes_is_read_or_refused_with_what_to_do() {
        let scratch = Scratch::new("sidecar-damaged");
        let (app, near, far) = places(scratch.path());
        fs::write(app.bitcode(), "").unwrap();
        let arguments = vec!["--crate-name".to_owned(), "app".to_owned()];
        let deferred = Deferred {
            rustc: "/bin/rustc".into(),
            arguments,
            directory: "/w".into(),
            environment: [("OUT_DIR".to_owned(), "/o".to_owned())].into(),
        };
        Sidecar::new(&app, "k", "app", &[near, far], true, Some(deferred)).write(&app).unwrap();
        let bytes = fs::read(app.sidecar()).unwrap();
        let (mut n_read, n_cases) = (0, 1_000);
        for number in 0..n_cases {
            fs::write(app.sidecar(), damaged(&bytes, number)).unwrap();
            match Sidecar::read(&app, "k") {
                Ok(sidecar) => {
                    // Whatever it names, the places are below some folder or are left out.
                    assert!(sidecar.unwrap().dependencies(&app).count() <= 3);
                    n_read += 1;
                }
                Err(failure) => assert!(failure.to_string().contains("cargo sycl clean"), "{failure}"),
            }
        }
        assert!(n_read > n_cases / 50 && n_read < n_cases / 2, "{n_read}");
    }

    #[test]
    fn nothing_of_an_earlier_compilation_stays() {
        let scratch = Scratch::new("sidecar-clear");
        let (app, near, _) = places(scratch.path());
        for path in
            [app.sidecar(), app.bitcode(), app.deferred_bitcode("k"), app.deferred_bitcode("old"), near.bitcode()]
        {
            fs::write(path, "").unwrap();
        }
        app.clear().unwrap();
        let left: Vec<_> = fs::read_dir(app.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, [near.bitcode()]);
    }
}
