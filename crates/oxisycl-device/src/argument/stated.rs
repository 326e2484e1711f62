//! What a kernel function states of the devices that run it: aspects, and the sizes of its groups and sub-groups.
//!
//! The attribute writes it as constants of a type, which the call of the kernel has. Invariant: what a type of this module states has been
//! checked, so that the runtime and the device compiler only compare it.

use oxisycl_types::{Aspect, Aspects, GroupSize};

/// What a kernel function states. Zeros stand for what it does not.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Stated<const ASPECTS: u64, const GROUP: u64, const SUB_GROUP: u32> {}

/// What a kernel function without options states.
#[doc(hidden)]
pub type Unstated = Stated<0, 0, 0>;

mod sealed {
    pub trait Sealed {}
    impl<const ASPECTS: u64, const GROUP: u64, const SUB_GROUP: u32> Sealed for super::Stated<ASPECTS, GROUP, SUB_GROUP> {}
}

/// The types of this module that state something. For this crate only.
#[doc(hidden)]
pub trait States: sealed::Sealed {
    /// The aspects that a device has to have, as [`Aspects::bits`].
    const ASPECTS: u64;
    /// The extents of groups, as in [`DescribeKernel::group`](crate::DescribeKernel::group).
    const GROUP: u64;
    /// The work-items of a sub-group.
    const SUB_GROUP: u32;
    /// Whether anything is stated.
    const IS_ANY: bool = Self::ASPECTS != 0 || Self::GROUP != 0 || Self::SUB_GROUP != 0;
}

impl<const ASPECTS: u64, const GROUP: u64, const SUB_GROUP: u32> States for Stated<ASPECTS, GROUP, SUB_GROUP> {
    const ASPECTS: u64 = {
        assert!(Aspects::from_bits(ASPECTS).is_some(), "a kernel states aspects");
        ASPECTS
    };
    const GROUP: u64 = {
        let [z, y, x] = GroupSize::extents(GROUP);
        assert!(GROUP == 0 || is_group(&[z as usize, y as usize, x as usize]), "a kernel states the size of a group");
        GROUP
    };
    const SUB_GROUP: u32 = {
        assert!(SUB_GROUP == 0 || SUB_GROUP.is_power_of_two(), "a kernel states the size of a sub-group");
        SUB_GROUP
    };
}

/// The aspects that an attribute names.
#[doc(hidden)]
pub const fn stated_aspects(aspects: &[Aspect]) -> u64 {
    Aspects::of(aspects).bits()
}

/// The extents of groups that an attribute names, the innermost last.
#[doc(hidden)]
pub const fn stated_group<const D: usize>(extents: [usize; D]) -> u64 {
    assert!(is_group(&extents), "the extents of work-groups are at least 1, and a group has at most 65536 work-items");
    let (mut group, mut d) = (0, 0);
    while d < 3 {
        // Unused leading dimensions have extent 1.
        let extent = if d + D < 3 { 1 } else { extents[d + D - 3] as u64 };
        group = group << GroupSize::EXTENT_BITS | extent;
        d += 1;
    }
    group
}

/// The size of sub-groups that an attribute names.
#[doc(hidden)]
pub const fn stated_sub_group(size: usize) -> u32 {
    assert!(size.is_power_of_two() && size <= GroupSize::MAX_FIXED, "the size of sub-groups is a power of two");
    size as u32
}

/// Whether groups may have these extents.
const fn is_group(mut extents: &[usize]) -> bool {
    let mut items = 1;
    while let [first, rest @ ..] = extents {
        if *first == 0 || *first > GroupSize::MAX_FIXED / items {
            return false;
        }
        items *= *first;
        extents = rest;
    }
    true
}

/// A function whose only parameter is the first one of a kernel over a range of `D` dimensions.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`work_group_size` has an extent for each dimension of the kernel's range",
    label = "the first parameter is not an `Item` of as many dimensions"
)]
pub trait HasDimensions<const D: usize> {}

impl<const D: usize> HasDimensions<D> for fn(crate::Item<'_, D>) {}

/// Checks, when a kernel function is compiled, that its groups have the dimensions of its range.
#[doc(hidden)]
#[inline(always)]
pub const fn has_dimensions<F: HasDimensions<D>, const D: usize>() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_those_of_a_description() {
        assert_eq!(GroupSize::extents(stated_group([16, 8])), [1, 16, 8]);
        assert_eq!(GroupSize::extents(stated_group([2, 3, 4])), [2, 3, 4]);
        assert_eq!(GroupSize::extents(stated_group([1 << 16])), [1, 1, 1 << 16]);
        assert!(!is_group(&[1 << 16, 2]) && !is_group(&[4, 0]) && !is_group(&[usize::MAX, usize::MAX]));
    }

    #[test]
    fn only_options_state_something() {
        const FP64: u64 = stated_aspects(&[Aspect::Fp64]);
        fn is_any<R: States>() -> bool {
            R::IS_ANY
        }
        assert!(!is_any::<Unstated>() && is_any::<Stated<FP64, 0, 0>>() && is_any::<Stated<0, 0, 8>>());
        assert!(is_any::<Stated<0, { stated_group([4]) }, 0>>());
        assert_eq!(<Stated<FP64, 0, 0> as States>::ASPECTS, FP64);
        assert_eq!(stated_sub_group(32), 32);
    }
}
