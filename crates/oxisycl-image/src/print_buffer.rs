//! What kernels printed, as text: reads the records of a print buffer, whose values the device left and whose messages the image has.
//!
//! The buffer comes from a device and may hold anything. No number in it is believed: a record that cannot be ends the reading, and the
//! caller learns so. Texts come out in pieces, so that a buffer never becomes one string.

use oxisycl_types::{PanicArgument, PrintHeader, PrintRecord};

use crate::PanicSite;

/// Text is passed on when there is this much of it, in bytes.
const PIECE: usize = 64 << 10;

/// What was in a print buffer beside its text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Printed {
    /// How many calls found no room. At [`PrintHeader::MANY`] there may have been more.
    pub n_lost: u32,
    /// How many bytes of records could not be read.
    pub n_unreadable: usize,
}

/// Formats the records of a print buffer that begins with its header, and gives their text to `write` in their order, piece by piece.
pub fn read_print_buffer(buffer: &[u8], sites: &[PanicSite], write: &mut dyn FnMut(&str)) -> Printed {
    let mut header = Words(buffer);
    let used = header.next().unwrap_or(0) as usize;
    header.next();
    let n_lost = header.next().unwrap_or(0).min(PrintHeader::MANY);
    let room = buffer.get(size_of::<PrintHeader>()..).unwrap_or_default();
    let mut rest = &room[..used.min(room.len())];
    let mut text = String::new();
    while !rest.is_empty() {
        let Some((record, after)) = read_record(rest, sites) else { break };
        text.push_str(&record);
        rest = after;
        if text.len() >= PIECE {
            write(&text);
            text.clear();
        }
    }
    if !text.is_empty() {
        write(&text);
    }
    Printed { n_lost, n_unreadable: rest.len() }
}

/// The text of the first record, and the records after it; `None` if it is none.
fn read_record<'b>(records: &'b [u8], sites: &[PanicSite]) -> Option<(String, &'b [u8])> {
    let mut words = Words(records);
    let [size, site, n_arguments, text_length] = [words.next()?, words.next()?, words.next()?, words.next()?];
    let (record, after) = records.split_at_checked(size as usize)?;
    if !size.is_multiple_of(8) || record.len() < size_of::<PrintRecord>() {
        return None;
    }
    if site == PrintRecord::UNFINISHED {
        // Formatting it panicked. The launch fails with that panic, and there is no text.
        return Some((String::new(), after));
    }
    let values = record.get(size_of::<PrintRecord>()..)?;
    let length = (n_arguments as usize).checked_mul(size_of::<PanicArgument>())?;
    let (values, text) = values.split_at_checked(length)?;
    let text = text.get(..text_length as usize)?;
    let arguments: Vec<PanicArgument> = values.chunks_exact(size_of::<PanicArgument>()).map(argument).collect();
    let site = sites.get(site as usize)?;
    Some((site.format_output(&arguments, text), after))
}

fn argument(bytes: &[u8]) -> PanicArgument {
    let word = |index: usize| {
        bytes.get(index * 4..index * 4 + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes)
    };
    let wide = |index: usize| u64::from(word(index)) | u64::from(word(index + 1)) << 32;
    PanicArgument { kind: word(0), size: word(1), bits: [wide(2), wide(4)] }
}

/// Numbers of 32 bits, one after the other.
struct Words<'b>(&'b [u8]);

impl Words<'_> {
    fn next(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*word))
    }
}

#[cfg(test)]
mod tests;
