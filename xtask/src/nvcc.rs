//! The peer of the GPU benchmark: a program in CUDA C++, built where there is nvcc.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that builds it; `None` without a compiler.
pub(crate) fn compile(source: &Path, program: &Path) -> Option<Command> {
    let mut command = Command::new(find()?);
    command.args(["-O3", "-std=c++17", "-arch=native", "-o"]).arg(program).arg(source).arg("-lcuda");
    Some(command)
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|toolkit| toolkit.join("bin"));
    let mut folders = std::env::split_paths(&path).chain(toolkits);
    folders.find_map(|folder| Some(folder.join("nvcc")).filter(|program| program.is_file()))
}
