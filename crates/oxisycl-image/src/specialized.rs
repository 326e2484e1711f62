//! Places of an image's code that load a part of the argument block which a launch may fix: the values of specialization constants.
//!
//! In PTX such a place is a comment, and the load in the line below it. A variant of the code has the value there instead. In SPIR-V the load's result
//! has a name, and a variant declares the result as a constant (`spirv`). Invariant: a place that was verified is one that [`DeviceImage::with_values`]
//! can replace, and nothing else of the code changes.

mod spirv;

use crate::{DeviceImage, ImageTarget, KernelEntry, ParameterLayout};

/// What the comment begins with. Offset and size follow, in decimal.
const MARKER: &str = "// oxisycl.spec ";

/// A load of a part of the argument block, which is always the same type and has a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SpecializedLoad {
    /// Where in the code it begins, in bytes: its comment in PTX, its instruction in SPIR-V.
    pub place: usize,
    /// The first byte of the block that it loads.
    pub offset: usize,
    /// How many it loads: 1, 2, 4 or 8.
    pub size: usize,
}

/// The load of a place in PTX.
struct Line<'a> {
    /// Where it begins and ends in the code.
    start: usize,
    end: usize,
    register: &'a str,
}

impl SpecializedLoad {
    /// The text of a load in PTX into the register `register` of the parameter `parameter`.
    pub fn text(offset: usize, size: usize, register: &str, parameter: &str) -> String {
        format!("{MARKER}{offset} {size}\n\tld.param.b{} {register}, [{parameter}+{offset}];", 8 * size)
    }

    /// The name of a load's result in SPIR-V.
    pub fn name(offset: usize, size: usize) -> String {
        spirv::name(offset, size)
    }

    /// All loads in a code for a target, in their order. Other targets than PTX and SPIR-V have none.
    pub fn find_for(target: &ImageTarget, code: &[u8]) -> Vec<Self> {
        match target {
            ImageTarget::Ptx { .. } => Self::find(code),
            ImageTarget::SpirV { .. } => spirv::find(code),
            _ => Vec::new(),
        }
    }

    /// All loads in a code of PTX, in their order.
    pub fn find(code: &[u8]) -> Vec<Self> {
        let Ok(text) = std::str::from_utf8(code) else { return Vec::new() };
        let load = |(place, _)| {
            let (numbers, _) = text[place + MARKER.len()..].split_once('\n')?;
            let (offset, size) = numbers.split_once(' ')?;
            let load = Self { place, offset: offset.parse().ok()?, size: size.parse().ok()? };
            load.line(code).is_some().then_some(load)
        };
        text.match_indices(MARKER).filter_map(load).collect()
    }

    /// The line of the load, if its place in the code is one.
    fn line<'a>(&self, code: &'a [u8]) -> Option<Line<'a>> {
        let Self { place, offset, size } = *self;
        let bits = match size {
            1 | 2 | 4 | 8 => 8 * size,
            _ => return None,
        };
        let before = format!("{MARKER}{offset} {size}\n\t");
        let rest = code.get(place..)?.strip_prefix(before.as_bytes())?;
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = std::str::from_utf8(&rest[..length]).ok()?;
        let (register, parameter) = line.strip_prefix(&format!("ld.param.b{bits} "))?.split_once(", [")?;
        let is_name = |text: &str| {
            !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_$%.".contains(&letter))
        };
        let parameter = parameter.strip_suffix(&format!("+{offset}];"))?;
        let is_load = register.starts_with('%') && is_name(register) && is_name(parameter);
        let start = place + before.len();
        is_load.then_some(Line { start, end: start + length, register })
    }

    /// The instruction that gives the register of the load the value. What is loaded is less than a register if it is one byte.
    fn constant(&self, register: &str, value: u64) -> String {
        let bits = (8 * self.size).max(16);
        format!("mov.b{bits} {register}, {value:#x};")
    }
}

/// The places of an image that can hold loads of specialization constants.
pub(crate) struct SpecializedPlaces<'i> {
    image: &'i DeviceImage,
    /// All loads, if the code is SPIR-V, which is gone through once.
    found: Vec<SpecializedLoad>,
}

impl<'i> SpecializedPlaces<'i> {
    pub(crate) fn of(image: &'i DeviceImage) -> Self {
        let is_asked = image.kernels.iter().any(|kernel| !kernel.specialized.is_empty());
        let found = match image.target {
            ImageTarget::SpirV { .. } if is_asked => spirv::find(&image.code),
            _ => Vec::new(),
        };
        Self { image, found }
    }

    fn has(&self, load: &SpecializedLoad) -> bool {
        match self.image.target {
            ImageTarget::Ptx { .. } => load.line(&self.image.code).is_some(),
            _ => self.found.binary_search(load).is_ok(),
        }
    }
}

impl KernelEntry {
    /// Whether each of its loads is inside its block, and its place in the code is one; the first that is not.
    pub(crate) fn wrong_load(&self, places: &SpecializedPlaces<'_>) -> Option<SpecializedLoad> {
        let ParameterLayout { size, .. } = self.parameters;
        let is_by_value = !places.image.target.passes_by_address(self.parameters);
        let is_sorted = self.specialized.is_sorted_by(|first, second| first.place < second.place);
        let is_right = |load: &&SpecializedLoad| {
            is_by_value
                && is_sorted
                && load.offset.checked_add(load.size).is_some_and(|end| end <= size)
                && places.has(load)
        };
        self.specialized.iter().find(|load| !is_right(load)).copied()
    }

    /// The parts of the argument block that [`DeviceImage::with_values`] asks for, each once: offset and size.
    pub fn specialized_parts(&self) -> Vec<(usize, usize)> {
        let mut parts: Vec<_> = self.specialized.iter().map(|load| (load.offset, load.size)).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

impl DeviceImage {
    /// The image with the code of one kernel for given values. `value` gives the number that a launch has at an offset, with a size. Nothing but the loads
    /// of the kernel changes. `None` if the image was not verified.
    pub fn with_values(&self, kernel: usize, value: impl FnMut(usize, usize) -> u64) -> Option<Self> {
        let entry = self.kernels.get(kernel)?;
        let code = match self.target {
            ImageTarget::SpirV { .. } => spirv::with_values(&self.code, &entry.specialized, value)?,
            _ => self.text_with_values(&entry.specialized, value)?,
        };
        let entry = KernelEntry { specialized: Vec::new(), ..entry.clone() };
        Some(Self { kernels: vec![entry], code, unsupported: Vec::new(), ..self.clone() })
    }

    fn text_with_values(
        &self,
        loads: &[SpecializedLoad],
        mut value: impl FnMut(usize, usize) -> u64,
    ) -> Option<Vec<u8>> {
        let mut code = Vec::with_capacity(self.code.len());
        let mut copied = 0;
        for load in loads {
            let line = load.line(&self.code)?;
            code.extend_from_slice(self.code.get(copied..line.start)?);
            code.extend_from_slice(load.constant(line.register, value(load.offset, load.size)).as_bytes());
            copied = line.end;
        }
        code.extend_from_slice(&self.code[copied..]);
        Some(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, ImageError, SourceLocation, decode, encode};

    const CODE: &str = ".entry k(\n\t.param .b8 k_param_0[104],\n\t.param .b8 k_param_1[24]\n)\n{\n\
                        \t// begin inline asm\n\t// oxisycl.spec 16 4\n\tld.param.b32 %r1, [k_param_1+16];\n\t// end inline asm\n\
                        \tld.param.b64 %rd1, [k_param_1];\n\
                        \t// begin inline asm\n\t// oxisycl.spec 20 1\n\tld.param.b8 %rs1, [k_param_1+20];\n\t// end inline asm\n\
                        \t// begin inline asm\n\t// oxisycl.spec 8 8\n\tld.param.b64 %rd2, [k_param_1+8];\n\t// end inline asm\n\
                        \t// begin inline asm\n\t// oxisycl.spec 16 4\n\tld.param.b32 %r7, [k_param_1+16];\n\t// end inline asm\n\tret;\n}\n";

    fn image() -> DeviceImage {
        let kernel = KernelEntry {
            location: SourceLocation { file: String::new(), line: 0, column: 0 },
            specialized: SpecializedLoad::find(CODE.as_bytes()),
            ..KernelEntry::new("k", [7; 16], Form::Range(1), ParameterLayout { size: 24, align: 8 }, "app::k")
        };
        DeviceImage {
            target: ImageTarget::Ptx { sm: 70 },
            kernels: vec![kernel],
            build_options: String::new(),
            unsupported: Vec::new(),
            sites: Vec::new(),
            code: CODE.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_variant_has_values_in_the_place_of_loads_and_is_equal_otherwise() {
        let image = image();
        assert_eq!(image.verify(), Ok(()));
        assert_eq!(decode(&encode(&image).unwrap()), Ok(image.clone()));
        let kernel = &image.kernels[0];
        assert_eq!(kernel.specialized.len(), 4);
        assert_eq!(kernel.specialized_parts(), [(8, 8), (16, 4), (20, 1)]);
        let value = |offset, _| [(8, u64::MAX), (16, 32), (20, 1)].into_iter().find(|(of, _)| *of == offset).unwrap().1;
        let variant = image.with_values(0, value).unwrap();
        let expected = CODE
            .replace("ld.param.b32 %r1, [k_param_1+16]", "mov.b32 %r1, 0x20")
            .replace("ld.param.b32 %r7, [k_param_1+16]", "mov.b32 %r7, 0x20")
            .replace("ld.param.b8 %rs1, [k_param_1+20]", "mov.b16 %rs1, 0x1")
            .replace("ld.param.b64 %rd2, [k_param_1+8]", "mov.b64 %rd2, 0xffffffffffffffff");
        assert_eq!(String::from_utf8(variant.code.clone()).unwrap(), expected);
        // Only the address, which is no constant, is still loaded.
        assert_eq!(expected.matches("ld.param").count(), 1);
        assert_eq!((variant.verify(), variant.kernels[0].specialized.len()), (Ok(()), 0));
    }

    #[test]
    fn a_place_that_is_no_marked_load_is_refused() {
        let right = image();
        let changes: [fn(&mut SpecializedLoad); 6] = [
            |load| load.place += 1,
            |load| load.place = usize::MAX,
            |load| load.place = 0,
            |load| load.offset = 12,
            |load| load.size = 8,
            |load| load.size = 3,
        ];
        for change in changes {
            let mut image = right.clone();
            change(&mut image.kernels[0].specialized[0]);
            let refused = image.verify();
            assert!(matches!(refused, Err(ImageError::Specialized { .. })), "{refused:?}");
            assert!(encode(&image).is_err());
        }
        let refused = |change: fn(&mut DeviceImage)| {
            let mut image = right.clone();
            change(&mut image);
            let refused = image.verify();
            assert!(matches!(refused, Err(ImageError::Specialized { .. })), "{refused:?}");
        };
        refused(|image| image.kernels[0].specialized.reverse());
        refused(|image| image.kernels[0].parameters.size = 16);
        refused(|image| image.target = ImageTarget::SpirV { major: 1, minor: 2 });
        refused(|image| image.code.truncate(CODE.len() - 40));
        // The line below the comment is another instruction.
        refused(|image| image.code = CODE.replace("ld.param.b32 %r1", "ld.local.b32 %r1").into_bytes());
        refused(|image| {
            image.code = CODE.replace("%r1, [k_param_1+16]", "%r1; exit; ld.x [k_param_1+16]").into_bytes()
        });
        refused(|image| image.code = CODE.replace("[k_param_1+16]", "[k_param_1+17]").into_bytes());
    }
}
