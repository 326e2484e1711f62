//! Vectors that are part of the work-item's own variables.

use smallvec::SmallVec;
use tinyvec::ArrayVec;

use crate::harness::{Env, kernels, scramble};

kernels![tinyvec, smallvec];

fn tinyvec(env: &Env) {
    env.compare(|i| {
        let mut values: ArrayVec<[u32; 16]> = (0..i % 16).map(|k| scramble(i + k) % 100).collect();
        values.retain(|value| *value % 3 != 0);
        values.insert(values.len() / 2, 7);
        values.sort_unstable();
        let mut rest: ArrayVec<[u32; 16]> = values.split_off(values.len() / 2);
        rest.extend_from_slice(&[1]);
        let mut small: ArrayVec<[u8; 6]> = ArrayVec::new();
        let overflow = (0..i % 8).filter_map(|k| small.try_push(k as u8)).count();
        (values.iter().sum::<u32>(), rest.last().copied(), overflow as u32)
    });
}

fn smallvec(env: &Env) {
    env.compare(|i| {
        let mut values: SmallVec<[u32; 12]> = (0..i % 10).map(|k| scramble(i + k) % 50).collect();
        values.push(3);
        values.dedup();
        values.insert(0, 9);
        let removed = values.swap_remove(values.len() / 2);
        values.truncate(i % 5 + 1);
        (values.iter().copied().max(), removed, values.len() as u32, values.spilled())
    });
}
