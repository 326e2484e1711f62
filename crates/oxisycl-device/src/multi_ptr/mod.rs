//! Pointers that say which memory they lead to (SYCL 2020 section 4.7.7.1), and constants in constant memory.
//!
//! References and raw pointers are to the generic address space: one function takes those to global, local and private memory. Where the memory
//! follows from the code, the compiler uses its instructions. A [`MultiPtr`] is for where it does not follow: for addresses that a
//! kernel finds in memory, as in a list or a tree.
//!
//! | from, to | `Generic` | `Global` | `GlobalDevice`, `GlobalHost` | `Local`, `Private` | `Constant` |
//! |---|---|---|---|---|---|
//! | `Generic` | | cast | cast | cast | no |
//! | `Global` | `From` | | cast | no | no |
//! | `GlobalDevice`, `GlobalHost` | `From` | `From` | no other | no | no |
//! | `Local`, `Private` | `From` | no | no | no other | no |
//! | `Constant` | no | no | no | no | |
//!
//! A cast is [`dynamic_cast`](MultiPtr::dynamic_cast), which asks the device, or [`static_cast`](MultiPtr::static_cast), which believes the caller. What
//! the table says no to does not compile.
//!
//! ```
//! use oxisycl::multi_ptr::{MultiPtr, space};
//! use oxisycl::prelude::*;
//!
//! /// An element of a list in USM.
//! #[derive(Clone, Copy, DeviceCopyable)]
//! struct Node {
//!     value: u32,
//!     next: MultiPtr<Node, space::Global>,
//! }
//!
//! # fn main() -> oxisycl::Result {
//! let queue = Queue::default()?;
//! let first = Node { value: 30, next: MultiPtr::null() };
//! let nodes = Buffer::from_vec(vec![first, Node { value: 12, ..first }])?;
//! let sum = Buffer::from_vec(vec![0])?;
//! queue.submit(|cg| {
//!     let nodes = cg.access(&nodes, ReadWrite);
//!     cg.single_task(move |task| {
//!         let second = nodes.multi_ptr(task).wrapping_add(1);
//!         nodes.set_at(task, 0, Node { next: second, ..nodes.get_at(task, 0) });
//!     })
//! })?;
//! queue.single_task_with((nodes.read(), sum.write()), |task, (nodes, sum)| {
//!     let (mut next, mut total) = (nodes.multi_ptr(task), 0);
//!     while !next.is_null() {
//!         // SAFETY: a node of the buffer.
//!         let node = unsafe { next.read() };
//!         (next, total) = (node.next, total + node.value);
//!     }
//!     sum.set_at(task, 0, total)
//! })?;
//! assert_eq!(sum.to_vec()?, [42]);
//! # Ok(())
//! # }
//! ```

mod constant;
mod sources;
pub mod space;

use core::cell::Cell;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::argument::plain_arguments;
use crate::atomic::AtomicRef;
use crate::{AtomicElement, DeviceCopyable, InItem, builtin};

pub use constant::Constant;
use space::{Generic, Memory, Overlaps, Passed, Shared, Space, Within, Writable};

/// Bytes that one prefetch brings.
const LINE: usize = 128;

/// An address of a `T` in an address space.
///
/// It is a raw pointer with a mark: to make one, to move it and to compare it is safe, and each access is `unsafe`. The interface on host and
/// devices is the same. SYCL's decorated pointers do not exist in Rust, so there is no third parameter.
///
/// An address of local, private or constant memory stays in the kernel. Those of the other spaces may be captured, passed, and kept in buffers.
#[repr(transparent)]
pub struct MultiPtr<T, S: Space = Generic>(*mut T, PhantomData<S>);

impl<T, S: Space> Clone for MultiPtr<T, S> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, S: Space> Copy for MultiPtr<T, S> {}

// SAFETY: an address; each use of it is `unsafe` and says what it needs.
unsafe impl<T, S: Passed> Send for MultiPtr<T, S> {}
// SAFETY: as above.
unsafe impl<T, S: Passed> Sync for MultiPtr<T, S> {}
// SAFETY: an address, which only unsafe functions use. That it means something on a device is their contract.
unsafe impl<T: 'static, S: Passed> DeviceCopyable for MultiPtr<T, S> {}
// SAFETY: null.
unsafe impl<T, S: Passed> bytemuck::Zeroable for MultiPtr<T, S> {}
// SAFETY: any number is an address, which need not be valid.
unsafe impl<T: 'static, S: Passed> bytemuck::AnyBitPattern for MultiPtr<T, S> {}

plain_arguments! { [T: 'static, S: Passed] MultiPtr<T, S> }

impl<T> MultiPtr<T, Generic> {
    /// The address of a pointer, of any memory.
    #[inline(always)]
    pub const fn new(pointer: *mut T) -> Self {
        Self(pointer, PhantomData)
    }
}

impl<T, S: Space> MultiPtr<T, S> {
    /// The address, which is of that memory.
    #[inline(always)]
    pub(crate) const fn of(pointer: *mut T) -> Self {
        Self(pointer, PhantomData)
    }

    /// No address.
    #[inline(always)]
    pub const fn null() -> Self {
        Self(core::ptr::null_mut(), PhantomData)
    }

    /// Whether it is no address.
    #[inline(always)]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The pointer. The compiler knows its memory, and that of what is computed from it.
    #[inline(always)]
    pub fn get(self) -> *mut T {
        match S::MEMORY {
            Memory::Global => builtin::as_global(self.0.cast()).cast(),
            _ => self.0,
        }
    }

    /// This address as one of another type.
    #[inline(always)]
    pub const fn cast<U>(self) -> MultiPtr<U, S> {
        MultiPtr(self.0.cast(), PhantomData)
    }

    /// The address in a space that has all addresses of this one. [`From`] does the same.
    #[inline(always)]
    pub const fn widen<B: Space>(self) -> MultiPtr<T, B>
    where
        S: Within<B>,
    {
        MultiPtr(self.0, PhantomData)
    }

    /// The address in a space within this one, if it is of that memory; `None` for null.
    ///
    /// Devices tell global, local and private memory apart, and do not tell allocations apart: a cast to
    /// [`GlobalDevice`](space::GlobalDevice) or [`GlobalHost`](space::GlobalHost) asks for global memory. On the host device, and for some drivers on
    /// other processors, all memory is one, and the address is of each space.
    ///
    /// ```
    /// use oxisycl::multi_ptr::{MultiPtr, space};
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let found = Buffer::from_vec(vec![false])?;
    /// Queue::default()?.submit(|cg| {
    ///     let found = cg.access(&found, Write);
    ///     cg.single_task(move |task| {
    ///         let pointer: MultiPtr<bool> = found.multi_ptr(task).into();
    ///         found.set_at(task, 0, pointer.dynamic_cast::<space::Global>().is_some());
    ///     })
    /// })?;
    /// assert_eq!(found.to_vec()?, [true]);
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn dynamic_cast<B: Within<S>>(self) -> Option<MultiPtr<T, B>> {
        let address = self.0.cast_const().cast();
        let is_there = match (S::MEMORY, B::MEMORY) {
            (Memory::Any, Memory::Global) => builtin::is_global_address(address),
            (Memory::Any, Memory::Local) => builtin::is_local_address(address),
            (Memory::Any, Memory::Private) => builtin::is_private_address(address),
            // A part of global memory.
            _ => true,
        };
        (!self.is_null() && is_there).then_some(MultiPtr(self.0, PhantomData))
    }

    /// The address in a space within this one.
    ///
    /// # Safety
    /// The address is null, or one of that memory.
    #[inline(always)]
    pub const unsafe fn static_cast<B: Within<S>>(self) -> MultiPtr<T, B> {
        MultiPtr(self.0, PhantomData)
    }

    /// The address `count` elements further.
    #[inline(always)]
    pub const fn wrapping_add(self, count: usize) -> Self {
        Self(self.0.wrapping_add(count), PhantomData)
    }

    /// The address `count` elements before.
    #[inline(always)]
    pub const fn wrapping_sub(self, count: usize) -> Self {
        Self(self.0.wrapping_sub(count), PhantomData)
    }

    /// The address `count` elements further, or before.
    #[inline(always)]
    pub const fn wrapping_offset(self, count: isize) -> Self {
        Self(self.0.wrapping_offset(count), PhantomData)
    }

    /// The address `count` elements further, in the same allocation.
    ///
    /// # Safety
    /// That of the method of raw pointers.
    #[inline(always)]
    pub const unsafe fn add(self, count: usize) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { self.0.add(count) }, PhantomData)
    }

    /// The address `count` elements before, in the same allocation.
    ///
    /// # Safety
    /// That of the method of raw pointers.
    #[inline(always)]
    pub const unsafe fn sub(self, count: usize) -> Self {
        // SAFETY: by the contract of this function.
        Self(unsafe { self.0.sub(count) }, PhantomData)
    }

    /// How many elements this address is behind `other` in the same allocation.
    ///
    /// # Safety
    /// That of the method of raw pointers.
    #[inline(always)]
    pub const unsafe fn offset_from(self, other: Self) -> isize {
        // SAFETY: by the contract of this function.
        unsafe { self.0.offset_from(other.0) }
    }

    /// Loads the element.
    ///
    /// # Safety
    /// The executing device can use the address, which is aligned and of a value of `T`. Nothing writes it at the same time.
    #[inline(always)]
    pub unsafe fn read(self) -> T
    where
        T: Copy,
    {
        // SAFETY: by the contract of this function.
        unsafe { self.get().read() }
    }

    /// Stores to the element.
    ///
    /// # Safety
    /// The executing device can use the address, which is aligned. Nothing else accesses it at the same time.
    #[inline(always)]
    pub unsafe fn write(self, value: T)
    where
        T: Copy,
        S: Writable,
    {
        // SAFETY: by the contract of this function.
        unsafe { self.get().write(value) }
    }

    /// The element.
    ///
    /// # Safety
    /// As for [`read`](Self::read), for as long as the reference exists.
    #[inline(always)]
    pub unsafe fn as_ref<'a>(self) -> &'a T {
        // SAFETY: by the contract of this function.
        unsafe { &*self.get() }
    }

    /// The element as a cell.
    ///
    /// # Safety
    /// As for [`read`](Self::read) and [`write`](Self::write), for as long as the reference exists. Only this work-item accesses the element.
    #[inline(always)]
    pub unsafe fn as_cell<'a>(self) -> &'a Cell<T>
    where
        S: Writable,
    {
        // SAFETY: by the contract of this function; a cell has the layout of its value.
        unsafe { &*self.get().cast_const().cast() }
    }

    /// The element for atomic operations, whose scope is the device, and the group in local memory.
    ///
    /// # Safety
    /// The executing device can use the address, which is aligned to the size of `T` and of a value of `T`. As long as the kernel runs, all accesses to it
    /// are atomic.
    #[inline(always)]
    pub unsafe fn atomic_ref<'k>(self, item: impl InItem<'k>) -> AtomicRef<'k, T>
    where
        T: AtomicElement,
        S: Shared,
    {
        // SAFETY: by the contract of this function. Work-items of one group reach local memory.
        unsafe {
            match S::MEMORY {
                Memory::Local => AtomicRef::local(self.get()),
                _ => AtomicRef::from_ptr(item, self.get()),
            }
        }
    }

    /// Says that the next `count` elements will be loaded soon. NVIDIA's GPUs bring them to their cache; elsewhere it does nothing.
    ///
    /// # Safety
    /// The executing device can use the addresses.
    #[inline(always)]
    pub unsafe fn prefetch(self, count: usize)
    where
        S: Passed,
    {
        if builtin::is_device_code() {
            for line in (0..count.saturating_mul(size_of::<T>())).step_by(LINE) {
                // SAFETY: by the contract of this function.
                unsafe { builtin::prefetch(self.get().cast_const().cast::<u8>().wrapping_add(line)) };
            }
        }
    }
}

impl<T, S: Space> Default for MultiPtr<T, S> {
    fn default() -> Self {
        Self::null()
    }
}

impl<T, A: Overlaps<B>, B: Space> PartialEq<MultiPtr<T, B>> for MultiPtr<T, A> {
    #[inline(always)]
    fn eq(&self, other: &MultiPtr<T, B>) -> bool {
        self.0 == other.0
    }
}

impl<T, S: Overlaps<S>> Eq for MultiPtr<T, S> {}

impl<T, A: Overlaps<B>, B: Space> PartialOrd<MultiPtr<T, B>> for MultiPtr<T, A> {
    #[inline(always)]
    fn partial_cmp(&self, other: &MultiPtr<T, B>) -> Option<Ordering> {
        self.0.partial_cmp(&other.0)
    }
}

impl<T, S: Overlaps<S>> Ord for MultiPtr<T, S> {
    #[inline(always)]
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

impl<T, S: Space> Hash for MultiPtr<T, S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<T, S: Space> fmt::Debug for MultiPtr<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", S::NAME, self.0)
    }
}
