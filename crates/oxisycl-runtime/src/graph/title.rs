//! The names of a command in messages.
//!
//! A node can outlive the plug-in that submitted its command, by an event or in the state of a buffer. So the texts of a plug-in are copied.

use std::panic::Location;

use oxisycl_backend::{KernelCommand, NativeCode};
use oxisycl_image::{HostLevel, display_name_of};
use oxisycl_types::ArgumentType;

use crate::plug_ins::{PlugIns, SourcePlace, lasting};

/// What messages name a command by.
#[derive(Clone)]
pub struct Names {
    name: &'static str,
    /// Whether `name` is the name of a kernel's type, from which its own name is made where it is wanted.
    is_type: bool,
    pub(super) place: Option<SourcePlace>,
    /// What a kernel's argument block consists of, if there are arguments beside its captures. To be read before the command has ended.
    pub(super) arguments: Option<&'static ArgumentType>,
    /// The level of the code of the device compiler that a kernel runs on the host, if it runs such code.
    code: Option<Option<HostLevel>>,
}

impl Names {
    /// The name of a kernel or a host task. For other commands, the kind of operation.
    pub fn name(&self) -> &'static str {
        if self.is_type { display_name_of(self.name) } else { self.name }
    }

    /// The name of the code of the device compiler that a kernel runs on the host, if it runs such code.
    pub(super) fn code(&self) -> Option<&'static str> {
        self.code.map(NativeCode::name)
    }
}

/// The names of a command that has no node yet.
#[derive(Clone)]
pub struct Title {
    names: Names,
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
        Self { names: Names { name, is_type: false, place: Some(place), arguments: None, code: None }, plug_ins }
    }

    /// The title of a kernel.
    pub(crate) fn of(command: &KernelCommand) -> Self {
        let kernel = &command.descriptor;
        let (name, is_type) = kernel.name.map_or((kernel.type_name, true), |name| (name, false));
        let mut title = Self::new(name, kernel.location);
        (title.names.is_type, title.names.arguments) = (is_type, kernel.arguments);
        title.names.code = command.native.map(|native| native.level);
        title.plug_ins.add(kernel.host_entry as *const ());
        title
    }

    /// Adds what the command has code of.
    pub(crate) fn add_to(&self, plug_ins: &mut PlugIns) {
        plug_ins.add_all(&self.plug_ins);
    }

    /// The names, and what the command has code of. Nothing but the caller keeps that loaded from now on.
    pub(super) fn into_parts(self) -> (Names, PlugIns) {
        (self.names, self.plug_ins)
    }
}

impl From<&'static str> for Title {
    /// The title of a command that is the runtime's own.
    fn from(name: &'static str) -> Self {
        Self {
            names: Names { name, is_type: false, place: None, arguments: None, code: None },
            plug_ins: PlugIns::default(),
        }
    }
}
