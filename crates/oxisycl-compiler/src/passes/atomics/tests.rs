//! Orders and scopes of atomic operations in PTX.

use super::*;
use crate::passes::tests::{context, module, ptx};

#[test]
fn the_order_of_atomic_operations_is_kept_by_fences() {
    let context = context();
    for (order, expected) in [
        ("monotonic", &["atom."][..]),
        ("acquire", &["atom.", "fence."]),
        ("release", &["fence.", "atom."]),
        ("acq_rel", &["fence.", "atom.", "fence."]),
        ("seq_cst", &["fence.sc", "atom.", "fence."]),
    ] {
        let text = format!(
            "define i32 @f(ptr %p) {{\n %old = atomicrmw add ptr %p, i32 1 {order}\n fence syncscope(\"singlethread\") seq_cst\n ret i32 %old\n}}"
        );
        let module = module(&context, &text);
        legalize_for_nvptx(&module).expect("it is legalised");
        let code = ptx(&module);
        let found: Vec<_> = code
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with("atom.") || line.starts_with("fence."))
            .collect();
        assert_eq!(found.len(), expected.len(), "{order}: {found:?}");
        for (line, start) in found.iter().zip(expected) {
            assert!(line.starts_with(start), "{order}: {found:?}");
        }
    }
}

/// The memory instructions of a function's PTX, without their operands.
fn memory_instructions(text: &str) -> Vec<String> {
    let context = context();
    let module = module(&context, text);
    legalize_for_nvptx(&module).expect("it is legalised");
    let code = ptx(&module);
    let starts = ["atom.", "fence.", "ld.", "st."];
    let lines = code.lines().map(str::trim).filter(|line| starts.iter().any(|start| line.starts_with(start)));
    let names = lines.filter_map(|line| line.split([' ', '\t', ';']).next()).filter(|name| !name.contains(".param"));
    names.map(str::to_owned).collect()
}

#[test]
fn orders_and_scopes_of_loads_stores_exchanges_and_fences_are_kept() {
    for (operation, expected) in GOLDEN_ATOMICS {
        let text = format!("define i32 @f(ptr addrspace(1) %p, i32 %v) {{\n {operation}\n ret i32 %v\n}}");
        assert_eq!(memory_instructions(&text).join(" "), *expected, "{operation}");
    }
}

/// Operations, and the instructions that they become.
const GOLDEN_ATOMICS: &[(&str, &str)] = &[
    ("%r = load atomic i32, ptr addrspace(1) %p monotonic, align 4", "ld.relaxed.sys.global.b32"),
    ("%r = load atomic i32, ptr addrspace(1) %p acquire, align 4", "ld.acquire.sys.global.b32"),
    ("%r = load atomic i32, ptr addrspace(1) %p seq_cst, align 4", "fence.sc.sys ld.acquire.sys.global.b32"),
    ("%r = load atomic i32, ptr addrspace(1) %p syncscope(\"device\") acquire, align 4", "ld.acquire.gpu.global.b32"),
    ("%r = load atomic i32, ptr addrspace(1) %p syncscope(\"block\") acquire, align 4", "ld.acquire.cta.global.b32"),
    ("store atomic i32 %v, ptr addrspace(1) %p monotonic, align 4", "st.relaxed.sys.global.b32"),
    ("store atomic i32 %v, ptr addrspace(1) %p release, align 4", "st.release.sys.global.b32"),
    ("store atomic i32 %v, ptr addrspace(1) %p seq_cst, align 4", "fence.sc.sys st.release.sys.global.b32"),
    ("store atomic i32 %v, ptr addrspace(1) %p syncscope(\"device\") release, align 4", "st.release.gpu.global.b32"),
    ("%r = cmpxchg ptr addrspace(1) %p, i32 0, i32 %v monotonic monotonic, align 4", "atom.relaxed.sys.global.cas.b32"),
    ("%r = cmpxchg ptr addrspace(1) %p, i32 0, i32 %v acq_rel acquire, align 4", "atom.acq_rel.sys.global.cas.b32"),
    (
        "%r = cmpxchg ptr addrspace(1) %p, i32 0, i32 %v seq_cst seq_cst, align 4",
        "fence.sc.sys atom.acquire.sys.global.cas.b32",
    ),
    (
        "%r = cmpxchg ptr addrspace(1) %p, i32 0, i32 %v syncscope(\"device\") release monotonic, align 4",
        "atom.release.gpu.global.cas.b32",
    ),
    ("fence acquire", "fence.acq_rel.sys"),
    ("fence release", "fence.acq_rel.sys"),
    ("fence acq_rel", "fence.acq_rel.sys"),
    ("fence seq_cst", "fence.sc.sys"),
    ("fence syncscope(\"device\") acq_rel", "fence.acq_rel.gpu"),
    ("fence syncscope(\"block\") seq_cst", "fence.sc.cta"),
    ("fence syncscope(\"singlethread\") seq_cst", ""),
    ("%r = atomicrmw xchg ptr addrspace(1) %p, i32 %v monotonic", "atom.global.exch.b32"),
    ("%r = atomicrmw max ptr addrspace(1) %p, i32 %v acquire", "atom.global.max.s32 fence.acq_rel.gpu"),
    ("%r = atomicrmw and ptr addrspace(1) %p, i32 %v release", "fence.acq_rel.gpu atom.global.and.b32"),
    (
        "%r = atomicrmw xor ptr addrspace(1) %p, i32 %v acq_rel",
        "fence.acq_rel.gpu atom.global.xor.b32 fence.acq_rel.gpu",
    ),
    ("%r = atomicrmw sub ptr addrspace(1) %p, i32 %v seq_cst", "fence.sc.gpu atom.global.add.u32 fence.acq_rel.gpu"),
    (
        "%r = atomicrmw add ptr addrspace(1) %p, i32 %v syncscope(\"block\") acq_rel",
        "fence.acq_rel.cta atom.global.add.u32 fence.acq_rel.cta",
    ),
];

#[test]
fn loads_and_stores_of_128_bits_are_one_instruction() {
    for (scope, expected) in [(0, "cta"), (1, "gpu")] {
        let context = context();
        let text = format!(
            "declare i128 @oxisycl.atomic_load_u128(ptr, i32)
            declare void @oxisycl.atomic_store_u128(ptr, i128, i32)
            define void @f(ptr %p, ptr %q) {{
                %value = call i128 @oxisycl.atomic_load_u128(ptr %p, i32 {scope})
                %more = add i128 %value, 1
                call void @oxisycl.atomic_store_u128(ptr %q, i128 %more, i32 {scope})
                ret void
            }}"
        );
        let module = module(&context, &text);
        assert!(!has_wide_operations(&module));
        legalize_for_nvptx(&module).expect("it is legalised");
        assert!(has_wide_operations(&module));
        let code = ptx(&module);
        for instruction in [format!("ld.relaxed.{expected}.b128"), format!("st.relaxed.{expected}.b128")] {
            assert_eq!(code.matches(&instruction).count(), 1, "{code}");
        }
        assert!(!code.contains("call"), "{code}");
    }
}
