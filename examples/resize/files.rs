//! Which file becomes which, and pictures in files.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor, Write};
use std::path::{Path, PathBuf};

use image::codecs::bmp::BmpEncoder;
use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::pnm::PnmEncoder;
use image::{DynamicImage, ImageDecoder, ImageEncoder, ImageError, ImageFormat, ImageReader, Limits, RgbaImage};

use crate::args::{Options, check_size};
use crate::failure::{Failure, io_reason};
use crate::jpeg;

/// What is read and written, by the extensions of names. The first one of a format is for new names.
const FORMATS: [(&str, ImageFormat); 9] = [
    ("png", ImageFormat::Png),
    ("jpg", ImageFormat::Jpeg),
    ("jpeg", ImageFormat::Jpeg),
    ("bmp", ImageFormat::Bmp),
    ("pnm", ImageFormat::Pnm),
    ("pam", ImageFormat::Pnm),
    ("pbm", ImageFormat::Pnm),
    ("pgm", ImageFormat::Pnm),
    ("ppm", ImageFormat::Pnm),
];

pub(crate) fn format_of_extension(extension: &OsStr) -> Option<ImageFormat> {
    let extension = extension.to_str()?.to_ascii_lowercase();
    FORMATS.iter().find(|(name, _)| *name == extension).map(|&(_, format)| format)
}

fn format_of_name(path: &Path) -> Option<ImageFormat> {
    format_of_extension(path.extension()?)
}

/// One file to read, and one to write.
pub(crate) struct Job {
    pub(crate) input: PathBuf,
    pub(crate) output: PathBuf,
    format: ImageFormat,
}

/// All that is to be done. Nothing is written if one of the outputs cannot be right.
pub(crate) fn jobs(options: &Options) -> Result<Vec<Job>, Failure> {
    let mut outputs = HashSet::new();
    let mut jobs = Vec::with_capacity(options.inputs.len());
    for input in &options.inputs {
        let output = output_of(input, options)?;
        let refuse = |reason: &str| Err(Failure::with_path("cannot write", &output, reason));
        let Some(format) = format_of_name(&output) else {
            return refuse("the name ends with none of .png, .jpg, .bmp and .pnm");
        };
        if !outputs.insert(output.clone()) {
            return refuse("two inputs have this name");
        }
        let is_input = |input: &PathBuf| {
            input.canonicalize().is_ok_and(|input| output.canonicalize().is_ok_and(|output| input == output))
        };
        if options.inputs.iter().any(is_input) {
            return refuse("it is one of the inputs");
        }
        if output.is_dir() {
            return refuse("it is a folder");
        }
        if output.exists() && !options.force {
            return refuse("it exists, and --force is not given");
        }
        jobs.push(Job { input: input.clone(), output, format });
    }
    Ok(jobs)
}

fn output_of(input: &Path, options: &Options) -> Result<PathBuf, Failure> {
    if !options.is_folder() {
        return Ok(options.output.clone());
    }
    let name = input.file_name().ok_or_else(|| Failure::with_path("cannot read", input, "it has no file's name"))?;
    let mut output = options.output.join(name);
    // A name that says the format already stays as it is.
    if let Some(format) = options.format
        && format_of_name(&output) != Some(format)
    {
        let extension = FORMATS.iter().find(|(_, known)| *known == format).map_or("png", |(extension, _)| extension);
        output.set_extension(extension);
    }
    Ok(output)
}

/// Pixels, and what a file is to have of the one that was read.
pub(crate) struct Picture {
    pub(crate) pixels: RgbaImage,
    pub(crate) look: Look,
}

pub(crate) struct Look {
    is_grey: bool,
    has_opacity: bool,
    /// The colour profile.
    profile: Option<Vec<u8>>,
}

pub(crate) fn load(path: &Path) -> Result<Picture, Failure> {
    decode(path).map_err(|reason| Failure::with_path("cannot read", path, &reason))
}

fn decode(path: &Path) -> Result<Picture, String> {
    if path.is_dir() {
        return Err("it is a folder".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| io_reason(&error))?;
    if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let is_known = |format: &ImageFormat| FORMATS.iter().any(|(_, known)| known == format);
    // By the content: names can be wrong.
    let Some(format) = image::guess_format(&bytes).ok().filter(is_known) else {
        return Err("it is no PNG, JPEG, BMP or PNM picture".to_owned());
    };
    if format == ImageFormat::Jpeg && !jpeg::is_whole(&bytes) {
        return Err("the file ends too early".to_owned());
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(4 << 30);
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(|error| reason(&error))?;
    let (width, height) = decoder.dimensions();
    check_size([height as usize, width as usize])?;
    let orientation = decoder.orientation().map_err(|error| reason(&error))?;
    let profile = decoder.icc_profile().map_err(|error| reason(&error))?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| reason(&error))?;
    picture.apply_orientation(orientation);
    let colour = picture.color();
    let is_grey = !colour.has_color();
    // Other profiles were of other colours in the file, such as those of print.
    let space: &[u8] = if is_grey { b"GRAY" } else { b"RGB " };
    let profile = profile.filter(|profile| profile.get(16..20) == Some(space));
    let look = Look { is_grey, has_opacity: colour.has_alpha(), profile };
    Ok(Picture { pixels: picture.into_rgba8(), look })
}

/// Writes a file beside the output first, so that a failure leaves none that is broken.
pub(crate) fn save(picture: Picture, job: &Job, quality: u8) -> Result<(), Failure> {
    let path = &job.output;
    let mut name = OsString::from(path.file_name().unwrap_or_default());
    name.push(".part");
    let part = path.with_file_name(name);
    let result = encode(picture, job.format, quality, &part)
        .and_then(|()| fs::rename(&part, path).map_err(|error| io_reason(&error)));
    result.map_err(|reason| {
        // What was written of it is of no use. The first reason is the one to tell.
        let _ = fs::remove_file(&part);
        Failure::with_path("cannot write", path, &reason)
    })
}

fn encode(picture: Picture, format: ImageFormat, quality: u8, path: &Path) -> Result<(), String> {
    let Picture { mut pixels, look } = picture;
    let keeps_opacity = look.has_opacity && matches!(format, ImageFormat::Png | ImageFormat::Pnm);
    if look.has_opacity && !keeps_opacity {
        on_white(&mut pixels);
    }
    let pixels = DynamicImage::ImageRgba8(pixels);
    let picture = match (look.is_grey, keeps_opacity) {
        (true, false) => DynamicImage::ImageLuma8(pixels.into_luma8()),
        (true, true) => DynamicImage::ImageLumaA8(pixels.into_luma_alpha8()),
        (false, false) => DynamicImage::ImageRgb8(pixels.into_rgb8()),
        (false, true) => pixels,
    };
    let mut file = BufWriter::new(File::create(path).map_err(|error| io_reason(&error))?);
    match format {
        ImageFormat::Jpeg => with_profile(JpegEncoder::new_with_quality(&mut file, quality), &picture, look.profile),
        ImageFormat::Bmp => write_by(BmpEncoder::new(&mut file), &picture),
        ImageFormat::Pnm => write_by(PnmEncoder::new(&mut file), &picture),
        _ => with_profile(PngEncoder::new(&mut file), &picture, look.profile),
    }?;
    file.flush().map_err(|error| io_reason(&error))
}

fn with_profile(
    mut encoder: impl ImageEncoder,
    picture: &DynamicImage,
    profile: Option<Vec<u8>>,
) -> Result<(), String> {
    if let Some(profile) = profile {
        encoder.set_icc_profile(profile).map_err(|error| error.to_string())?;
    }
    write_by(encoder, picture)
}

fn write_by(encoder: impl ImageEncoder, picture: &DynamicImage) -> Result<(), String> {
    picture.write_with_encoder(encoder).map_err(|error| reason(&error))
}

/// Without opacity, what is transparent shows a white page behind it.
fn on_white(pixels: &mut RgbaImage) {
    for pixel in pixels.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let over =
            |channel: u8| ((u32::from(channel) * u32::from(alpha) + 255 * (255 - u32::from(alpha)) + 127) / 255) as u8;
        pixel.0 = [over(red), over(green), over(blue), 255];
    }
}

fn reason(error: &ImageError) -> String {
    match error {
        ImageError::IoError(error) => io_reason(error),
        ImageError::Decoding(error) => {
            let mut cause = std::error::Error::source(error);
            while let Some(inner) = cause {
                if let Some(error) = inner.downcast_ref::<io::Error>()
                    && error.kind() == io::ErrorKind::UnexpectedEof
                {
                    return io_reason(error);
                }
                cause = inner.source();
            }
            error.to_string()
        }
        other => other.to_string(),
    }
}
