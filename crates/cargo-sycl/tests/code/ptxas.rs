//! NVIDIA's assembler takes the PTX of these programs, too: those with barriers, shuffles, recursion and panics are in no other suite. The
//! project's own tools have it, or `PATH`. Where neither does, the test that is about it is ignored, and the others say that they go on without it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use crate::program::Package;

/// Where `cargo xtask test` installs it, below the target folder.
const INSTALLED: &str = "tools/ptxas/packages/nvidia/cuda_nvcc/bin/ptxas";

/// The assembler, if it is there.
pub(crate) fn find() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?;
    let folders = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let known = folders.into_iter().map(|folder| folder.join("ptxas"));
    [target.join(INSTALLED)].into_iter().chain(known).find(|path| path.is_file())
}

/// Assembles each module of a text that `inspect --emit ptx` gave.
///
/// # Errors
/// What the assembler says of the first that it refuses, or that there is none.
pub(crate) fn assemble(ptx: &str, processor: &str) -> Result<(), String> {
    let assembler = find().ok_or("ptxas is neither installed nor in PATH")?;
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("code-{}.ptx", std::process::id()));
    let modules: Vec<&str> = ptx.split("// kernel ").skip(1).collect();
    assert_eq!(modules.len(), ptx.matches(".version ").count(), "a comment before each module");
    for module in modules {
        fs::write(&file, format!("// kernel {module}")).unwrap();
        let mut command = Command::new(&assembler);
        // Whether the code is valid does not depend on how well it is optimised.
        command.args(["-O0", "-arch", processor, "-o", "/dev/null"]).arg(&file);
        let output = command.output().unwrap();
        fs::remove_file(&file).unwrap();
        if !output.status.success() {
            return Err(format!("{}\n{module}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat())));
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs ptxas"]
fn code_for_a_newer_processor_is_assembled_under_each_floating_point_policy() {
    let package = Package::enter();
    for policy in ["fast", "strict"] {
        package.sycl(&["build", "--targets", "sm_90", "--float", policy, "--bin", "library"]);
        let (ptx, _) = package.sycl(&["inspect", "--emit", "ptx", "target/sycl/debug/library"]);
        assert_eq!((ptx.matches(".target sm_90").count(), ptx.contains("sin.approx")), (4, policy == "fast"), "{ptx}");
        assert_eq!(assemble(&ptx, "sm_90"), Ok(()), "{policy}");
    }
    let nonsense = "// kernel k\n.version 7.7\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n\tadd.nonsense %r1, %r2;\n}\n";
    assert!(assemble(nonsense, "sm_90").unwrap_err().contains("nonsense"));
}
