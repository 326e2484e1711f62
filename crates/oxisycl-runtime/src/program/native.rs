//! Native code of the device compiler. Functions that are linked into the program run on the host in the place of what rustc made of its kernels.
//!
//! A link unit registers a table of such functions with its bundle. Its images of the host have no code but the place of their function. They
//! are chosen as other images are, by target and level, and are held against the program's half of the kernel. Only images of the link unit that
//! has this half count: so what keeps that loaded keeps the function, and unloading it forgets both.
//!
//! Invariant: nothing here is an error. Without an image of a kernel its plain code runs. It also runs if an image is refused: it
//! disagrees with the program, or its function is missing. That is reported once for each bundle.
//!
//! Each thread keeps what its launches have found last, since the table that they share took 4 % of a launch.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::{Device, NativeCode};
use oxisycl_image::{HostLevel, ImageTarget, KernelDescriptor, KernelId};
use parking_lot::Mutex;

use super::choose::{self, Query, Rank, fit};
use super::index::{Candidate, Entry, Index};
use super::launches::{LaunchKey, Launches};
use super::{Programs, query_of};
use crate::output::report;

/// Which code of kernels the host runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostCode {
    /// The best that the program has and the processor runs.
    #[default]
    Auto,
    /// What rustc made.
    Plain,
    /// The best up to a level.
    UpTo(HostLevel),
}

impl HostCode {
    /// The targets that are left of those of a device.
    fn allowed(self, targets: &[ImageTarget]) -> impl Iterator<Item = &ImageTarget> {
        targets.iter().filter(move |target| match (self, target) {
            (Self::Auto, _) => true,
            (Self::UpTo(most), ImageTarget::Host { level, .. }) => *level <= Some(most),
            _ => false,
        })
    }
}

/// Native code that launches have found, and what there is to know before looking for any.
pub(super) struct Natives {
    /// Whether a link unit has registered a table. Stays so.
    are_there: AtomicBool,
    code: OnceLock<HostCode>,
    launches: Launches<Option<NativeCode>>,
    /// The bundles of which an image was refused.
    pub(super) refused: Mutex<Vec<u64>>,
}

/// What a launch has found.
#[derive(Clone, Copy)]
struct Recent {
    generation: u64,
    /// The address of the device's levels.
    levels: *const ImageTarget,
    id: KernelId,
    entry: usize,
    code: Option<NativeCode>,
}

const N_RECENT: usize = 16;

thread_local! {
    /// By the address of the kernel's plain code.
    static RECENT: [Cell<Option<Recent>>; N_RECENT] = const { [const { Cell::new(None) }; N_RECENT] };
}

/// Why an image of the host is not used.
#[derive(Debug)]
pub(super) struct Refusal {
    bundle: u64,
    pub(super) why: String,
}

impl Natives {
    pub(super) const fn new() -> Self {
        Self {
            are_there: AtomicBool::new(false),
            code: OnceLock::new(),
            launches: Launches::new(),
            refused: Mutex::new(Vec::new()),
        }
    }

    /// A table was registered.
    pub(super) fn registered(&self) {
        self.are_there.store(true, Ordering::Release);
    }

    /// Forgets what launches have found.
    pub(super) fn clear(&self) {
        self.launches.clear();
    }

    /// Reports that images of a bundle are not used, the first time.
    fn report(&self, refusal: &Refusal) {
        let mut refused = self.refused.lock();
        if !refused.contains(&refusal.bundle) {
            refused.push(refusal.bundle);
            drop(refused);
            report(&format!(
                "{}; until then the host runs plain code of such kernels, and reports no more of that program or library",
                refusal.why
            ));
        }
    }

    /// The setting; the default if nothing has set it.
    fn code(&self) -> HostCode {
        self.code.get().copied().unwrap_or_default()
    }
}

impl Programs {
    /// Which code of kernels the host runs. Later calls change nothing. Without one it runs the best.
    pub fn set_host_code(&self, code: HostCode) {
        let _ = self.natives.code.set(code);
    }

    /// The native code of the device compiler that a launch on the device runs; `None` if it runs the program's own code.
    #[inline]
    pub fn native(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Option<NativeCode> {
        if !self.natives.are_there.load(Ordering::Acquire) {
            return None;
        }
        let levels = device.native_levels();
        if levels.is_empty() {
            return None;
        }
        let generation = self.natives.launches.generation();
        let (levels, id) = (levels.as_ptr(), descriptor.id);
        let entry = (descriptor.host_entry as *const ()).addr();
        let slot = (entry as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> 32 & (N_RECENT - 1);
        RECENT.with(|recent| match recent[slot].get() {
            Some(known)
                if (known.generation, known.levels, known.entry) == (generation, levels, entry) && known.id == id =>
            {
                known.code
            }
            _ => {
                let code = self.native_of_table(device, descriptor);
                recent[slot].set(Some(Recent { generation, levels, id, entry, code }));
                code
            }
        })
    }

    #[cold]
    fn native_of_table(&self, device: &Arc<dyn Device>, descriptor: &KernelDescriptor) -> Option<NativeCode> {
        let key = LaunchKey::new(device, descriptor);
        self.natives.launches.get(&key).unwrap_or_else(|| self.first_native_launch(device, descriptor, key))
    }

    fn first_native_launch(
        &self,
        device: &Arc<dyn Device>,
        descriptor: &KernelDescriptor,
        key: LaunchKey,
    ) -> Option<NativeCode> {
        // Before anything is looked up: what is unregistered from now on must not be remembered.
        let generation = self.natives.launches.generation();
        let code = self.find_native(device.as_ref(), descriptor).unwrap_or_else(|refusal| {
            self.natives.report(&refusal);
            None
        });
        self.natives.launches.insert(generation, key, device, code);
        code
    }

    /// The native code that a launch on the device runs, or why there is none although an image of it should have been right.
    pub(super) fn find_native(
        &self,
        device: &dyn Device,
        descriptor: &KernelDescriptor,
    ) -> Result<Option<NativeCode>, Refusal> {
        let takes: Vec<ImageTarget> = self.natives.code().allowed(device.native_levels()).cloned().collect();
        let query = query_of(descriptor);
        let Some(unit) = query.unit.filter(|_| !takes.is_empty()) else { return Ok(None) };
        let index = self.registry.index();
        let mut own = index.errors().filter(|(other, _)| other.unit == Some(unit) && other.native.is_some());
        if let Some((other, error)) = own.next() {
            let why = choose::unreadable(other, Some(device), error).to_string();
            return Err(Refusal { bundle: other.number, why });
        }
        let own = index.candidates(&query.key).iter().filter(|candidate| candidate.unit == Some(unit));
        let fitting = own.filter_map(|candidate| Some((fit(&candidate.image.image.target, &takes)?, candidate)));
        let best: Option<(Rank, &Candidate)> = fitting.min_by_key(|(rank, _)| *rank);
        match best {
            Some((_, candidate)) => match candidate.entry {
                Entry::Kernel(kernel) => native_code(&index, candidate, kernel, device, &query)
                    .map(Some)
                    .map_err(|why| Refusal { bundle: candidate.bundle, why }),
                Entry::Unsupported(_) => Ok(None),
            },
            None => Ok(None),
        }
    }
}

/// The function that an image names, or in what it is wrong.
fn native_code(
    index: &Index,
    candidate: &Candidate,
    kernel: usize,
    device: &dyn Device,
    query: &Query<'_>,
) -> Result<NativeCode, String> {
    if let Some(error) = choose::mismatch(candidate, device, query) {
        return Err(error.to_string());
    }
    let image = &candidate.image.image;
    let target = &image.target;
    let wrong = |what: &str| {
        let why = format!("{what} (image target: {target}); build the program anew with `cargo sycl build`");
        choose::not_supported(query, device, &why).to_string()
    };
    let missing = choose::missing(&image.kernels[kernel], device);
    if !missing.is_empty() {
        return Err(wrong(&format!("its native code needs {}, which the device lacks", missing.join(", "))));
    }
    let Some(place) = image.native_index() else {
        return Err(wrong("its image does not name one function of native code"));
    };
    let table = index.native(candidate.bundle);
    match (table.get(place as usize), target) {
        (Some(Some(entry)), ImageTarget::Host { level, .. }) => Ok(NativeCode { entry: *entry, level: *level }),
        _ => Err(wrong(&format!(
            "its image names function {place} of native code, which the table of {} functions lacks",
            table.len()
        ))),
    }
}
