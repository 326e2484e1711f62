//! One item that fails: what it tells of itself and of the place, the note that it leaves, and the memory of the others.
//!
//! Bodies whose panics drop something else are refused, so that no other destructor can run twice or not at all.

use super::bodies::body;
use super::{Linked, ROOM};

/// The value of words that nothing has been written to.
const BEFORE: u32 = 0xdead_beef;
/// The words of each item: at its begin, halfway and at its end.
const PLACES: [usize; 3] = [0, 64, 128];
/// The items that have such words.
const ITEMS: u64 = 64;
/// Where landing pads store.
const NOTE: usize = 255;
/// Where the bound stands that is the same for all items.
const BOUND: usize = 250;
/// The bound that all items are below.
const HIGH: u32 = 1000;

/// The checks that an item may not pass.
const CHECKS: [u32; 4] = [1, 2, 3, 4];
/// The check of a bound, which all later items do not pass, either.
const OF_BOUNDS: u32 = 4;

/// A panic at a check, which tells the item and the place. Its landing pad stores both, as the guard of a launch does.
fn panic(check: u32) -> String {
    format!(
        "bad.{check}:
         %told.{check} = add i64 %x8, {check}
         invoke void %fail(i64 %told.{check}) noreturn to label %never.{check} unwind label %pad.{check}
         never.{check}:
         unreachable
         pad.{check}:
         %landed.{check} = landingpad {{ ptr, i32 }} cleanup
         %low.{check} = trunc i64 %told.{check} to i32
         store i32 %low.{check}, ptr %note
         resume {{ ptr, i32 }} %landed.{check}\n"
    )
}

/// A body that fails at the check whose number is the item's word. One is on a side of a branch, and one in a loop that other items leave earlier.
fn checked() -> String {
    let code = "%which = load i32, ptr %a
         %id = trunc i64 %x to i32
         %x8 = mul i64 %x, 8
         %bound.at = getelementptr inbounds i32, ptr %first, i64 250
         %halfway = getelementptr inbounds i32, ptr %o, i64 64
         %last = getelementptr inbounds i32, ptr %o, i64 128
         %note = getelementptr inbounds i32, ptr %out, i64 255
         store i32 %id, ptr %o
         %is.1 = icmp eq i32 %which, 1
         br i1 %is.1, label %bad.1, label %good.1
         good.1:
         %mixed = mul i32 %id, 5
         %other = or i32 %mixed, %which
         %bit = and i32 %other, 3
         %is.side = icmp ne i32 %bit, 0
         br i1 %is.side, label %side, label %join
         side:
         %is.2 = icmp eq i32 %which, 2
         br i1 %is.2, label %bad.2, label %good.2
         good.2:
         store i32 %mixed, ptr %halfway
         br label %join
         join:
         %sum = phi i32 [ 3, %good.1 ], [ %mixed, %good.2 ]
         %few = and i32 %id, 3
         br label %head
         head:
         %j = phi i32 [ 0, %join ], [ %next, %latch ]
         %grown = phi i32 [ %sum, %join ], [ %more, %latch ]
         %more = mul i32 %grown, 7
         %is.last = icmp eq i32 %j, %few
         %is.third = icmp eq i32 %which, 3
         %is.3 = and i1 %is.last, %is.third
         br i1 %is.3, label %bad.3, label %latch
         latch:
         %next = add i32 %j, 1
         br i1 %is.last, label %behind, label %head
         behind:
         %bound = load i32, ptr %bound.at
         %wide = zext i32 %bound to i64
         %is.4 = icmp ult i64 %x, %wide
         br i1 %is.4, label %good.4, label %bad.4
         good.4:
         store i32 %more, ptr %last
         ret void\n";
    body(&(code.to_owned() + &CHECKS.map(panic).concat()))
}

/// What all items read, if one fails at a check. Without one, no item fails.
fn input(failing: Option<(u64, u32)>) -> Vec<u32> {
    let mut first = vec![0; ROOM];
    first[BOUND] = HIGH;
    match failing {
        None => {}
        Some((item, OF_BOUNDS)) => first[BOUND] = item as u32,
        Some((item, check)) => first[item as usize] = check,
    }
    first
}

/// The words of an item.
fn words(out: &[u32], item: u64) -> [u32; 3] {
    PLACES.map(|place| out[place + item as usize])
}

#[test]
fn one_item_fails_in_any_lane_of_any_vector_and_in_the_rest() {
    let body = checked();
    let plain = Linked::plain(&body);
    const NUMBERS: [u32; 3] = [4, 8, 16];
    for is_optimised in [false, true] {
        let vectors = Linked::new(&body, &NUMBERS, is_optimised);
        for lanes in NUMBERS {
            // A first vector, one in the middle, a last one, and a rest of some items.
            let in_vectors = u64::from(3 * lanes);
            let count = in_vectors + 3;
            let (whole, failed) = plain.run_on(1, count, &input(None), || 0);
            assert_eq!(failed, None);
            assert_eq!(vectors.run_on(lanes, count, &input(None), || 0), (whole.clone(), None));
            for (item, check) in (0..count).flat_map(|item| CHECKS.map(|check| (item, check))) {
                let what = format!("item {item} of {count} at {check}, {lanes} lanes, optimised: {is_optimised}");
                let input = input(Some((item, check)));
                let told = Some(item * 8 + u64::from(check));
                let (alone, failed) = plain.run_on(1, count, &input, || 0);
                assert_eq!(failed, told, "without lanes, {what}");
                let (out, failed) = vectors.run_on(lanes, count, &input, || 0);
                assert_eq!(failed, told, "{what}");
                assert_eq!(words(&out, item), words(&alone, item), "{what}");
                assert_eq!(Some(u64::from(out[NOTE])), told, "{what}");
                // Of the others in its vector, only that is known: their stores are those of a whole run, or have not been made.
                let vector = item / u64::from(lanes) * u64::from(lanes);
                let is_unknown = |other| item < in_vectors && (vector..vector + u64::from(lanes)).contains(&other);
                for other in (0..ITEMS).filter(|other| *other != item) {
                    let (found, expected) = (words(&out, other), words(&whole, other));
                    let what = format!("{what}: item {other}");
                    if is_unknown(other) {
                        let is_so = |(found, expected)| found == BEFORE || found == expected;
                        assert!(found.into_iter().zip(expected).all(is_so), "{what}: {found:?}, {expected:?}");
                    } else {
                        assert_eq!(found, if other < item { expected } else { [BEFORE; 3] }, "{what}");
                    }
                }
            }
        }
    }
}
