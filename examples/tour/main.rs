//! A tour of OxiSYCL: a picture goes through blur, edge detection, histogram and tone mapping on all chosen devices at once.
//!
//! - `args`, `devices`: what the user wants, and where it runs;
//! - `picture`, `jpeg`, `scene`: pictures in files, and one that is made up;
//! - `steps`: the kernels, one command group each. This is the part to read first;
//! - `pipeline`: which rows go to which device, in what order, and what that took;
//! - `reference`: the same in plain Rust, and the comparison;
//! - `report`, `progress`, `plot`, `font`: what the user sees.
//!
//! There is no `unsafe` here. `cargo run --release --example tour -- --help` says how to use it.
#![forbid(unsafe_code)]

mod args;
mod devices;
mod failure;
mod font;
mod jpeg;
mod picture;
mod pipeline;
mod plot;
mod progress;
mod reference;
mod report;
mod scene;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use args::{Options, Request};
use failure::Failure;
use oxisycl::prelude::Device;
use picture::Picture;
use report::{Console, duration};

fn main() -> ExitCode {
    let mut console = Console::new();
    let result = match args::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => console.line(format_args!("{}", args::HELP.trim_end())),
        Ok(Request::Tour(options)) => tour(&options, &mut console),
        Err(failure) => Err(failure),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn tour(options: &Options, console: &mut Console) -> Result<(), Failure> {
    let all = Device::all()?;
    let chosen = devices::choose(&all, &options.devices)?;
    console.heading("devices")?;
    report::devices(console, &all, &chosen)?;

    let start = Instant::now();
    let picture = load(options)?;
    let loading = start.elapsed();
    let outputs = Outputs::new(&options.out, options.picture.as_deref())?;

    console.heading("picture")?;
    let origin = options.picture.as_ref().map_or("made up".to_owned(), |path| path.display().to_string());
    console.line(format_args!("  {origin}: {}", picture.describe()))?;

    let start = Instant::now();
    let outcome = pipeline::run(&picture, &chosen, options.check)?;
    let running = start.elapsed() - outcome.checking;
    report::bands(console, &chosen, &outcome)?;
    report::steps(console, &chosen, &outcome, picture.n_pixels())?;

    console.heading("check")?;
    report::check(console, &outcome)?;

    let start = Instant::now();
    let after = outcome.result.histogram();
    progress::spin("writing", picture.n_pixels(), || {
        outcome.result.save(&outputs.result)?;
        picture::save_grey(&outputs.edges, picture.width, picture.height, &outcome.edges)
    })?;
    plot::histogram(&outcome.histogram, &after, &outcome.curve).save(&outputs.plot)?;
    let writing = start.elapsed();

    console.heading("written")?;
    report::written(
        console,
        &[
            (&outputs.result, "the picture, tone-mapped"),
            (&outputs.edges, "its edges"),
            (&outputs.plot, "its histogram before and after, and the curve"),
        ],
    )?;
    let mut times = vec![
        (loading, if options.picture.is_some() { "loading" } else { "painting" }),
        (running, "on the devices"),
        (outcome.checking, "checking"),
        (writing, "writing"),
    ];
    times.retain(|(_, what)| options.check || *what != "checking");
    let times: Vec<String> = times.iter().map(|(time, what)| format!("{} {what}", duration(*time))).collect();
    console.line(format_args!("\n  {}", times.join(", ")))
}

fn load(options: &Options) -> Result<Picture, Failure> {
    match &options.picture {
        Some(path) => Picture::load(path),
        None => {
            let [width, height] = options.size;
            picture::check_size(width, height).map_err(Failure::usage)?;
            Ok(progress::spin("painting", width * height, || scene::paint(width, height)))
        }
    }
}

/// The files to write.
struct Outputs {
    result: PathBuf,
    edges: PathBuf,
    plot: PathBuf,
}

impl Outputs {
    /// Makes the folder before the long work begins, and protects the user's picture.
    fn new(folder: &Path, picture: Option<&Path>) -> Result<Self, Failure> {
        fs::create_dir_all(folder).map_err(|error| Failure::io("cannot create the folder", folder, &error))?;
        let outputs = Self {
            result: folder.join("result.png"),
            edges: folder.join("edges.png"),
            plot: folder.join("histogram.png"),
        };
        let original = picture.and_then(|path| path.canonicalize().ok());
        let clash = [&outputs.result, &outputs.edges, &outputs.plot]
            .into_iter()
            .find(|path| original.is_some() && path.canonicalize().ok() == original);
        match clash {
            Some(path) => Err(Failure::new(format!(
                "cannot write {:?}: it is the picture to be read, choose another folder with --out",
                path.display().to_string()
            ))),
            None => Ok(outputs),
        }
    }
}
