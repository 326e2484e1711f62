//! Modes, overlap within a command group, placeholders, and helpers that are generic over modes (I1, I2, I4, E2, E4).

use oxisycl::prelude::*;
use oxisycl::{Loads, Result, Stores};

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_completes, assert_held_back, code, counted, iota, read_on, update, write_positions};

tests![
    read_sees_the_newest_data,
    write_keeps_what_it_does_not_write,
    write_keeps_what_another_device_wrote,
    read_write_updates_in_place,
    cells_of_one_element_are_the_same_memory,
    no_init_write_replaces_everything,
    no_init_read_write_sees_its_own_writes,
    get_and_set_work_beside_each_other,
    several_readers_of_one_buffer_are_allowed_in_a_group,
    overlapping_accessors_with_a_writer_are_refused,
    overlap_is_found_across_copies_of_the_handle,
    overlap_is_found_in_two_and_three_dimensions,
    disjoint_accessors_with_a_writer_are_allowed,
    several_accessors_of_one_group_wait_together,
    aliased_accessors_are_allowed_on_request,
    a_placeholder_becomes_an_accessor,
    a_placeholder_serves_many_groups,
    requiring_a_placeholder_again_has_no_effect,
    a_placeholder_that_is_not_required_orders_nothing,
    a_placeholder_of_a_part_is_checked_when_it_is_required,
    a_placeholder_keeps_the_buffer_alive,
    helpers_are_generic_over_modes,
    a_command_group_may_be_built_by_functions,
    accessors_are_plain_copies,
    a_kernel_may_use_many_accessors,
];

fn read_sees_the_newest_data(env: &Env) {
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    assert_eq!(read_on(&env.queue(), &buffer), iota(8));
    update(&env.other_queue(), &buffer, |x| x + 1);
    assert_eq!(read_on(&env.queue(), &buffer), (1..9).collect::<Vec<_>>());
    buffer.host_access(ReadWrite).unwrap()[0] = 50;
    assert_eq!(read_on(&env.queue(), &buffer)[0], 50);
}

fn write_keeps_what_it_does_not_write(env: &Env) {
    let buffer = Buffer::from_vec(iota(10), 10).unwrap();
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
    let buffer = Buffer::from_vec(iota(6), [2, 3]).unwrap();
    for _ in 0..3 {
        update(&env.queue(), &buffer, |x| x * 2 + 1);
    }
    assert_eq!(buffer.to_vec().unwrap(), [7, 15, 23, 31, 39, 47]);
}

fn cells_of_one_element_are_the_same_memory(env: &Env) {
    let buffer = Buffer::from_vec(iota(6), 6).unwrap();
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
    let buffer = Buffer::from_vec(iota(6), 6).unwrap();
    write_positions(&env.other_queue(), &buffer, 50);
    assert_eq!(buffer.to_vec().unwrap(), (50..56).collect::<Vec<_>>());
}

fn no_init_read_write_sees_its_own_writes(env: &Env) {
    let buffer = Buffer::from_vec(vec![9; 6], 6).unwrap();
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
        [1, 10, 0].map(|factor| Buffer::from_vec(iota(20).iter().map(|x| x * factor).collect(), 20).unwrap());
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

fn several_readers_of_one_buffer_are_allowed_in_a_group(env: &Env) {
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    let sums = Buffer::<i32, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let (all, right) = (cg.access(&buffer, Read), cg.access_range(&buffer, Read, 4, 4));
        let sums = cg.access(&sums, Write);
        cg.parallel_for(4, move |item| sums.set(item, all.view(item)[item.index()] + right.get(item)))
    });
    kernel.unwrap();
    assert_eq!(sums.to_vec().unwrap(), [4, 6, 8, 10]);
}

fn overlapping_accessors_with_a_writer_are_refused(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    fn overlap<M: oxisycl::ModeFor<i32>, N: oxisycl::ModeFor<i32>>(
        queue: &Queue,
        buffer: &Buffer<i32, 1>,
        first: M,
        second: N,
    ) -> ErrorCode {
        let (since, result) = counted(|| {
            queue.submit(|cg| {
                cg.access_range(buffer, first, 5, 0);
                cg.access_range(buffer, second, 4, 4);
                cg.single_task(|_| {})
            })
        });
        assert_eq!((since.nodes, since.transfers()), (0, 0));
        code(result)
    }
    assert_eq!(overlap(&queue, &buffer, Read, Write), ErrorCode::Accessor);
    assert_eq!(overlap(&queue, &buffer, Write, Read), ErrorCode::Accessor);
    assert_eq!(overlap(&queue, &buffer, ReadWrite, ReadWrite), ErrorCode::Accessor);
    assert_eq!(overlap(&queue, &buffer, Write.no_init(), Read), ErrorCode::Accessor);
    assert_eq!(overlap(&queue, &buffer, Atomic, Read), ErrorCode::Accessor);
    assert_eq!(overlap(&queue, &buffer, Atomic, Atomic), ErrorCode::Accessor);
}

fn overlap_is_found_across_copies_of_the_handle(env: &Env) {
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    let copy = buffer.clone();
    let result = env.queue().submit(|cg| {
        let (from, to) = (cg.access(&buffer, Read), cg.access(&copy, Write));
        cg.parallel_for(8, move |item| to.set(item, from.get(item)))
    });
    assert_eq!(code(result), ErrorCode::Accessor);
    // The host's view is no way around it.
    let result = env.queue().submit(|cg| {
        let mut host = cg.access_host(&buffer, Write);
        let _other = cg.access_host(&copy, Read);
        cg.host_task(move |scope| host.slice_mut(scope).fill(0))
    });
    assert_eq!(code(result), ErrorCode::Accessor);
    assert_eq!(buffer.to_vec().unwrap(), iota(8));
}

fn overlap_is_found_in_two_and_three_dimensions(env: &Env) {
    let queue = env.queue();
    let plane = Buffer::from_vec(iota(64), [8, 8]).unwrap();
    let submit = |offset: [usize; 2]| {
        queue.submit(|cg| {
            cg.access_range(&plane, Write, [3, 3], [2, 2]);
            cg.access_range(&plane, Read, [3, 3], offset);
            cg.single_task(|_| {})
        })
    };
    for offset in [[4, 4], [0, 0], [4, 0], [0, 4], [2, 2]] {
        assert_eq!(code(submit(offset)), ErrorCode::Accessor, "{offset:?}");
    }
    for offset in [[5, 2], [2, 5], [5, 5], [0, 5]] {
        submit(offset).unwrap();
    }
    let cube = Buffer::from_vec(iota(64), [4, 4, 4]).unwrap();
    let submit = |offset: [usize; 3]| {
        queue.submit(|cg| {
            cg.access_range(&cube, Write, [2, 2, 2], [1, 1, 1]);
            cg.access_range(&cube, ReadWrite, [1, 1, 1], offset);
            cg.single_task(|_| {})
        })
    };
    assert_eq!(code(submit([2, 1, 2])), ErrorCode::Accessor);
    assert!(submit([3, 1, 2]).is_ok() && submit([0, 1, 2]).is_ok() && submit([2, 1, 3]).is_ok());
}

fn disjoint_accessors_with_a_writer_are_allowed(env: &Env) {
    let buffer = Buffer::from_vec(iota(10), [2, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let left = cg.access_range(&buffer, Read, [2, 2], [0, 0]);
        let right = cg.access_range(&buffer, ReadWrite, [2, 3], [0, 2]);
        cg.parallel_for([2, 2], move |item| right.update(item, |x| x * 10 + left.get(item)))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 20, 31, 4, 5, 6, 75, 86, 9]);
}

fn several_accessors_of_one_group_wait_together(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(16), 16).unwrap();
    let other = Buffer::from_vec(iota(4), 4).unwrap();
    let part_gate = |offset: usize| {
        Gate::new(&queue, |cg| {
            cg.access_range(&buffer, ReadWrite, 4, offset);
        })
    };
    let gates = [part_gate(0), part_gate(12), Gate::writing(&queue, &other)];
    let kernel = queue.submit(|cg| {
        let (a, b) = (cg.access_range(&buffer, Read, 4, 0), cg.access_range(&buffer, ReadWrite, 4, 12));
        let c = cg.access(&other, ReadWrite);
        cg.parallel_for(4, move |item| {
            b.update(item, |x| x + a.get(item));
            c.update(item, |x| x + b.get(item));
        })
    });
    let kernel = kernel.unwrap();
    for gate in gates {
        assert_held_back(&kernel);
        gate.open();
    }
    assert_completes(&kernel);
    assert_eq!(other.to_vec().unwrap(), [12, 15, 18, 21]);
}

fn aliased_accessors_are_allowed_on_request(env: &Env) {
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    let kernel = env.queue().submit(|cg| {
        let to = cg.access(&buffer, Write);
        // SAFETY: the only work-item reads and writes one element after the other.
        let from = unsafe { cg.access_aliased(&buffer, ReadWrite, 8, 0) };
        cg.single_task(move |task| {
            for i in 1..8 {
                to.set_at(task, i, from.get_at(task, i) + from.get_at(task, i - 1));
            }
        })
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 3, 6, 10, 15, 21, 28]);
}

fn a_placeholder_becomes_an_accessor(env: &Env) {
    let buffer = Buffer::from_vec(iota(8), 8).unwrap();
    let placeholder = buffer.placeholder_range(ReadWrite, 4, 2);
    let kernel = env.queue().submit(|cg| {
        let data = cg.require(&placeholder);
        assert_eq!((data.range(), data.offset(), data.buffer_range()), (Range([4]), Id([2]), Range([8])));
        cg.parallel_for(4, move |item| data.update(item, |x| x * 10 + item.index() as i32))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 20, 31, 42, 53, 6, 7]);
}

fn a_placeholder_serves_many_groups(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 4], 4).unwrap();
    let placeholder = buffer.placeholder(ReadWrite);
    for queue in [env.queue(), env.other_queue(), env.third_queue(), env.queue()] {
        let kernel = queue.submit(|cg| {
            let data = cg.require(&placeholder);
            cg.parallel_for(4, move |item| data.update(item, |x| x * 2 + 1))
        });
        kernel.unwrap();
    }
    assert_eq!(buffer.to_vec().unwrap(), [15; 4]);
}

fn requiring_a_placeholder_again_has_no_effect(env: &Env) {
    let buffer = Buffer::from_vec(iota(4), 4).unwrap();
    let placeholder = buffer.placeholder(ReadWrite);
    let kernel = env.queue().submit(|cg| {
        cg.require(&placeholder);
        let data = cg.require(&placeholder.clone());
        cg.parallel_for(4, move |item| data.update(item, |x| x + 1))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3, 4]);
}

fn a_placeholder_that_is_not_required_orders_nothing(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(4), 4).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let (since, placeholder) = counted(|| buffer.placeholder(ReadWrite));
    assert_eq!((since.nodes, since.buffer_allocations), (0, 0));
    assert_completes(&queue.single_task(|_| {}).unwrap());
    gate.open();
    drop(placeholder);
}

fn a_placeholder_of_a_part_is_checked_when_it_is_required(env: &Env) {
    let buffer = Buffer::from_vec(iota(4), 4).unwrap();
    let placeholder = buffer.placeholder_range(Read, 3, 2);
    let result = env.queue().submit(|cg| {
        cg.require(&placeholder);
        cg.single_task(|_| {})
    });
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn a_placeholder_keeps_the_buffer_alive(env: &Env) {
    let target = Buffer::<i32, 1>::uninit(4).unwrap();
    let placeholder = {
        let buffer = Buffer::from_vec(iota(4), 4).unwrap();
        update(&env.other_queue(), &buffer, |x| x + 1);
        buffer.placeholder(Read)
    };
    let copy = env.queue().submit(|cg| {
        let (from, to) = (cg.require(&placeholder), cg.access(&target, Write));
        cg.copy(from, to)
    });
    copy.unwrap();
    assert_eq!(target.to_vec().unwrap(), [1, 2, 3, 4]);
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
    let [a, b] = [0, 100].map(|base| Buffer::from_vec((base..base + 6).collect::<Vec<i32>>(), 6).unwrap());
    let kernel = queue.submit(|cg| {
        let (a, b) = (cg.access(&a, Read), cg.access(&b, ReadWrite));
        cg.parallel_for(6, move |item| {
            double(b, item);
            b.set(item, sum(a, b, item));
        })
    });
    kernel.unwrap();
    assert_eq!(b.to_vec().unwrap(), (0..6).map(|i| 200 + 3 * i).collect::<Vec<_>>());
    let plane = Buffer::from_vec(iota(6), [2, 3]).unwrap();
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
    let buffer = Buffer::from_vec(iota(4), 4).unwrap();
    env.queue().submit(|cg| record_update(cg, &buffer, ReadWrite, 10)).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [10, 11, 12, 13]);
}

fn accessors_are_plain_copies(env: &Env) {
    #[derive(Clone, Copy)]
    struct Pair<'cg> {
        from: Accessor<'cg, i32, 1, Read>,
        to: Accessor<'cg, i32, 1, Write>,
    }
    let source = Buffer::from_vec(iota(4), 4).unwrap();
    let target = Buffer::<i32, 1>::uninit(4).unwrap();
    let kernel = env.queue().submit(|cg| {
        let pair = Pair { from: cg.access(&source, Read), to: cg.access(&target, Write) };
        let copies = [pair, pair];
        cg.parallel_for(4, move |item| copies[item.index() % 2].to.set(item, pair.from.get(item)))
    });
    kernel.unwrap();
    assert_eq!(target.to_vec().unwrap(), iota(4));
}

fn a_kernel_may_use_many_accessors(env: &Env) {
    let buffers: Vec<Buffer<i32, 1>> = (0..20).map(|i| Buffer::from_vec(vec![1 << i; 3], 3).unwrap()).collect();
    let sums = Buffer::<i32, 1>::uninit(3).unwrap();
    let kernel = env.queue().submit(|cg| {
        let all: [Accessor<'_, i32, 1, Read>; 20] = std::array::from_fn(|i| cg.access(&buffers[i], Read));
        let sums = cg.access(&sums, Write);
        cg.parallel_for(3, move |item| sums.set(item, all.iter().map(|data| data.get(item)).sum()))
    });
    kernel.unwrap();
    assert_eq!(sums.to_vec().unwrap(), [(1 << 20) - 1; 3]);
}
