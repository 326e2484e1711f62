//! What work-items of a sub-group tell each other, which needs SPIR-V 1.3.

use super::golden::text;
use super::support::{BEGIN, context, run_in_groups, translated, validated};

/// Work-items of a group.
const GROUP: usize = 64;
const ITEMS: usize = 2 * GROUP;
/// What is added to a work-item's number, so that no number is one of unwritten memory.
const FIRST: u32 = 1000;

/// A kernel whose work-items write the value that another one of their sub-group has; `lane` computes its `%lane`.
fn kernel(name: &str, lane: &str) -> String {
    format!(
        "define void @{name}{BEGIN}
  %l = call i64 @oxisycl.spirv.local_id(i32 0)
  %own = trunc i64 %l to i32
  %given = load i32, ptr %in
  {lane}
  %number = trunc i64 %i to i32
  %value = add i32 %number, {FIRST}
  %r = call i32 @oxisycl.spirv.shuffle(i32 %value, i32 %lane)
  %place = getelementptr i32, ptr %out, i64 %i
  store i32 %r, ptr %place
  ret void\n}}\n"
    )
}

#[test]
#[ignore = "needs an OpenCL driver"]
fn each_work_item_gets_the_value_of_the_lane_that_it_names() {
    let context = context();
    let declarations =
        "declare i32 @oxisycl.spirv.shuffle(i32, i32) convergent\ndeclare i64 @oxisycl.spirv.local_id(i32)\n";
    let code = declarations.to_owned()
        + &kernel("k_named", "%lane = add i32 %given, 0")
        + &kernel("k_next", "%after = add i32 %own, 1\n%lane = urem i32 %after, %given");
    let translation = translated(&context, &code);
    let found = text(&translation.module);
    for expected in ["; Version: 1.3", "OpCapability GroupNonUniformShuffle", "OpGroupNonUniformShuffle "] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    let bytes = validated(&translation.module);
    let values = |kernel: &str, given: usize| -> Vec<usize> {
        let input = u32::try_from(given).expect("a lane").to_le_bytes();
        let output = run_in_groups(&bytes, &[(kernel, &input, 4 * ITEMS)], ITEMS, GROUP).remove(0);
        let numbers = output.chunks(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")));
        numbers.map(|number| (number - FIRST) as usize).collect()
    };
    let of_first = values("k_named", 0);
    // The driver says how many make a sub-group: those that see the very first work-item.
    let size = of_first.iter().take_while(|&&number| number == 0).count();
    let of_lane = |lane: usize| (0..ITEMS).map(move |item| item / size * size + lane).collect::<Vec<_>>();
    assert_eq!(of_first, of_lane(0), "sub-groups of {size}");
    for lane in 1..size {
        assert_eq!(values("k_named", lane), of_lane(lane), "lane {lane} of {size}");
    }
    let next: Vec<_> = (0..ITEMS).map(|item| item / size * size + (item + 1) % size).collect();
    assert_eq!(values("k_next", size), next, "sub-groups of {size}");
}
