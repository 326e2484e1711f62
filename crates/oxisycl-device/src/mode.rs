//! Access modes as types, so that what an accessor allows is known at compile time.

use bytemuck::AnyBitPattern;
use oxisycl_types::AccessMode;

use crate::DeviceCopyable;
use crate::atomic::AtomicValue;

mod sealed {
    #[diagnostic::on_unimplemented(
        message = "`{Self}` cannot be an access mode",
        note = "the modes are `Read`, `Write`, `ReadWrite` and `Atomic`"
    )]
    pub trait Sealed {}
}

/// How a command uses a buffer (SYCL 2020 section 4.7.6.2). Implemented by this crate only.
pub trait Mode: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The mode that the runtime receives.
    const MODE: AccessMode;
    /// Whether the old contents may be discarded (`property::no_init`).
    const NO_INIT: bool = false;
}

/// A mode that is allowed for element type `T`. Implemented by this crate only.
///
/// # Safety
/// If the mode discards the old contents, every bit pattern is a value of `T`.
#[diagnostic::on_unimplemented(
    message = "a buffer of `{T}` cannot be accessed with mode `{Self}`",
    note = "`no_init` needs a type that is valid for every bit pattern (`bytemuck::AnyBitPattern`), `Atomic` a 32- or 64-bit number, or u128"
)]
pub unsafe trait ModeFor<T>: Mode {}

/// A mode that stores.
#[diagnostic::on_unimplemented(
    message = "an accessor with mode `{Self}` cannot store",
    note = "make it with `Write`, which keeps what is not written, `ReadWrite` or, for new contents only, `Write.no_init()`"
)]
pub trait Stores: Mode {}

/// A mode that loads.
#[diagnostic::on_unimplemented(
    message = "an accessor with mode `{Self}` cannot load",
    note = "make it with `Read` or `ReadWrite`; an accessor with mode `Atomic` has `load`"
)]
pub trait Loads: Mode {}

/// A mode that loads and does not store. What a [`View`](crate::View) needs: nothing writes the elements while the kernel runs.
#[diagnostic::on_unimplemented(
    message = "an accessor with mode `{Self}` has no views, because other work-items may write its elements",
    note = "make it with `Read`; results go into another buffer"
)]
pub trait OnlyLoads: Loads {}

/// Reads only.
#[derive(Clone, Copy, Debug)]
pub struct Read;

/// Writes only; elements that the kernel does not write keep their value.
#[derive(Clone, Copy, Debug)]
pub struct Write;

/// Reads and writes.
#[derive(Clone, Copy, Debug)]
pub struct ReadWrite;

/// Atomic operations on any element from any work-item; counts as writing.
#[derive(Clone, Copy, Debug)]
pub struct Atomic;

/// `M` without the old contents (SYCL 2020 `property::no_init`). No data is moved to the device, and elements that the
/// kernel does not write are indeterminate afterwards. Made by [`Write::no_init`] and [`ReadWrite::no_init`].
#[derive(Clone, Copy, Debug)]
pub struct NoInit<M>(M);

impl Write {
    /// Write without keeping the old contents.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let squares = Buffer::<u64, 1>::uninit(10)?;
    /// Queue::default()?.submit(|cg| {
    ///     let squares = cg.access(&squares, Write.no_init());
    ///     cg.parallel_for(10, move |item| squares.set(item, (item.index() * item.index()) as u64))
    /// })?;
    /// assert_eq!(squares.to_vec()?[9], 81);
    /// # Ok(())
    /// # }
    /// ```
    pub const fn no_init(self) -> NoInit<Self> {
        NoInit(self)
    }
}

impl ReadWrite {
    /// Read and write without keeping the old contents.
    pub const fn no_init(self) -> NoInit<Self> {
        NoInit(self)
    }
}

impl sealed::Sealed for Read {}
impl sealed::Sealed for Write {}
impl sealed::Sealed for ReadWrite {}
impl sealed::Sealed for Atomic {}
impl<M: sealed::Sealed> sealed::Sealed for NoInit<M> {}

impl Mode for Read {
    const MODE: AccessMode = AccessMode::Read;
}
impl Mode for Write {
    const MODE: AccessMode = AccessMode::Write;
}
impl Mode for ReadWrite {
    const MODE: AccessMode = AccessMode::ReadWrite;
}
impl Mode for Atomic {
    const MODE: AccessMode = AccessMode::ReadWrite;
}
impl<M: Mode> Mode for NoInit<M> {
    const MODE: AccessMode = M::MODE;
    const NO_INIT: bool = true;
}

// SAFETY: keeps the old contents.
unsafe impl<T: DeviceCopyable> ModeFor<T> for Read {}
// SAFETY: keeps the old contents.
unsafe impl<T: DeviceCopyable> ModeFor<T> for Write {}
// SAFETY: keeps the old contents.
unsafe impl<T: DeviceCopyable> ModeFor<T> for ReadWrite {}
// SAFETY: keeps the old contents.
unsafe impl<T: AtomicValue> ModeFor<T> for Atomic {}
// Without this, the compiler complains about a missing `Pod` instead of saying what the trait says.
#[diagnostic::do_not_recommend]
// SAFETY: every bit pattern is a value.
unsafe impl<T: DeviceCopyable + AnyBitPattern, M: Stores> ModeFor<T> for NoInit<M> {}

impl Stores for Write {}
impl Stores for ReadWrite {}
impl<M: Stores> Stores for NoInit<M> {}

impl Loads for Read {}
impl Loads for ReadWrite {}
impl<M: Loads> Loads for NoInit<M> {}

impl OnlyLoads for Read {}
