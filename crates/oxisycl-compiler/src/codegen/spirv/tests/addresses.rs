//! Integers that were computed of addresses.

use super::golden::text;
use super::support::{BEGIN, context, run_in_groups, translated, validated};

/// A loop over every third of the numbers in two rows of private memory, as made by an iterator over rows. It keeps the end of the row as
/// an integer. `%i` is four times in the first row, three is in the second.
const ROWS: &str = "
  %v = trunc i64 %i to i32
  %rows = alloca [8 x i32], align 4
  %r1 = getelementptr i8, ptr %rows, i64 4
  %r2 = getelementptr i8, ptr %rows, i64 8
  %r3 = getelementptr i8, ptr %rows, i64 12
  %r4 = getelementptr i8, ptr %rows, i64 16
  %r5 = getelementptr i8, ptr %rows, i64 20
  %r6 = getelementptr i8, ptr %rows, i64 24
  %r7 = getelementptr i8, ptr %rows, i64 28
  store i32 %v, ptr %rows, align 4
  store i32 %v, ptr %r1, align 4
  store i32 %v, ptr %r2, align 4
  store i32 %v, ptr %r3, align 4
  store i32 3, ptr %r4, align 4
  store i32 3, ptr %r5, align 4
  store i32 3, ptr %r6, align 4
  store i32 3, ptr %r7, align 4
  %base = ptrtoint ptr %rows to i64
  %end_of_first = add i64 %base, 16
  br label %next
next:
  %end = phi i64 [ %end_of_first, %0 ], [ %end_after, %add ]
  %at = phi ptr [ %r1, %0 ], [ %at_after, %add ]
  %row = phi i64 [ 16, %0 ], [ %row_after, %add ]
  %sum = phi i32 [ %v, %0 ], [ %added, %add ]
  %has_none = icmp eq ptr %at, null
  br i1 %has_none, label %skip_row, label %skip
skip:
  %place = ptrtoint ptr %at to i64
  %bytes = sub i64 %end, %place
  %n = lshr i64 %bytes, 2
  %few = icmp ult i64 %n, 2
  %n_skipped = select i1 %few, i64 %n, i64 2
  %distance = mul i64 %n_skipped, 4
  %at_skipped = getelementptr inbounds i8, ptr %at, i64 %distance
  %n_missing = sub i64 2, %n_skipped
  %enough = icmp ugt i64 %bytes, 4
  br i1 %enough, label %look, label %skip_row
skip_row:
  %n_left = phi i64 [ 2, %next ], [ %n_missing, %skip ]
  %is_row = icmp ne i64 %row, 32
  %step = select i1 %is_row, i64 16, i64 0
  %row_next = add i64 %step, %row
  %begin = getelementptr inbounds i8, ptr %rows, i64 %row
  %begin_next = getelementptr inbounds i8, ptr %begin, i64 16
  %end_of_row = ptrtoint ptr %begin_next to i64
  %distance_left = mul i64 %n_left, 4
  %at_row = getelementptr inbounds i8, ptr %begin, i64 %distance_left
  %at_next = select i1 %is_row, ptr %at_row, ptr null
  %end_next = select i1 %is_row, i64 %end_of_row, i64 %end
  %none_left = icmp eq i64 %n_left, 0
  %goes_on = select i1 %is_row, i1 true, i1 %none_left
  br label %look
look:
  %end_here = phi i64 [ %end, %skip ], [ %end_next, %skip_row ]
  %at_here = phi ptr [ %at_skipped, %skip ], [ %at_next, %skip_row ]
  %row_here = phi i64 [ %row, %skip ], [ %row_next, %skip_row ]
  %is_there = phi i1 [ true, %skip ], [ %goes_on, %skip_row ]
  br i1 %is_there, label %compare, label %found
compare:
  %is_null = icmp eq ptr %at_here, null
  %end_address = inttoptr i64 %end_here to ptr
  %is_end = icmp eq ptr %at_here, %end_address
  %is_over = select i1 %is_null, i1 true, i1 %is_end
  br i1 %is_over, label %new_row, label %take
new_row:
  %was_last = icmp eq i64 %row_here, 32
  br i1 %was_last, label %found, label %begin_row
begin_row:
  %end_new = add i64 %row_here, %end_of_first
  %row_new = add i64 %row_here, 16
  %at_new = getelementptr i8, ptr %rows, i64 %row_here
  br label %take
take:
  %item = phi ptr [ %at_here, %compare ], [ %at_new, %begin_row ]
  %end_taken = phi i64 [ %end_here, %compare ], [ %end_new, %begin_row ]
  %row_taken = phi i64 [ %row_here, %compare ], [ %row_new, %begin_row ]
  %at_taken = getelementptr inbounds i8, ptr %item, i64 4
  br label %found
found:
  %end_after = phi i64 [ %end_here, %look ], [ %end_taken, %take ], [ %end_here, %new_row ]
  %at_after = phi ptr [ %at_here, %look ], [ %at_taken, %take ], [ null, %new_row ]
  %row_after = phi i64 [ %row_here, %look ], [ %row_taken, %take ], [ 32, %new_row ]
  %found_item = phi ptr [ null, %look ], [ %item, %take ], [ null, %new_row ]
  %ends = icmp eq ptr %found_item, null
  br i1 %ends, label %done, label %add
add:
  %value = load i32, ptr %found_item, align 4
  %added = add i32 %value, %sum
  br label %next
done:
  %result_place = getelementptr i32, ptr %out, i64 %i
  store i32 %sum, ptr %result_place, align 4
  ret void
}\n";

#[test]
#[ignore = "needs an OpenCL driver"]
fn a_loop_whose_end_is_an_integer_ends_there_in_each_work_item() {
    const N: u32 = 256;
    let context = context();
    let bytes = validated(&translated(&context, &format!("define void @k{BEGIN}{ROWS}")).module);
    let found = run_in_groups(&bytes, &[("k", &[0; 8], 4 * N as usize)], N as usize, 64);
    let found: Vec<_> = found[0].chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four"))).collect();
    assert_eq!(found, (0..N).map(|i| 2 * i + 3).collect::<Vec<_>>());
}

#[test]
fn what_is_computed_of_one_address_is_an_address_and_the_rest_is_not() {
    let of = |body: &str| {
        let context = context();
        let code = format!(
            "define void @k{BEGIN}
  %a = ptrtoint ptr %in to i64
  %b = ptrtoint ptr %out to i64
  %c = icmp ult i64 %i, 10
{body}
  store i64 %n, ptr %out, align 8
  ret void\n}}\n"
        );
        let module = translated(&context, &code).module;
        validated(&module);
        let text = text(&module);
        (text.matches("OpPtrAccessChain").count(), text.matches("OpIAdd").count(), text.matches("OpSelect").count())
    };
    // Address computations (that of the second argument is another one), sums, and choices.
    assert_eq!(of("  %n = add i64 %a, %i"), (1, 0, 0));
    assert_eq!(of("  %n = add i64 %i, %b"), (1, 0, 0));
    assert_eq!(of("  %n = add i64 %a, %b"), (0, 1, 0));
    assert_eq!(of("  %s = add i64 %a, %b\n  %n = add i64 %s, %i"), (0, 2, 0));
    assert_eq!(of("  %s = select i1 %c, i64 %a, i64 %b\n  %n = add i64 %s, 8"), (1, 0, 1));
    assert_eq!(of("  %s = select i1 %c, i64 %a, i64 0\n  %n = add i64 %s, 8"), (1, 0, 1));
    assert_eq!(of("  %s = select i1 %c, i64 %a, i64 5\n  %n = add i64 %s, 8"), (0, 1, 1));
    assert_eq!(of("  %n = mul i64 %a, %i"), (0, 0, 0));
}
