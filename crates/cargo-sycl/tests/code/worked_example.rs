//! The worked example of the document on kernel parameters (S-D32), argument by argument: in the program, its image, what `inspect` says and a trace.

use std::fs;
use std::process::Command;

use object::{Object, ObjectSection};
use oxisycl_compiler::SECTION;
use oxisycl_image::{Argument, DeviceImage};

use crate::program::{Built, build, succeed};

/// Path and last name of the type of each argument: an `int`, then an `int` and an `X` for each special value.
const EXPECTED: [(&str, &str); 7] = [
    ("0", "i32"),
    ("1.0", "i32"),
    ("1.1", "X"),
    ("2.sta[0].0", "i32"),
    ("2.sta[0].1", "X"),
    ("2.sta[1].0", "i32"),
    ("2.sta[1].1", "X"),
];

/// One argument of a list in text, as `path: type, 4 bytes at 8`.
fn parse(line: &str) -> Argument {
    let (path, rest) = line.split_once(": ").unwrap_or_else(|| panic!("a path in {line:?}"));
    let (type_name, place) = rest.rsplit_once(", ").unwrap_or_else(|| panic!("a place in {line:?}"));
    let (size, offset) = place.split_once(" bytes at ").unwrap_or_else(|| panic!("an offset in {line:?}"));
    Argument {
        path: path.to_owned(),
        type_name: type_name.to_owned(),
        offset: offset.parse().unwrap(),
        size: size.parse().unwrap(),
    }
}

/// Compares a list with the example, and gives the places of its arguments.
#[track_caller]
fn check(list: &[Argument]) -> Vec<usize> {
    let last = |name: &'_ str| name.rsplit("::").next().unwrap().to_owned();
    let found: Vec<_> = list.iter().map(|argument| (argument.path.as_str(), last(&argument.type_name))).collect();
    assert_eq!(found, EXPECTED.map(|(path, name)| (path, name.to_owned())));
    assert!(list.iter().all(|argument| argument.size == 4), "{list:?}");
    let offsets: Vec<usize> = list.iter().map(|argument| argument.offset).collect();
    let mut sorted = offsets.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 4, 8, 12, 16, 20, 24], "each has a place of its own");
    offsets
}

/// The images in a program's section.
fn images(built: &Built) -> Vec<DeviceImage> {
    let bytes = fs::read(&built.binary).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let section = file.section_by_name(SECTION).expect("the program has images");
    oxisycl_image::decode_bundle(section.data().unwrap()).unwrap()
}

/// The lists in the spans of kernels of a trace file.
fn traced(text: &str) -> Vec<String> {
    let trace: serde_json::Value = serde_json::from_str(text).unwrap();
    let events = trace["traceEvents"].as_array().expect("a list of events");
    let kernels = events.iter().filter(|event| event["cat"] == "kernel");
    kernels.map(|event| event["args"]["arguments"].as_str().expect("a list of arguments").to_owned()).collect()
}

#[test]
fn image_inspect_and_trace_have_the_sequence_of_the_example() {
    let built = build("worked_example", &[]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);

    let images = images(&built);
    let [image] = &images[..] else { panic!("one kernel for one target: {images:?}") };
    let [kernel] = &image.kernels[..] else { panic!("one kernel: {:?}", image.kernels) };
    let of_image = check(&kernel.arguments);
    assert_eq!(kernel.parameters.size, 28, "nothing else is passed");

    let lines = built.kernels.lines().filter_map(|line| line.trim().strip_prefix("argument "));
    let of_inspect: Vec<Argument> = lines.map(parse).collect();
    assert_eq!(of_inspect, kernel.arguments, "{}", built.kernels);

    let trace = built.binary.with_extension("trace.json");
    let mut program = Command::new(&built.binary);
    program.env("OXISYCL_TRACE", &trace).env("OXISYCL_DEVICE_SELECTOR", "host:*");
    let (output, _) = succeed(&mut program);
    let (of_kernel, of_program): (Vec<&str>, Vec<&str>) = output.lines().partition(|line| line.starts_with("item "));
    assert_eq!(of_kernel.len(), 3, "{output}");
    assert!(of_kernel.iter().all(|line| line.ends_with(" has 28")), "{output}");
    let of_program: Vec<Argument> = of_program.into_iter().map(parse).collect();
    assert_eq!(check(&of_program), of_image);

    let lists = traced(&fs::read_to_string(trace).unwrap());
    let [list] = &lists[..] else { panic!("one launch: {lists:?}") };
    let of_trace: Vec<Argument> = list.split("; ").map(parse).collect();
    assert_eq!(of_trace, of_program, "{list}");
}
