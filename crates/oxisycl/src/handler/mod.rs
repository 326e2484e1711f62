//! Command groups: what the closure of [`Queue::submit`](crate::Queue::submit) records (SYCL 2020 section 4.9.4).

mod arguments;
mod bundle;
mod constants;
mod copy;
mod group;
mod host_slot;
mod host_task;
pub(crate) mod kernel;
mod native_command;
mod nd_range;
mod raw;
mod reduce;
mod usm;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use oxisycl_device::{Accessor, AccessorParts, Chunked, DeviceCopyable, ModeFor, Stores};
use oxisycl_runtime::graph::{KeptAlive, Node};
use oxisycl_runtime::schedule::{CommandGroup, Conflicts, Requirement};
use oxisycl_runtime::state::Region;
use oxisycl_types::{Id, Range};

use crate::buffer::region_of;
use crate::kernel_bundle::Executable;
use crate::{Buffer, Error, Event, KernelBundle, Placeholder, Queue, Result};

pub use host_slot::{HostMemory, HostSlot};
pub use host_task::{HostScope, HostTaskAccessor, InteropHandle};
pub use native_command::NativeScope;

/// Records one command group: its accessors, and one command.
///
/// Only [`Queue::submit`](crate::Queue::submit) makes handlers. The lifetime `'cg` belongs to one command group and has
/// no upper bound. Kernels outlive `submit`, so they capture accessors of this group and values, but nothing that is
/// borrowed.
pub struct Handler<'cg> {
    queue: &'cg Queue,
    group: CommandGroup,
    failed: Option<Error>,
    /// For groups with more than a few accessors.
    conflicts: Option<Box<Conflicts>>,
    /// Positions of the requirements that placeholders made.
    required: Option<BTreeMap<RequiredKey, usize>>,
    has_command: bool,
    name: Option<&'static str>,
    constants: constants::Constants,
    /// What kernels are taken from, if not from the whole program.
    bundle: Option<KernelBundle<Executable>>,
    brand: PhantomData<fn(&'cg ()) -> &'cg ()>,
    not_send: PhantomData<*mut ()>,
}

/// What makes two placeholders the same accessor. Less would not do: accessors of other modes or shapes give a work-item other
/// elements of the same bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequiredKey {
    /// The types of element and mode.
    accessor: TypeId,
    buffer: u64,
    byte_offset: usize,
    /// Of the view and of the part, and where that begins.
    extents: [[usize; 3]; 3],
}

impl<'cg> Handler<'cg> {
    /// A handler for a new group. The caller has forbidden kernels and wakers.
    ///
    /// Before the user's closure runs. Inside a kernel it would have the token of a work-item, which is taken as proof
    /// that the accessor's command has started.
    pub(crate) fn new(queue: &'cg Queue) -> Self {
        let group = CommandGroup::default();
        let (brand, not_send) = (PhantomData, PhantomData);
        Self {
            queue,
            group,
            failed: None,
            conflicts: None,
            required: None,
            has_command: false,
            name: None,
            constants: constants::Constants::default(),
            bundle: None,
            brand,
            not_send,
        }
    }

    /// Schedules what was recorded.
    pub(crate) fn submit(&mut self) -> Result<Arc<Node>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        // SAFETY: the handler's methods add commands over memory of accessors of this group, which are requirements, or over memory that
        // they put into `kept_alive`. Callers of the `unsafe` methods vouch for the memory that they pass.
        unsafe { self.queue.inner().submit_group(&mut self.group) }
    }

    /// The queue that the group is submitted to.
    pub fn queue(&self) -> &Queue {
        self.queue
    }

    /// Gives the kernel or host task of this group a name for messages and traces. A kernel without one has its type's.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let event = Queue::default()?.submit(|cg| {
    ///     cg.name("divide");
    ///     cg.single_task(|_| panic!("a mistake"))
    /// })?;
    /// assert!(event.wait().unwrap_err().to_string().contains("divide"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn name(&mut self, name: &'static str) {
        self.name = Some(name);
    }

    /// Access of this group's kernel to a whole buffer.
    ///
    /// A failure (no memory on the device, or an overlap with another accessor of this group where one of them writes)
    /// is recorded. The command and `submit` return it, and nothing is enqueued.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (a, b) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![10, 20, 30])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (a, b) = (cg.access(&a, Read), cg.access(&b, ReadWrite));
    ///     cg.parallel_for(3, move |item| b.update(item, |b| b + a.get(item)))
    /// })?;
    /// assert_eq!(b.to_vec()?, [11, 22, 33]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: M,
    ) -> Accessor<'cg, T, D, M> {
        self.access_range(buffer, mode, Id::default(), buffer.range())
    }

    /// Access to a part of a buffer. Indices are relative to `offset`.
    ///
    /// Failures as for [`access`](Self::access), and `Invalid` if the part is not inside the buffer.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0, 1, 2, 3, 4, 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let middle = cg.access_range(&numbers, ReadWrite, 2, 3); // from 2, three of them
    ///     cg.parallel_for(3, move |item| middle.update(item, |x| 10 * x))
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 1, 20, 30, 40, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_range<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        _mode: M,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> Accessor<'cg, T, D, M> {
        let (range, offset) = (range.into(), offset.into());
        self.try_access(buffer, offset, range).unwrap_or_else(|error| {
            self.record(error);
            let pointer = std::ptr::NonNull::dangling().as_ptr();
            // SAFETY: nothing is enqueued after a failure, so that the accessor is never used.
            unsafe { Accessor::from_parts(AccessorParts { pointer, buffer: buffer.range(), offset, range }) }
        })
    }

    /// Access to a part of a buffer, or why there is none.
    pub(crate) fn try_access<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        offset: Id<D>,
        range: Range<D>,
    ) -> Result<Accessor<'cg, T, D, M>> {
        buffer.check_inside(range, offset)?;
        let device = self.queue.device().backend_device();
        let pointer = self.try_add(buffer, &region_of(range, offset), (M::MODE, M::NO_INIT), device, true)?;
        // SAFETY: the requirement orders the command with all other use of the memory, and keeps the memory alive. The range was checked to
        // lie inside the buffer.
        Ok(unsafe { Accessor::from_parts(AccessorParts { pointer, buffer: buffer.range(), offset, range }) })
    }

    /// Access to a part of a buffer that may overlap another accessor of this group although one of them writes. Indices are relative to
    /// `offset`.
    ///
    /// Failures as for [`access_range`](Self::access_range), but for the overlap.
    ///
    /// # Safety
    /// No work-item accesses an element through one accessor that another work-item writes through the other. None
    /// holds a reference or view of an element while it is written. Nothing writes what a kernel reads through an
    /// accessor with the mode [`Read`](crate::Read), not even the same work-item. Devices load it as if it never
    /// changed. A copy does not read through one what it writes through the other.
    pub unsafe fn access_aliased<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        _mode: M,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> Accessor<'cg, T, D, M> {
        let (range, offset) = (range.into(), offset.into());
        let device = self.queue.device().backend_device();
        let pointer = self.require_on::<T, D, M>(buffer, range, offset, device, false);
        // SAFETY: as in `access_range`; the caller promises that aliasing does no harm.
        unsafe { Accessor::from_parts(AccessorParts { pointer, buffer: buffer.range(), offset, range }) }
    }

    /// Access to a whole buffer in blocks: the work-item with id `i` owns block `i`.
    ///
    /// Failures as for [`access`](Self::access), and `Invalid` if the block has a zero extent.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![3, 1, 2, 9, 8, 7, 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access_chunks(&numbers, ReadWrite, 3);
    ///     cg.parallel_for(numbers.n_blocks(), move |item| {
    ///         let block = numbers.block(item).as_cells();
    ///         block[0].set(block.iter().map(|element| element.get()).sum());
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [6, 1, 2, 24, 8, 7, 5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn access_chunks<T: DeviceCopyable, const D: usize, M: ModeFor<T> + Stores>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: M,
        block: impl Into<Range<D>>,
    ) -> Chunked<'cg, T, D, M> {
        self.access_chunks_range(buffer, mode, block, Id::default(), buffer.range())
    }

    /// Access to a part of a buffer in blocks: the work-item with id `i` owns block `i`. Blocks and indices begin at `offset`.
    ///
    /// Failures as for [`access_range`](Self::access_range), and `Invalid` if the block has a zero extent.
    pub fn access_chunks_range<T: DeviceCopyable, const D: usize, M: ModeFor<T> + Stores>(
        &mut self,
        buffer: &Buffer<T, D>,
        mode: M,
        block: impl Into<Range<D>>,
        offset: impl Into<Id<D>>,
        range: impl Into<Range<D>>,
    ) -> Chunked<'cg, T, D, M> {
        let block = block.into();
        if let Err(error) = check_block(block) {
            self.record(error);
        }
        let accessor = self.access_range(buffer, mode, offset, range);
        // SAFETY: the accessor is given away here.
        unsafe { Chunked::from_accessor(accessor, block) }
    }

    /// Access to a part of a buffer in blocks, or why there is none.
    pub(crate) fn try_access_chunks<T: DeviceCopyable, const D: usize, M: ModeFor<T> + Stores>(
        &mut self,
        buffer: &Buffer<T, D>,
        offset: Id<D>,
        range: Range<D>,
        block: Range<D>,
    ) -> Result<Chunked<'cg, T, D, M>> {
        check_block(block)?;
        let accessor = self.try_access(buffer, offset, range)?;
        // SAFETY: the accessor is given away here.
        Ok(unsafe { Chunked::from_accessor(accessor, block) })
    }

    /// The accessor that a placeholder stands for. Requiring the same placeholder again gives the same accessor.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let placeholder = numbers.placeholder(ReadWrite);
    /// let queue = Queue::default()?;
    /// for _ in 0..2 {
    ///     queue.submit(|cg| {
    ///         let numbers = cg.require(&placeholder);
    ///         cg.parallel_for(3, move |item| numbers.update(item, |x| 2 * x))
    ///     })?;
    /// }
    /// assert_eq!(numbers.to_vec()?, [4, 8, 12]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn require<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        placeholder: &Placeholder<T, D, M>,
    ) -> Accessor<'cg, T, D, M> {
        let Placeholder { buffer, range, offset, .. } = placeholder;
        self.try_require(placeholder).unwrap_or_else(|error| {
            self.record(error);
            let pointer = std::ptr::NonNull::dangling().as_ptr();
            // SAFETY: nothing is enqueued after a failure, so that the accessor is never used.
            unsafe {
                Accessor::from_parts(AccessorParts { pointer, buffer: buffer.range(), offset: *offset, range: *range })
            }
        })
    }

    /// The accessor that a placeholder stands for, or why there is none.
    pub(crate) fn try_require<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        placeholder: &Placeholder<T, D, M>,
    ) -> Result<Accessor<'cg, T, D, M>> {
        let Placeholder { buffer, range, offset, .. } = placeholder;
        let key = RequiredKey {
            accessor: TypeId::of::<Placeholder<T, D, M>>(),
            buffer: buffer.id(),
            byte_offset: buffer.buffer_view().byte_offset,
            extents: [buffer.range().embed(), range.embed(), offset.embed()],
        };
        if let Some(position) = self.required.as_ref().and_then(|required| required.get(&key)) {
            let base = self.group.requirements[*position].pointer;
            let pointer = base.as_ptr().wrapping_add(key.byte_offset).cast();
            // SAFETY: the requirement was made for an accessor of this type to the same part of the same view. This one is a copy of it, so
            // both give a work-item the same elements.
            return Ok(unsafe {
                Accessor::from_parts(AccessorParts { pointer, buffer: buffer.range(), offset: *offset, range: *range })
            });
        }
        let n_before = self.group.requirements.len();
        let accessor = self.try_access(buffer, *offset, *range)?;
        self.required
            .get_or_insert_default()
            .extend((n_before..self.group.requirements.len()).map(|position| (key, position)));
        Ok(accessor)
    }

    /// The command starts after `event`, and does not run if its command fails.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let first = queue.single_task(|_| oxisycl::println!("first"))?;
    /// let second = queue.submit(|cg| {
    ///     cg.depends_on(&first);
    ///     cg.single_task(|_| oxisycl::println!("second"))
    /// })?;
    /// second.wait()?;
    /// assert!(first.is_complete());
    /// # Ok(())
    /// # }
    /// ```
    pub fn depends_on(&mut self, event: &Event) {
        self.group.depends_on.extend(event.node().cloned());
    }

    /// The command starts after all of `events`.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let queue = Queue::default()?;
    /// let events = [queue.single_task(|_| {})?, queue.single_task(|_| {})?];
    /// let last = queue.submit(|cg| {
    ///     cg.depends_on_all(&events);
    ///     cg.single_task(|_| {})
    /// })?;
    /// last.wait()?;
    /// assert!(events.iter().all(Event::is_complete));
    /// # Ok(())
    /// # }
    /// ```
    pub fn depends_on_all<'a>(&mut self, events: impl IntoIterator<Item = &'a Event>) {
        for event in events {
            self.depends_on(event);
        }
    }

    /// Adds a requirement. Returns the address of the view's first element, or a dangling one after a failure.
    fn require_on<T: DeviceCopyable, const D: usize, M: ModeFor<T>>(
        &mut self,
        buffer: &Buffer<T, D>,
        range: Range<D>,
        offset: Id<D>,
        device: &Arc<dyn oxisycl_backend::Device>,
        refuse_overlap: bool,
    ) -> *mut T {
        let result = buffer.check_inside(range, offset).and_then(|()| {
            self.try_add(buffer, &region_of(range, offset), (M::MODE, M::NO_INIT), device, refuse_overlap)
        });
        match result {
            Ok(pointer) => pointer,
            Err(error) => {
                self.record(error);
                std::ptr::NonNull::dangling().as_ptr()
            }
        }
    }

    fn try_add<T: DeviceCopyable, const D: usize>(
        &mut self,
        buffer: &Buffer<T, D>,
        region: &Region,
        (mode, no_init): (oxisycl_types::AccessMode, bool),
        device: &Arc<dyn oxisycl_backend::Device>,
        refuse_overlap: bool,
    ) -> Result<*mut T> {
        let view = buffer.buffer_view();
        let align_bits = device.info().mem_base_addr_align as usize;
        if buffer.is_sub_buffer() && !(view.byte_offset * 8).is_multiple_of(align_bits.max(1)) {
            return Err(Error::invalid(format!(
                "sub-buffer of {} begins at byte {}, but device \"{}\" needs a multiple of {} bytes",
                view.core,
                view.byte_offset,
                device.info().name,
                align_bits / 8
            )));
        }
        let requirements = &mut self.group.requirements;
        view.add_requirement(region, mode, no_init, device, requirements)?;
        let (new, earlier) = requirements.split_last().expect("one was added");
        if refuse_overlap && let Some(position) = Conflicts::find(&mut self.conflicts, earlier, new) {
            let error = overlap(new, &earlier[position]);
            requirements.pop();
            return Err(error);
        }
        Ok(new.pointer.as_ptr().wrapping_add(view.byte_offset).cast())
    }

    /// Keeps something alive until the command has ended.
    pub(crate) fn keep(&mut self, value: KeptAlive) {
        self.group.kept_alive.push(value);
    }

    pub(crate) fn record(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }

    /// Claims the one command of the group. Errors: what `access` recorded; `Invalid` if there is a command already.
    fn claim_command(&mut self, what: &str) -> Result {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        if self.has_command {
            let error = Error::invalid(format!("{what}: the command group has a command already"));
            self.record(error.clone());
            return Err(error);
        }
        self.has_command = true;
        Ok(())
    }

    /// Claims the command and records it if `make` succeeds; a failure is remembered, so that `submit` fails even if the
    /// closure ignores it.
    fn command(&mut self, what: &str, make: impl FnOnce(&mut Self) -> Result) -> Result {
        self.claim_command(what)?;
        make(self).inspect_err(|error| self.record(error.clone()))
    }
}

pub(crate) fn check_block<const D: usize>(block: Range<D>) -> Result {
    if block.0.contains(&0) {
        return Err(Error::invalid(format!("an accessor cannot have blocks of range {block:?}")));
    }
    Ok(())
}

fn overlap(new: &Requirement, other: &Requirement) -> Error {
    Error::new(
        oxisycl_types::ErrorCode::Accessor,
        format!(
            "two accessors of one command group conflict in {}, with modes {:?} and {:?}: {}",
            new.core(),
            other.mode,
            new.mode,
            if new.memory == other.memory {
                "they overlap; use disjoint ranges or one accessor"
            } else {
                "they overlap, or write to one page in different memories; use two groups"
            }
        ),
    )
}
