//! Copies and fills as commands.

use std::any::{Any, TypeId};
use std::sync::Arc;

use oxisycl_backend::{Command, CopyCommand, FillCommand, FillPattern, MemoryId, PitchedBox};
use oxisycl_device::{Accessor, DeviceCopyable, Loads, Read, Stores};
use oxisycl_runtime::graph::KeptAlive;
use oxisycl_types::{ErrorCode, Id, Range};

use super::{Handler, HostMemory, HostSlot};
use crate::{Buffer, Error, Result};

/// A box of elements with pitches, in bytes.
struct Layout {
    pointer: *mut u8,
    memory: MemoryId,
    extent: [usize; 3],
    pitch: [usize; 2],
}

impl Layout {
    fn of_accessor<T, const D: usize, M>(accessor: Accessor<'_, T, D, M>, memory: MemoryId, buffer: Range<D>) -> Self {
        let size = size_of::<T>();
        let mut extent = accessor.range().embed();
        extent[2] *= size;
        let full = buffer.embed();
        let first = buffer.linear(&accessor.offset());
        let row = full[2] * size;
        Self { pointer: accessor.as_ptr().wrapping_add(first).cast(), memory, extent, pitch: [row, row * full[1]] }
    }

    fn linear(pointer: *mut u8, bytes: usize) -> Self {
        Self { pointer, memory: MemoryId::HOST, extent: [1, 1, bytes], pitch: [bytes, bytes] }
    }

    fn bytes(&self) -> usize {
        self.extent.iter().product()
    }

    /// Whether the box is one run of bytes.
    fn is_contiguous(&self) -> bool {
        let rows_touch = self.extent[1] == 1 || self.pitch[0] == self.extent[2];
        let slices_touch = self.extent[0] == 1 || self.pitch[1] == self.extent[1] * self.extent[2];
        rows_touch && slices_touch
    }

    fn rectangle_at(&self, offset: usize) -> PitchedBox {
        PitchedBox {
            memory: self.memory,
            pointer: self.pointer.wrapping_add(offset),
            row_pitch: self.pitch[0],
            slice_pitch: self.pitch[1],
        }
    }

    /// Where the byte at a row-major position lies, and how many follow it without a gap.
    fn run_at(&self, position: usize) -> (usize, usize) {
        let [_, rows, row] = self.extent;
        let (line, x) = (position / row, position % row);
        let (z, y) = (line / rows, line % rows);
        (z * self.pitch[1] + y * self.pitch[0] + x, row - x)
    }
}

/// The backend copies for the first `source.bytes()` bytes of `target`, in row-major order of both.
fn copies(source: &Layout, target: &Layout, commands: &mut smallvec::SmallVec<[Command; 1]>) {
    let bytes = source.bytes();
    if bytes == 0 {
        return;
    }
    if source.extent == target.extent {
        let copy =
            CopyCommand { source: source.rectangle_at(0), target: target.rectangle_at(0), extent: source.extent };
        commands.push(Command::from(copy));
        return;
    }
    let mut position = 0;
    while position < bytes {
        let run = |layout: &Layout| {
            if layout.is_contiguous() { (position, layout.bytes() - position) } else { layout.run_at(position) }
        };
        let ((from, from_run), (to, to_run)) = (run(source), run(target));
        let length = from_run.min(to_run).min(bytes - position);
        commands.push(Command::from(CopyCommand {
            source: source.rectangle_at(from),
            target: target.rectangle_at(to),
            extent: [1, 1, length],
        }));
        position += length;
    }
}

fn too_small(target: usize, source: usize) -> Error {
    Error::invalid(format!("the target of a copy has {target} elements, fewer than the source's {source}"))
}

impl<'cg> Handler<'cg> {
    /// The command stores to all of `target`, whose old contents therefore need neither be moved nor be there.
    fn overwrite(&mut self, target: &Layout) {
        if target.bytes() == 0 {
            return;
        }
        let end = (0..3).map(|d| (target.extent[d] - 1) * [target.pitch[1], target.pitch[0], 1][d]).sum();
        for requirement in &mut self.group.requirements {
            if requirement.memory == target.memory {
                requirement.discard_if_overwritten(target.pointer, target.pointer.wrapping_add(end), target.bytes());
            }
        }
    }

    fn layout<T, const D: usize, M>(&self, accessor: Accessor<'cg, T, D, M>) -> Layout {
        Layout::of_accessor(accessor, self.queue.device().memory_id(), accessor.buffer_range())
    }

    /// Copies the elements of `source` to the first elements of `target`, both in row-major order; the shapes may differ.
    ///
    /// Errors: `Invalid` if the target has fewer elements than the source, or for a second command in the group.
    /// `Accessor` if both are the same accessor. What `access` recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (source, target) = (Buffer::from_vec(vec![1, 2, 3])?, Buffer::from_vec(vec![0; 5])?);
    /// Queue::default()?.submit(|cg| {
    ///     let (source, target) = (cg.access(&source, Read), cg.access_range(&target, Write, 2, 3));
    ///     cg.copy(source, target)
    /// })?;
    /// assert_eq!(target.to_vec()?, [0, 0, 1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy<T, const D: usize, const E: usize, M, N>(
        &mut self,
        source: Accessor<'cg, T, D, M>,
        target: Accessor<'cg, T, E, N>,
    ) -> Result
    where
        T: DeviceCopyable,
        M: Loads,
        N: Stores,
    {
        self.command("a copy", |handler| {
            if target.size() < source.size() {
                return Err(too_small(target.size(), source.size()));
            }
            let (source, target) = (handler.layout(source), handler.layout(target));
            // Other accessors of the group do not overlap if one of them writes.
            if source.pointer == target.pointer && source.bytes() > 0 {
                let message = "the source and the target of a copy are the same accessor";
                return Err(Error::new(ErrorCode::Accessor, message));
            }
            if source.bytes() == target.bytes() {
                handler.overwrite(&target);
            }
            copies(&source, &target, &mut handler.group.commands);
            Ok(())
        })
    }

    /// Copies host memory, which the command owns until it completes, to `target`. The slot gives it back.
    ///
    /// Errors: `Invalid` if the memory has fewer elements than the target, or for a second command in the group; what `access`
    /// recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0; 5])?;
    /// Queue::default()?.submit(|cg| {
    ///     let middle = cg.access_range(&numbers, Write, 1, 3);
    ///     cg.copy_from_host(vec![7, 8, 9], middle)
    /// })?;
    /// assert_eq!(numbers.to_vec()?, [0, 7, 8, 9, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_from_host<T, const D: usize, M, H>(
        &mut self,
        source: H,
        target: Accessor<'cg, T, D, M>,
    ) -> Result<HostSlot<H>>
    where
        T: DeviceCopyable,
        M: Stores,
        H: HostMemory<T>,
    {
        let (pointer, n_elements) = (source.pointer(), source.len());
        self.command("a copy from the host", |handler| {
            if n_elements < target.size() {
                return Err(too_small(n_elements, target.size()));
            }
            // SAFETY: `HostMemory` keeps the elements valid and unchanged while the hold below owns the memory.
            unsafe { handler.copy_from_raw(pointer, target) }
        })?;
        let plain = [TypeId::of::<Vec<T>>(), TypeId::of::<Arc<[T]>>(), TypeId::of::<&'static [T]>()];
        Ok(self.lend(source, false, plain.contains(&TypeId::of::<H>())))
    }

    /// Copies `source` to a vector, which the command owns until it completes. The slot gives it back.
    ///
    /// Errors: `Invalid` if the vector has fewer elements than the source, or for a second command in the group; what `access`
    /// recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![0, 1, 2, 3, 4])?;
    /// let (event, slot) = Queue::default()?.submit_with(|cg| {
    ///     let middle = cg.access_range(&numbers, Read, 1, 3);
    ///     cg.copy_to_host(middle, vec![0; 3])
    /// })?;
    /// event.wait()?;
    /// assert_eq!(slot.take(), Some(vec![1, 2, 3]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_to_host<T, const D: usize, M>(
        &mut self,
        source: Accessor<'cg, T, D, M>,
        mut target: Vec<T>,
    ) -> Result<HostSlot<Vec<T>>>
    where
        T: DeviceCopyable,
        M: Loads,
    {
        let (pointer, n_elements) = (target.as_mut_ptr(), target.len());
        self.command("a copy to the host", |handler| {
            if n_elements < source.size() {
                return Err(too_small(n_elements, source.size()));
            }
            // SAFETY: the vector's elements are valid and used by nothing else while the hold below owns it.
            unsafe { handler.copy_to_raw(source, pointer) }
        })?;
        Ok(self.hold_vector(target))
    }

    /// Lends a vector to the command, which writes it.
    pub(crate) fn hold_vector<T: DeviceCopyable>(&mut self, vector: Vec<T>) -> HostSlot<Vec<T>> {
        self.lend(vector, true, true)
    }

    fn lend<H: Send + 'static>(&mut self, memory: H, is_written: bool, is_plain: bool) -> HostSlot<H> {
        let (slot, loan) = HostSlot::lend(memory, is_written, is_plain);
        self.group.kept_alive.push(KeptAlive::Loan(loan));
        slot
    }

    /// Copies elements at a host pointer to `target`.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// # Safety
    /// Until the command completes, `source` is valid for reading as many elements as `target` has, and nothing writes them.
    pub unsafe fn copy_from_pointer<T, const D: usize, M>(
        &mut self,
        source: *const T,
        target: Accessor<'cg, T, D, M>,
    ) -> Result
    where
        T: DeviceCopyable,
        M: Stores,
    {
        // SAFETY: the caller's contract.
        self.command("a copy from a pointer", |handler| unsafe { handler.copy_from_raw(source, target) })
    }

    /// Copies `source` to elements at a host pointer.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// # Safety
    /// Until the command completes, `target` is valid for writing as many elements as `source` has, and nothing else uses them.
    pub unsafe fn copy_to_pointer<T, const D: usize, M>(
        &mut self,
        source: Accessor<'cg, T, D, M>,
        target: *mut T,
    ) -> Result
    where
        T: DeviceCopyable,
        M: Loads,
    {
        // SAFETY: the caller's contract.
        self.command("a copy to a pointer", |handler| unsafe { handler.copy_to_raw(source, target) })
    }

    unsafe fn copy_from_raw<T: DeviceCopyable, const D: usize, M: Stores>(
        &mut self,
        source: *const T,
        target: Accessor<'cg, T, D, M>,
    ) -> Result {
        let target = self.layout(target);
        let source = Layout::linear(source.cast_mut().cast(), target.bytes());
        self.overwrite(&target);
        copies(&source, &target, &mut self.group.commands);
        Ok(())
    }

    unsafe fn copy_to_raw<T, const D: usize, M>(&mut self, source: Accessor<'cg, T, D, M>, target: *mut T) -> Result {
        let source = self.layout(source);
        let target = Layout::linear(target.cast(), source.bytes());
        copies(&source, &target, &mut self.group.commands);
        Ok(())
    }

    /// Stores `value` to every element of the accessor's range.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let table = Buffer::from_vec_nd(vec![0; 6], [2, 3])?;
    /// Queue::default()?.submit(|cg| {
    ///     let column = cg.access_range(&table, Write, [0, 1], [2, 1]);
    ///     cg.fill(column, 7)
    /// })?;
    /// assert_eq!(table.to_vec()?, [0, 7, 0, 0, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill<T, const D: usize, M>(&mut self, target: Accessor<'cg, T, D, M>, value: T) -> Result
    where
        T: DeviceCopyable,
        M: Stores,
    {
        self.command("a fill", |handler| {
            let layout = handler.layout(target);
            handler.overwrite(&layout);
            if layout.bytes() > 0 {
                let mut extent = target.range().embed();
                if layout.is_contiguous() {
                    extent = [1, 1, target.size()];
                }
                let fill = FillCommand { target: layout.rectangle_at(0), pattern: pattern_of(&value), extent };
                handler.group.commands.push(Command::from(fill));
            }
            Ok(())
        })
    }

    /// The host has the newest data of `buffer` when the command completes.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let numbers = Buffer::from_vec(vec![1, 2, 3])?;
    /// let event = Queue::default()?.submit(|cg| cg.update_host(&numbers))?;
    /// event.wait()?;
    /// assert_eq!(numbers.host_access(Read)?[0], 1); // without a copy
    /// # Ok(())
    /// # }
    /// ```
    pub fn update_host<T: DeviceCopyable, const D: usize>(&mut self, buffer: &Buffer<T, D>) -> Result {
        self.command("update_host", |handler| {
            let host = crate::wiring::runtime()?.host();
            handler.require_on::<T, D, Read>(buffer, buffer.range(), Id::default(), host, true);
            handler.failed.clone().map_or(Ok(()), Err)
        })
    }
}

/// The bytes of a value. Of primitive types they are known to have no padding, which lets devices set memory byte by byte.
pub(super) fn pattern_of<T: DeviceCopyable>(value: &T) -> FillPattern {
    macro_rules! plain {
        ($($primitive:ty)*) => { $(
            if let Some(value) = (value as &dyn Any).downcast_ref::<$primitive>() {
                return FillPattern::from_slice(bytemuck::bytes_of(value));
            }
        )* };
    }
    plain! { u8 i8 u16 i16 u32 i32 u64 i64 u128 i128 usize isize f32 f64 bool char }
    FillPattern::of(value)
}
