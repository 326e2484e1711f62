//! Arguments of kernels: their traits, and the host's half of those that the runtime has something to do for.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use oxisycl_device::{Accessor, Chunked, ModeFor, Stores};
use oxisycl_runtime::graph::{KeptAlive, Loan};
use oxisycl_types::{ErrorCode, Id};

#[doc(inline)]
pub use oxisycl_device::argument::*;

pub use oxisycl_image::Argument;

use crate::buffer::{BufferAccess, ChunkedAccess};
use crate::usm::{UsmPointer, UsmSlice};
use crate::{Buffer, DeviceCopyable, Error, Handler, Placeholder, Read, Result};

/// What crosses to a device for arguments of a type, in the order of declaration.
///
/// A launch passes these behind what the kernel captures, so that their offsets begin where the captures end. The device compiler makes the
/// same list for the image. Both are compared at the first launch. `cargo sycl inspect` and traces show them.
///
/// ```
/// let list = oxisycl::argument::list::<(u8, [f32; 2], Vec<u64>)>();
/// let paths: Vec<&str> = list.iter().map(|argument| argument.path.as_str()).collect();
/// assert_eq!(paths, ["0", "1[0]", "1[1]", "2"]);
/// ```
pub fn list<A: KernelArg>() -> Vec<Argument> {
    Argument::list(<Sent<A>>::TYPE)
}

/// Why an argument cannot be passed, and which part of it. The command group gives it to the user as an [`Error`].
pub struct ArgumentError {
    /// From the whole argument to the part, such as `1.sta[2]`.
    path: Cow<'static, str>,
    cause: Cause,
}

enum Cause {
    /// The runtime refuses it.
    Runtime(Error),
    /// The argument's own type does.
    Type(Box<dyn StdError + Send + Sync>),
}

impl ArgumentError {
    /// The error of the command group, whose kernel has that name and was launched there.
    pub(crate) fn into_error(self, kernel: &str, location: &std::panic::Location<'_>) -> Error {
        let path = match &*self.path {
            "" => "the argument".to_owned(),
            path => format!("argument \"{path}\""),
        };
        let message =
            |cause: &dyn fmt::Display| format!("{path} of kernel \"{kernel}\" (launched at {location}): {cause}");
        match self.cause {
            Cause::Runtime(error) => Error::new(error.code(), message(&error)),
            Cause::Type(cause) => Error::with_source(ErrorCode::KernelArgument, message(&cause), cause),
        }
    }
}

impl From<Error> for ArgumentError {
    fn from(error: Error) -> Self {
        Self { path: Cow::Borrowed(""), cause: Cause::Runtime(error) }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { String::new() } else { format!("part \"{}\": ", self.path) };
        match &self.cause {
            Cause::Runtime(error) => write!(f, "{path}{error}"),
            Cause::Type(error) => write!(f, "{path}{error}"),
        }
    }
}

impl fmt::Debug for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl LaunchHost for Handler<'_> {
    type Error = ArgumentError;

    fn refuse(&mut self, cause: impl StdError + Send + Sync + 'static) -> ArgumentError {
        ArgumentError { path: Cow::Borrowed(""), cause: Cause::Type(Box::new(cause)) }
    }

    fn within(error: ArgumentError, part: Part) -> ArgumentError {
        let ArgumentError { path: rest, cause } = error;
        let separator = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
        let path = match part {
            Part::Field(name) if rest.is_empty() => Cow::Borrowed(name),
            Part::Field(name) => Cow::Owned(format!("{name}{separator}{rest}")),
            Part::Element(index) => Cow::Owned(format!("[{index}]{separator}{rest}")),
        };
        ArgumentError { path, cause }
    }
}

impl<'cg, T: DeviceCopyable, const D: usize, M: ModeFor<T>> Deconstruct<Handler<'cg>> for Accessor<'cg, T, D, M> {
    unsafe fn deconstruct(self, _cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        // SAFETY: the group is the accessor's, by its brand.
        Ok(unsafe { RawAccessor::new(self) })
    }
}

impl<'cg, T: DeviceCopyable, const D: usize, M: ModeFor<T>> Deconstruct<Handler<'cg>> for Chunked<'cg, T, D, M> {
    unsafe fn deconstruct(self, _cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        // SAFETY: the group is the accessor's, by its brand.
        Ok(unsafe { RawChunked::new(self) })
    }
}

impl<T: DeviceCopyable, const D: usize, M: ModeFor<T>> KernelArg for BufferAccess<'_, T, D, M> {
    type Sent = RawAccessor<T, D, M>;
}

impl<'cg, T: DeviceCopyable, const D: usize, M: ModeFor<T>> Deconstruct<Handler<'cg>> for BufferAccess<'_, T, D, M> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let accessor: Accessor<'cg, T, D, M> = cg.try_access(self.buffer, self.offset, self.range)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawAccessor::new(accessor) })
    }
}

impl<T: DeviceCopyable, const D: usize, M: ModeFor<T> + Stores> KernelArg for ChunkedAccess<'_, T, D, M> {
    type Sent = RawChunked<T, D, M>;
}

impl<'cg, T, const D: usize, M> Deconstruct<Handler<'cg>> for ChunkedAccess<'_, T, D, M>
where
    T: DeviceCopyable,
    M: ModeFor<T> + Stores,
{
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let Self { access, block } = self;
        let chunked = cg.try_access_chunks(access.buffer, access.offset, access.range, block)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawChunked::new(chunked) })
    }
}

impl<T: DeviceCopyable, const D: usize, M: ModeFor<T>> KernelArg for &Placeholder<T, D, M> {
    type Sent = RawAccessor<T, D, M>;
}

impl<'cg, T: DeviceCopyable, const D: usize, M: ModeFor<T>> Deconstruct<Handler<'cg>> for &Placeholder<T, D, M> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Self::Sent, ArgumentError> {
        let accessor = cg.try_require(self)?;
        // SAFETY: the accessor is of this group.
        Ok(unsafe { RawAccessor::new(accessor) })
    }
}

/// Passes the elements of a buffer that the group makes for itself. The group keeps the buffer alive.
fn pass<T: DeviceCopyable>(buffer: Result<Buffer<T, 1>>, cg: &mut Handler<'_>) -> Result<RawSlice<T>, ArgumentError> {
    let buffer = buffer?;
    let (len, range) = (buffer.size(), buffer.range());
    let accessor: Accessor<'_, T, 1, Read> = cg.try_access(&buffer, Id::default(), range)?;
    let first = NonNull::new(accessor.as_ptr()).filter(|_| len > 0).unwrap_or(NonNull::dangling());
    // SAFETY: the requirement keeps the memory alive and unchanged while the group's launches run, and its address is that of all elements.
    Ok(unsafe { RawSlice::new(first, len) })
}

/// One value as a vector, in the memory that it has.
fn vector_of<T>(value: Box<T>) -> Vec<T> {
    // SAFETY: the pointer comes from a box, and an array of one has the layout of its element.
    let array = unsafe { Box::from_raw(Box::into_raw(value).cast::<[T; 1]>()) };
    (array as Box<[T]>).into_vec()
}

/// One value as a slice, in the memory that it has.
fn slice_of<T>(value: Arc<T>) -> Arc<[T]> {
    // SAFETY: the pointer comes from an `Arc`, and an array of one has the size and alignment of its element.
    unsafe { Arc::from_raw(Arc::into_raw(value).cast::<[T; 1]>()) }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for Vec<T> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawSlice<T>, ArgumentError> {
        pass(Buffer::from_vec(self), cg)
    }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for Box<[T]> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawSlice<T>, ArgumentError> {
        pass(Buffer::from_vec(self.into_vec()), cg)
    }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for Arc<[T]> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawSlice<T>, ArgumentError> {
        pass(Buffer::from_shared(self), cg)
    }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for Copied<'_, T> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawSlice<T>, ArgumentError> {
        pass(Buffer::from_slice(self.0), cg)
    }
}

impl<'cg> Deconstruct<Handler<'cg>> for String {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawText, ArgumentError> {
        // SAFETY: the bytes of a text.
        pass(Buffer::from_vec(self.into_bytes()), cg).map(|bytes| unsafe { RawText::new(bytes) })
    }
}

impl<'cg> Deconstruct<Handler<'cg>> for Box<str> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawText, ArgumentError> {
        // SAFETY: the bytes of a text.
        pass(Buffer::from_vec(self.into_string().into_bytes()), cg).map(|bytes| unsafe { RawText::new(bytes) })
    }
}

impl<'cg> Deconstruct<Handler<'cg>> for Arc<str> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawText, ArgumentError> {
        // SAFETY: the bytes of a text.
        pass(Buffer::from_shared(self.into()), cg).map(|bytes| unsafe { RawText::new(bytes) })
    }
}

impl BoxHost for Handler<'_> {
    unsafe fn pass_box<T: DeviceCopyable>(&mut self, value: Box<T>) -> Result<RawReference<T>, ArgumentError> {
        // SAFETY: the slice has one value.
        pass(Buffer::from_vec(vector_of(value)), self).map(|slice| unsafe { RawReference::first_of(slice) })
    }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for Arc<T> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<RawReference<T>, ArgumentError> {
        // SAFETY: the slice has one value.
        pass(Buffer::from_shared(slice_of(self)), cg).map(|slice| unsafe { RawReference::first_of(slice) })
    }
}

/// A value that a command keeps. A thread of host tasks drops it.
pub(crate) struct Kept<T>(pub(crate) T);

impl<T: Send> Loan for Kept<T> {
    fn has_user_drop(&self) -> bool {
        std::mem::needs_drop::<T>()
    }

    fn ended(&self, _succeeded: bool) {}
}

impl<'cg, T: Send + 'static> Deconstruct<Handler<'cg>> for Keep<T> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<(), ArgumentError> {
        cg.keep(KeptAlive::Loan(Box::new(Kept(self.0))));
        Ok(())
    }
}

// SAFETY: an address that means something on the device; each use of it is `unsafe` and says what it needs.
unsafe impl<T: DeviceCopyable> DeviceForm for UsmPointer<T> {
    type Value<'k> = Self;
    const TYPE: &'static ArgumentType = &ArgumentType::leaf(std::any::type_name::<Self>, size_of::<Self>());

    #[inline(always)]
    unsafe fn reconstruct<'k>(self, _launch: Launch<'k>) -> Self {
        self
    }
}

impl<T: DeviceCopyable> KernelArg for UsmPointer<T> {
    type Sent = Self;
}

impl<H: LaunchHost, T: DeviceCopyable> Deconstruct<H> for UsmPointer<T> {
    unsafe fn deconstruct(self, _host: &mut H) -> Result<Self, H::Error> {
        Ok(self)
    }
}

impl<T: DeviceCopyable> KernelArg for &UsmSlice<T> {
    type Sent = UsmPointer<T>;
}

impl<H: LaunchHost, T: DeviceCopyable> Deconstruct<H> for &UsmSlice<T> {
    unsafe fn deconstruct(self, _host: &mut H) -> Result<UsmPointer<T>, H::Error> {
        Ok(self.pointer())
    }
}
