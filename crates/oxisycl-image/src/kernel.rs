use core::any::TypeId;
use core::panic::Location;

use oxisycl_types::HostEntry;

/// How a kernel type is launched. The same type may be launched in several forms, which are different kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Form {
    /// `single_task`.
    Single,
    /// `parallel_for` over a range of the given number of dimensions.
    Range(u8),
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

/// Everything the runtime knows of a kernel from the host side of its program.
#[derive(Clone, Copy, Debug)]
pub struct KernelDescriptor {
    /// Its identity.
    pub id: KernelId,
    /// The compiler's name of the kernel's type, for messages only.
    pub type_name: &'static str,
    /// The user's name for this launch, if there is one.
    pub name: Option<&'static str>,
    /// Where the user launched it.
    pub location: &'static Location<'static>,
    /// The argument block.
    pub parameters: ParameterLayout,
    /// The natively compiled kernel, which the host and simulated devices run.
    pub host_entry: HostEntry,
}

impl KernelDescriptor {
    /// The name that messages use: the user's, else the type's without closure markers.
    pub fn display_name(&self) -> &'static str {
        self.name.unwrap_or_else(|| {
            // Not `trim_end_matches`, which prepares a general search: this is called once per launch.
            let mut name = self.type_name;
            while let Some(shorter) = name.strip_suffix("::{{closure}}") {
                name = shorter;
            }
            name
        })
    }
}
