use std::{format, thread, vec};

use super::atomics::accessor;
use super::{panic_message, run_single};
use crate::atomic::{AcqRel, Acquire, AtomicRef, Order, Relaxed, Release, Scope, SeqCst, atomic_fence};
use crate::{AtomicElement, Item};

/// Runs `f` with a reference to each of two elements.
fn with_references<T: AtomicElement>(elements: &mut [T], f: impl Fn([AtomicRef<'_, T>; 2]) + Copy) {
    let data = accessor(elements);
    run_single(|task| f([0, 1].map(|index| data.atomic_ref(task, index))));
}

macro_rules! all_operations {
    ($($name:ident: $t:ty;)*) => { $(
        #[test]
        fn $name() {
            fn check<O: Order>(order: O) {
                let mut elements = vec![5 as $t, 7 as $t];
                with_references(&mut elements, |[element, _]| {
                    assert_eq!(element.exchange(8 as $t, order), 5 as $t);
                    assert_eq!(element.compare_exchange(8 as $t, 9 as $t, order, Acquire), Ok(8 as $t));
                    assert_eq!(element.compare_exchange(8 as $t, 1 as $t, order, SeqCst), Err(9 as $t));
                    assert_eq!(element.compare_exchange_weak(8 as $t, 1 as $t, order, Relaxed), Err(9 as $t));
                    assert_eq!(element.fetch_add(2 as $t, order), 9 as $t);
                    assert_eq!(element.fetch_sub(1 as $t, order), 11 as $t);
                    assert_eq!(element.fetch_min(3 as $t, order), 10 as $t);
                    assert_eq!(element.fetch_min(4 as $t, order), 3 as $t);
                    assert_eq!(element.fetch_max(4 as $t, order), 3 as $t);
                    assert_eq!(element.fetch_max(2 as $t, order), 4 as $t);
                    assert_eq!(element.fetch_update(order, |x| x * (2 as $t)), 4 as $t);
                });
                assert_eq!(elements, [8 as $t, 7 as $t]);
            }
            check(Relaxed);
            check(Acquire);
            check(Release);
            check(AcqRel);
            check(SeqCst);
        }
    )* };
}

all_operations! {
    operations_on_u32: u32;
    operations_on_i32: i32;
    operations_on_u64: u64;
    operations_on_i64: i64;
    operations_on_f32: f32;
    operations_on_f64: f64;
}

/// Values of 128 bits have loads and stores of their own. They must not be further candidates for a number without a type.
#[test]
fn numbers_without_a_type_are_loaded_and_stored() {
    let mut elements = [1, 2];
    let data = accessor(&mut elements);
    run_single(|task| {
        data.store(task, 0, data.load(task, 1) + 1);
        let (a, b) = (data.atomic_ref(task, 0), data.atomic_ref(task, 1));
        b.store(a.load(Acquire) + 1, Release);
    });
    assert_eq!(elements, [3, 4]);
}

#[test]
fn loads_and_stores_take_their_orders() {
    let mut elements = [1u32, 2];
    with_references(&mut elements, |[a, b]| {
        a.store(b.load(Relaxed) + 1, Relaxed);
        a.store(a.load(Acquire) + 1, Release);
        b.store(a.load(SeqCst) + 1, SeqCst);
    });
    assert_eq!(elements, [4, 5]);
}

#[test]
fn bits_are_changed() {
    let mut elements = [0b1100i64, 0];
    with_references(&mut elements, |[a, _]| {
        assert_eq!(a.fetch_and(0b0110, AcqRel), 0b1100);
        assert_eq!(a.fetch_or(0b0001, Release), 0b0100);
        assert_eq!(a.fetch_xor(0b1111, Acquire), 0b0101);
    });
    assert_eq!(elements, [0b1010, 0]);
}

#[test]
fn a_reference_shows_value_and_scope() {
    with_references(&mut [7u32, 0], |[a, _]| {
        assert_eq!(format!("{a:?}"), "AtomicRef { value: 7, scope: Device }");
        let scopes = [Scope::SubGroup, Scope::WorkGroup, Scope::Device, Scope::System];
        assert!(scopes.is_sorted());
        let wide = scopes.map(|scope| a.with_scope(scope).scope());
        assert_eq!(wide, [Scope::Device, Scope::Device, Scope::Device, Scope::System]);
        // SAFETY: nothing else accesses the element.
        let narrow = scopes.map(|scope| unsafe { a.with_narrow_scope(scope) }.scope());
        assert_eq!(narrow, [Scope::SubGroup, Scope::WorkGroup, Scope::Device, Scope::Device]);
    });
}

#[test]
fn an_index_outside_gives_no_reference() {
    let mut elements = [1u32];
    let data = accessor(&mut elements);
    panic_message(|| run_single(|task| _ = data.atomic_ref(task, 1)));
}

/// A plain value is published by a flag: under Miri a missing order is a data race.
fn publish(store: impl Fn(AtomicRef<'_, u32>) + Copy + Send, load: impl Fn(AtomicRef<'_, u32>) -> u32 + Copy + Send) {
    struct Plain(*mut u32);
    // SAFETY: the threads below take turns, which is what the test is about.
    unsafe impl Send for Plain {}
    for _ in 0..if cfg!(miri) { 10 } else { 1000 } {
        let (mut flag, mut plain) = ([0u32], 0u32);
        let data = accessor(&mut flag);
        let (first, second) = (Plain(&raw mut plain), Plain(&raw mut plain));
        thread::scope(|scope| {
            scope.spawn(move || {
                let place = &first;
                run_single(|task| {
                    // SAFETY: the other thread reads it only after it saw the flag.
                    unsafe { place.0.write(42) };
                    store(data.atomic_ref(task, 0));
                });
            });
            scope.spawn(move || {
                let place = &second;
                run_single(|task| {
                    if load(data.atomic_ref(task, 0)) == 1 {
                        // SAFETY: it was written before the flag was set.
                        assert_eq!(unsafe { place.0.read() }, 42);
                    }
                });
            });
        });
    }
}

#[test]
fn release_and_acquire_order_plain_memory() {
    publish(|flag| flag.store(1, Release), |flag| flag.load(Acquire));
    publish(|flag| _ = flag.fetch_add(1, AcqRel), |flag| flag.fetch_or(0, AcqRel));
    publish(|flag| _ = flag.exchange(1, SeqCst), |flag| flag.load(SeqCst));
    publish(
        |flag| _ = flag.compare_exchange(0, 1, Release, Relaxed),
        |flag| flag.compare_exchange(2, 2, Relaxed, Acquire).unwrap_or_else(|seen| seen),
    );
}

#[test]
fn fences_order_plain_memory() {
    publish(
        |flag| {
            atomic_fence(Release, Scope::Device);
            flag.store(1, Relaxed);
        },
        |flag| {
            let seen = flag.load(Relaxed);
            atomic_fence(Acquire, Scope::Device);
            seen
        },
    );
    atomic_fence(Relaxed, Scope::WorkGroup);
}

#[test]
fn references_of_work_items_count_together() {
    let mut sum = [0u64];
    let data = accessor(&mut sum);
    let kernel = move |item: Item<'_, 1>| _ = data.atomic_ref(item, 0).fetch_add(item.index() as u64, AcqRel);
    thread::scope(|scope| {
        for begin in [0, 20, 40] {
            scope.spawn(move || super::launch_cut([20], [begin], &[7], kernel));
        }
    });
    assert_eq!(sum, [1770]);
}
