//! Checks that are made of several ones: the first item that fails one of them fails, and checks of growing indices are scalar.

use super::bodies::{FAILS, body};
use super::{check, text_in_lanes};

/// Bodies with a check of two indices, as LLVM joins them: by the condition to go on, and by the one to fail.
fn joined(second: &str) -> [String; 3] {
    let with = |join: &str| {
        body(&format!(
            "%index = add i64 %x, 55
             %told = mul i64 %index, 3
             %p = getelementptr inbounds i32, ptr %first, i64 %index
             %row = lshr i64 %n, 1
             {second}
             {join} {FAILS}"
        ))
    };
    let is_out = "%out0 = icmp ule i64 %n, %index\n%out1 = xor i1 %right, true";
    [
        with("%left = icmp ult i64 %index, %n\n%ok = select i1 %left, i1 %right, i1 false"),
        with("%left = icmp ult i64 %index, %n\n%ok = and i1 %right, %left"),
        with(&format!("{is_out}\n%bad0 = select i1 %out1, i1 true, i1 %out0\n%ok = xor i1 %bad0, true")),
    ]
}

#[test]
fn an_item_that_fails_one_of_two_joined_checks_fails() {
    // One that all lanes share, which holds or does not, one whose index grows, and one that differs anyhow.
    for second in [
        "%right = icmp ult i64 2, %row",
        "%right = icmp ult i64 %row, 2",
        "%twice = shl i64 %x, 1\n%right = icmp ult i64 %twice, 21",
        "%u = load i32, ptr %a\n%right = icmp ult i32 %u, 33",
    ] {
        joined(second).iter().for_each(|body| check(body));
    }
}

#[test]
fn joined_checks_of_growing_indices_need_no_vectors_of_indices() {
    let scalar = |second: &str| joined(second).map(|body| text_in_lanes(&body).matches("icmp ult i64").count());
    assert_eq!(scalar("%twice = shl i64 %x, 1\n%right = icmp ult i64 %twice, 21"), [2; 3]);
    assert_eq!(scalar("%u = load i32, ptr %a\n%right = icmp ult i32 %u, 33"), [0; 3]);
}
