//! Kernels whose final code must contain as many barriers and shuffles as the source. They are compiled and never run.

use oxisycl::prelude::*;
use oxisycl_device::builtin::{group_barrier, shuffle_u32};

type Launch = fn(&Queue, &Buffer<u32, 1>) -> oxisycl::Result;

/// Launches a kernel over a read-write accessor.
macro_rules! launch {
    ($queue:ident, $buffer:ident, |$item:ident, $data:ident| $body:expr) => {
        $queue
            .submit(|cg| {
                let $data = cg.access($buffer, ReadWrite);
                cg.parallel_for(64, move |$item| $body)
            })?
            .wait()
    };
}

/// One barrier: a flag that an arm sets is tested after it.
fn flag_of_an_arm(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let mut was_large = false;
        if data.get(item) > 3 {
            data.set(item, 3);
            was_large = true;
        }
        unsafe { group_barrier() };
        if was_large {
            data.update(item, |x| x + 1);
        }
    })
}

/// One barrier: the same condition before and after it.
fn same_condition(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        if value > 3 {
            data.set(item, 1);
        }
        unsafe { group_barrier() };
        data.update(item, |x| if value > 3 { x + 2 } else { x * 3 });
    })
}

/// One barrier: an option is made before it and matched after it.
fn option_matched_after(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let odd = if value % 2 == 1 { Some(value / 2) } else { None };
        unsafe { group_barrier() };
        match odd {
            Some(half) => data.set(item, half),
            None => data.update(item, |x| x ^ 0xFF),
        }
    })
}

/// One barrier: in a loop, between two branches of a condition that the loop does not change.
fn invariant_condition_in_a_loop(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let is_large = value > 3;
        for i in 0..value {
            if is_large {
                data.update(item, |x| x.wrapping_add(i));
            }
            unsafe { group_barrier() };
            if is_large {
                data.update(item, |x| x.wrapping_mul(i));
            }
        }
    })
}

#[inline(never)]
unsafe fn step(value: u32) -> u32 {
    unsafe { group_barrier() };
    value.rotate_left(3)
}

/// One barrier: in a function that is called between two branches of one condition.
fn function_with_a_barrier(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        if value > 3 {
            data.set(item, 7);
        }
        let turned = unsafe { step(value) };
        if value > 3 {
            data.update(item, |x| x + turned);
        }
    })
}

/// Two barriers, one in each arm.
fn barrier_in_both_arms(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        if data.get(item) > 3 {
            data.set(item, 1);
            unsafe { group_barrier() };
            data.update(item, |x| x + 3);
        } else {
            data.set(item, 2);
            unsafe { group_barrier() };
            data.update(item, |x| x + 4);
        }
    })
}

/// Two shuffles, one in each arm, of different lanes.
fn shuffle_in_both_arms(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let other = if value > 3 { unsafe { shuffle_u32(value, 1) + 1 } } else { unsafe { shuffle_u32(value, 2) + 2 } };
        data.set(item, other);
    })
}

/// Two shuffles, one in each arm, that look the same.
fn equal_shuffles_in_both_arms(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let other = if value > 3 { unsafe { shuffle_u32(value, 1) * 5 } } else { unsafe { shuffle_u32(value, 1) + 2 } };
        data.set(item, other);
    })
}

/// One shuffle, before a condition under which alone its result is needed.
fn shuffle_before_a_condition(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let other = unsafe { shuffle_u32(value, 1) };
        if value > 3 {
            data.set(item, other);
        }
    })
}

/// One barrier: in the body of a loop over a slice, whose end is told by a null reference.
fn barrier_for_each_element(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    queue
        .submit(|cg| {
            let data = cg.access(buffer, Read);
            let sums = cg.access(&Buffer::from_vec(vec![0; 64])?, ReadWrite);
            cg.parallel_for(64, move |item| {
                for x in data.view(item).as_slice() {
                    unsafe { group_barrier() };
                    sums.update(item, |sum: u32| sum.wrapping_add(*x));
                }
            })
        })?
        .wait()
}

/// One barrier: in a closure that an adaptor of the standard library calls.
fn barrier_in_a_closure(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let value = data.get(item);
        let small = value.checked_sub(3).map(|rest| {
            unsafe { group_barrier() };
            rest
        });
        data.set(item, small.unwrap_or(9));
    })
}

/// One barrier: in a generic function of another crate.
fn generic_of_another_crate(queue: &Queue, buffer: &Buffer<u32, 1>) -> oxisycl::Result {
    launch!(queue, buffer, |item, data| {
        let is_first = data.get(item) == 0;
        unsafe { generic::around_a_barrier(is_first, || data.set(item, 1), || data.update(item, |x| x + 5)) }
    })
}

fn main() {
    let launches: [Launch; 12] = [
        flag_of_an_arm,
        same_condition,
        option_matched_after,
        invariant_condition_in_a_loop,
        function_with_a_barrier,
        barrier_in_both_arms,
        shuffle_in_both_arms,
        equal_shuffles_in_both_arms,
        shuffle_before_a_condition,
        barrier_for_each_element,
        barrier_in_a_closure,
        generic_of_another_crate,
    ];
    println!("{:?}", launches);
}
