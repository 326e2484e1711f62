//! Loads and stores.

use std::cell::Cell;
use std::format;
use std::panic::catch_unwind;
use std::string::String;
use std::vec::Vec;

use super::super::{Float3, Int4, Vector};

#[test]
fn vectors_are_loaded_and_stored_by_multiples_of_their_length() {
    let mut row: Vec<i32> = (0..11).collect();
    assert_eq!(Int4::load(1, &row).to_array(), [4, 5, 6, 7]);
    Int4::new(-1, -2, -3, -4).store(0, &mut row);
    assert_eq!(row[..5], [-1, -2, -3, -4, 4]);
    // The second byte on: no alignment of vectors is needed.
    let bytes: Vec<u8> = (0..33).collect();
    assert_eq!(Vector::<u8, 16>::load(1, &bytes[1..]).to_array(), std::array::from_fn(|i| 17 + i as u8));
    let mut floats = [0.0; 6];
    Float3::new(1.0, 2.0, 3.0).store(1, &mut floats);
    assert_eq!(floats, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);

    let cells = [0, 1, 2, 3, 4, 5, 6, 7].map(Cell::new);
    (Int4::load_cells(1, &cells) * 10).store_cells(0, &cells);
    assert_eq!(cells.map(Cell::into_inner), [40, 50, 60, 70, 4, 5, 6, 7]);
}

#[test]
fn what_lies_outside_is_named_by_offset_and_length() {
    let message = |f: fn(&mut [i32; 11], usize), offset: usize| -> String {
        let caught = catch_unwind(move || f(&mut [0; 11], offset));
        caught.err().and_then(|text| text.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    let load: fn(&mut [i32; 11], usize) = |row, offset| _ = Int4::load(offset, row);
    let store: fn(&mut [i32; 11], usize) = |row, offset| Int4::splat(0).store(offset, row);
    let load_cells: fn(&mut [i32; 11], usize) = |row, offset| _ = Int4::load_cells(offset, &row.map(Cell::new));
    let store_cells: fn(&mut [i32; 11], usize) = |row, offset| Int4::splat(0).store_cells(offset, &row.map(Cell::new));
    for access in [load, store, load_cells, store_cells] {
        assert_eq!(message(access, 1), "");
        // A panic takes Miri a second.
        let offsets = [usize::MAX / 4 + 1, 2, 3, usize::MAX];
        for offset in &offsets[..if cfg!(miri) { 1 } else { 4 }] {
            let expected = format!("vector {offset} of 4 elements lies outside of a slice of 11 elements");
            assert_eq!(message(access, *offset), expected);
        }
    }
}
