//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::str::FromStr;

use image::ImageFormat;

use crate::failure::Failure;
use crate::files;
use crate::filter::Filter;

pub(crate) const HELP: &str = "\
Makes pictures smaller or larger.

usage: resize [options] INPUT... OUTPUT

  INPUT             a picture: PNG, JPEG, BMP or PNM
  OUTPUT            a file, whose name says the format; or a folder, if there are
                    several inputs, if it exists, or if it ends with a slash

  --width W         pixels in a row
  --height H        pixels in a column; one of both alone keeps the shape
  --scale S         a factor for both instead, such as 0.5 or 50%
  --filter FILTER   nearest, area, bilinear, bicubic or lanczos (lanczos)
  --quality N       of JPEG files, from 1 to 100 (90)
  --format FORMAT   of files in a folder: png, jpg, bmp or pnm (as the input)
  --force           overwrite files
  -h, --help        print this

Colours are mixed by their light, and transparent ones do not count. Pictures
are turned upright, and keep their colour profile. They get 8 bits a channel.
OXISYCL_DEVICE_SELECTOR chooses the device.
";

/// The most pixels in a row or column. JPEG files cannot have more.
const MAX_EXTENT: usize = 65_535;
const MAX_PIXELS: usize = 1 << 28;

pub(crate) enum Request {
    Help,
    Resize(Options),
}

pub(crate) struct Options {
    /// At least one.
    pub(crate) inputs: Vec<PathBuf>,
    pub(crate) output: PathBuf,
    pub(crate) size: Size,
    pub(crate) filter: Filter,
    pub(crate) quality: u8,
    /// Of files in a folder.
    pub(crate) format: Option<ImageFormat>,
    pub(crate) force: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Size {
    Scale(f64),
    Width(usize),
    Height(usize),
    /// Height and width.
    Both([usize; 2]),
}

impl Options {
    pub(crate) fn is_folder(&self) -> bool {
        let ends_with_slash = self.output.as_os_str().as_encoded_bytes().ends_with(b"/");
        self.inputs.len() > 1 || self.output.is_dir() || ends_with_slash
    }
}

/// An error for a picture that would need too much memory.
pub(crate) fn check_size([height, width]: [usize; 2]) -> Result<(), String> {
    if height > MAX_EXTENT || width > MAX_EXTENT || height * width > MAX_PIXELS {
        return Err(format!(
            "{width} x {height} pixels are too many, the limit is {MAX_EXTENT} in a row or column and {MAX_PIXELS} in all"
        ));
    }
    Ok(())
}

impl Size {
    /// The new height and width. At least one pixel is left.
    pub(crate) fn of(self, [height, width]: [usize; 2]) -> Result<[usize; 2], String> {
        let scaled = |n: usize, factor: f64| (n as f64 * factor).round().max(1.0) as usize;
        let size = match self {
            Self::Scale(factor) => [scaled(height, factor), scaled(width, factor)],
            Self::Width(new) => [scaled(height, new as f64 / width as f64), new],
            Self::Height(new) => [new, scaled(width, new as f64 / height as f64)],
            Self::Both(size) => size,
        };
        check_size(size)?;
        // Between both passes there are rows of the old height and the new width.
        check_size([height, size[1]])?;
        Ok(size)
    }
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request, Failure> {
    use lexopt::Arg::{Long, Short, Value};
    let mut parser = lexopt::Parser::from_args(arguments);
    let (mut width, mut height, mut scale) = (None, None, None);
    let (mut filter, mut quality, mut format, mut force) = (Filter::Lanczos, 90, None, false);
    let mut paths: Vec<PathBuf> = Vec::new();
    while let Some(argument) = parser.next().map_err(Failure::usage)? {
        match argument {
            Short('h') | Long("help") => return Ok(Request::Help),
            Long("width") => width = Some(extent("--width", &value(&mut parser)?)?),
            Long("height") => height = Some(extent("--height", &value(&mut parser)?)?),
            Long("scale") => scale = Some(factor(&value(&mut parser)?)?),
            Long("filter") => filter = Filter::parse(&value(&mut parser)?.to_string_lossy()).map_err(Failure::usage)?,
            Long("quality") => {
                let text = value(&mut parser)?;
                let number = number::<u8>(&text).filter(|n| (1..=100).contains(n));
                quality = number.ok_or_else(|| wrong("--quality", &text, "a number from 1 to 100"))?;
            }
            Long("format") => {
                let text = value(&mut parser)?;
                let known = files::format_of_extension(&text);
                format = Some(known.ok_or_else(|| wrong("--format", &text, "png, jpg, bmp or pnm"))?);
            }
            Long("force") => force = true,
            Value(path) => paths.push(path.into()),
            other => return Err(Failure::usage(other.unexpected())),
        }
    }
    let size = match (scale, width, height) {
        (Some(factor), None, None) => Size::Scale(factor),
        (None, Some(width), None) => Size::Width(width),
        (None, None, Some(height)) => Size::Height(height),
        (None, Some(width), Some(height)) => Size::Both([height, width]),
        (None, None, None) => return Err(Failure::usage("a size is missing: --width, --height or --scale")),
        (Some(_), ..) => return Err(Failure::usage("--scale stands alone, without --width and --height")),
    };
    let output = paths.pop().filter(|_| !paths.is_empty());
    let output = output.ok_or_else(|| Failure::usage("an input and an output are needed"))?;
    Ok(Request::Resize(Options { inputs: paths, output, size, filter, quality, format, force }))
}

fn value(parser: &mut lexopt::Parser) -> Result<OsString, Failure> {
    parser.value().map_err(Failure::usage)
}

fn number<N: FromStr>(text: &OsStr) -> Option<N> {
    text.to_str()?.parse().ok()
}

fn wrong(name: &str, text: &OsStr, expected: &str) -> Failure {
    Failure::usage(format!("{name} \"{}\": expected {expected}", text.display()))
}

fn extent(name: &str, text: &OsStr) -> Result<usize, Failure> {
    let extent = number(text).filter(|extent| (1..=MAX_EXTENT).contains(extent));
    extent.ok_or_else(|| wrong(name, text, &format!("a number of pixels from 1 to {MAX_EXTENT}")))
}

fn factor(text: &OsStr) -> Result<f64, Failure> {
    let (digits, unit) = match text.to_str().and_then(|text| text.strip_suffix('%')) {
        Some(digits) => (digits, 0.01),
        None => (text.to_str().unwrap_or_default(), 1.0),
    };
    let factor = digits.parse::<f64>().ok().map(|number| number * unit);
    let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| wrong("--scale", text, "a factor above zero, such as 0.5 or 50%"))
}
