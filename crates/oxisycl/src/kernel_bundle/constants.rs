//! The specialization constants of a kernel bundle (SYCL 2020 section 4.11.12.2).
//!
//! Invariant: only bundles in the state [`Input`] change theirs. What is compiled, linked or joined has copies of its own.

use std::any::{Any, type_name};
use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{BundleState, Input, KernelBundle};
use crate::specialization::SpecId;
use crate::{DeviceCopyable, Error, Result};

/// What one call has set.
#[derive(Clone)]
struct Value {
    value: Arc<dyn Any + Send + Sync>,
    type_name: &'static str,
}

/// The values that a bundle has, by the numbers of their constants.
#[derive(Default)]
pub(super) struct Constants(Mutex<BTreeMap<u64, Value>>);

impl Constants {
    /// A copy that later calls do not change.
    pub(super) fn frozen(&self) -> Self {
        Self(Mutex::new(self.0.lock().clone()))
    }

    /// The values of several bundles. Values of two calls are not compared: some of their bytes may be padding.
    ///
    /// Errors: `Invalid` if two calls have set a constant.
    pub(super) fn union<'a>(all: impl Iterator<Item = &'a Self>) -> Result<Self> {
        let mut union: BTreeMap<u64, Value> = BTreeMap::new();
        for constants in all {
            for (number, value) in constants.0.lock().iter() {
                let known = union.entry(*number).or_insert_with(|| value.clone());
                if !Arc::ptr_eq(&known.value, &value.value) {
                    return Err(Error::invalid(format!(
                        "kernel bundles have set a specialization constant of type `{}` apart from each other",
                        value.type_name
                    )));
                }
            }
        }
        Ok(Self(Mutex::new(union)))
    }
}

impl KernelBundle<Input> {
    /// Gives a specialization constant its value for all command groups that use what is made of this bundle (SYCL 2020
    /// `set_specialization_constant`). The last call counts, and calls after [`compile`](Self::compile) or [`build`](Self::build) change nothing of the
    /// result.
    pub fn set_constant<T: DeviceCopyable>(&self, id: &'static SpecId<T>, value: T) {
        let value = Value { value: Arc::new(value), type_name: type_name::<T>() };
        self.0.constants.0.lock().insert(id.number(), value);
    }
}

impl<S: BundleState> KernelBundle<S> {
    /// The value of a specialization constant for command groups that use the bundle (SYCL 2020 `get_specialization_constant`): what the bundle was
    /// given, else the default.
    pub fn constant<T: DeviceCopyable>(&self, id: &'static SpecId<T>) -> T {
        self.value_of(id).unwrap_or_else(|| id.default_value())
    }

    /// The value that the bundle was given.
    pub(crate) fn value_of<T: DeviceCopyable>(&self, id: &'static SpecId<T>) -> Option<T> {
        self.0.constants.0.lock().get(&id.number()).and_then(|known| known.value.downcast_ref().copied())
    }

    /// Whether the bundle was given a value of one of these constants.
    pub(crate) fn has_any_of(&self, mut numbers: impl Iterator<Item = u64>) -> bool {
        let constants = self.0.constants.0.lock();
        numbers.any(|number| constants.contains_key(&number))
    }
}
