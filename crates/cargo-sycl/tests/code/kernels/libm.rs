//! A user's crate that has the name of a published one, and functions at the paths of its functions.

#![no_std]
#![forbid(unsafe_code)]

pub mod math {
    pub mod sin {
        /// Of another type.
        #[inline(never)]
        pub fn sinf(numbers: &[u32; 4]) -> &u32 {
            numbers.iter().find(|number| **number > 4000).unwrap_or(&numbers[0])
        }
    }

    pub mod sqrt {
        /// Has the type of C's function.
        #[inline(never)]
        pub fn sqrtf(x: f32) -> f32 {
            x + 40.5
        }
    }

    pub mod frexp {
        #[derive(Clone, Copy)]
        #[repr(i32)]
        pub enum Kind {
            Small = 1,
            Large = 2,
        }

        /// Has the type of C's function for LLVM, but not every number is a `Kind`.
        #[inline(never)]
        pub fn frexp(x: f64) -> (f64, Kind) {
            (x * 40.5, if x < 77.0 { Kind::Small } else { Kind::Large })
        }
    }
}
