//! The command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::failure::Failure;

pub(crate) const HELP: &str = "\
Blurs a picture, finds its edges, counts its histogram and maps its tones, on
several devices at once.

usage: tour [options] [PICTURE]

  PICTURE           a PNG or JPEG file; without one a picture is made up

  --device DEVICE   where to run; may be given several times. DEVICE is a
                    position in the printed list (0), a kind (cpu, gpu,
                    accelerator), a backend (host, simulated, cuda, opencl), or
                    a name as in OXISYCL_DEVICE_SELECTOR (host:0). Without it:
                    the default device, and all simulated ones if
                    OXISYCL_SIMULATED is set
  --out FOLDER      where to write the results (tour-out)
  --size WxH        the size of the picture that is made up (1600x1000)
  --no-check        do not compare the results with plain Rust
  -h, --help        print this

Try it with OXISYCL_SIMULATED=3 to see three devices with memory of their own.
";

/// What the user asks for.
pub(crate) enum Request {
    Help,
    Tour(Options),
}

pub(crate) struct Options {
    pub(crate) picture: Option<PathBuf>,
    pub(crate) devices: Vec<String>,
    pub(crate) out: PathBuf,
    pub(crate) size: [usize; 2],
    pub(crate) check: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { picture: None, devices: Vec::new(), out: "tour-out".into(), size: [1600, 1000], check: true }
    }
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Request, Failure> {
    let mut arguments = arguments;
    let mut options = Options::default();
    let mut only_paths = false;
    while let Some(argument) = arguments.next() {
        let text = argument.to_str().unwrap_or_default();
        if only_paths || !text.starts_with('-') {
            if options.picture.replace(argument.into()).is_some() {
                return Err(Failure::usage("only one picture can be given"));
            }
            continue;
        }
        let (name, inline) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        let mut value = |what| {
            inline.clone().or_else(|| arguments.next()).ok_or_else(|| Failure::usage(format!("{name} needs {what}")))
        };
        match name {
            "-h" | "--help" => return Ok(Request::Help),
            "--" => only_paths = true,
            "--device" => options.devices.push(value("a device")?.to_string_lossy().into_owned()),
            "--out" => options.out = value("a folder")?.into(),
            "--size" => options.size = size(&value("a size")?)?,
            "--no-check" => options.check = false,
            _ => return Err(Failure::usage(format!("there is no option \"{text}\""))),
        }
    }
    Ok(Request::Tour(options))
}

fn size(text: &OsStr) -> Result<[usize; 2], Failure> {
    let text = text.to_string_lossy();
    let parsed = text.split_once('x').and_then(|(width, height)| Some([width.parse().ok()?, height.parse().ok()?]));
    parsed.ok_or_else(|| Failure::usage(format!("--size \"{text}\" is not of the form 1600x1000")))
}
