//! Destructors of the user's values, which may do what they like: panic, submit, and wait.

use std::sync::Arc;
use std::sync::mpsc::channel;

use oxisycl_backend::QueueOptions;
use oxisycl_backend_testing::recording::RecordingConfig;
use oxisycl_runtime::graph::{AsyncErrors, KeptAlive, Loan, Node, wait_for_node};
use oxisycl_runtime::schedule::{CommandGroup, Queue, quiesce};
use oxisycl_types::AccessMode::{Read, ReadWrite};
use oxisycl_types::ErrorCode;
use parking_lot::Mutex;

use crate::support::{Buffer, PATIENCE, TestQueue, World, eventually, host};

/// Panics when it is dropped.
struct PanicsAtTheEnd;

impl Drop for PanicsAtTheEnd {
    fn drop(&mut self) {
        panic!("a destructor of a test");
    }
}

#[test]
fn a_panicking_destructor_of_a_held_value_keeps_nothing_from_ending() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    let access = host(&buffer, ReadWrite).unwrap();
    let first = queue.group().update(&buffer).hold(PanicsAtTheEnd).kernel("first");
    let second = queue.update("second", &buffer);
    drop(access);
    world.recorder.complete_all();
    assert!(first.has_succeeded() && second.has_succeeded());
    // The thread that met the panic still resumes delayed commands.
    let other = Buffer::new(8);
    let access = host(&other, Read).unwrap();
    let third = queue.update("third", &other);
    drop(access);
    assert!(third.is_handed_over());
}

#[test]
fn a_panicking_destructor_of_a_host_task_that_cannot_run_keeps_nothing_from_ending() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    let captured = PanicsAtTheEnd;
    let task = queue.group().read(&buffer).host_task(move || {
        let _captured = &captured;
    });
    let other = queue.group().update(&buffer).host_task(|| {});
    world.lose("failing");
    eventually(|| task.has_failed() && other.has_failed());
}

/// Does something when it is dropped.
struct Finally<F: FnOnce()>(Option<F>);

impl<F: FnOnce()> Drop for Finally<F> {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

/// Used to hang: the destructor ran while the thread that ended the command had others to release.
#[test]
fn a_destructor_of_a_host_task_that_cannot_run_may_wait_for_what_it_submits_and_for_other_commands() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let (queue, other) = (world.queue(0), world.queue(0).queue);
    queue.update("failing", &buffer);
    let (tell, told) = channel();
    let (give, given) = channel::<Arc<Node>>();
    let finally = Finally(Some(move || {
        let mut group = CommandGroup { host_task: Some(Box::new(|| {})), ..CommandGroup::default() };
        // SAFETY: the group has no commands.
        let submitted = unsafe { other.submit(&mut group) }.unwrap();
        tell.send(wait_for_node(&submitted).is_ok()).unwrap();
        let behind = given.recv().unwrap();
        tell.send(wait_for_node(&behind).is_ok()).unwrap();
    }));
    let task = queue.group().read(&buffer).host_task(move || drop(finally));
    let behind = queue.group().read(&buffer).host_task(|| {});
    give.send(behind.clone()).unwrap();
    world.lose("failing");
    assert!(told.recv_timeout(PATIENCE).unwrap() && told.recv_timeout(PATIENCE).unwrap());
    eventually(|| task.has_failed());
}

/// Used to hang: the destructor ran before the command ended and on a thread that nobody knew to be its own.
#[test]
fn a_destructor_of_a_host_task_that_cannot_run_gets_an_error_if_it_waits_for_the_task() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.queue(0);
    queue.update("failing", &buffer);
    let (tell, told) = channel();
    // As a buffer with final data does.
    let (core, own) = (buffer.0.core.clone(), queue.queue.clone());
    let finally = Finally(Some(move || tell.send([quiesce(&core), own.wait()]).unwrap()));
    let task = queue.group().read(&buffer).host_task(move || drop(finally));
    world.lose("failing");
    for result in told.recv_timeout(PATIENCE).unwrap() {
        assert_eq!(result.unwrap_err().code(), ErrorCode::Invalid);
    }
    eventually(|| task.has_failed());
}

/// A value of the user that is lent to a command.
struct Lent<T>(T);

impl<T: Send> Loan for Lent<T> {
    fn has_user_drop(&self) -> bool {
        true
    }

    fn ended(&self, _succeeded: bool) {}
}

/// The thread that reports commands would wait for what only it reports.
#[test]
fn what_is_lent_to_a_command_is_dropped_where_it_may_wait_for_commands_that_the_same_thread_reports() {
    lends(World::new(1));
}

/// The place of a command in its backend is free before what it was lent is dropped.
#[test]
fn what_is_lent_to_a_command_is_dropped_where_it_may_wait_for_commands_that_wait_for_its_place() {
    lends(World::with(RecordingConfig::new(1).taking(1)));
}

fn lends(world: World) {
    let (buffer, other) = (Buffer::new(8), Buffer::new(8));
    let queue = world.queue(0);
    let (give, given) = channel::<Arc<Node>>();
    let (tell, told) = channel();
    let lent = Finally(Some(move || {
        let [own, behind] = [0, 1].map(|_| given.recv().unwrap());
        tell.send(wait_for_node(&own).unwrap_err().to_string()).unwrap();
        tell.send(wait_for_node(&behind).is_ok().to_string()).unwrap();
    }));
    let mut group = queue.group().update(&buffer);
    group.group.kept_alive.push(KeptAlive::Loan(Box::new(Lent(lent))));
    let own = group.kernel("own");
    let behind = queue.update("behind", &other);
    give.send(own.clone()).unwrap();
    give.send(behind.clone()).unwrap();
    world.recorder.complete_all();
    let refused = told.recv_timeout(PATIENCE).unwrap();
    assert!(refused.contains("ends when the destructor that waits for it has returned"), "{refused}");
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), "true");
    eventually(|| own.has_succeeded() && behind.has_succeeded());
}

/// The thread that ends the last command of a queue that is gone would wait for what only it reports.
#[test]
fn a_handler_is_dropped_where_it_may_wait_for_commands_that_the_same_thread_reports() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let (give, given) = channel::<Arc<Node>>();
    let (tell, told) = channel();
    let last = Mutex::new(Finally(Some(move || {
        let node = given.recv().unwrap();
        tell.send(wait_for_node(&node).map_err(|error| error.to_string())).unwrap();
    })));
    let errors = AsyncErrors::new(Some(Arc::new(move |_| drop(last.lock()))));
    let device = world.devices[0].clone();
    let queue = Queue::new(&world.context, &device, QueueOptions::default(), errors).unwrap();
    drop(TestQueue { queue, device }.group().kernel("own"));
    let behind = world.queue(0).update("behind", &buffer);
    give.send(behind).unwrap();
    // On another thread, so that a wait without end fails the test instead of hanging it.
    let recorder = world.recorder.clone();
    std::thread::spawn(move || recorder.complete_all());
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), Ok(()));
}

/// Says whether a runtime's lock can be taken while it is dropped.
struct Locks(Buffer, Arc<Queue>, std::sync::mpsc::Sender<bool>);

impl Drop for Locks {
    fn drop(&mut self) {
        let (view, queue) = (self.0.0.clone(), self.1.clone());
        let (done, is_done) = channel();
        // On another thread, so that a lock that is held fails the test instead of hanging it.
        std::thread::spawn(move || {
            drop(view.core.lock());
            queue.is_idle();
            let _ = done.send(());
        });
        let _ = self.2.send(is_done.recv_timeout(PATIENCE / 20).is_ok());
    }
}

#[test]
fn values_of_the_user_end_outside_the_locks_also_when_a_command_is_refused() {
    let (world, buffer) = (World::new(1), Buffer::new(8));
    let queue = world.in_order_queue(0);
    let (tell, was_free) = channel();
    let locks = || Locks(buffer.clone(), queue.queue.clone(), tell.clone());

    world.recorder.refuse_command(1);
    assert!(queue.group().update(&buffer).hold(locks()).try_kernel("refused").is_err());
    assert!(was_free.recv_timeout(PATIENCE).unwrap(), "refused");

    world.recorder.set_mode(oxisycl_backend_testing::recording::CompletionMode::AtOnce);
    queue.group().update(&buffer).hold(locks()).kernel("at once");
    assert!(was_free.recv_timeout(PATIENCE).unwrap(), "completed at once");

    world.recorder.set_mode(oxisycl_backend_testing::recording::CompletionMode::Manual);
    queue.group().update(&buffer).hold(locks()).kernel("later");
    world.complete("later");
    assert!(was_free.recv_timeout(PATIENCE).unwrap(), "completed later");

    let failing = queue.update("failing", &buffer);
    world.lose("failing");
    assert!(failing.has_failed());
    assert!(queue.group().read(&buffer).hold(locks()).try_kernel("lost").is_err());
    assert!(was_free.recv_timeout(PATIENCE).unwrap(), "not even enqueued");
}
