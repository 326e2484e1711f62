use std::{thread, vec};

use super::{launch, launch_cut, panic_message, run_single};
use crate::{Accessor, AccessorParts, Atomic, AtomicElement, Id, Item, Range};

pub(super) fn accessor<T: AtomicElement>(elements: &mut [T]) -> Accessor<'static, T, 1, Atomic> {
    let range = Range([elements.len()]);
    let parts = AccessorParts { pointer: elements.as_mut_ptr(), buffer: range, offset: Id([0]), range };
    // SAFETY: the slice outlives the accessor's use in these tests, and is not used meanwhile.
    unsafe { Accessor::from_parts(parts) }
}

macro_rules! all_operations {
    ($($name:ident: $t:ty;)*) => { $(
        #[test]
        fn $name() {
            let mut elements = vec![5 as $t, 7 as $t];
            let data = accessor(&mut elements);
            run_single(|task| {
                assert_eq!(data.load(task, 0), 5 as $t);
                data.store(task, 0, 6 as $t);
                assert_eq!(data.exchange(task, 0, 8 as $t), 6 as $t);
                assert_eq!(data.compare_exchange(task, 0, 8 as $t, 9 as $t), Ok(8 as $t));
                assert_eq!(data.compare_exchange(task, 0, 8 as $t, 1 as $t), Err(9 as $t));
                assert_eq!(data.fetch_add(task, 0, 2 as $t), 9 as $t);
                assert_eq!(data.fetch_sub(task, 0, 1 as $t), 11 as $t);
                assert_eq!(data.fetch_min(task, 0, 3 as $t), 10 as $t);
                assert_eq!(data.fetch_min(task, 0, 4 as $t), 3 as $t);
                assert_eq!(data.fetch_max(task, 0, 4 as $t), 3 as $t);
                assert_eq!(data.fetch_max(task, 0, 2 as $t), 4 as $t);
                assert_eq!(data.fetch_update(task, 0, |x| x * (2 as $t)), 4 as $t);
            });
            assert_eq!(elements, [8 as $t, 7 as $t]);
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

#[test]
fn integers_wrap() {
    let mut elements = [u32::MAX, 0];
    let data = accessor(&mut elements);
    run_single(move |task| _ = (data.fetch_add(task, 0, 2), data.fetch_sub(task, 1, 1)));
    assert_eq!(elements, [1, u32::MAX]);
}

#[test]
fn floats_are_compared_by_their_bits() {
    let mut elements = [f32::NAN, 0.0];
    let data = accessor(&mut elements);
    run_single(move |task| {
        assert!(data.compare_exchange(task, 0, f32::NAN, 1.0).is_ok());
        assert!(data.compare_exchange(task, 1, -0.0, 1.0).is_err());
    });
    assert_eq!(elements, [1.0, 0.0]);
}

#[test]
fn an_update_may_use_the_same_element() {
    let mut elements = [1u32];
    let data = accessor(&mut elements);
    let mut n_calls = 0;
    let calls = std::cell::RefCell::new(&mut n_calls);
    run_single(|task| {
        data.fetch_update(task, 0, |x| {
            **calls.borrow_mut() += 1;
            if **calls.borrow() == 1 {
                data.store(task, 0, 10);
            }
            x + 1
        });
    });
    assert_eq!(elements, [11]);
    assert!(n_calls >= 2, "{n_calls} calls");
}

#[test]
fn an_index_outside_panics_and_touches_nothing() {
    let mut elements = [1u32, 2, 3];
    let range = Range([1]);
    let parts = AccessorParts { pointer: elements.as_mut_ptr(), buffer: Range([3]), offset: Id([1]), range };
    // SAFETY: the part lies inside the array.
    let data: Accessor<'_, u32, 1, Atomic> = unsafe { Accessor::from_parts(parts) };
    for index in [1, 2, usize::MAX] {
        panic_message(|| run_single(|task| data.store(task, index, 0)));
        panic_message(|| run_single(|task| _ = data.fetch_max(task, index, 9)));
        panic_message(|| run_single(|task| _ = data.fetch_update(task, index, |_| 9)));
    }
    assert_eq!(elements, [1, 2, 3]);
}

#[test]
fn work_items_of_all_threads_meet_at_one_element() {
    let (mut sums, mut largest) = ([0u32; 2], [0.0f32]);
    let (sums_access, largest_access) = (accessor(&mut sums), accessor(&mut largest));
    let kernel = move |item: Item<'_, 1>| {
        sums_access.fetch_add(item, item.index() % 2, 1);
        largest_access.fetch_max(item, 0, item.index() as f32);
    };
    thread::scope(|scope| {
        for begin in [0, 20, 40] {
            scope.spawn(move || launch_cut([20], [begin], &[7], kernel));
        }
    });
    launch([1], kernel);
    assert_eq!((sums, largest), ([31, 30], [59.0]));
}
