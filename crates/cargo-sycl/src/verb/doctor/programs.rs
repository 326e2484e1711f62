use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::Finding;

/// NVIDIA's assembler, which checks PTX when images are tested.
pub(super) fn ptxas() -> Finding {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|toolkit| toolkit.join("bin"));
    let version = |text: &str| text.split("release ").nth(1)?.split(',').next().map(str::to_owned);
    find(
        "ptxas",
        toolkits.collect(),
        version,
        "not needed to build or run; a CUDA toolkit has it, to check device code ahead of time",
    )
}

/// The validator of SPIR-V.
pub(super) fn spirv_val() -> Finding {
    let version = |text: &str| text.lines().next().map(str::to_owned);
    find(
        "spirv-val",
        Vec::new(),
        version,
        "not needed to build or run; the package spirv-tools has it, to check device code ahead of time",
    )
}

fn find(name: &str, more: Vec<PathBuf>, version: impl Fn(&str) -> Option<String>, advice: &str) -> Finding {
    let path: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
    for program in path.into_iter().chain(more).map(|folder| folder.join(name)).filter(|program| program.is_file()) {
        let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
        if let Some(version) = output.ok().and_then(|output| version(&String::from_utf8_lossy(&output.stdout))) {
            return Finding::Found(format!("{version}, {}", program.display()));
        }
    }
    Finding::Absent(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_with_its_version_or_advice_is_given() {
        let first_word = |text: &str| text.split_whitespace().next().map(str::to_owned);
        let Finding::Found(text) = find("cargo", Vec::new(), first_word, "") else { panic!("cargo runs this test") };
        assert!(text.starts_with("cargo, /"), "{text}");
        assert_eq!(find("no-such-program", Vec::new(), first_word, "get it"), Finding::Absent("get it".to_owned()));
    }
}
