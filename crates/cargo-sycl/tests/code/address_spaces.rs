//! What the code of kernels says about the memory that they access.

use std::collections::BTreeMap;

use crate::groups::modules;
use crate::program::{build, functions};

/// The kernels of `kernels/address_spaces.rs`, with the instructions for memory that each has in PTX, in any order. `cvta` and what the launch passes do not
/// count.
const INSTRUCTIONS: [(&str, &[&str]); 9] = [
    ("arguments", &["ld.global", "ld.global", "st.global"]),
    ("list_of_global_memory", &["ld.global", "ld.global", "ld.global", "ld.global", "st.global", "st.global"]),
    ("list_of_any_memory", &["ld", "ld", "ld.global", "ld.global", "st", "st.global"]),
    ("local_memory", &["ld.global", "ld.shared", "st.global", "st.shared"]),
    ("any_memory", &["isspacep.global", "isspacep.local", "isspacep.shared", "ld.global", "ld.global.nc", "st.global"]),
    ("plain_table", &["ld.global", "ld.global.nc", "st.global"]),
    ("constant_table", &["ld.const", "ld.global", "st.global"]),
    ("prefetched", &["ld.global", "prefetch.L2", "st.global"]),
    (
        "large_block",
        &[
            "ld.global",
            "ld.global.nc",
            "ld.global.nc",
            "ld.global.nc",
            "ld.global.nc",
            "ld.global.nc",
            "ld.global.nc",
            "st.global",
        ],
    ),
];

/// The instructions for memory, without what they access: `ld.global.nc` for `ld.global.nc.b32 %r1, [%rd2];`.
fn instructions(code: &str) -> Vec<String> {
    let is_operand = |part: &str| part.starts_with(['b', 'u', 's', 'f', 'v']) && part[1..].parse::<u32>().is_ok();
    let mut found: Vec<String> = code
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|word| {
            word.trim_end_matches(';').split('.').filter(|part| !is_operand(part)).collect::<Vec<_>>().join(".")
        })
        .filter(|word| ["ld", "st", "isspacep", "prefetch"].contains(&word.split('.').next().unwrap_or_default()))
        .filter(|word| !word.ends_with(".param"))
        .collect();
    found.sort();
    found
}

fn check(arguments: &[&str]) {
    let built = build("address_spaces", arguments);
    assert!(!built.messages.contains("warning"), "{}", built.messages);
    let functions = functions(&built.code);
    for (kernel, expected) in INSTRUCTIONS {
        let name = format!("address_spaces_{kernel}_closure");
        let (_, code) = functions.iter().find(|(found, _)| found.contains(&name)).unwrap_or_else(|| panic!("{kernel}"));
        assert_eq!(instructions(code), expected, "{kernel}\n{code}");
    }
    let tables: Vec<&str> = built.code.lines().filter(|line| line.starts_with(".const")).collect();
    assert_eq!(tables.len(), 1, "only the kernel that reads the table in constant memory has it: {tables:?}");
}

#[test]
fn optimised_builds_access_the_memory_that_the_program_names() {
    check(&["--release"]);
}

#[test]
fn unoptimised_builds_access_the_memory_that_the_program_names() {
    check(&[]);
}

/// Looks at SPIR-V, by the storage classes of pointers that numbers are loaded through. Tables of both kinds are in global memory.
#[test]
fn modules_of_spirv_access_the_memory_that_the_program_names() {
    const GLOBAL: u32 = 5;
    const LOCAL: u32 = 4;
    const GENERIC: u32 = 8;
    let modules = modules("address_spaces");
    assert_eq!(modules.len(), INSTRUCTIONS.len());
    for (kernel, expected) in [
        ("arguments", &[(GLOBAL, 2)][..]),
        ("list_of_global_memory", &[(GLOBAL, 2)]),
        ("list_of_any_memory", &[(GLOBAL, 1), (GENERIC, 1)]),
        ("local_memory", &[(LOCAL, 1), (GLOBAL, 1)]),
        ("any_memory", &[(GLOBAL, 1)]),
        ("plain_table", &[(GLOBAL, 2)]),
        ("constant_table", &[(GLOBAL, 2)]),
        ("prefetched", &[(GLOBAL, 1)]),
        ("large_block", &[(GLOBAL, 3)]),
    ] {
        let name = format!("address_spaces_{kernel}_closure");
        let (_, module) = modules.iter().find(|(found, _)| found.contains(&name)).unwrap_or_else(|| panic!("{kernel}"));
        let expected: BTreeMap<u32, usize> = expected.iter().copied().collect();
        assert_eq!(crate::groups::loads_of_f32(module), expected, "{kernel}: loads of numbers by storage class");
    }
}
