//! Calls of kernel functions: what `#[kernel]` makes of a function.

use core::marker::PhantomData;

use super::{KernelArg, Unstated, Value};
use crate::{Item, Single};

/// A kernel and its arguments, made by calling a function with the attribute [`kernel`](macro@crate::kernel).
///
/// Methods of queues and command groups launch it.
#[derive(Clone, Copy, Debug)]
#[must_use = "a call does nothing unless it is launched"]
pub struct Call<A, K, R = Unstated> {
    name: &'static str,
    arguments: A,
    kernel: K,
    /// What the kernel states.
    stated: PhantomData<R>,
}

impl<A, K, R> Call<A, K, R> {
    #[doc(hidden)]
    #[inline]
    pub fn new(name: &'static str, arguments: A, kernel: K) -> Self {
        Self { name, arguments, kernel, stated: PhantomData }
    }

    /// The name of the kernel function, as messages and traces have it.
    pub fn name(&self) -> &'static str {
        self.name
    }

    #[doc(hidden)]
    #[inline]
    pub fn into_parts(self) -> (&'static str, A, K) {
        (self.name, self.arguments, self.kernel)
    }
}

/// An argument of which a function with the type `P` takes what the kernel gets.
#[doc(hidden)]
pub trait PassedTo<P>: KernelArg {}

impl<A: KernelArg, P> PassedTo<P> for A where P: for<'k> Fn(Value<'k, A>) {}

/// A function of which a kernel's first parameter is the only one.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "the first parameter of a kernel is an `Item` or a `Single`",
    label = "neither an `Item` nor a `Single`",
    note = "a kernel over a range has `item: Item<D>`, a single task has `task: Single`"
)]
pub trait FirstParameter {}

impl<const D: usize> FirstParameter for fn(Item<'_, D>) {}
impl FirstParameter for fn(Single<'_>) {}
