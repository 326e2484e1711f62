//! What failed commands, copies and allocations mean for everything that comes after them.

use std::sync::Arc;
use std::sync::mpsc::channel;

use oxisycl_backend::{FailureKind, QueueOptions};
use oxisycl_runtime::Error;
use oxisycl_runtime::graph::AsyncErrors;
use oxisycl_runtime::schedule::Queue;
use oxisycl_types::AccessMode::{Read, ReadWrite, Write};
use oxisycl_types::ErrorCode;
use parking_lot::Mutex;

use crate::support::{Buffer, Change, HostThread, World, eventually, host};
use crate::ways::copy_command;

#[test]
fn failed_writer_is_remembered_until_overwritten() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    world.lose("failing");
    let error = queue.group().read(&buffer).try_kernel("reader").unwrap_err();
    assert!(error.to_string().contains("is lost"), "{error}");
    assert!(queue.group().update(&buffer).try_kernel("writer").is_err());
    assert!(queue.group().write(&buffer).try_kernel("partial writer").is_err());
    assert!(host(&buffer, Read).is_err());
    assert_eq!(world.recorder.len(), 1, "nothing was enqueued");
    queue.discard("overwrite", &buffer);
    queue.read("reader", &buffer);
    assert_eq!((world.waits("overwrite").len(), world.waits("reader")), (0, vec!["overwrite".to_owned()]));
}

#[test]
fn what_is_submitted_before_the_failure_is_known_fails_with_it() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    let reader = queue.read("reader", &buffer);
    let overwrite = queue.discard("overwrite", &buffer);
    let after = queue.read("after", &buffer);
    world.lose("failing");
    assert!(matches!(reader.failure().unwrap().kind(), FailureKind::Dependency(_)));
    world.recorder.complete_all();
    assert!(overwrite.has_succeeded() && after.has_succeeded());
}

#[test]
fn what_a_command_wrote_that_ran_for_nothing_is_lost_and_what_one_did_not_write_is_as_before() {
    for runs_ahead in [false, true] {
        let (world, source, target) = (World::new(1), Buffer::new(8), Buffer::new(8));
        let queue = world.queue(0);
        if runs_ahead {
            world.recorder.run_ahead();
        }
        queue.discard("before", &target);
        world.complete("before");
        queue.discard("failing", &source);
        let dependent = queue.group().read(&source).update(&target).kernel("dependent");
        world.lose("failing");
        assert_eq!(dependent.failure().unwrap().has_run(), runs_ahead);
        assert_eq!(dependent.did_not_run(), !runs_ahead);
        assert_eq!(queue.group().read(&target).try_kernel("reader").is_err(), runs_ahead);
    }
}

#[test]
fn reader_failure_does_not_poison() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("writer", &buffer);
    queue.read("failing", &buffer);
    queue.update("before", &buffer);
    world.complete("writer");
    world.lose("failing");
    let after = queue.update("after", &buffer);
    world.recorder.complete_all();
    assert!(after.has_succeeded());
}

#[test]
fn other_pages_are_untouched_by_a_failure() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 4));
    let queue = world.queue(0);
    queue.update("failing", buffer.part(4, 8));
    world.lose("failing");
    queue.read("page 0", buffer.part(0, 4));
    assert!(queue.group().read(buffer.part(3, 5)).try_kernel("both").is_err());
}

#[test]
fn a_partial_overwrite_saves_only_what_it_writes() {
    let (world, buffer) = (World::new(1), Buffer::paged(16, 16));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    world.lose("failing");
    queue.discard("first half", buffer.part(0, 8));
    assert!(queue.group().read(&buffer).try_kernel("reader").is_err());
    queue.discard("second half", buffer.part(8, 16));
    assert_eq!(world.waits("second half"), ["first half"], "they share a page");
    let reader = queue.read("reader", &buffer);
    world.recorder.complete_all();
    assert!(reader.has_succeeded());
}

#[test]
fn a_failure_after_a_partial_overwrite_is_not_forgotten() {
    let (world, buffer) = (World::new(1), Buffer::new(16));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    queue.discard("first half", buffer.part(0, 8));
    let before = queue.read("before", &buffer);
    world.lose("failing");
    world.recorder.complete_all();
    assert!(before.has_failed(), "half of what it reads is lost");
    assert!(queue.group().read(&buffer).try_kernel("reader").is_err());
    queue.discard("all", &buffer);
    let after = queue.read("after", &buffer);
    world.recorder.complete_all();
    assert!(after.has_succeeded());
}

#[test]
fn each_of_several_partial_writers_can_lose_its_part() {
    let (world, buffer) = (World::new(1), Buffer::new(16));
    let queue = world.queue(0);
    queue.discard("first", buffer.part(0, 4));
    queue.discard("second", buffer.part(4, 8));
    queue.discard("third", buffer.part(8, 16));
    let reader = queue.read("reader", &buffer);
    world.lose("first");
    world.recorder.complete_all();
    assert!(reader.has_failed());
    assert!(queue.group().read(&buffer).try_kernel("again").is_err());
    for (name, begin, end) in [("a", 0, 4), ("b", 4, 8), ("c", 8, 16)] {
        queue.discard(name, buffer.part(begin, end));
    }
    let last = queue.read("last", &buffer);
    world.recorder.complete_all();
    assert!(last.has_succeeded());
}

#[test]
fn a_failed_copy_is_retried_by_the_next_command() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    let first = queue.read("first", &buffer);
    let second = queue.read("second", &buffer);
    world.recorder.lose(0);
    assert!(first.has_failed() && second.has_failed());
    let third = queue.read("third", &buffer);
    assert_eq!(world.copies().len(), 2);
    world.recorder.complete_all();
    assert!(third.has_succeeded());
    assert_eq!(buffer.read(&world), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_failed_copy_to_the_host_is_retried_by_the_next_host_accessor() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    world.queue(0).group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel("writer");
    world.recorder.complete_all();
    let access = HostThread::start(&buffer, Read);
    eventually(|| world.copies().len() == 2);
    world.recorder.lose(2);
    assert!(access.granted().is_err());
    access.release();
    assert_eq!(buffer.read(&world), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_writer_that_never_ran_leaves_the_data_where_it_was() {
    let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
    let add = |device: usize, name| {
        world.queue(device).group().access(&buffer, ReadWrite, false, Change::Add(1)).kernel(name)
    };
    let writer = add(0, "first");
    world.recorder.lose(0);
    assert!(writer.has_failed());
    // The copy is tried again.
    assert!(add(0, "second").failure().is_none());
    world.recorder.complete_all();
    assert_eq!(world.copies().len(), 2);
    let (third, fourth) = (add(1, "third"), add(0, "fourth"));
    world.recorder.lose(world.copies()[2].0);
    assert!(third.has_failed() && fourth.has_failed());
    assert_eq!(buffer.read(&world), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_command_of_which_a_part_has_run_does_not_leave_the_data_as_it_was() {
    let world = World::new(2);
    let queue = world.queue(0);
    for refused in [false, true] {
        let buffer = Buffer::new(8).initialized();
        world.queue(1).read("reader", &buffer);
        world.recorder.complete_all();
        let n_commands = world.recorder.len();
        if refused {
            world.recorder.refuse_command(3);
        }
        let group = queue.group().update(&buffer).command(copy_command()).command(copy_command());
        let node = group.command(copy_command()).submit().unwrap();
        // The buffer's own copy, and the first part.
        world.recorder.complete(n_commands);
        world.recorder.complete(n_commands + 1);
        if !refused {
            world.recorder.lose(n_commands + 2);
        }
        world.recorder.complete_all();
        assert!(node.has_failed());
        assert!(world.queue(1).group().read(&buffer).try_kernel("lost").is_err(), "refused: {refused}");
        assert!(queue.group().read(&buffer).try_kernel("lost").is_err(), "refused: {refused}");
        queue.discard("overwrite", &buffer);
        queue.read("fine", &buffer);
    }
}

#[test]
fn a_command_of_several_parts_that_never_ran_leaves_the_data_where_it_was() {
    let (world, buffer, lost) = (World::new(1), Buffer::new(8).initialized(), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &lost);
    let group = queue.group().read(&lost).update(&buffer).command(copy_command()).command(copy_command());
    let node = group.submit().unwrap();
    world.lose("failing");
    world.recorder.complete_all();
    assert!(node.has_failed());
    assert_eq!(buffer.read(&world), [0, 1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn a_failure_travels_to_the_copy_and_the_command_that_needs_it() {
    let (world, buffer) = (World::new(2), Buffer::new(8));
    world.queue(0).update("failing", &buffer);
    let reader = world.queue(1).read("reader", &buffer);
    world.lose("failing");
    assert_eq!(
        reader.failure().unwrap().root().command(),
        "kernel \"failing\"".to_owned() + " (" + &location(&world) + ")"
    );
    assert_eq!(world.recorder.pending(), [0; 0]);
}

fn location(world: &World) -> String {
    let failure = world.queue(0).group().kernel("location");
    world.lose("location");
    let text = failure.failure().unwrap().command().to_owned();
    text.trim_start_matches("kernel \"location\" (").trim_end_matches(')').to_owned()
}

#[test]
fn failing_enqueue_registers_nothing() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("first", &buffer);
    world.recorder.refuse_command(1);
    let error = queue.group().update(&buffer).try_kernel("refused").unwrap_err();
    assert_eq!(error.code(), ErrorCode::Runtime);
    queue.read("reader", &buffer);
    assert_eq!(world.waits("reader"), ["first"]);
    world.recorder.complete_all();
    assert!(!world.has("refused") && queue.queue.is_idle());
}

#[test]
fn a_refused_copy_refuses_the_command_and_the_next_one_tries_again() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    world.recorder.refuse_command(1);
    assert!(queue.group().update(&buffer).try_kernel("refused").is_err());
    assert!(world.recorder.is_empty());
    queue.read("reader", &buffer);
    assert_eq!(world.waits("reader"), ["copy"]);
}

#[test]
fn copies_of_a_refused_command_stay_useful() {
    let (world, buffer) = (World::new(1), Buffer::new(8).initialized());
    let queue = world.queue(0);
    world.recorder.refuse_command(2);
    assert!(queue.group().update(&buffer).try_kernel("refused").is_err());
    let reader = queue.read("reader", &buffer);
    assert_eq!((world.copies().len(), world.waits("reader")), (1, vec!["copy".to_owned()]));
    world.recorder.complete_all();
    assert!(reader.has_succeeded());
}

#[test]
fn memory_exhausted_on_a_device_is_an_error_and_nothing_is_enqueued() {
    let (world, buffer) = (World::new(2), Buffer::new(8).initialized());
    world.recorder.refuse_allocation(1);
    let error = world.queue(0).group().read(&buffer).try_kernel("refused").unwrap_err();
    assert_eq!(error.code(), ErrorCode::MemoryAllocation);
    assert!(world.recorder.is_empty());
    world.queue(1).read("elsewhere", &buffer);
    world.queue(0).read("again", &buffer);
    assert_eq!(world.copies().len(), 2);
}

#[test]
fn a_command_of_several_copies_ends_with_all_of_them() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let group = queue.group().update(&buffer).command(copy_command()).command(copy_command());
    let node = group.command(copy_command()).submit().unwrap();
    queue.read("reader", &buffer);
    assert_eq!(world.recorder.command(2).waits_for(), [0, 1]);
    assert_eq!(world.recorder.command(3).waits_for(), [2]);
    for index in 0..3 {
        assert!(!node.is_complete());
        world.recorder.complete(index);
    }
    assert!(node.has_succeeded());
}

#[test]
fn a_command_of_several_copies_holds_its_memory_until_the_last_ends_although_one_is_refused() {
    for refused in [2, 3] {
        let (world, buffer) = (World::new(1), Buffer::new(8));
        let queue = world.queue(0);
        let held = Arc::new(());
        world.recorder.refuse_command(refused);
        let group = queue.group().update(&buffer).hold(held.clone());
        let group = group.command(copy_command()).command(copy_command()).command(copy_command());
        // Whether it is told now or later: the first copies are under way.
        let result = group.submit();
        assert_eq!(world.recorder.len() as u64, refused - 1);
        assert_eq!(Arc::strong_count(&held), 2, "the copies under way use the memory");
        let overwrite = queue.discard("overwrite", &buffer);
        assert!(!overwrite.is_handed_over() || world.waits("overwrite").len() + 1 >= refused as usize);
        world.recorder.complete_all();
        assert_eq!(Arc::strong_count(&held), 1);
        assert!(result.map_or(true, |node| node.has_failed()));
        assert!(overwrite.has_succeeded());
    }
}

#[test]
fn a_panic_in_a_host_task_fails_it_and_nothing_else() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let (fail, may_fail) = channel::<()>();
    let task = queue.group().update(&buffer).host_task(move || {
        may_fail.recv().unwrap();
        panic!("a host task of a test");
    });
    let reader = queue.read("reader", &buffer);
    fail.send(()).unwrap();
    eventually(|| reader.is_complete());
    let failure = task.failure().unwrap();
    assert!(matches!(failure.kind(), FailureKind::Panic { message, .. } if message == "a host task of a test"));
    assert!(matches!(reader.failure().unwrap().kind(), FailureKind::Dependency(_)));
    let next = queue.group().host_task(|| {});
    eventually(|| next.has_succeeded());
}

/// A queue with a handler that collects.
pub(crate) fn collecting(world: &World) -> (Arc<Queue>, Arc<AsyncErrors>, Arc<Mutex<Vec<Error>>>) {
    let collected: Arc<Mutex<Vec<Error>>> = Arc::default();
    let into = collected.clone();
    let errors = AsyncErrors::new(Some(Arc::new(move |errors| into.lock().extend(errors))));
    let queue = Queue::new(&world.context, &world.devices[0], QueueOptions::default(), errors.clone()).unwrap();
    (queue, errors, collected)
}

#[test]
fn each_error_reaches_the_handler_once_and_the_oldest_first() {
    let world = World::new(1);
    let (queue, errors, collected) = collecting(&world);
    let buffer = Buffer::new(8);
    let device = world.devices[0].clone();
    let queue = crate::support::TestQueue { queue, device };
    queue.update("first", &buffer);
    queue.read("second", &buffer);
    world.lose("first");
    assert!(errors.deliver());
    assert!(!errors.deliver());
    let texts: Vec<String> = collected.lock().iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 2);
    assert!(texts[0].contains("\"first\"") && texts[1].contains("\"second\""), "{texts:?}");
}

#[test]
fn errors_of_a_queue_that_is_gone_reach_the_handler() {
    let world = World::new(1);
    let (queue, _, collected) = collecting(&world);
    let device = world.devices[0].clone();
    let queue = crate::support::TestQueue { queue, device };
    queue.group().kernel("before");
    queue.group().kernel("after");
    world.lose("before");
    drop(queue);
    eventually(|| collected.lock().len() == 1);
    world.lose("after");
    eventually(|| collected.lock().len() == 2);
}

#[test]
fn a_host_accessor_tells_what_the_data_was_lost_for() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    world.queue(0).update("failing", &buffer);
    let access = HostThread::start(&buffer, Write);
    assert!(access.is_waiting());
    world.lose("failing");
    let error = access.granted().unwrap_err();
    access.release();
    assert!(error.to_string().contains("not available"), "{error}");
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("\"failing\""));
}
