//! Private addresses that a loop carries over a barrier.

use super::golden::text;
use super::support::{BEGIN, context, run_in_groups, translated, validated};

/// A kernel of two arrays of eight numbers. `CHOICE` has the phis of a loop of eight turns. Each turn writes the work-item's number times
/// 100 plus the turn's number into the element that `%place` points to. Only the fourth turn waits at a barrier. `STEP` makes the phis'
/// next values. The answer is the sum of both arrays.
const LOOP: &str = "
  %own = alloca [8 x i64], align 8
  %other = alloca [8 x i64], align 8
  %base = mul i64 %i, 100
  br label %clearing
clearing:
  %c = phi i64 [ 0, %0 ], [ %c1, %clearing ]
  %own_at = getelementptr i64, ptr %own, i64 %c
  store i64 0, ptr %own_at, align 8
  %other_at = getelementptr i64, ptr %other, i64 %c
  store i64 0, ptr %other_at, align 8
  %c1 = add i64 %c, 1
  %clears = icmp ult i64 %c1, 8
  br i1 %clears, label %clearing, label %first
first:
  br label %next
next:
  %n = phi i64 [ 0, %first ], [ %n1, %go ]
CHOICE
  %value = add i64 %base, %n
  store i64 %value, ptr %place, align 8
  %in_turn = and i64 %n, 7
  %waits = icmp eq i64 %in_turn, 3
  br i1 %waits, label %wait, label %go
wait:
  call void @oxisycl.spirv.barrier()
  br label %go
go:
  %n1 = add i64 %n, 1
STEP
  %more = icmp ult i64 %n1, 8
  br i1 %more, label %next, label %last
last:
  br label %adding
adding:
  %a = phi i64 [ 0, %last ], [ %a1, %adding ]
  %sum = phi i64 [ 0, %last ], [ %sum2, %adding ]
  %one_at = getelementptr i64, ptr %own, i64 %a
  %one = load i64, ptr %one_at, align 8
  %sum1 = add i64 %sum, %one
  %two_at = getelementptr i64, ptr %other, i64 %a
  %two = load i64, ptr %two_at, align 8
  %sum2 = add i64 %sum1, %two
  %a1 = add i64 %a, 1
  %adds = icmp ult i64 %a1, 8
  br i1 %adds, label %adding, label %end
end:
  %result = getelementptr i64, ptr %out, i64 %i
  store i64 %sum2, ptr %result, align 8
  ret void
}
declare void @oxisycl.spirv.barrier() convergent\n";

/// An iterator: the phi, and its next value.
const ITERATOR: [&str; 2] =
    ["  %place = phi ptr [ %own, %first ], [ %further, %go ]", "  %further = getelementptr i8, ptr %place, i64 8"];
/// Two arrays that are swapped in each turn.
const SWAP: [&str; 2] = [
    "  %from = phi ptr [ %own, %first ], [ %to, %go ]
  %to = phi ptr [ %other, %first ], [ %from, %go ]
  %place = getelementptr [8 x i64], ptr %from, i64 0, i64 %n",
    "",
];
/// An address that is that of the array or a later one, with members of a struct.
const CHOSEN: [&str; 2] = [
    "  %place = phi ptr [ %own, %first ], [ %chosen, %go ]",
    "  %even = trunc i64 %n to i1
  %further = getelementptr { i64, i64 }, ptr %place, i64 0, i32 1
  %same = getelementptr { i64, i64 }, ptr %own, i64 0, i32 1
  %first_turn = icmp eq i64 %n, 0
  %chosen = select i1 %first_turn, ptr %same, ptr %further",
];

fn code([choice, step]: [&str; 2]) -> String {
    format!("define void @k{BEGIN}{}", LOOP.replace("CHOICE", choice).replace("STEP", step))
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn an_address_that_a_loop_carries_over_a_barrier_is_of_its_own_work_item() {
    for shape in [ITERATOR, SWAP, CHOSEN] {
        // The drivers' vectors of 4 to 16 work-items divide the first size and not the second.
        for (n, group) in [(64, 16), (300, 50)] {
            let context = context();
            let bytes = validated(&translated(&context, &code(shape)).module);
            let found = run_in_groups(&bytes, &[("k", &[0; 8], 8 * n)], n, group);
            let found: Vec<_> =
                found[0].chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight"))).collect();
            assert_eq!(
                found,
                (0..n as u64).map(|i| 800 * i + 28).collect::<Vec<_>>(),
                "{shape:?} in groups of {group}"
            );
        }
    }
}

/// How many phis of addresses and of numbers the loop has.
fn phis(code: &str) -> (usize, usize) {
    let context = context();
    let module = translated(&context, code).module;
    validated(&module);
    let text = text(&module);
    let pointers = text.lines().filter(|line| line.contains("OpTypePointer"));
    let pointers: Vec<_> = pointers.filter_map(|line| line.split_whitespace().next()).collect();
    let is_address = |line: &&str| line.split_whitespace().nth(3).is_some_and(|kind| pointers.contains(&kind));
    let (addresses, numbers): (Vec<_>, Vec<_>) =
        text.lines().filter(|line| line.contains("OpPhi")).partition(is_address);
    (addresses.len(), numbers.len())
}

#[test]
fn a_loop_with_a_barrier_carries_numbers_and_others_carry_addresses() {
    // Of the loop's turn, and of the two loops around it.
    const OTHERS: usize = 4;
    let without = |shape| code(shape).replace("  call void @oxisycl.spirv.barrier()", "");
    assert_eq!(phis(&code(ITERATOR)), (0, OTHERS + 1));
    assert_eq!(phis(&code(CHOSEN)), (0, OTHERS + 1));
    // Which of two, and how far.
    assert_eq!(phis(&code(SWAP)), (0, OTHERS + 4));
    assert_eq!(phis(&without(ITERATOR)), (1, OTHERS));
    assert_eq!(phis(&without(SWAP)), (2, OTHERS));
    // What may be in other memory stays an address.
    assert_eq!(phis(&code(ITERATOR).replace("%own, %first", "%out, %first")), (1, OTHERS));
}
