//! What a build tells of kernels that it has no code of for one of its targets.
//!
//! Warns of aspects, too, that a kernel needs and does not state although it states some. Owns the choice between a warning and a note. A kernel that no target of the build runs is a warning, with the reason. So is one that a
//! target cannot run if the user named that target, or if it is the first default target. The first one runs most kernels. The user may not
//! want the other targets, so one note for each of them sums up the kernels that another target runs. The reasons are in the images.
//! Native code is left out without harm. So a note sums up those kernels if the user named the level, and else there is none. Nor is there one of
//! kernels whose plain code is as fast.
//! Invariants: each kernel without code is in a message for each such target, and the messages depend on the images and on that choice
//! alone. Does not print.

use std::collections::HashSet;

use oxisycl_compiler::AS_FAST;
use oxisycl_image::{DeviceImage, Form, KernelEntry, UnsupportedKernel, user_name};

use crate::settings::NATIVE;

/// How many kernels a note names. It is one line, and `inspect` names all.
const MAX_NAMES: usize = 4;

/// Something to tell the user about a link unit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// Probably not what the user wants.
    Warning(String),
    /// Good to know.
    Note(String),
}

/// What there is to tell of the images that were made for each of these targets.
pub(super) fn messages(targets: &[(&str, Vec<DeviceImage>)], are_targets_named: bool) -> Vec<Message> {
    let of_devices = targets.iter().filter(|(target, _)| !target.starts_with(NATIVE));
    let kernels = of_devices.flat_map(|(_, images)| images).flat_map(|image| &image.kernels);
    let run_somewhere: HashSet<([u8; 16], Form)> = kernels.map(|kernel| (kernel.type_id, kernel.form)).collect();
    let mut warnings: Vec<(&UnsupportedKernel, Vec<&str>)> = Vec::new();
    let mut notes = Vec::new();
    for (position, (target, images)) in targets.iter().enumerate() {
        // Rustc's code of a kernel runs where there is no other native code.
        let is_native = target.starts_with(NATIVE);
        let may_be_unwanted = position > 0 && !are_targets_named;
        let mut run_elsewhere = Vec::new();
        let is_worse = |kernel: &&UnsupportedKernel| !kernel.reason.starts_with(AS_FAST);
        for kernel in images.iter().flat_map(|image| &image.unsupported).filter(is_worse) {
            if is_native || may_be_unwanted && run_somewhere.contains(&(kernel.type_id, kernel.form)) {
                run_elsewhere.push(user_name(&kernel.type_name));
            } else if let Some((_, of_targets)) = warnings.iter_mut().find(|(other, _)| *other == kernel) {
                of_targets.push(target);
            } else {
                warnings.push((kernel, vec![target]));
            }
        }
        if !run_elsewhere.is_empty() && (are_targets_named || !is_native) {
            notes.push(note(target, run_elsewhere));
        }
    }
    let warnings = warnings.into_iter().map(|(kernel, targets)| {
        let targets = targets.join(", ");
        Message::Warning(format!(
            "kernel `{}` cannot run on {targets}: {}",
            user_name(&kernel.type_name),
            kernel.reason
        ))
    });
    warnings.chain(unstated(targets)).chain(notes).collect()
}

/// What kernels need beside the aspects that they state: once, although targets have it in common.
fn unstated<'t>(targets: &'t [(&str, Vec<DeviceImage>)]) -> impl Iterator<Item = Message> + 't {
    let mut seen = HashSet::new();
    let kernels = targets.iter().flat_map(|(_, images)| images).flat_map(|image| &image.kernels);
    let of = |kernel: &'t KernelEntry| kernel.unstated.iter().map(|what| (user_name(&kernel.type_name), what));
    kernels
        .flat_map(of)
        .filter(move |message| seen.insert(*message))
        .map(|(kernel, what)| Message::Warning(format!("kernel `{kernel}` states aspects, and not all: {what}")))
}

/// The kernels of one target in a line. Several may have one name: closures of one function.
fn note(target: &str, mut names: Vec<&str>) -> Message {
    let n_kernels = names.len();
    names.dedup();
    let n_more = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let more = if n_more == 0 { String::new() } else { format!(" and {n_more} more") };
    let have = if n_kernels == 1 { "kernel has" } else { "kernels have" };
    Message::Note(format!(
        "{n_kernels} {have} no image for {target}: {}{more}; `cargo sycl inspect PROGRAM` shows why",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use oxisycl_image::{ImageTarget, ParameterLayout};

    use super::*;

    const RECURSION: &str = "it is recursive";

    /// What was made for a target: kernels with code, and others with the reasons. A kernel is its name.
    fn made(target: &'static str, with_code: &[&str], without: &[(&str, &str)]) -> (&'static str, Vec<DeviceImage>) {
        let type_id = |name: &str| [name.as_bytes()[0]; 16];
        let image = |kernels: Vec<KernelEntry>, unsupported: Vec<UnsupportedKernel>| DeviceImage {
            target: target.parse::<ImageTarget>().unwrap(),
            kernels,
            build_options: String::new(),
            unsupported,
            sites: Vec::new(),
            code: Vec::new(),
        };
        let entry = |name: &&str| {
            KernelEntry::new(
                format!("k_{name}"),
                type_id(name),
                Form::Range(1),
                ParameterLayout { size: 8, align: 8 },
                *name,
            )
        };
        let refused = |(name, reason): &(&str, &str)| UnsupportedKernel {
            type_id: type_id(name),
            form: Form::Range(1),
            type_name: (*name).to_owned(),
            reason: (*reason).to_owned(),
        };
        let mut images: Vec<DeviceImage> = with_code.iter().map(|name| image(vec![entry(name)], Vec::new())).collect();
        if !without.is_empty() {
            images.push(image(Vec::new(), without.iter().map(refused).collect()));
        }
        (target, images)
    }

    fn warning(text: &str) -> Message {
        Message::Warning(text.to_owned())
    }

    fn note(text: &str) -> Message {
        Message::Note(format!("{text}; `cargo sycl inspect PROGRAM` shows why"))
    }

    #[test]
    fn kernels_that_another_target_runs_are_one_note_for_a_target_that_nobody_named() {
        let targets = [
            made("sm_70", &["a", "b", "c"], &[]),
            made("spirv1.2", &["c"], &[("a", RECURSION), ("b", "it has a local array")]),
        ];
        assert_eq!(messages(&targets, false), [note("2 kernels have no image for spirv1.2: a, b")]);
        let other = [made("sm_70", &["b"], &[("a", "x")]), made("spirv1.2", &["a"], &[("b", RECURSION)])];
        let expected = [warning("kernel `a` cannot run on sm_70: x"), note("1 kernel has no image for spirv1.2: b")];
        assert_eq!(messages(&other, false), expected, "the first target is meant");
    }

    #[test]
    fn each_kernel_that_a_named_target_cannot_run_is_a_warning() {
        let targets = [
            made("sm_70", &["a", "b"], &[]),
            made("spirv1.2", &[], &[("a", RECURSION), ("b", "it has a local array")]),
        ];
        let expected = [
            warning("kernel `a` cannot run on spirv1.2: it is recursive"),
            warning("kernel `b` cannot run on spirv1.2: it has a local array"),
        ];
        assert_eq!(messages(&targets, true), expected);
    }

    #[test]
    fn a_kernel_that_no_target_runs_is_a_warning_once_for_each_reason() {
        let targets = [
            made("sm_70", &["c"], &[("a", "it reads a file"), ("b", "it is too large")]),
            made("spirv1.2", &[], &[("a", "it reads a file"), ("b", RECURSION), ("c", RECURSION)]),
        ];
        let no_target_runs = [
            warning("kernel `a` cannot run on sm_70, spirv1.2: it reads a file"),
            warning("kernel `b` cannot run on sm_70: it is too large"),
            warning("kernel `b` cannot run on spirv1.2: it is recursive"),
        ];
        let found = messages(&targets, false);
        assert_eq!(found[..3], no_target_runs);
        assert_eq!(found[3..], [note("1 kernel has no image for spirv1.2: c")]);
        let found = messages(&targets, true);
        assert_eq!(found[..3], no_target_runs);
        assert_eq!(found[3..], [warning("kernel `c` cannot run on spirv1.2: it is recursive")]);
    }

    #[test]
    fn kernels_without_native_code_are_a_note_if_the_level_was_named() {
        let host = "host:x86_64-unknown-linux-gnu+x86-64-v3";
        let targets = [made(host, &["b"], &[("a", "it uses a static")]), made("sm_70", &[], &[("a", RECURSION)])];
        let expected = [
            warning("kernel `a` cannot run on sm_70: it is recursive"),
            note(&format!("1 kernel has no image for {host}: a")),
        ];
        assert_eq!(
            [messages(&targets, true), messages(&targets[..1], true)],
            [expected.to_vec(), expected[1..].to_vec()]
        );
        let as_fast = format!("{AS_FAST}its work-items run one by one");
        assert_eq!(messages(&[made(host, &["b"], &[("a", &as_fast)])], true), []);
        let by_default = [made("sm_70", &["b"], &[]), made(host, &["a"], &[("b", "it uses a static")])];
        assert_eq!(messages(&by_default, false), []);
        // What only the host runs is missing elsewhere.
        let by_default = [made("sm_70", &[], &[]), made("spirv1.2", &[], &[("a", RECURSION)]), made(host, &["a"], &[])];
        assert_eq!(messages(&by_default, false), [warning("kernel `a` cannot run on spirv1.2: it is recursive")]);
    }

    #[test]
    fn what_the_only_target_that_could_be_compiled_for_refuses_is_a_warning() {
        let targets = [made("sm_70", &[], &[]), made("spirv1.2", &[], &[("a", RECURSION)])];
        assert_eq!(messages(&targets, false), [warning("kernel `a` cannot run on spirv1.2: it is recursive")]);
    }

    #[test]
    fn a_note_is_short_and_names_a_name_once() {
        let names = ["a", "a", "b", "c", "d", "e", "f"];
        let refused = names.map(|name| (name, RECURSION));
        let targets = [made("sm_70", &names, &[]), made("spirv1.2", &[], &refused)];
        assert_eq!(messages(&targets, false), [note("7 kernels have no image for spirv1.2: a, b, c, d and 2 more")]);
    }

    #[test]
    fn there_is_nothing_to_tell_of_kernels_that_run_everywhere() {
        let targets = [made("sm_70", &["a"], &[]), made("spirv1.2", &["a"], &[])];
        assert_eq!((messages(&targets, false), messages(&targets, true)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn what_a_kernel_does_not_state_is_a_warning_for_all_targets_together() {
        let mut targets = [made("sm_70", &["a"], &[]), made("sm_80", &["a"], &[])];
        for (_, images) in &mut targets {
            for kernel in images.iter_mut().flat_map(|image| &mut image.kernels) {
                kernel.unstated = vec!["it needs the aspect fp64".to_owned()];
            }
        }
        let warning = "kernel `a` states aspects, and not all: it needs the aspect fp64".to_owned();
        assert_eq!(messages(&targets, false), [Message::Warning(warning)]);
    }
}
