//! What the runtime costs on the host device: `cargo xtask bench runtime [--json FILE] [--filter SUBSTR] [--rounds N]`.
//!
//! Each module measures one kind of cost and adds its results; `protocol.rs` says how everything is measured. Results are
//! checked as they are made, so that nothing fast and wrong is reported. A machine that does other work at the same time makes
//! the figures worse, not wrong: compare ratios.

#[path = "../arguments.rs"]
mod arguments;
mod beside;
mod gemm;
mod memory;
mod pause;
mod peers;
#[path = "../protocol.rs"]
mod protocol;
mod state;
mod stream;
mod submit;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use arguments::{Arguments, Options};

fn main() -> ExitCode {
    let mut child = None;
    let arguments = Arguments::parse(std::env::args().skip(1), "", |name, value| match name {
        memory::CHILD => {
            child = Some(value()?);
            Ok(true)
        }
        _ => Ok(false),
    });
    Arguments::run(arguments, "runtime", |Arguments { options, json }| {
        match child {
            Some(name) => memory::run_child(&name)?,
            None => run(&options, json)?,
        }
        Ok(true)
    })
}

fn run(options: &Options, json: Option<PathBuf>) -> Result<(), Box<dyn Error>> {
    eprintln!(
        "yardsticks now: empty rayon task {:.3} us, ping-pong of parked threads {:.2} us",
        peers::empty_spawn(),
        peers::ping_pong()
    );
    let mut results = Vec::new();
    for run in [submit::run, beside::run, pause::run, state::run, memory::run, stream::run, gemm::run] {
        run(options, &mut results)?;
    }
    if results.is_empty() {
        return Err(format!("no case matches --filter {}", options.filter).into());
    }
    protocol::print_table(&results, "AdaptiveCpp");
    println!("AdaptiveCpp: figures of another hour, same machine type");
    if let Some(file) = json {
        std::fs::write(&file, protocol::json(&results))
            .map_err(|error| format!("cannot write \"{}\": {error}", file.display()))?;
    }
    Ok(())
}
