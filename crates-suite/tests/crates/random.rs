//! Random numbers, a generator for each work-item.

use oorandom::{Rand32, Rand64};
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::{Xoroshiro128Plus, Xoshiro256PlusPlus};

use crate::harness::{Env, kernels};

kernels![oorandom, fastrand, rand_xoshiro];

fn oorandom(env: &Env) {
    env.compare(|i| {
        let (mut small, mut large) = (Rand32::new(i as u64), Rand64::new(i as u128 * 77));
        let dice = (0..10).map(|_| small.rand_range(1..7)).sum::<u32>();
        (dice, small.rand_float().to_bits(), large.rand_i64(), large.rand_range(5..500))
    });
}

fn fastrand(env: &Env) {
    env.compare(|i| {
        let mut rng = fastrand::Rng::with_seed(i as u64);
        let mut cards: [u8; 12] = core::array::from_fn(|k| k as u8);
        rng.shuffle(&mut cards);
        let mut fork = rng.fork();
        (cards, rng.u32(10..1_000_000), fork.i64(..), rng.f64().to_bits())
    });
}

fn rand_xoshiro(env: &Env) {
    env.compare(|i| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(i as u64);
        let mut bytes = [0_u8; 13];
        rng.fill_bytes(&mut bytes);
        let mut other = Xoroshiro128Plus::seed_from_u64(rng.next_u64());
        rng.jump();
        (bytes, rng.next_u32(), other.next_u64())
    });
}
