//! Runs the numbered examples on the host and on a simulated device, and the listing of devices.

#[path = "support/example.rs"]
mod example;

use std::process::Output;

fn run(name: &str, settings: &[(&str, &str)]) -> Output {
    example::command(&example::built(name)).envs(settings.iter().copied()).output().expect("the example starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn works(name: &str, settings: &[(&str, &str)]) -> String {
    let output = run(name, settings);
    assert!(output.status.success(), "{name}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "{name}");
    text(&output.stdout)
}

#[test]
fn every_numbered_example_checks_itself_on_every_device() {
    let names = [
        "01_hello",
        "02_buffers_and_views",
        "03_chunks_dot",
        "04_two_devices",
        "05_usm",
        "06_host_task_and_events",
        "07_atomics",
        "14_tiled_gemm",
        "15_stencil",
        "16_histogram",
        "17_bitonic_sort",
        "18_block_scan",
        "19_reduction",
        "20_cublas",
    ];
    // With types of other crates: those of the features with which the test was built, as all are in the test of the workspace.
    let with_features = [
        ("08_ndarray", cfg!(feature = "ndarray")),
        ("09_nalgebra", cfg!(feature = "nalgebra")),
        ("10_image", cfg!(feature = "image")),
        ("11_half", cfg!(feature = "half")),
        ("12_num_complex", cfg!(feature = "num-complex")),
        ("13_glam", cfg!(feature = "glam")),
        ("21_ray_march", cfg!(feature = "image")),
        ("22_optical_flow", cfg!(feature = "image")),
    ];
    let with_features = with_features.into_iter().filter_map(|(name, is_built)| is_built.then_some(name));
    for name in names.into_iter().chain(with_features) {
        let on_host = works(name, &[]);
        assert!(!on_host.is_empty(), "{name} says nothing");
        works(name, &[("OXISYCL_SIMULATED", "1"), ("OXISYCL_DEVICE_SELECTOR", "simulated:*")]);
    }
}

#[test]
fn devices_are_listed_by_the_names_of_the_selector() {
    let all = works("ls", &[("OXISYCL_SIMULATED", "2")]);
    for name in ["  host:0  ", "  simulated:0  ", "  simulated:1  ", "(default)", "nothing is hidden"] {
        assert!(all.contains(name), "no {name}: {all}");
    }
    let some = works("ls", &[("OXISYCL_SIMULATED", "3"), ("OXISYCL_DEVICE_SELECTOR", "simulated:1")]);
    // There may be devices of drivers beside these.
    let (_, n_hidden) =
        some.split_once("OXISYCL_DEVICE_SELECTOR=\"simulated:1\" hides ").unwrap_or_else(|| panic!("{some}"));
    let n_hidden = n_hidden.split_once(" devices:").and_then(|(n, _)| n.parse::<usize>().ok());
    assert!(n_hidden >= Some(3), "{some}");
    let (listed, hidden) = some.split_once(" hides ").unwrap();
    assert!(listed.contains("  simulated:1  "), "the index counts hidden devices: {some}");
    assert!(!listed.contains("host:0") && hidden.contains("  host:0  "), "{some}");
    assert!(hidden.contains("  simulated:0  ") && hidden.contains("  simulated:2  "), "{some}");
    let none = works("ls", &[("OXISYCL_DEVICE_SELECTOR", "cuda:*")]);
    assert!(none.contains("no visible device"), "{none}");
}

#[test]
fn a_wrong_selector_is_an_error_that_shows_the_grammar() {
    let output = run("ls", &[("OXISYCL_DEVICE_SELECTOR", "nonsense")]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.starts_with("error: OXISYCL_DEVICE_SELECTOR: expected"), "{stderr}");
    assert!(stderr.contains("\"nonsense\"") && stderr.contains("backend:device"), "{stderr}");
}
