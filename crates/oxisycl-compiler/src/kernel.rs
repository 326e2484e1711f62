//! A kernel as the program describes it, for every part of the compiler.
//!
//! [`analyses::kernels`](crate::analyses::kernels) finds kernels. This file holds what it finds, and the texts that name a kernel's places.

use std::collections::BTreeSet;
use std::rc::Rc;

use oxisycl_image::{Argument, Form, ParameterLayout, SourceLocation, UnsupportedKernel, user_name};
use oxisycl_types::Aspects;

use crate::error::CompileError;
use crate::origin;

/// A kernel as the program describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    /// The kernel's symbol in the image.
    pub(crate) symbol: String,
    /// The name of its entry in the program's module.
    pub(crate) entry: String,
    pub(crate) type_id: [u8; 16],
    pub(crate) form: Form,
    /// The work-items of a group per dimension if the kernel fixes or states them, else zeros.
    pub(crate) group: [u32; 3],
    /// The aspects that the kernel states.
    pub(crate) aspects: Aspects,
    /// The work-items of a sub-group if the kernel states them, else 0.
    pub(crate) sub_group: u32,
    pub(crate) parameters: ParameterLayout,
    pub(crate) type_name: String,
    /// What its block consists of; empty if it has no arguments beside its captures.
    pub(crate) arguments: Vec<Argument>,
    /// The parts of its block that a launch may fix: offset and size of each.
    pub(crate) specialized: Vec<(usize, usize)>,
    /// The place of its launch, if it is a single one and known.
    pub(crate) launch: Option<Launch>,
    /// The captures for which it must stay on the host.
    pub(crate) refused_captures: Vec<RefusedCapture>,
    /// The place of its code in the user's source; for a closure, of its definition.
    pub(crate) place: Option<SourceLocation>,
}

impl Kernel {
    /// A kernel `k` of a module that a test has written, with captures of that many bytes.
    #[cfg(test)]
    pub(crate) fn of_test(form: Form, size: usize) -> Self {
        Self {
            symbol: "k".to_owned(),
            entry: "oxisycl_entry.k".to_owned(),
            type_id: [7; 16],
            form,
            group: [0; 3],
            aspects: Aspects::NONE,
            sub_group: 0,
            parameters: ParameterLayout { size, align: 8 },
            type_name: "app::k".to_owned(),
            arguments: Vec::new(),
            specialized: Vec::new(),
            launch: None,
            refused_captures: Vec::new(),
            place: None,
        }
    }

    /// The kernel as an image's entry for a kernel that the target cannot run.
    pub(crate) fn unsupported(&self, reason: String) -> UnsupportedKernel {
        UnsupportedKernel { type_id: self.type_id, form: self.form, type_name: self.type_name.clone(), reason }
    }

    /// A reason without places, extended by the places of the kernel and of its launch.
    pub(crate) fn with_place(&self, reason: &str) -> String {
        self.with_places(reason, "the kernel is", self.place.as_ref())
    }

    /// The reason why the kernel must stay on the host because of a capture, with the places of the capturing closure and of the launch.
    pub(crate) fn refused_capture(&self) -> Option<String> {
        self.captures().reason()
    }

    /// What is known of its captures.
    pub(crate) fn captures(&self) -> Captures {
        Captures {
            kernel: user_name(&self.type_name).to_owned(),
            launch: self.launch.as_ref().map(|launch| launch.location.clone()),
            place: self.place.clone(),
            refused: self.refused_captures.clone(),
        }
    }

    fn with_places(&self, reason: &str, what: &str, place: Option<&SourceLocation>) -> String {
        with_places(reason, what, place, self.launch.as_ref().map(|launch| &launch.location))
    }
}

fn with_places(reason: &str, what: &str, place: Option<&SourceLocation>, launch: Option<&SourceLocation>) -> String {
    // The columns of functions are not in the debug information.
    let place = place.map(|place| format!("{what} at {}:{}", place.file, place.line));
    let launch = launch.map(|launch| format!("launched at {launch}"));
    let places: Vec<String> = place.into_iter().chain(launch).collect();
    if places.is_empty() { reason.to_owned() } else { format!("{reason} ({})", places.join(", ")) }
}

/// What is known of a kernel's captures.
pub(crate) struct Captures {
    /// The name of the kernel, for messages.
    pub(crate) kernel: String,
    /// The place of its launch, if it is a single one and known.
    pub(crate) launch: Option<SourceLocation>,
    /// The place of its code in the user's source.
    pub(crate) place: Option<SourceLocation>,
    pub(crate) refused: Vec<RefusedCapture>,
}

impl Captures {
    /// The reason why the kernel must stay on the host, with the places of the capturing closure and of the launch.
    pub(crate) fn reason(&self) -> Option<String> {
        let RefusedCapture { reason, closure, .. } = self.refused.first()?;
        let (what, place) = match closure {
            Some(closure) => ("captured by the closure", Some(&closure.location)),
            None => ("the kernel is", self.place.as_ref()),
        };
        Some(with_places(reason, what, place, self.launch.as_ref()))
    }

    /// The captured addresses of the host that are the user's mistakes: those that have a place in the user's source.
    pub(crate) fn of_host(&self) -> Vec<HostCapture> {
        let capture = |refused: &RefusedCapture| {
            let CaptureFault { what, type_name } = refused.fault.clone()?;
            let variable = refused.variable.clone().filter(|variable| variable.place.is_users);
            let closure = refused.closure.clone().filter(|closure| closure.is_users).map(|closure| closure.location);
            let launch = self.launch.clone();
            let users_launch = launch.clone().filter(|launch| origin::is_users_file(&launch.file, ""));
            let code = closure.or_else(|| self.place.clone()).or(users_launch);
            // A launch of a named kernel captures that in a closure of its own.
            let is_in_ours = refused.closure.as_ref().is_some_and(|closure| !closure.is_users);
            let of_kernel = refused.path.get(usize::from(is_in_ours)..).unwrap_or_default();
            let path = variable.as_ref().map_or(of_kernel, |variable| &variable.path).to_vec();
            let variable = variable.map(|variable| variable.place.location);
            let is_users = variable.is_some() || code.is_some();
            let kernel = self.kernel.clone();
            is_users.then_some(HostCapture { kernel, path, what, type_name, variable, code, launch })
        };
        self.refused.iter().filter_map(capture).collect()
    }
}

/// What a crate tells of kernels.
#[derive(Debug)]
pub(crate) struct Found {
    /// The kernels that it has the code of, sorted by symbol.
    pub(crate) described: Vec<Described>,
    /// Launches of kernels whose code is in another crate.
    pub(crate) elsewhere: Vec<Elsewhere>,
}

/// A launch of a kernel whose code, or a part of whose description, is in another crate of the program.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    /// One of the [`symbols`](Described::symbols) of the kernel in that crate.
    pub(crate) symbol: String,
    /// The place, if it is a single one and known.
    pub(crate) launch: Option<Launch>,
}

/// A kernel, and the bitcode that its entry is in.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) kernel: Kernel,
    /// The symbols of the functions that describe it in its crate, and of its entry there.
    pub(crate) symbols: Vec<String>,
    /// Whether the final crate describes it, and not only a crate that it uses.
    pub(crate) is_of_final_crate: bool,
    /// The bitcode of a few kernels' entries, by the names in [`Kernel::entry`], and of the functions that they reach in their crate. Each
    /// function is linked where it is used. It has source lines, and no debug types.
    pub(crate) code: Rc<Vec<u8>>,
}

/// The place of a kernel's launch, and the functions that pass the place on. If another module has one of these functions, too, there may
/// be another place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Launch {
    pub(crate) location: SourceLocation,
    pub(crate) functions: BTreeSet<String>,
}

/// A capture that must not leave the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RefusedCapture {
    /// The capture, its kind and its type, as text.
    pub(crate) reason: String,
    /// The members that lead to it from the innermost closure that has it, or from the kernel.
    pub(crate) path: Vec<String>,
    /// Why it must not; `None` if it only could not be checked.
    pub(crate) fault: Option<CaptureFault>,
    /// The closure with the capture, which may be another one than the kernel, since kernels capture closures. `None` if no closure has it,
    /// or if no code of the closure is found.
    pub(crate) closure: Option<CodePlace>,
    /// The variable that a closure captured, if it is found.
    pub(crate) variable: Option<CapturedVariable>,
}

/// An element of an array, in a path.
pub(crate) const ELEMENT: &str = "[_]";

/// A path to a part of a captured value, as programs write it.
pub(crate) fn path_text(path: &[String]) -> String {
    path.join(".").replace(&format!(".{ELEMENT}"), ELEMENT)
}

/// Something in a capture that has no meaning on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CaptureFault {
    pub(crate) what: &'static str,
    pub(crate) type_name: String,
}

/// A variable that a closure captured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CapturedVariable {
    /// The members from the variable to the address.
    pub(crate) path: Vec<String>,
    /// The variable's declaration.
    pub(crate) place: CodePlace,
}

/// A place in a source file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CodePlace {
    pub(crate) location: SourceLocation,
    /// Whether the user may have written the file.
    pub(crate) is_users: bool,
}

/// A captured address of the host, which is an error of the program if its kernel is to run on a device.
///
/// Columns of `variable` and `code` count bytes, those of `launch` count characters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostCapture {
    /// The name of the kernel.
    pub kernel: String,
    /// The members that lead to the address. The first one is the variable that a closure captured, or a field of a kernel that is no
    /// closure. A part of a variable that is captured alone is one name: `pair__1` for `pair.1`. An element of an array is `[_]`.
    pub path: Vec<String>,
    /// What is captured.
    pub what: &'static str,
    /// The type of the capture.
    pub type_name: String,
    /// The declaration of the variable, if it is known.
    pub variable: Option<SourceLocation>,
    /// The code of the closure that captured the variable, or of the kernel. Only its line is known.
    pub code: Option<SourceLocation>,
    /// The place of the launch, if it is a single one and known.
    pub launch: Option<SourceLocation>,
}

/// The error of a program with a kernel's description but without its entry.
pub(crate) fn entry_was_lost(kernel: &Kernel) -> CompileError {
    CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name))
}
