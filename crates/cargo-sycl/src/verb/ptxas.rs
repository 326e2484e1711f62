//! NVIDIA's assembler, where there is one: what a kernel takes of a GPU.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files::temporary_name;

/// The path of NVIDIA's assembler.
pub(crate) struct Ptxas(PathBuf);

impl Ptxas {
    /// The first in `PATH`, else the one of the toolkit that `CUDA_HOME` or `CUDA_PATH` names, or of the usual place.
    pub(crate) fn find() -> Option<Self> {
        let path: Vec<PathBuf> = env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default();
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(env::var_os).map(PathBuf::from);
        let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]).map(|toolkit| toolkit.join("bin"));
        path.into_iter().chain(toolkits).map(|folder| folder.join("ptxas")).find(|program| program.is_file()).map(Self)
    }

    /// Why no driver takes the PTX of an image, in the assembler's words. One that does not know the target or the version says nothing.
    ///
    /// # Errors
    /// That reason.
    pub(crate) fn verify(&self, sm: u32, code: &[u8]) -> Result<(), String> {
        let input = temporary_name(&env::temp_dir().join("verify.ptx"));
        let text: Vec<u8> = code.iter().copied().filter(|byte| *byte != 0).collect();
        if fs::write(&input, text).is_err() {
            return Ok(());
        }
        let mut command = Command::new(&self.0);
        // Code is checked as well without optimisation, which takes most of the time.
        command.arg("-O0").arg(format!("--gpu-name=sm_{sm}")).args(["--output-file", "/dev/null"]).arg(&input);
        let output = command.stdin(Stdio::null()).output();
        let _ = fs::remove_file(&input);
        match output {
            Ok(output) if !output.status.success() => {
                let messages = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                refusal(&messages.replace(&*input.to_string_lossy(), "the PTX")).map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The assembler at that place.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
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
        usage(&messages, symbol).ok_or_else(|| "ptxas prints nothing about it".to_owned())
    }
}

/// What the assembler has against code; none if it is another one than the code is for.
fn refusal(messages: &str) -> Option<String> {
    const OTHER: [&str; 3] = ["is not defined for option", "Unsupported .version", "not supported in current version"];
    if OTHER.iter().any(|other| messages.contains(other)) {
        return None;
    }
    let errors: Vec<&str> =
        messages.lines().map(str::trim).filter(|line| line.contains("error") || line.contains("fatal")).collect();
    // Without a word of its own it did not get as far as the code.
    let (last, first) = errors.split_last()?;
    let shown = if first.is_empty() { *last } else { first[0] };
    Some(format!("ptxas refuses its code, as NVIDIA's driver would: {shown}"))
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
    fn a_refusal_has_the_first_error_and_another_assembler_refuses_nothing() {
        let error = "ptxas the PTX, line 33; error   : State space incorrect for instruction 'atom'";
        let messages = format!(
            "{error}\nptxas the PTX, line 40; error : other\nptxas fatal   : Ptx assembly aborted due to errors\n"
        );
        let expected = format!("ptxas refuses its code, as NVIDIA's driver would: {error}");
        assert_eq!(refusal(&messages), Some(expected));
        for other in [
            "ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'",
            "ptxas the PTX, line 9; fatal   : Unsupported .version 8.8; current version is '8.4'",
            "",
            "Killed",
        ] {
            assert_eq!(refusal(other), None, "{other}");
        }
    }

    #[test]
    fn code_is_looked_at_by_the_assembler_that_was_found() {
        use std::os::unix::fs::PermissionsExt;

        let scratch = crate::files::tests::Scratch::new("ptxas");
        let program = scratch.path().join("ptxas");
        let script = "#!/bin/sh\nfor last; do :; done\n[ \"$1 $2\" = \"-O0 --gpu-name=sm_70\" ] || exit 0\n\
            grep -q wrong \"$last\" || exit 0\necho \"ptxas $last, line 1; error   : it is wrong\" >&2\nexit 255\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
        let ptxas = Ptxas::at(program);
        assert_eq!(ptxas.verify(70, b"right\0"), Ok(()));
        let refused = ptxas.verify(70, b"wrong\0").unwrap_err();
        assert_eq!(
            refused,
            "ptxas refuses its code, as NVIDIA's driver would: ptxas the PTX, line 1; error   : it is wrong"
        );
        // One that cannot be started has nothing against the code.
        assert_eq!(Ptxas::at(scratch.path().join("missing")).verify(70, b"wrong\0"), Ok(()));
    }

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
