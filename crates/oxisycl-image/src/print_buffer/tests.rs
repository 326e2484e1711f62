//! Buffers that devices write, and buffers that no device would write.

use super::*;
use crate::{ArgumentFormat, ArgumentKind, FormatTrait, MessagePiece};

/// One place that prints `item 7: name`, and one that prints a newline.
fn sites() -> Vec<PanicSite> {
    let plain = |index| MessagePiece::Argument { index, format: ArgumentFormat::new(FormatTrait::Display) };
    let literal = |text: &str| MessagePiece::Literal(text.to_owned());
    vec![
        PanicSite { location: None, message: vec![literal("item "), plain(0), literal(": "), plain(1), literal("\n")] },
        PanicSite { location: None, message: vec![literal("\n")] },
    ]
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A record of the first place.
fn item(number: u32, name: &str) -> Vec<u8> {
    let size = (16 + 2 * 24 + name.len()).next_multiple_of(8) as u32;
    let mut record = words(&[size, 0, 2, name.len() as u32]);
    record.extend(words(&[ArgumentKind::U32.number(), 4, number, 0, 0, 0]));
    record.extend(words(&[ArgumentKind::Str.number(), name.len() as u32, 0, 0, 0, 0]));
    record.extend(name.as_bytes());
    record.resize(size as usize, 0xEE);
    record
}

fn buffer(records: &[Vec<u8>], n_lost: u32) -> Vec<u8> {
    let used = records.iter().map(Vec::len).sum::<usize>() as u32;
    let mut buffer = words(&[used, used + 64, n_lost, 0]);
    records.iter().for_each(|record| buffer.extend(record));
    // What an earlier launch has left.
    buffer.extend([0xAA; 64]);
    buffer
}

fn read(buffer: &[u8]) -> (String, Printed) {
    let mut text = String::new();
    let printed = read_print_buffer(buffer, &sites(), &mut |piece| text.push_str(piece));
    (text, printed)
}

#[test]
fn records_become_text_in_their_order() {
    let (text, printed) = read(&buffer(&[item(7, "häuser"), words(&[16, 1, 0, 0]), item(8, "")], 3));
    assert_eq!(text, "item 7: häuser\n\nitem 8: \n");
    assert_eq!(printed, Printed { n_lost: 3, n_unreadable: 0 });
    assert_eq!(read(&buffer(&[], 0)), (String::new(), Printed { n_lost: 0, n_unreadable: 0 }));
}

#[test]
fn a_record_whose_formatting_panicked_has_no_text_and_hides_no_other() {
    let mut unfinished = item(7, "lost");
    unfinished[4..8].copy_from_slice(&PrintRecord::UNFINISHED.to_le_bytes());
    // The rest of it is what an earlier launch has left.
    unfinished[8..].fill(0xCC);
    let (text, printed) = read(&buffer(&[item(6, "a"), unfinished, item(8, "b")], 0));
    assert_eq!(text, "item 6: a\nitem 8: b\n");
    assert_eq!(printed, Printed { n_lost: 0, n_unreadable: 0 });
}

#[test]
fn strings_are_as_the_program_made_them() {
    let (text, _) = read(&buffer(&[item(1, "\x1b[1mbold\x1b[0m")], 0));
    assert_eq!(text, "item 1: \x1b[1mbold\x1b[0m\n");
}

#[test]
fn large_texts_come_in_pieces() {
    let name = "x".repeat(1000);
    let records: Vec<_> = (0..200).map(|number| item(number, &name)).collect();
    let mut pieces = Vec::new();
    let printed = read_print_buffer(&buffer(&records, 0), &sites(), &mut |piece| pieces.push(piece.len()));
    assert_eq!(printed.n_unreadable, 0);
    assert!(pieces.len() > 2 && pieces.iter().all(|length| *length < PIECE + 2000), "{pieces:?}");
}

#[test]
fn reading_ends_at_a_record_that_cannot_be() {
    let good = item(7, "a");
    let mut shapes = Vec::new();
    // Size: nothing, less than a record's, no multiple of 8, beyond what is used. Then a site, a count and a length beyond the record.
    for (word, number) in
        [(0, 0), (0, 8), (0, 20), (0, 1 << 20), (0, u32::MAX), (1, 2), (2, 99), (2, u32::MAX), (3, 999)]
    {
        let mut bad = item(8, "b");
        bad[word * 4..word * 4 + 4].copy_from_slice(&u32::to_le_bytes(number));
        shapes.push(bad);
        // Also of a record that says that it was not finished.
        if word == 0 {
            let mut bad = words(&[number, PrintRecord::UNFINISHED, 0, 0]);
            bad.resize(72, 0);
            shapes.push(bad);
        }
    }
    for bad in shapes {
        let size = bad.len() + good.len();
        let (text, printed) = read(&buffer(&[good.clone(), bad, good.clone()], 0));
        assert_eq!((text.as_str(), printed.n_unreadable), ("item 7: a\n", size));
    }
}

#[test]
fn a_header_that_promises_too_much_is_not_believed() {
    let mut bytes = buffer(&[item(7, "a")], u32::MAX);
    bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let (text, printed) = read(&bytes);
    assert_eq!(text, "item 7: a\n");
    assert_eq!(printed, Printed { n_lost: PrintHeader::MANY, n_unreadable: 64 });
    for length in 0..16 {
        let (text, printed) = read(&bytes[..length]);
        assert_eq!((text.as_str(), printed.n_unreadable), ("", 0));
    }
}

#[test]
fn no_buffer_makes_the_reader_fail() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let good = buffer(&[item(7, "abc"), item(8, "defg")], 0);
    for _ in 0..5_000 {
        let mut bytes = good.clone();
        for _ in 0..=random() % 6 {
            let at = random() as usize % bytes.len();
            bytes[at] = if random() % 2 == 0 { random() as u8 } else { 0xFF };
        }
        bytes.truncate(random() as usize % (bytes.len() + 1));
        let (_, printed) = read(&bytes);
        assert!(printed.n_unreadable <= bytes.len());
    }
}
