//! Variables of each item, and lanes that are not active.

use super::bodies::{FAILS, body};
use super::{check, refusal, text_in_lanes};

/// A body with a variable `%mine`.
fn with_variable(variable: &str, code: &str) -> String {
    body(code).replacen("%first =", &format!("%mine = {variable}\n %first ="), 1)
}

#[test]
fn variables_of_several_elements_are_refused_though_only_a_panic_uses_them() {
    let code = "%told = add i64 %x, 0
        %p = getelementptr i32, ptr %first, i64 %x
        %ok = icmp ult i64 %x, 3"
        .to_owned()
        + &FAILS.replace("bad:", "bad:\n store i8 1, ptr %mine");
    let reason = refusal(&with_variable("alloca i8, i64 64", &code));
    assert_eq!(reason, "it has a variable of a number of elements");
    check(&with_variable("alloca [64 x i8]", &code));
}

#[test]
fn variables_are_aligned_in_each_lane() {
    check(&with_variable(
        "alloca [12 x i8], align 16",
        "%u = load i32, ptr %a
         %at = ptrtoint ptr %mine to i64
         %low = and i64 %at, 15
         %low32 = trunc i64 %low to i32
         store i32 %u, ptr %mine, align 16
         %k = and i32 %u, 1
         %k64 = zext i32 %k to i64
         %p = getelementptr inbounds i32, ptr %mine, i64 %k64
         store i32 %low32, ptr %p
         %r = load i32, ptr %mine, align 16
         store i32 %r, ptr %o
         %o70 = getelementptr inbounds i32, ptr %o, i64 70
         store i32 %low32, ptr %o70
         ret void",
    ));
}

#[test]
fn variables_that_are_large_in_all_lanes_are_refused() {
    let code = "store i8 1, ptr %mine\n %r = load i8, ptr %mine\n store i8 %r, ptr %o\n ret void";
    let reason = "its variables have more than 65536 bytes in 4 lanes";
    assert_eq!(refusal(&with_variable("alloca [16385 x i8]", code)), reason);
    let two = with_variable("alloca [16380 x i8]", &code.replacen("store", "store i64 %x, ptr %other\n store", 1));
    assert_eq!(refusal(&two.replacen("%first =", "%other = alloca i64\n %first =", 1)), reason);
    text_in_lanes(&with_variable("alloca [16384 x i8]", code));
}

#[test]
fn a_selection_between_one_value_and_itself() {
    check(&body(
        "%u = load i32, ptr %a
         %is = icmp ult i32 %u, 20
         %same = select i1 %is, i64 %x, i64 %x
         %p = getelementptr inbounds i32, ptr %first, i64 %same
         %v = load i32, ptr %p
         store i32 %v, ptr %o
         ret void",
    ));
}

#[test]
fn items_that_do_not_load_have_wild_addresses() {
    check(&body(
        "%u = load i32, ptr %a
         %wide = zext i32 %u to i64
         %far = udiv i64 %wide, 20
         %wild = shl i64 %far, 44
         %index = add i64 %wide, %wild
         %p = getelementptr i32, ptr %first, i64 %index
         %behind = getelementptr i32, ptr %out, i64 70
         %q = getelementptr i32, ptr %behind, i64 %index
         %is = icmp ult i32 %u, 20
         br i1 %is, label %then, label %end
         then:
         %v = load i32, ptr %p
         store i32 %v, ptr %o
         store i32 7, ptr %q
         br label %end
         end:
         ret void",
    ));
}

#[test]
fn lanes_that_are_not_active_divide_by_constants_too() {
    let text = |divisor: &str| {
        let body = body(&format!(
            "%u = load i32, ptr %a
             %odd = or i32 %u, 1
             %is = icmp ult i32 %u, 20
             br i1 %is, label %then, label %end
             then:
             %q = udiv i32 %u, {divisor}
             %r = srem i32 %q, {divisor}
             store i32 %r, ptr %o
             br label %end
             end:
             ret void"
        ));
        check(&body);
        let text = text_in_lanes(&body);
        let divisions = text.lines().filter(|line| line.contains(" = udiv <4") || line.contains(" = srem <4"));
        divisions.map(|line| line.ends_with(", splat (i32 31)")).collect::<Vec<_>>()
    };
    let constant = text("31");
    assert!(!constant.is_empty() && constant.iter().all(|is_constant| *is_constant), "{constant:?}");
    assert!(text("%odd").iter().all(|is_constant| !is_constant));
}

#[test]
fn items_that_no_lane_loads_for_have_a_null_pointer() {
    let code = "%u = load i32, ptr %a
         %is.far = icmp ugt i64 %n, 1000
         %p = select i1 %is.far, ptr %first, ptr null
         %row = getelementptr i32, ptr %p, i64 %x
         %is = icmp ugt i32 %u, 100
         br i1 %is, label %then, label %end
         then:
         %v = load i32, ptr %p
         %w = load i32, ptr %row
         %s = add i32 %v, %w
         store i32 %s, ptr %p
         br label %end
         end:
         store i32 %u, ptr %o
         ret void";
    check(&body(code));
}

#[test]
fn a_masked_access_has_the_alignment_of_an_element() {
    let code = "%u = load i32, ptr %a
         %is = icmp ult i32 %u, 20
         br i1 %is, label %then, label %end
         then:
         %v = load i32, ptr %b, align 16
         store i32 %v, ptr %o, align 16
         br label %end
         end:
         ret void";
    let text = text_in_lanes(&body(code));
    assert!(text.contains("masked.load") && text.contains("masked.store") && !text.contains("ptr align 16"), "{text}");
}

#[test]
fn two_values_that_only_some_items_compute() {
    check(&body(
        "%u = load i32, ptr %a
         %is = icmp ult i32 %u, 20
         br i1 %is, label %then, label %end
         then:
         %some = call {i32, i1} @llvm.uadd.with.overflow.i32(i32 %u, i32 -10)
         br label %end
         end:
         %pair = phi {i32, i1} [ { i32 7, i1 true }, %begin ], [ %some, %then ]
         %first.one = extractvalue {i32, i1} %pair, 0
         %second.one = extractvalue {i32, i1} %pair, 1
         %r = select i1 %second.one, i32 %first.one, i32 3
         store i32 %r, ptr %o
         ret void",
    ));
}

#[test]
fn atomic_operations_are_made_for_one_lane_after_the_other() {
    // Items of one vector meet at the same place. The number of the item that is last stays, or the sum.
    let code = |masked: &str| {
        format!(
            "%u = load i32, ptr %a
             {masked}
             %c = getelementptr inbounds i32, ptr %out, i64 200
             %d = getelementptr inbounds i32, ptr %out, i64 201
             %old = atomicrmw add ptr %c, i32 %u monotonic
             store atomic i32 %u, ptr %d monotonic, align 4
             fence release
             %of_all = load atomic i32, ptr %second monotonic, align 4
             %other = atomicrmw umax ptr %o, i32 %of_all monotonic
             br label %end
             end:
             ret void"
        )
    };
    check(&body(&code("")));
    check(&body(&code("%some = icmp ult i32 %u, 17\n br i1 %some, label %then, label %end\n then:")));
}

#[test]
fn functions_that_only_compute_are_called_for_active_lanes_alone() {
    let code = body(
        "%v = load float, ptr %b
         %u = load i32, ptr %a
         %t = call float @tanf(float %v)
         %e = call float @llvm.exp.f32(float %t)
         %some = icmp ne i32 %u, 0
         br i1 %some, label %then, label %end
         then:
         %q = call i32 @quotient(i32 1000, i32 %u)
         %p = call float @llvm.pow.f32(float %v, float %t)
         br label %end
         end:
         %r = phi float [ %e, %begin ], [ %p, %then ]
         %i = phi i32 [ 0, %begin ], [ %q, %then ]
         %bits = bitcast float %r to i32
         %s = xor i32 %bits, %i
         store i32 %s, ptr %o
         ret void",
    );
    check(&code);
}

#[test]
fn a_call_with_what_all_items_have_is_made_once() {
    let text = text_in_lanes(&body(
        "%w = load float, ptr %second
         %t = call float @tanf(float %w)
         %v = load float, ptr %b
         %r = fadd float %v, %t
         %bits = bitcast float %r to i32
         store i32 %bits, ptr %o
         ret void",
    ));
    assert_eq!(text.matches("@tanf(").count(), 1, "{text}");
}

/// Once LLVM read an element that no lane has, in front of the branch that asks for one. The address was wild.
#[test]
fn the_number_of_the_last_item_is_frozen() {
    let code = "%u = load i32, ptr %a
         %is = icmp ugt i32 %u, 38
         br i1 %is, label %then, label %end
         then:
         store i32 %u, ptr %out
         br label %end
         end:
         ret void";
    check(&body(code));
    let text = text_in_lanes(&body(code));
    let lane = text.lines().find(|line| line.contains("@llvm.ctlz.")).expect("the last lane");
    let lane = lane.split_once(" =").expect("a value").0.trim();
    assert!(text.contains(&format!("freeze i4 {lane}")), "{text}");
}
