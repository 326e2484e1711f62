//! Loads of specialization constants in SPIR-V.
//!
//! The result of such a load has a name that says which part of the argument block it is. A variant declares the result as a constant, with the same id,
//! and has no load. Invariant: a load that is found gives a number of a type that is declared before all functions.

use std::collections::BTreeMap;
use std::ops::Range;

use super::SpecializedLoad;

/// What the name of a load's result begins with. Offset and size follow, in decimal.
const PREFIX: &str = "oxisycl.spec.";
/// What a module begins with.
const MAGIC: u32 = 0x0723_0203;
/// Magic number, version, generator, bound and schema.
const HEADER: usize = 5;

// Numbers of instructions.
const NAME: u32 = 5;
const TYPE_INT: u32 = 21;
const TYPE_FLOAT: u32 = 22;
const CONSTANT: u32 = 43;
const FUNCTION: u32 = 54;
const LOAD: u32 = 61;
const DECORATE: u32 = 71;

/// The mark in a load's operands if other code may change the memory meanwhile.
const VOLATILE: u32 = 1;

/// A load that a constant can replace.
struct Place {
    load: SpecializedLoad,
    /// The load's instruction in the code, in bytes.
    bytes: Range<usize>,
    /// The ids of its type and of its result.
    result_type: u32,
    result: u32,
}

/// The loads in a module, in their order, and where its functions begin.
struct Places {
    loads: Vec<Place>,
    functions: usize,
}

/// The name of the result of a load.
pub(super) fn name(offset: usize, size: usize) -> String {
    format!("{PREFIX}{offset}.{size}")
}

/// All loads in a code of SPIR-V, in their order.
pub(super) fn find(code: &[u8]) -> Vec<SpecializedLoad> {
    places(code).into_iter().flat_map(|places| places.loads).map(|place| place.load).collect()
}

/// The code with values in the place of these loads; `None` if one of them is none.
pub(super) fn with_values(
    code: &[u8],
    loads: &[SpecializedLoad],
    mut value: impl FnMut(usize, usize) -> u64,
) -> Option<Vec<u8>> {
    let Places { loads: found, functions } = places(code)?;
    let mut constants = Vec::new();
    let mut rest = Vec::with_capacity(code.len());
    let mut copied = functions;
    for load in loads {
        let Place { bytes, result_type, result, .. } = found.iter().find(|place| place.load == *load)?;
        rest.extend_from_slice(code.get(copied..bytes.start)?);
        copied = bytes.end;
        let value = value(load.offset, load.size);
        // A number of 64 bits has its lower half first.
        let words = [value as u32, (value >> 32) as u32];
        let words = &words[..load.size.div_ceil(4)];
        let first = CONSTANT | (3 + words.len() as u32) << 16;
        for word in [first, *result_type, *result].iter().chain(words) {
            constants.extend_from_slice(&word.to_le_bytes());
        }
    }
    rest.extend_from_slice(code.get(copied..)?);
    Some([&code[..functions], &constants, &rest].concat())
}

/// Goes over a module once; `None` if it is none.
fn places(code: &[u8]) -> Option<Places> {
    let (words, []) = code.as_chunks::<4>() else { return None };
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if words.len() < HEADER || words[0] != MAGIC {
        return None;
    }
    // The parts that results are named after, and the sizes of types of numbers.
    let (mut named, mut sizes) = (BTreeMap::new(), BTreeMap::new());
    let (mut loads, mut functions) = (Vec::new(), None);
    let mut at = HEADER;
    while let Some(&first) = words.get(at) {
        let length = (first >> 16) as usize;
        let operands = words.get(at + 1..at + length)?;
        let place = 4 * at;
        match (first & 0xffff, operands) {
            (NAME, [result, text @ ..]) => {
                if let Some(part) = part(text) {
                    named.insert(*result, part);
                }
            }
            // What else is said of it may not hold of a constant.
            (DECORATE, [result, ..]) => _ = named.remove(result),
            (TYPE_INT, [result, bits, 0]) | (TYPE_FLOAT, [result, bits]) if functions.is_none() => {
                sizes.insert(*result, *bits as usize / 8);
            }
            (FUNCTION, _) => _ = functions.get_or_insert(place),
            (LOAD, [result_type, result, _, access @ ..]) if functions.is_some() => {
                let is_volatile = access.first().is_some_and(|access| access & VOLATILE != 0);
                if let Some(&(offset, size)) = named.get(result)
                    && sizes.get(result_type) == Some(&size)
                    && !is_volatile
                {
                    loads.push(Place {
                        load: SpecializedLoad { place, offset, size },
                        bytes: place..place + 4 * length,
                        result_type: *result_type,
                        result: *result,
                    });
                }
            }
            _ => {}
        }
        at += length;
    }
    Some(Places { loads, functions: functions? })
}

/// The part that a name says: offset and size.
fn part(text: &[u32]) -> Option<(usize, usize)> {
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (offset, size) = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix(PREFIX)?.split_once('.')?;
    let part = (offset.parse().ok()?, size.parse().ok()?);
    // One way to write each.
    (matches!(part.1, 1 | 2 | 4 | 8) && bytes[..end] == *name(part.0, part.1).as_bytes()).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceImage, Form, ImageError, ImageTarget, KernelEntry, ParameterLayout, decode, encode};

    /// The first result of a load.
    const FIRST: u32 = 20;

    fn instruction(number: u32, operands: &[u32]) -> Vec<u32> {
        [&[number | (1 + operands.len() as u32) << 16], operands].concat()
    }

    fn named(result: u32, text: &str) -> Vec<u32> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len() / 4 * 4 + 4, 0);
        let text = bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
        instruction(NAME, &[&[result][..], &text.collect::<Vec<_>>()].concat())
    }

    fn bytes(instructions: &[Vec<u32>]) -> Vec<u8> {
        let words = [&[MAGIC, 0x0001_0200, 0, 100, 0][..], &instructions.concat()].concat();
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Names, types, and a function with loads. The last one has no name.
    fn module() -> Vec<Vec<u32>> {
        vec![
            named(FIRST, "oxisycl.spec.16.4"),
            named(FIRST + 1, "oxisycl.spec.20.1"),
            named(FIRST + 2, "oxisycl.spec.8.8"),
            named(FIRST + 3, "oxisycl.spec.4.4"),
            instruction(TYPE_INT, &[10, 8, 0]),
            instruction(TYPE_INT, &[11, 32, 0]),
            instruction(TYPE_INT, &[12, 64, 0]),
            instruction(TYPE_FLOAT, &[13, 32]),
            instruction(FUNCTION, &[1, 2, 0, 3]),
            instruction(LOAD, &[11, FIRST, 50, 2, 4]),
            instruction(LOAD, &[10, FIRST + 1, 51, 2, 1]),
            instruction(LOAD, &[12, FIRST + 2, 52, 2, 8]),
            instruction(LOAD, &[13, FIRST + 3, 53]),
            instruction(LOAD, &[11, FIRST + 4, 54, 2, 4]),
        ]
    }

    fn image(module: &[Vec<u32>]) -> DeviceImage {
        let code = bytes(module);
        let kernel = KernelEntry {
            specialized: find(&code),
            ..KernelEntry::new("k", [7; 16], Form::Range(1), ParameterLayout { size: 24, align: 8 }, "app::k")
        };
        DeviceImage {
            target: ImageTarget::SpirV { major: 1, minor: 2 },
            kernels: vec![kernel],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code,
        }
    }

    #[test]
    fn a_variant_declares_values_before_its_functions_and_has_no_such_load() {
        let module = module();
        let image = image(&module);
        assert_eq!(image.verify(), Ok(()));
        assert_eq!(decode(&encode(&image).unwrap()), Ok(image.clone()));
        let kernel = &image.kernels[0];
        assert_eq!(kernel.specialized_parts(), [(4, 4), (8, 8), (16, 4), (20, 1)]);
        let values = [(4, 0x3f80_0000), (8, 0x1234_5678_9abc_def0), (16, 32), (20, 1)];
        let value = |offset, _| values.into_iter().find(|(of, _)| *of == offset).unwrap().1;
        let variant = image.with_values(0, value).unwrap();
        let constants = [
            instruction(CONSTANT, &[11, FIRST, 32]),
            instruction(CONSTANT, &[10, FIRST + 1, 1]),
            instruction(CONSTANT, &[12, FIRST + 2, 0x9abc_def0, 0x1234_5678]),
            instruction(CONSTANT, &[13, FIRST + 3, 0x3f80_0000]),
        ];
        let expected = [&module[..8], &constants, &module[8..9], &module[13..]].concat();
        assert_eq!(variant.code, bytes(&expected));
        assert_eq!((variant.verify(), variant.kernels[0].specialized.len()), (Ok(()), 0));
        assert_eq!(find(&variant.code), []);
    }

    #[test]
    fn a_place_that_is_no_marked_load_is_refused() {
        let right = image(&module());
        let is_refused = |image: &DeviceImage| {
            let refused = image.verify();
            assert!(matches!(refused, Err(ImageError::Specialized { .. })), "{refused:?}");
            assert!(encode(image).is_err());
        };
        let places: [fn(&mut SpecializedLoad); 7] = [
            |load| load.place += 4,
            |load| load.place += 1,
            |load| load.place = usize::MAX,
            |load| load.place = 0,
            |load| load.offset = 12,
            |load| load.size = 8,
            |load| load.size = 3,
        ];
        for change in places {
            let mut image = right.clone();
            change(&mut image.kernels[0].specialized[0]);
            is_refused(&image);
        }
        let images: [fn(&mut DeviceImage); 6] = [
            |image| image.kernels[0].specialized.reverse(),
            |image| image.kernels[0].parameters.size = 16,
            |image| image.target = ImageTarget::Ptx { sm: 70 },
            |image| image.code.truncate(image.code.len() - 4),
            |image| image.code.push(0),
            |image| image.code[0] += 1,
        ];
        for change in images {
            let mut image = right.clone();
            change(&mut image);
            is_refused(&image);
        }
        // What makes the first load none, as the code's instruction of this position.
        let codes: [(usize, Vec<u32>); 8] = [
            (0, named(FIRST, "oxisycl.spec.16.2")),
            (0, named(FIRST, "oxisycl.spec.016.4")),
            (0, named(FIRST, "oxisycl.spec.16")),
            (4, instruction(DECORATE, &[FIRST, 42, 0])),
            (5, instruction(TYPE_INT, &[11, 64, 0])),
            (5, instruction(TYPE_INT, &[11, 32, 1])),
            (9, instruction(LOAD, &[11, FIRST, 50, 3, 4])),
            (9, instruction(62, &[11, FIRST, 50, 2, 4])),
        ];
        for (position, changed) in codes {
            let mut module = module();
            module[position] = changed;
            is_refused(&DeviceImage { code: bytes(&module), ..right.clone() });
        }
    }

    #[test]
    fn lengths_of_instructions_that_are_none_end_the_search() {
        assert_eq!(find(&bytes(&module())).len(), 4);
        // None, one word too many, and the most.
        for length in [0u32, 7, 0xffff] {
            let mut code = bytes(&module());
            let last = code.len() - 24;
            code[last..last + 4].copy_from_slice(&(LOAD | length << 16).to_le_bytes());
            assert_eq!(find(&code), [], "{length}");
        }
    }
}
