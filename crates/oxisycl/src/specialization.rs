//! Specialization constants: values that kernels get at run time, and may be compiled with (SYCL 2020 section 4.11.12).
//!
//! ```
//! use oxisycl::prelude::*;
//! use oxisycl::specialization::SpecId;
//!
//! static RADIUS: SpecId<usize> = SpecId::new(1);
//!
//! # fn main() -> oxisycl::Result {
//! let (numbers, sums) = (Buffer::from_vec(vec![1, 2, 3, 4, 5])?, Buffer::<i32, 1>::uninit(5)?);
//! Queue::default()?.submit(|cg| {
//!     cg.set_constant(&RADIUS, 2)?;
//!     let radius = cg.constant(&RADIUS);
//!     let (numbers, sums) = (cg.access(&numbers, Read), cg.access(&sums, Write.no_init()));
//!     cg.parallel_for(5, move |item| {
//!         let (i, radius) = (item.index(), radius.get());
//!         let near = i.saturating_sub(radius)..(i + radius + 1).min(5);
//!         sums.set(item, near.map(|at| numbers.at(item, at)).sum())
//!     })
//! })?;
//! assert_eq!(sums.to_vec()?, [6, 10, 15, 14, 12]);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

#[doc(inline)]
pub use oxisycl_device::argument::{Specialized, SpecializedArgument, specialized};

use crate::DeviceCopyable;

/// The name of a specialization constant, and its default. A `static` of the program.
///
/// [`Handler::set_constant`](crate::Handler::set_constant) gives the constant another value for one command group, and
/// [`Handler::constant`](crate::Handler::constant) gives the group its value. Two statics are two constants, whatever their names.
pub struct SpecId<T> {
    default: T,
    /// What tells it from others, once it is asked for; zero before. A static of a library that is loaded again gets another number.
    number: AtomicU64,
}

impl<T: DeviceCopyable> SpecId<T> {
    /// A constant with the value `default` where nothing sets it.
    pub const fn new(default: T) -> Self {
        Self { default, number: AtomicU64::new(0) }
    }

    /// The value where nothing sets it.
    pub fn default_value(&self) -> T {
        self.default
    }

    /// What tells it from others.
    pub(crate) fn number(&'static self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        match self.number.load(Ordering::Relaxed) {
            0 => {
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                let set = self.number.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
                // Another thread was first.
                set.map_or_else(|known| known, |_| number)
            }
            number => number,
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for SpecId<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpecId").field("default", &self.default).finish_non_exhaustive()
    }
}
