//! Arrays, slices and tuples.

use crate::harness::{Env, kernels, scramble};
use crate::outcome::Tolerance::Exact;

kernels![
    arrays_of_arrays,
    arrays_are_mapped_and_made,
    slices_are_split_and_joined,
    slices_are_rotated_swapped_and_filled,
    ranges_of_slices,
    tuples_and_destructuring,
    structs_of_arrays_are_returned,
    bounds_are_checked_where_get_is_not,
];

fn arrays_of_arrays(env: &Env) {
    env.compare(|i| {
        let mut board = [[0_u8; 7]; 6];
        for step in 0..30 {
            let column = scramble(i * 30 + step) as usize % 7;
            if let Some(row) = board.iter_mut().rev().find(|row| row[column] == 0) {
                row[column] = 1 + (step % 2) as u8;
            }
        }
        let won = |player: u8| {
            let at = |row: usize, column: usize| board.get(row).and_then(|row| row.get(column)) == Some(&player);
            (0..6).any(|row| {
                (0..7).any(|column| (0..4).all(|k| at(row, column + k)) || (0..4).all(|k| at(row + k, column)))
            })
        };
        let transposed: [[u8; 6]; 7] = std::array::from_fn(|column| std::array::from_fn(|row| board[row][column]));
        let heights = transposed.map(|column| column.iter().filter(|cell| **cell != 0).count() as u8);
        (heights, won(1), won(2), board[5])
    });
}

fn arrays_are_mapped_and_made(env: &Env) {
    env.compare(|i| {
        let made: [u32; 8] = std::array::from_fn(|k| scramble(i + k));
        let nibbles = made.map(|value| value.to_be_bytes().map(|byte| byte & 15));
        let sums = nibbles.each_ref().map(|nibbles| nibbles.iter().map(|nibble| u32::from(*nibble)).sum::<u32>());
        let flat = nibbles.as_flattened();
        let [first, .., last] = sums;
        (sums, flat[i % 32], first * last, made == made.map(|value| value | 0x10), made < [1 << 31; 8])
    });
}

fn slices_are_split_and_joined(env: &Env) {
    env.compare_over(Exact, (0..700).map(scramble).collect(), |all, i| {
        let (left, right) = all.split_at(i);
        let last = left.last().copied();
        let head = right.split_first().map_or(0, |(first, rest)| first ^ rest.len() as u32);
        let groups = right.split(|value| value % 16 == 0).take(4).map(|group| group.len() as u32).sum::<u32>();
        let pair: Option<&[u32; 2]> = right.first_chunk();
        let mut copy = [0; 6];
        let n = right.len().min(3);
        copy[..n].copy_from_slice(&right[..n]);
        let (front, back) = copy.split_at_mut(3);
        back.copy_from_slice(front);
        back[0] ^= front[1];
        (last, head, groups, pair.map(|pair| pair[0] & pair[1]), copy)
    });
}

fn slices_are_rotated_swapped_and_filled(env: &Env) {
    env.compare(|i| {
        let mut data: [u16; 12] = std::array::from_fn(|k| (scramble(i) >> k) as u16);
        data.rotate_left(i % 12);
        data.swap(0, i % 12);
        data[..6].reverse();
        data.copy_within(2..5, 8);
        data[i % 7..i % 7 + 3].fill(i as u16);
        let (front, back) = data.split_at_mut(6);
        front.swap_with_slice(back);
        data[6..].rotate_right(2);
        data
    });
}

fn ranges_of_slices(env: &Env) {
    env.compare(|i| {
        let data: [u8; 24] = std::array::from_fn(|k| (scramble(i + k) >> 9) as u8);
        let (a, b) = (i % 10, 12 + i % 13);
        let sum = |slice: &[u8]| slice.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        let parts = [sum(&data[a..]), sum(&data[..=b.min(23)]), sum(&data[a..b]), sum(data.get(b..a).unwrap_or(&[9]))];
        let found = data.contains(&(i as u8));
        let ends = data.starts_with(&data[..3]) && data[a..].ends_with(&data[20..]);
        let common = data.iter().zip(&data[a..]).take_while(|(x, y)| x == y).count() as u8;
        (parts, found, ends, common)
    });
}

fn tuples_and_destructuring(env: &Env) {
    fn divide((dividend, divisor): (u32, u32)) -> (u32, u32) {
        (dividend / divisor, dividend % divisor)
    }
    env.compare(|i| {
        let (mut quotient, mut rest) = divide((scramble(i), i as u32 + 1));
        (quotient, rest) = (rest, quotient);
        let ((a, _), [b, .., c]) = ((quotient, 'x'), [rest, 1, 2, 3]);
        let nested = ((a, (b, c)), -1_i8);
        let ((_, (d, _)), sign) = nested;
        let ordered = (a, b) < (b, a);
        (a.max(b), d, sign, ordered, (a, b, c))
    });
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
struct Statistics {
    histogram: [u8; 8],
    extremes: Option<(u32, u32)>,
    n_values: usize,
}

impl Statistics {
    fn of(values: &[u32]) -> Self {
        let mut statistics = Self { n_values: values.len(), ..Self::default() };
        for &value in values {
            statistics.histogram[(value >> 29) as usize] += 1;
            let (low, high) = statistics.extremes.unwrap_or((value, value));
            statistics.extremes = Some((low.min(value), high.max(value)));
        }
        statistics
    }
}

fn structs_of_arrays_are_returned(env: &Env) {
    env.compare(|i| {
        let values: [u32; 40] = std::array::from_fn(|k| scramble(i + k));
        let (left, right) = (Statistics::of(&values[..i % 41]), Statistics::of(&values));
        let larger = left.max(right);
        (larger.histogram, larger.extremes.map(|(low, _)| low), larger.n_values as u32, left == right, left < right)
    });
}

fn bounds_are_checked_where_get_is_not(env: &Env) {
    env.compare(|i| {
        let table = [3_u32, 1, 4, 1, 5, 9, 2, 6];
        let index = scramble(i) as usize % 8;
        let checked = table[index];
        // SAFETY: the index is below 8, the array's length.
        let unchecked = unsafe { *table.get_unchecked(index) };
        let beyond = table.get(scramble(i) as usize % 20).copied();
        (checked, unchecked, beyond)
    });
}
