//! Hostile images: valid ones that were changed as an attacker, a damaged disk or another version would change them.
//!
//! Nobody vouches for the bytes of an image: they come from files, caches and libraries. For any bytes, `decode` and `decode_bundle` must
//! return without allocating more than a multiple of the input. They must accept only the one encoding of what they return. Each case takes
//! a generated image and changes it in a few places. It then (mostly) corrects length and checksum, and checks all three properties. Cases
//! follow from a seed: `OXISYCL_TEST_CASES` says how many, `OXISYCL_TEST_SEED` with which seed. A failure names the seed of its own case,
//! which `OXISYCL_TEST_SEED` with one case repeats.

mod allocations;
mod mutate;
mod random;

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};
use std::panic::{AssertUnwindSafe, catch_unwind};

use oxisycl_image::{ImageError, decode, decode_bundle, encode, encode_bundle};

use mutate::{Kind, hostile};
use random::Random;

/// How many bytes a decoder may allocate, all in all, for each byte of input. The most expensive input is a list of panic sites without
/// place and message. Each takes 8 bytes there and 56 in memory, in a vector that doubles: all in all up to four times its length.
const FACTOR: usize = 32;
/// What it may allocate whatever the input, for tables of names and the text of an error.
const ALLOWANCE: usize = 2048;

/// The errors of a decoder, all of which cases have to reach. The others are of the encoder alone.
const REFUSALS: [&str; 18] = [
    "Argument",
    "Aspect",
    "Checksum",
    "Dimensions",
    "DuplicateKernel",
    "DuplicateSymbol",
    "Groups",
    "Length",
    "Magic",
    "Number",
    "Parameters",
    "Specialized",
    "Symbol",
    "Target",
    "Text",
    "Trailing",
    "Truncated",
    "Version",
];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What the cases were.
#[derive(Default)]
struct Seen {
    accepted: u64,
    /// Each kind of error, with its name.
    refused: HashMap<Discriminant<ImageError>, (String, u64)>,
    /// The most that was allocated for a byte of input, in hundredths, beyond the allowance.
    dearest: usize,
}

/// Runs one case.
fn case(seed: u64, seen: &mut Seen) {
    let mut random = Random::new(seed);
    let (bytes, kind) = hostile(&mut random);
    let (accepted, allocated) = match kind {
        Kind::Image => {
            let (result, allocated) = allocations::during(|| decode(&bytes));
            if let Ok(image) = &result {
                assert_eq!(encode(image).as_deref(), Ok(&*bytes), "an image has one encoding");
            }
            (result.map(drop), allocated)
        }
        Kind::Bundle => {
            let (result, allocated) = allocations::during(|| decode_bundle(&bytes));
            if let Ok(images) = &result {
                assert_eq!(encode_bundle(images).as_deref(), Ok(&*bytes), "a bundle has one encoding");
            }
            (result.map(drop), allocated)
        }
    };
    let beyond = allocated.saturating_sub(ALLOWANCE);
    assert!(beyond <= FACTOR * bytes.len(), "{allocated} bytes were allocated for {} bytes of input", bytes.len());
    seen.dearest = seen.dearest.max(beyond * 100 / bytes.len().max(1));
    match accepted {
        Ok(()) => seen.accepted += 1,
        Err(error) => {
            assert!(error.to_string().starts_with("device image: "), "{error}");
            let name = || {
                let text = format!("{error:?}");
                text.split([' ', '(']).next().unwrap_or_default().to_owned()
            };
            seen.refused.entry(discriminant(&error)).or_insert_with(|| (name(), 0)).1 += 1;
        }
    }
}

/// Ten million cases were run once: see `benches/results/fuzz-2026-11-26.md`.
#[test]
fn hostile_images_are_refused_or_have_one_encoding_and_cost_what_they_weigh() {
    let (cases, seed) = (number("OXISYCL_TEST_CASES", 20_000), number("OXISYCL_TEST_SEED", 1));
    let mut seen = Seen::default();
    for number in 0..cases {
        // Not the next number: neighbouring seeds of neighbouring runs are to be different cases.
        let seed = if cases == 1 { seed } else { Random::new(seed ^ number << 20).next() };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(seed, &mut seen))) {
            eprintln!("the case is repeated with OXISYCL_TEST_CASES=1 OXISYCL_TEST_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
    let Seen { accepted, refused, dearest } = seen;
    let mut refused: Vec<(String, u64)> = refused.into_values().collect();
    refused.sort();
    let n_refused: u64 = refused.iter().map(|(_, count)| count).sum();
    println!(
        "{cases} cases of seed {seed}: {accepted} accepted, {n_refused} refused {refused:?}, at most {}.{:02} bytes \
         allocated for a byte beyond the first {ALLOWANCE}",
        dearest / 100,
        dearest % 100
    );
    if cases < 20_000 {
        return;
    }
    // Cases that are all refused at the first look would show nothing, and so would cases that change nothing.
    assert!(accepted > cases / 20 && n_refused > cases / 4);
    let names: Vec<&str> = refused.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, REFUSALS);
}

#[test]
fn the_largest_lists_cost_what_they_weigh() {
    for (bytes, kind) in mutate::dearest() {
        let ((), allocated) = allocations::during(|| match kind {
            Kind::Image => drop(decode(&bytes)),
            Kind::Bundle => drop(decode_bundle(&bytes)),
        });
        let limit = FACTOR * bytes.len() + ALLOWANCE;
        assert!(allocated <= limit, "{allocated} bytes were allocated for {} bytes of input", bytes.len());
    }
}

#[test]
fn what_is_allocated_is_counted() {
    let (kept, allocated) = allocations::during(|| (Vec::<u8>::with_capacity(1000), vec![0u64; 10]));
    assert_eq!(allocated, 1080);
    drop(kept);
    assert_eq!(allocations::during(|| 1).1, 0);
}
