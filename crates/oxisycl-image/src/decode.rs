//! Reads a device image; see `format` for the bytes.
//!
//! Invariant: no length, count or offset of the input is used before it is held against the bytes that are there. Nothing
//! is allocated that is not paid for by a proportional number of input bytes.

use crate::format::{
    BUNDLE_ENTRY_SIZE, BUNDLE_MAGIC, FORM_GROUP, FORM_RANGE, FORM_SINGLE, HEADER_SIZE, MAGIC, MIN_ARGUMENT_SIZE,
    MIN_KERNEL_SIZE, MIN_UNSUPPORTED_SIZE, SECTION_ALIGN, SPECIALIZED_LOAD_SIZE, Section, TABLE_ENTRY_SIZE, VERSION,
    checksum,
};
use crate::reader::Reader;
use crate::{
    Argument, DeviceImage, Form, GroupNeeds, ImageError, KernelEntry, ParameterLayout, SourceLocation, SpecializedLoad,
    UnsupportedKernel,
};

mod sites;

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
    let [target, build_options, kernels, unsupported, sites, code] = {
        let mut next = |section| read_section(section, &mut table, bytes, &mut end);
        [
            next(Section::Target)?,
            next(Section::BuildOptions)?,
            next(Section::Kernels)?,
            next(Section::Unsupported)?,
            next(Section::Sites)?,
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
        unsupported: read_unsupported(unsupported)?,
        sites: sites::read(sites)?,
        code: code.bytes.to_vec(),
    };
    image.verify()?;
    Ok(image)
}

/// The images that the bytes of a bundle encode.
///
/// May be called with any bytes. Bytes that are accepted are exactly those that [`encode_bundle`](crate::encode_bundle) gives for
/// the images that are returned.
///
/// # Errors
/// What is wrong with the bundle, or as for [`decode`]. One wrong image makes the bundle wrong.
pub fn decode_bundle(bytes: &[u8]) -> Result<Vec<DeviceImage>, ImageError> {
    let mut bundle = Reader { part: "bundle", bytes, offset: 0 };
    check_magic(&mut bundle, "OXISYCLB", BUNDLE_MAGIC)?;
    let counted_at = bundle.offset;
    let n_images = bundle.u32()?;
    let length = bundle.u64()?;
    if length != bytes.len() as u64 {
        return Err(ImageError::Length { expected: length, found: bytes.len() as u64 });
    }
    let expected = (n_images as usize).saturating_mul(BUNDLE_ENTRY_SIZE);
    if bundle.bytes.len() < expected {
        let found = bundle.bytes.len();
        return Err(ImageError::Truncated { part: "bundle", offset: counted_at, expected, found });
    }
    let mut images = Vec::new();
    for _ in 0..n_images {
        let length = bundle.size()?;
        images.push(decode(bundle.take(length)?)?);
        while !bundle.offset.is_multiple_of(SECTION_ALIGN) {
            bundle.zero()?;
        }
    }
    bundle.finish()?;
    Ok(images)
}

/// Takes the magic and the version, which have to be the given one and the current one.
fn check_magic(reader: &mut Reader<'_>, name: &'static str, magic: [u8; 8]) -> Result<(), ImageError> {
    let bytes = reader.bytes;
    if !bytes.starts_with(&magic) {
        return Err(ImageError::Magic { expected: name, found: bytes[..bytes.len().min(magic.len())].to_vec() });
    }
    reader.take(magic.len())?;
    let version = reader.u32()?;
    if version != VERSION {
        return Err(ImageError::Version { found: version, expected: VERSION });
    }
    Ok(())
}

/// Checks everything about the input that does not depend on its sections.
fn check_header(header: &mut Reader<'_>) -> Result<(), ImageError> {
    let bytes = header.bytes;
    check_magic(header, "OXISYCLI", MAGIC)?;
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

fn read_kernels(mut section: Reader<'_>) -> Result<Vec<KernelEntry>, ImageError> {
    let n_kernels = section.count(MIN_KERNEL_SIZE)?;
    let kernels = (0..n_kernels).map(|_| read_kernel(&mut section)).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(kernels)
}

fn read_kernel(section: &mut Reader<'_>) -> Result<KernelEntry, ImageError> {
    let type_id = section.array()?;
    let form = read_form(section)?;
    let may_panic = section.flag()?;
    let may_print = section.flag()?;
    let is_paired = section.flag()?;
    let size = section.size()?;
    let align = section.size()?;
    let has_unbounded_stack = sites::choice(section, 1)? == 1;
    let mut local = [0; 3];
    for extent in &mut local {
        *extent = section.u32()?;
    }
    let (sub_group, static_local_bytes, bytes_of_element) = (section.u32()?, section.u32()?, section.u32()?);
    let (uses_local_memory, has_barriers) = (section.flag()?, section.flag()?);
    section.zero()?;
    section.zero()?;
    let groups = GroupNeeds { local, sub_group, static_local_bytes, bytes_of_element, uses_local_memory, has_barriers };
    let location = read_location(section)?;
    let launch = match sites::choice(section, 1)? {
        0 => None,
        _ => Some(read_location(section)?),
    };
    let symbol = section.text()?;
    let type_name = section.text()?;
    let requirements = section.texts()?;
    let aspects = section.texts()?;
    let unstated = section.texts()?;
    let library = section.texts()?;
    let arguments = read_arguments(section)?;
    let n_loads = section.count(SPECIALIZED_LOAD_SIZE)?;
    let load = |_| {
        Ok::<_, ImageError>(SpecializedLoad { place: section.size()?, offset: section.size()?, size: section.size()? })
    };
    let specialized = (0..n_loads).map(load).collect::<Result<_, ImageError>>()?;
    let parameters = ParameterLayout { size, align };
    Ok(KernelEntry {
        symbol,
        type_id,
        form,
        parameters,
        type_name,
        location,
        launch,
        requirements,
        aspects,
        unstated,
        library,
        arguments,
        specialized,
        may_panic,
        may_print,
        is_paired,
        has_unbounded_stack,
        groups,
    })
}

fn read_arguments(section: &mut Reader<'_>) -> Result<Vec<Argument>, ImageError> {
    let n_arguments = section.count(MIN_ARGUMENT_SIZE)?;
    let argument = |_| {
        let (offset, size) = (section.size()?, section.size()?);
        Ok(Argument { path: section.text()?, type_name: section.text()?, offset, size })
    };
    (0..n_arguments).map(argument).collect()
}

fn read_unsupported(mut section: Reader<'_>) -> Result<Vec<UnsupportedKernel>, ImageError> {
    let n_kernels = section.count(MIN_UNSUPPORTED_SIZE)?;
    let mut kernel = || -> Result<UnsupportedKernel, ImageError> {
        let type_id = section.array()?;
        let form = read_form(&mut section)?;
        section.zero()?;
        section.zero()?;
        Ok(UnsupportedKernel { type_id, form, type_name: section.text()?, reason: section.text()? })
    };
    let kernels = (0..n_kernels).map(|_| kernel()).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(kernels)
}

fn read_form(section: &mut Reader<'_>) -> Result<Form, ImageError> {
    let offset = section.offset;
    let (idx, expected, found) = match section.array()? {
        [FORM_SINGLE, 0] => return Ok(Form::Single),
        [FORM_RANGE, dimensions] => return Ok(Form::Range(dimensions)),
        [FORM_GROUP, dimensions] => return Ok(Form::Group(dimensions)),
        [FORM_SINGLE, dimensions] => (1, 0, dimensions),
        [form, _] => (0, FORM_GROUP, form),
    };
    let (expected, found) = (u64::from(expected), u64::from(found));
    Err(ImageError::Number { part: "kernel form", offset: offset + idx, expected, found })
}

fn read_location(section: &mut Reader<'_>) -> Result<SourceLocation, ImageError> {
    let line = section.u32()?;
    let column = section.u32()?;
    Ok(SourceLocation { file: section.text()?, line, column })
}

#[cfg(test)]
mod tests;
