//! Which loops count as open.

use super::*;
use crate::passes::tests::{context, module};

/// Whether the kernel of some code has an open loop. `%own` is its position, `%length` a capture, and `@tile` the group's memory.
#[track_caller]
fn is_open(body: &str) -> bool {
    let context = context();
    let text = format!(
        "@tile = external addrspace(3) global [64 x i64]
        declare i64 @oxisycl.spirv.local_id(i32) nounwind willreturn memory(none)
        declare void @oxisycl.spirv.barrier() convergent
        declare void @oxisycl.end_work_item() noreturn
        declare i64 @unknown()
        define internal i64 @follows(ptr addrspace(3) %first, i64 %start) noinline {{
            br label %loop
        loop:
            %at = phi i64 [ %start, %0 ], [ %next, %loop ]
            %place = getelementptr i64, ptr addrspace(3) %first, i64 %at
            %next = load i64, ptr addrspace(3) %place
            %is_end = icmp eq i64 %next, 0
            br i1 %is_end, label %done, label %loop
        done:
            ret i64 %at
        }}
        define void @kernel(ptr byval(i64) %captures) {{
            %own = call i64 @oxisycl.spirv.local_id(i32 0)
            %length = load i64, ptr %captures
            {body}
        }}"
    );
    let module = module(&context, &text);
    module.verify("test").expect("a valid module");
    has(module.function("kernel").expect("the kernel"))
}

#[test]
fn a_counted_loop_is_closed() {
    assert!(!is_open(
        "br label %loop
        loop:
            %i = phi i64 [ %own, %0 ], [ %next, %loop ]
            %place = getelementptr i64, ptr addrspace(3) @tile, i64 %i
            %value = load i64, ptr addrspace(3) %place
            store i64 %value, ptr addrspace(3) @tile
            %next = add i64 %i, 1
            %more = icmp ult i64 %next, %length
            br i1 %more, label %loop, label %done
        done:
            ret void"
    ));
}

#[test]
fn a_chase_of_indices_is_open() {
    assert!(is_open(
        "br label %loop
        loop:
            %at = phi i64 [ %own, %0 ], [ %next, %loop ]
            %place = getelementptr i64, ptr addrspace(3) @tile, i64 %at
            %next = load i64, ptr addrspace(3) %place
            %is_end = icmp eq i64 %next, 0
            br i1 %is_end, label %done, label %loop
        done:
            ret void"
    ));
    assert!(is_open("%end = call i64 @follows(ptr addrspace(3) @tile, i64 %own) ret void"));
}

#[test]
fn a_check_that_panics_closes_no_loop() {
    assert!(is_open(
        "br label %loop
        loop:
            %n = phi i64 [ 0, %0 ], [ %count, %counts ]
            %value = load i64, ptr addrspace(3) @tile
            %is_end = icmp eq i64 %value, 0
            br i1 %is_end, label %done, label %counts
        counts:
            %count = add i64 %n, 1
            %overflows = icmp eq i64 %count, 0
            br i1 %overflows, label %panics, label %loop
        panics:
            call void @oxisycl.end_work_item()
            unreachable
        done:
            ret void"
    ));
}

#[test]
fn a_counted_loop_that_memory_may_end_earlier_is_closed() {
    let body = |start: &str| {
        format!(
            "br label %loop
            loop:
                %i = phi i64 [ 0, %0 ], [ %next, %goes_on ]
                %value = load i64, ptr addrspace(3) @tile
                %is_found = icmp eq i64 %value, %i
                br i1 %is_found, label %done, label %goes_on
            goes_on:
                %next = add i64 %i, 1
                %more = icmp ult i64 %next, %length
                br i1 %more, label %loop, label %done
            done:
                %end = phi i64 [ %i, %loop ], [ %next, %goes_on ]
                br label %again
            again:
                %j = phi i64 [ {start}, %done ], [ %step, %again ]
                %step = sub i64 %j, 1
                %left = icmp ne i64 %step, 0
                br i1 %left, label %again, label %out
            out:
                ret void"
        )
    };
    assert!(!is_open(&body("%length")));
    // How far the first loop came is what the memory decided.
    assert!(is_open(&body("%end")));
}

#[test]
fn a_count_that_depends_on_memory_is_open() {
    let body = |next: &str| {
        format!(
            "br label %loop
            loop:
                %i = phi i64 [ 0, %0 ], [ {next}, %meets ]
                %value = load i64, ptr addrspace(3) @tile
                %is_set = icmp eq i64 %value, 1
                br i1 %is_set, label %sets, label %meets
            sets:
                %more = add i64 %i, 1
                br label %meets
            meets:
                %some = phi i64 [ %i, %loop ], [ %more, %sets ]
                %always = add i64 %i, 1
                %is_end = icmp uge i64 {next}, %length
                br i1 %is_end, label %done, label %loop
            done:
                ret void"
        )
    };
    assert!(!is_open(&body("%always")));
    assert!(is_open(&body("%some")));
}

#[test]
fn a_condition_that_some_rounds_do_not_pass_is_no_way_out() {
    assert!(is_open(
        "br label %loop
        loop:
            %i = phi i64 [ 0, %0 ], [ %next, %passes ], [ %next, %loop ]
            %next = add i64 %i, 1
            %value = load i64, ptr addrspace(3) @tile
            %is_set = icmp eq i64 %value, 1
            br i1 %is_set, label %passes, label %loop
        passes:
            %is_end = icmp uge i64 %i, %length
            br i1 %is_end, label %done, label %loop
        done:
            ret void"
    ));
}

#[test]
fn an_unknown_result_and_a_variable_with_one_are_decided() {
    let body = |stored: &str| {
        format!(
            "%variable = alloca i64
            %given = call i64 @unknown()
            store i64 {stored}, ptr %variable
            br label %loop
            loop:
                %i = phi i64 [ 0, %0 ], [ %next, %loop ]
                %limit = load i64, ptr %variable
                %next = add i64 %i, 1
                %more = icmp ult i64 %next, %limit
                br i1 %more, label %loop, label %done
            done:
                ret void"
        )
    };
    assert!(!is_open(&body("%length")));
    assert!(is_open(&body("%given")));
}
