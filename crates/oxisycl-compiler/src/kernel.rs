//! A kernel as the program describes it, for every part of the compiler.
//!
//! [`analyses::kernels`](crate::analyses::kernels) finds kernels. This file holds what it finds, and the texts that name a kernel's places.

use std::collections::BTreeSet;
use std::rc::Rc;

use oxisycl_image::{Argument, Form, ParameterLayout, SourceLocation, UnsupportedKernel};

use crate::error::CompileError;

/// A kernel as the program describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kernel {
    /// The kernel's symbol in the image.
    pub(crate) symbol: String,
    /// The name of its entry in the program's module.
    pub(crate) entry: String,
    pub(crate) type_id: [u8; 16],
    pub(crate) form: Form,
    /// The work-items of a group per dimension if the kernel fixes them, else zeros.
    pub(crate) group: [u32; 3],
    pub(crate) parameters: ParameterLayout,
    pub(crate) type_name: String,
    /// What its block consists of; empty if it has no arguments beside its captures.
    pub(crate) arguments: Vec<Argument>,
    /// The place of its launch, if it is a single one and known.
    pub(crate) launch: Option<Launch>,
    /// The capture for which it must stay on the host, if there is one.
    pub(crate) refused_capture: Option<RefusedCapture>,
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
            parameters: ParameterLayout { size, align: 8 },
            type_name: "app::k".to_owned(),
            arguments: Vec::new(),
            launch: None,
            refused_capture: None,
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
        let RefusedCapture { reason, closure } = self.refused_capture.as_ref()?;
        Some(match closure {
            Some(_) => self.with_places(reason, "captured by the closure", closure.as_ref()),
            None => self.with_place(reason),
        })
    }

    fn with_places(&self, reason: &str, what: &str, place: Option<&SourceLocation>) -> String {
        // The columns of functions are not in the debug information.
        let place = place.map(|place| format!("{what} at {}:{}", place.file, place.line));
        let launch = self.launch.as_ref().map(|launch| format!("launched at {}", launch.location));
        let places: Vec<String> = place.into_iter().chain(launch).collect();
        if places.is_empty() { reason.to_owned() } else { format!("{reason} ({})", places.join(", ")) }
    }
}

/// A kernel, and the bitcode that its entry is in.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) kernel: Kernel,
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
    /// The closure with the capture, which may be another one than the kernel, since kernels capture closures. `None` if no closure has it,
    /// or if no code of the closure is found.
    pub(crate) closure: Option<SourceLocation>,
}

/// The error of a program with a kernel's description but without its entry.
pub(crate) fn entry_was_lost(kernel: &Kernel) -> CompileError {
    CompileError::Kernel(format!("{}: its entry was lost", kernel.type_name))
}
