//! A program and its plug-ins that share the runtime of `oxisycl-dylib`, beside crates that know `oxisycl` alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::{Project, driver, succeed};

const HOST: &str = include_str!("plug_ins/host.rs");

const PLUG_INS: [(&str, &str); 3] = [
    ("one", include_str!("plug_ins/one.rs")),
    ("two", include_str!("plug_ins/two.rs")),
    ("three", include_str!("plug_ins/three.rs")),
];

/// Where `cargo sycl` puts the program and the plug-ins.
const OUTPUTS: &str = "target/sycl/debug";

/// Builds them and lets them work together. The project's crates with kernels are there.
pub(crate) fn share_one_runtime(project: &Project) {
    let workspace = fs::read_to_string(project.root.join("Cargo.toml")).unwrap();
    write(project, &workspace, "\"cuda\"");
    let names = ["host", "one", "two", "three"];
    let packages: Vec<&str> = names.iter().flat_map(|name| ["--package", name]).collect();
    let build = [&["build"][..], &packages].concat();
    let (_, messages) = succeed(&mut project.sycl(&build));
    assert!(!messages.contains("warning"), "{messages}");
    for (name, kernel) in [("one", "one::write_numbers"), ("two", "two::double"), ("three", "three::sum_of_squares")] {
        let kernels = project.inspect(Path::new(OUTPUTS).join(format!("lib{name}.so")));
        assert!(kernels.starts_with("sm_70: ") && kernels.contains(kernel), "{name}: {kernels}");
    }

    let trace = project.root.join("trace.json");
    let (output, errors) = succeed(run(project, "host").env("OXISYCL_TRACE", &trace));
    let sums: f32 = (1..=100).map(|x| (2.0 * x as f32).powi(2)).sum();
    let buffer = output.lines().nth(4).unwrap_or_default();
    assert!(buffer.contains("one/src/lib.rs:"), "the place is there without the plug-in: {output}");
    assert_eq!(output, format!("{sums}\n{sums}\n2\n100\n{buffer}\n[6.0, 6.0, 6.0]\n1\n7\none pool: true\n"));
    assert!(!errors.contains("oxisycl: "), "{errors}");
    // All of them write one file, which is whole.
    let trace = fs::read_to_string(trace).unwrap();
    for (kernel, n_launches) in [("one::write_numbers", 3), ("two::double", 2), ("kernels::mapped", 2)] {
        assert_eq!(trace.matches(&format!("\"name\":\"{kernel}")).count(), n_launches, "{kernel}: {trace}");
    }
    serde_json::from_str::<serde_json::Value>(&trace).unwrap();

    let (output, errors) = succeed(beside_a_gpu(&mut run(project, "gpu")));
    // Two kernels of `one`, one of `two`, two of `three` and its library are gone with them.
    assert_eq!((output.as_str(), errors.as_str()), ("Cuda 28\n5\nCuda 28\n5\n", ""));

    // A library with the same crates and other features is another version: its functions have other names.
    let kept = project.root.join("kept");
    fs::create_dir_all(&kept).unwrap();
    for file in ["host", "libone.so", "deps/liboxisycl_dylib.so"] {
        let path = project.root.join(OUTPUTS).join(file);
        fs::copy(&path, kept.join(path.file_name().unwrap())).unwrap();
    }
    write(project, &workspace, "\"cuda\", \"tracing\"");
    succeed(&mut project.sycl(&["build", "--package", "one"]));
    let other = project.root.join(OUTPUTS).join("libone.so");
    let alone = |plug_in: &Path, folders: &[&Path]| {
        let mut command = Command::new(kept.join("host"));
        command.arg(&kept).arg("alone").arg(plug_in);
        succeed(with_libraries(&mut command, folders))
    };
    let (output, _) = alone(&other, &[&kept]);
    assert!(output.starts_with("refused: ") && output.contains("undefined symbol: _ZN"), "{output}");
    // Where the library of its own version is found, that one refuses to work.
    let renamed = |from: &Path, to: &Path| {
        let bytes = fs::read(from).unwrap();
        let (name, new) = (b"liboxisycl_dylib.so\0", b"liboxisycl_dylib.s2\0");
        let positions: Vec<usize> = (0..bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(name)).collect();
        let mut renamed = bytes;
        positions.iter().for_each(|&at| renamed[at..at + new.len()].copy_from_slice(new));
        fs::write(to, renamed).unwrap();
        positions.len()
    };
    assert_eq!(renamed(&other, &kept.join("libother.so")), 1);
    fs::copy(project.root.join(OUTPUTS).join("deps/liboxisycl_dylib.so"), kept.join("liboxisycl_dylib.s2")).unwrap();
    let (output, errors) = alone(&kept.join("libother.so"), &[&kept]);
    let lines: Vec<&str> = output.lines().collect();
    let [message, "0"] = lines[..] else { panic!("{output} {errors}") };
    assert!(message.contains("the process has another build of OxiSYCL's shared runtime, in "), "{message}");
    assert!(message.contains("kept/liboxisycl_dylib.so"), "the first one goes on: {message}");
    // The plug-in of the program's own version works.
    let (output, _) = alone(&kept.join("libone.so"), &[&kept]);
    assert_eq!(output, "10\n");

    project.write("Cargo.toml", &workspace);
}

/// Builds them with optimisation, and unloads one while the other goes on.
pub(crate) fn take_their_native_code_with_them(project: &Project, has_level: bool) {
    let workspace = fs::read_to_string(project.root.join("Cargo.toml")).unwrap();
    write(project, &workspace, "\"cuda\"");
    let packages = ["host", "one", "two"].iter().flat_map(|name| ["--package", name]);
    let build = ["build", "--profile", "quick", "--targets", "host-v3", "--lanes", "8"].into_iter().chain(packages);
    succeed(&mut project.sycl_as_is(&build.collect::<Vec<_>>()));
    let outputs = project.root.join("target/sycl/quick");
    for (code, runs) in [("plain", false), ("v3", has_level)] {
        if code == "v3" && !has_level {
            continue;
        }
        let mut command = Command::new(outputs.join("host"));
        command.arg(&outputs).arg("native").env("OXISYCL_HOST_CODE", code);
        // A backtrace keeps files of libraries in memory.
        command.env("RUST_BACKTRACE", "0");
        let (output, errors) = succeed(with_libraries(&mut command, &[&outputs.join("deps")]));
        let sum = (1..=1003).map(|x| x as f32).sum::<f32>();
        let [a, b, c, d, error, e] = &output.lines().collect::<Vec<_>>()[..] else { panic!("{output} {errors}") };
        let expected = [(2.0, 2), (4.0, 3), (8.0, 5), (1.0, 5), (16.0, 7)];
        for (line, (factor, n)) in [a, b, c, d, e].into_iter().zip(expected) {
            assert_eq!(*line, format!("{} {}", factor * sum, if runs { n } else { 0 }), "{code}: {output}");
        }
        for text in ["panicked in work-item [77] at one/src/lib.rs:", ": the number 78 of item 77"] {
            assert!(error.contains(text), "{text}: {error}");
        }
        assert!(!errors.contains("oxisycl: "), "{errors}");
    }
    project.write("Cargo.toml", &workspace);
}

/// Adds the crates to a workspace.
fn write(project: &Project, workspace: &str, features: &str) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let manifest = workspace.replacen("members = [", "members = [\"host\", \"one\", \"two\", \"three\", ", 1);
    project.write("Cargo.toml", &manifest);
    for (name, source) in PLUG_INS.into_iter().chain([("host", HOST)]) {
        let (kind, file) = match name {
            "host" => ("", "main.rs"),
            _ => ("[lib]\ncrate-type = [\"cdylib\"]\n", "lib.rs"),
        };
        let further = if name == "three" { "kernels.workspace = true\n" } else { "" };
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{kind}[dependencies]\noxisycl = {{ package = \
             \"oxisycl-dylib\", path = \"{}/crates/oxisycl-dylib\", default-features = false, features = [{features}] }}\n{further}",
            repository.display()
        );
        project.write(&format!("{name}/Cargo.toml"), &manifest);
        project.write(&format!("{name}/src/{file}"), source);
    }
}

/// The program, with what it is to do.
fn run(project: &Project, what: &str) -> Command {
    let outputs = project.root.join(OUTPUTS);
    let mut command = Command::new(outputs.join("host"));
    command.arg(&outputs).arg(what);
    with_libraries(&mut command, &[&outputs.join("deps")]);
    command
}

/// Has the dynamic linker look into these folders and that of the standard library, as `cargo run` does.
fn with_libraries<'c>(command: &'c mut Command, folders: &[&Path]) -> &'c mut Command {
    let (libraries, _) = succeed(Command::new("rustc").args(["--print", "target-libdir"]));
    let folders = folders.iter().map(|folder| folder.to_path_buf()).chain([PathBuf::from(libraries.trim())]);
    command.env("LD_LIBRARY_PATH", std::env::join_paths(folders).unwrap())
}

/// Adds the folder with a driver that has a GPU.
fn beside_a_gpu(command: &mut Command) -> &mut Command {
    let known = command.get_envs().find(|(name, _)| *name == "LD_LIBRARY_PATH").and_then(|(_, value)| value);
    let folders = std::env::split_paths(known.unwrap_or_default()).chain([driver()]);
    let folders = std::env::join_paths(folders).unwrap();
    command.env("LD_LIBRARY_PATH", folders)
}
