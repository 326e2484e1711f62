//! What the build says of kernels that a target cannot run: `kernels/refused.stderr` and `kernels/host_only.stderr`, which the book's page on
//! errors shows, and `kernels/divergent.stderr`. `BLESS=1` writes them anew.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::program::{Package, build, sources};

#[test]
fn each_construct_that_no_gpu_runs_is_named_with_its_line_and_the_way_to_it() {
    let found = warnings("refused");
    assert_eq!(found.matches("cannot run on sm_70").count(), 12, "the last kernel runs everywhere: {found}");
}

#[test]
fn what_only_the_host_has_is_named_as_users_call_it_with_what_to_do_instead() {
    let found = warnings("host_only");
    assert_eq!(found.matches("cannot run on sm_70: it calls ").count(), 13, "{found}");
}

#[test]
fn barriers_that_some_work_items_may_come_to_are_named_with_the_condition_that_decides() {
    let found = warnings("divergent");
    assert_eq!(found.matches("cannot run on sm_70").count(), 19, "{found}");
    let at_group_scope = "it compares the address of a variable, or makes a number of it";
    assert_eq!(found.matches(at_group_scope).count(), 3, "{found}");
    assert_eq!(found.matches("it calls at group scope").count(), 1, "{found}");
    assert_eq!(found.matches("it allocates memory at group scope").count(), 3, "{found}");
}

#[test]
fn barriers_that_some_work_items_may_come_to_are_refused_for_opencl_devices_as_well() {
    let package = Package::enter();
    package.touch("divergent");
    let (_, messages) = package.sycl(&["build", "--targets", "spirv", "--bin", "divergent"]);
    let expected = fs::read_to_string(sources().join("divergent.stderr")).unwrap();
    let found = normalised(&messages).replace("cannot run on spirv1.2", "cannot run on sm_70");
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
}

/// Builds a program, and gives its warnings, which are those in its file.
#[track_caller]
fn warnings(program: &str) -> String {
    let built = build(program, &[]);
    let found = normalised(&built.messages);
    let file = sources().join(format!("{program}.stderr"));
    if env::var_os("BLESS").is_some() {
        fs::write(&file, &found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "found:\n{found}\nexpected:\n{expected}");
    found
}

#[test]
fn a_kernel_that_calls_the_hosts_runtime_is_refused_before_all_of_that_is_optimised() {
    let dump = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-dump");
    let _ = fs::remove_dir_all(&dump);
    let built = build("runtime", &["--dump", dump.to_str().unwrap()]);
    assert_eq!(built.messages.matches("cannot run on sm_70").count(), 1, "{}", built.messages);
    let warning = built.messages.lines().find(|line| line.contains("cannot run on sm_70")).unwrap();
    assert!(warning.contains("runtime::waited") && warning.contains(" at src/bin/runtime.rs:15:"), "{warning}");
    assert!(built.kernels.starts_with("sm_70: 1 kernel,"), "{}", built.kernels);
    // Each kernel has a folder of its target's, with what it was after each step, and how long code generation took.
    let kernels: Vec<_> = fs::read_dir(dump.join("sm_70")).unwrap().map(|kernel| kernel.unwrap().path()).collect();
    let with = |step: &str| kernels.iter().filter(|kernel| kernel.join(step).exists()).count();
    assert_eq!((kernels.len(), with("000-linked.ll"), with("lowered.ll"), with("emitted.txt")), (2, 2, 1, 1));
    let has_pass = |kernel: &PathBuf, pass: &str| {
        let mut files = fs::read_dir(kernel).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        files.any(|file| file.ends_with(&format!("-{pass}.ll")))
    };
    let passes = ["llvm-simplify", "llvm-optimise", "panics", "launch"];
    assert_eq!(passes.map(|pass| kernels.iter().filter(|kernel| has_pass(kernel, pass)).count()), [1; 4]);
    // The last step is what `inspect` shows of the program itself.
    let lowered = kernels.iter().find_map(|kernel| fs::read_to_string(kernel.join("lowered.ll")).ok()).unwrap();
    let assembly = built.inspect(&["--emit", "llvm"]);
    let (comment, assembly) = assembly.split_once('\n').unwrap();
    assert!(comment.starts_with("; kernel runtime::") && comment.ends_with(", for sm_70"), "{comment}");
    assert_eq!(code(assembly), code(&lowered));
}

/// The lines of LLVM assembly without those about attributes, their numbers, and comments on blocks. When LLVM reads its own functions, it
/// gives them other attributes, and lists of uses another order. Checksums of sources are left out, since a kernel from the cache has those
/// of an earlier build.
fn code(assembly: &str) -> Vec<String> {
    let lines =
        assembly.lines().filter(|line| !line.starts_with("; Function Attrs: ") && !line.starts_with("attributes #"));
    let is_attributes = |word: &str| word.strip_prefix('#').is_some_and(|number| number.starts_with(char::is_numeric));
    let lines = lines.map(|line| line.split("; preds = ").next().unwrap_or_default().trim_end());
    let lines = lines.map(|line| line.split(", checksumkind: ").next().unwrap_or_default());
    lines.map(|line| line.split(' ').filter(|word| !is_attributes(word)).collect::<Vec<_>>().join(" ")).collect()
}

/// The warnings, sorted: kernels of one name are in the order of their identities, which depends on where the package is.
fn normalised(messages: &str) -> String {
    let lines = messages.lines().map(str::trim_end);
    let is_progress = |line: &str| {
        ["Adding ", "Blocking ", "Compiling ", "Device code ", "Finished ", "Locking "]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    let mut warnings: Vec<_> = lines.filter(|line| !line.is_empty() && !is_progress(line)).collect();
    warnings.sort_unstable();
    warnings.join("\n\n") + "\n"
}
