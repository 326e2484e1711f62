//! Panic records as kernels fill them in: the same code, run by the host.

use core::fmt;

use oxisycl_types::PanicRecord;

use crate::panic_record::{tell, tell_numbers};
use crate::recorded::Recorded;

const U32: u64 = 11;
const U64: u64 = 12;
const TEXT: u64 = 19;

fn value<T>(value: &T, kind: u64) -> Recorded {
    Recorded { address: (&raw const *value).cast(), kind }
}

#[test]
fn the_first_work_item_tells_and_the_others_do_not() {
    let mut record = PanicRecord::EMPTY;
    let values = [value(&7u32, U32), value(&8u32, U32)];
    // SAFETY: a record and values of the test.
    unsafe {
        tell::<false>(&raw mut record, || [1, 2, 3], 5, values.as_ptr(), 2);
        tell::<false>(&raw mut record, || unreachable!("the record is taken"), 6, values.as_ptr(), 1);
    }
    assert_eq!((record.state, record.site, record.item), (PanicRecord::COMPLETE, 5, [1, 2, 3]));
    assert_eq!((record.n_arguments, record.text_length, record.arguments[1].bits), (2, 0, [8, 0]));
}

#[test]
fn numbers_by_value_are_told_as_those_by_address() {
    let (mut by_value, mut by_address) = (PanicRecord::EMPTY, PanicRecord::EMPTY);
    let values = [value(&7u32, U32), value(&u64::MAX, U64)];
    let kinds = U32 | U64 << 8 | 2 << 24;
    // SAFETY: records and values of the test.
    unsafe {
        tell_numbers(&raw mut by_value, || [1, 2, 3], 5, kinds, [7, u64::MAX, 0]);
        tell_numbers(&raw mut by_value, || unreachable!("the record is taken"), 6, 0, [9; 3]);
        tell::<false>(&raw mut by_address, || [1, 2, 3], 5, values.as_ptr(), 2);
    }
    // A number may be said to have more bytes than it has.
    by_value.arguments[0].size = 4;
    let told = |record: &PanicRecord| {
        let PanicRecord { state, site, item, n_arguments, text_length, arguments, .. } = *record;
        (state, site, item, n_arguments, text_length, [arguments[0], arguments[1]])
    };
    assert_eq!(told(&by_value), told(&by_address));
}

#[test]
fn text_beyond_the_room_of_a_record_is_cut_off_and_counted() {
    struct Long;
    impl fmt::Display for Long {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            (0..100).try_for_each(|n| write!(f, "{n:05}"))
        }
    }
    let mut record = PanicRecord::EMPTY;
    let message = format_args!("{Long}");
    // SAFETY: the record of the test, and values.
    unsafe {
        tell::<true>(&raw mut record, || [0; 3], 1, [value(&message, TEXT), value(&7u32, U32)].as_ptr(), 2);
    }
    assert_eq!((record.state, record.text_length as usize), (PanicRecord::COMPLETE, PanicRecord::MAX_TEXT));
    assert_eq!((record.arguments[0].size, record.arguments[1].bits), (500, [7, 0]));
    assert!(record.text.starts_with(b"0000000001") && record.text.ends_with(b"0005400055"));
}

#[test]
fn a_message_that_panics_while_it_is_formatted_leaves_place_and_item() {
    struct Panics;
    impl fmt::Display for Panics {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("in the value's own code")
        }
    }
    let mut record = PanicRecord::EMPTY;
    let address = (&raw mut record).expose_provenance();
    let ended = std::panic::catch_unwind(|| {
        let message = format_args!("{Panics}");
        // SAFETY: the record of the test, and a value.
        unsafe {
            let record = std::ptr::with_exposed_provenance_mut(address);
            tell::<true>(record, || [0, 0, 9], 4, [value(&message, TEXT)].as_ptr(), 1);
        }
    });
    assert!(ended.is_err());
    assert_eq!((record.state, record.site, record.item), (PanicRecord::PLACED, 4, [0, 0, 9]));
}
