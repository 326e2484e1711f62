//! The host's half of arguments. This crate has no host: the facade implements these traits for its command groups.

use core::error::Error;

use super::KernelArg;

/// What arguments are taken apart for: a command group that is being recorded.
pub trait LaunchHost {
    /// Why an argument cannot be passed.
    type Error;

    /// The error for an argument that its own type refuses.
    fn refuse(&mut self, cause: impl Error + Send + Sync + 'static) -> Self::Error;

    /// The error of a part, as that of what it is a part of.
    fn within(error: Self::Error, part: Part) -> Self::Error;
}

/// A part of an argument, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// A field of a struct or tuple.
    Field(&'static str),
    /// An element of an array.
    Element(usize),
}

/// Taking an argument apart on the host.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel",
    label = "not an argument of a kernel",
    note = "plain data: `#[derive(Clone, Copy, DeviceCopyable)]`",
    note = "a buffer or an image: `x.read()`, `x.write()` or `x.update()`",
    note = "memory of the host, by value: `Vec<T>`, `Box<[T]>`, `Arc<[T]>`, `String`"
)]
pub trait Deconstruct<H: LaunchHost>: KernelArg {
    /// Gives the bits that cross. What they refer to lives until the command has ended, which `host` sees to.
    ///
    /// # Errors
    /// If the argument cannot be passed. All that it consists of has been dropped.
    ///
    /// # Safety
    /// The result is used for the launch that `host` records, and for nothing else.
    unsafe fn deconstruct(self, host: &mut H) -> Result<Self::Sent, H::Error>;
}

/// Taking an argument apart into bits of a given type, which `derive(KernelArg)` requires of fields.
///
/// A bound with [`Deconstruct`] would also be one with [`KernelArg`], and hide what the compiler knows about the bits that cross.
#[doc(hidden)]
pub trait DeconstructTo<H: LaunchHost, S> {
    /// What [`Deconstruct::deconstruct`] is.
    ///
    /// # Safety
    /// That of [`Deconstruct::deconstruct`].
    unsafe fn deconstruct_to(self, host: &mut H) -> Result<S, H::Error>;
}

impl<H: LaunchHost, A: Deconstruct<H>> DeconstructTo<H, A::Sent> for A {
    #[inline(always)]
    unsafe fn deconstruct_to(self, host: &mut H) -> Result<A::Sent, H::Error> {
        // SAFETY: by the contract of this function.
        unsafe { self.deconstruct(host) }
    }
}
