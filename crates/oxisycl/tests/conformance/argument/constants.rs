//! Specialization constants: values of every type, set, overwritten, left at the default, and not used.

use std::fmt::Debug;

use oxisycl::argument::specialized;
use oxisycl::group::Fixed1;
use oxisycl::operator::Sum;
use oxisycl::prelude::*;
use oxisycl::reduction::reduction;
use oxisycl::specialization::SpecId;

use crate::harness::{Env, tests};
use crate::support::code;

tests![
    constants_of_every_scalar_type_have_the_value_that_was_set,
    constants_of_arrays_and_structs_have_the_value_that_was_set,
    a_constant_that_is_not_set_has_its_default,
    a_constant_may_be_set_again_before_it_is_read,
    a_constant_that_was_read_cannot_be_set,
    a_constant_of_another_group_or_name_is_another,
    a_constant_that_the_kernel_does_not_read_has_no_effect,
    constants_are_passed_beside_the_kernel,
    every_form_of_launch_has_constants,
    many_values_are_all_right,
];

/// What a kernel reads of a constant with and without a value, three times each: code for the value may come with a later launch.
fn round_trip<T: DeviceCopyable + PartialEq + Debug>(env: &Env, id: &'static SpecId<T>, default: T, value: T) {
    let queue = env.queue();
    for set in [None, Some(value)].into_iter().cycle().take(6) {
        let seen = Buffer::from_vec(vec![default; 2]).unwrap();
        let event = queue.submit(|cg| {
            if let Some(value) = set {
                cg.set_constant(id, value)?;
            }
            let (constant, seen) = (cg.constant(id), cg.access(&seen, Write));
            cg.parallel_for(2, move |item| seen.set(item, constant.get()))
        });
        event.unwrap();
        assert_eq!(seen.to_vec().unwrap(), [set.unwrap_or(default); 2]);
    }
}

fn constants_of_every_scalar_type_have_the_value_that_was_set(env: &Env) {
    macro_rules! scalars {
        ($($t:ty: $default:expr, $value:expr;)*) => { $({
            static ID: SpecId<$t> = SpecId::new($default);
            round_trip(env, &ID, $default, $value);
        })* };
    }
    scalars! {
        i8: -1, i8::MIN;
        u8: 1, u8::MAX;
        i16: -2, i16::MIN;
        u16: 2, u16::MAX;
        i32: -3, i32::MIN;
        u32: 3, u32::MAX;
        i64: -4, i64::MIN;
        u64: 4, u64::MAX - 1;
        usize: 5, 1 << 40;
        f32: 0.5, f32::MIN_POSITIVE;
        bool: false, true;
        char: 'a', '𝄞';
    }
    if env.device().has(Aspect::Fp64) {
        static ID: SpecId<f64> = SpecId::new(0.25);
        round_trip(env, &ID, 0.25, -f64::MAX);
    }
    #[cfg(feature = "half")]
    {
        static ID: SpecId<half::f16> = SpecId::new(half::f16::ONE);
        round_trip(env, &ID, half::f16::ONE, half::f16::from_f32_const(-0.375));
    }
}

/// A type without a constructor that needs no values, with padding and a field whose values are few.
#[derive(Clone, Copy, DeviceCopyable, PartialEq, Debug)]
struct Shape {
    kind: Kind,
    extent: [u16; 3],
    weight: f32,
    offset: (i8, i64),
}

#[derive(Clone, Copy, DeviceCopyable, PartialEq, Debug)]
enum Kind {
    Box,
    Ball { radius: u32 },
}

fn constants_of_arrays_and_structs_have_the_value_that_was_set(env: &Env) {
    static ARRAY: SpecId<[u32; 5]> = SpecId::new([1, 2, 3, 4, 5]);
    round_trip(env, &ARRAY, [1, 2, 3, 4, 5], [9, 0, 7, u32::MAX, 5]);
    static NESTED: SpecId<[[i8; 3]; 2]> = SpecId::new([[0; 3]; 2]);
    round_trip(env, &NESTED, [[0; 3]; 2], [[1, -2, 3], [-4, 5, -6]]);
    const CUBE: Shape = Shape { kind: Kind::Box, extent: [3; 3], weight: 1.5, offset: (-1, 1 << 33) };
    static SHAPE: SpecId<Shape> = SpecId::new(CUBE);
    let ball = Shape { kind: Kind::Ball { radius: 17 }, extent: [5, 6, 7], weight: -0.0, offset: (2, i64::MIN) };
    round_trip(env, &SHAPE, CUBE, ball);
    // One element of an array, at a place that only the kernel knows.
    static TABLE: SpecId<[f32; 8]> = SpecId::new([0.0; 8]);
    for base in [1.0f32, 2.0, 1.0, 2.0, 1.0] {
        let seen = Buffer::<f32, 1>::uninit(8).unwrap();
        let event = env.queue().submit(|cg| {
            cg.set_constant(&TABLE, std::array::from_fn(|i| base + i as f32))?;
            let (table, seen) = (cg.constant(&TABLE), cg.access(&seen, Write.no_init()));
            cg.parallel_for(8, move |item| seen.set(item, table.get()[7 - item.index()]))
        });
        event.unwrap();
        assert_eq!(seen.to_vec().unwrap(), std::array::from_fn::<f32, 8, _>(|i| base + 7.0 - i as f32));
    }
}

/// What a kernel reads of a constant in a group that `set` records.
fn seen<T>(env: &Env, id: &'static SpecId<i32>, set: T) -> i32
where
    T: for<'cg> FnOnce(&mut Handler<'cg>),
{
    let seen = Buffer::from_vec(vec![0]).unwrap();
    let event = env.queue().submit(|cg| {
        set(cg);
        let (constant, seen) = (cg.constant(id), cg.access(&seen, Write));
        cg.single_task(move |task| seen.set_at(task, 0, constant.get()))
    });
    event.unwrap();
    seen.to_vec().unwrap()[0]
}

fn a_constant_that_is_not_set_has_its_default(env: &Env) {
    static ID: SpecId<i32> = SpecId::new(21);
    assert_eq!(seen(env, &ID, |_| {}), 21);
    assert_eq!(seen(env, &ID, |cg| cg.set_constant(&ID, 22).unwrap()), 22);
    // Of one group only.
    assert_eq!(seen(env, &ID, |_| {}), 21);
    assert_eq!(ID.default_value(), 21);
}

fn a_constant_may_be_set_again_before_it_is_read(env: &Env) {
    static ID: SpecId<i32> = SpecId::new(0);
    let value = seen(env, &ID, |cg| {
        cg.set_constant(&ID, 1).unwrap();
        cg.set_constant(&ID, 2).unwrap();
        cg.set_constant(&ID, 3).unwrap();
    });
    assert_eq!(value, 3);
}

fn a_constant_that_was_read_cannot_be_set(env: &Env) {
    static ID: SpecId<i32> = SpecId::new(0);
    static OTHER: SpecId<i32> = SpecId::new(0);
    let result = env.queue().submit(|cg| {
        let constant = cg.constant(&ID);
        cg.set_constant(&OTHER, 1)?;
        let error = cg.set_constant(&ID, 1).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Invalid);
        assert!(error.to_string().contains("type `i32` is set after"), "{error}");
        // Ignored; the group fails all the same.
        let _ = cg.single_task(move |_| assert_eq!(constant.get(), 0));
        Ok(())
    });
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn a_constant_of_another_group_or_name_is_another(env: &Env) {
    static FIRST: SpecId<i32> = SpecId::new(1);
    static SECOND: SpecId<i32> = SpecId::new(1);
    assert_eq!(seen(env, &FIRST, |cg| cg.set_constant(&SECOND, 2).unwrap()), 1);
    assert_eq!(seen(env, &SECOND, |cg| cg.set_constant(&FIRST, 2).unwrap()), 1);
    // Without a size, too.
    static NOTHING: SpecId<[u8; 0]> = SpecId::new([]);
    static ALSO_NOTHING: SpecId<[u8; 0]> = SpecId::new([]);
    let event = env.queue().submit(|cg| {
        cg.constant(&NOTHING);
        cg.set_constant(&ALSO_NOTHING, [])?;
        let nothing = cg.constant(&ALSO_NOTHING);
        cg.single_task(move |_| assert!(nothing.get().is_empty()))
    });
    event.unwrap().wait().unwrap();
}

fn a_constant_that_the_kernel_does_not_read_has_no_effect(env: &Env) {
    static USED: SpecId<i32> = SpecId::new(5);
    static UNUSED: SpecId<[u64; 4]> = SpecId::new([0; 4]);
    assert_eq!(seen(env, &USED, |cg| cg.set_constant(&UNUSED, [1; 4]).unwrap()), 5);
    let numbers = Buffer::from_vec(vec![1, 2]).unwrap();
    let event = env.queue().submit(|cg| {
        cg.set_constant(&USED, 6)?;
        let (unread, numbers) = (cg.constant(&UNUSED), cg.access(&numbers, ReadWrite));
        cg.parallel_for(2, move |item| {
            let _captured = unread;
            numbers.update(item, |x| x + 1)
        })
    });
    event.unwrap();
    assert_eq!(numbers.to_vec().unwrap(), [2, 3]);
}

fn constants_are_passed_beside_the_kernel(env: &Env) {
    static SCALE: SpecId<i32> = SpecId::new(100);
    let queue = env.queue();
    for n in [1, 2, 2, 2, 3, 1] {
        let numbers = Buffer::from_vec(vec![1, 2, 3]).unwrap();
        let event = queue.submit(|cg| {
            let scale = cg.constant(&SCALE);
            let arguments = ([specialized(n), specialized(10 * n)], scale, numbers.update());
            cg.parallel_for_with(3, arguments, |item, ([n, tens], scale, numbers)| {
                numbers.update(item, |x| (0..n).fold(tens, |sum, _| sum + scale * x))
            })
        });
        event.unwrap();
        assert_eq!(numbers.to_vec().unwrap(), [1, 2, 3].map(|x| 10 * n + n * 100 * x));
    }
    // The queue's own form needs no group.
    let numbers = Buffer::from_vec(vec![1, 2, 3]).unwrap();
    let add = |item: Item<1>, (n, numbers): (i32, Accessor<i32, 1, ReadWrite>)| numbers.update(item, |x| x + n);
    for n in [1, 1, 10] {
        queue.parallel_for_with(3, (specialized(n), numbers.update()), add).unwrap();
    }
    assert_eq!(numbers.to_vec().unwrap(), [13, 14, 15]);
}

fn every_form_of_launch_has_constants(env: &Env) {
    static FACTOR: SpecId<u32> = SpecId::new(3);
    let queue = env.queue();
    for factor in [4u32, 5, 4] {
        let numbers = Buffer::from_vec((0..8).collect::<Vec<u32>>()).unwrap();
        let event = queue.submit(|cg| {
            cg.set_constant(&FACTOR, factor)?;
            let (factor, numbers) = (cg.constant(&FACTOR), cg.access(&numbers, ReadWrite));
            cg.parallel_for_work_group(2, Fixed1::<4>, (), move |mut group, ()| {
                group.for_each((), move |item, ()| numbers.update(item.global(), |x| factor.get() * x))
            })
        });
        event.unwrap();
        let expected: Vec<u32> = (0..8).map(|x| factor * x).collect();
        assert_eq!(numbers.to_vec().unwrap(), expected);
        let event = queue.submit(|cg| {
            let (constant, numbers) = (cg.constant(&FACTOR), cg.access(&numbers, ReadWrite));
            let range = NdRange::new(Range::new([8]), Range::new([4]));
            cg.parallel_for_nd_range(range, (), move |item, ()| numbers.update(item.global(), |x| constant.get() + x))
        });
        event.unwrap();
        assert_eq!(numbers.to_vec().unwrap(), expected.iter().map(|x| x + 3).collect::<Vec<_>>());
        let sum = Buffer::from_vec(vec![0u32]).unwrap();
        let event = queue.submit(|cg| {
            let into = reduction(cg.access(&sum, Write), Sum);
            cg.parallel_reduce_with(8, into, (specialized(factor), numbers.read()), |item, sum, (factor, numbers)| {
                *sum += factor * numbers.get(item)
            })
        });
        event.unwrap();
        assert_eq!(sum.to_vec().unwrap(), [expected.iter().map(|x| factor * (x + 3)).sum::<u32>()]);
    }
}

fn many_values_are_all_right(env: &Env) {
    static ID: SpecId<u32> = SpecId::new(0);
    let queue = env.queue();
    let numbers = Buffer::from_vec(vec![0u32; 40]).unwrap();
    // More than there is code for, and in turn.
    for round in 0..2u32 {
        for value in 0..40 {
            let event = queue.submit(|cg| {
                cg.set_constant(&ID, value)?;
                let (constant, numbers) = (cg.constant(&ID), cg.access(&numbers, ReadWrite));
                cg.parallel_for(40, move |item| {
                    let value = constant.get();
                    let added = if item.index() == value as usize { value * value + 1 } else { 0 };
                    numbers.update(item, |x| x + added)
                })
            });
            event.unwrap();
        }
        let expected: Vec<u32> = (0..40).map(|value| (round + 1) * (value * value + 1)).collect();
        assert_eq!(numbers.to_vec().unwrap(), expected);
    }
}
