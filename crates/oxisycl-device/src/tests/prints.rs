//! Print buffers as kernels fill them: the same code, run by the host.

use std::fmt;
use std::string::String;
use std::vec::Vec;

use oxisycl_types::{PrintHeader, PrintRecord};

use crate::print::append;
use crate::recorded::Recorded;

const U32: u64 = 11;
const U128: u64 = 13;
const STR: u64 = 17;
const TEXT: u64 = 19;

/// A buffer with room for records of so many bytes, and a guard behind it.
struct Buffer {
    memory: Vec<u128>,
    capacity: usize,
}

const GUARD: u8 = 0x5A;

impl Buffer {
    fn new(capacity: usize) -> Self {
        let mut buffer = Self { memory: std::vec![0; 1 + capacity.div_ceil(16) + 4], capacity };
        let header = PrintHeader { used: 0, capacity: capacity as u32, n_lost: 0, reserved: 0 };
        // SAFETY: the memory is larger than a header, and aligned as it is.
        unsafe {
            buffer.start().cast::<PrintHeader>().write(header);
            buffer.start().add(16 + capacity).write_bytes(GUARD, 64);
        }
        buffer
    }

    fn start(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    /// The header, and the bytes of the records.
    fn read(&mut self) -> (PrintHeader, Vec<u8>) {
        let capacity = self.capacity;
        // SAFETY: within the memory.
        let (header, records, guard) = unsafe {
            let start = self.start();
            let bytes = |from: usize, n: usize| std::slice::from_raw_parts(start.add(from), n).to_vec();
            (start.cast::<PrintHeader>().read(), bytes(16, capacity), bytes(16 + capacity, 64))
        };
        assert_eq!(guard, [GUARD; 64], "something was written beyond the buffer");
        (header, records[..header.used as usize].to_vec())
    }
}

fn value<T>(value: &T, kind: u64) -> Recorded {
    Recorded { address: (&raw const *value).cast(), kind }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn a_record_has_its_values_and_its_strings() {
    let mut buffer = Buffer::new(1000);
    let (number, wide, text) = (7u32, 1u128 << 100 | 5, "häuser");
    let values = [value(&number, U32), value(&text, STR), value(&wide, U128)];
    // SAFETY: a buffer of the test, and its values.
    unsafe {
        append::<false>(buffer.start().cast(), 3, values.as_ptr(), 3);
        append::<false>(buffer.start().cast(), 4, std::ptr::null(), 0);
    }
    let (header, records) = buffer.read();
    assert_eq!((header.used, header.n_lost), (96 + 16, 0));
    assert_eq!(words(&records[..16]), [96, 3, 3, 7]);
    assert_eq!(words(&records[16..40]), [11, 4, 7, 0, 0, 0]);
    assert_eq!(words(&records[40..64]), [17, 7, 0, 0, 0, 0]);
    assert_eq!(words(&records[64..88]), [13, 16, 5, 0, 0, 1 << 4]);
    assert_eq!(&records[88..95], text.as_bytes());
    assert_eq!(words(&records[96..]), [16, 4, 0, 0]);
}

#[test]
fn what_the_host_cannot_format_is_text() {
    let mut buffer = Buffer::new(1000);
    let message = format_args!("{:>5}|{:?}", 1.5, [Some(1), None]);
    let values = [value(&message, TEXT)];
    // SAFETY: a buffer of the test, and its values.
    unsafe { append::<true>(buffer.start().cast(), 0, values.as_ptr(), 1) };
    let (header, records) = buffer.read();
    let expected = "  1.5|[Some(1), None]";
    assert_eq!(words(&records[16..24]), [19, expected.len() as u32]);
    assert_eq!(String::from_utf8_lossy(&records[40..40 + expected.len()]), expected);
    assert_eq!(header.used as usize, (40 + expected.len()).next_multiple_of(8));
    // A message whose values all have kinds needs no formatting code.
    // SAFETY: as above.
    unsafe { append::<false>(buffer.start().cast(), 0, values.as_ptr(), 1) };
    assert_eq!(words(&buffer.read().1[64..72]), [40, 0]);
}

/// Values within each other, each with a part of the stack.
struct Nested(u32);

impl fmt::Display for Nested {
    #[inline(never)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = std::hint::black_box([0_u8; 128]);
        write!(f, "{} ", self.0 + u32::from(part[0]))?;
        if self.0 == 0 { f.write_str("end") } else { write!(f, "{}", Nested(self.0 - 1)) }
    }
}

#[test]
fn what_is_too_deep_for_the_stack_is_left_out() {
    let text = |depth| {
        let mut buffer = Buffer::new(100_000);
        let message = format_args!("{}", Nested(depth));
        let values = [value(&message, TEXT)];
        // SAFETY: a buffer of the test, and its values.
        unsafe { append::<true>(buffer.start().cast(), 0, values.as_ptr(), 1) };
        let (header, records) = buffer.read();
        assert_eq!(header.n_lost, 0);
        let length = words(&records[20..24])[0] as usize;
        String::from_utf8(records[40..40 + length].to_vec()).unwrap()
    };
    assert_eq!(text(3), "3 2 1 0 end");
    let cut = text(1000);
    assert!(cut.starts_with("1000 999 998 ") && cut.ends_with(" (too deep to be shown)"), "{cut}");
    // 128 bytes a level, within 4 KiB.
    assert!(cut.split(' ').count() < 40, "{cut}");
}

#[test]
fn a_value_that_panics_when_it_is_formatted_leaves_a_head() {
    use std::cell::Cell;

    /// Panics the second time: the first one only counts.
    struct PanicsLater(Cell<bool>);
    impl std::fmt::Display for PanicsLater {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            assert!(!self.0.replace(true), "in the value's own code");
            f.write_str("0123456789")
        }
    }
    let mut buffer = Buffer::new(1000);
    // What an earlier launch has left.
    // SAFETY: within the buffer.
    unsafe { buffer.start().add(16).write_bytes(0xCC, 1000) };
    let header = buffer.start().expose_provenance();
    let ended = std::panic::catch_unwind(|| {
        let value_that_panics = PanicsLater(Cell::new(false));
        let message = format_args!("{value_that_panics}");
        // SAFETY: a buffer of the test, and its value.
        unsafe {
            append::<true>(std::ptr::with_exposed_provenance_mut(header), 1, [value(&message, TEXT)].as_ptr(), 1);
        }
    });
    assert!(ended.is_err());
    // SAFETY: as above.
    unsafe { append::<false>(buffer.start().cast(), 3, std::ptr::null(), 0) };
    let (header, records) = buffer.read();
    assert_eq!(header.used, 56 + 16);
    assert_eq!(words(&records[..8]), [56, PrintRecord::UNFINISHED]);
    assert_eq!(words(&records[56..]), [16, 3, 0, 0]);
}

#[test]
fn room_is_taken_as_long_as_a_record_fits() {
    for capacity in [0, 15, 16, 39, 40, 47, 48, 79, 80, 100] {
        let mut buffer = Buffer::new(capacity);
        let text = "abcd";
        let (long, short) = ([value(&text, STR)], []);
        // SAFETY: a buffer of the test, and its values.
        unsafe {
            append::<false>(buffer.start().cast(), 0, long.as_ptr(), 1);
            append::<false>(buffer.start().cast(), 1, short.as_ptr(), 0);
            append::<false>(buffer.start().cast(), 0, long.as_ptr(), 1);
        }
        let (header, _) = buffer.read();
        let (mut used, mut n_lost) = (0, 0);
        for size in [48, 16, 48] {
            if used + size <= capacity { used += size } else { n_lost += 1 }
        }
        assert_eq!((header.used as usize, header.n_lost), (used, n_lost), "{capacity}");
    }
}

#[test]
fn work_items_take_room_at_the_same_time() {
    const ITEMS: u32 = if cfg!(miri) { 20 } else { 2000 };
    let mut buffer = Buffer::new((ITEMS as usize * 3 / 2) * 40);
    let header = buffer.start().expose_provenance();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                for item in 0..ITEMS {
                    let number = thread << 16 | item;
                    // SAFETY: the buffer outlives the scope, and only this function uses it.
                    unsafe {
                        let header = std::ptr::with_exposed_provenance_mut(header);
                        append::<false>(header, thread, [value(&number, U32)].as_ptr(), 1);
                    }
                }
            });
        }
    });
    let (header, records) = buffer.read();
    assert_eq!(header.used as usize, buffer.capacity);
    assert_eq!(header.n_lost, 4 * ITEMS - ITEMS * 3 / 2);
    let mut next = [0; 4];
    for record in records.chunks_exact(40) {
        let [40, thread, 1, 0, 11, 4, number, 0, 0, 0] = words(record)[..] else { panic!("{record:?}") };
        assert_eq!(number >> 16, thread);
        assert!(number & 0xFFFF >= next[thread as usize], "the records of a thread are in its order");
        next[thread as usize] = (number & 0xFFFF) + 1;
    }
}

#[test]
fn losses_are_counted_up_to_a_limit() {
    let mut buffer = Buffer::new(0);
    // SAFETY: the header of the test's buffer.
    unsafe { (*buffer.start().cast::<PrintHeader>()).n_lost = PrintHeader::MANY - 1 };
    for _ in 0..3 {
        // SAFETY: a buffer of the test.
        unsafe { append::<false>(buffer.start().cast(), 0, std::ptr::null(), 0) };
    }
    assert_eq!(buffer.read().0.n_lost, PrintHeader::MANY);
}
