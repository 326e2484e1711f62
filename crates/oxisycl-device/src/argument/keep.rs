//! Arguments of which the kernel gets something else than the value.

/// An argument that the kernel gets nothing of. The value lives until the command has ended.
///
/// A type of the user ties an owner to an address so: its parts are a USM pointer, and the allocation in a `Keep`. If dropping the value runs
/// code, a thread for host tasks does it, before the command's event is complete. The code must not wait for that event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Keep<T>(pub T);

/// A slice of the host of which the command gets a copy. The copy is made when the command group is recorded.
///
/// ```
/// use oxisycl::argument::Copied;
/// use oxisycl::prelude::*;
///
/// # fn main() -> oxisycl::Result {
/// let (weights, numbers) = ([1, 10, 100], Buffer::from_vec(vec![7; 3])?);
/// let arguments = (Copied(&weights), numbers.update());
/// Queue::default()?.parallel_for_with(3, arguments, |item, (weights, numbers)| {
///     numbers.update(item, |x| x * weights[item.index()])
/// })?;
/// assert_eq!(numbers.to_vec()?, [7, 70, 700]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Copied<'a, T>(pub &'a [T]);
