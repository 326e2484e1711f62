//! The memory of random bodies: what all items read, and what each of them writes.
//!
//! There are arrays between pages without access. Two begin or end at one: what all items read, and what each of them writes. Of the others, the
//! *edges*, each is a whole page for one type. Some items have elements of it that begin it or end it, and the elements of others would be beyond.
//! Behind these, each size of structures has a page, with one for each item. The last page is
//! for all items to read, and ends with a structure.

use super::pages::PAGE;
use super::program::TYPES;

/// Numbers of items are below that, and each of them has places.
pub(super) const ITEMS: u64 = 64;
/// The types that memory has, by their sizes: integers of 8 to 64 bits, `float` and `double`, and integers of 24 to 56 bits.
pub(super) const SIZES: [usize; KINDS] = [1, 2, 4, 8, 4, 8, 3, 5, 6, 7];
pub(super) const KINDS: usize = 10;
/// The bytes of the items' elements of one type in one part.
pub(super) const SECTION: usize = ITEMS as usize * 8;
/// The part of the places that have one address for all items.
pub(super) const OF_ALL: u64 = 3;
/// The bytes of a region that an item has for elements of all types.
pub(super) const REGION: u64 = 32;
/// The elements of each type that all items read.
const ELEMENTS: usize = 128;
/// Items below that have an element at the end of an edge, in order. Items from the other number on have one at its begin.
pub(super) const AT_END: u64 = 21;
pub(super) const AT_BEGIN: u64 = 11;

/// The bytes that structures have.
pub(super) const STRIDES: [usize; 9] = [2, 3, 4, 6, 8, 12, 16, 20, 24];
/// The pages that are edges, have structures, and are read.
pub(super) const EDGES: usize = KINDS + STRIDES.len() + 1;
/// The items that have a structure at the end of the page that is read.
pub(super) const IN_TABLE: u64 = 32;

/// Where the elements of a type begin in what all items read. Integers are the same bytes.
pub(super) fn input(of: usize) -> usize {
    ELEMENTS * [0, 0, 0, 0, 8, 12, 0, 0, 0, 0][of]
}

/// Where a part begins in what items write: elements in order, in reverse order, out of order, and those of [`OF_ALL`].
pub(super) fn part(number: u64) -> usize {
    number as usize * KINDS * SECTION
}

/// Where the regions begin.
pub(super) fn regions() -> usize {
    part(OF_ALL + 1)
}

/// Where the edge of a type begins, from the first one on. A page without access is between two of them.
pub(super) fn edge(of: usize) -> usize {
    of * 2 * PAGE
}

/// Where the page begins that has structures of one size, counted from the first edge on. The last one has what is read.
pub(super) fn structures(number: usize) -> usize {
    edge(KINDS + number)
}

/// Where item 0's structure is in its page. There is room for one more behind the last one.
pub(super) fn first_structure(number: usize) -> usize {
    PAGE - (ITEMS as usize + 1) * STRIDES[number]
}

/// How LLVM's assembly names an element of an array, and what an access says of its alignment. Odd integers stand without gaps, as arrays of bytes do.
pub(super) fn element(of: usize) -> (String, &'static str) {
    match SIZES[of] {
        odd if !odd.is_power_of_two() => (format!("[{odd} x i8]"), ", align 1"),
        _ => (TYPES[of].0.to_owned(), ""),
    }
}

/// How many of some elements an index with some bits set can choose from.
pub(super) fn choices(count: u64) -> u64 {
    1 << count.ilog2()
}

/// The bytes of what items write without the edges.
pub(super) const OUTPUT: usize = 4 * KINDS * SECTION + (ITEMS * REGION) as usize;

/// The item that has each byte of an edge.
pub(super) fn owners_of_edge(of: usize) -> Vec<Option<u64>> {
    let mut owners = vec![None; PAGE];
    for item in 0..ITEMS {
        let mut own = |start: usize| owners[start..start + SIZES[of]].fill(Some(item));
        if item < AT_END {
            own(PAGE - (AT_END - item) as usize * SIZES[of]);
        }
        if item >= AT_BEGIN {
            own((item - AT_BEGIN) as usize * SIZES[of]);
        }
    }
    owners
}

/// The item that has each byte of a page with structures.
pub(super) fn owners_of_structures(number: usize) -> Vec<Option<u64>> {
    let (mut owners, stride) = (vec![None; PAGE], STRIDES[number]);
    for item in 0..ITEMS {
        let start = first_structure(number) + item as usize * stride;
        owners[start..start + stride].fill(Some(item));
    }
    owners
}

/// The item that has each byte of what items write.
pub(super) fn owners() -> Vec<Option<u64>> {
    let mut owners = vec![None; OUTPUT];
    for (of, size) in SIZES.into_iter().enumerate() {
        for item in 0..ITEMS {
            let mut own = |part_number: u64, index: u64, stride: usize| {
                let start = part(part_number) + of * SECTION + index as usize * stride;
                owners[start..start + size].fill(Some(item));
            };
            own(0, item, size);
            own(1, ITEMS - 1 - item, size);
            own(2, item ^ 5, size);
            own(OF_ALL, item, 8);
        }
    }
    for item in 0..ITEMS {
        let start = regions() + (item * REGION) as usize;
        owners[start..start + REGION as usize].fill(Some(item));
    }
    owners
}

/// What all items read.
pub(super) fn input_words(mut random: impl FnMut(u64) -> u64) -> Vec<u64> {
    let mut input = Vec::new();
    for _ in 0..ELEMENTS {
        input.push(if random(2) == 0 { random(u64::MAX) } else { random(5) * 0x1_0001_0001 });
    }
    let mut float = |special: &[f64]| match random(4) {
        0 => special[random(special.len() as u64) as usize],
        1 => random(100) as f64 / 8.0,
        _ => f64::from_bits((1023 - 20 + random(40)) << 52 | random(1 << 52)) * [1.0, -1.0][random(2) as usize],
    };
    let special = [0.0, -0.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, 1e-310, 1e-40, -3.5];
    for _ in 0..ELEMENTS / 2 {
        let [low, high] = [(); 2].map(|()| u64::from((float(&special) as f32).to_bits()));
        input.push(high << 32 | low);
    }
    for _ in 0..ELEMENTS {
        input.push(float(&special).to_bits());
    }
    input
}
