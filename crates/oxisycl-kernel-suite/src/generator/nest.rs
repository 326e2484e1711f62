//! Random nests of arguments, as types.
//!
//! A nest has plain data, aligned structs, values without a size, and owners of memory of the host. They are in tuples, arrays, options and derived
//! types. One of four has arrays of some hundred bytes beside them. `fuzz` asserts how many bytes of an argument block nests take.

use super::Random;

/// Plain data, of which numbers come more often than once.
const PLAIN: [&str; 24] = [
    "u8",
    "i8",
    "u16",
    "i16",
    "u32",
    "i32",
    "u64",
    "i64",
    "u128",
    "usize",
    "f32",
    "f64",
    "bool",
    "char",
    "u8",
    "u16",
    "u32",
    "i64",
    "Aligned1",
    "Aligned4",
    "Aligned16",
    "Aligned64",
    "Choice",
    "Pair<u8, u64>",
];
/// Owners of memory.
const OWNERS: [&str; 9] = [
    "Vec<u8>",
    "Vec<Aligned16>",
    "Box<[u32]>",
    "Arc<[f64]>",
    "String",
    "Arc<str>",
    "Box<Aligned4>",
    "Arc<u16>",
    "Box<str>",
];
/// Plain data that large arrays have, with its bytes.
const ELEMENTS: [(&str, usize); 6] = [("u8", 1), ("i16", 2), ("f32", 4), ("u64", 8), ("u128", 16), ("Aligned4", 4)];
const DEEPEST: usize = 4;

/// The type of one nest.
pub(super) fn nest(seed: u64) -> String {
    let mut random = Random(seed ^ 0x6172_6775_6d65_6e74);
    let fields = 1 + random.below(5);
    let nest = tuple(&mut random, fields, 1);
    if seed.is_multiple_of(4) { large(&mut random, &nest) } else { nest }
}

/// A nest between two arrays, of 450 to 800 bytes together. One of them is a derived type's.
fn large(random: &mut Random, nest: &str) -> String {
    let mut array = || {
        let (element, size) = random.pick(&ELEMENTS);
        format!("[{element}; {}]", (225 + random.below(176)) / size)
    };
    format!("({}, Both<{nest}, {}>)", array(), array())
}

fn tuple(random: &mut Random, fields: usize, depth: usize) -> String {
    let fields: String = (0..fields).map(|_| part(random, depth) + ", ").collect();
    format!("({fields})")
}

fn part(random: &mut Random, depth: usize) -> String {
    if depth < DEEPEST && random.percent(45) {
        return match random.below(6) {
            0 => format!("[{}; {}]", part(random, depth + 1), random.pick(&[0, 1, 2, 3, 5])),
            1 => format!("Option<{}>", part(random, depth + 1)),
            2 | 3 => {
                let derived = random.pick(&["Both", "Either"]);
                format!("{derived}<{}, {}>", part(random, depth + 1), part(random, depth + 1))
            }
            _ => {
                let fields = 1 + random.below(3);
                tuple(random, fields, depth + 1)
            }
        };
    }
    match random.below(10) {
        0 => random.pick(&["()", "PhantomData<u64>", "[u32; 0]"]).to_owned(),
        1 => random.pick(&OWNERS).to_owned(),
        _ => random.pick(&PLAIN).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nests_are_of_their_seeds() {
        assert_eq!(nest(7), nest(7));
        let all: String = (0..200).map(nest).collect();
        assert!((0..50).map(|n| nest(4 * n)).all(|large| large.starts_with("([") && large.contains("]>)")));
        for part in
            PLAIN.iter().chain(&OWNERS).chain(&["Option<(", "[[", "((", "; 0]", "PhantomData", "Both<", "Either<"])
        {
            assert!(all.contains(part), "{part}");
        }
    }
}
