//! Fields of structures: whole structures are accessed, and fields are parted and joined by shuffles.

use super::bodies::body;
use super::{check, text_in_lanes};

/// The statements that have `%p` and `%q` as the addresses of an item's structures of so many bytes, in what it reads and writes.
fn structures(bytes: u64) -> String {
    format!(
        "%p = getelementptr inbounds [{bytes} x i8], ptr %first, i64 %x
         %q = getelementptr inbounds [{bytes} x i8], ptr %out, i64 %x
        "
    )
}

/// Loads of fields with their types and offsets, as `%v0`, `%v1` and so on.
fn loads(fields: &[(&str, u64)]) -> String {
    let load = |(number, (of, at)): (usize, &(&str, u64))| {
        format!("%p{number} = getelementptr inbounds i8, ptr %p, i64 {at}\n%v{number} = load {of}, ptr %p{number}\n")
    };
    fields.iter().enumerate().map(load).collect()
}

/// Stores of values to fields with their types and offsets.
fn stores(fields: &[(&str, u64, &str)]) -> String {
    let store = |(number, (of, at, value)): (usize, &(&str, u64, &str))| {
        format!("%q{number} = getelementptr inbounds i8, ptr %q, i64 {at}\nstore {of} {value}, ptr %q{number}\n")
    };
    fields.iter().enumerate().map(store).collect()
}

#[test]
fn structures_of_two_to_eight_fields_are_copied_with_their_fields_in_another_order() {
    for of in ["i8", "i16", "i32", "double"] {
        let size = match of {
            "i8" => 1,
            "i16" => 2,
            "i32" => 4,
            _ => 8,
        };
        // The words that arrays have in tests are enough for these.
        for count in (2..=8).filter(|count| count * size <= 16) {
            let fields: Vec<_> = (0..count).map(|field| (of, field * size)).collect();
            let names: Vec<_> = (0..count).map(|field| format!("%v{field}")).collect();
            let turned: Vec<_> =
                fields.iter().rev().zip(&names).map(|((of, at), value)| (*of, *at, &**value)).collect();
            let code = structures(count * size) + &loads(&fields) + &stores(&turned) + "ret void";
            check(&body(&code));
            let text = text_in_lanes(&body(&code));
            assert!(!text.contains("gather") && !text.contains("scatter"), "{count} of {of}: {text}");
        }
    }
}

/// What a body that loads some fields of the item's structure makes of them: their sum as a word.
fn sum(bytes: u64, fields: &[(&str, u64)]) -> String {
    let mut code = structures(bytes) + &loads(fields) + "%s0 = add i32 0, 0\n";
    for (number, (of, _)) in fields.iter().enumerate() {
        let wide = match *of {
            "i32" => format!("%w{number} = add i32 %v{number}, 1\n"),
            "i64" => format!("%w{number} = trunc i64 %v{number} to i32\n"),
            of => format!("%w{number} = zext {of} %v{number} to i32\n"),
        };
        code +=
            &format!("{wide}%m{number} = mul i32 %s{number}, 3\n%s{} = add i32 %m{number}, %w{number}\n", number + 1);
    }
    body(&format!("{code}store i32 %s{}, ptr %o\nret void", fields.len()))
}

#[test]
fn some_fields_and_those_of_several_sizes_are_loaded_together() {
    for (bytes, fields) in [
        (12, &[("i32", 4), ("i32", 0)][..]),
        (12, &[("i32", 8)]),
        (16, &[("i32", 0), ("i32", 12)]),
        (16, &[("i64", 8), ("i32", 4), ("i32", 0)]),
        (16, &[("i64", 0), ("i32", 8)]),
        (16, &[("i8", 0), ("i16", 2), ("i32", 4), ("i64", 8)]),
        (4, &[("i8", 0), ("i8", 1), ("i8", 2)]),
        (4, &[("i16", 2), ("i8", 1), ("i8", 0)]),
        (3, &[("i8", 2), ("i8", 0), ("i8", 1)]),
        (3, &[("i8", 0), ("i8", 1)]),
        (6, &[("i16", 2), ("i16", 0), ("i16", 4)]),
        (8, &[("i8", 1), ("i8", 4), ("i8", 6)]),
        (12, &[("i16", 0), ("i16", 2), ("i32", 4), ("i32", 8)]),
    ] {
        check(&sum(bytes, fields));
        let text = text_in_lanes(&sum(bytes, fields));
        let is_wide = fields.len() == 1 || !text.contains("gather");
        assert!(is_wide, "{fields:?} of {bytes} bytes: {text}");
    }
}

#[test]
fn nothing_is_loaded_behind_the_last_field() {
    // 4 lanes: the last one's structure ends with its byte 8.
    let text = text_in_lanes(&sum(12, &[("i32", 0), ("i32", 4)]));
    let loads: Vec<_> = text.lines().filter(|line| line.contains("load <4 x i32>")).collect();
    assert_eq!(loads.len(), 3, "{text}");
    assert!(text.contains("i64 28"), "44 bytes are loaded, the last 16 of them from byte 28 on: {text}");
    assert!(!text.contains("i64 32"), "{text}");
}

#[test]
fn stores_of_some_fields_leave_the_others_alone() {
    for kept in 0..3 {
        let fields = [("i32", 0, "%u"), ("i32", 4, "%w"), ("i32", 8, "%u")];
        let some: Vec<_> = fields.into_iter().filter(|(_, at, _)| *at != 4 * kept).collect();
        let code = format!("{}%u = load i32, ptr %a\n%w = add i32 %u, 5\n{}ret void", structures(12), stores(&some));
        check(&body(&code));
        let text = text_in_lanes(&body(&code));
        assert!(text.contains("scatter"), "{text}");
    }
}

#[test]
fn fields_are_changed_in_place_in_the_order_of_the_program() {
    let both = "%q0 = getelementptr inbounds i8, ptr %q, i64 0
         %q1 = getelementptr inbounds i8, ptr %q, i64 4
         %u = load i32, ptr %a\n";
    for code in [
        // Loads and stores by turns, each of another field.
        "%v0 = load i32, ptr %q0 %s0 = add i32 %v0, %u store i32 %s0, ptr %q0
         %v1 = load i32, ptr %q1 %s1 = mul i32 %v1, %s0 store i32 %s1, ptr %q1",
        // A load of what was stored before.
        "%v1 = load i32, ptr %q1 store i32 %u, ptr %q0
         %v0 = load i32, ptr %q0 %s0 = add i32 %v0, %v1 store i32 %s0, ptr %q1",
        // A field that is stored twice.
        "store i32 %u, ptr %q0 store i32 7, ptr %q1
         %s0 = add i32 %u, 9 store i32 %s0, ptr %q0",
        // A store to a place that may be that of a field.
        "%v0 = load i32, ptr %q0 %other = and i64 %n, 0
         %far = getelementptr inbounds [2 x i32], ptr %out, i64 %x, i64 1
         %same = getelementptr inbounds i32, ptr %far, i64 %other
         store i32 %u, ptr %same
         %v1 = load i32, ptr %q1 %s1 = add i32 %v1, %v0 store i32 %s1, ptr %q0",
        // A load behind stores that are made later than one of its group.
        "store i32 %u, ptr %q0 %v1 = load i32, ptr %q1
         store i32 7, ptr %q1 %v0 = load i32, ptr %q0 %s0 = add i32 %v0, %v1
         store i32 %s0, ptr %o",
        // A load between two stores.
        "%other = and i64 %n, 0 %same = getelementptr inbounds i32, ptr %q0, i64 %other
         store i32 %u, ptr %q0 %v0 = load i32, ptr %same %s0 = add i32 %v0, 3
         store i32 %s0, ptr %q1",
    ] {
        let lines = code.replace(" store", "\nstore").replace(" %s0 =", "\n%s0 =").replace(" %s1 =", "\n%s1 =");
        let lines = lines
            .replace(" %v0 =", "\n%v0 =")
            .replace(" %v1 =", "\n%v1 =")
            .replace(" %other =", "\n%other =")
            .replace(" %same =", "\n%same =");
        check(&body(&(structures(8) + both + &lines + "\nret void")));
    }
}

#[test]
fn fields_under_masks_are_accessed_lane_by_lane() {
    let code = structures(12)
        + "%u = load i32, ptr %a
         %low = and i32 %u, 1
         %is = icmp eq i32 %low, 0
         br i1 %is, label %then, label %end
         then:\n"
        + &loads(&[("i32", 0), ("i32", 4), ("i32", 8)])
        + &stores(&[("i32", 0, "%v2"), ("i32", 4, "%v1"), ("i32", 8, "%v0")])
        + "br label %end
         end:
         ret void";
    check(&body(&code));
    let text = text_in_lanes(&body(&code));
    // For the case that all lanes are active, and for the others.
    assert!(text.contains("gather") && text.contains("shufflevector"), "{text}");
}

#[test]
fn golden_fields() {
    let code = structures(12)
        + &loads(&[("i32", 0), ("i32", 4), ("i32", 8)])
        + "%s = add i32 %v0, %v1\n"
        + &stores(&[("i32", 0, "%v2"), ("i32", 4, "%s"), ("i32", 8, "%v0")])
        + "ret void";
    crate::golden::check("fields.ll", &text_in_lanes(&body(&code)));
}
