//! Traits that exist for the messages of the compiler: bounds of what a program may not do, and what it should do instead.
//!
//! User code does not name them. Each either holds for exactly what the language's own bound holds for, or for nothing at all.

use core::ops::{Index, IndexMut};

use crate::Accessor;

/// What a kernel may capture: values that are copied, bit by bit. The same as `Copy`, with a message of its own.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this kernel captures a value that is not copied to a device, such as a `Vec`, a `String`, a map or a `Buffer`",
    label = "captures what is not `Copy`",
    note = "elements go into a `Buffer`; the kernel captures an accessor: `let data = cg.access(&buffer, Read);`",
    note = "single values are captured if their types are `Copy`: numbers, arrays, and what derives `DeviceCopyable`"
)]
pub trait Captured: Copy {}

#[diagnostic::do_not_recommend]
impl<K: Copy> Captured for K {}

/// A type of which every bit pattern is a value. The same as `bytemuck::AnyBitPattern`, with a message of its own.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "uninitialised memory need not hold a value of `{Self}`",
    label = "not every bit pattern is a `{Self}`",
    note = "make it of values, such as with `Buffer::from_vec` and `UsmSlice::copy_from_slice`",
    note = "a type of your own whose every bit pattern is a value derives `bytemuck::AnyBitPattern`"
)]
pub trait AnyBits: bytemuck::AnyBitPattern {}

#[diagnostic::do_not_recommend]
impl<T: bytemuck::AnyBitPattern> AnyBits for T {}

/// An index of an accessor. There is none: an accessor alone gives no access.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "an accessor is not indexed",
    label = "no index of an accessor",
    note = "a work-item's own element is `data.get(item)`, `data.set(item, value)` and `data.update(item, |x| ..)`",
    note = "any element of an accessor with mode `Read` is `data.view(item)[index]`"
)]
pub trait AccessorIndex {
    /// What an index would give. There is nothing to call it with.
    fn never<R>(&self) -> R;
}

impl<T, const D: usize, M, I: AccessorIndex> Index<I> for Accessor<'_, T, D, M> {
    type Output = T;
    fn index(&self, index: I) -> &T {
        index.never()
    }
}

impl<T, const D: usize, M, I: AccessorIndex> IndexMut<I> for Accessor<'_, T, D, M> {
    fn index_mut(&mut self, index: I) -> &mut T {
        index.never()
    }
}
