//! Native code for a level of the host's processors: a program that has it does what it does without.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::{Object, ObjectSection};
use oxisycl_image::{DeviceImage, ImageTarget, decode_bundle, encode_bundle};

use crate::program::{Package, succeed};

const PROGRAM: &str = "native";
/// What the symbol of a kernel's native code begins with, and ends with, around the level.
const SYMBOL: [&str; 2] = ["__oxisycl_native_", "_k1_native_failing_"];
/// The kernels that have native code, by the functions that launch them.
const HAVE: [&str; 10] =
    ["beyond", "failing", "fused", "groups", "iterated", "library", "outside", "paired", "plane", "tallied"];
/// The kernels with native code for a level by default: it makes a difference for them.
const BY_DEFAULT: [&str; 6] = ["beyond", "fused", "groups", "paired", "plane", "tallied"];
/// The kernels whose work-items run in the lanes of vectors.
const IN_LANES: [&str; 7] = ["beyond", "fused", "groups", "iterated", "paired", "plane", "tallied"];

fn program(package: &Package, profile: &str, name: &str) -> PathBuf {
    package.folder().join("target/sycl").join(profile).join(name)
}

/// The output of the program, and what it writes to standard error: its panics with backtraces, and how many launches ran native code.
fn run(package: &Package, profile: &str, code: &str) -> (String, String) {
    let mut command = Command::new(program(package, profile, PROGRAM));
    command.env("OXISYCL_HOST_CODE", code).env("RUST_BACKTRACE", "1");
    succeed(&mut command)
}

/// How many launches ran native code.
pub(crate) fn n_native(errors: &str) -> usize {
    let line = errors.lines().find_map(|line| line.strip_prefix("native launches: "));
    line.unwrap_or_else(|| panic!("no number: {errors}")).parse().unwrap()
}

/// The functions of the program whose kernels have native code for a level, as `cargo sycl inspect` lists them.
fn with_code(kernels: &str, level: &str) -> BTreeSet<String> {
    let begin = format!("host:x86_64-unknown-linux-gnu+x86-64-{level}: ");
    let lines = kernels.lines().skip_while(|line| !line.starts_with(&begin)).skip(1);
    let of_target: Vec<&str> = lines.take_while(|line| line.starts_with(' ')).collect();
    // What a kernel has stands below its name.
    let with_code = of_target.windows(2).filter(|lines| lines[1].contains(", native code "));
    with_code.filter_map(|lines| Some(lines[0].strip_prefix("  native::")?.split_once("::")?.0.to_owned())).collect()
}

pub(crate) fn has_v3() -> bool {
    let has = std::arch::is_x86_feature_detected!("avx2");
    if !has {
        println!("native code was not run: the processor has no AVX2");
    }
    has
}

#[test]
fn native_code_computes_and_panics_as_the_programs_own() {
    let package = Package::enter();
    for (profile, targets) in [("release", "host-v3"), ("debug", "host-v3,host-v4")] {
        package.touch(PROGRAM);
        let optimised: &[&str] =
            if profile == "release" { &["--release", "--float", "strict", "--lanes", "1"] } else { &[] };
        let (_, messages) = package.sycl(&[&["build", "--targets", targets, "--bin", PROGRAM], optimised].concat());
        let path = format!("target/sycl/{profile}/{PROGRAM}");
        let (kernels, _) = package.sycl(&["inspect", &path]);
        for level in targets.split(',').map(|target| target.strip_prefix("host-").unwrap()) {
            let note = format!(
                "note: 2 kernels have no image for host:x86_64-unknown-linux-gnu+x86-64-{level}: native::counted::{{{{closure}}}}, \
                 native::remembered::{{{{closure}}}}; `cargo sycl inspect PROGRAM` shows why"
            );
            assert!(messages.contains(&note), "{messages}");
            assert_eq!(with_code(&kernels, level), HAVE.map(str::to_owned).into(), "{kernels}");
        }
        for text in [
            "alone: it uses the static `native::COUNT`, which exists once",
            "alone: it uses the thread-local variable `native::LAST",
        ] {
            assert!(kernels.contains(text), "{text}: {kernels}");
        }

        let (output, errors) = run(&package, profile, "plain");
        assert!(output.contains("\ncounted 1000\n"), "{output}");
        assert!(output.contains("panicked in work-item [500] at ") && output.contains("500 has 3 digits"), "{output}");
        assert!(output.contains("index [1000] is outside the accessor's range [1000], in buffer "), "{output}");
        assert!(errors.contains("500 has 3 digits") && !errors.contains(SYMBOL[0]), "{errors}");
        assert_eq!(n_native(&errors), 0);
        if !has_v3() {
            continue;
        }
        let has_v4 = std::arch::is_x86_feature_detected!("avx512vl");
        for code in ["auto", "v3"] {
            let (native, errors) = run(&package, profile, code);
            assert_eq!(native, output, "{profile} {code}");
            let level = if has_v4 && code == "auto" && targets.ends_with("v4") { "v4" } else { "v3" };
            assert!(errors.contains(&SYMBOL.join(level)), "it unwinds through native code of {level}: {errors}");
            assert_eq!(n_native(&errors), HAVE.len());
        }
        for (code, expected) in [("v5", "expected auto, plain, v3 or v4"), ("v4", "it has not all of x86-64-v4")] {
            if code == "v4" && has_v4 {
                assert_eq!(run(&package, profile, code).0, output);
                continue;
            }
            let mut command = Command::new(program(&package, profile, PROGRAM));
            let ended = command.env("OXISYCL_HOST_CODE", code).output().unwrap();
            let errors = String::from_utf8_lossy(&ended.stderr);
            assert!(!ended.status.success() && ended.stdout.is_empty(), "{ended:?}");
            assert!(
                errors.contains(&format!("OXISYCL_HOST_CODE=\"{code}\": ")) && errors.contains(expected),
                "{errors}"
            );
        }
        if profile == "release" {
            halves_of_another_build_are_refused(&package, &output);
        }
    }
}

/// Changes images of the program, as if its native code were of another build.
fn halves_of_another_build_are_refused(package: &Package, output: &str) {
    let other_captures = |image: &mut DeviceImage| image.kernels[0].parameters.size += 8;
    let behind_the_table = |image: &mut DeviceImage| image.code = DeviceImage::native_code(HAVE.len() as u32);
    for (change, expected) in [
        (&other_captures as &dyn Fn(&mut DeviceImage), "in the image, but "),
        (&behind_the_table, "its image names function 10 of native code, which the table of 10 functions lacks"),
    ] {
        let mut bytes = fs::read(program(package, "release", PROGRAM)).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let (start, size) = file.section_by_name(".oxisycl").and_then(|section| section.file_range()).unwrap();
        let range = start as usize..(start + size) as usize;
        let mut images = decode_bundle(&bytes[range.clone()]).unwrap();
        let is_native =
            |image: &&mut DeviceImage| matches!(image.target, ImageTarget::Host { .. }) && !image.kernels.is_empty();
        images.iter_mut().filter(is_native).for_each(change);
        let changed = encode_bundle(&images).unwrap();
        bytes[range].copy_from_slice(&changed);
        let path = program(package, "release", "changed");
        fs::copy(program(package, "release", PROGRAM), &path).unwrap();
        fs::write(&path, bytes).unwrap();
        let (changed, errors) = succeed(&mut Command::new(path));
        assert_eq!((changed.as_str(), n_native(&errors)), (output, 0));
        let reports: Vec<&str> = errors.lines().filter(|line| line.starts_with("oxisycl: ")).collect();
        let [report] = reports[..] else { panic!("one report: {errors}") };
        assert!(report.contains(expected) && report.contains("the host runs plain code"), "{report}");
    }
}

/// Without symbols and without unwinding.
#[test]
fn native_code_stays_in_a_program_that_is_stripped_and_aborts() {
    let package = Package::enter();
    package.sycl(&["build", "--profile", "stripped", "--targets", "host-v3", "--lanes", "1", "--bin", PROGRAM]);
    let path = program(&package, "stripped", PROGRAM);
    assert_eq!(object::File::parse(&*fs::read(&path).unwrap()).unwrap().symbols().count(), 0);
    let assembly = package.command(&["inspect", path.to_str().unwrap(), "--emit", "asm"]).output().unwrap();
    let error = String::from_utf8_lossy(&assembly.stderr);
    assert!(!assembly.status.success() && error.contains("native: it is stripped: "), "{error}");
    let (plain, errors) = run(&package, "stripped", "plain");
    assert!(plain.contains("\ncounted 1000\n") && !plain.contains("failed"), "{plain}");
    assert_eq!(n_native(&errors), 0);
    if !has_v3() {
        return;
    }
    let (native, errors) = run(&package, "stripped", "v3");
    assert_eq!((native, n_native(&errors)), (plain, 7));
    for code in ["plain", "v3"] {
        let ended = Command::new(&path).arg("fail").env("OXISYCL_HOST_CODE", code).output().unwrap();
        let errors = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.signal(), Some(6), "it aborts: {errors}");
        assert!(errors.contains("item 500 has 3 digits") && errors.contains("src/bin/native.rs:"), "{errors}");
    }
}

/// What the linker does not find takes the native code of its kernels away, and nothing else.
#[test]
fn a_program_links_without_the_native_code_that_cannot_be_linked() {
    const UNLINKED: &str = "unlinked";
    let package = Package::enter();
    package.touch(UNLINKED);
    let (_, messages) = package.sycl(&["build", "--targets", "host-v3", "--bin", UNLINKED]);
    let warnings: Vec<&str> = messages.lines().filter(|line| line.starts_with("warning: ")).collect();
    let [warning, ..] = warnings[..] else { panic!("no warning: {messages}") };
    for text in [
        "the native code of some kernels cannot be linked",
        "kernel `unlinked::never::{{closure}}`: it needs `nowhere`, which the linker does not find",
        "kernel `unlinked::halved::{{closure}}::{{closure}}`: it needs `local_half`, which the linker does not find",
    ] {
        assert!(warning.contains(text), "{text}: {messages}");
    }
    assert!(!messages.contains("error"), "{messages}");
    let path = format!("target/sycl/debug/{UNLINKED}");
    let (kernels, _) = package.sycl(&["inspect", &path]);
    assert!(kernels.contains("alone: it needs `nowhere`, which the linker does not find"), "{kernels}");
    for (code, n) in [("plain", 0), ("auto", usize::from(has_v3()))] {
        let mut command = Command::new(package.folder().join(&path));
        let (output, errors) = succeed(command.env("OXISYCL_HOST_CODE", code));
        assert_eq!((output.as_str(), n_native(&errors)), ("[0, 1, 2] [0, 2, 4]\n", n), "{code}");
    }
}

/// Without a word: the user did not ask for it, and misses nothing.
#[test]
fn optimised_programs_have_native_code_by_default() {
    let package = Package::enter();
    for (profile, expected) in [("dev", &[][..]), ("release", &BY_DEFAULT)] {
        package.touch(PROGRAM);
        let (_, messages) = package.sycl(&["build", "--profile", profile, "--bin", PROGRAM]);
        assert!(!messages.contains("host:") && !messages.contains("native code"), "{profile}: {messages}");
        let folder = if profile == "dev" { "debug" } else { profile };
        let (kernels, _) = package.sycl(&["inspect", &format!("target/sycl/{folder}/{PROGRAM}")]);
        assert_eq!(with_code(&kernels, "v3"), expected.iter().map(|name| (*name).to_owned()).collect(), "{kernels}");
        assert!(kernels.starts_with("sm_70: "), "the devices' code comes first: {kernels}");
        assert_eq!(kernels.contains("its work-items run in vectors of "), profile == "release", "{kernels}");
        let as_fast =
            kernels.contains("plain code alone: it is as fast: its work-items run one by one: it is a single task");
        assert_eq!(as_fast, profile == "release", "{kernels}");
    }
}

#[test]
fn work_items_in_lanes_compute_and_panic_as_one_by_one() {
    let package = Package::enter();
    for (lanes, float) in [("2", "strict"), ("8", "strict"), ("8", "contract")] {
        package.touch(PROGRAM);
        let options = ["--targets", "host-v3", "--lanes", lanes, "--float", float, "--bin", PROGRAM];
        package.sycl(&[&["build", "--release"][..], &options].concat());
        let (kernels, _) = package.sycl(&["inspect", "target/sycl/release/native"]);
        let is_in_lanes = |function: &str| {
            let own = kernels.split_once(&format!("\n  native::{function}::")).expect("a kernel").1;
            let how = own.split_once("its work-items run ").expect("it says how").1;
            how.starts_with(&format!("in vectors of {lanes} lanes (about "))
        };
        assert_eq!(
            HAVE.into_iter().filter(|function| is_in_lanes(function)).collect::<Vec<_>>(),
            IN_LANES,
            "{kernels}"
        );
        report_has_a_line_for_each_loop(&package, lanes);
        match (lanes, float) {
            ("8", "strict") => assembly_is_that_of_the_program(&package),
            ("8", "contract") => bytes_are_those_of_another_build(&package, &options),
            _ => {}
        }
        for reason in ["one by one: it calls `", "one by one: it is a single task"] {
            assert!(kernels.contains(reason), "{reason}: {kernels}");
        }
        if !has_v3() {
            continue;
        }
        let (plain, _) = run(&package, "release", "plain");
        assert!(plain.contains("panicked in work-item [997] at "), "{plain}");
        let (native, panics) = run(&package, "release", "v3");
        let lines: Vec<_> = plain.lines().zip(native.lines()).collect();
        assert_eq!((lines.len(), native.lines().count()), (plain.lines().count(), plain.lines().count()), "{native}");
        let others = lines.iter().filter(|(plain, native)| plain != native);
        let others: Vec<_> = others.map(|(plain, _)| plain.split(' ').next().unwrap_or_default()).collect();
        // A sine of our own, and a product and a sum that are rounded once.
        let expected: &[&str] = if float == "strict" { &[] } else { &["fused", "iterated", "paired"] };
        assert_eq!(others, expected, "{lanes} lanes, {float}: {native}");
        assert!(panics.contains("__oxisycl_native_v3_k1_native_beyond_"), "it unwinds through lanes: {panics}");
    }
}

/// One compilation at a time, and without what was kept, makes the program that many at a time make.
fn bytes_are_those_of_another_build(package: &Package, options: &[&str]) {
    let path = program(package, "release", PROGRAM);
    let first = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    package.touch(PROGRAM);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-cache");
    let _ = fs::remove_dir_all(&cache);
    let mut build = package.command(&[&["build", "--release", "--jobs", "1"], options].concat());
    succeed(build.env("XDG_CACHE_HOME", &cache));
    assert!(fs::read(&path).unwrap() == first, "the bytes of {} differ", path.display());
}

/// Each kernel with its place, and what became of its work-items.
fn report_has_a_line_for_each_loop(package: &Package, lanes: &str) {
    let (report, _) = package.sycl(&["inspect", "target/sycl/release/native", "--emit", "report"]);
    let lines: Vec<&str> = report.lines().collect();
    let Some((sum, lines)) = lines.split_last() else { panic!("no report") };
    let expected =
        "host:x86_64-unknown-linux-gnu+x86-64-v3: 12 kernels, 7 in lanes, 3 one by one, 2 in plain code alone";
    assert_eq!(*sum, expected, "{report}");
    // Of a line: place, function and remark.
    let parts = lines.iter().map(|line| {
        let (place, rest) = line.split_once(": native::").expect("a kernel");
        let (function, remark) = rest.split_once(": x86-64-v3: ").expect("a level");
        let [file, numbers @ ..] = &place.split(':').collect::<Vec<_>>()[..] else { panic!("no place: {line}") };
        assert_eq!(*file, "src/bin/native.rs", "{line}");
        let numbers: Vec<u32> = numbers.iter().map(|number| number.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 2, "line and column: {line}");
        (numbers[0], function.split_once("::").unwrap().0, remark)
    });
    let parts: Vec<_> = parts.collect();
    assert!(parts.is_sorted_by_key(|(line, ..)| *line), "{report}");
    let source = fs::read_to_string(package.folder().join("src/bin/native.rs")).unwrap();
    // Each phase is at its own line.
    let phases: BTreeSet<_> = parts.iter().filter(|(_, name, _)| *name == "groups").map(|(line, ..)| line).collect();
    assert_eq!(phases.len(), 3, "{report}");
    let remarks_of = |name: &str| {
        let begin = source.lines().position(|line| line.starts_with(&format!("fn {name}("))).unwrap() as u32;
        let own = parts.iter().filter(|(_, function, _)| *function == name);
        let own =
            own.inspect(|(line, ..)| assert!((begin..begin + 25).contains(line), "{name} is at {begin}: {report}"));
        own.map(|(_, _, remark)| *remark).collect::<Vec<_>>()
    };
    for (name, begin, n_loops) in [
        ("fused", format!("its work-items run in vectors of {lanes} lanes (about "), 1),
        ("groups", format!("its work-items run in vectors of {lanes} lanes (about "), 3),
        ("outside", "its work-items run one by one: it is a single task".to_owned(), 1),
        ("counted", "plain code alone: it uses the static `native::COUNT`, which exists once".to_owned(), 1),
    ] {
        let remarks = remarks_of(name);
        assert!(
            remarks.len() == n_loops && remarks.iter().all(|remark| remark.starts_with(&begin)),
            "{name}: {report}"
        );
    }
}

/// The assembly of all kernels has their symbols, and instructions of the level.
fn assembly_is_that_of_the_program(package: &Package) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("native-assembly");
    let _ = fs::remove_dir_all(&folder);
    let emit = ["inspect", "target/sycl/release/native", "--emit", "asm"];
    package.sycl(&[&emit[..], &["--out", folder.to_str().unwrap()]].concat());
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    let of_file = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let symbol = name.strip_suffix(".x86-64-v3.s").unwrap_or_else(|| panic!("{name}")).to_owned();
        (symbol, fs::read_to_string(path).unwrap())
    };
    let files: BTreeMap<String, String> = files.map(of_file).collect();
    assert_eq!(files.len(), HAVE.len(), "{:?}", files.keys());
    let of = |function: &str| {
        let mut own = files.iter().filter(|(symbol, _)| symbol.contains(&format!("_native_{function}_")));
        own.next().unwrap_or_else(|| panic!("no {function}: {:?}", files.keys()))
    };
    for (function, instruction) in [
        ("fused", "  vsqrtps ymm"),
        ("fused", "  # sinf\n"),
        ("paired", "  vsqrtps ymm"),
        ("beyond", "  # oxisycl_device::bounds::"),
    ] {
        let (symbol, text) = of(function);
        assert!(text.starts_with(&format!("{}v3_{symbol}:\n       0:  ", SYMBOL[0])), "{text}");
        assert!(text.contains(instruction) && !text.contains(".byte"), "{instruction}: {text}");
        let jump = text.lines().find_map(|line| line.split_once(" .L")).expect("a jump").1;
        assert!(text.contains(&format!("\n.L{jump}:\n{jump:>8}:  ")), "{jump}: {text}");
    }
    // Assembly of the oldest processors in the source is none here, and iterators over pairs call nothing for their length.
    let (_, pairs) = of("paired");
    assert!(!pairs.contains(" sqrtss ") && !pairs.contains("TrustedRandomAccess"), "{pairs}");
    // Functions of the standard library that are not inlined belong to a kernel, too.
    let is_label = |line: &&str| line.ends_with(':') && line.contains("9quicksort9quicksort");
    assert_eq!(of("library").1.lines().filter(is_label).count(), 1, "{}", of("library").1);
    let (symbol, text) = of("plane");
    let (shown, _) = package.sycl(&[&emit[..], &["--kernel", symbol]].concat());
    let first = shown.lines().next().unwrap();
    assert!(first.starts_with("# kernel native::plane::") && first.contains(symbol) && first.ends_with("+x86-64-v3"));
    assert_eq!(shown.split_once('\n').unwrap().1, text);
}
