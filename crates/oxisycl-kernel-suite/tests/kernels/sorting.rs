//! Sorting and searching in small arrays.

use std::cmp::{Ordering, Reverse};

use crate::harness::{Env, kernels, scramble};
use crate::outcome::Tolerance::Exact;

kernels![
    small_arrays_are_sorted,
    larger_arrays_are_sorted,
    keys_decide_the_order,
    floats_are_sorted_by_their_total_order,
    positions_are_found_by_bisection,
    the_middle_is_selected,
    an_insertion_sort_counts_its_moves,
    a_heap_keeps_the_smallest,
    longer_arrays_are_sorted_stably,
    two_hundred_numbers_are_sorted,
];

fn small_arrays_are_sorted(env: &Env) {
    env.compare(|i| {
        let mut data: [u32; 9] = std::array::from_fn(|k| scramble(i * 9 + k) % 50);
        data[..i % 10].sort_unstable();
        data
    });
}

fn larger_arrays_are_sorted(env: &Env) {
    env.compare(|i| {
        let mut data: [i16; 80] = std::array::from_fn(|k| scramble(i * 80 + k) as i16);
        data.sort_unstable_by(|a, b| b.cmp(a));
        let weighted = data.iter().enumerate().map(|(k, value)| k as i64 * i64::from(*value)).sum::<i64>();
        (data[0], data[40], data[79], weighted, data.is_sorted_by(|a, b| a >= b))
    });
}

/// The sort calls itself for arrays of this length.
fn two_hundred_numbers_are_sorted(env: &Env) {
    env.compare(|i| {
        let mut data: [u32; 200] = std::array::from_fn(|k| scramble(i * 200 + k));
        data.sort_unstable();
        let weighted = data.iter().enumerate().map(|(k, value)| k as u64 * u64::from(*value)).sum::<u64>();
        (data[0], data[100], data[199], weighted, data.is_sorted())
    });
}

fn keys_decide_the_order(env: &Env) {
    env.compare(|i| {
        let mut people: [(u8, u16); 12] = std::array::from_fn(|k| (scramble(i + k) as u8 % 5, k as u16));
        people.sort_unstable_by_key(|(age, number)| (Reverse(*age), *number));
        people.map(|(age, number)| u16::from(age) * 100 + number)
    });
}

fn floats_are_sorted_by_their_total_order(env: &Env) {
    env.compare(|i| {
        let mut values: [f32; 10] = std::array::from_fn(|k| match scramble(i * 10 + k) % 8 {
            0 => 0.0,
            1 => -0.0,
            2 => f32::INFINITY,
            3 => -1e-40,
            bits => bits as f32 * 0.37 - 1.5,
        });
        values.sort_unstable_by(f32::total_cmp);
        let order = values[0].partial_cmp(&values[9]) == Some(Ordering::Less);
        (values.map(f32::to_bits), order)
    });
}

fn positions_are_found_by_bisection(env: &Env) {
    env.compare_over(Exact, (0..800_u32).map(|k| k * k / 3).collect(), |all, i| {
        let wanted = scramble(i) % 213_000;
        let found = all.binary_search(&wanted);
        let place = found.unwrap_or_else(|place| place) as u32;
        let below = all.partition_point(|value| *value <= wanted / 2) as u32;
        let by_key = all.binary_search_by_key(&(wanted / 7), |value| value / 7).is_ok();
        (found.is_ok(), place, below, by_key)
    });
}

fn the_middle_is_selected(env: &Env) {
    env.compare(|i| {
        let mut data: [u32; 31] = std::array::from_fn(|k| scramble(i * 31 + k));
        let (below, median, above) = data.select_nth_unstable(15);
        let ok = below.iter().all(|value| value <= median) && above.iter().all(|value| value >= median);
        (*median, ok)
    });
}

fn an_insertion_sort_counts_its_moves(env: &Env) {
    fn sort<T: Copy>(values: &mut [T], mut before: impl FnMut(T, T) -> bool) -> u32 {
        let mut moves = 0;
        for end in 1..values.len() {
            let value = values[end];
            let mut hole = end;
            while hole > 0 && before(value, values[hole - 1]) {
                values[hole] = values[hole - 1];
                hole -= 1;
                moves += 1;
            }
            values[hole] = value;
        }
        moves
    }
    env.compare(|i| {
        let mut data: [u8; 20] = std::array::from_fn(|k| scramble(i + 3 * k) as u8);
        let mut comparisons = 0_u32;
        let moves = sort(&mut data, |a, b| {
            comparisons += 1;
            a.reverse_bits() < b.reverse_bits()
        });
        (data, moves, comparisons)
    });
}

struct Heap<const CAPACITY: usize> {
    values: [u32; CAPACITY],
    length: usize,
}

impl<const CAPACITY: usize> Heap<CAPACITY> {
    /// Keeps the smallest values; the largest of them is the root.
    fn offer(&mut self, value: u32) {
        if self.length < CAPACITY {
            self.values[self.length] = value;
            self.length += 1;
            let mut child = self.length - 1;
            while child > 0 && self.values[(child - 1) / 2] < self.values[child] {
                self.values.swap(child, (child - 1) / 2);
                child = (child - 1) / 2;
            }
        } else if value < self.values[0] {
            self.values[0] = value;
            let mut parent = 0;
            while let Some(child) = (2 * parent + 1..(2 * parent + 3).min(CAPACITY)).max_by_key(|c| self.values[*c]) {
                if self.values[child] <= self.values[parent] {
                    break;
                }
                self.values.swap(child, parent);
                parent = child;
            }
        }
    }
}

fn a_heap_keeps_the_smallest(env: &Env) {
    env.compare(|i| {
        let mut heap = Heap::<7> { values: [0; 7], length: 0 };
        (0..40).for_each(|k| heap.offer(scramble(i * 40 + k) % 1000));
        let root = heap.values[0];
        heap.values.sort_unstable();
        (root, heap.values)
    });
}

fn longer_arrays_are_sorted_stably(env: &Env) {
    env.compare(|i| {
        let mut pairs: [(u8, u8); 100] = std::array::from_fn(|k| ((scramble(i * 100 + k) % 16) as u8, k as u8));
        pairs.sort_by_key(|pair| pair.0);
        let is_stable = pairs.windows(2).all(|pair| pair[0] < pair[1]);
        (is_stable, pairs[10], pairs[50], pairs[90])
    });
}
