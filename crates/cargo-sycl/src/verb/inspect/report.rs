//! What became of kernels in native code, as reports of optimising compilers are: one fact a line, behind its place.
//!
//! Invariant: a line is `file:line:column: kernel: level: remark`, in the order of the places, or the sum of a target. Where no place is known, the
//! line begins with the kernel.

use std::collections::BTreeMap;

use oxisycl_compiler::{LoopForm, LoopRemark, loop_remarks, place_of_refusal};
use oxisycl_image::{DeviceImage, HostLevel, ImageTarget, KernelEntry, SourceLocation, UnsupportedKernel, user_name};

use super::native::level;
use super::text::count;
use crate::failure::{Failure, Result};

/// The report for all levels of the images.
pub(super) fn of(images: &[DeviceImage], places: &Places) -> Result<String> {
    let mut targets: Vec<&ImageTarget> = Vec::new();
    for image in images.iter().filter(|image| level(&image.target).is_some()) {
        if !targets.contains(&&image.target) {
            targets.push(&image.target);
        }
    }
    if targets.is_empty() {
        return Err(Failure::new(
            "--emit report: there is no native code for a level of processors, which `cargo sycl build --release` makes",
        ));
    }
    let of_target = |target: &&ImageTarget| {
        let mut report = Report::default();
        let images = images.iter().filter(|image| image.target == **target);
        images.for_each(|image| report.add(image, places));
        report.text(target)
    };
    Ok(targets.iter().map(of_target).collect())
}

/// The places of the kernels of a program, which kernels without code do not have themselves.
pub(super) struct Places(BTreeMap<[u8; 16], SourceLocation>);

impl Places {
    /// From the images for all targets.
    pub(super) fn of(images: &[DeviceImage]) -> Self {
        let kernels = images.iter().flat_map(|image| &image.kernels);
        Self(kernels.filter_map(|kernel| Some((kernel.type_id, place(kernel)?))).collect())
    }
}

/// A line, in the order of its place.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    /// File, line and column.
    place: Option<(String, u32, u32)>,
    text: String,
}

/// What is known of one target.
#[derive(Default)]
struct Report {
    lines: Vec<Line>,
    n_kernels: usize,
    n_in_lanes: usize,
    n_llvms: usize,
    n_scalar: usize,
    n_without_lanes: usize,
    n_plain: usize,
}

impl Report {
    fn add(&mut self, image: &DeviceImage, places: &Places) {
        let Some(level) = level(&image.target) else { return };
        for kernel in &image.kernels {
            self.add_kernel(level, kernel, &loop_remarks(&image.build_options));
        }
        for UnsupportedKernel { type_id, type_name, reason, .. } in &image.unsupported {
            self.n_kernels += 1;
            self.n_plain += 1;
            let place = place_of_refusal(reason).or_else(|| places.0.get(type_id).cloned());
            self.add_line(place, type_name, level, &format!("plain code alone: {reason}"));
        }
    }

    fn add_kernel(&mut self, level: HostLevel, kernel: &KernelEntry, loops: &[LoopRemark<'_>]) {
        let has = |form: LoopForm| loops.iter().any(|remark| remark.form == form);
        self.n_kernels += 1;
        if has(LoopForm::Lanes) {
            self.n_in_lanes += 1;
        } else if has(LoopForm::Llvms) {
            self.n_llvms += 1;
        } else if has(LoopForm::Scalar) {
            self.n_scalar += 1;
        } else {
            self.n_without_lanes += 1;
            let remark = "native code without lanes, as `--lanes 1` asks for";
            self.add_line(place(kernel), &kernel.type_name, level, remark);
        }
        for remark in loops {
            self.add_line(remark.place.clone().or_else(|| place(kernel)), &kernel.type_name, level, remark.text);
        }
    }

    fn add_line(&mut self, place: Option<SourceLocation>, kernel: &str, level: HostLevel, remark: &str) {
        let begin = place.as_ref().map(|place| format!("{place}: ")).unwrap_or_default();
        let text = format!("{begin}{}: {level}: {remark}\n", user_name(kernel));
        let place = place.map(|SourceLocation { file, line, column }| (file, line, column));
        self.lines.push(Line { place, text });
    }

    /// The lines, and the sum.
    fn text(mut self, target: &ImageTarget) -> String {
        self.lines.sort();
        let sums = [
            (self.n_in_lanes, "in lanes"),
            (self.n_llvms, "in vectors of LLVM's"),
            (self.n_scalar, "one by one"),
            (self.n_without_lanes, "without lanes"),
            (self.n_plain, "in plain code alone"),
        ];
        let sums = sums.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {n} {what}"));
        let sum = format!("{target}: {}{}\n", count(self.n_kernels, "kernel"), sums.collect::<String>());
        self.lines.into_iter().map(|line| line.text).chain([sum]).collect()
    }
}

/// Where the code of a kernel begins.
fn place(kernel: &KernelEntry) -> Option<SourceLocation> {
    Some(kernel.location.clone()).filter(|place| !place.file.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::image;
    use super::*;

    /// The kernel of another image, in native code of which this is said.
    fn native(level: HostLevel, options: &str) -> DeviceImage {
        let target = ImageTarget::Host { triple: "t".to_owned(), level: Some(level) };
        let unsupported = Vec::new();
        let build_options = format!("oxisycl=0.1.0 float=strict{options}");
        DeviceImage { target, build_options, unsupported, ..image(&DeviceImage::native_code(0)) }
    }

    fn report(images: &[DeviceImage]) -> String {
        of(images, &Places::of(images)).unwrap()
    }

    #[test]
    fn each_loop_has_a_line_at_its_place_and_each_target_a_sum() {
        let lanes = "; its work-items run in vectors of 8 lanes (about 4.1 times as fast)";
        let scalar = "; its work-items run one by one: it may wait (src/main.rs:2:18)";
        let llvms = "; its work-items run in vectors that LLVM makes by itself";
        let mut refused = native(HostLevel::V3, "");
        let kernel = |type_id: u8, name: &str, reason: &str| UnsupportedKernel {
            type_id: [type_id; 16],
            form: oxisycl_image::Form::Single,
            type_name: name.to_owned(),
            reason: reason.to_owned(),
        };
        refused.kernels = Vec::new();
        refused.unsupported = vec![
            kernel(1, "app::A", "it needs `x`"),
            kernel(2, "app::B", "it needs `y` (at src/lib.rs:9:1)"),
            kernel(3, "oxisycl_device::float::strict<1, app::C>::{{closure}}", "it needs `z`"),
        ];
        let images = [
            native(HostLevel::V3, &format!("{lanes}{scalar}")),
            refused,
            native(HostLevel::V4, llvms),
            native(HostLevel::V3, scalar),
            native(HostLevel::V4, ""),
            image(b"ptx"),
        ];
        let expected = "\
            app::C: x86-64-v3: plain code alone: it needs `z`\n\
            src/lib.rs:9:1: app::B: x86-64-v3: plain code alone: it needs `y` (at src/lib.rs:9:1)\n\
            src/main.rs:2:18: app::main::{{closure}}: x86-64-v3: its work-items run one by one: it may wait\n\
            src/main.rs:2:18: app::main::{{closure}}: x86-64-v3: its work-items run one by one: it may wait\n\
            src/main.rs:3:5: app::A: x86-64-v3: plain code alone: it needs `x`\n\
            src/main.rs:3:5: app::main::{{closure}}: x86-64-v3: its work-items run in vectors of 8 lanes (about 4.1 times as fast)\n\
            host:t+x86-64-v3: 5 kernels, 1 in lanes, 1 one by one, 3 in plain code alone\n\
            src/main.rs:3:5: app::main::{{closure}}: x86-64-v4: its work-items run in vectors that LLVM makes by itself\n\
            src/main.rs:3:5: app::main::{{closure}}: x86-64-v4: native code without lanes, as `--lanes 1` asks for\n\
            host:t+x86-64-v4: 2 kernels, 1 in vectors of LLVM's, 1 without lanes\n";
        assert_eq!(report(&images), expected);
    }

    #[test]
    fn programs_without_native_code_have_no_report() {
        let images = [image(b"ptx")];
        let error = of(&images, &Places::of(&images)).unwrap_err().to_string();
        assert!(error.starts_with("--emit report: ") && error.contains("build --release"), "{error}");
    }
}
