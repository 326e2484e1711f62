//! Pictures in memory and in files.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, ImageReader, Limits};

use crate::failure::{Failure, io_reason};
use crate::progress;
use crate::steps::{LEVELS, Rgb};

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
            return save(path, self.width, self.height, &self.colours, ExtendedColorType::Rgb8);
        };
        let pixels = self.rows(0..self.height).iter().zip(opacity);
        let samples: Vec<u8> = pixels.flat_map(|(&[red, green, blue], &alpha)| [red, green, blue, alpha]).collect();
        save(path, self.width, self.height, &samples, ExtendedColorType::Rgba8)
    }
}

/// Writes a grey picture.
pub(crate) fn save_grey(path: &Path, width: usize, height: usize, levels: &[u8]) -> Result<(), Failure> {
    save(path, width, height, levels, ExtendedColorType::L8)
}

fn save(path: &Path, width: usize, height: usize, samples: &[u8], colour: ExtendedColorType) -> Result<(), Failure> {
    let fail = |reason: &str| Failure::with_path("cannot write", path, reason);
    let mut file = BufWriter::new(File::create(path).map_err(|error| fail(&io_reason(&error)))?);
    let encoder = PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive);
    encoder.write_image(samples, width as u32, height as u32, colour).map_err(|error| fail(&image_reason(&error)))?;
    file.flush().map_err(|error| fail(&io_reason(&error)))
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
    let mut reader = ImageReader::new(BufReader::new(file)).with_guessed_format().map_err(|error| io_reason(&error))?;
    if reader.format().is_none() {
        return Err("it is neither a PNG nor a JPEG picture".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(4 << 30);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| image_reason(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width as usize, height as usize)?;
    // What cannot be told counts as upright.
    let orientation = decoder.orientation().ok();
    let pixels = width as usize * height as usize;
    let image = progress::spin("reading", pixels, || DynamicImage::from_decoder(decoder));
    let mut image = image.map_err(|error| image_reason(&error))?;
    if let Some(orientation) = orientation {
        image.apply_orientation(orientation);
    }
    Ok(from_image(image))
}

fn from_image(image: DynamicImage) -> Picture {
    let colour = image.color();
    let channels = match colour.channel_count() {
        1 => "grey",
        2 => "grey with opacity",
        3 => "rgb",
        _ => "rgb with opacity",
    };
    let bits = 8 * colour.bytes_per_pixel() / colour.channel_count();
    let reduced = if bits > 8 { ", taken as 8" } else { "" };
    let format = format!("{channels}, {bits} bits{reduced}");
    let (width, height) = (image.width() as usize, image.height() as usize);
    if !colour.has_alpha() {
        return Picture { width, height, colours: image.into_rgb8().into_raw(), opacity: None, format };
    }
    let mut samples = image.into_rgba8().into_raw();
    let opacity = samples.iter().skip(3).step_by(4).copied().collect();
    // In place, since a large picture should be in memory once.
    for i in 0..width * height {
        samples.copy_within(4 * i..4 * i + 3, 3 * i);
    }
    samples.truncate(3 * width * height);
    samples.shrink_to_fit();
    Picture { width, height, colours: samples, opacity: Some(opacity), format }
}

fn image_reason(error: &ImageError) -> String {
    match error {
        ImageError::IoError(error) => io_reason(error),
        other => other.to_string(),
    }
}
