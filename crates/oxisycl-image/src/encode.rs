//! Writes a device image; see `format` for the bytes.

use crate::format::{
    ALIGN_CENTER, ALIGN_LEFT, ALIGN_NONE, ALIGN_RIGHT, BUNDLE_ENTRY_SIZE, BUNDLE_MAGIC, CHECKSUM_OFFSET,
    COUNT_ARGUMENT, COUNT_IS, COUNT_NONE, FLAG_ALTERNATE, FLAG_SIGN_PLUS, FLAG_ZERO_PAD, FORM_GROUP, FORM_RANGE,
    FORM_SINGLE, HEADER_SIZE, MAGIC, PIECE_ARGUMENT, PIECE_LITERAL, SECTION_ALIGN, Section, TABLE_ENTRY_SIZE, VERSION,
    checksum,
};
use crate::{
    ArgumentFormat, DeviceImage, Form, FormatAlignment, FormatCount, FormatTrait, GroupNeeds, ImageError, KernelEntry,
    MessagePiece, PanicSite, SourceLocation, SpecializedLoad, UnsupportedKernel,
};

/// The bytes of an image. Equal images give equal bytes, on every machine.
///
/// # Errors
/// If the image breaks a rule of [`DeviceImage::verify`], or a count or a text's length does not fit in 32 bits.
pub fn encode(image: &DeviceImage) -> Result<Vec<u8>, ImageError> {
    image.verify()?;
    let sections = [
        (Section::Target, image.target.to_string().into_bytes()),
        (Section::BuildOptions, image.build_options.clone().into_bytes()),
        (Section::Kernels, kernels(&image.kernels)?),
        (Section::Unsupported, unsupported(&image.unsupported)?),
        (Section::Sites, sites(&image.sites)?),
    ];
    // The code is by far the largest section and is copied only into its final place.
    let contents = sections.iter().map(|(section, bytes)| (*section, bytes.as_slice()));
    Ok(assemble(contents.chain([(Section::Code, image.code.as_slice())])))
}

/// The bytes of the images of one link unit. Equal images in the same order give equal bytes.
///
/// # Errors
/// As for [`encode`].
pub fn encode_bundle(images: &[DeviceImage]) -> Result<Vec<u8>, ImageError> {
    let mut bundle = Writer::default();
    bundle.bytes(&BUNDLE_MAGIC);
    bundle.u32(VERSION);
    bundle.length("images", images.len())?;
    let length_offset = bundle.0.len();
    bundle.u64(0);
    for image in images {
        let bytes = encode(image)?;
        bundle.0.reserve(BUNDLE_ENTRY_SIZE + bytes.len() + SECTION_ALIGN);
        bundle.u64(bytes.len() as u64);
        bundle.bytes(&bytes);
        bundle.0.resize(bundle.0.len().next_multiple_of(SECTION_ALIGN), 0);
    }
    let length = bundle.0.len() as u64;
    bundle.0[length_offset..length_offset + 8].copy_from_slice(&length.to_le_bytes());
    Ok(bundle.0)
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

fn kernels(kernels: &[KernelEntry]) -> Result<Vec<u8>, ImageError> {
    let mut section = Writer::default();
    section.length("kernels", kernels.len())?;
    for kernel in kernels {
        section.bytes(&kernel.type_id);
        section.bytes(&form(kernel.form));
        section.bytes(&[u8::from(kernel.may_panic), u8::from(kernel.may_print), u8::from(kernel.is_paired)]);
        section.u64(kernel.parameters.size as u64);
        section.u64(kernel.parameters.align as u64);
        section.u32(u32::from(kernel.has_unbounded_stack));
        let GroupNeeds { local, sub_group, static_local_bytes, bytes_of_element, uses_local_memory, has_barriers } =
            kernel.groups;
        for number in [local[0], local[1], local[2], sub_group, static_local_bytes, bytes_of_element] {
            section.u32(number);
        }
        section.bytes(&[u8::from(uses_local_memory), u8::from(has_barriers), 0, 0]);
        section.location(&kernel.location)?;
        section.u32(u32::from(kernel.launch.is_some()));
        if let Some(launch) = &kernel.launch {
            section.location(launch)?;
        }
        section.text("symbol", &kernel.symbol)?;
        section.text("type name", &kernel.type_name)?;
        section.texts("requirements", &kernel.requirements)?;
        section.texts("stated aspects", &kernel.aspects)?;
        section.texts("unstated needs", &kernel.unstated)?;
        section.texts("library functions", &kernel.library)?;
        section.length("arguments", kernel.arguments.len())?;
        for argument in &kernel.arguments {
            section.u64(argument.offset as u64);
            section.u64(argument.size as u64);
            section.text("path of an argument", &argument.path)?;
            section.text("type name of an argument", &argument.type_name)?;
        }
        section.length("specialized loads", kernel.specialized.len())?;
        for SpecializedLoad { place, offset, size } in &kernel.specialized {
            [place, offset, size].into_iter().for_each(|number| section.u64(*number as u64));
        }
    }
    Ok(section.0)
}

fn unsupported(kernels: &[UnsupportedKernel]) -> Result<Vec<u8>, ImageError> {
    let mut section = Writer::default();
    section.length("unsupported kernels", kernels.len())?;
    for kernel in kernels {
        section.bytes(&kernel.type_id);
        section.bytes(&form(kernel.form));
        section.bytes(&[0; 2]);
        section.text("type name", &kernel.type_name)?;
        section.text("reason", &kernel.reason)?;
    }
    Ok(section.0)
}

fn sites(sites: &[PanicSite]) -> Result<Vec<u8>, ImageError> {
    let mut section = Writer::default();
    section.length("panic sites", sites.len())?;
    for site in sites {
        section.u32(u32::from(site.location.is_some()));
        if let Some(location) = &site.location {
            section.location(location)?;
        }
        section.length("pieces of a message", site.message.len())?;
        for piece in &site.message {
            match piece {
                MessagePiece::Literal(literal) => {
                    section.u32(PIECE_LITERAL);
                    section.text("piece of a message", literal)?;
                }
                MessagePiece::Argument { index, format } => {
                    section.u32(PIECE_ARGUMENT);
                    section.argument(*index, format);
                }
            }
        }
    }
    Ok(section.0)
}

fn form(form: Form) -> [u8; 2] {
    match form {
        Form::Single => [FORM_SINGLE, 0],
        Form::Range(dimensions) => [FORM_RANGE, dimensions],
        Form::Group(dimensions) => [FORM_GROUP, dimensions],
    }
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

    fn texts(&mut self, part: &'static str, texts: &[String]) -> Result<(), ImageError> {
        self.length(part, texts.len())?;
        texts.iter().try_for_each(|text| self.text(part, text))
    }

    fn location(&mut self, location: &SourceLocation) -> Result<(), ImageError> {
        self.u32(location.line);
        self.u32(location.column);
        self.text("file name", &location.file)
    }

    fn argument(&mut self, index: u8, format: &ArgumentFormat) {
        let style = FormatTrait::ALL.iter().position(|style| *style == format.style).unwrap_or_default();
        let flags = u8::from(format.alternate) * FLAG_ALTERNATE
            + u8::from(format.sign_plus) * FLAG_SIGN_PLUS
            + u8::from(format.zero_pad) * FLAG_ZERO_PAD;
        let alignment = match format.alignment {
            None => ALIGN_NONE,
            Some(FormatAlignment::Left) => ALIGN_LEFT,
            Some(FormatAlignment::Right) => ALIGN_RIGHT,
            Some(FormatAlignment::Center) => ALIGN_CENTER,
        };
        self.bytes(&[index, style as u8, flags, alignment]);
        self.u32(format.fill.into());
        for count in [format.width, format.precision] {
            let (kind, value) = match count {
                None => (COUNT_NONE, 0),
                Some(FormatCount::Is(count)) => (COUNT_IS, count),
                Some(FormatCount::Argument(index)) => (COUNT_ARGUMENT, index.into()),
            };
            self.bytes(&kind.to_le_bytes());
            self.bytes(&value.to_le_bytes());
        }
    }
}
