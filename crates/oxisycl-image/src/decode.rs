//! Reads a device image; see `format` for the bytes.
//!
//! Invariant: no length, count or offset of the input is used before it is held against the bytes that are there, and
//! nothing is allocated that is not paid for by a proportional number of input bytes.

use crate::format::{
    FORM_RANGE, FORM_SINGLE, HEADER_SIZE, MAGIC, MIN_KERNEL_SIZE, MIN_TEXT_SIZE, SECTION_ALIGN, Section,
    TABLE_ENTRY_SIZE, VERSION, checksum,
};
use crate::{DeviceImage, Form, ImageError, KernelEntry, ParameterLayout, SourceLocation};

/// The image that the bytes encode.
///
/// May be called with any bytes. Bytes that are accepted are exactly those that [`encode`](crate::encode) gives for the
/// image that is returned, and that image keeps the rules of [`DeviceImage::verify`]. The code itself is not looked into.
///
/// # Errors
/// What is wrong with the bytes, first the outer parts: magic, version, length, checksum, table, sections, rules.
pub fn decode(bytes: &[u8]) -> Result<DeviceImage, ImageError> {
    let mut header = Reader { part: "header", bytes, offset: 0 };
    check_header(&mut header)?;
    let mut table = Reader { part: "section table", bytes: header.bytes, offset: header.offset };
    let mut end = HEADER_SIZE + Section::ALL.len() * TABLE_ENTRY_SIZE;
    let [target, build_options, requirements, kernels, code] = {
        let mut next = |section| read_section(section, &mut table, bytes, &mut end);
        [
            next(Section::Target)?,
            next(Section::BuildOptions)?,
            next(Section::Requirements)?,
            next(Section::Kernels)?,
            next(Section::Code)?,
        ]
    };
    if end != bytes.len() {
        return Err(ImageError::Trailing { part: Section::Code.name(), found: bytes.len() - end });
    }
    let image = DeviceImage {
        target: target.rest_as_text()?.parse()?,
        kernels: read_kernels(kernels)?,
        build_options: build_options.rest_as_text()?.to_owned(),
        requirements: read_requirements(requirements)?,
        code: code.bytes.to_vec(),
    };
    image.verify()?;
    Ok(image)
}

/// Checks everything about the input that does not depend on its sections.
fn check_header(header: &mut Reader<'_>) -> Result<(), ImageError> {
    let bytes = header.bytes;
    if !bytes.starts_with(&MAGIC) {
        return Err(ImageError::Magic { found: bytes[..bytes.len().min(MAGIC.len())].to_vec() });
    }
    header.take(MAGIC.len())?;
    let version = header.u32()?;
    if version != VERSION {
        return Err(ImageError::Version { found: version, expected: VERSION });
    }
    header.expect(u32::try_from(Section::ALL.len()).unwrap_or(u32::MAX))?;
    let length = header.u64()?;
    if length != bytes.len() as u64 {
        return Err(ImageError::Length { expected: length, found: bytes.len() as u64 });
    }
    let expected = header.u64()?;
    let found = checksum(bytes);
    if found != expected {
        return Err(ImageError::Checksum { expected, found });
    }
    Ok(())
}

/// Reads the next entry of the table, and gives the bytes of its section. `end` is where the section before it ended.
fn read_section<'a>(
    section: Section,
    table: &mut Reader<'a>,
    image: &'a [u8],
    end: &mut usize,
) -> Result<Reader<'a>, ImageError> {
    table.expect(section.kind())?;
    table.expect(0)?;
    let start = end.next_multiple_of(SECTION_ALIGN);
    let offset_at = table.offset;
    let offset = table.u64()?;
    if offset != start as u64 {
        let (part, expected) = (table.part, start as u64);
        return Err(ImageError::Number { part, offset: offset_at, expected, found: offset });
    }
    let length = table.u64()?;
    let mut section = Reader { part: section.name(), bytes: image.get(*end..).unwrap_or_default(), offset: *end };
    let padding = section.take(start - *end)?;
    if let Some(idx) = padding.iter().position(|byte| *byte != 0) {
        let (part, offset, found) = ("padding", *end + idx, u64::from(padding[idx]));
        return Err(ImageError::Number { part, offset, expected: 0, found });
    }
    // A length beyond the address space is beyond the input as well.
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let offset = section.offset;
    let bytes = section.take(length)?;
    *end = section.offset;
    Ok(Reader { part: section.part, bytes, offset })
}

fn read_requirements(mut section: Reader<'_>) -> Result<Vec<String>, ImageError> {
    let n_requirements = section.count(MIN_TEXT_SIZE)?;
    let requirements = (0..n_requirements).map(|_| section.text()).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(requirements)
}

fn read_kernels(mut section: Reader<'_>) -> Result<Vec<KernelEntry>, ImageError> {
    let n_kernels = section.count(MIN_KERNEL_SIZE)?;
    let kernels = (0..n_kernels).map(|_| read_kernel(&mut section)).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(kernels)
}

fn read_kernel(section: &mut Reader<'_>) -> Result<KernelEntry, ImageError> {
    let type_id = section.array()?;
    let form = read_form(section)?;
    let size = section.size()?;
    let align = section.size()?;
    let line = section.u32()?;
    let column = section.u32()?;
    let location = SourceLocation { file: section.text()?, line, column };
    let symbol = section.text()?;
    let type_name = section.text()?;
    Ok(KernelEntry { symbol, type_id, form, parameters: ParameterLayout { size, align }, type_name, location })
}

fn read_form(section: &mut Reader<'_>) -> Result<Form, ImageError> {
    let offset = section.offset;
    let [form, dimensions, zeros @ ..] = section.array::<4>()?;
    let (idx, expected, found) = match (form, dimensions, zeros) {
        (FORM_SINGLE, 0, [0, 0]) => return Ok(Form::Single),
        (FORM_RANGE, _, [0, 0]) => return Ok(Form::Range(dimensions)),
        (FORM_SINGLE, 1.., _) => (1, 0, dimensions),
        (FORM_SINGLE | FORM_RANGE, _, [0, found]) => (3, 0, found),
        (FORM_SINGLE | FORM_RANGE, _, [found, _]) => (2, 0, found),
        _ => (0, FORM_RANGE, form),
    };
    let (expected, found) = (u64::from(expected), u64::from(found));
    Err(ImageError::Number { part: "kernel form", offset: offset + idx, expected, found })
}

/// The unread bytes of one part of the input, and where in the input they begin.
struct Reader<'a> {
    part: &'static str,
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], ImageError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            let (part, offset, found) = (self.part, self.offset, self.bytes.len());
            return Err(ImageError::Truncated { part, offset, expected: length, found });
        };
        self.bytes = rest;
        self.offset += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, ImageError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, ImageError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number that can only be one.
    fn expect(&mut self, expected: u32) -> Result<(), ImageError> {
        let (part, offset) = (self.part, self.offset);
        let found = self.u32()?;
        if found != expected {
            return Err(ImageError::Number { part, offset, expected: u64::from(expected), found: u64::from(found) });
        }
        Ok(())
    }

    /// A size in memory, which has to be one on this machine.
    fn size(&mut self) -> Result<usize, ImageError> {
        let (part, offset) = (self.part, self.offset);
        let found = self.u64()?;
        usize::try_from(found).map_err(|_| ImageError::Number { part, offset, expected: usize::MAX as u64, found })
    }

    /// The number of things of at least `min_size` bytes that follow; there is room for all of them.
    fn count(&mut self, min_size: usize) -> Result<usize, ImageError> {
        let count = self.u32()? as usize;
        let expected = count.saturating_mul(min_size);
        if self.bytes.len() < expected {
            let (part, offset, found) = (self.part, self.offset, self.bytes.len());
            return Err(ImageError::Truncated { part, offset, expected, found });
        }
        Ok(count)
    }

    fn text(&mut self) -> Result<String, ImageError> {
        let length = self.u32()? as usize;
        let offset = self.offset;
        let bytes = self.take(length)?;
        Reader { part: self.part, bytes, offset }.rest_as_text().map(str::to_owned)
    }

    fn rest_as_text(self) -> Result<&'a str, ImageError> {
        str::from_utf8(self.bytes).map_err(|_| ImageError::Text { part: self.part, offset: self.offset })
    }

    fn finish(self) -> Result<(), ImageError> {
        match self.bytes.len() {
            0 => Ok(()),
            found => Err(ImageError::Trailing { part: self.part, found }),
        }
    }
}

#[cfg(test)]
mod tests;
