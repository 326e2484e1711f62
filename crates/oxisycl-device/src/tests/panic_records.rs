//! Panic records as kernels fill them in: the same code, run by the host.

use core::fmt;

use oxisycl_types::PanicRecord;

use crate::panic_record::tell;
use crate::recorded::Recorded;

const U32: u64 = 11;
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
