//! Runs the example `resize` as a user would, over good and bad files.
//!
//! Invariant: whatever the input, the program either works, or says what is wrong and leaves no broken file.
#![cfg(feature = "image")]

#[path = "support/example.rs"]
mod example;

use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::OnceLock;

use image::{DynamicImage, GrayAlphaImage, GrayImage, ImageFormat, Luma, LumaA, Rgb, RgbImage, Rgba, RgbaImage};

const FILTERS: [&str; 5] = ["nearest", "area", "bilinear", "bicubic", "lanczos"];

/// A folder of one test, empty at its beginning.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resize").join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn write(&self, name: &str, picture: impl Into<DynamicImage>) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        let format = ImageFormat::from_path(name).expect("the name says the format");
        picture.into().write_to(&mut bytes, format).expect("the test's picture can be written");
        fs::write(self.0.join(name), bytes.get_ref()).expect("a file of the test");
        bytes.into_inner()
    }

    fn read(&self, name: &str) -> DynamicImage {
        image::open(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let program = PROGRAM.get_or_init(|| example::built("resize"));
        example::command(program).current_dir(&self.0).args(arguments).output().expect("the program starts")
    }

    fn works(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        text(&output.stdout)
    }

    /// Expects one line on standard error with all of `parts`, and no file that was begun.
    fn fails(&self, code: i32, arguments: &[&str], parts: &[&str]) {
        let output = self.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "{arguments:?}: \"{part}\" is not in: {stderr}");
        }
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(names.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn colours(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| Rgb([(x * 5) as u8, (y * 7) as u8, ((x * y) % 251) as u8]))
}

#[test]
fn sizes_follow_the_options_and_keep_the_shape() {
    let folder = Folder::new("sizes");
    folder.write("in.png", colours(40, 30));
    let cases: [(&[&str], (u32, u32)); 7] = [
        (&["--width", "20"], (20, 15)),
        (&["--height=60"], (80, 60)),
        (&["--width", "7", "--height", "50"], (7, 50)),
        (&["--scale", "0.5"], (20, 15)),
        (&["--scale", "250%"], (100, 75)),
        (&["--scale", "0.001"], (1, 1)),
        (&["--width", "1"], (1, 1)),
    ];
    for (options, (width, height)) in cases {
        let stdout = folder.works(&[options, &["--force", "in.png", "out.png"]].concat());
        let line = format!("in.png: 40 x 30 -> out.png: {width} x {height}");
        assert_eq!(stdout.trim(), line);
        let picture = folder.read("out.png");
        assert_eq!((picture.width(), picture.height()), (width, height), "{options:?}");
    }
}

#[test]
fn a_plain_picture_stays_plain_and_the_own_size_changes_nothing() {
    let folder = Folder::new("plain");
    folder.write("plain.png", RgbImage::from_pixel(33, 21, Rgb([200, 100, 3])));
    let colours = colours(33, 21);
    folder.write("colours.png", colours.clone());
    for filter in FILTERS {
        for size in [["--width", "10"], ["--height", "64"]] {
            folder.works(&[&size[..], &["--filter", filter, "--force", "plain.png", "out.png"]].concat());
            let picture = folder.read("out.png").into_rgb8();
            assert!(picture.pixels().all(|pixel| pixel.0 == [200, 100, 3]), "{filter}, {size:?}");
        }
        folder.works(&["--scale", "1", "--filter", filter, "--force", "colours.png", "out.png"]);
        assert_eq!(folder.read("out.png").into_rgb8(), colours, "{filter}");
    }
}

/// Light from 0 to 1 of a byte along the curve of sRGB.
fn light(byte: u8) -> f64 {
    let level = f64::from(byte) / 255.0;
    if level <= 0.04045 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) }
}

#[test]
fn many_pixels_become_the_mean_of_their_light() {
    let folder = Folder::new("light");
    // Stripes that a filter of two taps would miss, and a mean that is not that of the bytes.
    folder.write("in.png", GrayImage::from_fn(64, 64, |x, _| Luma([if x % 8 == 0 { 255 } else { 0 }])));
    folder.works(&["--scale", "0.125", "--filter", "area", "in.png", "out.png"]);
    let DynamicImage::ImageLuma8(picture) = folder.read("out.png") else { panic!("grey stays grey") };
    assert_eq!(picture.dimensions(), (8, 8));
    assert!(picture.pixels().all(|pixel| (light(pixel[0]) - 0.125).abs() < 0.005), "{:?}", picture.get_pixel(3, 3));
    // Each filter looks at all pixels, but the nearest.
    for filter in &FILTERS[1..] {
        folder.works(&["--width", "1", "--height", "1", "--filter", filter, "--force", "in.png", "out.png"]);
        let level = light(folder.read("out.png").into_luma8().get_pixel(0, 0)[0]);
        assert!((level - 0.125).abs() < 0.05, "{filter}: {level}");
    }
}

#[test]
fn transparent_colours_do_not_count() {
    let folder = Folder::new("opacity");
    let column = |x: u32| if x.is_multiple_of(2) { Rgba([250, 10, 20, 255]) } else { Rgba([0, 255, 0, 0]) };
    folder.write("in.png", RgbaImage::from_fn(16, 16, |x, _| column(x)));
    folder.works(&["--scale", "50%", "--filter", "area", "in.png", "out.png"]);
    let DynamicImage::ImageRgba8(picture) = folder.read("out.png") else { panic!("opacity stays") };
    assert!(picture.pixels().all(|pixel| pixel.0 == [250, 10, 20, 128]), "{:?}", picture.get_pixel(0, 0));
    // A JPEG picture has none: white is behind.
    folder.write("clear.png", GrayAlphaImage::from_pixel(16, 16, LumaA([0, 0])));
    folder.works(&["--scale", "1", "--quality", "100", "clear.png", "clear.jpg"]);
    let DynamicImage::ImageLuma8(picture) = folder.read("clear.jpg") else { panic!("grey stays grey") };
    assert!(picture.pixels().all(|pixel| pixel[0] >= 253));
}

#[test]
fn several_pictures_go_to_a_folder_and_one_bad_file_stops_none_of_the_others() {
    let folder = Folder::new("several");
    folder.write("a.png", colours(20, 10));
    folder.write("b.jpg", colours(30, 40));
    folder.write("c.png", colours(8, 8));
    folder.works(&["--scale", "1", "c.png", "c.bmp"]);
    fs::write(folder.0.join("bad.png"), "no picture").unwrap();
    folder.works(&["--scale", "0.5", "--format", "jpg", "a.png", "b.jpg", "c.bmp", "out"]);
    let sizes =
        ["a.jpg", "b.jpg", "c.jpg"].map(|name| folder.read(&format!("out/{name}"))).map(|p| (p.width(), p.height()));
    assert_eq!(sizes, [(10, 5), (15, 20), (4, 4)]);
    let output = folder.run(&["--scale", "0.5", "bad.png", "a.png", "more/"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("\"bad.png\": it is no PNG, JPEG, BMP or PNM") && stderr.contains("1 of 2"), "{stderr}");
    assert_eq!(folder.read("more/a.png").width(), 10);
}

#[test]
fn quality_is_that_of_jpeg_files() {
    let folder = Folder::new("quality");
    folder.write("in.png", colours(100, 100));
    let size = |quality: &str| {
        folder.works(&["--scale", "1", "--quality", quality, "--force", "in.png", "out.jpg"]);
        fs::metadata(folder.0.join("out.jpg")).unwrap().len()
    };
    assert!(2 * size("10") < size("95"));
}

#[test]
fn bad_files_are_told_with_path_and_reason() {
    let folder = Folder::new("bad");
    let png = folder.write("whole.png", colours(60, 40));
    let jpeg = folder.write("whole.jpg", colours(60, 40));
    let [bmp, ppm] = ["whole.bmp", "whole.ppm"].map(|name| {
        folder.works(&["--scale", "1", "whole.png", name]);
        fs::read(folder.0.join(name)).unwrap()
    });
    let mut huge = png.clone();
    huge[16..24].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF]);
    let cases: [(&str, &[u8], &str); 10] = [
        ("empty.png", b"", "the file is empty"),
        ("text.jpg", b"this is a text\n", "no PNG, JPEG, BMP or PNM"),
        ("gif.gif", b"GIF89a\x01\x00\x01\x00", "no PNG, JPEG, BMP or PNM"),
        ("short.png", &png[..png.len() / 2], ""),
        ("short.jpg", &jpeg[..jpeg.len() / 2], "ends too early"),
        ("end.jpg", &jpeg[..jpeg.len() - 1], "ends too early"),
        ("short.bmp", &bmp[..bmp.len() / 2], "ends too early"),
        ("short.ppm", &ppm[..ppm.len() / 2], "ends too early"),
        ("header.jpg", &jpeg[..20], "ends too early"),
        ("huge.png", &huge, ""),
    ];
    for (name, bytes, reason) in cases {
        fs::write(folder.0.join(name), bytes).unwrap();
        folder.fails(1, &["--scale", "0.5", name, "out.png"], &["cannot read", name, reason]);
        assert!(!folder.0.join("out.png").exists(), "{name}");
    }
    folder.fails(1, &["--scale", "2", "missing.png", "out.png"], &["missing.png", "there is no such file"]);
    folder.fails(1, &["--scale", "5000", "whole.png", "out.png"], &["whole.png", "too many"]);
    folder.fails(1, &["--scale", "2", "whole.png", "none/out.png"], &["cannot write", "none/out.png"]);
}

#[test]
fn no_file_is_overwritten_unasked_and_an_input_never() {
    let folder = Folder::new("overwrite");
    let bytes = folder.write("in.png", colours(10, 10));
    folder.write("out.png", colours(3, 3));
    folder.fails(1, &["--scale", "2", "in.png", "out.png"], &["out.png", "--force"]);
    folder.fails(1, &["--scale", "2", "--force", "in.png", "in.png"], &["it is one of the inputs"]);
    folder.fails(1, &["--scale", "2", "in.png", "./in.png", "new"], &["two inputs"]);
    assert_eq!(fs::read(folder.0.join("in.png")).unwrap(), bytes);
    assert_eq!(folder.read("out.png").width(), 3);
    folder.works(&["--scale", "2", "--force", "in.png", "out.png"]);
    assert_eq!(folder.read("out.png").width(), 20);
}

#[test]
fn a_wrong_command_line_is_told_with_a_code_of_its_own() {
    let folder = Folder::new("usage");
    folder.write("in.png", colours(4, 4));
    let cases: [(&[&str], &str); 11] = [
        (&["in.png", "out.png"], "a size is missing"),
        (&["--scale", "2", "in.png"], "an input and an output"),
        (&["--scale", "2", "--width", "5", "in.png", "out.png"], "--scale stands alone"),
        (&["--scale", "-1", "in.png", "out.png"], "above zero"),
        (&["--scale", "nan", "in.png", "out.png"], "above zero"),
        (&["--width", "0", "in.png", "out.png"], "from 1 to"),
        (&["--height", "many", "in.png", "out.png"], "many"),
        (&["--scale", "2", "--quality", "101", "in.png", "out.png"], "from 1 to 100"),
        (&["--scale", "2", "--filter", "cubist", "in.png", "out.png"], "bicubic"),
        (&["--scale", "2", "--format", "gif", "in.png", "out.png"], "gif"),
        (&["--colour"], "--colour"),
    ];
    for (arguments, part) in cases {
        folder.fails(2, arguments, &[part, "--help"]);
    }
    folder.fails(1, &["--scale", "2", "in.png", "out.gif"], &["cannot write", "out.gif", ".png"]);
    assert!(folder.works(&["--help"]).contains("usage: resize"));
}
