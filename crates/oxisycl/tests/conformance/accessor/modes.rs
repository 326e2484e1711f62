//! Modes, and helpers that are generic over modes (I1, I2).

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use oxisycl::prelude::*;
use oxisycl::{Loads, Result, Stores};

use crate::harness::{Env, tests};
use crate::support::{iota, plus_one, read_on, update, write_positions};

tests![
    read_sees_the_newest_data,
    write_keeps_what_it_does_not_write,
    write_keeps_what_another_device_wrote,
    read_write_updates_in_place,
    cells_of_one_element_are_the_same_memory,
    no_init_write_replaces_everything,
    no_init_read_write_sees_its_own_writes,
    get_and_set_work_beside_each_other,
    helpers_are_generic_over_modes,
    a_command_group_may_be_built_by_functions,
    accessors_are_plain_copies,
    accessors_of_one_part_are_equal_on_the_host_and_in_kernels,
];

fn read_sees_the_newest_data(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    assert_eq!(read_on(&env.queue(), &buffer), iota(8));
    update(&env.other_queue(), &buffer, plus_one);
    assert_eq!(read_on(&env.queue(), &buffer), (1..9).collect::<Vec<_>>());
    buffer.host_access(ReadWrite).unwrap()[0] = 50;
    assert_eq!(read_on(&env.queue(), &buffer)[0], 50);
}

fn write_keeps_what_it_does_not_write(env: &Env) {
    let buffer = Buffer::from_vec(iota(10)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(10, move |item| {
            if item.index() % 3 == 0 {
                data.set(item, -1);
            }
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [-1, 1, 2, -1, 4, 5, -1, 7, 8, -1]);
}

fn write_keeps_what_another_device_wrote(env: &Env) {
    let buffer = Buffer::<i32, 1>::uninit(10).unwrap();
    write_positions(&env.other_queue(), &buffer, 0);
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, Write);
        cg.parallel_for(5, move |item| data.set(item, -1))
    });
    kernel.unwrap();
    assert_eq!(read_on(&env.third_queue(), &buffer), [-1, -1, -1, -1, -1, 5, 6, 7, 8, 9]);
}

fn read_write_updates_in_place(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    for _ in 0..3 {
        update(&env.queue(), &buffer, |x| x * 2 + 1);
    }
    assert_eq!(buffer.to_vec().unwrap(), [7, 15, 23, 31, 39, 47]);
}

fn cells_of_one_element_are_the_same_memory(env: &Env) {
    let buffer = Buffer::from_vec(iota(6)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(6, move |item| {
            let (first, second) = (data.cell(item), data.cell(item));
            first.set(first.get() + 10);
            second.set(second.get() * 2);
            data.set(item, data.get(item) + first.replace(0));
        })
    });
    kernel.unwrap();
    let expected: Vec<i32> = iota(6).iter().map(|x| 2 * ((x + 10) * 2)).collect();
    assert_eq!(buffer.to_vec().unwrap(), expected);
}

fn no_init_write_replaces_everything(env: &Env) {
    let buffer = Buffer::from_vec(iota(6)).unwrap();
    write_positions(&env.queue(), &buffer, 50);
    assert_eq!(buffer.to_vec().unwrap(), (50..56).collect::<Vec<_>>());
}

fn no_init_read_write_sees_its_own_writes(env: &Env) {
    let buffer = Buffer::from_vec(vec![9; 6]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let data = cg.access(&buffer, ReadWrite.no_init());
        cg.parallel_for(6, move |item| {
            data.set(item, 1);
            data.update(item, |x| x + 1);
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [2; 6]);
}

fn get_and_set_work_beside_each_other(env: &Env) {
    let [a, b, c] =
        [1, 10, 0].map(|factor| Buffer::from_vec_nd(iota(20).iter().map(|x| x * factor).collect(), 20).unwrap());
    let kernel = env.queue().submit(|cg| {
        let (a, b, c) = (cg.access(&a, Read), cg.access(&b, ReadWrite), cg.access(&c, Write));
        cg.parallel_for(20, move |item| {
            c.set(item, a.get(item) + b.get(item));
            b.set(item, -1);
        })
    });
    kernel.unwrap();
    assert_eq!(c.to_vec().unwrap()[19], 209);
    assert_eq!(b.to_vec().unwrap(), [-1; 20]);
}

/// Doubles the work-item's own element through any accessor that can.
fn double<M: Loads + Stores, const D: usize>(data: Accessor<'_, i32, D, M>, item: Item<'_, D>) {
    data.update(item, |x| x * 2);
}

/// Sums through anything that reads.
fn sum<M: Loads, N: Loads>(a: Accessor<'_, i32, 1, M>, b: Accessor<'_, i32, 1, N>, item: Item<'_, 1>) -> i32 {
    a.get(item) + b.get(item)
}

fn helpers_are_generic_over_modes(env: &Env) {
    let queue = env.queue();
    let [a, b] = [0, 100].map(|base| Buffer::from_vec_nd((base..base + 6).collect::<Vec<i32>>(), 6).unwrap());
    let kernel = queue.submit(|cg| {
        let (a, b) = (cg.access(&a, Read), cg.access(&b, ReadWrite));
        cg.parallel_for(6, move |item| {
            double(b, item);
            b.set(item, sum(a, b, item));
        })
    });
    kernel.unwrap();
    assert_eq!(b.to_vec().unwrap(), (0..6).map(|i| 200 + 3 * i).collect::<Vec<_>>());
    let plane = Buffer::from_vec_nd(iota(6), [2, 3]).unwrap();
    let kernel = queue.submit(|cg| {
        let data = cg.access(&plane, ReadWrite.no_init());
        cg.parallel_for([2, 3], move |item| {
            data.set(item, 3);
            double(data, item);
        })
    });
    kernel.unwrap();
    assert_eq!(plane.to_vec().unwrap(), [6; 6]);
}

fn record_update<'cg, M: oxisycl::ModeFor<i32> + Loads + Stores>(
    cg: &mut Handler<'cg>,
    buffer: &Buffer<i32, 1>,
    mode: M,
    amount: i32,
) -> Result {
    let data = cg.access(buffer, mode);
    cg.parallel_for(buffer.range(), move |item| data.update(item, |x| x + amount))
}

fn a_command_group_may_be_built_by_functions(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    env.queue().submit(|cg| record_update(cg, &buffer, ReadWrite, 10)).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [10, 11, 12, 13]);
}

fn accessors_are_plain_copies(env: &Env) {
    #[derive(Clone, Copy)]
    struct Pair<'cg> {
        from: Accessor<'cg, i32, 1, Read>,
        to: Accessor<'cg, i32, 1, Write>,
    }
    let source = Buffer::from_vec(iota(4)).unwrap();
    let target = Buffer::<i32, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let pair = Pair { from: cg.access(&source, Read), to: cg.access(&target, Write) };
        let copies = [pair, pair];
        cg.parallel_for(4, move |item| copies[item.index() % 2].to.set(item, pair.from.get(item)))
    });
    kernel.unwrap();
    assert_eq!(target.to_vec().unwrap(), iota(4));
}

fn accessors_of_one_part_are_equal_on_the_host_and_in_kernels(env: &Env) {
    let (source, other) = (Buffer::from_vec(iota(8)).unwrap(), Buffer::from_vec(iota(8)).unwrap());
    let told = Buffer::<u8, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (whole, again, foreign) = (cg.access(&source, Read), cg.access(&source, Read), cg.access(&other, Read));
        let part = cg.access_range(&source, Read, 4, 4);
        let told = cg.access(&told, Write);
        let pairs = [(whole, again), (whole, part), (whole, foreign), (part, part)];
        let hash = |accessor| BuildHasherDefault::<DefaultHasher>::default().hash_one(accessor);
        assert_eq!(pairs.map(|(left, right)| left == right), [true, false, false, true]);
        assert_eq!(pairs.map(|(left, right)| hash(left) == hash(right)), [true, false, false, true]);
        cg.parallel_for(4, move |item| {
            let (left, right) = pairs[item.index()];
            told.set(item, u8::from(left == right));
        })
    });
    kernel.unwrap();
    assert_eq!(told.to_vec().unwrap(), [1, 0, 0, 1]);
}
