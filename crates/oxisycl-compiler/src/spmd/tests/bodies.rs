//! The bodies. `%env` points to the captures.

use super::{check, refusal, text_in_lanes};

/// What bodies may call, and the types that they use.
pub(super) const DECLARATIONS: &str = "
%captures = type { ptr, ptr, ptr, i64, ptr }
declare float @llvm.sqrt.f32(float)
declare float @llvm.fma.f32(float, float, float)
declare {i32, i1} @llvm.uadd.with.overflow.i32(i32, i32)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.ctlz.i32(i32, i1)
declare float @llvm.exp.f32(float)
declare float @llvm.pow.f32(float, float)
declare float @tanf(float)
define internal i32 @quotient(i32 %number, i32 %divisor) noinline nounwind willreturn memory(none) {
    %result = udiv i32 %number, %divisor
    ret i32 %result
}
declare void @llvm.lifetime.start.p0(ptr)
declare i32 @__gcc_personality_v0(i32, i32, i64, ptr, ptr)
declare void @unknown()
";

/// A body with its captures loaded: `%first`, `%second`, `%out`, `%n`, `%fail`, and the addresses `%a`, `%b`, `%o` of the item's elements.
pub(super) fn body(code: &str) -> String {
    format!(
        "define void @body(ptr %env, i64 %x) uwtable personality ptr @__gcc_personality_v0 {{
            %first = load ptr, ptr %env
            %e1 = getelementptr inbounds %captures, ptr %env, i64 0, i32 1
            %second = load ptr, ptr %e1
            %e2 = getelementptr inbounds %captures, ptr %env, i64 0, i32 2
            %out = load ptr, ptr %e2
            %e3 = getelementptr inbounds %captures, ptr %env, i64 0, i32 3
            %n = load i64, ptr %e3
            %e4 = getelementptr inbounds %captures, ptr %env, i64 0, i32 4
            %fail = load ptr, ptr %e4
            %a = getelementptr inbounds i32, ptr %first, i64 %x
            %b = getelementptr inbounds float, ptr %second, i64 %x
            %o = getelementptr inbounds i32, ptr %out, i64 %x
            br label %begin
            begin:
            {code}
        }}"
    )
}

#[test]
fn straight_code() {
    check(&body(
        "%u = load i32, ptr %a
         %v = load float, ptr %b
         %f = uitofp i32 %u to float
         %s = call float @llvm.sqrt.f32(float %v)
         %m = call float @llvm.fma.f32(float %s, float %f, float 1.5)
         %neg = fneg float %m
         %less = fcmp olt float %v, 8.0
         %r = select i1 %less, float %neg, float %m
         %i = call i32 @llvm.fptosi.sat.i32.f32(float %r)
         %z = call i32 @llvm.ctlz.i32(i32 %i, i1 false)
         %p = call {i32, i1} @llvm.uadd.with.overflow.i32(i32 %i, i32 %z)
         %sum = extractvalue {i32, i1} %p, 0
         %over = extractvalue {i32, i1} %p, 1
         %o1 = zext i1 %over to i32
         %t = xor i32 %sum, %o1
         store i32 %t, ptr %o
         ret void",
    ));
}

#[test]
fn a_loop_that_all_items_run_alike() {
    let code = "br label %head
         head:
         %j = phi i64 [ 0, %begin ], [ %next, %head ]
         %sum = phi float [ 0.0, %begin ], [ %more, %head ]
         %q = getelementptr inbounds float, ptr %second, i64 %j
         %w = load float, ptr %q
         %v = load float, ptr %b
         %d = fsub float %w, %v
         %more = call float @llvm.fma.f32(float %d, float %d, float %sum)
         %next = add nuw nsw i64 %j, 1
         %c = icmp eq i64 %next, %n
         br i1 %c, label %end, label %head
         end:
         store float %more, ptr %o
         ret void";
    check(&body(code));
    let text = text_in_lanes(&body(code));
    assert!(
        text.contains("load float, ptr %") && !text.contains("gather"),
        "the loaded element is one for all: {text}"
    );
}

#[test]
fn a_loop_with_two_exits_that_items_leave_one_by_one() {
    check(&body(
        "%u = load i32, ptr %a
         %v = load float, ptr %b
         br label %head
         head:
         %j = phi i32 [ 0, %begin ], [ %next, %latch ]
         %z = phi float [ %v, %begin ], [ %z2, %latch ]
         %big = fcmp ogt float %z, 1.0e4
         br i1 %big, label %escaped, label %latch
         latch:
         %z2 = call float @llvm.fma.f32(float %z, float %z, float %v)
         %next = add i32 %j, 1
         %c = icmp ugt i32 %next, %u
         br i1 %c, label %enough, label %head
         escaped:
         %e = add i32 %j, 1000
         br label %end
         enough:
         %bits = bitcast float %z2 to i32
         br label %end
         end:
         %r = phi i32 [ %e, %escaped ], [ %bits, %enough ]
         store i32 %r, ptr %o
         ret void",
    ));
}

#[test]
fn golden_lanes() {
    let code = "%u = load i32, ptr %a
         br label %head
         head:
         %j = phi i32 [ 1, %begin ], [ %next, %latch ]
         %t = mul i32 %j, %u
         %big = icmp ugt i32 %t, 100
         br i1 %big, label %end, label %latch
         latch:
         %next = add i32 %j, 1
         %w = zext i32 %next to i64
         %ok = icmp ult i64 %w, %n
         br i1 %ok, label %head, label %bad
         bad:
         call void %fail(i64 %w) noreturn
         unreachable
         end:
         store i32 %t, ptr %o
         ret void";
    crate::golden::check("lanes.ll", &text_in_lanes(&body(code)));
}

#[test]
fn nested_loops_of_different_lengths() {
    check(&body(
        "%u = load i32, ptr %a
         %few = urem i32 %u, 5
         br label %outer
         outer:
         %i = phi i32 [ 0, %begin ], [ %i2, %outer.latch ]
         %s = phi i32 [ 1, %begin ], [ %s3, %outer.latch ]
         br label %inner
         inner:
         %j = phi i32 [ 0, %outer ], [ %j2, %inner ]
         %s1 = phi i32 [ %s, %outer ], [ %s2, %inner ]
         %t = mul i32 %s1, 3
         %s2 = add i32 %t, %j
         %j2 = add i32 %j, 1
         %more = icmp ule i32 %j2, %i
         br i1 %more, label %inner, label %outer.latch
         outer.latch:
         %s3 = xor i32 %s2, %i
         %i2 = add i32 %i, 1
         %again = icmp ule i32 %i2, %few
         br i1 %again, label %outer, label %end
         end:
         store i32 %s3, ptr %o
         ret void",
    ));
}

#[test]
fn a_uniform_loop_in_a_divergent_one_which_it_leaves() {
    check(&body(
        "%u = load i32, ptr %a
         br label %outer
         outer:
         %i = phi i32 [ 0, %begin ], [ %i2, %latch ]
         %s = phi i32 [ %u, %begin ], [ %s2, %latch ]
         br label %inner
         inner:
         %j = phi i32 [ 0, %outer ], [ %j2, %inner.latch ]
         %s1 = phi i32 [ %s, %outer ], [ %s2, %inner.latch ]
         %late = icmp eq i32 %i, 9
         br i1 %late, label %gone, label %inner.latch
         inner.latch:
         %t = mul i32 %s1, 5
         %s2 = add i32 %t, %j
         %j2 = add i32 %j, 1
         %more = icmp ult i32 %j2, 3
         br i1 %more, label %inner, label %latch
         latch:
         %i2 = add i32 %i, 1
         %again = icmp ult i32 %i2, %u
         br i1 %again, label %outer, label %end
         gone:
         %g = xor i32 %s1, 255
         br label %end
         end:
         %r = phi i32 [ %g, %gone ], [ %s2, %latch ]
         store i32 %r, ptr %o
         ret void",
    ));
}

#[test]
fn a_uniform_loop_that_some_items_run_and_leave_an_outer_one_from() {
    check(&body(
        "%u = load i32, ptr %a
         %odd = and i32 %u, 1
         %is = icmp eq i32 %odd, 0
         br label %outer
         outer:
         %i = phi i32 [ 0, %begin ], [ %i2, %latch ]
         %s = phi i32 [ %u, %begin ], [ %s3, %latch ]
         br i1 %is, label %inner, label %latch
         inner:
         %j = phi i32 [ 0, %outer ], [ %j2, %inner.latch ]
         %s1 = phi i32 [ %s, %outer ], [ %s2, %inner.latch ]
         %late = icmp eq i32 %i, 4
         br i1 %late, label %gone, label %inner.latch
         inner.latch:
         %t = mul i32 %s1, 5
         %s2 = add i32 %t, %j
         %j2 = add i32 %j, 1
         %more = icmp ult i32 %j2, 3
         br i1 %more, label %inner, label %latch
         latch:
         %s3 = phi i32 [ %s, %outer ], [ %s2, %inner.latch ]
         %i2 = add i32 %i, 1
         %again = icmp ult i32 %i2, %u
         br i1 %again, label %outer, label %end
         gone:
         %g = xor i32 %s1, 255
         br label %end
         end:
         %r = phi i32 [ %g, %gone ], [ %s3, %latch ]
         %left = phi i32 [ %i, %gone ], [ %i2, %latch ]
         %sum = add i32 %r, %left
         store i32 %sum, ptr %o
         ret void",
    ));
}

#[test]
fn stores_and_divisions_under_a_condition() {
    check(&body(
        "%u = load i32, ptr %a
         %even = and i32 %u, 1
         %is = icmp eq i32 %even, 0
         br i1 %is, label %then, label %other
         then:
         %k = and i32 %u, 6
         %q = udiv i32 1000, %u
         store i32 %q, ptr %o
         br label %end
         other:
         %deep = icmp ugt i32 %u, 20
         br i1 %deep, label %far, label %end
         far:
         %w = zext i32 %u to i64
         %at = getelementptr inbounds i32, ptr %first, i64 %w
         %g = load i32, ptr %at
         %m = sub i32 %g, %u
         br label %end
         end:
         %r = phi i32 [ %k, %then ], [ 7, %other ], [ %m, %far ]
         %old = load i32, ptr %o
         %sum = add i32 %old, %r
         store i32 %sum, ptr %o
         ret void"
            .replace("udiv i32 1000, %u", "or i32 %u, 1\n %q0 = udiv i32 1000, %q")
            .replace("store i32 %q,", "store i32 %q0,")
            .as_str(),
    ));
}

#[test]
fn a_division_by_zero_in_items_that_do_not_divide() {
    check(&body(
        "%u = load i32, ptr %a
         %odd = and i32 %u, 1
         %is = icmp eq i32 %odd, 0
         br i1 %is, label %end, label %then
         then:
         %q = udiv i32 1000, %odd
         %q1 = sdiv i32 %u, %odd
         %q2 = add i32 %q, %q1
         br label %end
         end:
         %r = phi i32 [ 5, %begin ], [ %q2, %then ]
         store i32 %r, ptr %o
         ret void",
    ));
}

#[test]
fn a_branch_that_all_items_take_alike() {
    let code = "%short = icmp ult i64 %n, 10
         br i1 %short, label %then, label %other
         then:
         store i32 1, ptr %o
         br label %end
         other:
         %v = load i32, ptr %a
         store i32 %v, ptr %o
         br label %end
         end:
         ret void";
    check(&body(code));
    let text = text_in_lanes(&body(code));
    assert!(!text.contains("masked"), "no lane is masked: {text}");
}

#[test]
fn the_last_item_wins_at_one_address() {
    check(&body(
        "%u = load i32, ptr %a
         store i32 %u, ptr %out
         %is = icmp ult i32 %u, 20
         br i1 %is, label %then, label %end
         then:
         %q = getelementptr inbounds i32, ptr %out, i64 1
         store i32 %u, ptr %q
         br label %end
         end:
         ret void",
    ));
}

#[test]
fn addresses_at_a_distance_and_backwards() {
    check(&body(
        "%x2 = shl i64 %x, 1
         %p = getelementptr inbounds i32, ptr %first, i64 %x2
         %u = load i32, ptr %p
         %back = sub i64 100, %x
         %q = getelementptr inbounds i32, ptr %out, i64 %back
         %low = trunc i64 %x to i8
         %wide = zext i8 %low to i32
         %s = add i32 %u, %wide
         store i32 %s, ptr %q
         %byte = getelementptr inbounds i8, ptr %first, i64 %x
         %c = load i8, ptr %byte
         %to = getelementptr inbounds i8, ptr %out, i64 %x
         store i8 %c, ptr %to
         ret void",
    ));
}

#[test]
fn variables_of_each_item() {
    check(
        &body(
            "%mine = alloca [4 x i32]
         call void @llvm.lifetime.start.p0(ptr %mine)
         store i32 1, ptr %mine
         %m1 = getelementptr inbounds i32, ptr %mine, i64 1
         store i32 2, ptr %m1
         %m2 = getelementptr inbounds i32, ptr %mine, i64 2
         store i32 3, ptr %m2
         %m3 = getelementptr inbounds i32, ptr %mine, i64 3
         store i32 4, ptr %m3
         %u = load i32, ptr %a
         %k = and i32 %u, 3
         %k64 = zext i32 %k to i64
         %p = getelementptr inbounds i32, ptr %mine, i64 %k64
         store i32 %u, ptr %p
         %r = load i32, ptr %m2
         store i32 %r, ptr %o
         ret void"
                .replace("%mine = alloca [4 x i32]", "")
                .as_str(),
        )
        .replacen("%first =", "%mine = alloca [4 x i32]\n %first =", 1),
    );
}

#[test]
fn a_switch() {
    check(&body(
        "%u = load i32, ptr %a
         %k = and i32 %u, 3
         switch i32 %k, label %end [ i32 0, label %zero i32 1, label %one i32 3, label %one ]
         zero:
         store i32 10, ptr %o
         br label %end
         one:
         %t = mul i32 %u, %u
         br label %end
         end:
         %r = phi i32 [ 1, %begin ], [ 2, %zero ], [ %t, %one ]
         %q = getelementptr inbounds i32, ptr %o, i64 70
         store i32 %r, ptr %q
         ret void",
    ));
}

/// A bounds check, and code that panics, which tells the item by a landing pad, too.
pub(super) const FAILS: &str = "
    br i1 %ok, label %in, label %bad
    in:
    %t = load i32, ptr %p
    store i32 %t, ptr %o
    ret void
    bad:
    invoke void %fail(i64 %told) noreturn to label %never unwind label %pad
    never:
    unreachable
    pad:
    %landed = landingpad { ptr, i32 } cleanup
    %q = getelementptr inbounds i32, ptr %out, i64 255
    store i32 77, ptr %q
    resume { ptr, i32 } %landed";

#[test]
fn the_first_item_out_of_bounds_fails() {
    check(&body(&format!(
        "%index = add i64 %x, 55
         %told = mul i64 %index, 3
         %p = getelementptr inbounds i32, ptr %first, i64 %index
         %ok = icmp ult i64 %index, %n {FAILS}"
    )));
    check(&body(&format!(
        "%u = load i32, ptr %a
         %told = zext i32 %u to i64
         %p = getelementptr inbounds i32, ptr %first, i64 %told
         %ok = icmp ult i32 %u, 33 {FAILS}"
    )));
    // All of them, by a condition that is the same for all.
    check(&body(&format!(
        "%told = add i64 %x, 1000
         %p = getelementptr inbounds i32, ptr %first, i64 %x
         %ok = icmp ult i64 %n, 33 {FAILS}"
    )));
    // An index that wraps on the way to the last lane.
    check(&body(&format!(
        "%told = add i64 %x, -3
         %p = getelementptr inbounds i32, ptr %first, i64 %x
         %ok = icmp ult i64 %told, -2 {FAILS}"
    )));
}

#[test]
fn an_item_fails_in_a_loop_that_others_have_left() {
    check(&body(
        "%u = load i32, ptr %a
         br label %head
         head:
         %j = phi i32 [ 0, %begin ], [ %next, %latch ]
         %far = icmp ugt i32 %j, 35
         br i1 %far, label %bad, label %latch
         latch:
         %next = add i32 %j, 1
         %c = icmp ugt i32 %next, %u
         br i1 %c, label %end, label %head
         end:
         store i32 %next, ptr %o
         ret void
         bad:
         call void %fail(i64 %x) noreturn
         unreachable",
    ));
}

#[test]
fn what_could_behave_otherwise_in_lanes_is_refused() {
    let reason = |code: &str| refusal(&body(code));
    assert_eq!(reason("fence acquire\nret void"), "it may wait for another work-item");
    let exchange = "%old = cmpxchg ptr %o, i32 0, i32 1 monotonic monotonic\nret void";
    let code = body("call void @llvm.x86.sse2.pause()\nret void");
    let pauses = refusal(&format!("declare void @llvm.x86.sse2.pause()\n{code}"));
    assert_eq!([reason(exchange), pauses], ["it may wait for another work-item"; 2]);
    assert_eq!(reason("store volatile i32 1, ptr %o\nret void"), "it has a volatile access");
    assert_eq!(reason("call void @unknown()\nret void"), "it calls `unknown`");
    assert_eq!(
        reason("%h = load i128, ptr %a\nstore i128 %h, ptr %o\nret void"),
        "it has integers of 128 bits, which differ between work-items"
    );
    let local = "@local = thread_local global i32 0\n@plain = global i32 0\n";
    for name in ["local", "plain"] {
        let text = body(&format!("%v = load i32, ptr @{name}\nstore i32 %v, ptr %o\nret void"));
        assert_eq!(refusal(&format!("{local}{text}")), format!("it uses the static `{name}`"));
    }
    let destructor = "call void @unknown()\n resume { ptr, i32 } %landed";
    let dropping = FAILS.replace("resume { ptr, i32 } %landed", destructor);
    let code = format!(
        "%told = add i64 %x, 0\n%p = getelementptr i32, ptr %first, i64 %x\n%ok = icmp ult i64 %x, 3 {dropping}"
    );
    assert_eq!(reason(&code), "it calls `unknown` when it panics, as a destructor does");
    let caught = FAILS.replace("resume { ptr, i32 } %landed", "ret void");
    let code =
        format!("%told = add i64 %x, 0\n%p = getelementptr i32, ptr %first, i64 %x\n%ok = icmp ult i64 %x, 3 {caught}");
    assert_eq!(reason(&code), "it catches panics");
}
