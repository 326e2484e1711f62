//! The end of the process with work pending, statics, `fork`, and `panic = "abort"`.

#[path = "support/child.rs"]
mod child_process;
mod support;

use std::cell::RefCell;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oxisycl::FinalData;
use oxisycl::prelude::*;

use child_process::{role, run, run_command};
use support::{Gate, eventually, in_order, simulated};

/// What this program does when one of its tests starts it again.
#[test]
fn child() {
    match role().as_deref() {
        None => {}
        Some("returns_from_main") => leave_work_pending(),
        Some("exits") => {
            leave_work_pending();
            std::process::exit(7);
        }
        Some("exits_in_a_storm") => exit_in_a_storm(),
        Some("exits_in_a_host_task") => exit_in_a_host_task(),
        Some("statics") => fill_statics(),
        Some("fails_silently") => fail_silently(),
        Some("fails_and_drops_the_queue") => fail_and_drop_the_queue(),
        Some("fails_and_waits") => fail_and_wait(),
        Some("forks_before_use") => fork_before_use(),
        Some("forks_after_use") => fork_after_use(),
        Some("forks_with_work_pending") => fork_with_work_pending(),
        Some(other) => panic!("no role {other}"),
    }
}

/// Commands that never end, and commands that wait for them, on all kinds of devices and queues.
fn leave_work_pending() {
    static GATE: Gate = Gate::new();
    let (simulated, _control) = simulated(1);
    for device in [Device::default().unwrap(), simulated[0].clone()] {
        let queue = in_order(&device);
        queue.single_task(|_| GATE.pass()).unwrap();
        let buffer = Buffer::from_vec(vec![1; 100], 100).unwrap();
        queue.fill(&buffer, 2).unwrap();
        let task = Queue::new(&device).unwrap().submit(|cg| cg.host_task(|_| GATE.pass()));
        let blocked = Queue::new(&device).unwrap().submit(|cg| {
            cg.depends_on(&task.unwrap());
            let data = cg.access(&buffer, ReadWrite);
            cg.parallel_for(100, move |item| data.set(item, 3))
        });
        std::mem::forget((blocked.unwrap(), buffer));
    }
    eventually("the kernels run", || GATE.n_entered() >= 3);
}

#[test]
fn main_may_return_with_work_pending() {
    let ended = run("returns_from_main", &[]).succeeded();
    assert!(ended.elapsed < Duration::from_secs(30), "{ended:#?}");
    let reports = ended.reports();
    assert_eq!(reports.len(), 1, "{ended:#?}");
    assert!(reports[0].contains("the process ends while") && reports[0].contains("commands are pending"), "{reports:?}");
}

#[test]
fn the_process_may_exit_with_work_pending() {
    let ended = run("exits", &[]);
    assert_eq!(ended.status.code(), Some(7), "{ended:#?}");
    assert_eq!(ended.reports().len(), 1, "{ended:#?}");
}

fn exit_in_a_storm() {
    let (simulated, _control) = simulated(1);
    let host = Device::default().unwrap();
    for i in 0..4 {
        let queue = Queue::new(if i == 3 { &simulated[0] } else { &host }).unwrap();
        std::thread::spawn(move || {
            let buffer = Buffer::from_vec(vec![1u64; 1000], 1000).unwrap();
            loop {
                let submitted = queue.submit(|cg| {
                    let data = cg.access(&buffer, ReadWrite);
                    cg.parallel_for(1000, move |item| data.update(item, |x| x + 1))
                });
                submitted.unwrap();
                queue.submit(|cg| cg.host_task(|_| {})).unwrap();
            }
        });
    }
    std::thread::sleep(Duration::from_millis(30));
    std::process::exit(3);
}

#[test]
fn the_process_may_exit_while_every_thread_works() {
    for _ in 0..5 {
        let ended = run("exits_in_a_storm", &[]);
        assert_eq!(ended.status.code(), Some(3), "{ended:#?}");
    }
}

fn exit_in_a_host_task() {
    let queue = Queue::default().unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| std::process::exit(5))).unwrap();
    task.wait().unwrap();
}

#[test]
fn a_host_task_may_exit_the_process() {
    let ended = run("exits_in_a_host_task", &[]);
    assert_eq!(ended.status.code(), Some(5), "{ended:#?}");
}

static STATIC: OnceLock<(Context, Queue, Buffer<i32, 1>, Event)> = OnceLock::new();

thread_local! {
    static LOCAL: RefCell<Option<(Queue, Buffer<i32, 1>)>> = const { RefCell::new(None) };
}

fn fill_statics() {
    let device = Device::default().unwrap();
    let context = Context::new(std::slice::from_ref(&device)).unwrap();
    let queue = Queue::builder().context(&context).build().unwrap();
    let buffer = Buffer::from_vec(vec![1; 10], 10).unwrap();
    let event = queue.fill(&buffer, 5).unwrap();
    let (_, queue, buffer, event) = STATIC.get_or_init(|| (context, queue, buffer, event));
    queue.fill(buffer, 6).unwrap();
    event.wait().unwrap();
    let local = Buffer::from_vec(vec![1; 10], 10).unwrap();
    local.set_final_data(FinalData::call(|data| println!("local={:?}", data.map(|data| data[0]))));
    queue.fill(&local, 7).unwrap();
    LOCAL.set(Some((queue.clone(), local)));
    // Another thread has some of its own, which end with it.
    std::thread::spawn(|| {
        let (_, queue, buffer, _) = STATIC.get().unwrap();
        LOCAL.set(Some((queue.clone(), buffer.clone())));
    })
    .join()
    .unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [6; 10]);
    queue.wait().unwrap();
}

#[test]
fn queues_and_buffers_may_be_in_statics_and_thread_locals() {
    let ended = run("statics", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
}

fn fail_silently() {
    let queue = Queue::default().unwrap();
    let event = queue.submit(|cg| {
        cg.name("unseen");
        cg.parallel_for(1, |_| panic!("nobody asked"))
    });
    let event = event.unwrap();
    let task = queue.submit(|cg| cg.host_task(|_| panic!("nobody asked either"))).unwrap();
    eventually("both end", || event.is_complete() && task.is_complete());
    std::mem::forget(queue);
}

#[test]
fn an_error_that_nobody_saw_is_one_line_at_the_end_of_the_process() {
    let ended = run("fails_silently", &[]).succeeded();
    let reports = ended.reports();
    assert_eq!(reports.len(), 2, "{ended:#?}");
    let of_kernel: Vec<_> = reports.iter().filter(|line| line.contains("nobody asked") && !line.contains("either")).collect();
    assert_eq!(of_kernel.len(), 1, "{ended:#?}");
    for part in ["kernel error", "\"unseen\"", "work-item [0]", "process.rs:"] {
        assert!(of_kernel[0].contains(part), "{part}: {of_kernel:?}");
    }
    assert!(reports.iter().any(|line| line.contains("host task") && line.contains("nobody asked either")), "{ended:#?}");
}

fn fail_and_drop_the_queue() {
    for i in 0..20 {
        let queue = Queue::default().unwrap();
        queue.submit(|cg| cg.host_task(move |_| panic!("error number {i}."))).unwrap();
    }
    eventually("all end", || oxisycl::observe::counters().live_nodes() == 0);
}

#[test]
fn an_error_of_a_dropped_queue_without_a_handler_is_one_line() {
    let ended = run("fails_and_drops_the_queue", &[]).succeeded();
    assert_eq!(ended.reports().len(), 20, "{ended:#?}");
    for i in 0..20 {
        let text = format!("error number {i}.");
        assert_eq!(ended.reports().iter().filter(|line| line.contains(&text)).count(), 1, "{i}: {ended:#?}");
    }
}

fn fail_and_wait() {
    let queue = Queue::default().unwrap();
    queue.single_task(|_| panic!("told by the queue")).unwrap();
    queue.wait().unwrap_err();
    let event = queue.single_task(|_| panic!("told by the event")).unwrap();
    event.wait().unwrap_err();
    queue.single_task(|_| panic!("taken")).unwrap().wait().unwrap_err();
    queue.take_errors();
    drop(queue);
}

#[test]
fn an_error_that_a_wait_returned_is_not_printed_again() {
    let ended = run("fails_and_waits", &[]).succeeded();
    assert!(ended.reports().is_empty(), "{ended:#?}");
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
    let buffer = Buffer::from_vec(vec![1; 100], 100)?;
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
    let buffer = Buffer::from_vec(vec![1; 4], 4).unwrap();
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

/// A program of its own, since a test cannot be built with `panic = "abort"`. Its kernel panics.
const ABORTING: &str = r#"
fn main() -> oxisycl::Result<()> {
    let queue = oxisycl::Queue::default()?;
    let submitted = queue.submit(|cg| {
        cg.name("fatal");
        cg.parallel_for([4, 5], |item| assert!(item.id() != oxisycl::Id::from([2, 3]), "as it must"))
    });
    submitted?.wait()
}
"#;

#[test]
fn with_panic_abort_kernel_and_work_item_are_printed_first() {
    static N_BUILDS: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(N_BUILDS.fetch_add(1, Ordering::SeqCst), 0);
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abort");
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"aborting\"\nedition = \"2024\"\n[workspace]\n[profile.dev]\npanic = \"abort\"\ndebug = false\n\
         [dependencies]\noxisycl = {{ path = {library:?}, default-features = false }}\n"
    );
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    std::fs::write(folder.join("src/main.rs"), ABORTING).unwrap();
    // The same versions as everywhere, so that nothing needs to be fetched.
    std::fs::copy(library.join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--offline", "--quiet"]).current_dir(&folder).env("CARGO_TARGET_DIR", folder.join("target"));
    run_command(build).succeeded();
    let mut program = Command::new(folder.join("target/debug/aborting"));
    program.env("RUST_BACKTRACE", "0");
    let ended = run_command(program);
    assert!(ended.status.code().is_none(), "ends with a signal: {ended:#?}");
    let reports = ended.reports();
    assert_eq!(reports.len(), 1, "{ended:#?}");
    assert!(reports[0].contains("panic in kernel \"fatal\"") && reports[0].contains("[2, 3]"), "{ended:#?}");
    let position = |text: &str| ended.stderr.find(text).unwrap_or_else(|| panic!("{text}: {ended:#?}"));
    assert!(position("oxisycl:") < position("as it must"), "{ended:#?}");
}
