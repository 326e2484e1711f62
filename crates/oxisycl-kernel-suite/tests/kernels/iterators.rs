//! Iterators and their adaptors over ranges, slices and arrays.

use std::iter;

use crate::harness::{Env, kernels, scramble};
use crate::outcome::Tolerance::Exact;

kernels![
    zip_chain_and_filter,
    windows_and_chunks,
    reversed_stepped_and_skipped,
    folded_and_scanned,
    nested_and_flattened,
    taken_and_skipped_while,
    peeked,
    extremes_and_positions,
    iterators_of_the_users_own,
    successors_and_cycles,
    arrays_by_value,
    try_folds_stop_early,
];

fn values(i: usize) -> [u32; 16] {
    std::array::from_fn(|k| scramble(i * 16 + k) % 1000)
}

fn zip_chain_and_filter(env: &Env) {
    env.compare(|i| {
        let (a, b) = (values(i), values(i + 1));
        let products = a.iter().zip(&b).map(|(x, y)| x * y);
        let odd = a.iter().chain(&b).filter(|value| *value % 2 == 1).copied();
        let even_positions = b.iter().enumerate().filter_map(|(k, value)| (k % 2 == 0).then_some(value + k as u32));
        (products.sum::<u32>(), odd.clone().count() as u32, odd.sum::<u32>(), even_positions.max())
    });
}

fn windows_and_chunks(env: &Env) {
    let input: Vec<i32> = (0..512).map(|k| scramble(k) as i32 >> 8).collect();
    env.compare_over(Exact, input, |all, i| {
        let near = &all[i.saturating_sub(5)..(i + 6).min(all.len())];
        let rises = near.windows(2).filter(|pair| pair[0] < pair[1]).count() as u32;
        let chunks = near.chunks_exact(3);
        let left_over = chunks.remainder().len() as u32;
        let largest_sum = chunks.map(|chunk| chunk.iter().map(|value| i64::from(*value)).sum::<i64>()).max();
        let last = near.rchunks(4).next().map_or(0, |chunk| chunk[0]);
        (rises, left_over, largest_sum, last, near.chunks(4).len() as u8)
    });
}

fn reversed_stepped_and_skipped(env: &Env) {
    env.compare(|i| {
        let data = values(i);
        let digits = data.iter().rev().step_by(3).fold(0_u64, |number, value| number * 1000 + u64::from(*value));
        let ends: u32 = data.iter().skip(2).take(5).rev().skip(1).sum();
        let stairs: usize = (0..=i % 50).rev().step_by(7).sum();
        let mut both = data.iter();
        let pair = (both.next().copied(), both.next_back().copied());
        (digits, ends, stairs as u32, pair.0, pair.1)
    });
}

fn folded_and_scanned(env: &Env) {
    env.compare(|i| {
        let data = values(i);
        let running = data.iter().scan(1_u32, |state, value| {
            *state = state.wrapping_mul(31).wrapping_add(*value);
            (*state % 17 != 0).then_some(*state)
        });
        let last = running.clone().last();
        let reduced = data.iter().copied().reduce(|a, b| a.max(b) - a.min(b) / 2);
        let product: u64 = data.iter().map(|value| u64::from(value % 7 + 1)).product();
        (running.count() as u32, last, reduced, product)
    });
}

fn nested_and_flattened(env: &Env) {
    env.compare(|i| {
        let side = i % 6 + 1;
        let triples = (1..=side).flat_map(move |a| (a..=side).flat_map(move |b| (b..=side).map(move |c| (a, b, c))));
        let sum: usize = triples.map(|(a, b, c)| a * 100 + b * 10 + c).sum();
        let rows = [values(i), values(i + 7)];
        let flat: u32 = rows.iter().flatten().step_by(5).sum();
        let options = [Some(side as u32), None, Some(7)];
        (sum as u64, flat, options.into_iter().flatten().sum::<u32>())
    });
}

fn taken_and_skipped_while(env: &Env) {
    env.compare(|i| {
        let data = values(i);
        let prefix = data.iter().take_while(|value| **value < 700).count() as u32;
        let rest: u32 = data.iter().skip_while(|value| **value < 700).sum();
        let mapped = data.iter().map_while(|value| value.checked_sub(100)).sum::<u32>();
        let (mut small, mut large) = (0_u32, 0_u32);
        data.iter().inspect(|value| small += u32::from(**value < 10)).for_each(|value| large = large.max(*value));
        (prefix, rest, mapped, small, large)
    });
}

fn peeked(env: &Env) {
    env.compare(|i| {
        // Lengths of runs of values with the same number of bits.
        let data = values(i);
        let mut rest = data.iter().map(|value| value.checked_ilog2().unwrap_or(0)).peekable();
        let mut code = 0_u64;
        while let Some(class) = rest.next() {
            let mut length = 1;
            while rest.next_if_eq(&class).is_some() {
                length += 1;
            }
            code = code.wrapping_mul(37).wrapping_add(u64::from(class) * 16 + length);
            if rest.peek().is_none() {
                code ^= 1 << 63;
            }
        }
        code
    });
}

fn extremes_and_positions(env: &Env) {
    env.compare(|i| {
        let data = values(i);
        let smallest = data.iter().enumerate().min_by_key(|(_, value)| **value).map(|(k, _)| k as u32);
        let furthest = data.iter().max_by(|a, b| a.abs_diff(500).cmp(&b.abs_diff(500))).copied();
        let first = data.iter().position(|value| value % 5 == 0).map(|k| k as u32);
        let last = data.iter().rposition(|value| value % 5 == 0).map(|k| k as u32);
        let flags = [
            data.iter().any(|value| *value > 990),
            data.iter().all(|value| *value > 20),
            data.iter().is_sorted(),
            data.iter().lt(values(i + 1).iter()),
            data.iter().eq(data.iter().rev()),
        ];
        (smallest, furthest, first, last, flags)
    });
}

struct Collatz(u64);

impl Iterator for Collatz {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let current = self.0;
        self.0 = match current {
            0 | 1 => 0,
            even if even.is_multiple_of(2) => even / 2,
            odd => 3 * odd + 1,
        };
        (current != 0).then_some(current)
    }
}

fn iterators_of_the_users_own(env: &Env) {
    env.compare(|i| {
        let path = || Collatz(i as u64 + 1);
        (path().count() as u32, path().max(), path().filter(|value| value % 3 == 0).sum::<u64>())
    });
}

fn successors_and_cycles(env: &Env) {
    env.compare(|i| {
        let powers = iter::successors(Some(1_u32), |power| power.checked_mul(3));
        let count = powers.clone().count() as u32;
        let sum = powers.skip(i % 10).step_by(2).map(u64::from).sum::<u64>();
        let pattern: u32 = [1, 2, 3].iter().cycle().skip(i % 3).take(10).zip(1_u32..).map(|(a, b)| a * b).sum();
        let mut state = i as u32;
        let made = iter::from_fn(|| {
            state = state.wrapping_mul(5).wrapping_add(1);
            (state % 11 != 0).then_some(state % 100)
        });
        let once: u32 = iter::once(5).chain(iter::repeat_n(2, i % 4)).sum();
        (count, sum, pattern, made.take(20).sum::<u32>(), once)
    });
}

fn arrays_by_value(env: &Env) {
    env.compare(|i| {
        let pairs = values(i).into_iter().zip(values(i + 3));
        let (sums, differences): (u32, u32) =
            pairs.fold((0, 0), |(sum, difference), (a, b)| (sum + (a + b), difference + a.abs_diff(b)));
        let mut iterator = values(i).into_iter();
        let skipped = iterator.nth(i % 20);
        (sums, differences, skipped, iterator.len() as u32)
    });
}

fn try_folds_stop_early(env: &Env) {
    env.compare(|i| {
        let data = values(i);
        let sum = data.iter().try_fold(0_u8, |sum, value| sum.checked_add((value % 50) as u8));
        let found = data.iter().try_for_each(|value| if value % 13 == 0 { Err(*value) } else { Ok(()) });
        let all: Option<u32> = data.iter().map(|value| (*value > 5).then(|| value - 5)).sum();
        let parsed: Result<u32, u32> =
            data.iter().map(|value| if *value < 950 { Ok(*value) } else { Err(*value) }).sum();
        (sum, found.err(), all, parsed.ok(), parsed.err())
    });
}
