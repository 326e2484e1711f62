//! Contexts (SYCL 2020 section 4.6.3).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use oxisycl_runtime::schedule;

use crate::{Device, Error, Platform, Result};

/// A set of devices of one platform that share events and USM allocations. Copies are the same context.
#[derive(Clone)]
pub struct Context(Arc<Inner>);

struct Inner {
    context: Arc<schedule::Context>,
    devices: Vec<Device>,
}

/// A context that does not keep itself alive.
#[derive(Default)]
pub(crate) struct WeakContext(Weak<Inner>);

impl WeakContext {
    pub(crate) fn upgrade(&self) -> Option<Context> {
        self.0.upgrade().map(Context)
    }
}

impl Context {
    pub(crate) fn downgrade(&self) -> WeakContext {
        WeakContext(Arc::downgrade(&self.0))
    }

    /// A context of `devices`. Errors: `Invalid` if there are none, or if they are of different platforms.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let device = Device::default()?;
    /// let context = Context::new(&[device.clone()])?;
    /// let queue = Queue::builder().context(&context).device(&device).build()?;
    /// assert_eq!(*queue.context(), context);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(devices: &[Device]) -> Result<Self> {
        Self::make(devices, None)
    }

    /// A context of `devices` with a function that gets the asynchronous errors of its queues without a handler of their own. Errors:
    /// `Invalid` if there are no devices, or if they are of different platforms.
    pub fn with_handler(
        devices: &[Device],
        handler: impl Fn(Vec<crate::Error>) + Send + Sync + 'static,
    ) -> Result<Self> {
        Self::make(devices, Some(Arc::new(handler)))
    }

    fn make(devices: &[Device], handler: Option<crate::AsyncHandler>) -> Result<Self> {
        let Some(first) = devices.first() else {
            return Err(Error::invalid("a context needs at least one device"));
        };
        if let Some(other) = devices.iter().find(|device| device.platform() != first.platform()) {
            return Err(Error::invalid(format!(
                "devices \"{}\" and \"{}\" of different platforms cannot share a context",
                first.name(),
                other.name()
            )));
        }
        let backend_devices = devices.iter().map(|device| device.backend_device().clone()).collect();
        let context = schedule::Context::new(backend_devices, handler);
        Ok(Self(Arc::new(Inner { context, devices: devices.to_vec() })))
    }

    /// The devices of the context.
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// The platform of the context's devices.
    pub fn platform(&self) -> Platform {
        self.0.devices[0].platform()
    }

    /// Whether `device` is one of its devices or a part of one.
    pub fn contains(&self, device: &Device) -> bool {
        self.0.devices.iter().any(|known| device.is_descendant_of(known))
    }

    pub(crate) fn inner(&self) -> &Arc<schedule::Context> {
        &self.0.context
    }
}

impl PartialEq for Context {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Context {}
impl Hash for Context {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("devices", &self.0.devices).finish()
    }
}
