//! NVIDIA's assembler, where there is one: what a kernel takes of a GPU.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::files::temporary_name;

/// See the module documentation.
pub(crate) struct Ptxas(PathBuf);

impl Ptxas {
    /// The first in `PATH`, else the one of the toolkit that `CUDA_HOME` or `CUDA_PATH` names, or of the usual place.
    pub(crate) fn find() -> Option<Self> {
        let path: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(PathBuf::from);
        let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|toolkit| toolkit.join("bin"));
        path.into_iter().chain(toolkits).map(|folder| folder.join("ptxas")).find(|program| program.is_file()).map(Self)
    }

    /// Registers and more of a kernel of PTX, as `ptxas -v` tells them.
    ///
    /// # Errors
    /// Why it does not tell, in a few words.
    pub(crate) fn usage(&self, sm: u32, code: &[u8], symbol: &str) -> Result<String, String> {
        let input = temporary_name(&env::temp_dir().join("inspect.ptx"));
        let text: Vec<u8> = code.iter().copied().filter(|byte| *byte != 0).collect();
        fs::write(&input, text).map_err(|error| format!("{}: {error}", input.display()))?;
        let mut command = Command::new(&self.0);
        command.arg("-v").arg(format!("--gpu-name=sm_{sm}")).args(["--output-file", "/dev/null"]).arg(&input);
        let output = command.stdin(Stdio::null()).output();
        let _ = fs::remove_file(&input);
        let output = output.map_err(|error| format!("{}: {error}", self.0.display()))?;
        let messages = [output.stdout, output.stderr].concat();
        let messages = String::from_utf8_lossy(&messages);
        if !output.status.success() {
            return Err(format!("ptxas: {}", messages.lines().next().unwrap_or("it failed")));
        }
        usage(&messages, symbol).ok_or_else(|| "ptxas tells nothing of it".to_owned())
    }
}

/// The numbers of a kernel: `ptxas info    : Used 12 registers, 380 bytes cmem[0]` after the line that names it.
fn usage(messages: &str, symbol: &str) -> Option<String> {
    let mut lines = messages.lines().skip_while(|line| !line.contains(&format!("'{symbol}'")));
    let used = lines.find_map(|line| line.split_once("Used ")).map(|(_, used)| used)?;
    let (registers, rest) = used.split_once(" registers")?;
    let rest = rest.trim_start_matches(", ").trim();
    Some(if rest.is_empty() { registers.to_owned() } else { format!("{registers}, {rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_one_kernel_are_found() {
        let messages = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k_a' for 'sm_70'\n\
            ptxas info    : Function properties for k_a\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
            ptxas info    : Used 12 registers, 380 bytes cmem[0]\n\
            ptxas info    : Compiling entry function 'k_b' for 'sm_70'\nptxas info    : Used 40 registers\n";
        assert_eq!(usage(messages, "k_a").as_deref(), Some("12, 380 bytes cmem[0]"));
        assert_eq!(usage(messages, "k_b").as_deref(), Some("40"));
        assert_eq!(usage(messages, "k_c"), None);
    }
}
