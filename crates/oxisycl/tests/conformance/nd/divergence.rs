//! Kernels whose work-items do not come to the same barriers: on the host each is an error that names both places, and never a hang.

use std::time::Instant;

use oxisycl::group::Fixed1;
use oxisycl::group::nd::NdItem;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;

use crate::group::panics::LIMIT;
use crate::harness::{Env, tests};

tests![
    some_wait_and_others_end,
    the_last_one_ends,
    the_first_one_ends,
    all_but_one_end,
    two_barriers_in_two_arms,
    a_loop_of_another_length,
    a_barrier_and_an_algorithm,
    two_algorithms,
    values_of_two_types,
    values_of_two_types_of_one_size,
    after_many_barriers,
    behind_an_early_return,
    only_one_group_diverges,
];

/// Runs a kernel over four groups of 16, which must fail. Gives the message.
#[track_caller]
fn failure(
    env: &Env,
    kernel: impl for<'wi, 'cg> Fn(NdItem<'wi, 'cg, 1, Fixed1<16>>, ()) + Copy + Send + Sync + 'static,
) -> String {
    if !env.device().image_targets().is_empty() {
        env.skip("what a device does with such a kernel is not defined");
    }
    let start = Instant::now();
    let error = env.queue().parallel_for_nd_range((64, Fixed1::<16>), (), kernel).unwrap().wait().unwrap_err();
    let elapsed = start.elapsed();
    assert!(elapsed < LIMIT, "{elapsed:?} until the work-items that do not come were known");
    assert_eq!(error.code(), ErrorCode::Kernel);
    // The thread's next kernel runs as if nothing had been.
    let event = env.queue().parallel_for_nd_range((64, Fixed1::<16>), (), |mut item, ()| {
        // SAFETY: all come to it.
        assert!(unsafe { item.unchecked() }.reduce(1u32, Sum) == 16);
    });
    event.unwrap().wait().unwrap();
    error.to_string()
}

/// Whether a message names the work-item of one group that waits at a line of this file, and what another does.
#[track_caller]
fn names(text: &str, waits: usize, line: u32, other: &str) {
    let place = format!("but work-item {waits} waits at {}:{line}:", file!());
    assert!(text.contains("all work-items of a group come to the same barriers"), "{text}");
    assert!(text.contains(&place) && text.contains(other), "{place} {other}: {text}");
}

/// In these tests the contract is broken on purpose.
macro_rules! unchecked {
    ($item:ident) => {
        // SAFETY: on the host, what is not met by all is an error.
        unsafe { $item.unchecked() }
    };
}

fn some_wait_and_others_end(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() % 2 == 0 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 0, line, "work-item 1 has ended");
}

fn the_last_one_ends(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() != 15 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 0, line, "work-item 15 has ended");
}

fn the_first_one_ends(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() != 0 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 1, line, "work-item 0 has ended");
}

fn all_but_one_end(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() == 9 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 9, line, "work-item 0 has ended");
}

fn two_barriers_in_two_arms(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() < 8 {
            unchecked!(item).barrier();
        } else {
            let mut group = unchecked!(item);
            group.barrier();
        }
    });
    names(&text, 0, line, &format!("work-item 8 waits at {}:{}:", file!(), line + 3));
}

fn a_loop_of_another_length(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        for _ in 0..3 + item.local_linear_id() / 12 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 12, line, "work-item 0 has ended");
}

fn a_barrier_and_an_algorithm(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() < 15 {
            unchecked!(item).barrier();
        } else {
            let _ = unchecked!(item).reduce(1u32, Sum);
        }
    });
    names(&text, 0, line, &format!("work-item 15 waits at {}:{}:", file!(), line + 2));
}

fn two_algorithms(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        let _ = match item.local_linear_id() {
            0..5 => unchecked!(item).reduce(1u32, Sum),
            _ => unchecked!(item).inclusive_scan(1u32, Sum),
        };
    });
    names(&text, 0, line, &format!("work-item 5 waits at {}:{}:", file!(), line + 1));
}

/// The line of the algorithm below.
const SAME_PLACE: u32 = line!() + 4;

/// An algorithm at one place, of values of several types.
fn same_place<T: DeviceCopyable + bytemuck::AnyBitPattern>(item: &mut NdItem<'_, '_, 1, Fixed1<16>>, value: T) {
    let _ = unchecked!(item).broadcast(value, 0);
}

fn values_of_two_types(env: &Env) {
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() > 3 {
            same_place(&mut item, 1u8);
        } else {
            same_place(&mut item, 1u64);
        }
    });
    names(&text, 0, SAME_PLACE, "work-item 4 brings values of another type there");
}

fn values_of_two_types_of_one_size(env: &Env) {
    let text = failure(env, |mut item, ()| {
        if item.local_linear_id() > 3 {
            same_place(&mut item, 1u32);
        } else {
            same_place(&mut item, 1f32);
        }
    });
    names(&text, 0, SAME_PLACE, "work-item 4 brings values of another type there");
}

fn after_many_barriers(env: &Env) {
    let line = line!() + 4;
    let text = failure(env, |mut item, ()| {
        for round in 0..100 {
            if round != 99 || item.local_linear_id() != 7 {
                unchecked!(item).barrier();
            }
        }
    });
    names(&text, 0, line, "work-item 7 has ended");
}

fn behind_an_early_return(env: &Env) {
    let line = line!() + 5;
    let text = failure(env, |mut item, ()| {
        if item.global_linear_id() == 20 {
            return;
        }
        let sum = unchecked!(item).reduce(1u32, Sum);
        assert!(sum == 16);
    });
    names(&text, 0, line, "work-item 4 has ended");
}

fn only_one_group_diverges(env: &Env) {
    let line = line!() + 3;
    let text = failure(env, |mut item, ()| {
        if item.group_id()[0] != 2 || item.local_linear_id() < 10 {
            unchecked!(item).barrier();
        }
    });
    names(&text, 0, line, "work-item 10 has ended");
    // The id is that of the launch.
    assert!(text.contains("[32]"), "{text}");
}
