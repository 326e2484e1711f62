//! Copies and fills against a naive model, large enough to be split.

use oxisycl_backend::{Command, CopyCommand, FillCommand, FillPattern, MemoryId, PitchedBox};

use super::support::*;

/// A box inside a byte array: pitches and the place of its first byte.
#[derive(Clone, Copy, Debug)]
struct Frame {
    row_pitch: usize,
    slice_pitch: usize,
    first: usize,
}

impl Frame {
    fn pitched(self, bytes: &mut [u8]) -> PitchedBox {
        let pointer = bytes[self.first..].as_mut_ptr();
        PitchedBox { memory: MemoryId::HOST, pointer, row_pitch: self.row_pitch, slice_pitch: self.slice_pitch }
    }

    /// Positions of the first bytes of the box's rows.
    fn rows(self, [slices, rows, _]: [usize; 3]) -> impl Iterator<Item = usize> {
        (0..slices).flat_map(move |slice| {
            (0..rows).map(move |row| self.first + slice * self.slice_pitch + row * self.row_pitch)
        })
    }

    fn size(self, [slices, rows, bytes]: [usize; 3]) -> usize {
        match slices * rows * bytes {
            0 => self.first + 1,
            _ => self.first + (slices - 1) * self.slice_pitch + (rows - 1) * self.row_pitch + bytes,
        }
    }
}

/// Boxes of an extent: dense, with gaps between rows, with gaps between slices, with both.
fn frames([_, rows, bytes]: [usize; 3]) -> [Frame; 4] {
    let dense = Frame { row_pitch: bytes, slice_pitch: rows * bytes, first: 0 };
    let wide = Frame { row_pitch: bytes + 5, slice_pitch: rows * (bytes + 5), first: 3 };
    let deep = Frame { slice_pitch: rows * bytes + 11, ..dense };
    let both = Frame { row_pitch: bytes + 3, slice_pitch: (rows + 1) * (bytes + 3), first: 7 };
    [dense, wide, deep, both]
}

/// What a copy has to make of `to`, row by row.
fn copied(from: &[u8], to: &[u8], source: Frame, target: Frame, extent: [usize; 3]) -> Vec<u8> {
    let mut expected = to.to_vec();
    for (target, source) in target.rows(extent).zip(source.rows(extent)) {
        expected[target..target + extent[2]].copy_from_slice(&from[source..source + extent[2]]);
    }
    expected
}

/// Under Miri few rows, since one takes a millisecond, and more than a page only once.
const EXTENTS: [[usize; 3]; 9] = if cfg!(miri) {
    [[1, 1, 1], [1, 1, 5000], [1, 2, 300], [1, 17, 7], [3, 4, 10], [30, 1, 1], [1, 3, 101], [1, 0, 5], [0, 0, 0]]
} else {
    [
        [1, 1, 1],
        [1, 1, 1_500_000],
        [1, 2, 600_000],
        [1, 1700, 700],
        [30, 40, 1000],
        [1_060_000, 1, 1],
        [1, 3, 350_001],
        [1, 0, 5],
        [0, 0, 0],
    ]
};

#[test]
fn copies_of_every_shape_move_exactly_their_box() {
    let queue = queue(3);
    let bytes = (0..251).collect::<Vec<u8>>().repeat(1 << 16);
    for extent in EXTENTS {
        let frames = frames(extent);
        for (number, source) in frames.into_iter().enumerate() {
            for target in [frames[0], frames[(number + 1) % 4]] {
                let mut from = bytes[..source.size(extent)].to_vec();
                let mut to = vec![0xEEu8; target.size(extent)];
                let expected = copied(&from, &to, source, target, extent);
                let copy = CopyCommand { source: source.pitched(&mut from), target: target.pitched(&mut to), extent };
                run(&queue, Command::from(copy)).result.expect("success");
                assert!(to == expected, "{extent:?} {source:?} {target:?}");
            }
        }
    }
}

#[test]
fn fills_with_every_pattern_write_exactly_their_box() {
    let queue = queue(3);
    let patterns: [&[u8]; 6] = [&[0], &[7, 7, 7, 7], &[1, 2], &[1, 2, 3], &[9, 8, 7, 6, 5, 4, 3, 2], &[5; 40]];
    let mut long = [0u8; if cfg!(miri) { 300 } else { 12_000 }];
    long.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 255) as u8);
    for pattern in patterns.into_iter().chain([&long[..]]) {
        let width = pattern.len();
        for extent in EXTENTS {
            let extent = [extent[0], extent[1], extent[2].div_ceil(width)];
            if extent.iter().product::<usize>() * width > 4 << 20 {
                continue;
            }
            let in_bytes = [extent[0], extent[1], extent[2] * width];
            let frames = frames(in_bytes);
            for frame in [frames[0], frames[1 + extent[2] % 3]] {
                let mut to = vec![0xEEu8; frame.size(in_bytes)];
                let mut expected = to.clone();
                for row in frame.rows(in_bytes) {
                    let row = &mut expected[row..row + in_bytes[2]];
                    row.chunks_exact_mut(width).for_each(|element| element.copy_from_slice(pattern));
                }
                let target = frame.pitched(&mut to);
                let fill = FillCommand { target, pattern: FillPattern::from_slice(pattern), extent };
                run(&queue, Command::from(fill)).result.expect("success");
                assert!(to == expected, "{width} {extent:?} {frame:?}");
            }
        }
    }
}

#[test]
fn an_extent_that_overflows_touches_nothing() {
    let queue = queue(2);
    let mut bytes = [1u8; 4];
    let extent = [usize::MAX, usize::MAX, 2];
    let target = host_bytes(bytes.as_mut_ptr());
    let fill = FillCommand { target, pattern: FillPattern::from_slice(&[9]), extent };
    run(&queue, Command::from(fill)).result.expect("nothing to do");
    run(&queue, Command::from(CopyCommand { source: target, target, extent })).result.expect("nothing to do");
    assert_eq!(bytes, [1; 4]);
}
