//! Pictures in memory and in files.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Cursor, Read, Write};
use std::ops::Range;
use std::path::Path;

use png::{BitDepth, ColorType, Transformations};
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::failure::{Failure, io_reason, one_line};
use crate::steps::{LEVELS, Rgb};
use crate::{jpeg, progress};

/// The most pixels of a picture: with all that is made of it, less than 4 GiB.
const MAX_PIXELS: usize = 1 << 28;
const MAX_EXTENT: usize = 1 << 16;

/// Colours with eight bits per channel, and their opacity if it is not one everywhere.
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Red, green and blue of each pixel, row by row.
    colours: Vec<u8>,
    opacity: Option<Vec<u8>>,
    /// What the file had, for the report.
    format: String,
}

/// Refuses what would need too much memory.
pub(crate) fn check_size(width: usize, height: usize) -> Result<(), String> {
    if width == 0 || height == 0 {
        return Err(format!("a picture of {width} x {height} pixels has none"));
    }
    if width > MAX_EXTENT || height > MAX_EXTENT || width * height > MAX_PIXELS {
        return Err(format!(
            "{width} x {height} pixels are too many, the limit is {MAX_EXTENT} in a row or column and {MAX_PIXELS} in all"
        ));
    }
    Ok(())
}

impl Picture {
    pub(crate) fn new(width: usize, height: usize, colours: Vec<u8>) -> Self {
        Self { width, height, colours, opacity: None, format: "rgb, 8 bits".to_owned() }
    }

    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        decode(path).map_err(|reason| Failure::with_path("cannot read", path, &reason))
    }

    /// A picture without rows, of the same width and with the same opacity.
    pub(crate) fn like(&self) -> Self {
        Self {
            width: self.width,
            height: 0,
            colours: Vec::with_capacity(self.colours.len()),
            opacity: self.opacity.clone(),
            format: self.format.clone(),
        }
    }

    /// Adds whole rows at the bottom.
    pub(crate) fn push_rows(&mut self, pixels: &[Rgb]) {
        self.colours.extend_from_slice(pixels.as_flattened());
        self.height += pixels.len() / self.width;
    }

    pub(crate) fn n_pixels(&self) -> usize {
        self.width * self.height
    }

    pub(crate) fn rows(&self, rows: Range<usize>) -> &[Rgb] {
        let (pixels, _) = self.colours.as_chunks();
        &pixels[rows.start * self.width..rows.end * self.width]
    }

    pub(crate) fn describe(&self) -> String {
        format!("{} x {} pixels, {}", self.width, self.height, self.format)
    }

    /// How many pixels have each luminance.
    pub(crate) fn histogram(&self) -> [u64; LEVELS] {
        let mut counts = [0; LEVELS];
        for pixel in self.rows(0..self.height) {
            counts[usize::from(crate::reference::luminance(*pixel))] += 1;
        }
        counts
    }

    pub(crate) fn save(&self, path: &Path) -> Result<(), Failure> {
        let Some(opacity) = &self.opacity else {
            return save(path, self.width, self.height, &self.colours, ColorType::Rgb);
        };
        let pixels = self.rows(0..self.height).iter().zip(opacity);
        let samples: Vec<u8> = pixels.flat_map(|(&[red, green, blue], &alpha)| [red, green, blue, alpha]).collect();
        save(path, self.width, self.height, &samples, ColorType::Rgba)
    }
}

/// Writes a grey picture.
pub(crate) fn save_grey(path: &Path, width: usize, height: usize, levels: &[u8]) -> Result<(), Failure> {
    save(path, width, height, levels, ColorType::Grayscale)
}

fn save(path: &Path, width: usize, height: usize, samples: &[u8], colour: ColorType) -> Result<(), Failure> {
    let fail = |reason: &str| Failure::with_path("cannot write", path, reason);
    let mut file = BufWriter::new(File::create(path).map_err(|error| fail(&io_reason(&error)))?);
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(colour);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    encoder.set_filter(png::Filter::Adaptive);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(samples)?;
        writer.finish()
    });
    written.map_err(|error| match error {
        png::EncodingError::IoError(error) => fail(&io_reason(&error)),
        other => fail(&other.to_string()),
    })?;
    file.flush().map_err(|error| fail(&io_reason(&error)))
}

/// What a file holds, before it is turned upright.
struct Decoded {
    width: usize,
    height: usize,
    /// One for grey, three for colours, and one more for opacity.
    n_channels: usize,
    bits: u32,
    /// Eight bits for each channel of each pixel.
    samples: Vec<u8>,
    /// Where the first row and column are, from 1 to 8 as Exif counts.
    orientation: u32,
}

fn decode(path: &Path) -> Result<Picture, String> {
    let metadata = fs::metadata(path).map_err(|error| io_reason(&error))?;
    if metadata.is_dir() {
        return Err("it is a folder".to_owned());
    }
    if metadata.is_file() && metadata.len() == 0 {
        return Err("the file is empty".to_owned());
    }
    let file = File::open(path).map_err(|error| io_reason(&error))?;
    let mut reader = BufReader::new(file);
    let start = reader.fill_buf().map_err(|error| io_reason(&error))?;
    let decoded = if start.starts_with(b"\x89PNG\r\n\x1a\n") {
        decode_png(reader)?
    } else if start.starts_with(&[0xFF, 0xD8, 0xFF]) {
        decode_jpeg(reader)?
    } else {
        return Err("it is neither a PNG nor a JPEG picture".to_owned());
    };
    Ok(decoded.upright().into_picture())
}

fn decode_png(reader: BufReader<File>) -> Result<Decoded, String> {
    let mut decoder = png::Decoder::new_with_limits(reader, png::Limits { bytes: 4 << 30 });
    decoder.set_transformations(Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| png_reason(&error))?;
    let (width, height) = reader.info().size();
    let (width, height) = (width as usize, height as usize);
    check_size(width, height)?;
    let orientation = orientation(reader.info().exif_metadata.as_deref());
    let (colour, depth) = reader.output_color_type();
    let size = reader.output_buffer_size().ok_or("its pixels need more memory than there are addresses")?;
    let mut samples = vec![0; size];
    progress::spin("reading", width * height, || reader.next_frame(&mut samples))
        .map_err(|error| png_reason(&error))?;
    let is_deep = depth == BitDepth::Sixteen;
    if is_deep {
        let (deep, _) = samples.as_chunks();
        // Rounded: 257 is what one step of eight bits is in sixteen.
        samples = deep.iter().map(|&sample| ((u32::from(u16::from_be_bytes(sample)) + 128) / 257) as u8).collect();
    }
    let bits = if is_deep { 16 } else { 8 };
    Ok(Decoded { width, height, n_channels: colour.samples(), bits, samples, orientation })
}

fn decode_jpeg(mut reader: BufReader<File>) -> Result<Decoded, String> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(|error| io_reason(&error))?;
    if !jpeg::is_whole(&bytes) {
        return Err("the file ends too early".to_owned());
    }
    let options = DecoderOptions::default().set_strict_mode(false).set_max_width(usize::MAX).set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(bytes), options);
    let reason = |error: zune_jpeg::errors::DecodeErrors| one_line(&error.to_string());
    decoder.decode_headers().map_err(reason)?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    check_size(width, height)?;
    let is_grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let orientation = orientation(decoder.exif().map(Vec::as_slice));
    let colours = if is_grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(colours));
    let samples = progress::spin("reading", width * height, || decoder.decode()).map_err(reason)?;
    let n_channels = if is_grey { 1 } else { 3 };
    if samples.len() < width * height * n_channels {
        return Err("the file ends too early".to_owned());
    }
    Ok(Decoded { width, height, n_channels, bits: 8, samples, orientation })
}

/// What Exif says of the place of the first pixel; what cannot be told counts as upright.
fn orientation(exif: Option<&[u8]>) -> u32 {
    let found = exif.and_then(|bytes| {
        let fields = exif::Reader::new().read_raw(bytes.to_vec()).ok()?;
        fields.get_field(exif::Tag::Orientation, exif::In::PRIMARY)?.value.get_uint(0)
    });
    found.filter(|orientation| (1..=8).contains(orientation)).unwrap_or(1)
}

impl Decoded {
    fn upright(self) -> Self {
        if self.orientation == 1 {
            return self;
        }
        let (width, height) = (self.width, self.height);
        let is_turned = self.orientation >= 5;
        let (new_width, new_height) = if is_turned { (height, width) } else { (width, height) };
        let mut samples = Vec::with_capacity(self.samples.len());
        for y in 0..new_height {
            for x in 0..new_width {
                let (from_x, from_y) = match self.orientation {
                    2 => (width - 1 - x, y),
                    3 => (width - 1 - x, height - 1 - y),
                    4 => (x, height - 1 - y),
                    5 => (y, x),
                    6 => (y, height - 1 - x),
                    7 => (width - 1 - y, height - 1 - x),
                    _ => (width - 1 - y, x),
                };
                let first = (from_y * width + from_x) * self.n_channels;
                samples.extend_from_slice(&self.samples[first..first + self.n_channels]);
            }
        }
        Self { width: new_width, height: new_height, samples, orientation: 1, ..self }
    }

    fn into_picture(self) -> Picture {
        let Self { width, height, n_channels, bits, samples, .. } = self;
        let channels = match n_channels {
            1 => "grey",
            2 => "grey with opacity",
            3 => "rgb",
            _ => "rgb with opacity",
        };
        let reduced = if bits > 8 { ", taken as 8" } else { "" };
        let format = format!("{channels}, {bits} bits{reduced}");
        let has_opacity = n_channels % 2 == 0;
        let opacity = has_opacity.then(|| samples.iter().skip(n_channels - 1).step_by(n_channels).copied().collect());
        let colours = match n_channels {
            1 | 2 => samples.iter().step_by(n_channels).flat_map(|&level| [level; 3]).collect(),
            3 => samples,
            _ => samples.chunks_exact(n_channels).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect(),
        };
        Picture { width, height, colours, opacity, format }
    }
}

fn png_reason(error: &png::DecodingError) -> String {
    match error {
        png::DecodingError::IoError(error) => io_reason(error),
        other => one_line(&other.to_string()),
    }
}
