//! Tests of the command line and the verdicts that the benchmarks share, and of the GPU benchmark's table. Benchmarks have no harness of their own.

#[path = "../../../benches/arguments.rs"]
mod arguments;
#[path = "../../../benches/gpu/cases.rs"]
mod cases;

use std::collections::BTreeSet;
use std::process::ExitCode;

use super::verdict::Verdict;
use arguments::Arguments;
use cases::CASES;

fn parse(arguments: &[&str]) -> Result<(Arguments, Option<String>), String> {
    let mut reference = None;
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    let read = Arguments::parse(arguments, " [--reference PROGRAM]", |name, value| match name {
        "--reference" => {
            reference = Some(value()?);
            Ok(true)
        }
        _ => Ok(false),
    })?;
    Ok((read, reference))
}

#[test]
fn shared_arguments_and_those_of_one_benchmark_are_read_in_any_order() {
    let (read, reference) = parse(&["--bench"]).unwrap();
    assert_eq!((read.options.rounds, read.json, reference), (15, None, None));
    assert!(read.options.wants("anything") && !read.options.wants_any(&[]));
    let (read, reference) =
        parse(&["--filter", "copy", "--reference", "./peer", "--rounds", "3", "--bench", "--json", "out"]).unwrap();
    assert_eq!((read.options.rounds, read.json, reference), (3, Some("out".into()), Some("./peer".to_owned())));
    assert!(read.options.wants("gpu.stream.copy") && read.options.wants_any(&["gpu.nbody", "gpu.copy.to_host"]));
    assert!(!read.options.wants("gpu.nbody") && !read.options.wants_any(&["gpu.nbody"]));
}

#[test]
fn a_wrong_argument_is_an_error_that_quotes_it() {
    for (arguments, expected) in [
        (&["--rounds", "0"][..], "--rounds 0: expected a number above zero"),
        (&["--rounds", "many"], "--rounds many: expected a number above zero"),
        (&["--filter"], "--filter needs a value"),
        (&["--reference"], "--reference needs a value"),
        (
            &["copy"],
            "unexpected argument copy; arguments: [--json FILE] [--filter SUBSTR] [--rounds N] [--reference PROGRAM]",
        ),
    ] {
        assert_eq!(parse(arguments).unwrap_err(), expected);
    }
}

#[test]
fn a_filter_chooses_cases_and_what_they_are_compared_with() {
    let chosen = |filter: &str| cases::chosen(|name| name.contains(filter));
    let names = |filter: &str| chosen(filter).iter().map(|case| case.name).collect::<Vec<_>>();
    let peers = |filter: &str| cases::peers(&chosen(filter)).into_iter().collect::<Vec<_>>();
    assert_eq!(names("launch"), ["gpu.launch", "gpu.launch.out_of_order", "gpu.first_launch"]);
    assert_eq!(peers("launch"), ["gpu.launch"]);
    assert_eq!(names("chain"), ["gpu.chain", "gpu.chain.tiny", "gpu.chain.tiny.graph"]);
    assert_eq!(peers("chain"), ["gpu.chain.tiny", "gpu.chain.tiny.graph", "gpu.launch"]);
    // Compared with figures of our own.
    assert_eq!((names("started"), peers("started")), (vec!["gpu.started"], vec![]));
    assert_eq!((names("list"), peers("list")), (vec!["gpu.list", "gpu.list.global"], vec!["gpu.list"]));
    assert_eq!(names("copy").len(), 5);
    assert_eq!(names("to_host"), ["gpu.copy.to_host", "gpu.copy.to_host.1gib"]);
    assert_eq!((names("").len(), peers("").len()), (CASES.len(), CASES.len() - 11));
    assert!(chosen("nothing of that name").is_empty());
}

/// Every name is in the reference as a string of its own, and so is every string with a name's beginning in the table.
#[test]
fn the_reference_has_the_figures_of_the_table_and_no_others() {
    let source = include_str!("../../../benches/gpu/reference.cu");
    let strings = source.split('"').skip(1).step_by(2).filter(|string| string.starts_with("gpu."));
    let measured: BTreeSet<&str> = strings.collect();
    assert_eq!(measured, cases::peers(&CASES.iter().collect::<Vec<_>>()));
}

/// What only batching reaches, since the reference launches kernels one by one, and what only a driver reaches that knows a number.
const BETTER: [&str; 5] = [cases::TINY, "gpu.burst.50", "gpu.burst.10", "gpu.mixed", cases::SPECIALISED_GAIN[0]];

#[test]
fn a_bar_allows_what_is_somewhat_worse_than_the_reference_unless_it_has_to_be_better() {
    for case in CASES {
        assert_eq!(case.more_is_better, case.unit.ends_with("/s"), "{case:?}");
        let is_below = case.more_is_better || BETTER.contains(&case.name);
        assert_eq!(is_below, case.bar < 1.0, "{case:?}");
    }
    assert!(BETTER.iter().all(|name| CASES.iter().any(|case| case.name == *name)));
}

#[test]
fn a_missed_bar_never_holds_and_noise_excuses_what_is_not_beyond_it() {
    for (excess, noise, expected) in [
        (0.5, 1.0, "holds"),
        (1.0, 1.0, "holds"),
        (1.01, 1.02, "within noise"),
        (1.02, 1.02, "within noise"),
        (1.03, 1.02, "MISSED"),
        (1.01, 1.0, "MISSED"),
        (f64::INFINITY, 1.5, "MISSED"),
        (f64::NAN, 1.5, "MISSED"),
        (1.5, f64::NAN, "MISSED"),
    ] {
        assert_eq!(Verdict::of(excess, noise).to_string(), expected, "{excess} with {noise}");
    }
    assert_eq!(Verdict::Information.to_string(), "");
}

#[test]
fn a_benchmark_ends_with_0_if_no_bar_is_missed_and_with_2_after_an_error() {
    let run = |result: Result<bool, &'static str>| {
        Arguments::run(parse(&[]).map(|(read, _)| read), "test", |_| result.map_err(Into::into))
    };
    assert_eq!([run(Ok(true)), run(Ok(false)), run(Err("no device"))], [0, 1, 2].map(ExitCode::from));
    let unread = Arguments::run(Err("unknown argument".to_owned()), "test", |_| Ok(true));
    assert_eq!(unread, ExitCode::from(2));
}
