//! What drivers get wrong that other tests do not show: the reproducers of quirks.

use super::super::quirks::SIGNED_BOUNDS;
use super::support::{BEGIN, context, run_in_groups, translated, validated};
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
