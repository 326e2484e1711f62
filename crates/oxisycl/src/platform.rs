//! Platforms: the devices of one driver (SYCL 2020 section 4.6.2).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use oxisycl_backend::{DeviceInfo, PlatformInfo};
use oxisycl_runtime::selector::SubSelection;
use oxisycl_types::{Aspect, BackendKind, DeviceType};
use parking_lot::Mutex;

use crate::context::WeakContext;
use crate::wiring::runtime;
use crate::{Context, Device, Error, Result};

/// A platform. Copies are the same platform.
#[derive(Clone)]
pub struct Platform(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    platform: Arc<oxisycl_backend::Platform>,
    /// What the environment leaves visible, for the process's own platforms. Devices hold their platform, so a list of them
    /// here keeps it for ever, which these may.
    visible: OnceLock<Vec<Device>>,
    /// What it hides; likewise.
    hidden: OnceLock<Vec<Device>>,
    /// Weak for the same reason: a simulator's platform ends with its last user.
    default_context: Mutex<WeakContext>,
}

impl Platform {
    /// All platforms of the process, the same ones in the same order at every call. Those whose devices the environment
    /// hides are still there, without devices.
    ///
    /// Errors: `Platform` if an environment variable of OxiSYCL is wrong.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// for platform in Platform::all()? {
    ///     println!("{}: {} devices", platform.info().name, platform.devices().len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn all() -> Result<Vec<Platform>> {
        static ALL: OnceLock<Vec<Platform>> = OnceLock::new();
        let runtime = runtime()?;
        let platforms = ALL.get_or_init(|| {
            let mut n_seen = std::collections::HashMap::new();
            let mut make = |platform: &Arc<oxisycl_backend::Platform>| {
                let made = Platform::new(platform.clone());
                let index = n_seen.entry(platform.info().backend).or_insert(0);
                let (mut visible, mut hidden) = (Vec::new(), Vec::new());
                for device in platform.devices() {
                    let root = Device::listed(&made, device, *index);
                    let left = visible_devices(root.clone(), *index, runtime.filter());
                    if !left.contains(&root) {
                        hidden.push(root);
                    }
                    visible.extend(left);
                    *index += 1;
                }
                let _ = (made.0.visible.set(visible), made.0.hidden.set(hidden));
                made
            };
            runtime.platforms().iter().map(&mut make).collect()
        });
        Ok(platforms.clone())
    }

    pub(crate) fn new(platform: Arc<oxisycl_backend::Platform>) -> Self {
        let (visible, hidden) = (OnceLock::new(), OnceLock::new());
        Self(Arc::new(Inner { platform, visible, hidden, default_context: Mutex::default() }))
    }

    /// The platform of the default device.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// assert_eq!(Platform::default()?, Device::default()?.platform());
    /// # Ok(())
    /// # }
    /// ```
    #[expect(clippy::should_implement_trait, reason = "choosing a device can fail")]
    pub fn default() -> Result<Self> {
        Ok(Device::default()?.platform())
    }

    /// The platform of the device that `selector` prefers.
    pub fn select(selector: impl Fn(&Device) -> i32) -> Result<Self> {
        Ok(Device::select(selector)?.platform())
    }

    /// Which backend it belongs to.
    pub fn backend(&self) -> BackendKind {
        self.0.platform.info().backend
    }

    /// Name, vendor and version.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// for platform in Platform::all()? {
    ///     println!("{}, {}", platform.info().name, platform.info().version);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn info(&self) -> &PlatformInfo {
        self.0.platform.info()
    }

    /// The platform's visible root devices, the same ones in the same order at every call.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let platform = Platform::default()?;
    /// assert!(platform.devices().contains(&Device::default()?));
    /// # Ok(())
    /// # }
    /// ```
    pub fn devices(&self) -> Vec<Device> {
        match self.0.visible.get() {
            Some(visible) => visible.clone(),
            None => self.0.platform.devices().into_iter().map(|device| Device::root(self, device)).collect(),
        }
    }

    /// The root devices that `OXISYCL_DEVICE_SELECTOR` hides: what names each in the variable, and what it says of itself. Some of
    /// them may be visible in parts.
    pub fn hidden_devices(&self) -> impl Iterator<Item = (&str, &DeviceInfo)> {
        let hidden = self.0.hidden.get().into_iter().flatten();
        hidden.filter_map(|device| Some((device.selector()?, device.info())))
    }

    /// The platform's visible root devices of one type.
    pub fn devices_of(&self, device_type: DeviceType) -> Vec<Device> {
        self.devices().into_iter().filter(|device| device.info().device_type == device_type).collect()
    }

    /// Whether all its devices have `aspect`; `false` without devices.
    pub fn has(&self, aspect: Aspect) -> bool {
        let devices = self.devices();
        !devices.is_empty() && devices.iter().all(|device| device.has(aspect))
    }

    /// The context of all its root devices. Queues that are made without a context use it. It is one and the same as
    /// long as anything uses it. It has no asynchronous handler.
    ///
    /// ```
    /// use oxisycl::prelude::*;
    ///
    /// # fn main() -> oxisycl::Result {
    /// let context = Platform::default()?.default_context()?;
    /// assert_eq!(*Queue::default()?.context(), context);
    /// # Ok(())
    /// # }
    /// ```
    pub fn default_context(&self) -> Result<Context> {
        let mut default = self.0.default_context.lock();
        if let Some(context) = default.upgrade() {
            return Ok(context);
        }
        let devices = self.devices();
        if devices.is_empty() {
            let name = &self.info().name;
            return Err(Error::invalid(format!("platform \"{name}\" has no visible device for a context")));
        }
        let context = Context::new(&devices)?;
        *default = context.downgrade();
        Ok(context)
    }
}

/// What `OXISYCL_DEVICE_SELECTOR` leaves of a root device: itself, sub-devices of it, or nothing.
fn visible_devices(
    root: Device,
    index: usize,
    filter: Option<&oxisycl_runtime::selector::DeviceFilter>,
) -> Vec<Device> {
    let Some(filter) = filter else { return vec![root] };
    let exposure = filter.exposure(root.info().backend, root.info().device_type, index);
    let mut visible = Vec::new();
    if exposure.root {
        visible.push(root.clone());
    }
    if !exposure.sub.is_empty() {
        let parts = root.partition_by_affinity_domain(oxisycl_backend::AffinityDomain::NextPartitionable);
        for (i, part) in parts.unwrap_or_default().into_iter().enumerate() {
            if exposure.exposes_sub(i) {
                visible.push(part.clone());
            }
            let has_deeper = exposure.sub.iter().any(|selection: &SubSelection| selection.sub_sub.is_some());
            if has_deeper {
                let inner = part.partition_by_affinity_domain(oxisycl_backend::AffinityDomain::NextPartitionable);
                for (j, unit) in inner.unwrap_or_default().into_iter().enumerate() {
                    if exposure.exposes_sub_sub(i, j) {
                        visible.push(unit);
                    }
                }
            }
        }
    }
    visible
}

impl PartialEq for Platform {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
impl Eq for Platform {}
impl Hash for Platform {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Platform").field("backend", &self.backend()).field("name", &self.info().name).finish()
    }
}
