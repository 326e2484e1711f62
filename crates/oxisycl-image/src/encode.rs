//! Writes a device image; see `format` for the bytes.

use crate::format::{
    CHECKSUM_OFFSET, FORM_RANGE, FORM_SINGLE, HEADER_SIZE, MAGIC, SECTION_ALIGN, Section, TABLE_ENTRY_SIZE, VERSION,
    checksum,
};
use crate::{DeviceImage, Form, ImageError, KernelEntry};

/// The bytes of an image. Equal images give equal bytes, on every machine.
///
/// # Errors
/// If the image breaks a rule of [`DeviceImage::verify`], or a count or a text's length does not fit in 32 bits.
pub fn encode(image: &DeviceImage) -> Result<Vec<u8>, ImageError> {
    image.verify()?;
    let sections = [
        (Section::Target, image.target.to_string().into_bytes()),
        (Section::BuildOptions, image.build_options.clone().into_bytes()),
        (Section::Requirements, requirements(&image.requirements)?),
        (Section::Kernels, kernels(&image.kernels)?),
    ];
    // The code is by far the largest section and is copied only into its final place.
    let contents = sections.iter().map(|(section, bytes)| (*section, bytes.as_slice()));
    Ok(assemble(contents.chain([(Section::Code, image.code.as_slice())])))
}

fn assemble<'a>(sections: impl Iterator<Item = (Section, &'a [u8])> + Clone) -> Vec<u8> {
    let n_sections = Section::ALL.len();
    let mut image = Writer::default();
    image.bytes(&MAGIC);
    image.u32(VERSION);
    image.u32(n_sections as u32);
    let mut end = HEADER_SIZE + n_sections * TABLE_ENTRY_SIZE;
    let mut table = Writer::default();
    for (section, bytes) in sections.clone() {
        let offset = end.next_multiple_of(SECTION_ALIGN);
        table.u32(section.kind());
        table.u32(0);
        table.u64(offset as u64);
        table.u64(bytes.len() as u64);
        end = offset + bytes.len();
    }
    image.0.reserve_exact(end - image.0.len());
    image.u64(end as u64);
    image.u64(0);
    image.bytes(&table.0);
    for (_, bytes) in sections {
        image.0.resize(image.0.len().next_multiple_of(SECTION_ALIGN), 0);
        image.bytes(bytes);
    }
    let sum = checksum(&image.0);
    image.0[CHECKSUM_OFFSET..HEADER_SIZE].copy_from_slice(&sum.to_le_bytes());
    image.0
}

fn requirements(requirements: &[String]) -> Result<Vec<u8>, ImageError> {
    let mut section = Writer::default();
    section.length("requirements", requirements.len())?;
    for requirement in requirements {
        section.text("requirement", requirement)?;
    }
    Ok(section.0)
}

fn kernels(kernels: &[KernelEntry]) -> Result<Vec<u8>, ImageError> {
    let mut section = Writer::default();
    section.length("kernels", kernels.len())?;
    for kernel in kernels {
        section.bytes(&kernel.type_id);
        section.bytes(&match kernel.form {
            Form::Single => [FORM_SINGLE, 0],
            Form::Range(dimensions) => [FORM_RANGE, dimensions],
        });
        section.bytes(&[0; 2]);
        section.u64(kernel.parameters.size as u64);
        section.u64(kernel.parameters.align as u64);
        section.u32(kernel.location.line);
        section.u32(kernel.location.column);
        section.text("file name", &kernel.location.file)?;
        section.text("symbol", &kernel.symbol)?;
        section.text("type name", &kernel.type_name)?;
    }
    Ok(section.0)
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u32(&mut self, number: u32) {
        self.bytes(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.bytes(&number.to_le_bytes());
    }

    fn length(&mut self, part: &'static str, length: usize) -> Result<(), ImageError> {
        let too_large = |_| ImageError::TooLarge { part, expected: u32::MAX as usize, found: length };
        self.u32(u32::try_from(length).map_err(too_large)?);
        Ok(())
    }

    fn text(&mut self, part: &'static str, text: &str) -> Result<(), ImageError> {
        self.length(part, text.len())?;
        self.bytes(text.as_bytes());
        Ok(())
    }
}
