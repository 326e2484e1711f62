//! Reads numbers and texts out of untrusted bytes.
//!
//! Invariant: no length or count is used before it is held against the bytes that are there.

use crate::ImageError;
use crate::format::MIN_TEXT_SIZE;

/// The unread bytes of one part of the input, and where in the input they begin.
pub(crate) struct Reader<'a> {
    pub(crate) part: &'static str,
    pub(crate) bytes: &'a [u8],
    pub(crate) offset: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], ImageError> {
        let Some((taken, rest)) = self.bytes.split_at_checked(length) else {
            let (part, offset, found) = (self.part, self.offset, self.bytes.len());
            return Err(ImageError::Truncated { part, offset, expected: length, found });
        };
        self.bytes = rest;
        self.offset += length;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ImageError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ImageError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ImageError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ImageError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ImageError> {
        self.array().map(|[byte]| byte)
    }

    /// A byte that is at most that.
    pub(crate) fn at_most(&mut self, largest: u8) -> Result<u8, ImageError> {
        let offset = self.offset;
        let found = self.u8()?;
        if found > largest {
            let (expected, found) = (u64::from(largest), u64::from(found));
            return Err(ImageError::Number { part: self.part, offset, expected, found });
        }
        Ok(found)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, ImageError> {
        self.at_most(1).map(|flag| flag == 1)
    }

    pub(crate) fn zero(&mut self) -> Result<(), ImageError> {
        self.at_most(0).map(drop)
    }

    /// A number that can only be one.
    pub(crate) fn expect(&mut self, expected: u32) -> Result<(), ImageError> {
        let (part, offset) = (self.part, self.offset);
        let found = self.u32()?;
        if found != expected {
            return Err(ImageError::Number { part, offset, expected: u64::from(expected), found: u64::from(found) });
        }
        Ok(())
    }

    /// A size in memory, which has to be one on this machine.
    pub(crate) fn size(&mut self) -> Result<usize, ImageError> {
        let (part, offset) = (self.part, self.offset);
        let found = self.u64()?;
        usize::try_from(found).map_err(|_| ImageError::Number { part, offset, expected: usize::MAX as u64, found })
    }

    /// The number of things of at least `min_size` bytes that follow; there is room for all of them.
    pub(crate) fn count(&mut self, min_size: usize) -> Result<usize, ImageError> {
        let count = self.u32()? as usize;
        let expected = count.saturating_mul(min_size);
        if self.bytes.len() < expected {
            let (part, offset, found) = (self.part, self.offset, self.bytes.len());
            return Err(ImageError::Truncated { part, offset, expected, found });
        }
        Ok(count)
    }

    pub(crate) fn text(&mut self) -> Result<String, ImageError> {
        let length = self.u32()? as usize;
        let offset = self.offset;
        let bytes = self.take(length)?;
        Reader { part: self.part, bytes, offset }.rest_as_text().map(str::to_owned)
    }

    /// A count of texts, and the texts.
    pub(crate) fn texts(&mut self) -> Result<Vec<String>, ImageError> {
        let n_texts = self.count(MIN_TEXT_SIZE)?;
        (0..n_texts).map(|_| self.text()).collect()
    }

    pub(crate) fn rest_as_text(self) -> Result<&'a str, ImageError> {
        str::from_utf8(self.bytes).map_err(|_| ImageError::Text { part: self.part, offset: self.offset })
    }

    pub(crate) fn finish(self) -> Result<(), ImageError> {
        match self.bytes.len() {
            0 => Ok(()),
            found => Err(ImageError::Trailing { part: self.part, found }),
        }
    }
}
