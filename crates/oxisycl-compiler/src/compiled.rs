//! The results of compilation: images, and the modules that their code was generated from.
//!
//! The modules are for people, who see in them what LLVM made of a kernel. Nothing is compiled from them again, and no image contains a
//! part of them.

use oxisycl_image::{DeviceImage, decode_bundle, encode_bundle};

use crate::error::CompileError;
use crate::instruments::PassTime;
use crate::llvm::{self, Context, Module};
use crate::program;
use crate::toolchain::Toolchain;

/// The result of a program for one target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compiled {
    /// An image for each kernel with code, in the order of their symbols, and one without code that tells of the others, with the reasons. A
    /// kernel that is faster on devices with a certain aspect has another image before its own. There are none if the program launches no
    /// kernels.
    pub images: Vec<DeviceImage>,
    /// The modules that code was generated from, for each kernel with code, in the order of their symbols.
    pub modules: Vec<LoweredModule>,
    /// How long each pass took, summed over the kernels. A kernel whose result was [kept](crate::Kept) adds only what ran before it was found.
    pub times: Vec<PassTime>,
}

/// The optimised module of one kernel, in the form in which code generation was given it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoweredModule {
    /// The kernel's symbol. All of its images come from this module.
    pub symbol: String,
    /// LLVM's bitcode.
    pub bitcode: Vec<u8>,
}

impl LoweredModule {
    /// The module in LLVM's assembly, as [`Options::dump`](crate::Options::dump) has it of the last stage.
    ///
    /// # Errors
    /// If the toolchain's LLVM cannot be loaded, or does not read the bitcode.
    pub fn assembly(&self, toolchain: &Toolchain) -> Result<String, CompileError> {
        llvm::load(toolchain.llvm_library())?;
        let context = Context::new();
        Ok(Module::from_bitcode(&context, &self.bitcode, program::NAME)?.to_string())
    }
}

/// The result of one kernel.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Generated {
    /// The images, preferred ones first.
    pub(crate) images: Vec<DeviceImage>,
    /// The module that their code was generated from, as bitcode; empty if there is none.
    pub(crate) bitcode: Vec<u8>,
}

impl Generated {
    /// The result of a kernel that the target cannot run.
    pub(crate) fn without_code(image: DeviceImage) -> Self {
        Self { images: vec![image], bitcode: Vec::new() }
    }

    /// The bytes for the process that started the kernel's compilation: the length of the images, the images, the bitcode.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, CompileError> {
        let images = encode_bundle(&self.images).map_err(|error| CompileError::Kernel(error.to_string()))?;
        Ok([&(images.len() as u64).to_le_bytes(), &*images, &*self.bitcode].concat())
    }

    /// Decodes [`encode`](Self::encode). The error says what is wrong with the bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let split = || {
            let (length, rest) = bytes.split_first_chunk()?;
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        };
        let (images, bitcode) = split().ok_or_else(|| format!("its {} bytes are damaged", bytes.len()))?;
        let images = decode_bundle(images).map_err(|error| error.to_string())?;
        Ok(Self { images, bitcode: bitcode.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_bytes_are_told_and_whole_ones_come_back() {
        let generated = Generated { images: Vec::new(), bitcode: b"BC".to_vec() };
        let bytes = generated.encode().expect("bytes");
        assert_eq!(Generated::decode(&bytes), Ok(generated));
        // Without the last two it is one without a module.
        for length in 0..bytes.len() - 2 {
            assert!(Generated::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}
