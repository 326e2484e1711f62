//! What is linked to a program or a dynamic library for its kernels.
//!
//! Collects the bitcode of everything that the crate is made of, has images compiled for each target, and makes the object that
//! registers them. What goes wrong for one target is a warning: the program runs on the host device all the same.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread;

use oxisycl_compiler::{Toolchain, registration_object};
use oxisycl_image::DeviceImage;

use super::diagnostic::Reporter;
use super::sidecar::{Place, Sidecar, outdated};
use crate::compile::{self, Outcome, Request};
use crate::failure::{Failure, Result};
use crate::files::write_atomically;
use crate::settings::Settings;

/// The object that registers the crate's images; `None` if no target has kernels of it.
pub(crate) fn object(
    settings: &Settings,
    rustc: &Path,
    place: &Place,
    sidecar: &Sidecar,
    reporter: &Reporter,
) -> Result<Option<PathBuf>> {
    let toolchain = Toolchain::of(rustc)?;
    let closure = Closure::of(place, sidecar, &settings.tool)?;
    let requests: Vec<Request> =
        settings.targets.iter().map(|target| closure.request(settings, &toolchain, place, target)).collect();
    let outcomes: Vec<Result<Outcome>> = thread::scope(|scope| {
        let compilations: Vec<_> = requests.iter().map(|request| scope.spawn(|| compile::run(request))).collect();
        let died = || Err(Failure::new("the thread that waits for the compiler panicked"));
        compilations.into_iter().map(|compilation| compilation.join().unwrap_or_else(|_| died())).collect()
    });
    let mut images: Vec<DeviceImage> = Vec::new();
    for (target, outcome) in settings.targets.iter().zip(outcomes) {
        match outcome {
            Ok(outcome) => {
                outcome.warnings.iter().for_each(|warning| reporter.warning(warning));
                images.extend(outcome.images);
            }
            Err(failure) => reporter.warning(&format!(
                "no kernel of crate `{}` runs on {target}, only on the host device: {failure}",
                sidecar.crate_name
            )),
        }
    }
    if images.is_empty() {
        return Ok(None);
    }
    let object = place.object();
    write_atomically(&object, &registration_object(&toolchain, &images)?)?;
    Ok(Some(object))
}

/// Everything that a crate is made of.
struct Closure {
    /// The crates with bitcode, the crate itself first.
    device: Vec<Place>,
    /// The crates whose device pass was put off.
    deferred: Vec<Place>,
}

impl Closure {
    fn of(place: &Place, sidecar: &Sidecar, key: &str) -> Result<Self> {
        let mut closure = Self { device: Vec::new(), deferred: Vec::new() };
        let mut seen = HashSet::from([place.clone()]);
        let mut next = vec![(place.clone(), sidecar.clone())];
        while !next.is_empty() {
            let mut found = Vec::new();
            for (place, sidecar) in next {
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
        Ok(closure)
    }

    fn request(&self, settings: &Settings, toolchain: &Toolchain, place: &Place, target: &str) -> Request {
        Request {
            rustc: toolchain.rustc.clone(),
            toolchain: toolchain.commit.clone(),
            key: settings.tool.clone(),
            modules: self.device.iter().map(Place::bitcode).collect(),
            deferred: self.deferred.iter().map(Place::sidecar).collect(),
            target: target.to_owned(),
            float: settings.float.clone(),
            dump: settings.dump.clone(),
            folder: place.folder().to_owned(),
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
