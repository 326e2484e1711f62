//! The specialization constants of a kernel bundle (SYCL 2020 section 4.11.12.2).
//!
//! Invariant: only bundles in the state [`Input`] change theirs. What is compiled, linked or joined has copies of its own.

use std::any::type_name;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{BundleState, Input, KernelBundle};
use crate::specialization::SpecId;
use crate::{DeviceCopyable, Error, Result};

/// What one call has set. A bundle may outlive the library whose code has set it, so that nothing here is of that library.
#[derive(Clone)]
struct Value {
    /// The value's bytes.
    bytes: Arc<[MaybeUninit<u8>]>,
    type_name: Arc<str>,
}

impl Value {
    fn new<T: DeviceCopyable>(value: T) -> Self {
        // SAFETY: `MaybeUninit<u8>` may have any byte of a value, padding included, and the value is as large as the slice says.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const value).cast::<MaybeUninit<u8>>(), size_of::<T>()) };
        Self { bytes: bytes.into(), type_name: type_name::<T>().into() }
    }
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
    /// Errors: `Invalid` if two calls have set a constant. `devices` are those of the bundles in the words of a message.
    pub(super) fn union<'a>(devices: &str, all: impl Iterator<Item = &'a Self>) -> Result<Self> {
        let mut union: BTreeMap<u64, Value> = BTreeMap::new();
        for constants in all {
            for (number, value) in constants.0.lock().iter() {
                let known = union.entry(*number).or_insert_with(|| value.clone());
                if !Arc::ptr_eq(&known.bytes, &value.bytes) {
                    return Err(Error::invalid(format!(
                        "kernel bundles for {devices} have set a specialization constant of type `{}` apart from each other",
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
        self.0.constants.0.lock().insert(id.number(), Value::new(value));
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
        let known = self.0.constants.0.lock().get(&id.number()).cloned()?;
        // SAFETY: the number is that of this constant alone, and `set_constant` has kept the bytes of one of its values, which may be copied.
        Some(unsafe { known.bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Whether the bundle was given a value of one of these constants.
    pub(crate) fn has_any_of(&self, mut numbers: impl Iterator<Item = u64>) -> bool {
        let constants = self.0.constants.0.lock();
        numbers.any(|number| constants.contains_key(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has padding.
    type Padded = (u8, u32);

    /// A bundle may be held when the library is gone whose code has set a value.
    #[test]
    fn values_have_nothing_of_the_library_that_has_set_them() {
        let value = Value::new((1u8, 2u32));
        let Value { bytes, type_name: name } = value;
        assert_eq!(&*name, type_name::<Padded>());
        assert!(!std::ptr::addr_eq(name.as_ptr(), type_name::<Padded>().as_ptr()), "the name is a copy");
        // No table of functions of the type, either: the value is bytes, which need none to be dropped.
        assert_eq!(bytes.len(), size_of::<Padded>());
        // SAFETY: bytes of such a value.
        assert_eq!(unsafe { bytes.as_ptr().cast::<Padded>().read_unaligned() }, (1, 2));
    }
}
