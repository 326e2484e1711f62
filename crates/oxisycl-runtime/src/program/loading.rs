//! Loading the images that were chosen: at once, or when no kernel of the device runs.
//!
//! Some drivers wait for running kernels when they load code. On their devices a launch does not wait for that. A thread of the runtime loads the
//! code once the device is quiet (`graph::gate`), and the launch is delayed until then. Invariant: each kernel that is being loaded for a launch
//! ends its [`Load`], whatever the driver does. A launch of the kernel that comes meanwhile gets the same load.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use oxisycl_backend::{BackendError, Device, LoadedKernel};
use oxisycl_types::{BackendKind, ErrorCode, HostEntry};

use super::choose::{self, Query};
use super::compiling;
use super::disk_cache::{DiskCache, EntryKey};
use super::index::Image;
use super::settings::COMPILE_LIMIT;
use super::{KernelKey, Programs};
use crate::graph::{Load, gate_of};
use crate::observe::counters;
use crate::plug_ins::link_unit;
use crate::{Error, Result};

/// The code of a kernel for a launch.
#[derive(Debug)]
pub enum Code {
    /// The code is loaded.
    Ready(Arc<dyn LoadedKernel>),
    /// The code is going to be loaded once no kernel of the device runs.
    Unloaded(Arc<Load>),
}

impl Code {
    /// The code, once it is loaded.
    ///
    /// # Errors
    /// That of loading it.
    pub fn wait(self) -> Result<Arc<dyn LoadedKernel>> {
        match self {
            Self::Ready(kernel) => Ok(kernel),
            Self::Unloaded(load) => load.block(),
        }
    }
}

/// Has a device load an image.
struct Task {
    device: Arc<dyn Device>,
    image: Arc<Image>,
    /// The kernel's name.
    name: String,
    /// Where binaries are kept, and the image's name there.
    disk: Option<(Arc<DiskCache>, EntryKey)>,
    limit: Option<Duration>,
}

impl Task {
    fn run(self) -> compiling::Outcome {
        let Self { device, image, name, disk, limit } = self;
        counters().loads.add(1);
        if let Some((disk, key)) = disk.as_ref().filter(|_| device.info().binary_key.is_some())
            && let Some(binary) = disk.read(key)
        {
            // SAFETY: images come from `register`, whose caller vouches for them. The cache gives only bytes that it was given for
            // this key, from files that no other user can write.
            match unsafe { device.load(&image.image, Some(&binary)) } {
                Ok(module) => return compiling::Outcome::Ended(Ok(module)),
                Err(_) => disk.remove(key),
            }
        }
        compiling::Job { device, image, name, disk }.run(limit)
    }
}

/// The error of a launch whose image was not loaded.
fn not_loaded(device: &dyn Device, name: &str, image: &Image, error: BackendError) -> Error {
    let code = match &error {
        BackendError::Driver { .. } | BackendError::Unsupported { .. } | BackendError::NotCompiled { .. } => {
            ErrorCode::Build
        }
        other => Error::from(other.clone()).code(),
    };
    let (device, target) = (&device.info().name, &image.image.target);
    let message = format!("kernel \"{name}\" on device \"{device}\": its image for {target} was not loaded: {error}");
    Error::with_source(code, message, error)
}

impl Programs {
    fn task(&self, device: &Arc<dyn Device>, image: &Arc<Image>, name: &str) -> Task {
        let info = device.info();
        let key = || EntryKey::new(info, info.binary_key.clone().unwrap_or_default(), &image.image);
        Task {
            device: device.clone(),
            image: image.clone(),
            name: name.to_owned(),
            disk: self.disk.get().map(|disk| (disk.clone(), key())),
            limit: *self.compile_limit.get_or_init(|| Some(COMPILE_LIMIT)),
        }
    }

    /// Loads a kernel of an image on this thread, whatever the device does.
    pub(super) fn load_now(
        &self,
        device: &Arc<dyn Device>,
        name: &str,
        image: &Arc<Image>,
        kernel: usize,
    ) -> Result<Arc<dyn LoadedKernel>> {
        let symbol = &image.image.kernels[kernel].symbol;
        let load = || self.task(device, image, name).run();
        let loaded = self.modules.kernel(device, image, symbol, load);
        loaded.map_err(|error| not_loaded(device.as_ref(), name, image, error))
    }

    /// Loads a kernel of an image, and waits until that is possible.
    pub(super) fn load_choice(
        &self,
        device: &Arc<dyn Device>,
        name: &str,
        image: &Arc<Image>,
        kernel: usize,
    ) -> Result<Arc<dyn LoadedKernel>> {
        self.load_or_ask(device, name, (image, kernel), None)?.wait()
    }

    /// Loads a kernel of an image, the one at that position, if the driver waits for nothing meanwhile. Else a thread is going to load it. `entry` is the
    /// kernel's native code, if that has to stay loaded until then.
    pub(super) fn load_or_ask(
        &self,
        device: &Arc<dyn Device>,
        name: &str,
        (image, kernel): (&Arc<Image>, usize),
        entry: Option<HostEntry>,
    ) -> Result<Code> {
        let Some(gate) = gate_of(device) else { return self.load_now(device, name, image, kernel).map(Code::Ready) };
        let symbol = &image.image.kernels[kernel].symbol;
        if let Some(known) = self.modules.known(device, image, symbol) {
            return known.map(Code::Ready).map_err(|error| not_loaded(device.as_ref(), name, image, error));
        }
        let (load, is_new) = self.modules.load_of(device, image, symbol);
        if !is_new {
            return Ok(Code::Unloaded(load));
        }
        let end = {
            let (modules, load, device) = (self.modules.clone(), load.clone(), device.clone());
            let (image, symbol) = (image.clone(), symbol.clone());
            move |result: Result<Arc<dyn LoadedKernel>>| {
                // First: what comes later finds the kernel, or tries again.
                modules.forget_load(&device, &image, &symbol);
                load.end(result);
            }
        };
        if let Some(loading) = gate.try_begin() {
            let loaded = catch_unwind(AssertUnwindSafe(|| self.load_now(device, name, image, kernel)));
            drop(loading);
            let panicked = |_| Err(not_loaded(device.as_ref(), name, image, compiling::panicked()));
            let loaded = loaded.unwrap_or_else(panicked);
            end(loaded.clone());
            return loaded.map(Code::Ready);
        }
        let (task, modules) = (self.task(device, image, name), self.modules.clone());
        let (for_device, for_image, for_symbol, for_name) =
            (device.clone(), image.clone(), symbol.clone(), name.to_owned());
        let library = entry.and_then(|entry| self.hold_library(entry));
        let end_here = end.clone();
        let job = move || {
            let (device, image) = (for_device, for_image);
            let load = || modules.kernel(&device, &image, &for_symbol, || task.run());
            let loaded = catch_unwind(AssertUnwindSafe(load)).unwrap_or_else(|_| Err(compiling::panicked()));
            end(loaded.map_err(|error| not_loaded(device.as_ref(), &for_name, &image, error)));
            drop(library);
        };
        if let Err(error) = gate.ask(Box::new(job)) {
            let message =
                format!("kernel \"{name}\" on device \"{}\": no thread that loads it: {error}", device.info().name);
            let error = Error::new(ErrorCode::Runtime, message);
            end_here(Err(error.clone()));
            return Err(error);
        }
        Ok(Code::Unloaded(load))
    }

    /// To be called when a queue of a device was made, before it is used. Loads the kernels that are to be loaded before anything runs. It does so for the
    /// first queue of a device whose driver loads code only while no kernel runs. What cannot be loaded is left to the launch.
    pub fn load_ahead(&self, device: &Arc<dyn Device>) {
        // What a test sees of a simulated device must not depend on an earlier process.
        if device.info().backend == BackendKind::Simulated {
            return;
        }
        let Some(gate) = gate_of(device) else { return };
        let Some(wanted) = self.profiles.begin(device, self.disk.get().map(|disk| &**disk)) else { return };
        let Some(_loading) = gate.try_begin() else { return };
        let index = self.registry.index();
        for (key, unit) in index.keys().filter(|(key, _)| wanted.has(key)) {
            let query = Query { name: "", key, host: None, unit };
            let Ok(choice) = choose::choose(&index, device.as_ref(), &query) else { continue };
            let name = &choice.image.image.kernels[choice.kernel].type_name;
            let _ = self.load_now(device, name, &choice.image, choice.kernel);
            if !self.registry.index().has(&choice.image) {
                // It was unregistered meanwhile.
                self.modules.take_kernels(&choice.image, false, &mut Vec::new());
            }
        }
    }

    /// Loads every kernel on the device that it can run, so that no launch has to. Returns how many there are; none on devices that run
    /// the program's own code.
    ///
    /// # Errors
    /// The first error that a launch would fail with: images cannot be read, the driver refuses one, or memory is
    /// exhausted. All other kernels are loaded then.
    pub fn load_all(&self, device: &Arc<dyn Device>) -> Result<usize> {
        if device.info().image_targets.is_empty() {
            return Ok(0);
        }
        let index = self.registry.index();
        let mut n_loaded = 0;
        let mut failure =
            index.errors().next().map(|(unit, error)| choose::unreadable(unit, Some(device.as_ref()), error));
        for (key, bundle) in index.keys() {
            let query = Query { name: "", key, host: None, unit: bundle };
            let Ok(choice) = choose::choose(&index, device.as_ref(), &query) else { continue };
            let name = &choice.image.image.kernels[choice.kernel].type_name;
            match self.load_choice(device, name, &choice.image, choice.kernel) {
                Ok(_) if self.registry.index().has(&choice.image) => n_loaded += 1,
                // It was unregistered meanwhile.
                Ok(_) => self.modules.take_kernels(&choice.image, false, &mut Vec::new()),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        failure.map_or(Ok(n_loaded), Err)
    }

    /// The code of a kernel on the device, which is loaded if it was not; `None` on devices that run the program's own code. A library with the kernel
    /// is not unloaded before what is given is dropped.
    ///
    /// # Errors
    /// What a launch would fail with.
    pub fn load_one(
        &self,
        device: &Arc<dyn Device>,
        key: KernelKey,
        entry: Option<HostEntry>,
        name: &str,
    ) -> Result<Option<Arc<dyn LoadedKernel>>> {
        if device.info().image_targets.is_empty() {
            return Ok(None);
        }
        let unit = entry.and_then(|entry| link_unit::of(entry as *const ()));
        let query = Query { name, key, host: None, unit };
        let choice = choose::choose(&self.registry.index(), device.as_ref(), &query)?;
        let loaded = self.load_choice(device, name, &choice.image, choice.kernel)?;
        if !self.registry.index().has(&choice.image) {
            // It was unregistered meanwhile.
            self.modules.take_kernels(&choice.image, false, &mut Vec::new());
        }
        Ok(Some(loaded))
    }
}
