//! What drivers get wrong that other tests do not show: the reproducers of quirks.

use super::super::quirks::SIGNED_BOUNDS;
use super::golden::text;
use super::support::{BEGIN, context, legalized, run_in_groups, translated, validated};
use crate::codegen::quirks::is_worked_around;

const ITEMS: usize = 1000;
const GROUP: usize = 50;

/// The first number that a kernel leaves in its output.
fn first(code: &str, output: usize) -> Vec<u8> {
    let context = context();
    let bytes = validated(&translated(&context, code).module);
    run_in_groups(&bytes, &[("k", &[0; 8], output)], ITEMS, GROUP).swap_remove(0)
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn operations_on_an_address_of_unknown_memory_count_for_all_work_items() {
    // Where the address is of is decided by the input, which is zero.
    let code = format!(
        "define void @k{BEGIN}
  %own = alloca i32, align 4
  store i32 0, ptr %own, align 4
  %which = load i32, ptr %in, align 4
  %is_own = icmp ne i32 %which, 0
  %p = select i1 %is_own, ptr %own, ptr %out
  %old = atomicrmw add ptr %p, i32 1 monotonic
  ret void\n}}\n"
    );
    let output = first(&code, 4);
    let untouched = u32::from_le_bytes([super::support::UNTOUCHED; 4]);
    assert_eq!(output, (untouched.wrapping_add(ITEMS as u32)).to_le_bytes());
}

/// Two loops of a work-item over every 32nd of 130 numbers. The first writes them, the second adds to them. `FIRST` is where the next
/// position begins, and `STEP` what each turn adds to it.
const STRIDES: &str = "
  %left = sub i64 161, %i
  %n = lshr i64 %left, 5
  %first = add i64 %i, FIRST
  br label %writing
writing:
  %p = phi i64 [ %i, %0 ], [ %next, %writing ]
  %next = phi i64 [ %first, %0 ], [ %beyond, %writing ]
  %turns = phi i64 [ %n, %0 ], [ %turns1, %writing ]
  %turns1 = add i64 %turns, -1
  %at = getelementptr i64, ptr %out, i64 %p
  store i64 %p, ptr %at, align 8
  %beyond = add i64 %next, STEP
  %ends = icmp eq i64 %turns1, 0
  br i1 %ends, label %between, label %writing
between:
  br label %adding
adding:
  %q = phi i64 [ %i, %between ], [ %next_q, %adding ]
  %next_q = phi i64 [ %first, %between ], [ %beyond_q, %adding ]
  %turns_q = phi i64 [ %n, %between ], [ %turns1_q, %adding ]
  %turns1_q = add i64 %turns_q, -1
  %at_q = getelementptr i64, ptr %out, i64 %q
  %old = load i64, ptr %at_q, align 8
  %new = add i64 %old, 1000
  store i64 %new, ptr %at_q, align 8
  %beyond_q = add i64 %next_q, STEP
  %ends_q = icmp eq i64 %turns1_q, 0
  br i1 %ends_q, label %end, label %adding
end:
  ret void
}\n";

fn strides(first: &str, step: &str) -> String {
    format!("define void @k{BEGIN}{}", STRIDES.replace("FIRST", first).replace("STEP", step))
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn two_loops_that_carry_a_position_and_the_next_one_are_compiled() {
    let context = context();
    let bytes = validated(&translated(&context, &strides("32", "32")).module);
    let found = run_in_groups(&bytes, &[("k", &[0; 8], 130 * 8)], 32, 32).swap_remove(0);
    let found: Vec<_> = found.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight"))).collect();
    assert_eq!(found, (1000..1130).collect::<Vec<_>>());
}

#[test]
fn loops_carry_one_position_where_the_next_one_is_a_step_away() {
    let phis = |code: &str| {
        let context = context();
        let module = translated(&context, code).module;
        validated(&module);
        text(&module).lines().filter(|line| line.contains("OpPhi")).count()
    };
    // Of each loop the position and the turns that are left.
    assert_eq!(phis(&strides("32", "32")), 4);
    assert_eq!(phis(&strides("-3", "-3")), 4);
    // A sum that LLVM takes for a disjunction, where the position is known to be below 32.
    assert_eq!(phis(&strides("32", "32").replace("%first = add", "%first = or disjoint")), 4);
    // Next positions that begin elsewhere.
    assert_eq!(phis(&strides("33", "32")), 6);
    assert_eq!(phis(&strides("32", "%n")), 6);
    // Positions that begin with a constant, and with a sum.
    let constant = strides("32", "32").replace("%p = phi i64 [ %i", "%p = phi i64 [ 5");
    assert_eq!(phis(&constant), 5);
    assert_eq!(phis(&constant.replace("%next = phi i64 [ %first", "%next = phi i64 [ 37")), 4);
    let sum = strides("32", "30")
        .replace("br label %writing\nwriting", "%base = add i64 %i, 2\n  br label %writing\nwriting");
    assert_eq!(phis(&sum.replace("phi i64 [ %i,", "phi i64 [ %base,")), 4);
    // Numbers of other widths wrap.
    let narrow = strides("32", "32")
        .replace(
            "%p = phi i64 [ %i, %0 ], [ %next, %writing ]
  %next = phi i64 [ %first, %0 ], [ %beyond, %writing ]",
            "%p8 = phi i8 [ 250, %0 ], [ %next, %writing ]
  %next = phi i8 [ 26, %0 ], [ %beyond, %writing ]",
        )
        .replace(
            "%at = getelementptr i64, ptr %out, i64 %p\n",
            "%p = zext i8 %p8 to i64\n  %at = getelementptr i64, ptr %out, i64 %p\n",
        )
        .replace("%beyond = add i64 %next, 32", "%beyond = add i8 %next, 32");
    assert_eq!(phis(&narrow), 4);
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn no_work_item_is_beyond_the_last() {
    // Ids begin with zero, which the driver does not know. No position is above the last.
    let begin = "  %address = ptrtoint ptr %in to i64\n  %first = lshr i64 %address, 63\n";
    let last = if is_worked_around(&SIGNED_BOUNDS) {
        format!("  %last = add i64 %first, {}\n", ITEMS - 1)
    } else {
        "  %last = xor i64 %first, -1\n".to_owned()
    };
    let code = format!(
        "define void @k{BEGIN}{begin}{last}  %is_beyond = icmp ugt i64 %i, %last
  br i1 %is_beyond, label %panic, label %end
panic:
  %place = and i64 %i, 1023
  %p = getelementptr i8, ptr %out, i64 %place
  store i8 1, ptr %p
  br label %end
end:
  ret void\n}}\n"
    );
    let output = first(&code, 1024);
    let touched: Vec<_> = output.iter().enumerate().filter(|(_, byte)| **byte == 1).map(|(place, _)| place).collect();
    assert!(touched.is_empty(), "{} positions, the last {:?}", touched.len(), touched.last());
}

/// A recorder of panics, with what keeps a driver from executing it as a vector. The kernel calls it for no work-item, and counts twice in
/// between: what the count was, for each work-item, shows whether others counted meanwhile.
const COUNTS: &str = "
define internal void @__oxisycl_record_panic_numbers(ptr %to, i64 %site) noinline {
  %numbers = alloca [16 x i64], align 8
  %taken = cmpxchg ptr %to, i32 0, i32 1 monotonic monotonic
  %is_free = extractvalue { i32, i1 } %taken, 1
  br i1 %is_free, label %next, label %end
next:
  %n = phi i64 [ 0, %0 ], [ %n1, %next ]
  %n1 = add i64 %n, 1
  %place = getelementptr i64, ptr %numbers, i64 %n
  store volatile i64 %site, ptr %place, align 8
  %from = xor i64 %n, %site
  %index = and i64 %from, 15
  %other = getelementptr i64, ptr %numbers, i64 %index
  %value = load volatile i64, ptr %other, align 8
  %target = getelementptr i64, ptr %to, i64 %n1
  store i64 %value, ptr %target, align 8
  %is_last = icmp eq i64 %n1, 16
  br i1 %is_last, label %end, label %next
end:
  ret void
}
define void @kBEGIN
  %before = atomicrmw add ptr %out, i32 1 monotonic
  %limit = load i64, ptr %in, align 8
  %is_beyond = icmp ugt i64 %i, %limit
  br i1 %is_beyond, label %panic, label %fine
panic:
  call void @__oxisycl_record_panic_numbers(ptr %in, i64 %i)
  ret void
fine:
  %after = atomicrmw add ptr %out, i32 1 monotonic
  %n = sub i32 %after, %before
  %i1 = add i64 %i, 1
  %place = getelementptr i32, ptr %out, i64 %i1
  store i32 %n, ptr %place, align 4
  ret void
}
";

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_kernel_that_may_panic_is_executed_as_vectors() {
    let context = context();
    let code = COUNTS.replace("BEGIN", BEGIN);
    let bytes = validated(&legalized(&context, &code).module);
    let (limit, n) = (1000u64.to_le_bytes(), 64);
    let output = run_in_groups(&bytes, &[("k", &limit, 4 * (n + 1))], n, n).swap_remove(0);
    let counts: Vec<_> = output.chunks_exact(4).skip(1).map(|n| u32::from_le_bytes(n.try_into().unwrap())).collect();
    assert!(counts.iter().any(|count| *count > 1), "one work-item ended before the next began: {counts:?}");
}
