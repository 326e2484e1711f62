//! Copies and fills against a model that moves one byte at a time.

use super::subject::{DeviceBytes, Subject, run};
use crate::harness::scaled;
use oxisycl_backend::{Command, CopyCommand, FillCommand, FillPattern, MemoryId, PitchedBox};

/// Numbers without visible order, the same in every run.
struct Sequence(u64);

impl Sequence {
    /// A number from `low` to `high`.
    fn next(&mut self, low: usize, high: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) as usize % (high - low + 1)
    }
}

/// A box within some bytes: where it begins, and its pitches.
#[derive(Clone, Copy, Debug)]
struct Shape {
    offset: usize,
    row_pitch: usize,
    slice_pitch: usize,
}

impl Shape {
    /// A place for a box of that extent, in units of `unit` bytes.
    fn random(random: &mut Sequence, extent: [usize; 3], unit: usize) -> Self {
        let row_pitch = (extent[2] + random.next(0, 5)) * unit;
        let slice_pitch = row_pitch * (extent[1] + random.next(0, 2));
        Self { offset: random.next(0, 7) * unit, row_pitch, slice_pitch }
    }

    /// The position of a byte.
    fn at(&self, slice: usize, row: usize, byte: usize) -> usize {
        self.offset + slice * self.slice_pitch + row * self.row_pitch + byte
    }

    /// Enough bytes for the box, and some more.
    fn size(&self, extent: [usize; 3]) -> usize {
        self.offset + extent[0] * self.slice_pitch + 16
    }

    fn pitched(&self, memory: MemoryId, base: *mut u8) -> PitchedBox {
        let pointer = base.wrapping_add(self.offset);
        PitchedBox { memory, pointer, row_pitch: self.row_pitch, slice_pitch: self.slice_pitch }
    }
}

/// Calls `f` with slice, row and byte of each byte of a box.
fn for_each(extent: [usize; 3], mut f: impl FnMut(usize, usize, usize)) {
    for slice in 0..extent[0] {
        for row in 0..extent[1] {
            for byte in 0..extent[2] {
                f(slice, row, byte);
            }
        }
    }
}

fn noise(random: &mut Sequence, size: usize) -> Vec<u8> {
    (0..size).map(|_| random.next(0, 255) as u8).collect()
}

/// One- to three-dimensional copies with pitches, from the host to the device, within the device and back, move exactly the bytes
/// of their boxes.
pub fn copies_agree_with_a_model(subject: &Subject) {
    let (queue, device) = (subject.queue(), subject.device());
    let memory = device.info().memory.id;
    let mut random = Sequence(1);
    for case in 0..scaled(90) as usize {
        let mut extent = [random.next(1, 4), random.next(1, 6), random.next(1, 40)];
        // All numbers of dimensions, and also boxes without gaps.
        extent[..2 - case % 3].fill(1);
        let mut shapes = [0; 4].map(|_| Shape::random(&mut random, extent, 1));
        if case % 5 == 0 {
            let dense = Shape { offset: 0, row_pitch: extent[2], slice_pitch: extent[2] * extent[1] };
            shapes = [dense; 4];
        }
        let bytes = shapes.map(|shape| noise(&mut random, shape.size(extent)));
        let mut expected = bytes.clone();
        for stage in 0..3 {
            for_each(extent, |slice, row, byte| {
                let value = expected[stage][shapes[stage].at(slice, row, byte)];
                expected[stage + 1][shapes[stage + 1].at(slice, row, byte)] = value;
            });
        }
        let [mut source, near, far, mut target] = bytes;
        let near = DeviceBytes::upload(device, &queue, &near);
        let far = DeviceBytes::upload(device, &queue, &far);
        let places = [
            shapes[0].pitched(MemoryId::HOST, source.as_mut_ptr()),
            shapes[1].pitched(memory, near.as_ptr()),
            shapes[2].pitched(memory, far.as_ptr()),
            shapes[3].pitched(MemoryId::HOST, target.as_mut_ptr()),
        ];
        for pair in places.windows(2) {
            run(&queue, Command::from(CopyCommand { source: pair[0], target: pair[1], extent }));
        }
        let found = [source, near.download(&queue), far.download(&queue), target];
        assert!(found == expected, "case {case}: a copy of {extent:?} along {shapes:?} went wrong");
    }
}

/// One- to three-dimensional fills with pitches and patterns of all sizes write exactly the elements of their boxes.
pub fn fills_agree_with_a_model(subject: &Subject) {
    let (queue, device) = (subject.queue(), subject.device());
    let mut random = Sequence(2);
    for width in [1, 2, 3, 4, 8, 12, 16] {
        for case in 0..if cfg!(miri) { 3 } else { 12 } {
            let mut extent = [random.next(1, 4), random.next(1, 5), random.next(1, 30)];
            extent[..2 - case % 3].fill(1);
            let shape = match case {
                0 => Shape { offset: 0, row_pitch: extent[2] * width, slice_pitch: extent[1] * extent[2] * width },
                _ => Shape::random(&mut random, extent, width),
            };
            // Also a pattern of equal bytes, for which devices have faster ways.
            let pattern = if case % 4 == 1 { vec![0x5A; width] } else { noise(&mut random, width) };
            let mut expected = noise(&mut random, shape.size(extent));
            let filled = DeviceBytes::upload(device, &queue, &expected);
            let bytes = [extent[0], extent[1], extent[2] * width];
            for_each(bytes, |slice, row, byte| expected[shape.at(slice, row, byte)] = pattern[byte % width]);
            let target = shape.pitched(device.info().memory.id, filled.as_ptr());
            run(&queue, Command::from(FillCommand { target, pattern: FillPattern::from_slice(&pattern), extent }));
            let found = filled.download(&queue);
            assert!(found == expected, "a fill of {extent:?} elements of {width} bytes at {shape:?} went wrong");
        }
    }
}
