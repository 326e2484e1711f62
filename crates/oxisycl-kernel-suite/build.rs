//! Writes the random kernels of `tests/fuzz`: those of the seeds in `tests/fuzz/seeds.txt`, or of `OXISYCL_TEST_FUZZ_SEEDS` if that is set.

#[path = "src/generator/mod.rs"]
mod generator;

use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    const SAVED: &str = "tests/fuzz/seeds.txt";
    println!("cargo::rerun-if-env-changed=OXISYCL_TEST_FUZZ_SEEDS");
    for path in [SAVED, "build.rs", "src/generator"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let text = match env::var("OXISYCL_TEST_FUZZ_SEEDS") {
        Ok(text) => text,
        Err(_) => fs::read_to_string(SAVED)?,
    };
    let module = generator::module(&generator::Seeds::parse(&text)?);
    fs::write(Path::new(&env::var("OUT_DIR")?).join("fuzz.rs"), module)?;
    Ok(())
}
