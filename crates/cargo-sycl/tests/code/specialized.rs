//! Specialization constants: the loads of a kernel's code that a runtime can replace, and the code with values in their place.

use oxisycl_image::{DeviceImage, Form, ImageTarget, KernelEntry, ParameterLayout, SpecializedLoad};

use crate::program::{build, functions};
use crate::ptxas;

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
    let variant = with_values(&built.code);
    assert_eq!(SpecializedLoad::find(variant.as_bytes()), []);
    assert_eq!(variant.matches("oxisycl.spec ").count(), built.code.matches("oxisycl.spec ").count());
    for load in SpecializedLoad::find(built.code.as_bytes()) {
        // The next line after the comment.
        let line = built.code[load.place..].lines().nth(1).unwrap().trim();
        assert!(line.starts_with("ld.param") && !variant.contains(line), "{line}");
    }
    match ptxas::find() {
        Some(_) => assert_eq!(ptxas::assemble(&variant, "sm_70"), Ok(())),
        None => println!("not assembled: ptxas is neither installed nor in PATH"),
    }
}

/// The code of all kernels with values in the place of loads.
fn with_values(code: &str) -> String {
    let kernel = KernelEntry {
        specialized: SpecializedLoad::find(code.as_bytes()),
        ..KernelEntry::new("all", [0; 16], Form::Single, ParameterLayout { size: 1024, align: 8 }, "")
    };
    let image = DeviceImage {
        target: ImageTarget::Ptx { sm: 70 },
        kernels: vec![kernel],
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: code.as_bytes().to_vec(),
    };
    assert_eq!(image.verify(), Ok(()));
    // The largest numbers of each size, which are also the longest.
    let variant = image.with_values(0, |_, size| if size == 1 { 1 } else { u64::MAX >> (64 - 8 * size) });
    String::from_utf8(variant.expect("the image keeps the rules").code).expect("it was a text")
}

#[test]
fn unoptimised_builds_have_places_for_values_of_constants() {
    check(&[]);
}

#[test]
fn optimised_builds_have_places_for_values_of_constants() {
    check(&["--release"]);
}
