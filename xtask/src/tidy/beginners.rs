//! Documentation that a beginner reads: examples of what they meet in their first hours, and no sentence that needs the one of a neighbour.
//!
//! These are platforms, devices, queues, buffers, accessors, commands, events, USM and reductions. Mathematics, vectors and kernels over groups
//! have pages of the book with examples of each kind of function.
//!
//! Looks at lines. Whether an example compiles and does what it says is a matter of the documentation tests.

use crate::workspace::File;

/// Functions that have an example. A new one that a beginner meets is put here, too.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (
        "crates/oxisycl-device/src/accessor.rs",
        &["get", "view", "at", "set", "set_at", "cell", "update", "cells", "get_at"],
    ),
    ("crates/oxisycl-device/src/atomic/accessor.rs", &["atomic_ref", "fetch_min", "fetch_max", "fetch_update"]),
    ("crates/oxisycl-device/src/atomic/mod.rs", &["atomic_fence"]),
    (
        "crates/oxisycl-device/src/atomic/reference.rs",
        &["with_scope", "load", "store", "compare_exchange", "compare_exchange_weak", "fetch_update"],
    ),
    ("crates/oxisycl-device/src/chunks.rs", &["n_blocks", "block", "set", "fill", "get", "row"]),
    ("crates/oxisycl-device/src/group/reduction/mod.rs", &["reduction", "reduction_without_identity"]),
    ("crates/oxisycl-device/src/group/reduction/reducer.rs", &["combine"]),
    ("crates/oxisycl-device/src/item.rs", &["id", "get", "range", "linear_id", "index"]),
    ("crates/oxisycl-device/src/kernel.rs", &["kernel"]),
    ("crates/oxisycl-device/src/mode.rs", &["no_init"]),
    ("crates/oxisycl-device/src/view.rs", &["at", "get", "iter", "as_slice", "chunk", "row", "window"]),
    ("crates/oxisycl-types/src/id.rs", &["new"]),
    ("crates/oxisycl-types/src/nd_range.rs", &["new"]),
    ("crates/oxisycl-types/src/range.rs", &["new", "splat", "size", "contains", "linear"]),
    ("crates/oxisycl/src/backend_info.rs", &["backend_info"]),
    (
        "crates/oxisycl/src/buffer/array.rs",
        &[
            "from_array",
            "from_array_view",
            "from_array_view_mut",
            "into_array",
            "to_array",
            "array_view",
            "array_view_mut",
        ],
    ),
    ("crates/oxisycl/src/buffer/borrowed.rs", &["finish", "discard"]),
    (
        "crates/oxisycl/src/buffer/create.rs",
        &[
            "page_size",
            "name",
            "from_vec_nd",
            "from_slice_nd",
            "from_shared_nd",
            "from_slice_mut_nd",
            "uninit",
            "from_vec",
            "from_slice",
            "from_shared",
            "from_slice_mut",
            "from_elements",
        ],
    ),
    ("crates/oxisycl/src/buffer/destination.rs", &["set_final_data"]),
    ("crates/oxisycl/src/buffer/memory.rs", &["into_buffer", "into_vec", "reserve"]),
    ("crates/oxisycl/src/buffer/mod.rs", &["named", "range", "size", "host_access", "host_access_range", "to_vec"]),
    ("crates/oxisycl/src/buffer/pixels.rs", &["from_image", "into_image", "to_image"]),
    ("crates/oxisycl/src/buffer/placeholder.rs", &["placeholder"]),
    ("crates/oxisycl/src/buffer/views.rs", &["sub_buffer", "reinterpret"]),
    ("crates/oxisycl/src/context.rs", &["new"]),
    (
        "crates/oxisycl/src/device.rs",
        &[
            "all",
            "all_of",
            "default",
            "select",
            "info",
            "name",
            "has",
            "is_compatible",
            "load_kernels",
            "platform",
            "is_cpu",
            "is_gpu",
            "parent",
            "partition_equally",
            "partition_by_counts",
        ],
    ),
    (
        "crates/oxisycl/src/event.rs",
        &["wait", "wait_all", "wait_and_throw", "status", "is_complete", "dependencies", "profile", "duration"],
    ),
    ("crates/oxisycl/src/handler/host_slot.rs", &["take"]),
    ("crates/oxisycl/src/handler/copy.rs", &["copy", "copy_from_host", "copy_to_host", "fill", "update_host"]),
    ("crates/oxisycl/src/handler/host_task.rs", &["slice", "at", "slice_mut", "at_mut", "access_host", "host_task"]),
    ("crates/oxisycl/src/handler/kernel.rs", &["parallel_for", "launch", "single_task"]),
    ("crates/oxisycl/src/handler/reduce.rs", &["parallel_reduce"]),
    (
        "crates/oxisycl/src/handler/mod.rs",
        &["name", "access", "access_range", "access_chunks", "require", "depends_on", "depends_on_all"],
    ),
    (
        "crates/oxisycl/src/host_accessor.rs",
        &["range", "get", "iter", "to_slice", "as_slice", "get_mut", "to_slice_mut", "for_each_mut", "as_mut_slice"],
    ),
    ("crates/oxisycl/src/kernel_id.rs", &["of_range"]),
    ("crates/oxisycl/src/observe.rs", &["counters"]),
    ("crates/oxisycl/src/platform.rs", &["all", "default", "info", "devices", "default_context"]),
    (
        "crates/oxisycl/src/queue.rs",
        &[
            "default",
            "new",
            "select",
            "builder",
            "submit",
            "submit_with",
            "parallel_for",
            "single_task",
            "fill",
            "copy",
            "update_host",
            "copy_from_host",
            "copy_to_host",
            "submit_barrier",
            "wait",
            "wait_and_throw",
            "take_errors",
            "is_idle",
        ],
    ),
    ("crates/oxisycl/src/queue/builder.rs", &["device", "in_order", "profiling", "print_buffer", "handler", "build"]),
    ("crates/oxisycl/src/queue/host_copy.rs", &["wait"]),
    ("crates/oxisycl/src/queue/kernels.rs", &["parallel_for_work_group"]),
    ("crates/oxisycl/src/queue/properties.rs", &["device", "context", "is_in_order"]),
    ("crates/oxisycl/src/queue/reduced.rs", &["get", "buffer", "reduce", "transform_reduce"]),
    (
        "crates/oxisycl/src/selector.rs",
        &["default_selector", "cpu_selector", "gpu_selector", "accelerator_selector", "aspect_selector"],
    ),
    ("crates/oxisycl/src/simulated.rs", &["new"]),
    (
        "crates/oxisycl/src/usm.rs",
        &[
            "malloc_device",
            "malloc_host",
            "malloc_shared",
            "pointer",
            "copy_from_slice",
            "to_vec",
            "as_slice",
            "as_mut_slice",
        ],
    ),
];

/// How a sentence begins that says only what is different from the item above, which documentation shows elsewhere or not at all.
const RELATIVE: &[&str] = &[
    "/// The same",
    "/// As above",
    "/// As many",
    "/// As much",
    "/// It ",
    "/// Its ",
    "/// Likewise",
    "/// Of the same",
    "/// Same ",
    "/// See the module documentation",
    "/// That of",
    "/// Their ",
    "/// Those ",
];

/// Findings for functions of [`FUNCTIONS`] that are not there or have no example.
pub(super) fn check_examples(files: &[File]) -> Vec<String> {
    FUNCTIONS.iter().flat_map(|(path, names)| lacking(path, names, files)).collect()
}

fn lacking(path: &str, names: &[&str], files: &[File]) -> Vec<String> {
    let Some(file) = files.iter().find(|file| file.path == path) else {
        return vec![format!(
            "{path}: is in the list of what has examples (xtask/src/tidy/beginners.rs), but is no file"
        )];
    };
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let has_example = |name: &&&str| {
        let mut declarations = (0..lines.len()).filter(|&number| declares(lines[number], name));
        declarations.any(|number| documentation(&lines[..number]).any(|line| line.starts_with("/// ```")))
    };
    let without = names.iter().filter(|name| !has_example(name));
    without.map(|name| format!("{path}: no public function `{name}` has an example in its documentation")).collect()
}

/// Whether a line begins the public function with that name.
fn declares(line: &str, name: &str) -> bool {
    let Some(mut rest) = line.strip_prefix("pub ") else { return false };
    for modifier in ["const ", "unsafe "] {
        rest = rest.strip_prefix(modifier).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ").and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with(['(', '<']))
}

/// The lines of documentation at the end of `before`, behind which there may be attributes. The last line comes first.
fn documentation<'a>(before: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    let lines = before.iter().rev().copied();
    lines.skip_while(|line| line.starts_with("#[")).take_while(|line| line.starts_with("///"))
}

/// Findings for documentation that needs the documentation of the item above it.
pub(super) fn check_sentences(file: &File) -> Vec<String> {
    let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
    let is_relative = |number: &usize| {
        RELATIVE.iter().any(|beginning| lines[*number].starts_with(beginning))
            && !number.checked_sub(1).is_some_and(|above| lines[above].starts_with("///"))
    };
    let found = (0..lines.len()).filter(is_relative);
    found.map(|number| format!("{}:{}: documentation that needs the one above it", file.path, number + 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_function_without_an_example_is_found() {
        let text = "/// Fine.\n///\n/// ```\n/// a();\n/// ```\n#[inline]\npub const fn a() {}\n\n/// Not.\npub fn ab<T>() {}\n";
        let files = [file("a.rs", text)];
        assert_eq!(lacking("a.rs", &["a"], &files), [""; 0]);
        assert_eq!(
            lacking("a.rs", &["a", "ab", "b"], &files),
            [
                "a.rs: no public function `ab` has an example in its documentation",
                "a.rs: no public function `b` has an example in its documentation"
            ]
        );
        assert_eq!(lacking("b.rs", &["a"], &files).len(), 1);
    }

    #[test]
    fn one_of_several_functions_of_a_name_suffices() {
        let text = "pub fn a() {}\n/// ```\n/// a();\n/// ```\npub unsafe fn a(x: u8) {}\n";
        assert_eq!(lacking("a.rs", &["a"], &[file("a.rs", text)]), [""; 0]);
    }

    #[test]
    fn sentences_that_need_their_neighbour_are_found() {
        let text = "/// One.\nfn a() {}\n    /// The same for two.\nfn b() {}\n/// Copies c.\n/// The same for c.\nfn c() {}\n";
        for path in [
            "crates/oxisycl/src/lib.rs",
            "crates/oxisycl/tests/a.rs",
            "crates/oxisycl/src/tests/a.rs",
            "xtask/src/a.rs",
        ] {
            assert_eq!(
                check_sentences(&file(path, text)),
                [format!("{path}:3: documentation that needs the one above it")]
            );
        }
    }

    #[test]
    fn private_items_have_documentation_of_their_own() {
        for item in ["pub fn a() {}", "pub(crate) fn a() {}", "fn a();", "a: u8,"] {
            for beginning in RELATIVE.iter().chain([&"/// Those of b", &"/// It refused", &"/// That of b"]) {
                let text =
                    format!("impl A {{\n    /// One.\n    a,\n\n    {beginning}.\n    #[inline]\n    {item}\n}}\n");
                assert_eq!(check_sentences(&file("crates/oxisycl-backend/src/a.rs", &text)).len(), 1, "{text}");
            }
        }
    }
}
