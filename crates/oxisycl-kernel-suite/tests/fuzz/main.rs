//! Random kernels, run on every device and compared bit for bit with the same code in a loop on the CPU. There are kernels over ranges,
//! and kernels over groups with barriers in both forms of the library. Random nests of arguments have to arrive unchanged.
//!
//! `fuzz [--device host|cuda|opencl|all] [FILTER]`
//!
//! `src/generator` says what they are made of. Each operation is rounded on its own (the strict policy), so there is one right result;
//! NaNs are all the same. Kernels with quotients and square roots of `f32` are left out on OpenCL devices that do not round them
//! correctly although asked to. The build makes kernels of the seeds in `seeds.txt`. Others are tried by
//! `OXISYCL_TEST_FUZZ_SEEDS="1000..1200 groups:1000..1100" cargo sycl test -p oxisycl-kernel-suite --test fuzz`, and a seed that found a fault is
//! added to the file.

#[path = "../kernels/harness.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "what hand-written kernels need as well")]
mod harness;
#[path = "../kernels/outcome.rs"]
#[allow(dead_code, reason = "what hand-written kernels need as well")]
mod outcome;
#[path = "../kernels/refusals.rs"]
mod refusals;

#[allow(dead_code, reason = "what the seeds at hand need not use")]
mod arguments;
#[allow(dead_code, reason = "what the seeds at hand need not use")]
mod groups;

use std::process::ExitCode;

use oxisycl::prelude::*;
use oxisycl::{Aspect, BackendKind, FpConfig, float};

use harness::{Env, N, scramble};
use outcome::{Outcome, Tolerance};

#[allow(
    unused,
    invalid_nan_comparisons,
    unpredictable_function_pointer_comparisons,
    clippy::all,
    clippy::pedantic,
    reason = "a program wrote this code, and people read it only if it finds a fault"
)]
mod generated {
    use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

    use oxisycl::argument::Sent;
    use oxisycl::operator::{BitAnd, BitOr, BitXor, Max, Min, Product, Sum as Plus};

    use std::marker::PhantomData;
    use std::sync::Arc;

    use crate::arguments::{Aligned1, Aligned4, Aligned16, Aligned64, Both, Choice, Either, Pair};
    use crate::groups::{Arguments, Form, Place, Program, Shared, Tiles, Update, Vote};
    use crate::harness::{Test, scramble};

    /// An atomic number in the shared memory.
    macro_rules! update {
        ($atomic:ty, $number:ty, $memory:expr, $offset:expr) => {
            // SAFETY: the offset is inside the shared memory, which is aligned for all of its numbers and lives for the whole launch. While
            // that runs, the memory is only accessed atomically.
            unsafe { <$atomic>::from_ptr($memory.cast::<$number>().add($offset)) }
        };
    }

    /// What a kernel computed, as two numbers that depend on every bit of it.
    struct Sum([u64; 2]);

    impl Sum {
        fn new() -> Self {
            Self([0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344])
        }

        fn add(&mut self, value: u64) {
            let [a, b] = &mut self.0;
            *a = (*a ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
            *b = b.wrapping_add(*a).rotate_left(17) ^ value;
        }
    }

    fn bits_of_f32(value: f32) -> u64 {
        u64::from(if value.is_nan() { 0x7FC0_0000 } else { value.to_bits() })
    }

    fn bits_of_f64(value: f64) -> u64 {
        if value.is_nan() { 0x7FF8_0000_0000_0000 } else { value.to_bits() }
    }

    include!(concat!(env!("OUT_DIR"), "/fuzz.rs"));
}

/// 64-bit words of shared memory.
#[allow(dead_code, reason = "there may be no seed of such a kernel")]
const SHARED: [u64; 5] = [5, u32::MAX as u64, 0xFFFF_FFFF_0000_0000, 1 << 40, 0];

/// Runs a kernel on the device and in a loop, and compares what it gives and what it leaves in shared memory.
#[track_caller]
#[allow(dead_code, reason = "there may be no seed of such a kernel")]
fn compare(env: &Env, kernel: impl Fn(&[u32], *mut u64, usize) -> [u64; 2] + Copy + Send + Sync + 'static) {
    require_wide_numbers(env);
    let input = input();
    let mut expected_shared = SHARED.to_vec();
    let shared = expected_shared.as_mut_ptr();
    let expected: Vec<[u64; 2]> = (0..N).map(|index| kernel(&input, shared, index)).collect();

    let input = Buffer::from_vec_nd(input, 2048).expect("a buffer");
    let shared = Buffer::from_vec(SHARED.to_vec()).expect("a buffer");
    let results = Buffer::from_vec(vec![Outcome::NOTHING; N]).expect("a buffer");
    let submitted = env.queue().submit(|cg| {
        let (input, shared) = (cg.access(&input, Read), cg.access(&shared, ReadWrite));
        let results = cg.access(&results, Write);
        let kernel = move |item: Item<1>| {
            let result = kernel(input.view(item).as_slice(), shared.as_ptr(), item.index());
            results.set(item, result);
        };
        cg.parallel_for(N, float::strict(kernel))
    });
    env.finish(submitted);
    env.agree(&results.to_vec().expect("the results"), &expected, Tolerance::Exact);
    env.agree(&shared.to_vec().expect("the shared memory"), &expected_shared, Tolerance::Exact);
}

/// What all kernels read.
fn input() -> Vec<u32> {
    (0..2048).map(|index| scramble(index + 7) >> (index % 32)).collect()
}

/// Skips the kernel on a device that lacks numbers of 64 bits.
fn require_wide_numbers(env: &Env) {
    for aspect in [Aspect::Fp64, Aspect::Atomic64] {
        if !env.has(aspect) {
            env.skip(format!("the device lacks {aspect}"));
        }
    }
}

/// Skips a kernel that divides numbers of `f32` or takes their square root on a device that rounds them in its own way. OpenCL lets devices
/// round them within 2.5 and 3 units in the last place; our backend asks for correct rounding, which not all drivers offer.
fn require_correct_divisions(env: &Env) {
    let device = env.queue().device();
    let promises = device.info().single_fp_config.contains(&FpConfig::CorrectlyRoundedDivideSqrt);
    // Intel's driver for CPUs promises nothing, and rounds correctly.
    if device.backend() == BackendKind::OpenCl && !promises {
        let n_wrong = wrongly_rounded(env);
        if n_wrong > 0 {
            env.skip(format!(
                "the device does not round f32 division and square root correctly: {n_wrong} of {N} are wrong"
            ));
        }
    }
}

/// How many of so many quotients and square roots are not those that are nearest to the exact ones.
fn wrongly_rounded(env: &Env) -> usize {
    // Numbers from 2^-20 to 2^20.
    let number = |index: usize| f32::from_bits((107 + scramble(index) % 40) << 23 | scramble(index + 7 * N) >> 9);
    let computed = move |index: usize| [number(index) / number(index + N), number(index).sqrt()].map(f32::to_bits);
    let results = Buffer::from_vec(vec![[0; 2]; N]).expect("a buffer");
    let submitted = env.queue().submit(|cg| {
        let results = cg.access(&results, Write);
        cg.parallel_for(N, float::strict(move |item: Item<1>| results.set(item, computed(item.index()))))
    });
    env.finish(submitted);
    let found = results.to_vec().expect("the results");
    (0..N).filter(|&index| found[index] != computed(index)).count()
}

fn main() -> ExitCode {
    harness::main(&[("fuzz", generated::TESTS), ("groups", generated::GROUPS), ("arguments", generated::ARGUMENTS)])
}
