//! What is linked to a program or a dynamic library for its kernels.
//!
//! Collects the bitcode of everything that the crate is made of, has images compiled for each target, and makes the object that
//! registers them. What goes wrong for one target is a warning: the program runs on the host device all the same. [`refusals`] decides what
//! is printed about single kernels.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use oxisycl_compiler::{REPLACED, Registers, Toolchain, registration_object};
use oxisycl_image::DeviceImage;

use super::allowed::Allowed;
use super::captures;
use super::device_arguments;
use super::diagnostic::Reporter;
use super::invocation::Invocation;
use super::native::{self, Blamed, NativeObject};
use super::pass_times;
use super::published::is_published;
use super::refusals::{self, Message};
use super::runtime::registers;
use super::sidecar::{Place, Runtime, Sidecar, outdated};
use crate::compile::{self, Outcome, Progress, Request};
use crate::failure::{Failure, Result};
use crate::files::write_atomically;
use crate::settings::{NATIVE, Settings};
use crate::toolchain;

/// What is linked to a crate for its kernels.
#[derive(Default)]
pub(super) struct Linked {
    /// The object that registers the images, if a target has kernels of the crate.
    registration: Option<Registration>,
    /// The objects with native code of its kernels.
    pub(super) native: Vec<NativeObject>,
}

struct Registration {
    object: PathBuf,
    toolchain: Toolchain,
    images: Vec<DeviceImage>,
    registers: Registers,
}

impl Linked {
    /// The arguments of rustc that link it.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let registration = self.registration.iter().map(|registration| &registration.object);
        let objects = registration.chain(self.native.iter().map(|native| &native.path));
        let argument = |object: &PathBuf| {
            let mut argument = OsString::from("link-arg=");
            argument.push(object);
            ["-C".into(), argument]
        };
        objects.flat_map(argument).collect()
    }

    /// Takes out native code that cannot be linked.
    pub(super) fn drop_native(&mut self, blamed: &[Blamed]) -> Result<()> {
        let Some(registration) = &mut self.registration else { return Ok(()) };
        native::remove(&mut registration.images, &mut self.native, blamed)?;
        registration.write(&self.native)
    }
}

impl Registration {
    fn write(&self, native: &[NativeObject]) -> Result<()> {
        let symbols: Vec<String> = native.iter().map(|object| object.symbol.clone()).collect();
        let Self { object, toolchain, images, registers } = self;
        write_atomically(object, &registration_object(toolchain, images, &symbols, registers)?)
    }
}

/// Compiles what is linked for a crate's kernels. `None` if what they capture is an error, which was reported.
pub(super) fn prepare(
    settings: &Settings,
    (rustc, invocation): (&Path, &Invocation),
    (place, sidecar, runtime): (&Place, &Sidecar, &Runtime),
    allowed: &Allowed,
    reporter: &Reporter,
) -> Result<Option<Linked>> {
    let toolchain = toolchain::ask(rustc)?;
    let closure = Closure::of(place, sidecar, &settings.tool)?;
    let progress = settings.progress.clone();
    let progress = progress.map(|place| Progress { place, crate_name: sidecar.crate_name.clone() });
    let refuses_host_captures = !allowed.host_captures;
    let targets = targets(settings, invocation, &toolchain.host, &sidecar.crate_name, reporter);
    let has_native = targets.iter().any(|target| is_native(target));
    let loses_names = has_native && native::loses_names(invocation, runtime);
    let exporting = if has_native && !loses_names { closure.exporting(runtime, invocation) } else { Vec::new() };
    let request = Request {
        progress,
        refuses_host_captures,
        targets: targets.clone(),
        exporting,
        loses_names,
        ..closure.request(settings, &toolchain, (place, invocation))
    };
    let outcomes = match compile::run(&request) {
        Ok(outcomes) => outcomes,
        Err(found) => {
            captures::report(&found, reporter);
            return Ok(None);
        }
    };
    for (target, outcome) in targets.iter().zip(&outcomes) {
        let times = outcome.as_ref().map_or(&[][..], |outcome| &outcome.times);
        pass_times::table(times, target, &sidecar.crate_name).iter().for_each(|table| reporter.note(table));
    }
    let (images, warnings) = sort(&targets, outcomes, &sidecar.crate_name);
    warnings.iter().for_each(|warning| reporter.warning(warning));
    for message in refusals::messages(&images, settings.are_targets_named) {
        match message {
            Message::Warning(text) => reporter.warning(&text),
            Message::Note(text) => reporter.note(&text),
        }
    }
    let mut images: Vec<DeviceImage> = images.into_iter().flat_map(|(_, images)| images).collect();
    if images.is_empty() {
        return Ok(Some(Linked::default()));
    }
    let native = native::write(&mut images, place)?;
    let registration = Registration { object: place.object(), toolchain, images, registers: registers(runtime)? };
    registration.write(&native)?;
    Ok(Some(Linked { registration: Some(registration), native }))
}

fn is_native(target: &str) -> bool {
    target.starts_with(NATIVE)
}

/// The targets that the crate has code for. Of those that the user named, the ones that it cannot have code for are reported.
fn targets(
    settings: &Settings,
    invocation: &Invocation,
    host: &str,
    crate_name: &str,
    reporter: &Reporter,
) -> Vec<String> {
    let of_devices = || settings.targets.iter().filter(|target| !is_native(target)).cloned().collect();
    // Programs without optimisation are built more often than they run long.
    if !settings.are_targets_named && !device_arguments::is_optimised(invocation) {
        return of_devices();
    }
    let Some(reason) = native::obstacle(invocation, host) else { return settings.targets.clone() };
    for target in settings.targets.iter().filter(|target| is_native(target) && settings.are_targets_named) {
        reporter.warning(&format!("no kernel of crate `{crate_name}` has native code for {target}: {reason}"));
    }
    if !settings.are_targets_named && reason == native::LTO {
        reporter.note(&format!("crate `{crate_name}` has no vector code for processors with AVX2: {reason}"));
    }
    of_devices()
}

/// The images of each target, and what to warn of beside single kernels: once, although targets have most of it in common.
fn sort<'t>(
    targets: &'t [String],
    outcomes: Vec<Result<Outcome>>,
    crate_name: &str,
) -> (Vec<(&'t str, Vec<DeviceImage>)>, Vec<String>) {
    let (mut images, mut warnings, mut failures) = (Vec::new(), Vec::new(), Vec::<(String, Vec<&str>)>::new());
    for (target, outcome) in targets.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                images.push((target.as_str(), outcome.images));
                warnings.extend(outcome.warnings);
            }
            Err(failure) => {
                let failure = failure.to_string();
                match failures.iter_mut().find(|(known, _)| *known == failure) {
                    Some((_, of_targets)) => of_targets.push(target),
                    None => failures.push((failure, vec![target])),
                }
            }
        }
    }
    warnings.sort();
    warnings.dedup();
    warnings.extend(failures.into_iter().map(|(failure, targets)| {
        format!("no kernel of crate `{crate_name}` runs on {}: {failure}", targets.join(", "))
    }));
    (images, warnings)
}

/// The crates whose items the compiler treats in a way of their own. Every program with kernels has each of them.
const OURS: [&str; 2] = ["oxisycl_device", "oxisycl_builtins"];

/// Everything that a crate is made of.
struct Closure {
    /// The crates with bitcode, the crate itself first.
    device: Vec<Place>,
    /// The crates whose device pass was put off.
    deferred: Vec<Place>,
    /// The names of published crates that crates bear which are not published.
    borrowed: Vec<String>,
}

impl Closure {
    fn of(place: &Place, sidecar: &Sidecar, key: &str) -> Result<Self> {
        let mut closure = Self { device: Vec::new(), deferred: Vec::new(), borrowed: Vec::new() };
        let mut seen = HashSet::from([place.clone()]);
        let mut next = vec![(place.clone(), sidecar.clone())];
        let mut ours = HashSet::new();
        while !next.is_empty() {
            let mut found = Vec::new();
            for (place, sidecar) in next {
                // The compiler tells OxiSYCL's items by the name of their crate, which a user's crate must not borrow.
                if OURS.contains(&sidecar.crate_name.as_str()) && !ours.insert(sidecar.crate_name.clone()) {
                    return Err(Failure::new(format!(
                        "two crates of the program have the name `{0}`, expected OxiSYCL's alone: rename the other one, or use one \
                         version of OxiSYCL (`cargo tree -i {0}` shows both)",
                        sidecar.crate_name
                    )));
                }
                // The functions of these it replaces, but not those of a user's crate.
                let is_published =
                    || sidecar.deferred.as_ref().is_some_and(|made| is_published(&sidecar.crate_name, made));
                if REPLACED.contains(&sidecar.crate_name.as_str()) && !is_published() {
                    closure.borrowed.push(sidecar.crate_name.clone());
                }
                for dependency in sidecar.dependencies(&place).filter(|dependency| seen.insert(dependency.clone())) {
                    let Some(sidecar) = Sidecar::read(&dependency, key)? else {
                        return Err(outdated(&format!("{} is missing", dependency.sidecar().display())));
                    };
                    found.push((dependency, sidecar));
                }
                if sidecar.device { &mut closure.device } else { &mut closure.deferred }.push(place);
            }
            next = found;
        }
        closure.borrowed.sort();
        closure.borrowed.dedup();
        Ok(closure)
    }

    /// The libraries with OxiSYCL's crates, whose symbols are there when the program is linked.
    fn exporting(&self, runtime: &Runtime, invocation: &Invocation) -> Vec<PathBuf> {
        match runtime {
            Runtime::Shared(library) => vec![library.clone()],
            _ => self
                .device
                .iter()
                .chain(&self.deferred)
                .filter_map(|place| native::library_of_ours(place, invocation))
                .collect(),
        }
    }

    fn request(
        &self,
        settings: &Settings,
        toolchain: &Toolchain,
        (place, invocation): (&Place, &Invocation),
    ) -> Request {
        // As for the level.
        let default = || if device_arguments::is_optimised(invocation) { "auto" } else { "1" }.to_owned();
        Request {
            rustc: toolchain.rustc.clone(),
            toolchain: toolchain.commit.clone(),
            key: settings.tool.clone(),
            modules: self.device.iter().map(Place::bitcode).collect(),
            deferred: self.deferred.iter().map(Place::sidecar).collect(),
            borrowed: self.borrowed.clone(),
            targets: settings.targets.clone(),
            float: settings.float.clone(),
            lanes: settings.lanes.clone().unwrap_or_else(default),
            loses_names: false,
            has_lines: device_arguments::has_lines(invocation),
            dump: settings.dump.clone(),
            time_passes: settings.time_passes,
            folder: place.folder().to_owned(),
            ptxas: settings.ptxas.clone(),
            is_kept: true,
            progress: None,
            refuses_host_captures: false,
            exporting: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::tests::Scratch;

    fn crate_at(out_dir: &Path, name: &str, device: bool, dependencies: &[&Place]) -> Place {
        let place = Place::new(out_dir, name);
        let dependencies: Vec<Place> = dependencies.iter().copied().cloned().collect();
        if device {
            fs::write(place.bitcode(), "").unwrap();
        }
        Sidecar::new(&place, "k", name, &dependencies, device, None).write(&place).unwrap();
        place
    }

    #[test]
    fn what_goes_wrong_in_the_same_way_for_several_targets_is_told_once() {
        let targets = ["sm_70", "sm_80", "spirv1.2"].map(str::to_owned);
        let outcome = |warnings: &[&str]| {
            let warnings = warnings.iter().map(|text| (*text).to_owned()).collect();
            Ok(Outcome { images: Vec::new(), warnings, deferred: Vec::new(), modules: Vec::new(), times: Vec::new() })
        };
        let (images, warnings) = sort(&targets, vec![outcome(&["b", "a"]), outcome(&[]), outcome(&["b"])], "app");
        let compiled: Vec<&str> = images.iter().map(|(target, _)| *target).collect();
        assert_eq!((compiled, warnings), (vec!["sm_70", "sm_80", "spirv1.2"], vec!["a".to_owned(), "b".to_owned()]));
        let failed = |text: &str| Err(Failure::new(text));
        let (images, warnings) = sort(&targets, vec![failed("x"), failed("y"), failed("x")], "app");
        let expected =
            ["no kernel of crate `app` runs on sm_70, spirv1.2: x", "no kernel of crate `app` runs on sm_80: y"];
        assert_eq!((images.len(), warnings), (0, expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn native_code_is_for_optimised_programs_that_no_tool_looks_at_unless_it_is_named() {
        use crate::settings::{parse_target, tests::settings};

        const HOST: &str = "x86_64-unknown-linux-gnu";
        let native = parse_target("host-v3").unwrap().to_string();
        let all = Settings { targets: vec!["sm_70".to_owned(), native.clone()], ..settings() };
        let has_native = |line: &str, are_targets_named: bool| {
            let line = format!("--crate-name a --crate-type bin {line}");
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let (invocation, settings) =
                (Invocation::parse(&arguments).unwrap(), Settings { are_targets_named, ..all.clone() });
            let found = targets(&settings, &invocation, HOST, "a", &Reporter::new(&invocation));
            assert_eq!(found[0], "sm_70", "{line}");
            found[1..] == [native.clone()]
        };
        for (line, by_default, if_named) in [
            ("", false, true),
            ("-C opt-level=0", false, true),
            ("-C opt-level=3", true, true),
            ("-C opt-level=s -C panic=abort -C strip=symbols -C lto=fat", true, true),
            ("-C opt-level=3 -C instrument-coverage", false, false),
            ("-C opt-level=3 -Cinstrument-coverage=off", true, true),
            ("-C opt-level=3 -Zsanitizer=address", false, false),
            ("-C opt-level=3 -Z sanitizer=thread", false, false),
            ("-C opt-level=3 -C profile-generate", false, false),
            ("-C opt-level=3 -C linker-plugin-lto", false, false),
        ] {
            assert_eq!([has_native(line, false), has_native(line, true)], [by_default, if_named], "{line}");
        }
    }

    #[test]
    fn a_crate_with_the_name_of_one_of_ours_is_refused() {
        let scratch = Scratch::new("spoofed");
        let out_dir = scratch.path().join("deps");
        fs::create_dir_all(super::super::sidecar::device_folder(&out_dir)).unwrap();
        let real = crate_at(&out_dir, "oxisycl_device", true, &[]);
        let alone = crate_at(&out_dir, "alone", true, &[&real]);
        assert!(Closure::of(&alone, &Sidecar::read(&alone, "k").unwrap().unwrap(), "k").is_ok());
        let fake = Place::new(&out_dir, "fake");
        fs::write(fake.bitcode(), "").unwrap();
        Sidecar::new(&fake, "k", "oxisycl_device", &[], true, None).write(&fake).unwrap();
        let app = crate_at(&out_dir, "app", true, &[&fake, &real]);
        let error = Closure::of(&app, &Sidecar::read(&app, "k").unwrap().unwrap(), "k").err().unwrap().to_string();
        assert!(error.contains("two crates") && error.contains("`oxisycl_device`"), "{error}");
    }

    #[test]
    fn the_names_of_published_crates_are_borrowed_by_all_others() {
        use super::super::published::tests::compiled;

        let scratch = Scratch::new("borrowed");
        let out_dir = scratch.path().join("deps");
        fs::create_dir_all(super::super::sidecar::device_folder(&out_dir)).unwrap();
        let registry = scratch.path().join("registry/src/index.crates.io-1949cf8c6b5b557f");
        let crate_of = |stem: &str, name: &str, folder: &Path| {
            let place = Place::new(&out_dir, stem);
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(".cargo-ok"), "").unwrap();
            Sidecar::new(&place, "k", name, &[], false, Some(compiled(name, folder))).write(&place).unwrap();
            place
        };
        let published = crate_of("libm-1", "libm", &registry.join("libm-1.0.0"));
        let path = crate_of("libm-2", "libm", &scratch.path().join("libm"));
        let other = crate_of("math", "math", &scratch.path().join("math"));
        // It depends on OxiSYCL, which the published one does not.
        let with_kernels = crate_at(&out_dir, "half", true, &[]);
        let borrowed = |dependencies: &[&Place]| {
            let app = crate_at(&out_dir, "app", true, dependencies);
            Closure::of(&app, &Sidecar::read(&app, "k").unwrap().unwrap(), "k").unwrap().borrowed
        };
        assert_eq!(borrowed(&[&published, &other]), [""; 0]);
        assert_eq!(borrowed(&[&published, &path]), ["libm"]);
        assert_eq!(borrowed(&[&path, &with_kernels, &published]), ["half", "libm"]);
    }

    #[test]
    fn each_crate_is_there_once_and_the_program_comes_first() {
        let scratch = Scratch::new("closure");
        let out_dir = scratch.path().join("deps");
        fs::create_dir_all(super::super::sidecar::device_folder(&out_dir)).unwrap();
        let types = crate_at(&out_dir, "types", false, &[]);
        let device = crate_at(&out_dir, "device", true, &[&types]);
        let math = crate_at(&out_dir, "math", false, &[&types]);
        let left = crate_at(&out_dir, "left", true, &[&device, &math]);
        let right = crate_at(&out_dir, "right", true, &[&device]);
        let app = crate_at(&out_dir, "app", true, &[&right, &left]);
        let sidecar = Sidecar::read(&app, "k").unwrap().unwrap();
        let closure = Closure::of(&app, &sidecar, "k").unwrap();
        assert_eq!(closure.device, [app.clone(), right, left, device]);
        assert_eq!(closure.deferred, [math.clone(), types]);
        fs::remove_file(math.sidecar()).unwrap();
        let error = Closure::of(&app, &sidecar, "k").err().unwrap().to_string();
        assert!(error.contains("cargo sycl clean"), "{error}");
    }
}
