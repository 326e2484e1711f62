//! Copies and fills as commands (E6, E7).

use std::sync::Arc;

use oxisycl_backend::{Command, CopyCommand, FillCommand, FillPattern, MemoryId, Rectangle};
use oxisycl_device::{Accessor, DeviceCopyable, Loads, Read, Stores};
use oxisycl_types::{Id, Range};
use parking_lot::Mutex;

use super::Handler;
use crate::{Buffer, Error, Result};

/// Host memory that a copy command can own.
///
/// # Safety
/// `pointer` stays valid for reading `len` elements, and the elements unchanged, until the value is dropped, wherever it is moved.
pub unsafe trait HostMemory<T>: Send + 'static {
    /// The first element.
    fn pointer(&self) -> *const T;
    /// The number of elements.
    fn len(&self) -> usize;
    /// Whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: a vector's elements do not move with it, and only its owner changes them.
unsafe impl<T: DeviceCopyable> HostMemory<T> for Vec<T> {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        Vec::len(self)
    }
}

// SAFETY: shared elements neither move nor change while the `Arc` lives: there is no interior mutability in device-copyable
// types, and `Arc::get_mut` needs the only reference.
unsafe impl<T: DeviceCopyable> HostMemory<T> for Arc<[T]> {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
}

// SAFETY: the elements of a static slice neither move nor change.
unsafe impl<T: DeviceCopyable> HostMemory<T> for &'static [T] {
    fn pointer(&self) -> *const T {
        self.as_ptr()
    }
    fn len(&self) -> usize {
        <[T]>::len(self)
    }
}

/// Where host memory waits for the end of its copy.
#[derive(Debug)]
pub struct HostSlot<H>(Arc<Mutex<State<H>>>);

#[derive(Debug)]
struct State<H> {
    memory: Option<H>,
    is_free: bool,
}

impl<H> Clone for HostSlot<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<H> HostSlot<H> {
    /// The memory, once the command has completed; `None` before, and after it was taken.
    pub fn take(&self) -> Option<H> {
        let mut state = self.0.lock();
        if state.is_free { state.memory.take() } else { None }
    }
}

/// Held by the command; its drop frees the memory for the user.
struct InUse<H>(HostSlot<H>);

impl<H> Drop for InUse<H> {
    fn drop(&mut self) {
        self.0.0.lock().is_free = true;
    }
}

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

    fn rectangle_at(&self, offset: usize) -> Rectangle {
        Rectangle {
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
        commands.push(Command::Copy(copy));
        return;
    }
    let mut position = 0;
    while position < bytes {
        let run = |layout: &Layout| {
            if layout.is_contiguous() { (position, layout.bytes() - position) } else { layout.run_at(position) }
        };
        let ((from, from_run), (to, to_run)) = (run(source), run(target));
        let length = from_run.min(to_run).min(bytes - position);
        commands.push(Command::Copy(CopyCommand {
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
    fn layout<T, const D: usize, M>(&self, accessor: Accessor<'cg, T, D, M>) -> Layout {
        Layout::of_accessor(accessor, self.queue.device().memory_id(), accessor.buffer_range())
    }

    /// Copies the elements of `source` to the first elements of `target`, both in row-major order; the shapes may differ.
    ///
    /// Errors: `Invalid` if the target has fewer elements than the source, or for a second command in the group; what `access`
    /// recorded.
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
            copies(&source, &target, &mut handler.group.commands);
            Ok(())
        })
    }

    /// Copies host memory, which the command owns until it completes, to `target`. The slot gives it back.
    ///
    /// Errors: `Invalid` if the memory has fewer elements than the target, or for a second command in the group; what `access`
    /// recorded.
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
        Ok(self.hold_host_memory(source))
    }

    /// Copies `source` to a vector, which the command owns until it completes. The slot gives it back.
    ///
    /// Errors: `Invalid` if the vector has fewer elements than the source, or for a second command in the group; what `access`
    /// recorded.
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
            // SAFETY: the vector's elements are valid and used by nobody else while the hold below owns it.
            unsafe { handler.copy_to_raw(source, pointer) }
        })?;
        Ok(self.hold_host_memory(target))
    }

    pub(crate) fn hold_host_memory<H: Send + 'static>(&mut self, memory: H) -> HostSlot<H> {
        let slot = HostSlot(Arc::new(Mutex::new(State { memory: Some(memory), is_free: false })));
        self.group.holds.push(Box::new(InUse(slot.clone())));
        slot
    }

    /// Copies elements at a host pointer to `target`.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    ///
    /// # Safety
    /// Until the command completes, `source` is valid for reading as many elements as `target` has, and nobody writes them.
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
    /// Until the command completes, `target` is valid for writing as many elements as `source` has, and nobody else uses them.
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

    unsafe fn copy_from_raw<T, const D: usize, M>(
        &mut self,
        source: *const T,
        target: Accessor<'cg, T, D, M>,
    ) -> Result {
        let target = self.layout(target);
        let source = Layout::linear(source.cast_mut().cast(), target.bytes());
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
    pub fn fill<T, const D: usize, M>(&mut self, target: Accessor<'cg, T, D, M>, value: T) -> Result
    where
        T: DeviceCopyable,
        M: Stores,
    {
        self.command("a fill", |handler| {
            let layout = handler.layout(target);
            if layout.bytes() > 0 {
                let mut extent = target.range().embed();
                if layout.is_contiguous() {
                    extent = [1, 1, target.size()];
                }
                let fill = FillCommand { target: layout.rectangle_at(0), pattern: pattern_of(&value), extent };
                handler.group.commands.push(Command::Fill(fill));
            }
            Ok(())
        })
    }

    /// The host has the newest data of `buffer` when the command completes.
    ///
    /// Errors: `Invalid` for a second command in the group; what `access` recorded.
    pub fn update_host<T: DeviceCopyable, const D: usize>(&mut self, buffer: &Buffer<T, D>) -> Result {
        self.command("update_host", |handler| {
            let host = crate::wiring::runtime()?.host();
            handler.require_on::<T, D, Read>(buffer, buffer.range(), Id::default(), host, true);
            handler.failed.clone().map_or(Ok(()), Err)
        })
    }
}

/// The bytes of a value. Padding bytes are written as zeros.
pub(super) fn pattern_of<T: DeviceCopyable>(value: &T) -> FillPattern {
    let mut bytes = FillPattern::from_elem(0, size_of::<T>());
    // SAFETY: both are valid for the size of `T` and distinct. A typed copy of a value may leave padding undefined, so the
    // value is written over zeros and read back byte-wise only by copying.
    unsafe { std::ptr::from_ref(value).cast::<u8>().copy_to_nonoverlapping(bytes.as_mut_ptr(), size_of::<T>()) };
    bytes
}
