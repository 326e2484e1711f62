//! The memory of random bodies: what all items read, and what each of them writes.

/// Numbers of items are below that, and each of them has places.
pub(super) const ITEMS: u64 = 64;
/// The types that memory has, by their sizes: integers of 8 to 64 bits, `float` and `double`.
pub(super) const SIZES: [usize; KINDS] = [1, 2, 4, 8, 4, 8];
pub(super) const KINDS: usize = 6;
/// The bytes of the items' elements of one type in one part.
pub(super) const SECTION: usize = ITEMS as usize * 8;
/// The part of the places that have one address for all items.
pub(super) const OF_ALL: u64 = 3;
/// The bytes of a region that an item has for elements of all types.
pub(super) const REGION: u64 = 32;
/// The elements of each type that all items read.
const ELEMENTS: usize = 128;
/// Bytes that no item has, before and behind the others.
const GAP: usize = 1024;

/// Where the elements of a type begin in what all items read. Integers are the same bytes.
pub(super) fn input(of: usize) -> usize {
    ELEMENTS * [0, 0, 0, 0, 8, 12][of]
}

/// Where a part begins in what items write: elements in order, in reverse order, out of order, and those of [`OF_ALL`].
pub(super) fn part(number: u64) -> usize {
    GAP + number as usize * KINDS * SECTION
}

/// Where the regions begin.
pub(super) fn regions() -> usize {
    part(OF_ALL + 1)
}

/// The item that has each byte of what items write.
pub(super) fn owners() -> Vec<Option<u64>> {
    let mut owners = vec![None; regions() + (ITEMS * REGION) as usize + GAP];
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

/// What all items read, and what is there before they write. Words, so that each element is aligned.
pub(super) fn memory(mut random: impl FnMut(u64) -> u64) -> (Vec<u64>, Vec<u64>) {
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
    (input, vec![0x0123_4567_3f80_1234; owners().len() / 8])
}
