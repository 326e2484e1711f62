//! Values that pass between work-items of a sub-group of a kernel, within the processor's own.

use super::lanes::{BLOCK, Members};
use crate::DeviceCopyable;
use crate::advice::AnyBits;
use crate::operator::Operator;

/// Where the calling work-item of a device is in its sub-group.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// The work-items of the processor's own sub-group that exist.
    pub(super) members: Members,
    /// The first work-item of the sub-group in that of the processor.
    pub(super) base: usize,
    /// The local linear id of the first work-item.
    pub(super) first: usize,
    pub(super) lane: usize,
    /// Work-items of the sub-group.
    pub(super) n: usize,
}

impl Place {
    /// The place of a work-item of a group of so many, with sub-groups of `W`.
    #[inline(always)]
    pub(super) fn of<const W: usize>(linear: usize, items: usize) -> Self {
        let first = linear - linear % W;
        let n = items.wrapping_sub(first).min(W);
        let members = Members::of_block(items, linear / BLOCK);
        Self { members, base: first % BLOCK, first, lane: linear % W, n }
    }

    /// The value of another work-item of the sub-group.
    ///
    /// # Safety
    /// See [`Members::shuffle`].
    #[inline(always)]
    pub(super) unsafe fn shuffle<T: DeviceCopyable + AnyBits>(self, value: T, lane: usize) -> T {
        // SAFETY: by the contract of this function.
        unsafe { self.members.shuffle(value, self.base.wrapping_add(lane)) }
    }

    /// The values of the first `n` work-items of the sub-group together. Some value, if there are none.
    ///
    /// # Safety
    /// See [`Members::shuffle`].
    #[inline(always)]
    pub(super) unsafe fn reduce<T, O, const W: usize>(self, value: T, n: usize, operator: &O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        // SAFETY: by the contract of this function.
        unsafe {
            if W == BLOCK
                && let Some(all) = self.members.at_once::<T, O>(value, self.lane as u32, n as u32)
            {
                return all;
            }
            let all = self.members.scan::<T, O, W>(value, self.lane as u32, n as u32, operator);
            self.shuffle(all, n.wrapping_sub(1))
        }
    }

    /// The value and those before it in the sub-group.
    ///
    /// # Safety
    /// See [`Members::shuffle`].
    #[inline(always)]
    pub(super) unsafe fn scan<T, O, const W: usize>(self, value: T, operator: &O) -> T
    where
        T: DeviceCopyable + AnyBits,
        O: Operator<T>,
    {
        // SAFETY: by the contract of this function.
        unsafe { self.members.scan::<T, O, W>(value, self.lane as u32, self.n as u32, operator) }
    }
}
