//! Processes that are forked before, after and while the library is used.

#[path = "support/child.rs"]
mod child_process;
mod support;

use oxisycl::prelude::*;

use child_process::{role, run};
use support::{Gate, eventually, simulated};

/// What this program does when one of its tests starts it again: a process that forks should have no other tests in it.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("forks_before_use") => fork_before_use(),
        Some("forks_after_use") => fork_after_use(),
        Some("forks_with_work_pending") => fork_with_work_pending(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Runs `in_child` in a forked process, which says by its exit status whether all was well. A hang ends it with a signal.
fn forked(in_child: impl FnOnce() -> bool) {
    // SAFETY: the child only runs code of this test and of the library, which has to bear it, and then ends without destructors.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        // SAFETY: sets a timer that ends this process.
        unsafe { libc::alarm(20) };
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(in_child)).unwrap_or(false);
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(if good { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above, with a valid place for its status.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "the child ended with status {status:#x}");
}

/// Uses all that a process can use.
fn use_everything(queue: &Queue) -> oxisycl::Result<i32> {
    let buffer = Buffer::from_vec(vec![1; 100])?;
    queue.submit(|cg| {
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(100, move |item| data.update(item, |x| x + 1))
    })?;
    let task = queue.submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| data.slice_mut(scope)[0] += 1)
    })?;
    task.wait()?;
    queue.wait()?;
    Ok(buffer.to_vec()?[0])
}

fn fork_before_use() {
    forked(|| use_everything(&Queue::default().unwrap()).is_ok_and(|first| first == 3));
    // Devices have been listed, nothing has run.
    let queue = Queue::default().unwrap();
    forked(|| use_everything(&queue).is_ok_and(|first| first == 3));
    assert_eq!(use_everything(&queue).unwrap(), 3);
}

fn fork_after_use() {
    let queue = Queue::default().unwrap();
    assert_eq!(use_everything(&queue).unwrap(), 3);
    let old = queue.single_task(|_| {}).unwrap();
    old.wait().unwrap();
    forked(|| {
        let says_why = |error: Error| {
            println!("in the child: {error:?}");
            error.code() == ErrorCode::Runtime && format!("{error:?}").contains("forked")
        };
        old.wait().unwrap();
        queue.wait().unwrap();
        let task = queue.submit(|cg| cg.host_task(|_| {}));
        use_everything(&queue).is_err_and(says_why)
            && use_everything(&Queue::default().unwrap()).is_err_and(says_why)
            && task.and_then(|task| task.wait()).is_err_and(says_why)
    });
    // The parent is as it was.
    assert_eq!(use_everything(&queue).unwrap(), 3);
}

fn fork_with_work_pending() {
    static GATE: Gate = Gate::new();
    let (simulated, _control) = simulated(1);
    let queues = [Queue::default().unwrap(), Queue::new(&simulated[0]).unwrap()];
    let buffer = Buffer::from_vec(vec![1; 4]).unwrap();
    let events: Vec<Event> = queues.iter().map(|queue| queue.single_task(|_| GATE.pass()).unwrap()).collect();
    let task = queues[0].submit(|cg| {
        let mut data = cg.access_host(&buffer, ReadWrite);
        cg.host_task(move |scope| {
            GATE.pass();
            data.slice_mut(scope)[0] = 5;
        })
    });
    let task = task.unwrap();
    eventually("all three are at the gate", || GATE.n_entered() == 3);
    forked(|| {
        let waits = [
            events[0].wait(),
            events[1].wait(),
            task.wait(),
            queues[0].wait(),
            queues[1].wait(),
            buffer.to_vec().map(drop),
            buffer.host_access(Write).map(drop),
        ];
        println!("in the child: {waits:#?}");
        waits.iter().all(|wait| wait.as_ref().is_err_and(|error| error.to_string().contains("forked")))
    });
    GATE.open();
    for queue in &queues {
        queue.wait().unwrap();
    }
    assert_eq!(buffer.into_vec().unwrap(), [5, 1, 1, 1]);
}

#[test]
fn a_process_forked_before_the_first_command_works() {
    assert!(run("forks_before_use", &[]).succeeded().reports().is_empty());
}

#[test]
fn commands_in_a_process_forked_after_the_first_command_are_errors() {
    let ended = run("forks_after_use", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}

#[test]
fn a_process_forked_with_work_pending_gets_errors_instead_of_waiting_for_ever() {
    let ended = run("forks_with_work_pending", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}
