//! What a build says of captured addresses of the host: an error for each variable, with what to do instead.
//!
//! A crate answers for the kernels that it makes itself, those of generic code of another crate among them. So an error is given once, when
//! that crate is compiled. Kernels of crates that may have such captures are warned of where they are linked.

use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Reporter, Span};
use super::sidecar::Place;
use super::source::Marked;
use crate::compile::captures::{Capture, Checked, Spot, check};
use crate::failure::Result;
use crate::settings::{HOST_CAPTURE, Settings};

/// The error's code, as `rustc` has them for its tools.
const CODE: &str = "oxisycl::host_capture";

/// Checks what the kernels of a crate capture, whose bitcode is there. Whether it may be compiled.
pub(super) fn are_allowed(rustc: &Path, place: &Place, reporter: &Reporter) -> Result<bool> {
    let Checked { captures, .. } = check(rustc, &[place.bitcode()])?;
    report(&captures, reporter);
    Ok(captures.is_empty())
}

/// Checks the kernels of a crate with this bitcode, of which nothing is compiled afterwards, and says what the build of it would say. Whether it could be built.
pub(super) fn all_is_well(
    settings: &Settings,
    rustc: &Path,
    modules: &[PathBuf],
    may_capture: bool,
    reporter: &Reporter,
) -> Result<bool> {
    let Checked { mut captures, refused } = check(rustc, modules)?;
    if may_capture {
        captures.clear();
    }
    report(&captures, reporter);
    // Each of the errors is such a kernel, too.
    if captures.is_empty() {
        let of_devices: Vec<&str> = settings.device_targets().collect();
        let targets = of_devices.join(", ");
        for (kernel, reason) in refused {
            reporter.warning(&format!("kernel `{kernel}` cannot run on {targets}: {reason}"));
        }
    }
    Ok(captures.is_empty())
}

/// Gives the errors.
pub(super) fn report(captures: &[Capture], reporter: &Reporter) {
    let mut errors: Vec<Diagnostic> = Vec::new();
    for error in captures.iter().map(error) {
        // One closure can be several kernels: of several types, or launched in several ways.
        if !errors.iter().any(|other| other.message == error.message && primary(other) == primary(&error)) {
            errors.push(error);
        }
    }
    errors.sort_by_key(|error| primary(error).map(|marked| (marked.file.clone(), marked.line, marked.columns.start)));
    reporter.errors(&errors);
}

fn primary(error: &Diagnostic) -> Option<&Marked> {
    error.spans.iter().find(|span| span.is_primary).map(|span| &span.marked)
}

fn error(capture: &Capture) -> Diagnostic {
    let Capture { kernel, path, what, type_name, variable, code, launch } = capture;
    let found = variable.as_ref().and_then(|spot| Some((spot, captured_variable(spot, path.first()?)?)));
    let (marked, path) = match found {
        Some((_, (marked, path_of_part))) => {
            let parts = path_of_part.into_iter().chain(path[1..].iter().cloned());
            (Some(marked), path_text(&parts.collect::<Vec<_>>()))
        }
        // A macro has made the variable, or the source is not what was compiled.
        None => (code.as_ref().map(Marked::whole_line), path_text(path)),
    };
    let message = match path.is_empty() {
        true => format!("what the kernel captures is {what}"),
        false => format!("the kernel captures `{path}`, {what}"),
    };
    let is_part = marked.as_ref().is_some_and(|marked| marked.marked_text().as_deref() != Some(&path));
    let label =
        if is_part && !path.is_empty() { format!("`{path}` is `{type_name}`") } else { format!("`{type_name}`") };
    let primary = marked.map(|marked| Span { marked, is_primary: true, label: Some(label) });
    let launch = launch.as_ref().map(|spot| Span {
        marked: Marked::token(spot),
        is_primary: false,
        label: Some("launched here".to_owned()),
    });
    let mut spans: Vec<Span> = primary.into_iter().chain(launch).collect();
    if let [only] = spans.as_mut_slice() {
        only.is_primary = true;
    }
    let mut children = vec![("help", advice(type_name, &path))];
    if capture.launch.is_none() {
        children.push(("note", format!("the kernel is `{kernel}`")));
    }
    children.push((
        "note",
        format!(
            "a kernel for the host alone: `cargo sycl build --allow {HOST_CAPTURE}`, or `[package.metadata.oxisycl] allow = \
             [{HOST_CAPTURE:?}]`"
        ),
    ));
    Diagnostic { level: "error", code: Some(CODE), message, spans, children }
}

/// A path as programs write it: elements of arrays are `[_]`.
fn path_text(path: &[String]) -> String {
    path.join(".").replace(".[_]", "[_]")
}

/// The declaration of a captured variable, and the path of what is captured of it. In debug information that is one name: `pair__1`
/// is `pair.1`, or a variable of that name.
fn captured_variable(spot: &Spot, name: &str) -> Option<(Marked, Vec<String>)> {
    let marked = Marked::identifier(spot)?;
    let text = marked.marked_text()?;
    let variable = text.trim_start_matches("r#").to_owned();
    let parts = match name.strip_prefix(&variable)? {
        "" => Vec::new(),
        parts => parts.strip_prefix("__")?.split("__").map(str::to_owned).collect(),
    };
    Some((marked, [vec![text], parts].concat()))
}

/// What to do instead of capturing a value of this type. The code in it names a variable, but no part of one, which may be private.
fn advice(type_name: &str, path: &str) -> String {
    let is_variable = !path.is_empty() && path.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let name = if is_variable { path } else { "value" };
    let is_function = ["fn(", "unsafe fn(", "extern "].iter().any(|start| type_name.starts_with(start));
    let begins_with = |starts: &[&str]| starts.iter().any(|start| type_name.starts_with(start));
    if type_name == "&str" {
        format!("pass the text as an argument: `parallel_for_with(range, Arc::<str>::from({name}), |item, {name}| ..)`")
    } else if begins_with(&["&[", "&mut ["]) {
        format!("pass the data as an argument: `parallel_for_with(range, Copied({name}), |item, {name}| ..)`")
    } else if begins_with(&["&dyn ", "&(dyn ", "&mut dyn ", "&mut (dyn "]) {
        "take a type parameter in the place of the trait object: a device has no table of the host's functions"
            .to_owned()
    } else if begins_with(&["&"]) {
        format!("capture the value: `let {name} = *{name};` before the kernel, or pass it as an argument")
    } else if begins_with(&["*"]) {
        "memory that devices share is behind a `UsmPointer`; `Bits` carries a type that may cross by its `unsafe impl`"
            .to_owned()
    } else if is_function {
        "call the function by its name, or take a type parameter `impl Fn`: then nothing is captured".to_owned()
    } else {
        "pass it as an argument beside the kernel".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::files::tests::Scratch;

    fn capture(path: &[&str], type_name: &str, variable: Option<Spot>) -> Capture {
        let path = path.iter().map(|name| (*name).to_owned()).collect();
        let what = "an address of the host's memory".to_owned();
        let code = Some(Spot { file: "/none".to_owned(), line: 3, column: 1 });
        Capture {
            kernel: "app::k".to_owned(),
            path,
            what,
            type_name: type_name.to_owned(),
            variable,
            code,
            launch: None,
        }
    }

    #[test]
    fn parts_of_variables_are_named_as_in_the_source() {
        let scratch = Scratch::new("captured");
        let file = scratch.path().join("main.rs");
        fs::write(&file, "pair my__pair r#type x").unwrap();
        let spot = |column| Some(Spot { file: file.to_str().unwrap().to_owned(), line: 1, column });
        for (path, column, expected) in [
            (&["pair"][..], 1, "`pair`"),
            (&["pair", "1"], 1, "`pair.1`"),
            (&["pair__1__text", "0"], 1, "`pair.1.text.0`"),
            (&["pair", "[_]", "[_]", "1"], 1, "`pair[_][_].1`"),
            (&["my__pair"], 6, "`my__pair`"),
            (&["my__pair__0"], 6, "`my__pair.0`"),
            (&["type"], 15, "`r#type`"),
            // Something else is there: a macro, or another version of the source.
            (&["pair"], 6, "`pair`"),
            (&["pairs"], 1, "`pairs`"),
            (&["pair__1"], 22, "`pair__1`"),
        ] {
            let found = error(&capture(path, "&u8", spot(column)));
            let start = format!("the kernel captures {expected}, an address of the host's memory");
            assert_eq!(found.message, start, "{path:?}");
            let is_there = found.spans[0].marked.file != "/none";
            assert_eq!(
                is_there,
                !["`pairs`", "`pair__1`"].contains(&expected) && (expected != "`pair`" || column == 1)
            );
        }
    }

    #[test]
    fn each_kind_of_address_has_advice_of_its_own() {
        let types = ["&str", "&[u8]", "&dyn app::T", "&u8", "*const u8", "fn(u8) -> u8", "Foreign"];
        let advices: Vec<String> = types.iter().map(|name| advice(name, "pair.1")).collect();
        for (idx, advice) in advices.iter().enumerate() {
            assert!(advices[..idx].iter().all(|other| other != advice), "{advice}");
        }
        assert!(advices[0].contains("from(value), |item, value|") && advice("&str", "name").contains("|item, name|"));
        assert_eq!(advice("unsafe fn()", "f"), advice("extern \"C\" fn()", "f"));
    }

    #[test]
    fn a_capture_without_any_place_is_told_with_its_kernel() {
        let found = error(&Capture { code: None, ..capture(&[], "&u8", None) });
        assert_eq!(found.message, "what the kernel captures is an address of the host's memory");
        assert!(found.spans.is_empty());
        assert!(found.children.contains(&("note", "the kernel is `app::k`".to_owned())));
    }
}
