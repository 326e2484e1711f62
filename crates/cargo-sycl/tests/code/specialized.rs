//! Specialization constants: the loads of a kernel's code that a runtime can replace, and the code with values in their place.

use oxisycl_image::SpecializedLoad;

use crate::program::{build, functions};

/// The kernels of `kernels/specialized.rs`, with the sizes of the parts of their blocks that can be replaced, in any order. None is loaded in another way.
const PARTS: [(&str, &[usize]); 7] = [
    ("captured_closure", &[8]),
    ("structured", &[1, 4, 4, 4, 4, 8]),
    ("passed_closure", &[4, 4, 4]),
    ("in_groups", &[8]),
    ("in_items", &[2]),
    ("reduced", &[4]),
    ("plain", &[]),
];

fn check(arguments: &[&str]) {
    let built = build("specialized", arguments);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for (kernel, expected) in PARTS {
        let of_kernel: Vec<_> =
            functions.iter().filter(|(name, _)| name.contains(&format!("specialized_{kernel}"))).collect();
        assert!(!of_kernel.is_empty(), "{kernel}: {:?}", functions.keys().collect::<Vec<_>>());
        for (name, code) in of_kernel {
            let mut parts: Vec<_> =
                SpecializedLoad::find(code.as_bytes()).iter().map(|load| (load.offset, load.size)).collect();
            parts.sort_unstable();
            parts.dedup();
            let mut sizes: Vec<usize> = parts.iter().map(|(_, size)| *size).collect();
            sizes.sort_unstable();
            assert_eq!(sizes, expected, "{name}\n{code}");
        }
    }
}

#[test]
fn unoptimised_builds_have_places_for_values_of_constants() {
    check(&[]);
}

#[test]
fn optimised_builds_have_places_for_values_of_constants() {
    check(&["--release"]);
}
