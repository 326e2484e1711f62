//! Integers of 3, 5, 6 and 7 bytes in memory, whose elements stand without gaps.

use super::bodies::body;
use super::{check, text_in_lanes};

/// A body that changes elements of so many bytes, each with the one at the other's place, under a condition.
fn changed(bytes: u32, condition: &str) -> String {
    let of = format!("i{}", 8 * bytes);
    body(&format!(
        "%u = load i32, ptr %a
         %p = getelementptr inbounds [{bytes} x i8], ptr %first, i64 %x
         %q = getelementptr inbounds [{bytes} x i8], ptr %out, i64 %x
         {condition}
         br i1 %is, label %then, label %end
         then:
         %v = load {of}, ptr %p, align 1
         %w = load {of}, ptr %q, align 1
         %high = lshr {of} %v, 8
         %wide = zext i32 %u to i64
         %place = getelementptr inbounds [{bytes} x i8], ptr %second, i64 %wide
         %far = load {of}, ptr %place, align 1
         %s1 = add {of} %high, %w
         %s = xor {of} %s1, %far
         store {of} %s, ptr %q, align 1
         br label %end
         end:
         ret void"
    ))
}

const ALWAYS: &str = "%is = icmp ugt i64 %n, 0";
const SOMETIMES: &str = "%low = and i32 %u, 3 %is = icmp ne i32 %low, 0";

#[test]
fn elements_of_all_odd_sizes() {
    for bytes in [3, 5, 6, 7] {
        check(&changed(bytes, ALWAYS));
        check(&changed(bytes, SOMETIMES));
    }
}

#[test]
fn consecutive_elements_are_accessed_together() {
    let text = text_in_lanes(&changed(3, ALWAYS));
    assert_eq!(text.matches("load <12 x i8>").count(), 2, "{text}");
    assert_eq!(text.matches("store <12 x i8>").count(), 1, "{text}");
    // Those at scattered places alone.
    assert_eq!(text.matches("load i24").count(), 4, "{text}");
    assert!(!text.contains("store i24"), "{text}");
}

#[test]
fn elements_at_other_distances_are_accessed_one_by_one() {
    let code = |of: &str, store: &str| {
        body(&format!(
            "%p = getelementptr inbounds [2 x i32], ptr %first, i64 %x
             %v = load {of}, ptr %p, align 4
             %q = getelementptr inbounds [{store} x i8], ptr %out, i64 %x
             store {of} %v, ptr %q, align 1
             %all = getelementptr inbounds i8, ptr %out, i64 1000
             store {of} %v, ptr %all, align 8
             ret void"
        ))
    };
    check(&code("i24", "4"));
    check(&code("i56", "8"));
    check(&code("i40", "8"));
}
