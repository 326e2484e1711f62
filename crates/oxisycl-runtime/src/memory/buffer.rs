//! A buffer's allocations, and the state of its data: which allocation holds the newest bytes of each region, and which
//! commands use them.

use std::alloc::Layout;
use std::any::Any;
use std::fmt;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_backend::{Device, Memory, MemoryId, MemoryInfo, UsmKind};
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use super::{PageState, PointerInfo, pointer_info, register, unregister};
use crate::graph::{HeldBuffer, Node};
use crate::ids::BufferId;
use crate::observe::counters;
use crate::plug_ins::{Loaded, SourcePlace, lasting};
use crate::state::{AllocationIdx, AllocationSet, Region, RegionMap};
use crate::{Error, Result};

/// Storage of a fixed size that is accessible on any number of devices.
pub struct BufferCore {
    /// Identity, for messages.
    pub id: BufferId,
    /// Where the user made it, for messages.
    pub created: SourcePlace,
    /// Extent in three dimensions; the innermost in **bytes**, so that reinterpreted accesses are exact.
    pub extent: [usize; 3],
    /// Page size, in the same units.
    pub page: [usize; 3],
    /// Whether the user chose the page size; else one page is the whole buffer.
    pub has_pages: bool,
    /// Size and alignment of every allocation.
    pub layout: Layout,
    state: Mutex<BufferState>,
    elements: Elements,
    labels: Mutex<Labels>,
}

/// What a buffer's elements are, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Elements {
    /// The type's name.
    pub name: &'static str,
    /// The type's size in bytes.
    pub size: usize,
    /// How many dimensions the buffer has.
    pub dimensions: u8,
}

impl Elements {
    /// Bytes in three dimensions.
    pub const BYTES: Self = Self { name: "u8", size: 1, dimensions: 3 };
}

/// What changes about a buffer and is asked when a command fails. Its lock is taken last, and nothing is locked under it.
#[derive(Default)]
struct Labels {
    /// The user's name for it.
    name: Option<&'static str>,
    /// Where its allocations begin.
    addresses: SmallVec<[usize; 2]>,
}

/// The changeable part of a buffer, under its lock.
pub struct BufferState {
    /// How many command groups or accessors are being made.
    n_open: usize,
    allocations: SmallVec<[Option<Allocation>; 2]>,
    /// Who uses each region, and where its newest bytes are.
    pub map: RegionMap<PageState>,
}

/// One allocation of a buffer, in one physical memory.
pub struct Allocation {
    /// The memory it lives in.
    pub memory: MemoryId,
    /// First byte.
    pub pointer: NonNull<u8>,
    /// A device of that memory, which makes copies.
    pub device: Arc<dyn Device>,
    owner: Owner,
    /// Whether pointer queries know it by this buffer. Memory adopted from a USM allocation is known already.
    is_registered: bool,
}

impl Owner {
    /// Keeps something alive, and the library that has its methods loaded.
    fn foreign(owner: Box<dyn Any + Send>) -> Self {
        let library = Loaded::with_methods(&*owner);
        Self::Foreign { owner, _library: library }
    }
}

enum Owner {
    /// Made by the buffer, freed with it.
    Runtime(Arc<dyn Memory>),
    /// Memory of something else that is kept alive.
    Foreign { owner: Box<dyn Any + Send>, _library: Option<Loaded> },
}

// SAFETY: the pointer is an address within memory that `owner` keeps alive; commands that use it are ordered by the graph.
unsafe impl Send for Allocation {}

/// Says that a command group or accessor is being made from the buffer's pointers, which must therefore stay. Dropped without the state locked.
pub struct OpenHold {
    core: Arc<BufferCore>,
    is_open: AtomicBool,
}

impl OpenHold {
    /// The buffer.
    pub fn core(&self) -> &Arc<BufferCore> {
        &self.core
    }

    /// Releases the pointers, where the state is locked anyway.
    #[inline]
    pub(crate) fn close(&self, state: &mut BufferState) {
        // Under the state's lock, as every change.
        state.n_open -= usize::from(self.is_open.load(Ordering::Relaxed));
        self.is_open.store(false, Ordering::Relaxed);
    }
}

impl Drop for OpenHold {
    fn drop(&mut self) {
        if *self.is_open.get_mut() {
            self.core.lock().n_open -= 1;
        }
    }
}

impl BufferCore {
    /// A buffer without allocations whose contents nothing wrote. `extent` and `page` have their innermost dimension in bytes.
    ///
    /// # Safety
    /// The buffer's users leave its state consistent. The methods of [`BufferState`] are given the buffer that the state was locked
    /// of. The state is neither exchanged nor changed in other ways, the buffer's own fields stay as they are. What is passed as a
    /// [`BufferView`](crate::schedule::BufferView) of it lies inside.
    #[track_caller]
    pub unsafe fn new(extent: [usize; 3], page: Option<[usize; 3]>, align: usize) -> Result<Arc<Self>> {
        // SAFETY: by the contract of this function.
        unsafe { Self::with_elements(Elements::BYTES, extent, page, align) }
    }

    /// A buffer without allocations whose contents nothing wrote, of elements that messages tell. `extent` and `page` have their innermost
    /// dimension in bytes.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[track_caller]
    pub unsafe fn with_elements(
        elements: Elements,
        extent: [usize; 3],
        page: Option<[usize; 3]>,
        align: usize,
    ) -> Result<Arc<Self>> {
        let size =
            extent.iter().try_fold(1usize, |size, &n| size.checked_mul(n)).filter(|&size| size <= isize::MAX as usize);
        let layout = size.and_then(|size| Layout::from_size_align(size, align).ok());
        let Some(layout) = layout else {
            return Err(Error::invalid(format!(
                "a buffer of {} x {} x {} bytes is larger than memory can be",
                extent[0], extent[1], extent[2]
            )));
        };
        if page.is_some_and(|page| page.contains(&0)) {
            return Err(Error::invalid("the page size of a buffer must not be zero in any dimension"));
        }
        let elements = Elements { name: lasting(elements.name), ..elements };
        Ok(Arc::new(Self {
            id: BufferId::unique(),
            created: SourcePlace::lasting(Location::caller()),
            extent,
            page: page.unwrap_or(extent.map(|n| n.max(1))),
            has_pages: page.is_some(),
            layout,
            state: Mutex::new(BufferState {
                n_open: 0,
                allocations: SmallVec::new(),
                map: RegionMap::new(extent, PageState::default()),
            }),
            elements,
            labels: Mutex::default(),
        }))
    }

    /// The user's name for it, for messages.
    pub fn name(&self) -> Option<&'static str> {
        self.labels.lock().name
    }

    /// Has messages call it so from now on.
    pub fn set_name(&self, name: &'static str) {
        let name = lasting(name);
        self.labels.lock().name = Some(name);
    }

    /// Locks the state. Several buffers are locked in the order of their ids.
    pub fn lock(&self) -> MutexGuard<'_, BufferState> {
        self.state.lock()
    }

    /// The whole buffer as a region.
    pub fn whole(&self) -> Region {
        Region::whole(self.extent)
    }

    /// The pages that a region touches.
    pub fn page_range(&self, region: &Region) -> Region {
        region.round_out(self.page, self.extent)
    }

    /// A pointer for a buffer or range without elements.
    pub fn dangling(&self) -> NonNull<u8> {
        NonNull::new(std::ptr::without_provenance_mut(self.layout.align())).expect("an alignment is not zero")
    }
}

impl HeldBuffer for BufferCore {
    fn contains(&self, address: usize) -> bool {
        let size = self.layout.size();
        self.labels.lock().addresses.iter().any(|base| address.checked_sub(*base).is_some_and(|offset| offset < size))
    }

    fn description(&self) -> String {
        let mut range = self.extent;
        range[2] /= self.elements.size.max(1);
        let range = &range[3 - usize::from(self.elements.dimensions.min(3))..];
        let name = self.name().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        let (id, element, created) = (self.id, self.elements.name, self.created);
        format!("buffer {id}{name} of {element} with range {range:?} (created at {created})")
    }
}

impl fmt::Display for BufferCore {
    /// What messages call the buffer: number, name and where it was made.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "buffer {}", self.id)?;
        if let Some(name) = self.name() {
            write!(f, " \"{name}\"")?;
        }
        write!(f, " (created at {})", self.created)
    }
}

impl BufferState {
    /// Keeps the pointers of the buffer, whose state this is, valid until the result is closed or dropped.
    pub(crate) fn open(&mut self, core: &Arc<BufferCore>) -> OpenHold {
        self.n_open += 1;
        OpenHold { core: core.clone(), is_open: AtomicBool::new(true) }
    }

    /// Whether a command group or accessor is being made.
    pub fn is_open(&self) -> bool {
        self.n_open > 0
    }

    /// The allocation in `memory`, if there is one.
    pub fn find(&self, memory: MemoryId) -> Option<AllocationIdx> {
        self.allocations().find(|(_, allocation)| allocation.memory == memory).map(|(index, _)| index)
    }

    /// The allocation that [`find`](Self::find) or [`ensure`](Self::ensure) gave.
    pub fn allocation(&self, index: AllocationIdx) -> &Allocation {
        self.allocations[index.position()].as_ref().expect("indices are only handed out for existing allocations")
    }

    /// All allocations.
    pub fn allocations(&self) -> impl Iterator<Item = (AllocationIdx, &Allocation)> {
        let indices = (0..).map_while(AllocationIdx::new);
        indices.zip(&self.allocations).filter_map(|(index, allocation)| Some((index, allocation.as_ref()?)))
    }

    /// The allocation in the device's memory, made now if it is the buffer's first use there.
    pub fn ensure(&mut self, core: &Arc<BufferCore>, device: &Arc<dyn Device>) -> Result<AllocationIdx> {
        let (memory, MemoryInfo { id, is_host_accessible }) = (device.memory(), device.info().memory);
        if let Some(index) = self.find(id) {
            return Ok(index);
        }
        let layout = core.layout;
        let pointer = if layout.size() == 0 {
            core.dangling()
        } else {
            let pointer = memory.allocate(UsmKind::Device, layout, is_host_accessible).map_err(|error| {
                let error = Error::from(error);
                Error::new(error.code(), format!("{core}: {error}"))
            })?;
            counters().buffer_allocations.add(1);
            counters().buffer_allocated_bytes.add(layout.size() as u64);
            pointer
        };
        let allocation = Allocation {
            memory: id,
            pointer,
            device: device.clone(),
            owner: Owner::Runtime(memory.clone()),
            is_registered: false,
        };
        let inserted = self.insert(core, allocation, UsmKind::Device);
        if let Err((error, allocation)) = inserted {
            allocation.free(layout);
            return Err(error);
        }
        inserted.map_err(|(error, _)| error)
    }

    /// Takes memory that `owner` keeps alive as the buffer's allocation in its memory. With `is_current`, it holds the data.
    ///
    /// # Safety
    /// `pointer` is valid for the buffer's layout as long as `owner` lives, and no other code uses the memory meanwhile.
    pub unsafe fn adopt(
        &mut self,
        core: &Arc<BufferCore>,
        device: &Arc<dyn Device>,
        memory: MemoryId,
        pointer: NonNull<u8>,
        owner: Box<dyn Any + Send>,
        is_current: bool,
    ) -> Result<AllocationIdx> {
        let allocation =
            Allocation { memory, pointer, device: device.clone(), owner: Owner::foreign(owner), is_registered: false };
        let index = self.insert(core, allocation, UsmKind::Device).map_err(|(error, _)| error)?;
        if is_current {
            self.map.update(&Region::whole(core.extent), |_, page| page.current = page.current.with(index));
        }
        Ok(index)
    }

    fn insert(
        &mut self,
        core: &Arc<BufferCore>,
        mut allocation: Allocation,
        kind: UsmKind,
    ) -> std::result::Result<AllocationIdx, (Error, Allocation)> {
        let vacant = self.allocations.iter().position(Option::is_none);
        let Some(index) = AllocationIdx::new(vacant.unwrap_or(self.allocations.len())) else {
            let message = format!("{core} has allocations in {} memories, which is the limit", AllocationIdx::MOST);
            return Err((Error::new(oxisycl_types::ErrorCode::MemoryAllocation, message), allocation));
        };
        let base = allocation.pointer.as_ptr() as usize;
        allocation.is_registered = core.layout.size() > 0 && pointer_info(base).is_none();
        if allocation.is_registered {
            register(PointerInfo {
                base,
                size: core.layout.size(),
                kind,
                memory: allocation.memory,
                device: allocation.device.clone(),
                context: None,
                buffer: Some(Arc::downgrade(core)),
            });
        }
        core.labels.lock().addresses.push(base);
        match vacant {
            Some(position) => self.allocations[position] = Some(allocation),
            None => self.allocations.push(Some(allocation)),
        }
        Ok(index)
    }

    /// Whether bytes exist that only that allocation holds.
    pub fn is_only_copy(&self, core: &BufferCore, index: AllocationIdx) -> bool {
        let mut only = false;
        self.map.for_each(&Region::whole(core.extent), |_, page| {
            only |= page.effective_current() == AllocationSet::of(index)
        });
        only
    }

    /// Frees the allocation, or gives back what kept it alive.
    ///
    /// # Safety
    /// No command that uses the allocation is pending, and none is being made.
    pub unsafe fn remove(&mut self, core: &BufferCore, index: AllocationIdx) -> Option<Box<dyn Any + Send>> {
        self.map.update(&Region::whole(core.extent), |_, page| page.forget(index));
        let mut allocation = self.allocations[index.position()].take()?;
        core.labels.lock().addresses.retain(|base| *base != allocation.pointer.as_ptr() as usize);
        allocation.forget();
        match allocation.owner {
            Owner::Foreign { owner, .. } => Some(owner),
            Owner::Runtime(_) => {
                allocation.free(core.layout);
                None
            }
        }
    }

    /// Every unfinished command that uses the buffer.
    pub fn users(&self, core: &BufferCore) -> Vec<Arc<Node>> {
        let mut users: Vec<Arc<Node>> = Vec::new();
        self.map.for_each(&Region::whole(core.extent), |_, page| {
            let arrivals = page.arrivals.iter().map(|(_, copy)| copy);
            users.extend(page.writer.iter().chain(&page.readers).chain(arrivals).filter(|n| !n.is_complete()).cloned());
        });
        users.sort_by_key(|node| node.id);
        users.dedup_by_key(|node| node.id);
        users
    }
}

impl Allocation {
    /// Pointer queries do not know it any more.
    fn forget(&mut self) {
        if std::mem::take(&mut self.is_registered) {
            unregister(self.pointer.as_ptr() as usize);
        }
    }

    fn free(mut self, layout: Layout) {
        self.forget();
        if let (Owner::Runtime(memory), true) = (&self.owner, layout.size() > 0) {
            counters().buffer_frees.add(1);
            // SAFETY: allocated by `ensure` from this memory with this layout; the callers guarantee that no command uses it.
            unsafe { memory.free(self.pointer, UsmKind::Device, layout) }
        }
    }

    /// What keeps memory alive that the buffer did not allocate.
    pub fn foreign_owner(&self) -> Option<&(dyn Any + Send)> {
        match &self.owner {
            Owner::Foreign { owner, .. } => Some(&**owner),
            Owner::Runtime(_) => None,
        }
    }
}

impl Drop for BufferCore {
    fn drop(&mut self) {
        // Commands hold the core until they complete, so no command uses the memory any more.
        for allocation in self.state.get_mut().allocations.drain(..).flatten() {
            allocation.free(self.layout);
        }
    }
}
