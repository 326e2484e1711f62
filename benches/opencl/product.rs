//! The product of two matrices in OpenCL C.

use crate::matrices::{Matrices, N};
use crate::reference::{Kernel, Memory, Reference, Result};

/// A kernel with its matrices.
pub(crate) struct Product<'r> {
    kernel: Kernel<'r>,
    /// What the kernel reads.
    _inputs: [Memory<'r, f32>; 2],
    product: Memory<'r, f32>,
}

impl<'r> Product<'r> {
    pub(crate) fn new(reference: &'r Reference, matrices: &Matrices) -> Result<Self> {
        let kernel = reference.kernel("gemm")?;
        let copied = |values: &[f32]| -> Result<_> {
            let mut memory = reference.memory(values.len())?;
            memory.elements().copy_from_slice(values);
            Ok(memory)
        };
        let inputs = [copied(&matrices.left)?, copied(&matrices.right)?];
        let product = reference.memory(N * N)?;
        for (index, memory) in (0..).zip(inputs.iter().chain([&product])) {
            kernel.set_memory(index, memory)?;
        }
        kernel.set(3, N as u64)?;
        Ok(Self { kernel, _inputs: inputs, product })
    }

    pub(crate) fn multiply(&self) {
        self.kernel.time([N, N], Some([16, 16])).expect("the peer's kernel runs");
    }

    pub(crate) fn elements(&mut self) -> &[f32] {
        self.product.elements()
    }
}
