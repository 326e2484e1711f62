//! Which comparisons follow an earlier branch.

use oxisycl_image::ImageTarget;

use super::*;
use crate::codegen;
use crate::llvm::PassTuning;
use crate::passes::tests::{context, module};

/// A loop as rustc makes it of `for x in list`: `next` returns null at the end.
const LOOP: &str = "
    define float @f(ptr %list, i64 %n) {
        entry: br label %head
        head:
        %i = phi i64 [ 0, %entry ], [ %i.after, %body ]
        %sum = phi float [ 0.0, %entry ], [ %sum.after, %body ]
        %is_end = icmp eq i64 %i, %n
        br i1 %is_end, label %next, label %some
        some:
        %element = getelementptr inbounds nuw float, ptr %list, i64 %i
        %not_null = icmp ne ptr %element, null
        call void @llvm.assume(i1 %not_null)
        %i.next = add nuw i64 %i, 1
        br label %next
        next:
        %i.after = phi i64 [ %i, %head ], [ %i.next, %some ]
        %option = phi ptr [ null, %head ], [ %element, %some ]
        %is_none = icmp eq ptr %option, null
        br i1 %is_none, label %end, label %body
        body:
        %x = load float, ptr %option
        %sum.after = fadd float %sum, %x
        br label %head
        end: ret float %sum
    }
    declare void @llvm.assume(i1)";

#[test]
fn a_loop_tests_once_whether_there_is_another_element() {
    let context = context();
    let module = module(&context, LOOP);
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    let branches = |module: &Module<'_>| module.to_string().matches("br i1").count();
    let simplify = |module: &Module<'_>| {
        let passes = "function(instcombine<no-verify-fixpoint>,simplifycfg)";
        module.run(passes, Some(target.machine()), &PassTuning::DEVICE).expect("passes");
    };
    simplify(&module);
    assert_eq!(branches(&module), 2, "LLVM alone does it now: the stage is not needed any more\n{module}");
    assert!(follow_branches(&module));
    module.verify("following").expect("a valid module");
    simplify(&module);
    assert_eq!(branches(&module), 1, "{module}");
    assert!(!follow_branches(&module), "nothing is left to do");
}

#[test]
fn comparisons_where_threads_of_several_ways_meet_stay() {
    let context = context();
    // Three ways lead to the end of `next`, and then an arm that others jump into.
    let three = LOOP.replace(
        "%i.next = add",
        "%odd = trunc i64 %i to i1\n br i1 %odd, label %next, label %more\n more: %i.next = add",
    );
    let three = three
        .replace("[ %i, %head ], [ %i.next, %some ]", "[ %i, %head ], [ %i, %some ], [ %i.next, %more ]")
        .replace("[ null, %head ], [ %element, %some ]", "[ null, %head ], [ null, %some ], [ %element, %more ]");
    let entered = LOOP
        .replace("entry: br label %head", "entry: %skip = icmp ugt i64 %n, 9\n br i1 %skip, label %some, label %head")
        .replace(
            "some:\n",
            "some: %j = phi i64 [ 1, %entry ], [ %i, %head ]\n %t = phi float [ 1.0, %entry ], [ %sum, %head ]\n",
        )
        .replace("ptr %list, i64 %i", "ptr %list, i64 %j")
        .replace("add nuw i64 %i, 1", "add nuw i64 %j, 1")
        .replace("body:\n", "body: %s = phi float [ %both, %next ]\n")
        .replace("%option = phi", "%both = phi float [ %sum, %head ], [ %t, %some ]\n %option = phi")
        .replace("fadd float %sum, %x", "fadd float %s, %x")
        .replace("ret float %sum", "ret float %both");
    for text in [three, entered] {
        let module = module(&context, &text);
        module.verify("test").expect("a valid module");
        assert!(!follow_branches(&module), "{module}");
    }
}

/// Work-items of a group wait for each other where the two ways meet. Joining the branches would have each wait in its own way.
#[test]
fn a_barrier_where_two_ways_meet_is_not_doubled() {
    let context = context();
    let barrier = "%option = phi ptr [ null, %head ], [ %element, %some ]
        call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)";
    let text = LOOP.replace("%option = phi ptr [ null, %head ], [ %element, %some ]", barrier)
        + "\ndeclare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)";
    let module = module(&context, &text);
    let target = codegen::of(&ImageTarget::Ptx { sm: 70 }).expect("a target");
    module.set_target(target.machine().triple(), &target.machine().data_layout());
    assert!(follow_branches(&module));
    let passes = "function(instcombine<no-verify-fixpoint>,simplifycfg)";
    module.run(passes, Some(target.machine()), &PassTuning::DEVICE).expect("passes");
    let text = module.to_string();
    assert_eq!(text.matches("call void @llvm.nvvm.barrier").count(), 1, "{text}");
}
