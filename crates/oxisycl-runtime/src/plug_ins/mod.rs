//! Keeps plug-ins loaded that values of the runtime refer to, where a program and its plug-ins share the runtime of a dynamic library.
//!
//! A command has code, names and places that lie in the library that submitted it. `dlclose` cannot wait for it: destructors run under the
//! dynamic linker's lock, which each new thread needs. So the runtime opens such a library once more, and closes it when the last value that
//! refers to it is gone. A thread of its own does that, since destructors may take long.
//!
//! Invariant: the dynamic linker is never called under the lock of this module, nor by a thread that ends a command. Does nothing where the
//! runtime is linked into one program or library: that is never unloaded.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use oxisycl_types::ErrorCode;
use parking_lot::{Condvar, Mutex, RwLock};
use smallvec::SmallVec;

use self::link_unit::LinkUnit;
use crate::fold_hasher::{AddressMap, FoldHasher};
use crate::{Error, Result, fork};

pub(crate) mod link_unit;
mod source_place;

pub use source_place::SourcePlace;

/// How long a library that nothing refers to is kept. The next command of it needs no call of the dynamic linker then. A thread that has
/// dropped the last value can return from code of the library meanwhile.
const GRACE: Duration = Duration::from_millis(20);

/// Keeps the library of a plug-in loaded.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    _opened: Arc<Opened>,
}

/// The plug-ins that a value has code of, which stay loaded. It has to be the last one of the value's fields that is dropped. As
/// small as an address, since commands without plug-ins have it, too.
#[derive(Clone, Default, Debug)]
pub struct PlugIns(Option<Box<SmallVec<[Loaded; 2]>>>);

/// A library that was opened once more. Dropped when nothing refers to it.
#[derive(Debug)]
struct Opened {
    unit: LinkUnit,
    handle: Handle,
}

/// What `dlopen` gave. Each is closed once.
#[derive(Clone, Copy, Debug)]
struct Handle(NonNull<c_void>);

// SAFETY: the functions of the dynamic linker may be called with it by any thread.
unsafe impl Send for Handle {}

// SAFETY: as above; a shared reference gives nothing else.
unsafe impl Sync for Handle {}

/// Whether there may be plug-ins that use this runtime, as one of the numbers below. No lock: constructors of libraries ask, too.
static IS_SHARED: AtomicU8 = AtomicU8::new(UNKNOWN);

const UNKNOWN: u8 = 0;
const SHARED: u8 = 1;
const ALONE: u8 = 2;

/// The library that an address lies in; `None` for one that is never unloaded.
static KNOWN: RwLock<AddressMap<Option<Weak<Opened>>>> = RwLock::new(AddressMap::with_hasher(FoldHasher::new()));

/// The texts of plug-ins, by their hashes.
static TEXTS: RwLock<AddressMap<&'static str>> = RwLock::new(AddressMap::with_hasher(FoldHasher::new()));

static STATE: Mutex<State> = Mutex::new(State { open: Vec::new(), closing: Vec::new(), has_thread: false });

/// Whether the process ends: nothing is waited for, and nothing unloaded any more.
static ENDS: AtomicBool = AtomicBool::new(false);

static CHANGED: Condvar = Condvar::new();

struct State {
    open: Vec<(LinkUnit, Weak<Opened>)>,
    /// PlugIns that nothing refers to, and since when.
    closing: Vec<(LinkUnit, Handle, Instant)>,
    has_thread: bool,
}

/// To be called before anything runs code of the library that holds the runtime by itself. That library is never unloaded from then on.
///
/// # Errors
/// If the process has another shared runtime. Crates that both have are then those of the first one for all plug-ins, with its state.
pub(crate) fn keep_runtime_loaded() -> Result<()> {
    if is_shared()
        && let Some(other) = link_unit::earlier_shared_runtime()
    {
        return Err(Error::new(
            ErrorCode::Platform,
            format!(
                "the process has another build of OxiSYCL's shared runtime, in \"{other}\": build the program and its plug-ins with one \
                 version, the same features and one compiler"
            ),
        ));
    }
    link_unit::keep_runtime_loaded().map_err(|message| Error::new(ErrorCode::Platform, message))
}

/// To be called when the process begins to end, before libraries are unloaded for that reason.
pub(crate) fn process_ends() {
    ENDS.store(true, Ordering::Relaxed);
}

pub(crate) fn is_process_ending() -> bool {
    ENDS.load(Ordering::Relaxed)
}

/// Whether plug-ins may use this runtime. Then commands keep them loaded, and unloading one waits for nothing.
#[inline]
pub(crate) fn is_shared() -> bool {
    match IS_SHARED.load(Ordering::Relaxed) {
        SHARED => true,
        ALONE => false,
        _ => ask_whether_shared(),
    }
}

/// Whether programs and libraries can use this runtime although it is not linked into them: it lies in a dynamic library of Rust. Only such
/// a library has Rust's own functions, as this one, in its table of symbols.
#[inline(never)]
pub fn is_in_a_library_of_rust() -> bool {
    let this = is_in_a_library_of_rust as *const ();
    link_unit::is_in_table_of_symbols(this) && link_unit::of_runtime() != link_unit::of_program()
}

#[cold]
fn ask_whether_shared() -> bool {
    let is_shared = is_in_a_library_of_rust();
    IS_SHARED.store(if is_shared { SHARED } else { ALONE }, Ordering::Relaxed);
    is_shared
}

impl Loaded {
    /// Keeps the library loaded that the address lies in, as it is now. `None` if it is never unloaded, or cannot be opened.
    #[inline]
    pub(crate) fn with(address: *const ()) -> Option<Self> {
        if is_shared() { Self::look_up(address) } else { None }
    }

    /// Keeps the library loaded that has the methods of a trait object.
    #[inline]
    pub(crate) fn with_methods<T: ?Sized>(object: &T) -> Option<Self> {
        if is_shared() { Self::look_up(methods_of(object)) } else { None }
    }

    #[cold]
    fn look_up(address: *const ()) -> Option<Self> {
        let known = KNOWN.read().get(&address.addr()).map(|opened| opened.as_ref().map(Weak::upgrade));
        let opened = match known {
            Some(None) => return None,
            Some(Some(Some(opened))) => opened,
            // Not known, or nothing has referred to the library meanwhile.
            None | Some(Some(None)) => {
                let opened = match find(address) {
                    Found::Stays => None,
                    Found::Opened(opened) => Some(opened),
                    Found::Nothing => return None,
                };
                let mut known = KNOWN.write();
                if known.len() == known.capacity() {
                    known.retain(|_, opened| opened.as_ref().is_none_or(|opened| opened.strong_count() > 0));
                }
                known.insert(address.addr(), opened.as_ref().map(Arc::downgrade));
                opened?
            }
        };
        Some(Self { _opened: opened })
    }
}

impl PlugIns {
    /// The plug-in that has the methods of a trait object, if it is a plug-in.
    pub fn of_methods<T: ?Sized>(object: &T) -> Self {
        let mut plug_ins = Self::default();
        plug_ins.add_methods(object);
        plug_ins
    }

    /// Keeps the library loaded that the address lies in.
    #[inline]
    pub(crate) fn add(&mut self, address: *const ()) {
        self.extend(Loaded::with(address));
    }

    /// Keeps the library loaded that has the methods of a trait object.
    #[inline]
    pub(crate) fn add_methods<T: ?Sized>(&mut self, object: &T) {
        self.extend(Loaded::with_methods(object));
    }

    /// Keeps all of these loaded.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.0.iter().flat_map(|others| others.iter()).for_each(|loaded| self.push(loaded.clone()));
    }

    /// Whether all that was added is never unloaded.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    fn extend(&mut self, loaded: Option<Loaded>) {
        if let Some(loaded) = loaded {
            self.push(loaded);
        }
    }

    #[cold]
    fn push(&mut self, loaded: Loaded) {
        let all = self.0.get_or_insert_default();
        if !all.iter().any(|other| Arc::ptr_eq(&other._opened, &loaded._opened)) {
            all.push(loaded);
        }
    }
}

/// The address of the table of methods of a trait object.
fn methods_of<T: ?Sized>(object: &T) -> *const () {
    let pointer = std::ptr::from_ref(object);
    const { assert!(size_of::<*const T>() == size_of::<[*const (); 2]>(), "a trait object") };
    // SAFETY: both types have one size. Today's compilers make a pointer to a trait object of two addresses, the second of which is the table.
    // Nothing is read through it. In another order, the library of the object's memory would be looked for, and there is none.
    let [_, methods] = unsafe { std::mem::transmute_copy::<*const T, [*const (); 2]>(&pointer) };
    methods
}

/// The text in memory that is never unloaded, whatever it lies in.
#[inline]
pub(crate) fn lasting(text: &'static str) -> &'static str {
    if is_shared() && Loaded::with(text.as_ptr().cast()).is_some() { copied(text) } else { text }
}

/// There is one copy of equal texts, so that a plug-in that is loaded again needs no more.
fn copied(text: &str) -> &'static str {
    let mut key = xxhash_rust::xxh3::xxh3_64(text.as_bytes()) as usize;
    loop {
        match TEXTS.read().get(&key) {
            Some(known) if *known == text => return known,
            None => break,
            Some(_) => {}
        }
        // Another text has the same hash.
        key = key.wrapping_add(1);
    }
    let mut texts = TEXTS.write();
    loop {
        match texts.get(&key) {
            Some(known) if *known == text => return known,
            None => break,
            Some(_) => key = key.wrapping_add(1),
        }
    }
    let lasting: &'static str = Box::leak(text.into());
    texts.insert(key, lasting);
    lasting
}

/// What an address lies in.
enum Found {
    /// Something that is never unloaded.
    Stays,
    /// A library that is open once more.
    Opened(Arc<Opened>),
    /// No library, or one that the system does not open.
    Nothing,
}

fn find(address: *const ()) -> Found {
    let Some((unit, path)) = link_unit::find(address) else { return Found::Nothing };
    if Some(unit) == link_unit::of_program() || Some(unit) == link_unit::of_runtime() {
        return Found::Stays;
    }
    // A child of a fork has no thread that closes, and may have a lock that is never free.
    if fork::is_child() {
        return Found::Nothing;
    }
    if let Some(opened) = STATE.lock().find(unit) {
        return Found::Opened(opened);
    }
    let Some(handle) = link_unit::open_again(&path).map(Handle) else { return Found::Nothing };
    let mut state = STATE.lock();
    state.start_thread();
    if let Some(opened) = state.find(unit) {
        // Another thread was faster.
        state.close_later(unit, handle);
        return Found::Opened(opened);
    }
    let opened = Arc::new(Opened { unit, handle });
    state.open.retain(|(_, opened)| opened.strong_count() > 0);
    state.open.push((unit, Arc::downgrade(&opened)));
    Found::Opened(opened)
}

impl State {
    /// The library as it is open, or is about to be closed.
    fn find(&mut self, unit: LinkUnit) -> Option<Arc<Opened>> {
        if let Some(opened) =
            self.open.iter().filter(|(other, _)| *other == unit).find_map(|(_, opened)| opened.upgrade())
        {
            return Some(opened);
        }
        let position = self.closing.iter().position(|(other, ..)| *other == unit)?;
        let (unit, handle, _) = self.closing.swap_remove(position);
        let opened = Arc::new(Opened { unit, handle });
        self.open.push((unit, Arc::downgrade(&opened)));
        Some(opened)
    }

    fn close_later(&mut self, unit: LinkUnit, handle: Handle) {
        self.closing.push((unit, handle, Instant::now()));
        CHANGED.notify_one();
    }

    /// Without the thread, libraries stay loaded. The next time that one is opened it is tried again.
    fn start_thread(&mut self) {
        if !self.has_thread {
            let thread = std::thread::Builder::new().name("oxisycl-closer".to_owned());
            self.has_thread = thread.spawn(close_libraries).is_ok();
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if !fork::is_child() {
            STATE.lock().close_later(self.unit, self.handle);
        }
    }
}

fn close_libraries() {
    let mut state = STATE.lock();
    loop {
        let is_due = |(_, _, since): &mut (LinkUnit, Handle, Instant)| since.elapsed() >= GRACE;
        let due: Vec<_> = state.closing.extract_if(.., is_due).collect();
        if due.is_empty() {
            match state.closing.iter().map(|(_, _, since)| *since + GRACE).min() {
                Some(time) => drop(CHANGED.wait_until(&mut state, time)),
                None => CHANGED.wait(&mut state),
            }
            continue;
        }
        drop(state);
        for (_, Handle(handle), _) in due {
            // At the end of the process the system closes all.
            if !is_process_ending() {
                // SAFETY: `open_again` gave it, and it is closed once. What referred to the library is gone.
                unsafe { link_unit::close(handle) };
            }
        }
        state = STATE.lock();
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;

    use super::*;

    #[test]
    fn equal_texts_are_copied_once() {
        let elsewhere = ["one", "write"].join("::");
        let (first, again, other) = (copied("one::write"), copied(&elsewhere), copied("one::writes"));
        assert_eq!((first, other), ("one::write", "one::writes"));
        assert!(std::ptr::eq(first, again));
        // A program has its texts for as long as it runs.
        let own = "of the program";
        assert!(std::ptr::eq(lasting(own), own) && Loaded::with(own.as_ptr().cast()).is_none());
    }

    #[test]
    #[cfg_attr(miri, ignore = "no dynamic linker")]
    fn the_methods_of_an_object_are_not_where_the_object_is() {
        let (first, second): (Box<dyn Any>, Box<dyn Any>) = (Box::new(1u32), Box::new(2u32));
        assert_eq!(methods_of(&*first), methods_of(&*second));
        assert!(link_unit::of(methods_of(&*first)).is_some(), "in the program");
        assert_eq!(link_unit::of(std::ptr::from_ref(&*first).cast()), None, "in memory of the heap");
        let mut plug_ins = PlugIns::default();
        plug_ins.add_methods(&*first);
        assert!(plug_ins.is_empty() && size_of::<PlugIns>() == size_of::<usize>());
    }
}
