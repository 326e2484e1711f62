//! Runs the example `tour` as a user would, over pictures in all odd forms.
//!
//! Invariant: whatever the input, the program either works, or says what is wrong in one line and ends with a code of its own.

#[path = "support/example.rs"]
mod example;

use std::collections::HashSet;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use image::{DynamicImage, ImageBuffer, ImageFormat, Luma, Rgba};

fn tour() -> &'static Path {
    static TOUR: OnceLock<PathBuf> = OnceLock::new();
    TOUR.get_or_init(|| example::built("tour"))
}

/// A folder of one test, empty at its beginning.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tour").join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a file of the test");
        path
    }

    /// Runs the tour on a picture, with its results in `out` of this folder.
    fn run(&self, picture: Option<&Path>, settings: &[(&str, &str)], arguments: &[&str]) -> Output {
        let mut command = example::command(tour());
        command.current_dir(&self.0).envs(settings.iter().copied()).args(picture);
        command.args(["--out", "out"]).args(arguments).output().expect("the tour starts")
    }

    /// Runs it, and expects that it works and checks its results.
    fn works(&self, picture: Option<&Path>, settings: &[(&str, &str)], arguments: &[&str]) -> String {
        let output = self.run(picture, settings, arguments);
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{picture:?}: {stderr}");
        assert_eq!(stderr, "", "{picture:?}");
        assert!(stdout.contains("agree with plain Rust"), "{picture:?}: {stdout}");
        self.fits_a_terminal(&stdout);
        for name in ["result.png", "edges.png", "histogram.png"] {
            assert!(self.path("out").join(name).exists(), "{picture:?}: no {name}");
        }
        stdout
    }

    /// Expects lines of at most 80 columns. The test's own paths, which are as long as the folder's, do not count.
    fn fits_a_terminal(&self, stdout: &str) {
        let folder = format!("{}/", self.0.display());
        for line in stdout.lines() {
            let columns = line.replace(&folder, "").chars().count();
            assert!(columns <= 80, "{columns} columns: {line}");
        }
    }

    /// Runs it, and expects one line on standard error that contains all of `parts`.
    fn fails(&self, picture: Option<&Path>, settings: &[(&str, &str)], arguments: &[&str], parts: &[&str]) {
        let output = self.run(picture, settings, arguments);
        check_failure(&output, 1, parts);
    }

    fn result(&self) -> DynamicImage {
        image::open(self.path("out").join("result.png")).expect("the result is a picture")
    }
}

fn check_failure(output: &Output, code: i32, parts: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "more than a line: {stderr}");
    let message = stderr.strip_prefix("error: ").unwrap_or_else(|| panic!("no error: {stderr}"));
    let starts_lower = message.chars().next().is_some_and(|first| !first.is_uppercase());
    assert!(starts_lower || message.starts_with("OXISYCL_"), "{message}");
    assert!(!message.trim_end().ends_with('.'), "{message}");
    for part in parts {
        assert!(message.contains(part), "\"{part}\" is not in: {message}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).expect("the test's picture can be written");
    bytes.into_inner()
}

/// Something with edges, and with more tones in one channel than in another.
fn sample(x: u32, y: u32) -> [u16; 4] {
    let wave = (x * 977 + y * 1973 + (x * y) % 4099) as u16;
    let step = if (x / 7 + y / 5).is_multiple_of(2) { 20_000 } else { 45_000 };
    [wave, step, (x * 600) as u16, u16::MAX - (y * 500) as u16]
}

fn colours(width: u32, height: u32) -> DynamicImage {
    DynamicImage::ImageRgba16(ImageBuffer::from_fn(width, height, |x, y| Rgba(sample(x, y))))
}

#[test]
fn a_picture_is_made_up_without_a_path() {
    let folder = Folder::new("made-up");
    let stdout = folder.works(None, &[], &["--size", "120x80"]);
    assert!(stdout.contains("made up: 120 x 80 pixels"), "{stdout}");
    let first = fs::read(folder.path("out/result.png")).unwrap();
    folder.works(None, &[("OXISYCL_SIMULATED", "2")], &["--size", "120x80"]);
    assert_eq!(first, fs::read(folder.path("out/result.png")).unwrap(), "the same on any number of devices");
}

/// A time as the tour prints it, in seconds.
fn seconds(time: &str) -> f64 {
    let (number, unit) = time.trim().split_once(' ').unwrap_or_else(|| panic!("no time: {time}"));
    let factor = match unit {
        "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => panic!("no unit: {time}"),
    };
    number.parse::<f64>().unwrap_or_else(|_| panic!("no number: {time}")) * factor
}

#[test]
fn the_time_of_plain_rust_stands_beside_the_devices_own() {
    let folder = Folder::new("times");
    let stdout = folder.works(None, &[("OXISYCL_SIMULATED", "2")], &["--size", "120x80"]);
    let line = stdout.lines().find_map(|line| line.trim().strip_prefix("plain Rust took "));
    let times = line.and_then(|line| line.split_once(" on one thread, the devices "));
    let (plain, devices) = times.unwrap_or_else(|| panic!("no times: {stdout}"));
    for time in [plain, devices] {
        assert!((1e-7..60.0).contains(&seconds(time)), "{time}");
    }
    let own = stdout.lines().find_map(|line| line.split_once(" of device time, ")).map(|(time, _)| time.trim());
    assert_eq!(own, Some(devices), "the devices' time is the same in both places: {stdout}");
}

#[test]
fn the_output_of_many_devices_fits_a_terminal() {
    let folder = Folder::new("columns");
    let settings = [("OXISYCL_SIMULATED", "12"), ("OXISYCL_DEVICE_SELECTOR", "simulated:*")];
    let stdout = folder.works(None, &settings, &["--size", "600x1200"]);
    let names: Vec<String> = (0..12).map(|number| format!("simulated:{number}")).collect();
    let (_, rows) = stdout.split_once("rows: ").expect("the rows of each device");
    for name in names {
        assert!(rows.contains(&format!("{name} ")), "{name} is not in: {rows}");
    }
}

#[test]
fn every_colour_type_works_and_keeps_its_size_and_opacity() {
    let folder = Folder::new("colours");
    let (width, height) = (45, 38);
    let all = colours(width, height);
    let forms = [
        ("grey8", DynamicImage::ImageLuma8(all.to_luma8())),
        ("greya8", DynamicImage::ImageLumaA8(all.to_luma_alpha8())),
        ("rgb8", DynamicImage::ImageRgb8(all.to_rgb8())),
        ("rgba8", DynamicImage::ImageRgba8(all.to_rgba8())),
        ("grey16", DynamicImage::ImageLuma16(all.to_luma16())),
        ("greya16", DynamicImage::ImageLumaA16(all.to_luma_alpha16())),
        ("rgb16", DynamicImage::ImageRgb16(all.to_rgb16())),
        ("rgba16", all.clone()),
    ];
    for (name, image) in forms {
        let path = folder.write(&format!("{name}.png"), &encoded(&image, ImageFormat::Png));
        let stdout = folder.works(Some(&path), &[("OXISYCL_SIMULATED", "2")], &[]);
        assert_eq!(name.ends_with("16"), stdout.contains("16 bits, taken as 8"), "{stdout}");
        let result = folder.result();
        assert_eq!((result.width(), result.height()), (width, height), "{name}");
        assert_eq!(result.color().has_alpha(), image.color().has_alpha(), "{name}");
        let opacity = |image: &DynamicImage| image.to_rgba8().pixels().map(|pixel| pixel[3]).collect::<Vec<_>>();
        assert_eq!(opacity(&result), opacity(&image), "{name}");
    }
    for (name, image) in
        [("grey", DynamicImage::ImageLuma8(all.to_luma8())), ("rgb", DynamicImage::ImageRgb8(all.to_rgb8()))]
    {
        let path = folder.write(&format!("{name}.jpg"), &encoded(&image, ImageFormat::Jpeg));
        folder.works(Some(&path), &[], &[]);
    }
}

#[test]
fn tiny_narrow_and_plain_pictures_work() {
    let folder = Folder::new("extents");
    for (width, height) in [(1, 1), (2, 1), (1, 2), (3, 3), (1, 500), (20_000, 1), (17, 16), (12, 33)] {
        let image = DynamicImage::ImageRgb8(colours(width, height).to_rgb8());
        let path = folder.write("picture.png", &encoded(&image, ImageFormat::Png));
        folder.works(Some(&path), &[("OXISYCL_SIMULATED", "3")], &[]);
        assert_eq!((folder.result().width(), folder.result().height()), (width, height));
    }
    for level in [0, 128, 255] {
        let image = DynamicImage::ImageLuma8(ImageBuffer::from_pixel(30, 20, Luma([level])));
        let path = folder.write("plain.png", &encoded(&image, ImageFormat::Png));
        folder.works(Some(&path), &[], &[]);
        let levels: HashSet<[u8; 3]> = folder.result().to_rgb8().pixels().map(|pixel| pixel.0).collect();
        assert_eq!(levels.len(), 1, "a plain picture stays plain");
    }
}

#[test]
fn a_picture_larger_than_device_memory_is_worked_on_in_strips() {
    let folder = Folder::new("strips");
    let image = DynamicImage::ImageRgb8(colours(120, 300).to_rgb8());
    let path = folder.write("picture.png", &encoded(&image, ImageFormat::Png));
    folder.works(Some(&path), &[("OXISYCL_SIMULATED", "2")], &[]);
    let whole = fs::read(folder.path("out/result.png")).unwrap();
    let settings = [("OXISYCL_SIMULATED", "2"), ("OXISYCL_SIMULATED_MEMORY", "600k")];
    let stdout = folder.works(Some(&path), &settings, &[]);
    assert!(stdout.contains("strips"), "{stdout}");
    assert_eq!(whole, fs::read(folder.path("out/result.png")).unwrap(), "strips leave no seams");
}

#[test]
fn what_is_no_picture_is_told_with_path_and_reason() {
    let folder = Folder::new("no-picture");
    let picture = encoded(&DynamicImage::ImageRgb8(colours(60, 40).to_rgb8()), ImageFormat::Png);
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.png", b"", "the file is empty"),
        ("text.png", b"this is a text\n", "neither a PNG nor a JPEG"),
        ("zeros.jpg", &[0; 100], "neither a PNG nor a JPEG"),
        ("signature.png", &picture[..8], "ends too early"),
        ("header.png", &picture[..40], ""),
        ("truncated.png", &picture[..picture.len() * 2 / 3], "ends too early"),
    ];
    for (name, bytes, reason) in cases {
        let path = folder.write(name, bytes);
        folder.fails(Some(&path), &[], &[], &["cannot read", name, reason]);
    }
    folder.fails(Some(&folder.path("missing.png")), &[], &[], &["missing.png", "there is no such file"]);
    folder.fails(Some(&folder.0), &[], &[], &["no-picture", "it is a folder"]);
    let jpeg = encoded(&DynamicImage::ImageRgb8(colours(60, 40).to_rgb8()), ImageFormat::Jpeg);
    let path = folder.write("header.jpg", &jpeg[..20]);
    folder.fails(Some(&path), &[], &[], &["header.jpg"]);
    assert!(!folder.path("out").exists(), "nothing is written before the picture is read");
}

/// A decoder shows what there is of such a picture, and says nothing.
#[test]
fn a_truncated_jpeg_is_told() {
    let folder = Folder::new("truncated-jpeg");
    let jpeg = encoded(&DynamicImage::ImageRgb8(colours(60, 40).to_rgb8()), ImageFormat::Jpeg);
    for length in [jpeg.len() / 4, jpeg.len() / 2, jpeg.len() - 2, jpeg.len() - 1] {
        let path = folder.write("truncated.jpg", &jpeg[..length]);
        folder.fails(Some(&path), &[], &[], &["cannot read", "truncated.jpg", "the file ends too early"]);
    }
    assert!(!folder.path("out").exists(), "nothing is written before the picture is read");
    // Behind the end there may be anything: here a film with the marker of pixels.
    let path = folder.write("whole.jpg", &[&jpeg[..], b"film\xFF\xDA"].concat());
    folder.works(Some(&path), &[], &[]);
}

/// The checksum of a PNG chunk.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    })
}

#[test]
fn a_header_that_claims_huge_extents_allocates_nothing() {
    let folder = Folder::new("huge");
    let mut bytes = encoded(&DynamicImage::ImageRgb8(colours(2, 2).to_rgb8()), ImageFormat::Png);
    for (width, height) in [(2_000_000_000u32, 2_000_000_000u32), (100_000, 1), (60_000, 60_000)] {
        // After the signature: length and name of the first chunk, then width and height.
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        let checksum = crc(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
        let path = folder.write("huge.png", &bytes);
        folder.fails(Some(&path), &[], &[], &["huge.png"]);
    }
}

#[test]
fn an_unwritable_output_is_told_with_its_path() {
    let folder = Folder::new("unwritable");
    let file = folder.write("file", b"");
    let output = example::command(tour()).args(["--size", "20x20", "--out"]).arg(file.join("out")).output().unwrap();
    check_failure(&output, 1, &["file", "not a folder"]);
    let output = example::command(tour()).args(["--size", "20x20", "--out"]).arg(&file).output().unwrap();
    check_failure(&output, 1, &["cannot create the folder", "file"]);
    fs::create_dir_all(folder.path("out/edges.png")).unwrap();
    folder.fails(None, &[], &["--size", "20x20"], &["cannot write", "edges.png", "it is a folder"]);
}

#[test]
fn the_picture_itself_is_never_overwritten() {
    let folder = Folder::new("overwrite");
    fs::create_dir_all(folder.path("out")).unwrap();
    let bytes = encoded(&DynamicImage::ImageRgb8(colours(9, 9).to_rgb8()), ImageFormat::Png);
    let path = folder.write("out/result.png", &bytes);
    folder.fails(Some(&path), &[], &[], &["result.png", "--out"]);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn devices_are_chosen_by_position_kind_and_name() {
    let folder = Folder::new("devices");
    // Positions count the devices of drivers, too.
    let settings = [("OXISYCL_SIMULATED", "3"), ("OXISYCL_DEVICE_SELECTOR", "host:*;simulated:*")];
    let run = |arguments: &[&str]| {
        let stdout = folder.works(None, &settings, &[&["--size", "30x70"], arguments].concat());
        // Many devices take more than one line.
        let (rows, _) = stdout.split_once("rows: ").and_then(|(_, rest)| rest.split_once("\n\n")).expect("rows");
        let names = rows.split(&[' ', ',', '\n'][..]).filter(|word| word.contains(':'));
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(run(&[]), ["host:0", "simulated:0", "simulated:1", "simulated:2"]);
    assert_eq!(run(&["--device", "2"]), ["simulated:1"]);
    assert_eq!(run(&["--device=simulated:2", "--device", "0"]), ["simulated:2", "host:0"]);
    assert_eq!(run(&["--device", "accelerator"]), ["simulated:0", "simulated:1", "simulated:2"]);
    assert_eq!(run(&["--device", "cpu", "--device", "host"]), ["host:0"], "each device once");
    folder.fails(None, &settings, &["--device", "gpu"], &["there is no device \"gpu\"", "1 (simulated:0)"]);
}

#[test]
fn failures_of_devices_and_settings_are_one_line() {
    let folder = Folder::new("faults");
    let small = ["--size", "40x40"];
    for faults in ["launch:1", "launch:3@1", "launch:5", "copy:1", "copy:4", "allocate:2", "allocate:3@1"] {
        let settings = [("OXISYCL_SIMULATED", "2"), ("OXISYCL_SIMULATED_FAULTS", faults)];
        folder.fails(None, &settings, &small, &["simulated device", "injected fault"]);
    }
    let settings = [("OXISYCL_SIMULATED", "1"), ("OXISYCL_SIMULATED_MEMORY", "1k")];
    folder.fails(None, &settings, &small, &["out of memory"]);
    folder.fails(None, &[("OXISYCL_DEVICE_SELECTOR", "nonsense")], &small, &["OXISYCL_DEVICE_SELECTOR", "nonsense"]);
    folder.fails(None, &[("OXISYCL_DEVICE_SELECTOR", "cuda:*")], &small, &["no device"]);
    folder.fails(None, &[("OXISYCL_SIMULATED", "many")], &small, &["OXISYCL_SIMULATED"]);
}

#[test]
fn a_wrong_command_line_is_told_with_a_code_of_its_own() {
    let folder = Folder::new("usage");
    let cases: [(&[&str], &str); 8] = [
        (&["--colour"], "--colour"),
        (&["--size", "big"], "big"),
        (&["--size", "0x10"], "0 x 10"),
        (&["--size", "70000x1"], "too many"),
        (&["--size"], "--size needs"),
        (&["--device"], "--device needs"),
        (&["--out"], "--out needs"),
        (&["a.png", "b.png"], "only one picture"),
    ];
    for (arguments, part) in cases {
        check_failure(&folder.run(None, &[], arguments), 2, &[part, "--help"]);
    }
    let output = folder.run(None, &[], &["--help"]);
    assert!(output.status.success() && text(&output.stdout).contains("usage: tour"));
    folder.fits_a_terminal(&text(&output.stdout));
}
