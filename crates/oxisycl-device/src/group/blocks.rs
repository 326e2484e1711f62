//! Scans and reductions of blocks of values, in the order that all devices have.

use super::lanes::BLOCK;
use crate::operator::Operator;

/// Scans a block in place.
#[inline(always)]
pub(super) fn scan_block<T: Copy, O: Operator<T>>(values: &mut [T], operator: &O) {
    let mut step = 1;
    while step < values.len() {
        let mut i = values.len();
        while i > step {
            i = i.wrapping_sub(1);
            combine_at(values, i.wrapping_sub(step), i, operator);
        }
        step <<= 1;
    }
}

/// The last value of the scan of a block, of which the others are lost.
#[inline(always)]
pub(super) fn fold_block<T: Copy, O: Operator<T>>(values: &mut [T], operator: &O) -> T {
    let last = values.len().wrapping_sub(1);
    let mut step = 1;
    while step <= last {
        let mut i = last;
        // From the last value on, each second of those that the step before has left.
        loop {
            combine_at(values, i.wrapping_sub(step), i, operator);
            if i < step.wrapping_mul(3) {
                break;
            }
            i = i.wrapping_sub(step << 1);
        }
        step <<= 1;
    }
    values[last]
}

/// Combines two values of a block, in the place of the second. Both are there; an index that said so could panic in kernels that otherwise cannot.
#[inline(always)]
fn combine_at<T: Copy, O: Operator<T>>(values: &mut [T], first: usize, second: usize, operator: &O) {
    if let Some(left) = values.get(first).copied()
        && let Some(right) = values.get_mut(second)
    {
        *right = operator.combine(left, *right);
    }
}

/// Scans all values in place, in native code. Returns the last one.
pub(super) fn scan<T: Copy, O: Operator<T>>(values: &mut [T], operator: &O) -> T {
    let mut left = None;
    for block in values.chunks_mut(BLOCK) {
        scan_block(block, operator);
        if let Some(left) = left {
            for value in &mut *block {
                *value = operator.combine(left, *value);
            }
        }
        left = block.last().copied();
    }
    match left {
        Some(total) => total,
        None => unreachable!("a group has a work-item"),
    }
}

/// The last value of the scan, in native code.
pub(super) fn fold<T: Copy, O: Operator<T>>(values: &[T], operator: &O) -> T {
    fold_of(values.len(), |i| values[i], operator)
}

/// The last value of the scan of `n` values, which are computed one by one, in native code.
pub(super) fn fold_of<T: Copy, O: Operator<T>>(n: usize, value: impl Fn(usize) -> T, operator: &O) -> T {
    let mut left = None;
    let mut start = 0;
    while start < n {
        let count = (n - start).min(BLOCK);
        let mut block = [value(start); BLOCK];
        for (i, place) in block[..count].iter_mut().enumerate().skip(1) {
            *place = value(start + i);
        }
        let all = fold_block(&mut block[..count], operator);
        left = Some(match left {
            Some(left) => operator.combine(left, all),
            None => all,
        });
        start += count;
    }
    match left {
        Some(total) => total,
        None => unreachable!("a group has a work-item"),
    }
}
