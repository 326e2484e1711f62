//! The shuffles of all sizes of structures, made with the numbers of bytes in the place of bytes.

use std::collections::BTreeMap;

use super::shuffles::{self, Loads, Machine, Structures};

/// What a byte holds: its number, or anything.
type Byte = Option<u64>;

/// Memory in which only so many bytes can be loaded, and vectors by their numbers.
struct Bytes {
    total: u64,
    vectors: Vec<Vec<Byte>>,
    stored: BTreeMap<u64, Byte>,
}

impl Bytes {
    fn new(total: u64) -> Self {
        Self { total, vectors: Vec::new(), stored: BTreeMap::new() }
    }

    fn add(&mut self, vector: Vec<Byte>) -> usize {
        self.vectors.push(vector);
        self.vectors.len() - 1
    }
}

impl Machine for Bytes {
    type Vector = usize;

    fn load(&mut self, at: u64, bytes: u64) -> usize {
        assert!(at + bytes <= self.total, "bytes {at}.. are loaded, {bytes} of {}", self.total);
        self.add((at..at + bytes).map(Some).collect())
    }

    fn store(&mut self, vector: usize, at: u64) {
        for (at, byte) in (at..).zip(&self.vectors[vector]) {
            assert_eq!(self.stored.insert(at, *byte), None, "byte {at} is stored twice");
        }
    }

    fn shuffle(&mut self, unit: u64, first: usize, second: Option<usize>, wanted: &[Option<u64>]) -> usize {
        let unit = unit as usize;
        let mut both = self.vectors[first].clone();
        assert_eq!(both.len() % unit, 0, "vectors have whole elements");
        match second {
            Some(second) => {
                assert_eq!(both.len(), self.vectors[second].len(), "both vectors have one type");
                both.extend(&self.vectors[second]);
            }
            None => both.resize(2 * both.len(), None),
        }
        // Of one poison byte, the whole element is poison.
        for element in both.chunks_mut(unit).filter(|element| element.contains(&None)) {
            element.fill(None);
        }
        let elements: Vec<&[Byte]> = both.chunks(unit).collect();
        let none = vec![None; unit];
        let wanted = wanted.iter().flat_map(|number| number.map_or(&none[..], |number| elements[number as usize]));
        let vector = wanted.copied().collect();
        self.add(vector)
    }
}

/// Visits sizes of fields and structures, and numbers of lanes.
fn each_size(mut visit: impl FnMut(u64, u64, u64)) {
    for unit in [1, 2, 4, 8] {
        for n_fields in (2..=16).filter(|n_fields| n_fields * unit <= 64) {
            for lanes in [2, 4, 8, 16, 32] {
                visit(unit, n_fields, lanes);
            }
        }
    }
}

#[test]
fn fields_of_all_sizes_are_loaded_and_nothing_behind_them() {
    each_size(|unit, n_fields, lanes| {
        let stride = unit * n_fields;
        for last in 0..n_fields {
            let total = (lanes - 1) * stride + (last + 1) * unit;
            let mut memory = Bytes::new(total);
            let mut loads = Loads::new(&mut memory, Structures { lanes, stride, unit, total });
            let vectors: Vec<_> = (0..=last).map(|field| loads.field(field * unit, unit)).collect();
            for (field, vector) in (0..).zip(vectors) {
                let byte = |at: u64| Some(at / unit * stride + field * unit + at % unit);
                let expected: Vec<_> = (0..lanes * unit).map(byte).collect();
                assert_eq!(memory.vectors[vector], expected, "{field} of {n_fields} fields of {unit}, {lanes} lanes");
            }
        }
    });
}

#[test]
fn fields_of_several_sizes_are_loaded() {
    for lanes in [2, 4, 8, 16, 32] {
        let (stride, total) = (16, (lanes - 1) * 16 + 16);
        let mut memory = Bytes::new(total);
        let mut loads = Loads::new(&mut memory, Structures { lanes, stride, unit: 1, total });
        for (offset, size) in [(0, 1), (2, 2), (4, 4), (8, 8), (15, 1)] {
            let vector = loads.field(offset, size);
            let expected: Vec<_> = (0..lanes * size).map(|at| Some(at / size * stride + offset + at % size)).collect();
            assert_eq!(loads.machine().vectors[vector], expected, "{size} bytes at {offset}, {lanes} lanes");
        }
    }
}

#[test]
fn structures_of_all_sizes_are_stored_once() {
    each_size(|unit, n_fields, lanes| {
        let (stride, bytes) = (unit * n_fields, lanes * unit);
        let mut memory = Bytes::new(0);
        let fields: Vec<_> =
            (0..n_fields).map(|field| memory.add((0..bytes).map(|at| Some(field * bytes + at)).collect())).collect();
        shuffles::store(&mut memory, Structures { lanes, stride, unit, total: lanes * stride }, &fields);
        let byte = |at: u64| Some(at % stride / unit * bytes + at / stride * unit + at % unit);
        let expected: BTreeMap<_, _> = (0..lanes * stride).map(|at| (at, byte(at))).collect();
        assert_eq!(memory.stored, expected, "{n_fields} fields of {unit}, {lanes} lanes");
    });
}
