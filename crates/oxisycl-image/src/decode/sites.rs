//! Reads the table of panic sites.

use crate::format::{
    ALIGN_CENTER, ALIGN_LEFT, ALIGN_RIGHT, COUNT_ARGUMENT, COUNT_IS, COUNT_NONE, FLAG_ALTERNATE, FLAG_SIGN_PLUS,
    FLAG_ZERO_PAD, MIN_PIECE_SIZE, MIN_SITE_SIZE, PIECE_ARGUMENT, PIECE_LITERAL,
};
use crate::reader::Reader;
use crate::{ArgumentFormat, FormatAlignment, FormatCount, FormatTrait, ImageError, MessagePiece, PanicSite};

pub(super) fn read(mut section: Reader<'_>) -> Result<Vec<PanicSite>, ImageError> {
    let n_sites = section.count(MIN_SITE_SIZE)?;
    let sites = (0..n_sites).map(|_| read_site(&mut section)).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(sites)
}

fn read_site(section: &mut Reader<'_>) -> Result<PanicSite, ImageError> {
    let location = match choice(section, 1)? {
        0 => None,
        _ => Some(super::read_location(section)?),
    };
    let n_pieces = section.count(MIN_PIECE_SIZE)?;
    let message = (0..n_pieces).map(|_| read_piece(section)).collect::<Result<_, _>>()?;
    Ok(PanicSite { location, message })
}

fn read_piece(section: &mut Reader<'_>) -> Result<MessagePiece, ImageError> {
    if choice(section, PIECE_ARGUMENT)? == PIECE_LITERAL {
        return section.text().map(MessagePiece::Literal);
    }
    let index = section.u8()?;
    let style = section.at_most(FormatTrait::ALL.len() as u8 - 1)?;
    let flags = section.at_most(FLAG_ALTERNATE | FLAG_SIGN_PLUS | FLAG_ZERO_PAD)?;
    let alignment = match section.at_most(ALIGN_CENTER)? {
        ALIGN_LEFT => Some(FormatAlignment::Left),
        ALIGN_RIGHT => Some(FormatAlignment::Right),
        ALIGN_CENTER => Some(FormatAlignment::Center),
        _ => None,
    };
    let fill_at = section.offset;
    let fill = section.u32()?;
    let fill = char::from_u32(fill).ok_or(ImageError::Number {
        part: section.part,
        offset: fill_at,
        expected: u64::from(u32::from(char::MAX)),
        found: u64::from(fill),
    })?;
    let format = ArgumentFormat {
        style: FormatTrait::ALL[usize::from(style)],
        alternate: flags & FLAG_ALTERNATE != 0,
        sign_plus: flags & FLAG_SIGN_PLUS != 0,
        zero_pad: flags & FLAG_ZERO_PAD != 0,
        fill,
        alignment,
        width: read_count(section)?,
        precision: read_count(section)?,
    };
    Ok(MessagePiece::Argument { index, format })
}

fn read_count(section: &mut Reader<'_>) -> Result<Option<FormatCount>, ImageError> {
    let offset = section.offset;
    let kind = section.u16()?;
    let value = section.u16()?;
    let (offset, expected, found) = match (kind, value) {
        (COUNT_NONE, 0) => return Ok(None),
        (COUNT_IS, count) => return Ok(Some(FormatCount::Is(count))),
        (COUNT_ARGUMENT, 0..=255) => return Ok(Some(FormatCount::Argument(value as u8))),
        (COUNT_ARGUMENT, _) => (offset + 2, 255, value),
        (COUNT_NONE, _) => (offset + 2, 0, value),
        _ => (offset, COUNT_ARGUMENT, kind),
    };
    Err(ImageError::Number { part: section.part, offset, expected: u64::from(expected), found: u64::from(found) })
}

/// A number in 32 bits that is at most that.
pub(super) fn choice(section: &mut Reader<'_>, largest: u32) -> Result<u32, ImageError> {
    let (part, offset) = (section.part, section.offset);
    let found = section.u32()?;
    if found > largest {
        return Err(ImageError::Number { part, offset, expected: u64::from(largest), found: u64::from(found) });
    }
    Ok(found)
}
