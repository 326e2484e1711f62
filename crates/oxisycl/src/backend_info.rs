//! What only devices of one backend can be asked (`get_backend_info` of SYCL 2020, sections 4.5.1.1 and 4.6.4.1).

use oxisycl_backend::DeviceInfo;
use oxisycl_types::{BackendKind, ErrorCode};

use crate::{Device, Error, Result};

/// Something that devices of one backend say of themselves. The types of this trait are all there are.
pub trait BackendInfo: sealed::Read {}

mod sealed {
    use super::{BackendKind, DeviceInfo};

    pub trait Read {
        /// What is answered.
        type Value;
        /// Whose devices answer.
        const BACKEND: BackendKind;
        /// The specification's name.
        const NAME: &'static str;

        fn read(info: &DeviceInfo) -> Option<Self::Value>;
    }
}

impl Device {
    /// Asks the device for what only devices of its backend have.
    ///
    /// ```
    /// use oxisycl::backend_info::opencl;
    /// # fn main() -> oxisycl::Result {
    /// for device in oxisycl::Device::all()? {
    ///     match device.backend_info::<opencl::Profile>() {
    ///         Ok(profile) => println!("{}: {profile}", device.name()),
    ///         Err(error) => println!("{}: {error}", device.name()),
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Errors: `BackendMismatch` if the device is of another backend.
    pub fn backend_info<I: BackendInfo>(&self) -> Result<I::Value> {
        I::read(self.info()).ok_or_else(|| {
            let (name, of, is) = (I::NAME, I::BACKEND, self.backend());
            let device = self.name();
            Error::new(
                ErrorCode::BackendMismatch,
                format!("device \"{device}\" of backend {is} has no {name}: only devices of backend {of} have"),
            )
        })
    }
}

/// What only OpenCL devices have.
pub mod opencl {
    use oxisycl_backend::DeviceInfo;
    pub use oxisycl_backend::ExecutionCapability;
    use oxisycl_types::BackendKind;

    use super::{BackendInfo, sealed};

    macro_rules! infos {
        ($($(#[$doc:meta])* $type:ident = $name:literal, $field:ident: $value:ty;)*) => {$(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug)]
            pub enum $type {}

            impl BackendInfo for $type {}

            impl sealed::Read for $type {
                type Value = $value;
                const BACKEND: BackendKind = BackendKind::OpenCl;
                const NAME: &'static str = $name;

                fn read(info: &DeviceInfo) -> Option<$value> {
                    Some(info.opencl.as_ref()?.$field.clone())
                }
            }
        )*};
    }

    infos! {
        /// `FULL_PROFILE` or `EMBEDDED_PROFILE` (`info::device::profile`).
        Profile = "profile", profile: String;
        /// What the device executes (`info::device::execution_capabilities`).
        ExecutionCapabilities = "execution_capabilities", execution_capabilities: Vec<ExecutionCapability>;
        /// Whether programs that share memory objects with other interfaces had better synchronise these themselves
        /// (`info::device::preferred_interop_user_sync`).
        PreferredInteropUserSync = "preferred_interop_user_sync", preferred_interop_user_sync: bool;
    }
}
