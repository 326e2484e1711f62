//! Which commands wait for which.

use oxisycl_backend::DependencyKind::{Data, Order};
use oxisycl_types::ErrorCode;

use crate::support::{Buffer, World};

#[test]
fn readers_do_not_wait_for_each_other() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.read("a", &buffer);
    queue.read("b", &buffer);
    assert_eq!(world.waits("b"), [""; 0]);
}

#[test]
fn a_reader_needs_the_data_of_the_writer() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("writer", &buffer);
    queue.read("reader", &buffer);
    assert_eq!(world.edge("writer", "reader"), Some(Data));
}

#[test]
fn a_writer_only_has_to_come_after_readers() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.read("a", &buffer);
    queue.read("b", &buffer);
    queue.update("writer", &buffer);
    assert_eq!((world.edge("a", "writer"), world.edge("b", "writer")), (Some(Order), Some(Order)));
}

#[test]
fn a_writer_that_keeps_nothing_only_has_to_come_after_the_last_one() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("first", &buffer);
    queue.discard("second", &buffer);
    queue.group().write(&buffer).kernel("third");
    assert_eq!(world.edge("first", "second"), Some(Order));
    assert_eq!(world.edge("second", "third"), Some(Data), "elements that are not written keep their value");
    assert_eq!(world.waits("third"), ["second"]);
}

#[test]
fn disjoint_pages_have_no_dependency() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4));
    let queue = world.queue(0);
    queue.update("first", buffer.part(0, 4));
    queue.update("second", buffer.part(4, 8));
    assert_eq!(world.waits("second"), [""; 0]);
}

#[test]
fn one_common_page_is_a_conflict_even_without_a_common_element() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4));
    let queue = world.queue(0);
    queue.update("pages 0 and 1", buffer.part(0, 5));
    queue.update("page 1", buffer.part(6, 8));
    queue.update("page 2", buffer.part(8, 9));
    assert_eq!(world.waits("page 1"), ["pages 0 and 1"]);
    assert_eq!(world.waits("page 2"), [""; 0]);
}

#[test]
fn the_last_page_may_be_shorter() {
    let (world, buffer) = (World::new(1), Buffer::paged(10, 4));
    let queue = world.queue(0);
    queue.update("last page", buffer.part(8, 10));
    queue.update("middle page", buffer.part(7, 8));
    queue.update("last element", buffer.part(9, 10));
    assert_eq!(world.waits("middle page"), [""; 0]);
    assert_eq!(world.waits("last element"), ["last page"]);
}

#[test]
fn without_pages_disjoint_ranges_are_ordered() {
    let (world, buffer) = (World::new(1), Buffer::new(16));
    let queue = world.queue(0);
    queue.update("first", buffer.part(0, 4));
    queue.update("second", buffer.part(8, 12));
    assert_eq!(world.waits("second"), ["first"]);
}

#[test]
fn an_empty_range_conflicts_with_nothing_and_moves_nothing() {
    let (world, buffer) = (World::new(2), Buffer::paged(16, 4).initialized());
    world.queue(0).update("writer", &buffer);
    world.recorder.complete_all();
    let n_copies = world.copies().len();
    world.queue(1).update("empty", buffer.part(3, 3));
    assert_eq!((world.waits("empty").len(), world.copies().len()), (0, n_copies));
}

#[test]
fn different_buffers_never_conflict() {
    let (world, a, b) = (World::new(1), Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("a", &a);
    queue.update("b", &b);
    assert_eq!(world.waits("b"), [""; 0]);
}

#[test]
fn conflicts_order_commands_of_different_queues() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queues = [world.queue(0), world.queue(0)];
    queues[0].update("first", &buffer);
    queues[1].update("second", &buffer);
    queues[0].update("third", &buffer);
    assert_eq!(world.waits("second"), ["first"]);
    assert_eq!(world.waits("third"), ["second"]);
}

#[test]
fn submissions_of_threads_are_ordered_by_who_came_first() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let queue = world.queue(0);
                for _ in 0..if cfg!(miri) { 8 } else { 50 } {
                    queue.update("step", &buffer);
                }
            });
        }
    });
    let commands = world.recorder.commands();
    assert!(commands.iter().enumerate().all(|(index, command)| match index {
        0 => command.dependencies.is_empty(),
        _ => command.waits_for() == [index - 1],
    }));
}

#[test]
fn one_command_that_wrote_two_buffers_is_one_dependency() {
    let world = World::new(1);
    let buffers = [0; 3].map(|_| Buffer::new(8));
    let queue = world.queue(0);
    queue.group().update(&buffers[0]).update(&buffers[1]).update(&buffers[2]).kernel("writer");
    queue.group().read(&buffers[0]).read(&buffers[1]).update(&buffers[2]).kernel("reader");
    assert_eq!(world.waits("reader"), ["writer"]);
    assert_eq!(world.edge("writer", "reader"), Some(Data));
}

#[test]
fn two_accessors_of_one_group_do_not_wait_for_each_other() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 8));
    let queue = world.queue(0);
    queue.group().read(buffer.part(0, 2)).update(buffer.part(2, 4)).kernel("both");
    assert_eq!(world.waits("both"), [""; 0]);
    queue.read("reader", buffer.part(4, 5));
    assert_eq!(world.waits("reader"), ["both"]);
    queue.group().update(buffer.part(0, 2)).read(buffer.part(2, 4)).kernel("reversed");
    queue.read("last", buffer.part(4, 5));
    assert_eq!(world.waits("last"), ["reversed"]);
}

#[test]
fn commands_that_have_ended_are_not_waited_for() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let first = queue.update("first", &buffer);
    queue.read("second", &buffer);
    world.recorder.complete_all();
    queue.group().update(&buffer).after(&first).kernel("third");
    assert_eq!(world.waits("third"), [""; 0]);
}

#[test]
fn an_event_is_a_data_dependency() {
    let world = World::new(1);
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    queue.group().after(&first).kernel("second");
    assert_eq!(world.edge("first", "second"), Some(Data));
}

#[test]
fn an_event_of_a_failed_command_is_an_error_and_nothing_is_enqueued() {
    let world = World::new(1);
    let queue = world.queue(0);
    let first = queue.group().kernel("first");
    world.lose("first");
    let error = queue.group().after(&first).try_kernel("second").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Event);
    assert!(!world.has("second"));
}

#[test]
fn in_order_queue_passes_the_previous_event() {
    let world = World::new(1);
    let queue = world.in_order_queue(0);
    for name in ["first", "second", "third"] {
        queue.group().kernel(name);
    }
    assert_eq!(world.edge("first", "second"), Some(Order));
    assert_eq!(world.waits("third"), ["second"]);
    world.recorder.complete_all();
    queue.group().kernel("fourth");
    assert_eq!(world.waits("fourth"), [""; 0]);
}

#[test]
fn the_order_of_a_queue_does_not_pass_failures_on() {
    let world = World::new(1);
    let queue = world.in_order_queue(0);
    let first = queue.group().kernel("first");
    let second = queue.group().kernel("second");
    world.lose("first");
    world.complete("second");
    assert!(first.has_failed() && second.has_succeeded());
    assert!(queue.group().kernel("third").failure().is_none());
}

#[test]
fn an_in_order_queue_goes_on_after_a_refused_command() {
    let world = World::new(1);
    let queue = world.in_order_queue(0);
    queue.group().kernel("first");
    world.recorder.refuse_command(1);
    assert!(queue.group().try_kernel("refused").is_err());
    queue.group().kernel("second");
    assert_eq!(world.waits("second"), ["first"]);
}

#[test]
fn queues_without_order_have_none() {
    let world = World::new(1);
    let queue = world.queue(0);
    queue.group().kernel("first");
    queue.group().kernel("second");
    assert_eq!(world.waits("second"), [""; 0]);
}

#[test]
fn a_group_without_a_command_is_a_marker_that_waits() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("writer", &buffer);
    let node = queue.group().read(&buffer).submit().unwrap();
    assert_eq!(world.waits("marker"), ["writer"]);
    world.recorder.complete_all();
    assert!(node.has_succeeded());
}

#[test]
fn a_barrier_waits_for_events_and_the_order_of_its_queue() {
    let world = World::new(1);
    let (out_of_order, in_order) = (world.queue(0), world.in_order_queue(0));
    let first = out_of_order.group().kernel("first");
    out_of_order.group().kernel("unrelated");
    in_order.group().kernel("second");
    in_order.queue.submit_barrier(&[first]).unwrap();
    assert_eq!(world.waits("marker"), ["first", "second"]);
}
