//! How strictly the floating-point operations of one kernel are compiled for devices, where it should differ from the build's policy
//! (`cargo sycl --float`).
//!
//! A policy wraps the kernel: `parallel_for(n, float::strict(|item| ..))` for closures, `launch(n, Strict(kernel))` for named kernels. It
//! holds for everything that the kernel calls. The compiler finds it by a call of a builtin. The code that rustc makes is not changed by it, and
//! always rounds each operation. Native code for a level of the host's processors follows it: in lanes under `contract`, everywhere under `fast`.
//!
//! Under `fast`, NVIDIA GPUs compute these of `f32` by imprecise instructions, in the kernel's own code and in what it calls of other
//! crates:
//!
//! - quotients (2.5 ULP for divisors from 2^-126 to 2^126);
//! - `sqrt` and `rsqrt` (3 ULP);
//! - `sin`, `cos` and `sincos` (2^-20 between -pi and pi), and `tan`, their quotient;
//! - `exp` and `exp2` (3 + 2|x| ULP), `exp10` (3 + 4|x| ULP);
//! - `log`, `log2` and `log10` (2^-21 for numbers between 1/2 and 2, else 3 ULP);
//! - `pow` and `powr` (2^-21 (1 + |y| max(1, |log2 x|)) of the result).
//!
//! Functions of `f64`, the others of `f32`, and all functions of other devices are those of [`math`](crate::math).
//!
//! Specification: SYCL 2020 leaves contraction to implementations (section 4.17.5 names the accuracy of single functions only).

use crate::group::nd::{NdArguments, NdItem, NdKernel};
use crate::group::{Group, GroupArguments, GroupKernel, Shape};
use crate::{Captured, Item, Kernel, Single, SingleKernel, builtin};

macro_rules! policies {
    ($($(#[$doc:meta])* $function:ident $task:ident $wrapper:ident $builtin:ident;)*) => { $(
        $(#[$doc])*
        ///
        /// For the closure of a `parallel_for`.
        #[inline(always)]
        pub fn $function<const D: usize, K>(kernel: K) -> impl for<'wi> Fn(Item<'wi, D>) + Copy + Send + Sync
        where
            K: for<'wi> Fn(Item<'wi, D>) + Captured + Send + Sync,
        {
            move |item: Item<'_, D>| {
                builtin::$builtin();
                kernel(item)
            }
        }

        $(#[$doc])*
        ///
        /// For the closure of a `single_task`.
        #[inline(always)]
        pub fn $task<K>(kernel: K) -> impl for<'wi> Fn(Single<'wi>) + Copy + Send + Sync
        where
            K: for<'wi> Fn(Single<'wi>) + Captured + Send + Sync,
        {
            move |task: Single<'_>| {
                builtin::$builtin();
                kernel(task)
            }
        }

        $(#[$doc])*
        ///
        /// For a kernel that is a named type: over a range, a single task, over groups, or over an nd-range.
        #[derive(Clone, Copy, Debug)]
        pub struct $wrapper<K>(pub K);

        impl<I, K: Kernel<I>> Kernel<I> for $wrapper<K> {
            #[inline(always)]
            fn run(&self, item: I) {
                builtin::$builtin();
                self.0.run(item);
            }
        }

        impl<K: SingleKernel> SingleKernel for $wrapper<K> {
            #[inline(always)]
            fn run(&self, task: Single<'_>) {
                builtin::$builtin();
                self.0.run(task);
            }
        }

        impl<'cg, const D: usize, S, A, K> GroupKernel<'cg, D, S, A> for $wrapper<K>
        where
            S: Shape<D>,
            A: GroupArguments,
            K: GroupKernel<'cg, D, S, A>,
        {
            #[inline(always)]
            fn run<'wg>(&self, group: Group<'wg, 'cg, D, S>, memory: A::Bound<'wg>) {
                builtin::$builtin();
                self.0.run(group, memory);
            }
        }

        impl<'cg, const D: usize, S, A, K> NdKernel<'cg, D, S, A> for $wrapper<K>
        where
            S: Shape<D>,
            A: NdArguments,
            K: NdKernel<'cg, D, S, A>,
        {
            #[inline(always)]
            fn run<'wi>(&self, item: NdItem<'wi, 'cg, D, S>, memory: A::Accessors<'wi>) {
                builtin::$builtin();
                self.0.run(item, memory);
            }
        }
    )* };
}

policies! {
    /// Every operation is rounded on its own, as in the code that rustc makes for the host.
    strict strict_task Strict float_strict;
    /// A product and a sum may become one operation that rounds once.
    contract contract_task Contract float_contract;
    /// Also the order of operations, the sign of zeros, and quotients by reciprocals may change, and imprecise functions are used where the
    /// device has them. Infinities and NaNs stay values like others: no result is undefined behaviour.
    fast fast_task Fast float_fast;
}
