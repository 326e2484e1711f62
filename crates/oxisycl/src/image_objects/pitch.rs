//! Memory of the host with gaps between rows and slices.

use oxisycl_types::{ImageFormat, Range};

use crate::{Error, Result};

/// How far apart rows and slices begin in memory of the host, in bytes (SYCL 2020 `pitch`). What lies between them is neither read nor written.
///
/// In an image itself, rows follow each other without gaps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImagePitch {
    row: usize,
    slice: Option<usize>,
}

impl ImagePitch {
    /// Rows that begin `row` bytes after each other. Slices follow each other without further gaps.
    pub const fn rows(row: usize) -> Self {
        Self { row, slice: None }
    }

    /// Rows and slices that begin `row` and `slice` bytes after each other.
    pub const fn slices(row: usize, slice: usize) -> Self {
        Self { row, slice: Some(slice) }
    }
}

/// Where the rows of an image lie in memory of the host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Slices, and rows of each.
    counts: [usize; 2],
    /// How far apart they begin.
    pitches: [usize; 2],
    /// Bytes of a row's pixels.
    row: usize,
}

impl Rows {
    /// Rows without gaps in memory of exactly their size, or with gaps in memory of at least what is needed up to the last pixel.
    pub(super) fn new<const D: usize>(
        format: ImageFormat,
        range: Range<D>,
        pitch: Option<ImagePitch>,
        n_bytes: usize,
    ) -> Result<Self> {
        let [n_slices, n_rows, width] = range.embed();
        let too_large = || Error::invalid(format!("an image of range {range:?} is larger than memory can be"));
        let row = width.checked_mul(format.pixel_size()).ok_or_else(too_large)?;
        let row_pitch = pitch.map_or(row, |pitch| pitch.row);
        let dense_slice = n_rows.checked_mul(row_pitch).ok_or_else(too_large)?;
        let slice_pitch = pitch.and_then(|pitch| pitch.slice).unwrap_or(dense_slice);
        if row_pitch < row {
            return Err(Error::invalid(format!(
                "an image of range {range:?} and format {format} has rows of {row} bytes: a row pitch of {row_pitch} is too small"
            )));
        }
        if slice_pitch < dense_slice {
            return Err(Error::invalid(format!(
                "an image of range {range:?} with a row pitch of {row_pitch} has slices of {dense_slice} bytes: a slice pitch of {slice_pitch} is \
                 too small"
            )));
        }
        let end = (n_slices - 1).checked_mul(slice_pitch);
        let needed = end.and_then(|end| end.checked_add((n_rows - 1) * row_pitch + row)).ok_or_else(too_large)?;
        let is_right = if pitch.is_some() { needed <= n_bytes } else { needed == n_bytes };
        if !is_right {
            let least = if pitch.is_some() { "at least " } else { "" };
            return Err(Error::invalid(format!(
                "an image of range {range:?} and format {format} needs {least}{needed} bytes, found {n_bytes}"
            )));
        }
        Ok(Self { counts: [n_slices, n_rows], pitches: [slice_pitch, row_pitch], row })
    }

    /// Calls `f` with the places of each row: in memory of the host, and without gaps.
    pub(super) fn for_each(self, mut f: impl FnMut(std::ops::Range<usize>, std::ops::Range<usize>)) {
        let mut dense = 0;
        for slice in 0..self.counts[0] {
            for row in 0..self.counts[1] {
                let begin = slice * self.pitches[0] + row * self.pitches[1];
                f(begin..begin + self.row, dense..dense + self.row);
                dense += self.row;
            }
        }
    }
}
