use core::any::TypeId;
use core::panic::Location;

use oxisycl_types::{ArgumentType, Aspects, GroupSize, HostEntry};

/// How a kernel type is launched. The same type may be launched in several forms, which are different kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Form {
    /// `single_task`.
    Single,
    /// `parallel_for` over a range of the given number of dimensions.
    Range(u8),
    /// `parallel_for_work_group` over groups of the given number of dimensions.
    Group(u8),
}

/// Identifies a kernel within a link unit: the type of its closure or struct, and the launch form.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KernelId {
    /// The kernel's type.
    pub type_id: TypeId,
    /// How it is launched.
    pub form: Form,
}

/// Size and alignment of a kernel's argument block, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ParameterLayout {
    /// Size in bytes; zero for a kernel that captures nothing.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub align: usize,
}

impl ParameterLayout {
    /// Most bytes of an argument block, on all devices.
    pub const MAX_SIZE: usize = 64 << 10;

    /// The parameter that a driver gets in the place of a block that is [passed by its address](crate::ImageTarget::passes_by_address).
    pub const ADDRESS: Self = Self { size: 8, align: 8 };
}

/// What the attribute of a kernel function states of the devices that run it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct StatedNeeds {
    /// The aspects that a device has to have.
    pub aspects: Aspects,
    /// Work-items of a group per dimension, the innermost last, unused leading ones 1. Zeros if that is not stated.
    pub group: [u32; 3],
    /// Work-items of a sub-group, a power of two; 0 if that is not stated.
    pub sub_group: u32,
}

impl StatedNeeds {
    /// Of a kernel that states nothing.
    pub const NONE: Self = Self { aspects: Aspects::NONE, group: [0; 3], sub_group: 0 };
}

/// What a kernel's code asks of the work-groups that run it. All zero for a kernel that knows no groups, and states nothing of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct GroupNeeds {
    /// Work-items of a group per dimension, the innermost last, unused leading ones 1. Zeros if a group may have any size. Kernels over a range have
    /// what they state.
    pub local: [u32; 3],
    /// Work-items of a sub-group, a power of two; 0 if it may have any size.
    pub sub_group: u32,
    /// Bytes of local memory that the code itself has, beside those of a launch.
    pub static_local_bytes: u32,
    /// Bytes of the largest value that algorithms over a group combine; 0 if there are none. A launch adds
    /// [`GroupSize::scratch_bytes`](oxisycl_types::GroupSize::scratch_bytes) of such values to the local memory of its arguments.
    pub bytes_of_element: u32,
    /// Whether the code uses the local memory of a launch.
    pub uses_local_memory: bool,
    /// Whether work-items wait for each other at barriers.
    pub has_barriers: bool,
}

impl GroupNeeds {
    /// Most work-items of a group of fixed size. More are on no device.
    pub const MAX_ITEMS: u32 = GroupSize::MAX_FIXED as u32;
}

/// Everything the runtime knows of a kernel from the host side of its program.
#[derive(Clone, Copy, Debug)]
pub struct KernelDescriptor {
    /// The identity of the kernel.
    pub id: KernelId,
    /// The compiler's name of the kernel's type, for messages only.
    pub type_name: &'static str,
    /// The user's name for this launch, if there is one.
    pub name: Option<&'static str>,
    /// Where the user launched it.
    pub location: &'static Location<'static>,
    /// The argument block.
    pub parameters: ParameterLayout,
    /// What the block consists of, if there are arguments beside the kernel.
    pub arguments: Option<&'static ArgumentType>,
    /// What its attribute states.
    pub stated: StatedNeeds,
    /// The natively compiled kernel, which the host and simulated devices run.
    pub host_entry: HostEntry,
}

impl KernelDescriptor {
    /// The name that messages use: the user's, else the type's without closure markers. This searches a text: for messages only, not for
    /// each launch.
    pub fn display_name(&self) -> &'static str {
        self.name.unwrap_or_else(|| display_name_of(self.type_name))
    }
}

/// The name that messages use for a kernel with that type name: the user's own type without closure markers.
pub fn display_name_of(type_name: &'static str) -> &'static str {
    user_name(type_name).trim_end_matches("::{{closure}}")
}

/// The name of the user's own type within a kernel's type name. A floating-point policy wraps the kernel in a closure of OxiSYCL, such as
/// `oxisycl_device::float::strict<1, app::main::{{closure}}>::{{closure}}`.
pub fn user_name(type_name: &str) -> &str {
    let inner = |name| {
        let (_, arguments) = str::split_once(str::strip_prefix(name, "oxisycl_device::float::")?, '<')?;
        let (_, inner) = arguments.split_once(", ")?;
        inner.rsplit_once('>').map(|(inner, _)| inner)
    };
    let mut name = type_name;
    while let Some(shorter) = inner(name) {
        name = shorter;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_with_a_policy_have_the_name_of_the_users_type() {
        let name = "oxisycl_device::float::strict<1, app::Env::compare<(u32, u8), app::hex::{{closure}}>::{{closure}}>::{{closure}}";
        assert_eq!(user_name(name), "app::Env::compare<(u32, u8), app::hex::{{closure}}>::{{closure}}");
        let twice =
            "oxisycl_device::float::fast<1, oxisycl_device::float::strict<2, app::K>::{{closure}}>::{{closure}}";
        assert_eq!(user_name(twice), "app::K");
        for other in ["app::main::{{closure}}", "float::strict<1, app::K>", "oxisycl_device::float::Policy"] {
            assert_eq!(user_name(other), other);
        }
    }
}
