//! Group scope, and phases.

use core::fmt;
use core::marker::PhantomData;

use oxisycl_types::{HostChunk, Id, Range};

use super::phase::PhaseArguments;
use super::shape::Shape;
use crate::item::{Brand, NotSend};
use crate::kernel::{OnUnwind, last_axes, leave_id};
use crate::{InItem, Inside, Item, builtin};

/// One work-group of a kernel over groups (SYCL 2020 section 4.9.1.7, in the form of section 4.9.4.2.3).
///
/// The kernel's own code is at *group scope*: it runs once for each group, and decides which phases the group runs. A phase runs once for each
/// work-item ([`for_each`](Self::for_each)), and the next one begins when all have ended. On a device, every work-item runs the code at group
/// scope, with the same values, so that it cannot see which one it is.
///
/// A group stays where it is: it is neither `Copy` nor `Send`.
pub struct Group<'wg, 'cg: 'wg, const D: usize, S> {
    id: [usize; D],
    groups: [usize; D],
    shape: S,
    /// Bytes of local memory that the launch's arguments take.
    local_bytes: usize,
    /// On a device: how often the group has met, and bytes of the values of the last algorithm.
    meetings: u32,
    bytes_of_element: usize,
    /// In native code: where a panic leaves which work-item it was.
    chunk: *const HostChunk,
    brand: Brand<'wg>,
    command_group: Brand<'cg>,
    not_send: NotSend,
}

/// One work-item of one phase.
#[derive(Clone, Copy)]
pub struct PhaseItem<'p, const D: usize> {
    local: [usize; D],
    linear: usize,
    item: Item<'p, D>,
}

/// One position of a phase over a range of its own ([`Group::for_each_of`]). It has no position in the launch, and so no element of its own in an
/// accessor.
#[derive(Clone, Copy)]
pub struct LogicalItem<'p, const D: usize> {
    id: [usize; D],
    linear: usize,
    brand: Brand<'p>,
    not_send: NotSend,
}

/// The token of group scope, for views: what is read with it is the same for all work-items of the group.
#[derive(Clone, Copy)]
pub struct Uniform<'wg> {
    brand: Brand<'wg>,
    not_send: NotSend,
}

// SAFETY: exists only during its phase.
unsafe impl<'p, const D: usize> Inside<'p> for PhaseItem<'p, D> {}
// SAFETY: a phase gives each work-item one.
unsafe impl<'p, const D: usize> InItem<'p> for PhaseItem<'p, D> {}
// SAFETY: exists only during its phase.
unsafe impl<'p, const D: usize> Inside<'p> for LogicalItem<'p, D> {}
// SAFETY: it belongs to the work-item that runs the position.
unsafe impl<'p, const D: usize> InItem<'p> for LogicalItem<'p, D> {}
// SAFETY: exists only during its kernel. It is no `InItem`, since group scope runs in every work-item of a device.
unsafe impl<'wg> Inside<'wg> for Uniform<'wg> {}

impl<'p, const D: usize> PhaseItem<'p, D> {
    /// The position in the group.
    #[inline(always)]
    pub fn local_id(self) -> Id<D> {
        Id(self.local)
    }

    /// The row-major position in the group.
    #[inline(always)]
    pub fn local_linear_id(self) -> usize {
        self.linear
    }

    /// The work-item of the whole launch, whose element accessors give.
    #[inline(always)]
    pub fn global(self) -> Item<'p, D> {
        self.item
    }
}

impl<const D: usize> LogicalItem<'_, D> {
    /// The position in the phase's range.
    #[inline(always)]
    pub fn id(self) -> Id<D> {
        Id(self.id)
    }

    /// The row-major position in the phase's range.
    #[inline(always)]
    pub fn linear_id(self) -> usize {
        self.linear
    }
}

impl<'wg, 'cg: 'wg, const D: usize, S: Shape<D>> Group<'wg, 'cg, D, S> {
    /// # Safety
    /// Called by the entry of a kernel over groups, once for each group of the launch (on a device, once for each work-item). The lifetime
    /// ends with the kernel's call. In native code, `chunk` lives as long.
    #[inline(always)]
    pub(super) unsafe fn new(
        id: [usize; D],
        groups: [usize; D],
        shape: S,
        local_bytes: usize,
        chunk: *const HostChunk,
    ) -> Self {
        let (meetings, bytes_of_element) = (0, 0);
        let (brand, command_group, not_send) = (PhantomData, PhantomData, PhantomData);
        Self { id, groups, shape, local_bytes, meetings, bytes_of_element, chunk, brand, command_group, not_send }
    }

    /// The position of the group in the launch.
    #[inline(always)]
    pub fn id(&self) -> Id<D> {
        Id(self.id)
    }

    /// The row-major position of the group in the launch.
    #[inline(always)]
    pub fn linear_id(&self) -> usize {
        let mut linear = 0;
        for d in 0..D {
            linear = linear * self.groups[d] + self.id[d];
        }
        linear
    }

    /// How many groups the launch has.
    #[inline(always)]
    pub fn group_range(&self) -> Range<D> {
        Range(self.groups)
    }

    /// How many work-items the group has.
    #[inline(always)]
    pub fn local_range(&self) -> Range<D> {
        Range(self.shape.extent())
    }

    /// The token for views at group scope.
    #[inline(always)]
    pub fn uniform(&self) -> Uniform<'wg> {
        Uniform { brand: PhantomData, not_send: PhantomData }
    }

    /// Runs one phase: `f` for each work-item of the group, in any order and at the same time. Returns when all have ended, and what they wrote is
    /// visible to all of the next phase.
    ///
    /// `arguments` are what the phase borrows of the group's memory; see [`PhaseArguments`]. `f` captures values, views and accessors. It shares
    /// no variable of group scope, because every work-item of a device has its own.
    ///
    /// ```
    /// use oxisycl::group::{Fixed1, Local};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec((0..8).collect())?;
    /// Queue::default()?.submit(|cg| {
    ///     let numbers = cg.access(&numbers, ReadWrite);
    ///     cg.parallel_for_work_group(2, Fixed1::<4>, Local::<i32, 4>::new(), move |mut group, mut tile| {
    ///         group.for_each(&mut tile, move |item, slot| *slot = numbers.get(item.global()));
    ///         group.for_each(&tile, move |item, tile| numbers.set(item.global(), tile[3 - item.local_linear_id()]));
    ///     })
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [3, 2, 1, 0, 7, 6, 5, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A tile that is lent as `&mut tile` has at least as many elements as the group work-items. If both numbers are parts of types, the compiler checks
    /// that.
    ///
    /// # Panics
    /// If a tile that is lent as `&mut tile` has fewer elements than the group work-items.
    #[inline(always)]
    #[track_caller]
    pub fn for_each<P: PhaseArguments, F>(&mut self, arguments: P, f: F)
    where
        F: for<'p> Fn(PhaseItem<'p, D>, P::Lent<'p>) + Copy + Send + Sync + 'wg,
    {
        const {
            // Zero if the launch decides.
            let (mut items, mut d) = (1usize, 0);
            while d < D {
                items = items.saturating_mul(S::FIXED[d]);
                d += 1;
            }
            assert!(
                match P::MOST {
                    Some(most) => items <= most,
                    None => true,
                },
                "a tile that is lent one element to each work-item has fewer elements than the group work-items"
            );
        }
        let extent = self.shape.extent();
        let items = size_of_group(extent);
        let raw = arguments.begin(items);
        if builtin::is_device_code() {
            let local = local_position(extent);
            let linear = linear(local, extent);
            // SAFETY: a phase returns nothing.
            unsafe { builtin::begin_phase() };
            // SAFETY: each work-item of the group has a position of its own.
            unsafe { P::call(raw, linear, items, |lent| f(self.phase_item(local, linear), lent)) };
            // SAFETY: group scope takes the same way in all work-items.
            unsafe { builtin::group_barrier() };
            builtin::begin_group_scope();
            return;
        }
        // SAFETY: native code; by the contract of `new`.
        let chunk = unsafe { &*self.chunk };
        for_positions(extent, |local, linear| {
            let item = self.phase_item(local, linear);
            let guard = OnUnwind { id: item.item.id, chunk };
            if cfg!(panic = "abort") {
                // Nothing unwinds, so that the panic hook reads it. It is that of one work-item.
                builtin::in_turn();
                leave_id(chunk, item.item.id);
            }
            // SAFETY: each position once.
            unsafe { P::call(raw, linear, items, |lent| f(item, lent)) };
            core::mem::forget(guard);
        });
    }

    /// Runs one phase over a range other than the group's own: the logical range of SYCL's hierarchical form. `f` runs once for each
    /// position of the range, in any order and at the same time: each position counts as a work-item. The group's share the positions among them.
    ///
    /// What `arguments` lend by position is lent by the position in `range`.
    ///
    /// # Panics
    /// If a tile or private values that are lent by position have fewer elements than the range positions.
    #[inline(always)]
    #[track_caller]
    pub fn for_each_of<const L: usize, P: PhaseArguments, F>(&mut self, range: impl Into<Range<L>>, arguments: P, f: F)
    where
        F: for<'p> Fn(LogicalItem<'p, L>, P::Lent<'p>) + Copy + Send + Sync + 'wg,
    {
        const { assert!(L >= 1 && L <= 3, "a range has 1, 2 or 3 dimensions") };
        let Range(range) = range.into();
        let positions = match Range(range).checked_size() {
            Some(positions) => positions,
            None => panic!("the range of a phase has more positions than can be counted"),
        };
        let raw = arguments.begin(positions);
        // SAFETY: each position once; it ends with the phase.
        let run = |id, linear| unsafe {
            P::call(raw, linear, positions, |lent| {
                f(LogicalItem { id, linear, brand: PhantomData, not_send: PhantomData }, lent)
            });
        };
        if builtin::is_device_code() {
            let extent = self.shape.extent();
            let step = size_of_group(extent);
            // SAFETY: a phase returns nothing.
            unsafe { builtin::begin_phase() };
            let mut position = linear(local_position(extent), extent);
            while position < positions {
                let (mut id, mut rest) = ([0; L], position);
                for d in (0..L).rev() {
                    id[d] = rest % range[d];
                    rest /= range[d];
                }
                run(id, position);
                position += step;
            }
            // SAFETY: as in `for_each`.
            unsafe { builtin::group_barrier() };
            builtin::begin_group_scope();
            return;
        }
        // SAFETY: native code; by the contract of `new`.
        let chunk = unsafe { &*self.chunk };
        let extent = self.shape.extent();
        for_positions(range, |id, linear| {
            // The work-item that a device would run the position on.
            let guard = OnLogicalUnwind { position: linear, extent, group: self.id, chunk };
            if cfg!(panic = "abort") {
                builtin::in_turn();
                guard.leave();
            }
            run(id, linear);
            core::mem::forget(guard);
        });
    }

    /// The local range.
    #[inline(always)]
    pub(super) fn extent(&self) -> [usize; D] {
        self.shape.extent()
    }

    /// Bytes of local memory that the launch's arguments take.
    #[inline(always)]
    pub(super) fn local_bytes(&self) -> usize {
        self.local_bytes
    }

    /// Which of two places the algorithm that begins uses, where it has two.
    #[inline(always)]
    pub(super) fn turn(&self) -> u32 {
        self.meetings
    }

    /// The number of the meeting that follows.
    #[inline(always)]
    pub(super) fn next_meeting(&mut self) -> u32 {
        let number = self.meetings;
        self.meetings = number.wrapping_add(1);
        number
    }

    /// The group once more, for one of its work-items.
    ///
    /// # Safety
    /// What [`new`](Self::new) asks, for as long as either exists.
    #[inline(always)]
    pub(super) unsafe fn again(&self) -> Self {
        // SAFETY: by the contract of this function.
        unsafe { Self::new(self.id, self.groups, self.shape, self.local_bytes, self.chunk) }
    }

    /// In native code: what the group is run in.
    #[inline(always)]
    pub(super) fn chunk(&self) -> *const HostChunk {
        self.chunk
    }

    /// Notes that an algorithm begins, over values of so many bytes. Whether the one before had values of another size.
    #[inline(always)]
    pub(super) fn begins_algorithm(&mut self, bytes_of_element: usize) -> bool {
        let before = core::mem::replace(&mut self.bytes_of_element, bytes_of_element);
        before != 0 && before != bytes_of_element
    }

    /// The local linear id of the calling work-item. For device code, which must not let it decide at group scope.
    #[inline(always)]
    pub(super) fn local_linear_id(&self) -> usize {
        let extent = self.shape.extent();
        linear(local_position(extent), extent)
    }

    #[inline(always)]
    pub(super) fn phase_item<'p>(&self, local: [usize; D], linear: usize) -> PhaseItem<'p, D> {
        let extent = self.shape.extent();
        // Neither overflows: the launch was refused if it has more ids than can be counted.
        let id = core::array::from_fn(|d| self.id[d].wrapping_mul(extent[d]).wrapping_add(local[d]));
        let end = core::array::from_fn(|d| self.groups[d].wrapping_mul(extent[d]));
        // SAFETY: groups have ids of their own, and so have work-items in a group; a work-item runs its phases one after the other.
        PhaseItem { local, linear, item: unsafe { Item::new(id, end, [0; D]) } }
    }
}

/// The number of work-items, whose product was checked before the launch.
#[inline(always)]
pub(super) fn size_of_group<const D: usize>(extent: [usize; D]) -> usize {
    Range(extent).size()
}

/// The position of the calling work-item in its group. For device code.
#[inline(always)]
pub(super) fn local_position<const D: usize>(extent: [usize; D]) -> [usize; D] {
    core::array::from_fn(|d| {
        // SAFETY: device code. A launch has groups of this extent.
        unsafe {
            let position = match 3 - D + d {
                0 => builtin::local_position_z(),
                1 => builtin::local_position_y(),
                _ => builtin::local_position_x(),
            } as usize;
            // No `assert_unchecked`: rustc drops it from code that LLVM has not optimised yet, which device code begins as.
            if position >= extent[d] {
                core::hint::unreachable_unchecked();
            }
            position
        }
    })
}

#[inline(always)]
pub(super) fn linear<const D: usize>(position: [usize; D], extent: [usize; D]) -> usize {
    let mut linear = 0usize;
    for d in 0..D {
        linear = linear.wrapping_mul(extent[d]).wrapping_add(position[d]);
    }
    linear
}

/// Calls `f` for each position of a range, with its row-major number. The loops are nested and have bounds of their own, so that a compiler
/// knows that positions are below them. The innermost loop is [`builtin::each_item`].
#[inline(always)]
pub(super) fn for_positions<const D: usize>(extent: [usize; D], f: impl Fn([usize; D], usize)) {
    let [planes, rows, row] = Range(extent).embed();
    for z in 0..planes {
        for y in 0..rows {
            builtin::each_item(row, |x| {
                f(last_axes([z, y, x]), (z * rows + y) * row + x);
            });
        }
    }
}

/// Leaves the id of the work-item that a device would run a logical position on, if the position unwinds.
struct OnLogicalUnwind<'c, const D: usize> {
    position: usize,
    extent: [usize; D],
    group: [usize; D],
    chunk: &'c HostChunk,
}

impl<const D: usize> Drop for OnLogicalUnwind<'_, D> {
    #[cold]
    fn drop(&mut self) {
        self.leave();
    }
}

impl<const D: usize> OnLogicalUnwind<'_, D> {
    fn leave(&self) {
        let (mut id, mut rest) = ([0; D], self.position);
        for d in (0..D).rev() {
            // No extent is zero, and nothing may panic in here.
            let (whole, local) = (rest.checked_div(self.extent[d]), rest.checked_rem(self.extent[d]));
            id[d] = self.group[d] * self.extent[d] + local.unwrap_or(0);
            rest = whole.unwrap_or(0);
        }
        leave_id(self.chunk, id);
    }
}

impl<const D: usize, S: Shape<D>> fmt::Debug for Group<'_, '_, D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("id", &self.id)
            .field("group_range", &self.groups)
            .field("local_range", &self.shape.extent())
            .finish()
    }
}

impl<const D: usize> fmt::Debug for PhaseItem<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PhaseItem").field("local_id", &self.local).field("global", &self.item).finish()
    }
}

impl<const D: usize> fmt::Debug for LogicalItem<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogicalItem").field("id", &self.id).finish()
    }
}

impl fmt::Debug for Uniform<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uniform")
    }
}
