//! Code in lanes for NEON, which no machine of the tests runs. Nothing in the passes is of one processor alone.

use super::bodies::body;
use super::{module_for, of_lanes};
use crate::golden;
use crate::llvm::{Codegen, Linkage, Machine, PassTuning};
use crate::passes::tests::context;
use crate::spmd::{vectorise, wide_masks};

const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// A loop that items leave one by one, in two places, with an index that is checked.
const CODE: &str = "%u = load i32, ptr %a
     %v = load float, ptr %b
     br label %head
     head:
     %j = phi i32 [ 0, %begin ], [ %next, %latch ]
     %z = phi float [ %v, %begin ], [ %z2, %latch ]
     %big = fcmp ogt float %z, 1.0e4
     br i1 %big, label %end, label %latch
     latch:
     %z2 = call float @llvm.fma.f32(float %z, float %z, float %v)
     %next = add i32 %j, 1
     %c = icmp ugt i32 %next, %u
     br i1 %c, label %end, label %head
     end:
     %r = phi i32 [ %j, %head ], [ %next, %latch ]
     %w = zext i32 %r to i64
     %ok = icmp ult i64 %w, %n
     br i1 %ok, label %inside, label %bad
     bad:
     call void %fail(i64 %w) noreturn
     unreachable
     inside:
     store i32 %r, ptr %o
     ret void";

#[test]
fn golden_neon() {
    let context = context();
    let machine = Machine::new(TRIPLE, "generic", "").expect("a machine");
    let module = module_for(&machine, &context, &body(CODE));
    let plain = module.function("body").expect("a body");
    let vector = match vectorise(&module, Some(&machine), plain, of_lanes(4)).expect("passes") {
        Ok(vector) => vector.function,
        Err(refused) => panic!("refused: {}", refused.reason),
    };
    vector.set_linkage(Linkage::EXTERNAL);
    plain.set_linkage(Linkage::INTERNAL);
    module.run("default<O3>", Some(&machine), &PassTuning::NATIVE).expect("passes");
    wide_masks::widen(&module);
    module.verify("wide masks").expect("valid code");
    let text = machine.emit(&module, Codegen::Assembly).expect("assembly");
    let text = golden::stable(&String::from_utf8(text).expect("text"));
    golden::check("lanes.neon.txt", &text);
    // Four items at once: their products, what they compare, and what they leave.
    for instruction in ["fmla\tv", "fcmgt\tv", "cmhi\tv", "str\tq"] {
        assert!(text.contains(instruction), "{instruction}: {text}");
    }
}
