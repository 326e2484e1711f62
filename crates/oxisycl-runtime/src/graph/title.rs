//! The names of a command in messages.
//!
//! A node can outlive the plug-in that submitted its command, by an event or in the state of a buffer. So the texts of a plug-in are copied.

use std::panic::Location;

use oxisycl_image::{KernelDescriptor, display_name_of};
use oxisycl_types::ArgumentType;

use crate::plug_ins::{PlugIns, SourcePlace, lasting};

/// What messages name a command by.
#[derive(Clone)]
pub struct Title {
    name: &'static str,
    /// Whether `name` is the name of a kernel's type, from which its own name is made where it is wanted.
    is_type: bool,
    pub(super) place: Option<SourcePlace>,
    /// What a kernel's argument block consists of, if there are arguments beside its captures. To be read before the command has ended.
    pub(super) arguments: Option<&'static ArgumentType>,
    /// What the command has code of, until a node takes it.
    plug_ins: PlugIns,
}

impl Title {
    /// A title with a name. `location` is the place of the submission in the user's source.
    pub fn new(name: &'static str, location: &'static Location<'static>) -> Self {
        let mut plug_ins = PlugIns::default();
        plug_ins.add(name.as_ptr().cast());
        plug_ins.add(std::ptr::from_ref(location).cast());
        let (name, place) = match plug_ins.is_empty() {
            true => (name, SourcePlace::Here(location)),
            false => (lasting(name), SourcePlace::copied(location)),
        };
        Self { name, is_type: false, place: Some(place), arguments: None, plug_ins }
    }

    /// The title of a kernel.
    pub(crate) fn of(kernel: &KernelDescriptor) -> Self {
        let (name, is_type) = kernel.name.map_or((kernel.type_name, true), |name| (name, false));
        let mut title = Self { is_type, arguments: kernel.arguments, ..Self::new(name, kernel.location) };
        title.plug_ins.add(kernel.host_entry as *const ());
        title
    }

    /// The name of a kernel or a host task. For other commands, the kind of operation.
    pub fn name(&self) -> &'static str {
        if self.is_type { display_name_of(self.name) } else { self.name }
    }

    /// Adds what the command has code of.
    pub(crate) fn add_to(&self, plug_ins: &mut PlugIns) {
        plug_ins.add_all(&self.plug_ins);
    }

    /// What the command has code of, which nothing but the caller keeps loaded from now on.
    pub(super) fn take_plug_ins(&mut self) -> PlugIns {
        std::mem::take(&mut self.plug_ins)
    }
}

impl From<&'static str> for Title {
    /// The title of a command that is the runtime's own.
    fn from(name: &'static str) -> Self {
        Self { name, is_type: false, place: None, arguments: None, plug_ins: PlugIns::default() }
    }
}
