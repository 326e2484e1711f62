//! The parts of the bundle: which programs it holds, how each is started, and how its output is counted.
//!
//! A part is a program of this workspace and its arguments. Each must end within [`LIMIT`] on one GPU; what takes longer is
//! listed as several parts.

use std::time::Duration;

use crate::counts::Counts;
use crate::crates;

/// The longest that a part may run: the lender of a machine may allow ten minutes for a command.
pub(crate) const LIMIT: Duration = Duration::from_secs(8 * 60);

/// The environment of a second run, in which small kernels are always launched together.
pub(crate) const BATCHING_FORCED: (&str, &str) = ("OXISYCL_BATCHING", "always");

/// A program of the bundle, and what is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// `test`, `bench` or `example`.
    pub(crate) kind: &'static str,
    /// The target of that kind.
    pub(crate) target: &'static str,
    /// Whether kernels of the program were written in Rust, so that it must contain device images.
    pub(crate) has_images: bool,
    /// `{out}` stands for the folder of the results.
    pub(crate) arguments: &'static [&'static str],
    /// The folder of the benchmark that takes `--reference PROGRAM`, a program that nvcc builds on the machine.
    pub(crate) reference: Option<&'static str>,
    /// Whether it runs a second time, with [`BATCHING_FORCED`].
    pub(crate) is_repeated: bool,
    pub(crate) counting: Counting,
    pub(crate) what: &'static str,
}

/// How results are read from what a program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// The closing line of a suite whose tests name the device.
    Conformance,
    /// The closing line of Rust's test harness, or of one that writes the same.
    Harness,
    /// One line for each figure, with a verdict if there was something to compare it with.
    Figures,
    /// The exit status, and that this was written.
    Saying(&'static str),
}

/// What a part found out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "conformance",
        package: "oxisycl",
        kind: "test",
        target: "conformance",
        has_images: true,
        arguments: &["--device", "cuda"],
        reference: None,
        is_repeated: true,
        counting: Counting::Conformance,
        what: "the conformance suite on each CUDA device",
    },
    Part {
        name: "kernels",
        package: "oxisycl-kernel-suite",
        kind: "test",
        target: "kernels",
        has_images: true,
        arguments: &["--device", "cuda"],
        reference: None,
        is_repeated: true,
        counting: Counting::Conformance,
        what: "kernels of ordinary Rust code and of published crates, compared with plain Rust",
    },
    Part {
        name: "crates",
        package: crates::PACKAGE,
        kind: "test",
        target: crates::TEST,
        has_images: true,
        arguments: &["--device", "cuda"],
        reference: None,
        is_repeated: true,
        counting: Counting::Conformance,
        what: "kernels that call thirty published crates, compared with plain Rust",
    },
    Part {
        name: "fuzz",
        package: "oxisycl-kernel-suite",
        kind: "test",
        target: "fuzz",
        has_images: true,
        arguments: &["--device", "cuda"],
        reference: None,
        is_repeated: true,
        counting: Counting::Conformance,
        what: "random kernels, compared bit for bit with plain Rust",
    },
    Part {
        name: "math",
        package: "oxisycl",
        kind: "test",
        target: "math",
        has_images: true,
        arguments: &["--nocapture", "--test-threads", "1"],
        reference: None,
        is_repeated: true,
        counting: Counting::Harness,
        what: "the accuracy of mathematical functions, compared with the specification's limits",
    },
    Part {
        name: "backend",
        package: "oxisycl-backend-cuda",
        kind: "test",
        target: "gpu",
        has_images: false,
        arguments: &["--test-threads", "1"],
        reference: None,
        is_repeated: false,
        counting: Counting::Harness,
        what: "the CUDA backend alone: the backend contract, panics, a lost device, peer copies",
    },
    Part {
        name: "tour",
        package: "oxisycl-examples",
        kind: "example",
        target: "tour",
        has_images: true,
        // Its choice of a device is a part of what is tested.
        arguments: &["--out", "{out}/tour"],
        reference: None,
        is_repeated: false,
        counting: Counting::Saying("rows: cuda:"),
        what: "the example `tour` on the device that it chooses, which must be a GPU; it checks its picture against plain Rust",
    },
    Part {
        name: "benchmark",
        package: "oxisycl",
        kind: "bench",
        target: "gpu",
        has_images: true,
        arguments: &["--json", "{out}/benchmark.json"],
        reference: Some("gpu"),
        is_repeated: false,
        counting: Counting::Figures,
        what: "the GPU benchmark, beside CUDA C++ if there is nvcc",
    },
    Part {
        name: "images",
        package: "oxisycl",
        kind: "bench",
        target: "images",
        has_images: true,
        // A filter of the command comes behind this one, and replaces it.
        arguments: &["--json", "{out}/images.json", "--filter", "images.gpu"],
        reference: Some("images"),
        is_repeated: false,
        counting: Counting::Figures,
        what: "the benchmark of images, beside plain loads and texture objects of CUDA C++ if there is nvcc",
    },
];

impl Part {
    /// The arguments for results in the given folder.
    pub(crate) fn arguments_for(&self, out: &str) -> Vec<String> {
        self.arguments.iter().map(|argument| argument.replace("{out}", out)).collect()
    }
}

impl Counting {
    /// Reads the output of a program that ended by itself, with or without an error.
    pub(crate) fn tally(self, output: &str, success: bool) -> Tally {
        match self {
            Self::Conformance => {
                // The log has both streams. At the end of the process the library may print that commands are pending, which the suite's
                // tests of unreleased commands leave behind.
                let own: Vec<&str> = output.lines().filter(|line| !line.starts_with("oxisycl: ")).collect();
                let Counts { passed, failed, ignored } = Counts::of_test_program(&own.join("\n")).unwrap_or_default();
                Tally { passed, failed, skipped: ignored }
            }
            Self::Harness => {
                let Counts { passed, failed, ignored } = Counts::of_cargo_test(output);
                Tally { passed, failed, skipped: ignored }
            }
            Self::Figures => {
                let is_figure = |line: &&str| line.starts_with("gpu.") || line.starts_with("images.");
                let figures = output.lines().filter(is_figure).map(str::trim_end);
                let mut tally = Tally::default();
                for figure in figures {
                    match figure {
                        // What misses its bar by less than the reference differs from itself is not missed.
                        _ if figure.ends_with("holds") || figure.ends_with("within noise") => tally.passed += 1,
                        _ if figure.ends_with("MISSED") => tally.failed += 1,
                        _ => tally.skipped += 1,
                    }
                }
                tally
            }
            Self::Saying(text) => {
                let passed = success && output.contains(text);
                Tally { passed: passed.into(), failed: (!passed).into(), skipped: 0 }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally { passed, failed, skipped }
    }

    #[test]
    fn every_part_is_a_target_of_the_workspace() {
        let workspace = Workspace::load().unwrap();
        for (position, part) in PARTS.iter().enumerate() {
            if part.package == crates::PACKAGE {
                let manifest = workspace.root.join(crates::FOLDER).join("Cargo.toml");
                let text = crate::workspace::read(&manifest).unwrap();
                let names = [format!("name = \"{}\"", part.package), format!("[[test]]\nname = \"{}\"", part.target)];
                assert!(names.iter().all(|name| text.contains(name)), "{}: no such target", part.name);
            } else {
                let package = workspace.require(part.package).unwrap();
                assert!(package.target(part.kind, part.target).is_some(), "{}: no such target", part.name);
            }
            assert!(PARTS[..position].iter().all(|other| other.name != part.name), "{} twice", part.name);
        }
    }

    #[test]
    fn the_lines_of_each_kind_of_program_are_counted() {
        let suite = "test cuda a::b ... ok\ntest cuda a::c ... ignored (one device)\n\ntest result: FAILED. 7 passed; 2 failed; 1 ignored\n";
        assert_eq!(Counting::Conformance.tally(suite, false), tally(7, 2, 1));
        let last_words = format!("{suite}oxisycl: the process ends while 3 commands are pending\n");
        assert_eq!(Counting::Conformance.tally(&last_words, true), tally(7, 2, 1));
        let harness =
            "test a ... ignored (needs two devices)\ntest b ... ok\ntest result: ok. 1 passed; 0 failed; 1 ignored;\n";
        assert_eq!(Counting::Harness.tally(harness, true), tally(1, 0, 1));
        let figures = "NVIDIA H200\ngpu.a 1 us ratio 1 bar <= 2 holds\ngpu.b 1 us bar <= 0 MISSED\ngpu.c 1 us\n";
        assert_eq!(Counting::Figures.tally(figures, false), tally(1, 1, 1));
        let table = "  images.a  1 Gpx/s  holds\nimages.a | 1 Gpx/s | ratio >= 0.97 | holds\nimages.b | 1 Gpx/s |\n";
        assert_eq!(Counting::Figures.tally(table, true), tally(1, 0, 1));
        let said = "  rows: cuda:0 0..1000\n";
        assert_eq!(Counting::Saying("rows: cuda:").tally(said, true), tally(1, 0, 0));
        assert_eq!(Counting::Saying("rows: cuda:").tally(said, false), tally(0, 1, 0));
        assert_eq!(Counting::Saying("rows: cuda:").tally("  rows: host:0 0..1000\n", true), tally(0, 1, 0));
    }

    #[test]
    fn output_of_nothing_counts_nothing() {
        let crashed = "test result: ok. 7 passed; 2 failed; 0 ignored\nthread 'main' panicked\n";
        assert_eq!(Counting::Conformance.tally(crashed, false), Tally::default());
        for counting in [Counting::Conformance, Counting::Harness, Counting::Figures] {
            assert_eq!(counting.tally("thread 'main' panicked\n", false), Tally::default(), "{counting:?}");
        }
    }

    #[test]
    fn results_go_where_the_user_wants_them() {
        let arguments = PARTS.iter().find(|part| part.name == "tour").unwrap().arguments_for("/r");
        assert_eq!(arguments, ["--out", "/r/tour"]);
    }
}
