//! Words for counts, sizes and forms.

use oxisycl_image::Form;

/// How the work-items of a kernel are numbered.
pub(super) fn form(form: Form) -> String {
    match form {
        Form::Single => "single task".to_owned(),
        Form::Range(1) => "1 dimension".to_owned(),
        Form::Range(dimensions) => format!("{dimensions} dimensions"),
        Form::Group(dimensions) => format!("work-groups of {dimensions} dimensions"),
        _ => "another form".to_owned(),
    }
}

/// A number with what is counted.
pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A size.
pub(super) fn bytes(n: usize) -> String {
    if n < 10_000 { count(n, "byte") } else { format!("{} KiB", n.div_ceil(1024)) }
}
