//! Makes pictures smaller or larger, on any device.
//!
//! - `args`: what the user wants;
//! - `files`: which file becomes which, and pictures in files;
//! - `filter`: how much of each pixel goes into another;
//! - `kernels`: the work on the device;
//! - `bar`: how far the work is.
//!
//! `cargo run --release --example resize --features image -- --help` says how to use it.
#![forbid(unsafe_code)]

mod args;
mod bar;
#[path = "../tour/failure.rs"]
mod failure;
mod files;
mod filter;
#[path = "../tour/jpeg.rs"]
mod jpeg;
mod kernels;

use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use args::{Options, Request};
use failure::Failure;
use files::{Job, Picture};
use indicatif::ProgressDrawTarget;
use oxisycl::prelude::*;

fn main() -> ExitCode {
    let result = match args::parse(std::env::args_os().skip(1)) {
        Ok(Request::Help) => print(args::HELP.trim_end()),
        Ok(Request::Resize(options)) => resize(&options),
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

fn print(text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{text}").map_err(|error| Failure::output(&error))
}

/// Resizes all files. One that fails keeps none of the others from being done.
fn resize(options: &Options) -> Result<(), Failure> {
    let jobs = files::jobs(options)?;
    if options.is_folder() {
        let folder = &options.output;
        fs::create_dir_all(folder).map_err(|error| Failure::io("cannot create the folder", folder, &error))?;
    }
    // Each failure is an error of a call, too.
    let queue = Queue::builder().handler(|_errors| {}).build()?;
    let bar = bar::bar(jobs.len(), ProgressDrawTarget::stderr());
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut n_failed = 0;
    let mut last = None;
    for job in &jobs {
        bar.set_message(job.input.display().to_string());
        let result = one(&queue, job, options);
        bar.inc(1);
        match result {
            Ok(line) => bar.suspend(|| print(&line))?,
            Err(failure) => {
                n_failed += 1;
                if jobs.len() > 1 {
                    bar.suspend(|| eprintln!("error: {failure}"));
                }
                last = Some(failure);
            }
        }
    }
    bar.finish_and_clear();
    match last {
        Some(failure) if jobs.len() == 1 => Err(failure),
        Some(_) => Err(Failure::new(format!("{n_failed} of {} pictures were not resized", jobs.len()))),
        None => Ok(()),
    }
}

/// Resizes one file, and tells what was done.
fn one(queue: &Queue, job: &Job, options: &Options) -> Result<String, Failure> {
    let Picture { pixels, look } = files::load(&job.input)?;
    let (width, height) = pixels.dimensions();
    let refuse = |reason: String| Failure::with_path("cannot resize", &job.input, &reason);
    let [new_height, new_width] = options.size.of([height as usize, width as usize]).map_err(refuse)?;
    let pixels = kernels::resized(queue, pixels, [new_height, new_width], options.filter)
        .map_err(|error| refuse(Failure::from(error).to_string()))?;
    files::save(Picture { pixels, look }, job, options.quality)?;
    let (input, output) = (job.input.display(), job.output.display());
    Ok(format!("{input}: {width} x {height} -> {output}: {new_width} x {new_height}"))
}
