use super::*;
use crate::passes::tests::{context, module};

/// What is refused in a kernel with this body. `%id` is the position in the group, `%g` that of the group, `%n` and `%c` are captures, and `%p` is
/// memory that changes.
fn refusal(body: &str) -> Option<String> {
    let context = context();
    let text = format!(
        "@{LOCAL_MEMORY} = external addrspace(3) global [0 x i8]
        @table = private constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]
        declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
        declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
        declare i64 @oxisycl.spirv.group_id(i32)
        declare i32 @llvm.umin.i32(i32, i32)
        declare i32 @llvm.fptosi.sat.i32.f32(float)
        declare i32 @llvm.fptoui.sat.i32.f32(float)
        declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
        declare void @{CONVERGENCE}() convergent
        declare i64 @{UNIFORM}(i64)
        declare ptr @{LAUNCH}()
        declare i32 @unknown(i32)
        declare void @keeps(ptr)
        declare void @fails() noreturn
        define i32 @smaller(i32 %a, i32 %b) {{
            %r = call i32 @llvm.umin.i32(i32 %a, i32 %b) ret i32 %r
        }}
        define i32 @computes(i32 %a, i32 %b) {{
            %more = icmp ugt i32 %a, 9
            br i1 %more, label %some, label %none
            some: %r = call i32 @smaller(i32 %a, i32 %b) ret i32 %r
            none: ret i32 %b
        }}
        define i32 @position(i32 %a) {{
            %id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x() %r = add i32 %id, %a ret i32 %r
        }}
        define i32 @loads(ptr %at) {{
            %r = load i32, ptr %at ret i32 %r
        }}
        define i32 @repeats(i32 %a) {{
            %r = call i32 @repeats(i32 %a) ret i32 %r
        }}
        define void @k(ptr %captures, i32 %n, i1 %c) {{
        start:
            %id = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
            %g = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
            %first = icmp eq i32 %id, 0
            %even = trunc i32 %g to i1
            %p = load ptr, ptr %captures
            %v = alloca i32
            %w = alloca [8 x i32]
            {body}
        }}"
    );
    let module = module(&context, &text);
    let refusal = check(&module, module.function("k"));
    module.verify("uniformity").expect("a valid module");
    assert!(!module.to_string().contains("prove_"), "{module}");
    refusal
}

const MEET: &str = "call void @oxisycl.prove_convergence()";

#[test]
fn places_are_proved() {
    let cases = [
        ("alone", format!("{MEET} ret void")),
        ("behind diverged ways", format!(
            "br i1 %first, label %a, label %b a: br label %b b: {MEET} ret void"
        )),
        ("in an arm that a group takes", format!(
            "br i1 %even, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("in an arm that a capture decides", format!(
            "br i1 %c, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("in both arms that a group takes", format!(
            "br i1 %even, label %a, label %b a: {MEET} br label %e b: {MEET} br label %e e: ret void"
        )),
        ("in a loop of captured length", format!(
            "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %loop ]
            {MEET} %next = add i32 %i, 1 %more = icmp ult i32 %next, %n
            br i1 %more, label %loop, label %end
            end: ret void"
        )),
        ("behind a loop of different lengths", format!(
            "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %loop ]
            %next = add i32 %i, 1 %more = icmp ult i32 %next, %id
            br i1 %more, label %loop, label %end
            end: {MEET} ret void"
        )),
        ("beside a panic", format!(
            "br i1 %first, label %bad, label %good bad: call void @fails() unreachable good: {MEET} ret void"
        )),
        ("in a loop with a panic whose check comes last", format!(
            "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %check ]
            {MEET} %next = add i32 %i, 1 %more = icmp ult i32 %next, %n
            br i1 %more, label %check, label %end
            check: br i1 %first, label %bad, label %loop
            bad: call void @fails() unreachable
            end: ret void"
        )),
        ("in a case that a group takes", format!(
            "switch i32 %g, label %end [ i32 0, label %a i32 1, label %b ]
            a: {MEET} br label %end b: br label %end end: ret void"
        )),
        ("by a value that was captured through memory", format!(
            "%f = getelementptr i8, ptr %captures, i64 8 %x = load i32, ptr %f %y = icmp ugt i32 %x, 3
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a value of the launch", format!(
            "%l = call ptr @oxisycl.launch() %x = load i32, ptr %l %y = icmp ugt i32 %x, 3
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a constant table at a group's place", format!(
            "%at = getelementptr i32, ptr @table, i32 %g %x = load i32, ptr %at %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by memory that does not change", format!(
            "%at = getelementptr i32, ptr %p, i32 %g %x = load i32, ptr %at, !invariant.load !{{}} %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by local memory", format!(
            "%x = load i32, ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr) %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a variable of the same value", format!(
            "store i32 %g, ptr %v %x = load i32, ptr %v %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by captures that were copied to a variable", format!(
            "call void @llvm.memcpy.p0.p0.i64(ptr %w, ptr %captures, i64 32, i1 false)
            %at = getelementptr i32, ptr %w, i32 %n %x = load i32, ptr %at %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a distance within one variable", format!(
            "%at = getelementptr i32, ptr %w, i32 %n %y = icmp eq ptr %at, %w
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by arithmetic and selection", format!(
            "%s = select i1 %even, i32 %n, i32 7 %m = call i32 @llvm.umin.i32(i32 %s, i32 5) %y = icmp ugt i32 %m, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by conversions of a float", format!(
            "%f = sitofp i32 %n to float %s = call i32 @llvm.fptosi.sat.i32.f32(float %f)
            %u = call i32 @llvm.fptoui.sat.i32.f32(float %f) %y = icmp eq i32 %s, %u
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a function that only computes", format!(
            "%x = call i32 @computes(i32 %g, i32 %n) %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
        ("by a value that is the same on both ways", format!(
            "br i1 %first, label %a, label %b a: br label %b
            b: %x = phi i32 [ %g, %a ], [ %g, %start ] %y = icmp ugt i32 %x, 2
            br i1 %y, label %d, label %e d: {MEET} br label %e e: ret void"
        )),
        ("by the position of the group on OpenCL", format!(
            "%x = call i64 @oxisycl.spirv.group_id(i32 0) %y = icmp ugt i64 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        )),
    ];
    for (what, body) in cases {
        let refusal = refusal(&body);
        assert_eq!(refusal, None, "{what}");
    }
}

#[test]
fn places_that_some_come_to_are_refused() {
    let cases = [
        ("one work-item", format!("br i1 %first, label %a, label %b a: {MEET} br label %b b: ret void")),
        (
            "both arms",
            format!("br i1 %first, label %a, label %b a: {MEET} br label %e b: {MEET} br label %e e: ret void"),
        ),
        ("behind an early return", format!("br i1 %first, label %a, label %b a: ret void b: {MEET} ret void")),
        (
            "before a panic of some",
            format!("br i1 %first, label %a, label %b a: {MEET} call void @fails() unreachable b: ret void"),
        ),
        (
            "a loop of different lengths",
            format!(
                "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %loop ]
            {MEET} %next = add i32 %i, 1 %more = icmp ult i32 %next, %id
            br i1 %more, label %loop, label %end
            end: ret void"
            ),
        ),
        (
            "a loop that some leave in its middle",
            format!(
                "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %on ]
            %leaves = icmp eq i32 %i, %id br i1 %leaves, label %end, label %on
            on: {MEET} %next = add i32 %i, 1 %more = icmp ult i32 %next, %n
            br i1 %more, label %loop, label %end
            end: ret void"
            ),
        ),
        (
            "a loop as long as another one was for each",
            format!(
                "br label %count
            count: %i = phi i32 [ 0, %start ], [ %next, %count ]
            %next = add i32 %i, 1 %more = icmp ult i32 %next, %id
            br i1 %more, label %count, label %between
            between: br label %loop
            loop: %j = phi i32 [ 0, %between ], [ %then, %loop ]
            {MEET} %then = add i32 %j, 1 %again = icmp ult i32 %then, %next
            br i1 %again, label %loop, label %end
            end: ret void"
            ),
        ),
        (
            "a loop that a nested arm continues",
            format!(
                "br label %loop
            loop: %i = phi i32 [ 0, %start ], [ %next, %latch ]
            %next = add i32 %i, 1 br i1 %first, label %skip, label %meet
            skip: br label %latch
            meet: {MEET} br label %latch
            latch: %more = icmp ult i32 %next, %n br i1 %more, label %loop, label %end
            end: ret void"
            ),
        ),
        (
            "a case of some",
            format!(
                "switch i32 %id, label %end [ i32 0, label %a i32 1, label %b ]
            a: {MEET} br label %end b: br label %end end: ret void"
            ),
        ),
        (
            "by memory that changes",
            format!(
                "%x = load i32, ptr %p %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by an atomic operation",
            format!(
                "%x = atomicrmw add ptr %p, i32 1 monotonic %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by atomic local memory",
            format!(
            "%x = load atomic i32, ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr) monotonic, align 4
            %y = icmp ugt i32 %x, 2 br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
        ),
        ),
        (
            "by an own element of local memory",
            format!(
                "%at = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr), i32 %id
            %x = load i32, ptr %at %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by local memory that diverged work-items read",
            format!(
                "br i1 %first, label %r, label %j
            r: %x = load i32, ptr addrspacecast (ptr addrspace(3) @oxisycl_local_memory to ptr) br label %j
            j: %z = phi i32 [ %x, %r ], [ 5, %start ] %y = icmp ugt i32 %z, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a variable of different values",
            format!(
                "store i32 %id, ptr %v %x = load i32, ptr %v %y = icmp ugt i32 %x, 2
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a variable that some have stored to",
            format!(
                "store i32 1, ptr %v br i1 %first, label %s, label %j s: store i32 2, ptr %v br label %j
            j: %x = load i32, ptr %v %y = icmp ugt i32 %x, 1
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a variable that was stored to at different places",
            format!(
                "%at = getelementptr i32, ptr %w, i32 %id store i32 1, ptr %at
            %x = load i32, ptr %w %y = icmp ugt i32 %x, 1
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a variable that other code knows",
            format!(
                "store i32 1, ptr %v call void @keeps(ptr %v) %x = load i32, ptr %v %y = icmp ugt i32 %x, 1
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by the address of a variable",
            format!(
                "%x = ptrtoint ptr %v to i64 %y = icmp ugt i64 %x, 1000
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a comparison of addresses",
            format!("%y = icmp ult ptr %v, %p br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"),
        ),
        (
            "by a comparison of an address with a number",
            format!(
                "%e = getelementptr i8, ptr null, i32 %n %y = icmp ult ptr %v, %e
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by the address of a variable through memory",
            format!(
                "%m = alloca ptr store ptr %v, ptr %m %q = load i64, ptr %m %y = icmp ugt i64 %q, 1000
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a computing function of the position",
            format!(
                "%x = call i32 @computes(i32 %n, i32 %id) %y = icmp ugt i32 %x, 1
                br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a function that asks for the position",
            format!(
                "%x = call i32 @position(i32 1) %y = icmp ugt i32 %x, 1
                br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a function that loads",
            format!(
                "%x = call i32 @loads(ptr %p) %y = icmp ugt i32 %x, 1
                br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by a function that calls itself",
            format!(
                "%x = call i32 @repeats(i32 1) %y = icmp ugt i32 %x, 1
                br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by an unknown function",
            format!(
                "%x = call i32 @unknown(i32 1) %y = icmp ugt i32 %x, 1
            br i1 %y, label %a, label %b a: {MEET} br label %b b: ret void"
            ),
        ),
        (
            "by which way was taken",
            format!(
                "br i1 %first, label %a, label %b a: br label %b
            b: %x = phi i1 [ true, %a ], [ false, %start ]
            br i1 %x, label %d, label %e d: {MEET} br label %e e: ret void"
            ),
        ),
        (
            "irreducible ways",
            format!(
                "br i1 %first, label %a, label %b
            a: br i1 %c, label %b, label %end b: {MEET} br i1 %even, label %a, label %end end: ret void"
            ),
        ),
    ];
    for (what, body) in cases {
        let text = refusal(&body).unwrap_or_else(|| panic!("{what} was not refused"));
        assert!(text.contains("may be reached by some of them only"), "{what}: {text}");
    }
}

#[test]
fn values_are_proved_or_refused() {
    let body = |value: &str| format!("%x = call i64 @oxisycl.prove_uniform(i64 {value}) store i64 %x, ptr %p ret void");
    assert_eq!(refusal(&body("7")), None);
    assert_eq!(refusal(&format!("%y = zext i32 %g to i64 {}", body("%y"))), None);
    let text = refusal(&format!("%y = zext i32 %id to i64 {}", body("%y"))).expect("it differs");
    assert!(text.contains("must be the same"), "{text}");
}

#[test]
fn marked_functions_become_part_of_their_kernels() {
    let context = context();
    let text = format!(
        "declare void @{CONVERGENCE}() convergent
        define internal void @inner() noinline {{ {MEET} ret void }}
        define internal void @outer() noinline {{ call void @inner() ret void }}
        define internal void @other() noinline {{ ret void }}
        define void @k() {{ call void @outer() call void @other() ret void }}"
    );
    let module = module(&context, &text);
    inline_marked(&module);
    module.run("always-inline,globaldce", None, &crate::llvm::PassTuning::DEVICE).expect("it runs");
    let kernel = module.function("k").expect("the kernel");
    assert_eq!(module.function(CONVERGENCE).map(|mark| mark.calls().len()), Some(1), "{module}");
    assert!(module.function("other").is_some(), "{module}");
    assert_eq!(check(&module, Some(kernel)), None);
}

#[test]
fn a_mark_outside_the_kernel_is_refused() {
    let context = context();
    let text = format!(
        "declare void @{CONVERGENCE}() convergent
        define internal void @again(i32 %n) {{
            {MEET} %more = icmp ugt i32 %n, 0 br i1 %more, label %a, label %b
            a: %m = sub i32 %n, 1 call void @again(i32 %m) br label %b
            b: ret void
        }}
        define void @k() {{ call void @again(i32 3) ret void }}"
    );
    let module = module(&context, &text);
    let refusal = check(&module, module.function("k")).expect("it is not seen");
    assert!(refusal.ends_with("is in a function that cannot become part of the kernel"), "{refusal}");
}
