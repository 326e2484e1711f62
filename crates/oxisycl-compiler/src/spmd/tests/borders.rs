//! Borders: most vectors go through a copy without masks, and all items do what they do alone.

use super::bodies::{FAILS, body};
use super::{check, module, of_lanes, text_in_lanes};
use crate::llvm::Opcode;
use crate::passes::tests::context;
use crate::spmd::vectorise;

/// What a body with a border does for those inside, and for those at the border.
fn bordered(conditions: &str) -> String {
    body(&format!(
        "{conditions}
         br i1 %is, label %inside, label %border
         inside:
         %beside = getelementptr i8, ptr %a, i64 -4
         %u = load i32, ptr %beside
         %v = load i32, ptr %a
         %w = add i32 %u, %v
         br label %end
         border:
         %own = load i32, ptr %b
         br label %end
         end:
         %r = phi i32 [ %w, %inside ], [ %own, %border ]
         store i32 %r, ptr %o
         ret void"
    ))
}

/// Conditions that hold for nearly all items of a row.
const USUAL: [&str; 8] = [
    "%is = icmp ne i64 %x, 0",
    "%is = icmp ugt i64 %x, 2",
    "%last = sub i64 %n, 1\n%left = icmp ne i64 %x, 0\n%right = icmp ult i64 %x, %last\n%is = and i1 %left, %right",
    "%left = icmp ult i64 2, %x\n%next = add i64 %x, 2\n%right = icmp ugt i64 %n, %next\n%is = select i1 %left, i1 %right, i1 false",
    "%id = trunc i64 %x to i32\n%before = sub i32 %id, 1\n%left = icmp sgt i32 %before, -1\n%m = trunc i64 %n to i32\n%right = icmp slt i32 %id, %m\n%is = and i1 %left, %right",
    "%back = sub i64 163, %x\n%left = icmp ult i64 %back, 163\n%right = icmp uge i64 %back, 3\n%is = and i1 %left, %right",
    "%thrice = mul i64 %x, 3\n%is = icmp ne i64 %thrice, 0",
    "%begins = icmp eq i64 %x, 0\n%late = icmp ugt i64 %x, 100\n%outside = or i1 %begins, %late\n%is = xor i1 %outside, true",
];

#[test]
fn items_at_borders_and_between_them_do_what_they_do_alone() {
    USUAL.iter().for_each(|conditions| check(&bordered(conditions)));
}

#[test]
fn what_most_vectors_run_has_no_masks() {
    let wide_loads = |conditions: &str| {
        let text = text_in_lanes(&bordered(conditions));
        assert!(!text.contains("oxisycl."), "{conditions}: {text}");
        text.lines().filter(|line| line.contains(" = load <4 x i32>")).count()
    };
    // Each block under a mask has a copy for all lanes. Those inside have two more loads that no mask is asked for.
    for conditions in USUAL {
        assert_eq!(wide_loads(conditions), 5, "{conditions}");
    }
    for conditions in
        ["%low = and i64 %x, 1\n%is = icmp eq i64 %low, 0", "%byte = trunc i64 %x to i8\n%is = icmp ugt i8 %byte, 1"]
    {
        assert_eq!(wide_loads(conditions), 3, "{conditions}");
    }
}

#[test]
fn a_body_is_as_it_was_once_its_vectors_are_made() {
    for conditions in USUAL {
        let context = context();
        let (module, machine) = module(&context, &bordered(conditions));
        let body = module.function("body").expect("a body");
        let loads = || body.instructions().into_iter().filter(|instruction| instruction.is(Opcode::LOAD)).count();
        let (n_loads, n_blocks) = (loads(), body.blocks().len());
        for time in 1..=6 {
            assert!(vectorise(&module, Some(&machine), body, of_lanes(4)).expect("passes").is_ok());
            module.verify("vectorisation").unwrap_or_else(|error| panic!("{conditions}: {error}"));
            assert_eq!(loads(), n_loads, "{conditions}");
            // One before the branch for each question.
            assert!(body.blocks().len() <= n_blocks + time, "{conditions}: {}", body.print());
            assert!(!body.print().contains("oxisycl."), "{conditions}");
        }
    }
}

#[test]
fn conditions_that_all_items_share_may_be_large() {
    let step = |n: usize| {
        let m = n + 1;
        format!(
            "%s{n} = and i1 %a{n}, %b{n}\n%a{m} = xor i1 %s{n}, %p\n%t{n} = or i1 %a{n}, %b{n}\n%b{m} = xor i1 %t{n}, %q\n"
        )
    };
    let begin =
        "%a0 = icmp ult i64 %n, 100\n%b0 = icmp ugt i64 %n, 3\n%p = icmp eq i64 %n, 65\n%q = icmp eq i64 %n, 66\n";
    let steps: String = (0..40).map(step).collect();
    check(&bordered(&format!("{begin}{steps}%far = icmp ugt i64 %x, 2\n%is = and i1 %a40, %far")));
}

#[test]
fn borders_inside_of_each_other_in_loops_and_with_items_that_fail() {
    check(&body(
        "%last = sub i64 %n, 1
         br label %head
         head:
         %j = phi i64 [ 0, %begin ], [ %j2, %latch ]
         %sum = phi i32 [ 0, %begin ], [ %more, %latch ]
         %at = add i64 %x, %j
         %p = getelementptr i32, ptr %first, i64 %at
         %left = icmp ugt i64 %at, 3
         br i1 %left, label %inner, label %outer
         inner:
         %right = icmp ult i64 %at, %last
         br i1 %right, label %between, label %outer
         between:
         %u = load i32, ptr %p
         %ok = icmp ne i64 %x, 41
         br i1 %ok, label %good, label %bad
         bad:
         call void %fail(i64 %x) noreturn
         unreachable
         good:
         %q = getelementptr i8, ptr %p, i64 -4
         %v = load i32, ptr %q
         %w = add i32 %u, %v
         br label %latch
         outer:
         %own = load i32, ptr %a
         br label %latch
         latch:
         %add = phi i32 [ %w, %good ], [ %own, %outer ]
         %more = add i32 %sum, %add
         %j2 = add i64 %j, 1
         %c = icmp eq i64 %j2, 5
         br i1 %c, label %end, label %head
         end:
         store i32 %more, ptr %o
         ret void",
    ));
    // A check that only items inside make.
    check(&body(&format!(
        "%is = icmp ugt i64 %x, 1
         br i1 %is, label %inside, label %join
         inside:
         %index = add i64 %x, 20
         %p = getelementptr inbounds i32, ptr %first, i64 %index
         %told = add i64 %x, 1000
         %ok = icmp ult i64 %index, %n
         {FAILS}
         join:
         store i32 5, ptr %o
         ret void"
    )));
}
