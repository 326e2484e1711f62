//! Images that devices have loaded.
//!
//! Invariants: a device loads an image once, whichever threads ask for it at the same time; all of them get the kernel or the
//! failure. A failure of the code itself is final; another one, such as lack of memory, is tried again by the next launch.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Weak};

use oxisycl_backend::{BackendError, Device, LoadedKernel, Module};
use parking_lot::Mutex;

use super::compiling;
use super::index::Image;
use crate::fold_hasher::FoldHasher;
use crate::graph::Load;

/// The images that devices have loaded, by image and device.
pub(super) struct Modules {
    slots: Mutex<HashMap<SlotKey, Arc<Slot>, FoldHasher>>,
    /// Kernels that are being loaded for launches which do not wait for that.
    loads: Mutex<HashMap<LoadKey, Arc<Load>>>,
}

/// An image on a device, which the thread that loads it keeps, and a symbol.
type LoadKey = (SlotKey, String);

/// The addresses of device and image, which the slot keeps from being used again.
type SlotKey = (usize, usize);

struct Slot {
    device: Weak<dyn Device>,
    image: Arc<Image>,
    /// Held while the device loads the image.
    state: Mutex<State>,
    /// How many attempts to load have ended.
    n_attempts: AtomicU64,
}

enum State {
    Untried,
    Loaded {
        module: Arc<dyn Module>,
        kernels: HashMap<String, Arc<dyn LoadedKernel>>,
    },
    Failed(BackendError),
    /// The driver has not answered in time, and launches fail with the error until it has.
    Late {
        error: BackendError,
        answer: Receiver<compiling::Result>,
    },
}

impl State {
    /// Takes the answer of a driver that was late, if it is there.
    fn take_answer(&mut self) {
        let Self::Late { answer, .. } = self else { return };
        let answer = match answer.try_recv() {
            Ok(answer) => answer,
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => Err(compiling::panicked()),
        };
        *self = match answer {
            Ok(module) => Self::Loaded { module, kernels: HashMap::new() },
            Err(error) => Self::Failed(error),
        };
    }
}

impl Modules {
    pub(super) fn new() -> Self {
        let slots = Mutex::new(HashMap::with_hasher(FoldHasher::new()));
        Self { slots, loads: Mutex::default() }
    }

    /// A kernel of an image on a device, which `load` has to be called for unless that was done.
    pub(super) fn kernel(
        &self,
        device: &Arc<dyn Device>,
        image: &Arc<Image>,
        symbol: &str,
        load: impl FnOnce() -> compiling::Outcome,
    ) -> Result<Arc<dyn LoadedKernel>, BackendError> {
        let slot = self.slot(device, image);
        let n_attempts = slot.n_attempts.load(Ordering::Acquire);
        let mut state = slot.state.lock();
        state.take_answer();
        if let State::Late { error, .. } = &*state {
            return Err(error.clone());
        }
        if let State::Failed(error) = &*state {
            // It failed while this thread waited for it, or would fail again.
            if slot.n_attempts.load(Ordering::Acquire) != n_attempts || is_final(error) {
                return Err(error.clone());
            }
            *state = State::Untried;
        }
        if let State::Untried = *state {
            let result = load();
            slot.n_attempts.fetch_add(1, Ordering::AcqRel);
            *state = match result {
                compiling::Outcome::Ended(Ok(module)) => State::Loaded { module, kernels: HashMap::new() },
                compiling::Outcome::Ended(Err(error)) => {
                    *state = State::Failed(error.clone());
                    return Err(error);
                }
                compiling::Outcome::Late { error, answer } => {
                    *state = State::Late { error: error.clone(), answer };
                    return Err(error);
                }
            };
        }
        let State::Loaded { module, kernels } = &mut *state else { unreachable!("it was loaded above") };
        if let Some(kernel) = kernels.get(symbol) {
            return Ok(kernel.clone());
        }
        let kernel = module.kernel(symbol)?;
        kernels.insert(symbol.to_owned(), kernel.clone());
        Ok(kernel)
    }

    /// Whether a driver goes on with an image that it did not compile in time.
    pub(super) fn is_late(&self, device: &Arc<dyn Device>, image: &Arc<Image>) -> bool {
        let slot = self.slots.lock().get(&slot_key(device, image)).cloned();
        slot.is_some_and(|slot| {
            let mut state = slot.state.lock();
            state.take_answer();
            matches!(*state, State::Late { .. })
        })
    }

    /// A kernel of an image on a device, or the error of a launch, without asking the driver. `None` if that has to be asked, or another thread is doing so.
    pub(super) fn known(
        &self,
        device: &Arc<dyn Device>,
        image: &Arc<Image>,
        symbol: &str,
    ) -> Option<Result<Arc<dyn LoadedKernel>, BackendError>> {
        let slot = self.slots.lock().get(&slot_key(device, image))?.clone();
        let mut state = slot.state.try_lock()?;
        state.take_answer();
        match &*state {
            State::Loaded { kernels, .. } => kernels.get(symbol).cloned().map(Ok),
            State::Failed(error) if is_final(error) => Some(Err(error.clone())),
            State::Late { error, .. } => Some(Err(error.clone())),
            State::Untried | State::Failed(_) => None,
        }
    }

    /// The load of a kernel that a thread is going to load, and whether it is a new one, which the caller has to [end](Self::forget_load).
    pub(super) fn load_of(&self, device: &Arc<dyn Device>, image: &Arc<Image>, symbol: &str) -> (Arc<Load>, bool) {
        let mut loads = self.loads.lock();
        let mut is_new = false;
        let load = loads.entry((slot_key(device, image), symbol.to_owned())).or_insert_with(|| {
            is_new = true;
            Load::new()
        });
        (load.clone(), is_new)
    }

    /// Called before a load ends.
    pub(super) fn forget_load(&self, device: &Arc<dyn Device>, image: &Arc<Image>, symbol: &str) {
        self.loads.lock().remove(&(slot_key(device, image), symbol.to_owned()));
    }

    fn slot(&self, device: &Arc<dyn Device>, image: &Arc<Image>) -> Arc<Slot> {
        let key = slot_key(device, image);
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(&key) {
            return slot.clone();
        }
        // Modules of devices that are gone; dropped after the lock.
        let gone: Vec<_> = slots.extract_if(|_, slot| slot.device.strong_count() == 0).collect();
        let slot = Arc::new(Slot {
            device: Arc::downgrade(device),
            image: image.clone(),
            state: Mutex::new(State::Untried),
            n_attempts: AtomicU64::new(0),
        });
        slots.insert(key, slot.clone());
        drop(slots);
        drop(gone);
        slot
    }

    /// Gives away what commands may still hold of an image, and of its variants, that a link unit has taken back. The image is forgotten unless another
    /// link unit has it; then new commands get other handles of its kernels.
    pub(super) fn take_kernels(
        &self,
        image: &Arc<Image>,
        is_registered: bool,
        kernels: &mut Vec<Arc<dyn LoadedKernel>>,
    ) {
        let is_it = |slot: &Arc<Slot>| {
            Arc::ptr_eq(&slot.image, image) || slot.image.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, image))
        };
        // Dropped without the lock: a module may have to wait for its device.
        let slots: Vec<Arc<Slot>> = {
            let mut slots = self.slots.lock();
            if is_registered {
                // New launches make other variants.
                let of_variants = slots.extract_if(|_, slot| is_it(slot) && slot.image.of.is_some());
                let mut taken: Vec<_> = of_variants.map(|(_, slot)| slot).collect();
                taken.extend(slots.values().filter(|slot| is_it(slot)).cloned());
                taken
            } else {
                slots.extract_if(|_, slot| is_it(slot)).map(|(_, slot)| slot).collect()
            }
        };
        for slot in slots {
            if let State::Loaded { kernels: loaded, .. } = &mut *slot.state.lock() {
                kernels.extend(loaded.drain().map(|(_, kernel)| kernel));
            }
        }
    }
}

fn slot_key(device: &Arc<dyn Device>, image: &Arc<Image>) -> SlotKey {
    (Arc::as_ptr(device).addr(), Arc::as_ptr(image).addr())
}

/// Whether the same image would fail in the same way again.
fn is_final(error: &BackendError) -> bool {
    matches!(error, BackendError::Driver { .. } | BackendError::Unsupported { .. } | BackendError::NotCompiled { .. })
}
