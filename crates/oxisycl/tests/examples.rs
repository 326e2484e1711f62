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

/// An empty folder of one test.
#[cfg(feature = "image")]
fn folder(test: &str) -> std::path::PathBuf {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("examples").join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// Runs an example with arguments in a folder.
#[cfg(feature = "image")]
fn run_in(folder: &std::path::Path, name: &str, arguments: &[&str]) -> Output {
    let mut command = example::command(&example::built(name));
    command.current_dir(folder).args(arguments).output().expect("the example starts")
}

/// A frame with waves, whose contents are that far to the right.
#[cfg(feature = "image")]
fn frame(shift: f32) -> image::GrayImage {
    image::GrayImage::from_fn(48, 40, |x, y| {
        let (x, y) = (x as f32 - shift, y as f32);
        let level = (0.35 * x).sin() + (0.4 * y + 0.1 * x).cos() + (0.21 * x - 0.3 * y).sin();
        image::Luma([(127.0 + 40.0 * level) as u8])
    })
}

#[test]
#[cfg(feature = "image")]
fn a_scene_and_a_flow_become_pictures() {
    let folder = folder("pictures");
    let output = run_in(&folder, "21_ray_march", &["scene.png", "36"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let scene = image::open(folder.join("scene.png")).unwrap().into_rgba8();
    assert_eq!(scene.dimensions(), (64, 36));
    // The sky above is bluer than the ground below.
    let blue =
        |y: u32| (0..64).map(|x| scene.get_pixel(x, y).0).map(|[r, _, b, _]| i32::from(b) - i32::from(r)).sum::<i32>();
    assert!(blue(1) > blue(34) + 64 * 10, "{} and {}", blue(1), blue(34));

    frame(0.0).save(folder.join("first.png")).unwrap();
    frame(1.5).save(folder.join("second.png")).unwrap();
    let output = run_in(&folder, "22_optical_flow", &["first.png", "second.png", "flow.png"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("48 x 40 pixels"), "{}", text(&output.stdout));
    let flow = image::open(folder.join("flow.png")).unwrap().into_rgba8();
    assert_eq!(flow.dimensions(), (48, 40));
    // All of it goes to the right, which is one colour. Contents that leave the frame are not found.
    let of_middle: Vec<[u8; 4]> =
        (12..28).flat_map(|y| (12..36).map(move |x| (x, y))).map(|(x, y)| flow.get_pixel(x, y).0).collect();
    let is_to_the_right = |[r, g, b, a]: &&[u8; 4]| *r > 200 && *g < 140 && *b < 140 && *a == 255;
    let n_right = of_middle.iter().filter(is_to_the_right).count();
    assert!(10 * n_right >= 9 * of_middle.len(), "{n_right} of {}: {of_middle:?}", of_middle.len());
}

#[test]
#[cfg(feature = "image")]
fn frames_that_are_none_are_told_by_name() {
    let folder = folder("frames");
    frame(0.0).save(folder.join("good.png")).unwrap();
    let bytes = std::fs::read(folder.join("good.png")).unwrap();
    std::fs::write(folder.join("cut.png"), &bytes[..bytes.len() / 2]).unwrap();
    frame(0.0).save(folder.join("good.jpg")).unwrap();
    let bytes = std::fs::read(folder.join("good.jpg")).unwrap();
    std::fs::write(folder.join("cut.jpg"), &bytes[..bytes.len() / 2]).unwrap();
    std::fs::write(folder.join("text.png"), "no picture").unwrap();
    image::GrayImage::new(40, 40).save(folder.join("square.png")).unwrap();
    for (frames, parts) in [
        (["cut.png", "good.png"], ["cut.png: ", ""]),
        (["good.jpg", "cut.jpg"], ["cut.jpg: ", "the file ends too early"]),
        (["good.png", "text.png"], ["text.png: ", ""]),
        (["missing.png", "good.png"], ["missing.png: ", "No such file"]),
        (["good.png", "square.png"], ["[40, 48]", "[40, 40]"]),
    ] {
        let output = run_in(&folder, "22_optical_flow", &[frames[0], frames[1], "flow.png"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{frames:?}: {stderr}");
        assert!(
            stderr.starts_with("Error: ") && parts.iter().all(|part| stderr.contains(part)),
            "{frames:?}: {stderr}"
        );
        assert!(!folder.join("flow.png").exists(), "{frames:?}");
    }
    let output = run_in(&folder, "22_optical_flow", &["good.png", "good.png"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("expected two frames and the picture to write"), "{}", text(&output.stderr));
    let most = usize::MAX.to_string();
    for (height, reason) in
        [("tall", "the height"), (&most[..], "is too large"), ("1000000000", "is too large"), ("0", "no pixels")]
    {
        let output = run_in(&folder, "21_ray_march", &["scene.png", height]);
        let stderr = text(&output.stderr);
        assert_eq!((output.status.code(), folder.join("scene.png").exists()), (Some(1), false), "{height}: {stderr}");
        assert!(stderr.starts_with("Error: ") && stderr.contains(reason), "{height}: {stderr}");
    }
}
