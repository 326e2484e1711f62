//! Several accessors in one command group, and placeholders (I4, E2, E4).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{Gate, assert_completes, assert_held_back, code, counted, iota, plus_one, update};

tests![
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
    a_kernel_may_use_many_accessors,
];

fn several_readers_of_one_buffer_are_allowed_in_a_group(env: &Env) {
    let buffer = Buffer::from_vec(iota(8)).unwrap();
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
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    fn overlap<M: oxisycl::ModeFor<i32>, N: oxisycl::ModeFor<i32>>(
        queue: &Queue,
        buffer: &Buffer<i32, 1>,
        first: M,
        second: N,
    ) -> ErrorCode {
        let (since, result) = counted(|| {
            queue.submit(|cg| {
                cg.access_range(buffer, first, 0, 5);
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
    let buffer = Buffer::from_vec(iota(8)).unwrap();
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
    let plane = Buffer::from_vec_nd(iota(64), [8, 8]).unwrap();
    let submit = |offset: [usize; 2]| {
        queue.submit(|cg| {
            cg.access_range(&plane, Write, [2, 2], [3, 3]);
            cg.access_range(&plane, Read, offset, [3, 3]);
            cg.single_task(|_| {})
        })
    };
    for offset in [[4, 4], [0, 0], [4, 0], [0, 4], [2, 2]] {
        assert_eq!(code(submit(offset)), ErrorCode::Accessor, "{offset:?}");
    }
    for offset in [[5, 2], [2, 5], [5, 5], [0, 5]] {
        submit(offset).unwrap();
    }
    let cube = Buffer::from_vec_nd(iota(64), [4, 4, 4]).unwrap();
    let submit = |offset: [usize; 3]| {
        queue.submit(|cg| {
            cg.access_range(&cube, Write, [1, 1, 1], [2, 2, 2]);
            cg.access_range(&cube, ReadWrite, offset, [1, 1, 1]);
            cg.single_task(|_| {})
        })
    };
    assert_eq!(code(submit([2, 1, 2])), ErrorCode::Accessor);
    assert!(submit([3, 1, 2]).is_ok() && submit([0, 1, 2]).is_ok() && submit([2, 1, 3]).is_ok());
}

fn disjoint_accessors_with_a_writer_are_allowed(env: &Env) {
    let buffer = Buffer::from_vec_nd(iota(10), [2, 5]).unwrap();
    let kernel = env.queue().submit(|cg| {
        let left = cg.access_range(&buffer, Read, [0, 0], [2, 2]);
        let right = cg.access_range(&buffer, ReadWrite, [0, 2], [2, 3]);
        cg.parallel_for([2, 2], move |item| right.update(item, |x| x * 10 + left.get(item)))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 20, 31, 4, 5, 6, 75, 86, 9]);
}

fn several_accessors_of_one_group_wait_together(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size(4).from_vec(iota(16)).unwrap();
    let other = Buffer::from_vec(iota(4)).unwrap();
    let part_gate = |offset: usize| {
        Gate::new(&queue, |cg| {
            cg.access_range(&buffer, ReadWrite, offset, 4);
        })
    };
    let gates = [part_gate(0), part_gate(12), Gate::writing(&queue, &other)];
    let kernel = queue.submit(|cg| {
        let (a, b) = (cg.access_range(&buffer, Read, 0, 4), cg.access_range(&buffer, ReadWrite, 12, 4));
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
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let kernel = env.queue().submit(|cg| {
        let to = cg.access(&buffer, Write);
        // SAFETY: the only work-item reads and writes one element after the other.
        let from = unsafe { cg.access_aliased(&buffer, ReadWrite, 0, 8) };
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
    let buffer = Buffer::from_vec(iota(8)).unwrap();
    let placeholder = buffer.placeholder_range(ReadWrite, 2, 4);
    let kernel = env.queue().submit(|cg| {
        let data = cg.require(&placeholder);
        assert_eq!((data.range(), data.offset(), data.buffer_range()), (Range([4]), Id([2]), Range([8])));
        cg.parallel_for(4, move |item| data.update(item, |x| x * 10 + item.index() as i32))
    });
    kernel.unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [0, 1, 20, 31, 42, 53, 6, 7]);
}

fn a_placeholder_serves_many_groups(env: &Env) {
    let buffer = Buffer::from_vec(vec![0; 4]).unwrap();
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
    let buffer = Buffer::from_vec(iota(4)).unwrap();
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
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let gate = Gate::writing(&queue, &buffer);
    let (since, placeholder) = counted(|| buffer.placeholder(ReadWrite));
    assert_eq!((since.nodes, since.buffer_allocations), (0, 0));
    assert_completes(&queue.single_task(|_| {}).unwrap());
    gate.open();
    drop(placeholder);
}

fn a_placeholder_of_a_part_is_checked_when_it_is_required(env: &Env) {
    let buffer = Buffer::from_vec(iota(4)).unwrap();
    let placeholder = buffer.placeholder_range(Read, 2, 3);
    let result = env.queue().submit(|cg| {
        cg.require(&placeholder);
        cg.single_task(|_| {})
    });
    assert_eq!(code(result), ErrorCode::Invalid);
}

fn a_placeholder_keeps_the_buffer_alive(env: &Env) {
    let target = Buffer::<i32, 1>::uninit(4).unwrap();
    let placeholder = {
        let buffer = Buffer::from_vec(iota(4)).unwrap();
        update(&env.other_queue(), &buffer, plus_one);
        buffer.placeholder(Read)
    };
    let copy = env.queue().submit(|cg| {
        let (from, to) = (cg.require(&placeholder), cg.access(&target, Write));
        cg.copy(from, to)
    });
    copy.unwrap();
    assert_eq!(target.to_vec().unwrap(), [1, 2, 3, 4]);
}

fn a_kernel_may_use_many_accessors(env: &Env) {
    let buffers: Vec<Buffer<i32, 1>> = (0..20).map(|i| Buffer::from_vec(vec![1 << i; 3]).unwrap()).collect();
    let sums = Buffer::<i32, 1>::uninit(3).unwrap();
    let kernel = env.queue().submit(|cg| {
        let all: [Accessor<'_, i32, 1, Read>; 20] = std::array::from_fn(|i| cg.access(&buffers[i], Read));
        let sums = cg.access(&sums, Write);
        cg.parallel_for(3, move |item| sums.set(item, all.iter().map(|data| data.get(item)).sum()))
    });
    kernel.unwrap();
    assert_eq!(sums.to_vec().unwrap(), [(1 << 20) - 1; 3]);
}
