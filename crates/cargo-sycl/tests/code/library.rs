//! What GPUs have no instruction for is linked to each kernel from a library, ahead of time, and the image says so.

use crate::program::build;

/// What `inspect` says of the kernel of a function.
fn described<'t>(kernels: &'t str, function: &str) -> Vec<&'t str> {
    let mut lines = kernels.lines().skip_while(|line| !line.contains(&format!("library::{function}")));
    assert!(lines.next().is_some(), "no kernel of {function} in {kernels}");
    lines.take_while(|line| line.starts_with("    ")).map(str::trim).collect()
}

#[test]
fn each_kernel_is_linked_with_what_it_needs_and_tells_it() {
    let built = build("library", &[]);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let linked = |function: &str| {
        let lines = described(&built.kernels, function);
        let line = lines.into_iter().find_map(|line| line.strip_prefix("linked with "));
        line.map(|names| names.split(", ").collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(linked("nothing_special"), Vec::<&str>::new());
    assert_eq!(linked("mathematics"), ["erff", "fmodf", "sinf", "tgamma"]);
    assert_eq!(linked("wide_conversion"), ["__floatuntisf"]);
    assert!(linked("text").contains(&"core::str::converts::from_utf8"), "{}", built.kernels);

    // The driver is left nothing to find: what a kernel calls is in its image.
    assert!(!built.code.contains(".extern .func"), "{}", built.code);

    // And how it was made.
    let built_with = described(&built.kernels, "mathematics").into_iter().find(|line| line.starts_with("built with "));
    let built_with = built_with.expect("the options");
    assert!(built_with.contains(" rustc=1.") && built_with.ends_with(" opt-level=3 float=contract"), "{built_with}");
}
