//! The specialization constants of a command group.
//!
//! Invariant: a constant has one value in a group. Setting it after it was read is an error.

use std::any::Any;

use oxisycl_device::argument::{Deconstruct, Specialized, SpecializedArgument};
use smallvec::SmallVec;

use super::Handler;
use crate::argument::ArgumentError;
use crate::specialization::SpecId;
use crate::{DeviceCopyable, Error, Result};

/// What a group has done with specialization constants.
#[derive(Default)]
pub(super) struct Constants {
    known: SmallVec<[Known; 1]>,
    /// Whether the kernel gets a value without a name.
    has_unnamed: bool,
}

/// A constant that the group has set or read.
struct Known {
    /// What tells it from others.
    id: u64,
    value: Option<Box<dyn Any>>,
    is_read: bool,
}

impl Constants {
    /// Whether the values that a kernel of the group gets are all of constants with names, which do not change with each launch.
    pub(super) fn are_named(&self) -> bool {
        !self.known.is_empty() && !self.has_unnamed
    }

    /// The numbers of the constants that the group has read.
    pub(super) fn read(&self) -> impl Iterator<Item = u64> {
        self.known.iter().filter(|known| known.is_read).map(|known| known.id)
    }

    /// Whether the group has set one.
    pub(super) fn are_set(&self) -> bool {
        self.known.iter().any(|known| known.value.is_some())
    }

    fn entry(&mut self, id: u64) -> &mut Known {
        let position = self.known.iter().position(|known| known.id == id).unwrap_or_else(|| {
            self.known.push(Known { id, value: None, is_read: false });
            self.known.len() - 1
        });
        &mut self.known[position]
    }
}

impl Handler<'_> {
    /// Gives a specialization constant its value in this group. A second call overwrites the value. One that the kernel does not read has no effect.
    ///
    /// Errors: `Invalid` if [`constant`](Self::constant) gave the group its value before, or if the group takes its kernels from a
    /// [bundle](Self::use_bundle). The group fails, too.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    /// use oxisycl::specialization::SpecId;
    ///
    /// static FACTOR: SpecId<i32> = SpecId::new(10);
    ///
    /// # fn main() -> oxisycl::Result {
    /// let (queue, numbers) = (Queue::default()?, Buffer::from_vec(vec![1, 2, 3])?);
    /// for factor in [2, 3] {
    ///     queue.submit(|cg| {
    ///         cg.set_constant(&FACTOR, factor)?;
    ///         let (factor, numbers) = (cg.constant(&FACTOR), cg.access(&numbers, ReadWrite));
    ///         cg.parallel_for(3, move |item| numbers.update(item, |x| factor.get() * x))
    ///     })?;
    /// }
    /// assert_eq!(numbers.to_vec()?, [6, 12, 18]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_constant<T: DeviceCopyable>(&mut self, id: &'static SpecId<T>, value: T) -> Result {
        let has_bundle = self.bundle.is_some();
        let known = self.constants.entry(id.number());
        let why = if has_bundle {
            "in a command group that takes its kernels from a bundle; call `submit` without it"
        } else if known.is_read {
            "after the command group has read it; call `set_constant` before `constant`"
        } else {
            known.value = Some(Box::new(value));
            return Ok(());
        };
        let (place, constant) = (self.place(), std::any::type_name::<T>());
        let error = Error::invalid(format!("{place}: a specialization constant of type `{constant}` is set {why}"));
        self.record(error.clone());
        Err(error)
    }

    /// The value of a specialization constant in this group, for its kernel. That is what [`set_constant`](Self::set_constant) gave it, else what the group's
    /// bundle has, else its default. It is captured, or passed as an argument.
    ///
    /// The kernel may be compiled anew for the value. See [`specialization`](crate::specialization).
    pub fn constant<T: DeviceCopyable>(&mut self, id: &'static SpecId<T>) -> Specialized<T> {
        let known = self.constants.entry(id.number());
        known.is_read = true;
        let set = known.value.as_ref().and_then(|value| value.downcast_ref().copied());
        let set = set.or_else(|| self.bundle.as_ref()?.value_of(id));
        Specialized::of(set.unwrap_or_else(|| id.default_value()))
    }
}

impl<'cg, T: DeviceCopyable> Deconstruct<Handler<'cg>> for SpecializedArgument<T> {
    unsafe fn deconstruct(self, cg: &mut Handler<'cg>) -> Result<Specialized<T>, ArgumentError> {
        cg.constants.has_unnamed = true;
        Ok(Specialized::of(self.0))
    }
}
