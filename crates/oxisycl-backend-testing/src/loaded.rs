//! Kernels that tests of a backend have in the language of its driver: what an image says of them, and how they are launched.
//!
//! Does not have their code, and does not know which there are.

use std::panic::Location;
use std::sync::Arc;

use oxisycl_backend::{ArgumentBlock, Command, Device, KernelCommand, LoadedKernel};
use oxisycl_image::{
    DeviceImage, Form, ImageTarget, KernelEntry, MessagePiece, PanicSite, ParameterLayout, SourceLocation,
};
use oxisycl_types::LaunchRange;

use crate::contract::native;

/// What an image says of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct TestEntry {
    /// The name in the code.
    pub symbol: &'static str,
    /// The bytes of the arguments, which are numbers of 64 bits.
    pub size: usize,
    /// Whether it can panic.
    pub may_panic: bool,
    /// Whether it can print.
    pub may_print: bool,
}

impl TestEntry {
    /// A kernel that neither panics nor prints.
    pub const fn new(symbol: &'static str, size: usize) -> Self {
        Self { symbol, size, may_panic: false, may_print: false }
    }

    /// A kernel that can panic.
    #[must_use]
    pub const fn panicking(self) -> Self {
        Self { may_panic: true, ..self }
    }

    /// A kernel that can print.
    #[must_use]
    pub const fn printing(self) -> Self {
        Self { may_print: true, ..self }
    }

    /// The entry of an image, of a kernel that is at `location`.
    pub fn at(&self, location: &SourceLocation) -> KernelEntry {
        let Self { symbol, size, may_panic, may_print } = *self;
        let parameters = ParameterLayout { size, align: if size == 0 { 1 } else { 8 } };
        let id = [symbol.as_bytes().first().copied().unwrap_or(0); 16];
        KernelEntry {
            location: location.clone(),
            may_panic,
            may_print,
            ..KernelEntry::new(symbol, id, Form::Range(1), parameters, format!("test::{symbol}"))
        }
    }
}

/// An image of kernels that are all at `location`. The first site is a panic there, with a message that says that the kernel always fails.
pub fn image(target: ImageTarget, kernels: &[TestEntry], location: &SourceLocation, code: Vec<u8>) -> DeviceImage {
    DeviceImage {
        target,
        kernels: kernels.iter().map(|entry| entry.at(location)).collect(),
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: vec![site(location, "this kernel always fails")],
        code,
    }
}

/// A place where a kernel panics with a text, or prints it.
pub fn site(location: &SourceLocation, text: &str) -> PanicSite {
    PanicSite { location: Some(location.clone()), message: vec![MessagePiece::Literal(text.to_owned())] }
}

/// Kernels of an image, loaded on a device.
///
/// # Panics
/// If the driver refuses the image, or the image lacks a kernel.
///
/// # Safety
/// The contract of [`Device::load`] holds.
pub unsafe fn load<const N: usize>(
    device: &Arc<dyn Device>,
    image: &DeviceImage,
    symbols: [&str; N],
) -> [Arc<dyn LoadedKernel>; N] {
    // SAFETY: by the contract of this function.
    let module = unsafe { device.load(image, None) }.expect("the driver takes the image");
    symbols.map(|symbol| module.kernel(symbol).expect("the image has the kernel"))
}

/// A launch of a loaded kernel, which errors call `name`, and say to be where this is called.
#[track_caller]
pub fn launch<K: Copy + Send + Sync>(
    code: &Arc<dyn LoadedKernel>,
    name: &'static str,
    arguments: &K,
    range: LaunchRange,
) -> Command {
    let [_, mut descriptor, _] = native();
    (descriptor.name, descriptor.type_name) = (Some(name), name);
    descriptor.location = Location::caller();
    descriptor.parameters = ParameterLayout { size: size_of::<K>(), align: align_of::<K>() };
    let arguments = ArgumentBlock::new(arguments);
    Command::from(KernelCommand { descriptor, code: Some(code.clone()), native: None, arguments, range, group: None })
}

/// A range of `n` work-items in a line.
pub fn line(n: usize) -> LaunchRange {
    LaunchRange { dimensions: 1, extent: [1, 1, n], offset: [0; 3] }
}
