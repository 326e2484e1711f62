//! SPIR-V capabilities of a module that an OpenCL device may lack although it accepts SPIR-V.
//!
//! Precisions and widths that are optional are aspects of devices, and requirements of images. This is the rest: features of the language that
//! OpenCL 3.0 made optional and that have no aspect. A driver would refuse the module with a message of its own, if at all.

use crate::query::Asked;
use crate::sys::code;

/// The number of words before the first instruction.
const HEADER: usize = 5;
const OP_CAPABILITY: u32 = 17;
const GENERIC_POINTER: u32 = 38;
const SHUFFLE: u32 = 65;

/// The first capability that the module declares and the device lacks, in words for a message. `None` if there is no such capability.
pub(crate) fn missing(module: &[u8], device: Asked<'_>) -> Option<&'static str> {
    declared(module).find_map(|capability| match capability {
        GENERIC_POINTER if !has_generic_addresses(device) => Some(
            "generic addresses (the capability GenericPointer), which OpenCL 3.0 makes optional and the device lacks",
        ),
        SHUFFLE if !has_extension(device, "cl_khr_subgroup_shuffle") => {
            Some("shuffles of sub-groups (the capability GroupNonUniformShuffle; cl_khr_subgroup_shuffle is missing)")
        }
        _ => None,
    })
}

/// The capabilities that a module declares by its first instructions.
fn declared(module: &[u8]) -> impl Iterator<Item = u32> {
    let words = module.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_le_bytes));
    let mut words = words.skip(HEADER);
    std::iter::from_fn(move || (words.next()? == (2 << 16 | OP_CAPABILITY)).then(|| words.next()).flatten())
}

fn has_generic_addresses(device: Asked<'_>) -> bool {
    // Versions 2.0 to 2.2 have them, and no such query.
    crate::info::version(&device.text(code::DEVICE_VERSION)) < (3, 0)
        || device.number(code::DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT) != 0
}

fn has_extension(device: Asked<'_>, name: &str) -> bool {
    device.text(code::DEVICE_EXTENSIONS).split_whitespace().any(|extension| extension == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn capabilities_are_the_first_instructions_of_any_bytes() {
        let code = module(&[
            0x0723_0203,
            0x0001_0200,
            0,
            9,
            0,
            2 << 16 | 17,
            6,
            2 << 16 | 17,
            38,
            3 << 16 | 14,
            2,
            2,
            2 << 16 | 17,
            65,
        ]);
        assert_eq!(declared(&code).collect::<Vec<_>>(), [6, 38]);
        for cut in 0..code.len() {
            assert!(declared(&code[..cut]).count() <= 2);
        }
    }
}
