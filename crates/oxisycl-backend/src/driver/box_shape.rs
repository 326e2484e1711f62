//! Pitched boxes in the form that needs the fewest driver calls.
//!
//! Pure arithmetic: rows that follow each other without a gap become one row, and slices likewise, for all boxes of a command at once.

use smallvec::SmallVec;

/// The pitches of one box, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pitches {
    /// From one row to the next.
    pub row: usize,
    /// From one slice to the next.
    pub slice: usize,
}

/// The common shape of the boxes of one command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoxShape {
    /// Number of slices.
    pub slices: usize,
    /// Rows of a slice.
    pub rows: usize,
    /// Bytes of a row.
    pub width: usize,
    /// The pitches of each box, in the order in which they were given.
    pub pitches: SmallVec<[Pitches; 2]>,
}

impl BoxShape {
    /// The simplest shape of boxes with these pitches; `extent` is slices, rows and bytes.
    pub fn new(extent: [usize; 3], pitches: &[Pitches]) -> Self {
        let [slices, rows, width] = extent;
        let mut shape = Self { slices, rows, width, pitches: pitches.into() };
        shape.merge_rows();
        if shape.rows == 1 {
            // Slices of one row are rows.
            (shape.slices, shape.rows) = (1, shape.slices);
            shape.pitches.iter_mut().for_each(|pitches| pitches.row = pitches.slice);
            shape.merge_rows();
        } else if shape.pitches.iter().all(|pitches| pitches.slice == shape.rows * pitches.row) {
            (shape.slices, shape.rows) = (1, shape.slices * shape.rows);
        }
        shape
    }

    /// Merges rows that follow each other without a gap.
    fn merge_rows(&mut self) {
        if self.pitches.iter().all(|pitches| pitches.row == self.width) {
            (self.rows, self.width) = (1, self.rows * self.width);
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.slices == 0 || self.rows == 0 || self.width == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(extent: [usize; 3], pitches: &[(usize, usize)]) -> (usize, usize, usize, Vec<usize>) {
        let pitches: Vec<Pitches> = pitches.iter().map(|&(row, slice)| Pitches { row, slice }).collect();
        let shape = BoxShape::new(extent, &pitches);
        (shape.slices, shape.rows, shape.width, shape.pitches.iter().map(|pitches| pitches.row).collect())
    }

    #[test]
    fn a_box_without_gaps_is_one_row() {
        assert_eq!(shape([3, 4, 5], &[(5, 20), (5, 20)]).2, 60);
        assert_eq!(shape([3, 4, 5], &[(5, 20)]).1, 1);
        assert_eq!(shape([1, 1, 7], &[(0, 0), (9, 9)]), (1, 1, 7, vec![0, 9]));
    }

    #[test]
    fn slices_without_gaps_between_them_are_more_rows() {
        assert_eq!(shape([3, 4, 5], &[(8, 32), (6, 24)]), (1, 12, 5, vec![8, 6]));
        assert_eq!(shape([3, 1, 5], &[(0, 32), (0, 24)]), (1, 3, 5, vec![32, 24]));
        assert_eq!(shape([3, 4, 5], &[(5, 32), (5, 24)]), (1, 3, 20, vec![32, 24]));
        assert_eq!(shape([3, 1, 5], &[(0, 5), (9, 5)]).2, 15);
    }

    #[test]
    fn a_gap_in_one_box_counts_for_all() {
        assert_eq!(shape([3, 4, 5], &[(5, 20), (6, 24)]), (1, 12, 5, vec![5, 6]));
        assert_eq!(shape([3, 4, 5], &[(5, 20), (6, 25)]), (3, 4, 5, vec![5, 6]));
    }

    #[test]
    fn nothing_stays_nothing() {
        for extent in [[0, 1, 1], [1, 0, 1], [1, 1, 0]] {
            let pitches = Pitches { row: 0, slice: 0 };
            assert!(BoxShape::new(extent, &[pitches]).is_empty(), "{extent:?}");
        }
    }
}
