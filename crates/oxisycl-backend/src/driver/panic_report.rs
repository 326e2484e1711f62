//! Panic records as text.
//!
//! A record comes from a device and may hold anything. It is copied out as plain numbers, and each number is checked before it is used.

use std::ptr::NonNull;

use oxisycl_image::PanicSite;
use oxisycl_types::{LaunchRange, PanicRecord};

use crate::FailureKind;

/// Takes the panic out of the record of a launch that has ended. `None` if no work-item panicked. The record can be used again afterwards.
///
/// # Safety
/// The record is valid for reads and writes, and belongs to the caller.
#[inline]
pub unsafe fn take(record: NonNull<PanicRecord>) -> Option<PanicRecord> {
    let record = record.as_ptr();
    // SAFETY: by the contract of this function. Volatile, since a device wrote it.
    let state = unsafe { (&raw const (*record).state).read_volatile() };
    if state == PanicRecord::FREE {
        return None;
    }
    // SAFETY: as above; any bytes are a valid record.
    let report = unsafe { record.read_volatile() };
    // SAFETY: as above.
    unsafe { (&raw mut (*record).state).write_volatile(PanicRecord::FREE) };
    Some(report)
}

/// The failure of a launch whose record is `record`, with the message of the image's panic site.
pub fn failure(record: &PanicRecord, range: &LaunchRange, sites: &[PanicSite]) -> FailureKind {
    if ![PanicRecord::COMPLETE, PanicRecord::PLACED].contains(&record.state) {
        let message = "a work-item panicked, and ended before its report was complete".to_owned();
        return FailureKind::Panic { message, location: None, item: None };
    }
    let site = usize::try_from(record.site).ok().and_then(|site| sites.get(site));
    let message = match site {
        Some(_) if record.state == PanicRecord::PLACED => {
            "a work-item panicked, and panicked again while the message was formatted".to_owned()
        }
        Some(site) => site.format(record),
        None => format!("panic at unknown site {} of the device image", record.site),
    };
    let location = site.and_then(|site| site.location.as_ref());
    let location = location.map(|place| format!("{}:{}:{}", place.file, place.line, place.column));
    FailureKind::Panic { message, location, item: item(record, range) }
}

/// The work-item's id, if it lies in the launch.
fn item(record: &PanicRecord, range: &LaunchRange) -> Option<(u8, [usize; 3])> {
    let mut id = [0; 3];
    for (dimension, id) in id.iter_mut().enumerate() {
        *id = usize::try_from(record.item[dimension]).ok()?;
        let index = id.checked_sub(range.offset[dimension])?;
        if index >= range.extent[dimension] {
            return None;
        }
    }
    Some((range.dimensions, id))
}

#[cfg(test)]
mod tests {
    use oxisycl_image::{MessagePiece, SourceLocation};

    use super::*;

    const RANGE: LaunchRange = LaunchRange { dimensions: 2, extent: [1, 4, 5], offset: [0, 2, 0] };

    fn record(change: impl FnOnce(&mut PanicRecord)) -> PanicRecord {
        let mut record = PanicRecord { state: PanicRecord::COMPLETE, item: [0, 3, 4], ..PanicRecord::EMPTY };
        change(&mut record);
        record
    }

    /// Message, place and item.
    type Parts = (String, Option<String>, Option<(u8, [usize; 3])>);

    fn parts_of(record: &PanicRecord) -> Parts {
        let location = SourceLocation { file: "src/main.rs".to_owned(), line: 3, column: 9 };
        let site = PanicSite { location: Some(location), message: vec![MessagePiece::Literal("ouch!".to_owned())] };
        match failure(record, &RANGE, &[site]) {
            FailureKind::Panic { message, location, item } => (message, location, item),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_complete_record_gives_message_place_and_item() {
        let expected = ("ouch!".to_owned(), Some("src/main.rs:3:9".to_owned()), Some((2, [0, 3, 4])));
        assert_eq!(parts_of(&record(|_| ())), expected);
    }

    #[test]
    fn numbers_out_of_range_are_not_believed() {
        let (message, location, item) = parts_of(&record(|record| {
            (record.text_length, record.n_arguments, record.site) = (u32::MAX, u32::MAX, 7);
            record.item = [0, 1, 0];
        }));
        assert_eq!((message.as_str(), location, item), ("panic at unknown site 7 of the device image", None, None));
        assert_eq!(parts_of(&record(|record| record.item = [u64::MAX; 3])).2, None);
    }

    #[test]
    fn a_panic_whose_message_panicked_has_a_place_and_an_item() {
        let (message, location, item) = parts_of(&record(|record| {
            record.state = PanicRecord::PLACED;
            // What an earlier launch has left.
            (record.text_length, record.n_arguments) = (u32::MAX, u32::MAX);
        }));
        assert!(message.ends_with("panicked again while the message was formatted"), "{message}");
        assert_eq!((location.as_deref(), item), (Some("src/main.rs:3:9"), Some((2, [0, 3, 4]))));
    }

    #[test]
    fn an_unfinished_record_is_told_as_such() {
        for state in [PanicRecord::CLAIMED, 0xDEAD] {
            assert!(parts_of(&record(|record| record.state = state)).0.contains("before its report was complete"));
        }
    }
}
