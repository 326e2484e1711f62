//! The product of matrices in OpenCL C on a driver whose device is the CPU.

use std::error::Error;
use std::sync::mpsc;

use oxisycl::BackendKind;
use oxisycl::prelude::*;

use crate::gemm::N;
use crate::reference::{Kernel, Memory, Reference, Result as Called};

/// Opens the driver; an error says why there is none.
pub(crate) fn reference() -> Result<Reference, Box<dyn Error>> {
    let is_wanted = |device: &Device| device.backend() == BackendKind::OpenCl && device.is_cpu();
    let device = Device::all()?.into_iter().find(is_wanted).ok_or(
        "no OpenCL device that is a CPU; `cargo xtask test` installs one, and `cargo xtask bench groups` uses it",
    )?;
    let (sender, receiver) = mpsc::channel();
    Queue::new(&device)?.submit(|cg| {
        cg.host_task(move |scope| {
            let handle = scope.interop().native_device().map(|handle| handle.expose_provenance());
            // The other end waits for it.
            let _ = sender.send(handle);
        })
    })?;
    Ok(Reference::open(std::ptr::with_exposed_provenance_mut(receiver.recv()??))?)
}

/// A product of matrices of `N` rows and columns.
pub(crate) struct Product<'r> {
    kernel: Kernel<'r>,
    /// What the kernel reads.
    _inputs: [Memory<'r, f32>; 2],
    product: Memory<'r, f32>,
}

impl<'r> Product<'r> {
    pub(crate) fn new(reference: &'r Reference, inputs: [&[f32]; 2]) -> Called<Self> {
        let kernel = reference.kernel("gemm")?;
        let copied = |values: &[f32]| -> Called<_> {
            let mut memory = reference.memory(values.len())?;
            memory.elements().copy_from_slice(values);
            Ok(memory)
        };
        let inputs = [copied(inputs[0])?, copied(inputs[1])?];
        let product = reference.memory(N * N)?;
        for (index, memory) in inputs.iter().chain([&product]).enumerate() {
            kernel.set_memory(index as u32, memory)?;
        }
        kernel.set(3, N as u64)?;
        Ok(Self { kernel, _inputs: inputs, product })
    }

    pub(crate) fn multiply(&self) -> Called<()> {
        self.kernel.time([N, N], Some([16, 16])).map(|_| ())
    }

    pub(crate) fn product(&mut self) -> &[f32] {
        self.product.elements()
    }
}
