//! Conflicts: by pages, not by elements, and only with a writer (S-R32 to S-R38).

use oxisycl::prelude::*;

use crate::harness::{Env, tests};
use crate::support::{
    Gate, assert_completes, assert_held_back, iota, negated, plus_one, touch, touch_range, update_range,
};

tests![
    reads_do_not_conflict,
    writes_to_different_pages_do_not_conflict,
    a_write_and_a_read_of_different_pages_do_not_conflict,
    accesses_of_one_page_conflict_although_the_elements_differ,
    one_common_page_makes_a_conflict,
    pages_that_meet_only_in_one_dimension_do_not_conflict,
    different_buffers_never_conflict,
    by_default_disjoint_ranges_are_ordered,
    disjoint_pages_run_at_the_same_time,
    reinterpreted_access_conflicts_by_pages,
];

/// A buffer of four pages of four elements.
fn paged() -> Buffer<i32, 1> {
    BufferOptions::new().page_size(4).from_vec(iota(16)).unwrap()
}

fn read_gate(queue: &Queue, buffer: &Buffer<i32, 1>, offset: usize, range: usize) -> Gate {
    Gate::new(queue, |cg| {
        cg.access_range(buffer, Read, offset, range);
    })
}

fn write_gate(queue: &Queue, buffer: &Buffer<i32, 1>, offset: usize, range: usize) -> Gate {
    Gate::new(queue, |cg| {
        cg.access_range(buffer, ReadWrite, offset, range);
    })
}

fn reads_do_not_conflict(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let gate = read_gate(&queue, &buffer, 0, 16);
    let reader = touch(&queue, &buffer);
    assert_completes(&reader);
    assert_completes(&touch(&env.in_order_queue(), &buffer));
    assert_completes(&touch(&env.other_queue(), &buffer));
    assert!(!gate.event().is_complete());
    assert_eq!(buffer.host_access(Read).unwrap()[3], 3);
    gate.open();
}

fn writes_to_different_pages_do_not_conflict(env: &Env) {
    let queue = env.queue();
    let buffer = paged();
    touch(&queue, &buffer).wait().unwrap();
    let gate = write_gate(&queue, &buffer, 0, 4);
    for page in 1..4 {
        assert_completes(&update_range(&queue, &buffer, 4 * page, 4, negated));
    }
    gate.open();
    assert_eq!(buffer.to_vec().unwrap()[3..6], [3, -4, -5]);
}

fn a_write_and_a_read_of_different_pages_do_not_conflict(env: &Env) {
    let queue = env.queue();
    let buffer = paged();
    let gate = write_gate(&queue, &buffer, 5, 1);
    assert_completes(&touch_range(&queue, &buffer, 0, 4));
    assert_completes(&touch_range(&env.other_queue(), &buffer, 8, 8));
    gate.open();
    let gate = read_gate(&queue, &buffer, 0, 8);
    assert_completes(&update_range(&queue, &buffer, 8, 8, |x| x));
    gate.open();
}

fn accesses_of_one_page_conflict_although_the_elements_differ(env: &Env) {
    let queue = env.queue();
    let buffer = paged();
    let gate = write_gate(&queue, &buffer, 4, 1);
    let (reader, writer) = (touch_range(&queue, &buffer, 6, 1), update_range(&queue, &buffer, 7, 1, plus_one));
    assert_held_back(&reader);
    assert_held_back(&writer);
    gate.open();
    writer.wait().unwrap();
    assert!(reader.is_complete());
    let gate = read_gate(&queue, &buffer, 0, 1);
    let writer = update_range(&queue, &buffer, 3, 1, plus_one);
    assert_held_back(&writer);
    gate.open();
    assert_completes(&writer);
}

fn one_common_page_makes_a_conflict(env: &Env) {
    let queue = env.queue();
    let buffer = paged();
    let gate = write_gate(&queue, &buffer, 0, 5);
    let common = touch_range(&queue, &buffer, 7, 2);
    assert_held_back(&common);
    assert_completes(&touch_range(&queue, &buffer, 8, 8));
    gate.open();
    assert_completes(&common);
}

fn pages_that_meet_only_in_one_dimension_do_not_conflict(env: &Env) {
    let queue = env.queue();
    let buffer = BufferOptions::new().page_size([2, 3]).from_vec_nd(iota(36), [6, 6]).unwrap();
    let gate = Gate::new(&queue, |cg| {
        cg.access_range(&buffer, ReadWrite, [2, 1], [2, 1]);
    });
    // The same rows, the same columns, and a corner.
    assert_completes(&update_range(&queue, &buffer, [2, 3], [2, 3], |x| x));
    assert_completes(&update_range(&queue, &buffer, [4, 0], [2, 3], |x| x));
    assert_completes(&update_range(&queue, &buffer, [0, 0], [2, 6], |x| x));
    let common = update_range(&queue, &buffer, [1, 2], [2, 1], |x| x);
    assert_held_back(&common);
    gate.open();
    assert_completes(&common);
}

fn different_buffers_never_conflict(env: &Env) {
    let queue = env.queue();
    let buffers: Vec<_> = (0..4).map(|_| Buffer::from_vec(iota(16)).unwrap()).collect();
    let gate = Gate::writing(&queue, &buffers[0]);
    let group = queue.submit(|cg| {
        let [a, b, c] = [1, 2, 3].map(|i| cg.access(&buffers[i], ReadWrite));
        cg.parallel_for(16, move |item| a.update(item, |x| x + b.get(item) + c.get(item)))
    });
    assert_completes(&group.unwrap());
    gate.open();
}

fn by_default_disjoint_ranges_are_ordered(env: &Env) {
    let queue = env.queue();
    let buffer = Buffer::from_vec(iota(16)).unwrap();
    let gate = write_gate(&queue, &buffer, 0, 4);
    let (writer, reader) = (update_range(&queue, &buffer, 8, 4, plus_one), touch_range(&queue, &buffer, 15, 1));
    assert_held_back(&writer);
    assert_held_back(&reader);
    gate.open();
    assert_completes(&writer);
    assert_completes(&reader);
}

fn disjoint_pages_run_at_the_same_time(env: &Env) {
    // Two host tasks that meet: each waits for the other.
    let queue = env.queue();
    let buffer = paged();
    let meeting = std::sync::Arc::new(std::sync::Barrier::new(2));
    let tasks: Vec<Event> = [0, 8]
        .iter()
        .map(|&offset| {
            let meeting = meeting.clone();
            let task = queue.submit(|cg| {
                let mut part = cg.access_host_range(&buffer, ReadWrite, offset, 8);
                cg.host_task(move |scope| {
                    meeting.wait();
                    part.slice_mut(scope).fill(offset as i32);
                })
            });
            task.unwrap()
        })
        .collect();
    for task in &tasks {
        assert_completes(task);
    }
    assert_eq!(buffer.to_vec().unwrap(), [[0; 8], [8; 8]].concat());
}

fn reinterpreted_access_conflicts_by_pages(env: &Env) {
    let queue = env.queue();
    let buffer = paged();
    let bytes = buffer.reinterpret::<u8, 2>([8, 8]).unwrap();
    let touch_rows = |first: usize, n_rows: usize| {
        let kernel = queue.submit(|cg| {
            cg.access_range(&bytes, Read, [first, 0], [n_rows, 8]);
            cg.single_task(|_| {})
        });
        kernel.unwrap()
    };
    // Rows of 8 bytes: the page of elements 4 to 7 is rows 2 and 3.
    let gate = write_gate(&queue, &buffer, 4, 4);
    assert_completes(&touch_rows(0, 2));
    assert_completes(&touch_rows(4, 4));
    let common = touch_rows(3, 1);
    assert_held_back(&common);
    gate.open();
    assert_completes(&common);
}
