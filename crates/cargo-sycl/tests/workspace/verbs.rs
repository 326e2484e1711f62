//! Verbs that build nothing for a device: what `cargo sycl ls` and `doctor` list, and the packages that `new` makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::project::{Project, driver, succeed};

#[test]
fn devices_and_drivers_are_listed_with_what_they_run() {
    let project = Project::new("listed");
    // A row is wrapped where the processor's name is long.
    let unwrapped = |output: &str| output.split_whitespace().collect::<Vec<_>>().join(" ");
    let (output, _) = succeed(&mut project.sycl(&["ls"]));
    let row = unwrapped(&output);
    let (host, _) =
        row.strip_prefix("* host:0 ").expect("the default device is the host's").split_once(" aspects:").unwrap();
    assert!(host.contains(" runs the program's own code "), "{output}");
    #[cfg(all(target_os = "linux", target_arch = "x86_64", target_vendor = "unknown"))]
    assert!(host.contains(" code and images ") && host.contains(" host:x86_64-unknown-linux-"), "{output}");
    let (output, _) = succeed(project.sycl(&["ls"]).env("LD_LIBRARY_PATH", driver()));
    let gpu = " cuda:0 Fake GPU 0 runs images for sm_90, or for earlier ones down to sm_70 ";
    assert!(unwrapped(&output).contains(gpu), "{output}");
}

#[test]
fn a_list_without_visible_devices_names_what_hides_them() {
    let project = Project::new("hidden");
    let list = |value: &str| {
        let mut command = project.sycl(&["ls"]);
        succeed(command.env("LD_LIBRARY_PATH", driver()).env("OXISYCL_DEVICE_SELECTOR", value)).0
    };
    let none = list("cuda:cpu");
    assert!(none.starts_with("no visible device; `cargo sycl doctor` says why a device is missing\n"), "{none}");
    let (_, hidden) = none.split_once("\nOXISYCL_DEVICE_SELECTOR=\"cuda:cpu\" hides ").expect("what hides them");
    for device in ["\n  host:0  ", "\n  cuda:0  "] {
        assert!(hidden.contains(device), "{none}");
    }
    let one = list("cuda:gpu");
    let (shown, hidden) = one.split_once("\nOXISYCL_DEVICE_SELECTOR=\"cuda:gpu\" hides ").expect("what hides them");
    assert!(shown.contains("* cuda:0 ") && hidden.contains("\n  host:0  ") && !one.contains("no visible"), "{one}");
}

#[test]
fn a_doctor_names_what_is_there_and_what_to_do_about_what_is_not() {
    let project = Project::new("doctor");
    let doctor = |vendors: &Path| {
        succeed(project.sycl(&["doctor"]).env("LD_LIBRARY_PATH", driver()).env("OCL_ICD_VENDORS", vendors)).0
    };
    let output = doctor("/none".as_ref());
    for beginning in [
        "ok  toolchain       rustc 1.",
        "ok  libLLVM         ",
        "ok  image cache     ",
        "ok  CUDA driver     CUDA 12.4",
        "--  OpenCL driver   no driver in /none; install one",
    ] {
        assert!(output.lines().any(|line| line.starts_with(beginning)), "{beginning}: {output}");
    }
    assert!(output.contains("  OpenCL loader   libOpenCL.so.1"), "{output}");
    for tool in ["ptxas", "spirv-val"] {
        let line = output.lines().find(|line| line.split_whitespace().nth(1) == Some(tool)).expect(tool);
        assert!(line.starts_with("ok ") || line.contains("not needed to build or run"), "{line}");
    }

    // OpenCL drivers are loaded, and one that ends its process does not end this one.
    let icd = |name: &str, options: &[&str]| {
        let library = project.root.join(format!("lib{name}.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workspace/icd_driver.rs");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", name]).args(options);
        succeed(rustc.arg(source).arg("-o").arg(&library));
        library.to_str().unwrap().to_owned()
    };
    let (good, bad) = (icd("good", &[]), icd("bad", &["--cfg", "ends"]));
    let no_driver = driver().join("libcuda.so.1");
    let libraries = [good.as_str(), &bad, no_driver.to_str().unwrap(), "libnone.so"];
    for (idx, library) in libraries.iter().enumerate() {
        project.write(&format!("vendors/{idx}.icd"), &format!("{library}\n"));
    }
    let vendors = project.root.join("vendors");
    let output = doctor(&vendors);
    let folder = vendors.display();
    for expected in [
        format!("ok  OpenCL driver   Made for a test, OpenCL 3.0 fake, {good} ({folder}/0.icd)"),
        format!(
            "--  OpenCL driver   {folder}/1.icd: {bad} ends the process that loads it: signal 6; install that driver again"
        ),
        format!("--  OpenCL driver   {folder}/2.icd: {} is no driver of OpenCL: it has no clGet", libraries[2]),
        format!(
            "--  OpenCL driver   {folder}/3.icd: libnone.so does not load: libnone.so: cannot open shared object file"
        ),
    ] {
        assert!(output.lines().any(|line| line.starts_with(&expected)), "{expected}: {output}");
    }
}

#[test]
fn a_new_package_is_one_that_cargo_knows() {
    let project = Project::new("new");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The tool was built from this repository, so that nothing has to be said.
    let (output, _) = succeed(&mut project.sycl(&["new", "my-app"]));
    assert!(output.contains("its dependency is the clone of OxiSYCL in /"), "{output}");
    let manifest = fs::read_to_string(project.root.join("my-app/Cargo.toml")).unwrap();
    succeed(&mut project.sycl(&["new", "named", "--name", "my-app", "--oxisycl", repository.to_str().unwrap()]));
    assert_eq!(fs::read_to_string(project.root.join("named/Cargo.toml")).unwrap(), manifest);
    succeed(&mut project.sycl(&["new", "published", "--published"]));
    let published = fs::read_to_string(project.root.join("published/Cargo.toml")).unwrap();
    assert!(published.contains("oxisycl = \"0.1"), "{published}");
    project.write("my-app/Cargo.toml", &format!("{manifest}\n[workspace]\n"));
    fs::copy(project.root.join("Cargo.lock"), project.root.join("my-app/Cargo.lock")).unwrap();
    succeed(project.sycl(&["check", "--all-targets"]).current_dir(project.root.join("my-app")));
}
