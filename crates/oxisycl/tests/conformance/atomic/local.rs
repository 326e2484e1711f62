//! References to elements of local memory that a phase lends.

use oxisycl::atomic::{AcqRel, Acquire, AtomicElement, Order, Relaxed, Release, Scope, SeqCst};
use oxisycl::group::{AtomicElements, Atomically, Fixed1, Local, Shares};
use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::code;

tests![
    every_change_counts_in_local_memory,
    floats_in_local_memory_have_references,
    references_may_be_kept_for_the_phase,
    other_scopes_are_those_of_the_group,
    bits_of_lent_elements_change,
    a_reference_beyond_the_tile_is_an_error,
];

const GROUPS: usize = 4;
const ITEMS: usize = 64;

/// Fills local memory with `start`, runs `f` in one phase, and gives what each group left. All groups must have left the same.
fn left_by<T: AtomicElement + bytemuck::AnyBitPattern + std::fmt::Debug>(
    env: &Env,
    start: [T; 8],
    f: impl for<'p> Fn(AtomicElements<'p, T>, usize) + Copy + Send + Sync + 'static,
) -> Vec<T> {
    let left = Buffer::from_vec(vec![start[0]; 8 * GROUPS]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let left = cg.access(&left, Atomic);
        cg.parallel_for_work_group(GROUPS, Fixed1::<ITEMS>, Local::<T, 8>::new(), move |mut group, mut tile| {
            let number = group.linear_id();
            group.for_each(Shares(&mut tile), move |_, share| share.for_each(|(index, slot)| *slot = start[index]));
            group.for_each(Atomically(&mut tile), move |item, elements| f(elements, item.local_linear_id()));
            group.for_each_of(8, &tile, move |item, tile| {
                left.store(item, 8 * number + item.linear_id(), tile[item.linear_id()]);
            });
        })
    });
    kernel.unwrap().wait().unwrap();
    let left = left.to_vec().unwrap();
    assert!(left.chunks(8).all(|group| group == &left[..8]), "{left:?}");
    left[..8].to_vec()
}

fn every_change_counts_in_local_memory(env: &Env) {
    fn check<O: Order + Send + Sync + 'static>(env: &Env, order: O) {
        let left = left_by(env, [3i32, 200, 50, 50, -1, 0, 0, 7], move |elements, own| {
            let (bit, own) = (1 << (own % 3), own as i32);
            elements.atomic_ref(0).fetch_add(2, order);
            elements.atomic_ref(1).fetch_sub(2, order);
            elements.atomic_ref(2).fetch_min(own - 10, order);
            elements.atomic_ref(3).fetch_max(own + 10, order);
            elements.atomic_ref(4).fetch_and(!bit, order);
            elements.atomic_ref(5).fetch_or(bit << 4, order);
            elements.atomic_ref(6).fetch_xor(bit, order);
            // No work-item finds or leaves another number, in whatever order they come.
            let old = elements.atomic_ref(7).exchange(7, order);
            let _ = elements.atomic_ref(7).compare_exchange(7, old, order, Relaxed);
        });
        // 22 work-items invert the first of three bits, and 21 each of the others.
        assert_eq!(left, [131, 72, -10, 73, !7, 0x70, 6, 7], "{:?}", O::ORDER);
    }
    check(env, Relaxed);
    check(env, AcqRel);
    check(env, SeqCst);
}

fn floats_in_local_memory_have_references(env: &Env) {
    let left = left_by(env, [0.5f64; 8], |elements, own| {
        let own = own as f64;
        elements.atomic_ref(0).fetch_add(0.5, AcqRel);
        elements.atomic_ref(1).fetch_sub(0.25, Relaxed);
        elements.atomic_ref(2).fetch_min(-own, SeqCst);
        elements.atomic_ref(3).fetch_max(own, Release);
        elements.atomic_ref(4).fetch_update(AcqRel, |old| old + 2.0);
        elements.atomic_ref(5).store(elements.atomic_ref(6).load(Acquire) + 1.0, Release);
        elements.atomic_ref(7).fetch_min(f64::NAN, Relaxed);
    });
    assert_eq!(left, [32.5, -15.5, -63.0, 63.0, 128.5, 1.5, 0.5, 0.5]);
}

fn references_may_be_kept_for_the_phase(env: &Env) {
    let left = left_by(env, [0u32; 8], |elements, own| {
        let all: [_; 8] = std::array::from_fn(|index| elements.atomic_ref(index));
        for (position, element) in all.into_iter().enumerate() {
            if own >= position {
                element.fetch_add(1, Relaxed);
            }
        }
    });
    assert_eq!(left, [64, 63, 62, 61, 60, 59, 58, 57]);
}

fn other_scopes_are_those_of_the_group(env: &Env) {
    let left = left_by(env, [0u32; 8], |elements, _| {
        let scopes = [Scope::SubGroup, Scope::WorkGroup, Scope::Device, Scope::System];
        for (index, scope) in scopes.into_iter().enumerate() {
            let element = elements.atomic_ref(index).with_scope(scope);
            element.fetch_add(1, AcqRel);
            elements.atomic_ref(4 + index).store(element.scope() as u32, Relaxed);
        }
    });
    assert_eq!(left, [64, 64, 64, 64, 1, 1, 1, 1]);
}

fn bits_of_lent_elements_change(env: &Env) {
    let left = left_by(env, [u64::MAX, 0, 0, 9, 0, 0, 0, 0], |elements, own| {
        elements.fetch_and(0, !(1 << own));
        elements.fetch_or(1, 1 << own);
        elements.fetch_xor(2, 1 << (own / 2));
        let mut seen = elements.load(3);
        while let Err(now) = elements.compare_exchange_weak(3, seen, seen + 1) {
            seen = now;
        }
    });
    assert_eq!(left[..4], [0, u64::MAX, 0, 73]);
}

fn a_reference_beyond_the_tile_is_an_error(env: &Env) {
    let kernel = env.queue().submit(|cg| {
        cg.parallel_for_work_group(1, Fixed1::<4>, Local::<u32, 8>::new(), |mut group, mut tile| {
            group.for_each(Atomically(&mut tile), |item, elements| {
                elements.atomic_ref(8 + item.local_linear_id()).store(1, Relaxed);
            });
        })
    });
    assert_eq!(code(kernel.unwrap().wait()), ErrorCode::Kernel);
}
