//! Launches of kernels whose code is not loaded, on devices that load code only while no kernel runs. Each world checks that none did.

use std::any::{TypeId, type_name};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use oxisycl_backend::{ArgumentBlock, BackendError, Command, Device, KernelCommand};
use oxisycl_backend_testing::recording::{CompletionMode, RecordingConfig};
use oxisycl_image::{
    DeviceImage, Form, ImageTarget, KernelDescriptor, KernelEntry, KernelId, ParameterLayout, encode_bundle,
};
use oxisycl_runtime::graph::{AsyncErrors, Node, Unloaded};
use oxisycl_runtime::program::{Code, KernelKey, Programs};
use oxisycl_runtime::schedule::Queue;
use oxisycl_runtime::{Error, Result};
use oxisycl_types::{ErrorCode, HostChunk, LaunchRange};

use crate::support::{Buffer, Group, PATIENCE, TestQueue, World, eventually};

/// Longer than commands are held back for a load that has to wait for one that does not end.
const LONG: Duration = Duration::from_millis(60);
const N_KERNELS: usize = if cfg!(miri) { 4 } else { 64 };

unsafe fn entry(_: *const u8, _: &LaunchRange, _: &HostChunk) {}

/// A kernel of the tests.
fn descriptor(name: &'static str, number: u8) -> KernelDescriptor {
    KernelDescriptor {
        id: KernelId { type_id: TypeId::of::<()>(), form: [Form::Single, Form::Range(1)][usize::from(number % 2)] },
        type_name: type_name::<()>(),
        name: Some(name),
        location: Location::caller(),
        parameters: ParameterLayout { size: 4, align: 4 },
        arguments: None,
        stated: oxisycl_image::StatedNeeds::NONE,
        host_entry: entry,
    }
}

/// A world whose devices load code only while they are quiet, with images of kernels.
struct Machine {
    programs: Vec<Programs>,
    world: World,
}

impl Machine {
    fn new() -> Self {
        Self::with(RecordingConfig::new(1))
    }

    fn with(config: RecordingConfig) -> Self {
        let config = config.with_images(&[ImageTarget::Ptx { sm: 80 }]).with_waiting_loads();
        Self { programs: (0..N_KERNELS).map(|_| programs()).collect(), world: World::with(config) }
    }

    /// Records a launch of the kernel of that number.
    fn launch<'q>(&self, queue: &'q TestQueue, number: usize, name: &'static str) -> Result<Group<'q>> {
        launch(&self.programs[number], queue, name)
    }

    fn n_loads(&self) -> usize {
        self.world.recorder.loads().len()
    }
}

/// Has one kernel: each is a program of its own.
fn programs() -> Programs {
    let kernel = descriptor("", 0);
    let type_id = KernelKey::new(kernel.id.type_id, kernel.id.form).type_id;
    let entry = KernelEntry::new("symbol", type_id, kernel.id.form, kernel.parameters, kernel.type_name);
    let image = DeviceImage {
        target: ImageTarget::Ptx { sm: 80 },
        kernels: vec![entry],
        build_options: String::new(),
        unsupported: Vec::new(),
        sites: Vec::new(),
        code: b"code".to_vec(),
    };
    static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let bytes = BYTES.get_or_init(|| encode_bundle(&[image]).unwrap());
    let programs = Programs::new();
    // SAFETY: the bytes are never freed; the recording backend runs no code.
    unsafe { programs.register(bytes.as_ptr(), bytes.len()) };
    programs
}

/// Records a launch as the handler does, of a kernel that is to fit code of any kind.
fn launch<'q>(programs: &Programs, queue: &'q TestQueue, name: &'static str) -> Result<Group<'q>> {
    launch_fitting(programs, queue, name, || Ok(()))
}

fn launch_fitting<'q>(
    programs: &Programs,
    queue: &'q TestQueue,
    name: &'static str,
    fits: impl FnOnce() -> Result + Send + 'static,
) -> Result<Group<'q>> {
    let descriptor = descriptor(name, 0);
    let mut group = queue.group();
    let code = match programs.code(&queue.device, &descriptor)? {
        Code::Ready(code) => Some(code),
        Code::Unloaded(load) => {
            group.group.unloaded.push((0, Unloaded { load, fit: Box::new(|_, _| fits()) }));
            None
        }
    };
    let arguments = ArgumentBlock::new(&0u32);
    let command = KernelCommand { descriptor, code, native: None, arguments, range: LaunchRange::SINGLE, group: None };
    Ok(group.command(Command::from(command)))
}

#[test]
fn an_idle_device_loads_at_once_and_a_refusal_is_an_error_of_the_launch() {
    let machine = Machine::new();
    let queue = machine.world.queue(0);
    let refusal = BackendError::Driver { call: "load", code: 1, name: "refused".to_owned() };
    machine.world.recorder.refuse_load(refusal);
    let error = machine.launch(&queue, 0, "refused").map(drop).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Build);
    machine.launch(&queue, 1, "taken").unwrap().submit().unwrap();
    assert!(machine.world.has("taken"));
    assert_eq!(machine.n_loads(), 2);
}

#[test]
fn a_first_launch_behind_a_running_kernel_is_loaded_when_that_has_ended() {
    for _ in 0..if cfg!(miri) { 2 } else { 100 } {
        let machine = Machine::new();
        let (world, queue) = (&machine.world, machine.world.queue(0));
        queue.group().kernel("running");
        let node = machine.launch(&queue, 0, "new").unwrap().submit().unwrap();
        assert!(!world.has("new") && machine.n_loads() == 0);
        // Whatever the thread does that the kernel may wait for.
        world.complete("running");
        eventually(|| world.has("new"));
        world.complete("new");
        assert!(node.has_succeeded() && machine.n_loads() == 1);
    }
}

#[test]
fn loaded_kernels_and_copies_go_on_behind_a_kernel_that_does_not_end() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    machine.launch(&queue, 0, "loaded").unwrap().submit().unwrap();
    world.complete("loaded");
    queue.group().kernel("running");
    let node = machine.launch(&queue, 1, "new").unwrap().submit().unwrap();
    thread::sleep(Duration::from_millis(3));
    let buffer = Buffer::new(4).initialized();
    let after = machine.launch(&queue, 0, "loaded again").unwrap().read(&buffer).submit().unwrap();
    // A copy is not held back.
    assert_eq!(world.copies().len(), 1);
    world.recorder.complete(world.copies()[0].0);
    eventually(|| world.has("loaded again"));
    world.complete("loaded again");
    eventually(|| after.has_succeeded());
    thread::sleep(LONG);
    assert!(!node.is_handed_over() && machine.n_loads() == 1, "no time-out loads all the same");
    world.complete("running");
    eventually(|| world.has("new"));
}

#[test]
fn many_new_kernels_behind_a_running_one_are_loaded_together() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    queue.group().kernel("running");
    let nodes: Vec<Arc<Node>> =
        (0..N_KERNELS).map(|number| machine.launch(&queue, number, "new").unwrap().submit().unwrap()).collect();
    assert_eq!((world.recorder.len(), machine.n_loads()), (1, 0));
    // A second launch of one that is being loaded waits for the same load.
    let again = machine.launch(&queue, 0, "again").unwrap().submit().unwrap();
    world.complete("running");
    eventually(|| {
        world.recorder.complete_all();
        nodes.iter().chain([&again]).all(|node| node.has_succeeded())
    });
    assert_eq!(machine.n_loads(), N_KERNELS);
}

#[test]
fn an_in_order_queue_keeps_its_order() {
    for config in [RecordingConfig::new(1), RecordingConfig::new(1).keeping_order()] {
        let machine = Machine::with(config);
        let (world, queue) = (&machine.world, machine.world.in_order_queue(0));
        machine.launch(&queue, 0, "loaded").unwrap().submit().unwrap();
        world.complete("loaded");
        queue.group().kernel("running");
        machine.launch(&queue, 1, "new").unwrap().submit().unwrap();
        let last = machine.launch(&queue, 0, "last").unwrap().submit().unwrap();
        thread::sleep(LONG);
        assert!(!world.has("last"));
        world.complete("running");
        eventually(|| world.has("last"));
        assert!(world.find("new") < world.find("last"));
        eventually(|| {
            world.recorder.complete_all();
            last.has_succeeded()
        });
    }
}

#[test]
fn what_depends_on_a_delayed_launch_waits_for_it() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    let buffer = Buffer::new(4).initialized();
    queue.group().kernel("running");
    let writer = machine.launch(&queue, 0, "new").unwrap().update(&buffer).submit().unwrap();
    let reader = queue.read("reader", &buffer);
    thread::sleep(LONG);
    assert!(!world.has("reader"));
    eventually(|| {
        world.recorder.complete_all();
        reader.has_succeeded()
    });
    assert!(writer.has_succeeded() && world.waits("reader") == ["new"]);
}

/// A queue whose errors are counted.
fn counting_queue(world: &World) -> (TestQueue, Arc<AtomicUsize>) {
    let n_errors = Arc::new(AtomicUsize::new(0));
    let counted = n_errors.clone();
    let count = move |errors: Vec<Error>| _ = counted.fetch_add(errors.len(), Ordering::Relaxed);
    let device: Arc<dyn Device> = world.devices[0].clone();
    let errors = AsyncErrors::new(Some(Arc::new(count)));
    let queue = Queue::new(&world.context, &device, oxisycl_backend::QueueOptions::default(), errors).unwrap();
    (TestQueue { queue, device }, n_errors)
}

#[test]
fn a_refusal_of_a_delayed_launch_reaches_event_and_queue_once() {
    let machine = Machine::new();
    let world = &machine.world;
    let (queue, n_errors) = counting_queue(world);
    let buffer = Buffer::new(4).initialized();
    queue.group().kernel("running");
    let refusal = BackendError::Driver { call: "load", code: 1, name: "refused".to_owned() };
    world.recorder.refuse_load(refusal);
    let node = machine.launch(&queue, 0, "new").unwrap().update(&buffer).submit().unwrap();
    let reader = queue.read("reader", &buffer);
    eventually(|| {
        world.recorder.complete_all();
        reader.is_complete()
    });
    let error = Error::from(&node.failure().unwrap());
    assert_eq!(error.code(), ErrorCode::Build);
    let expected = "kernel \"new\" on device \"recording device 0\": its image for sm_80 was not loaded: load failed with refused (1)";
    assert_eq!(error.to_string(), expected);
    assert!(reader.did_not_run() && node.did_not_run() && !world.has("new"));
    queue.queue.shared().errors.deliver();
    queue.queue.shared().errors.deliver();
    assert_eq!(n_errors.load(Ordering::Relaxed), 2, "of the launch, and of what depends on it");
    // The code is known to be refused now.
    assert_eq!(machine.launch(&queue, 0, "later").map(drop).unwrap_err().code(), ErrorCode::Build);
}

#[test]
fn limits_of_the_code_are_checked_when_it_is_there() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    queue.group().kernel("running");
    let refuse = || Err(Error::new(ErrorCode::NdRange, "kernel \"new\": its groups are too large"));
    let node = launch_fitting(&machine.programs[0], &queue, "new", refuse).unwrap().submit().unwrap();
    let other = machine.launch(&queue, 0, "other").unwrap().submit().unwrap();
    eventually(|| {
        world.recorder.complete_all();
        other.has_succeeded() && node.is_complete()
    });
    let error = Error::from(&node.failure().unwrap());
    assert_eq!(
        (error.code(), error.to_string()),
        (ErrorCode::NdRange, "kernel \"new\": its groups are too large".to_owned())
    );
    assert!(!world.has("new"));
}

#[test]
fn a_first_launch_starts_although_another_thread_keeps_the_device_busy() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    let busy = world.queue(0);
    busy.group().kernel("first");
    let node = machine.launch(&queue, 0, "new").unwrap().submit().unwrap();
    let began = Instant::now();
    while !world.has("new") {
        assert!(began.elapsed() < PATIENCE, "it never starts");
        // The next one is always there before the one before it ends.
        busy.group().kernel("next");
        thread::sleep(Duration::from_micros(300));
        if let Some(first) = world.recorder.ready().first() {
            world.recorder.complete(*first);
        }
    }
    eventually(|| {
        world.recorder.complete_all();
        node.has_succeeded() && world.recorder.pending().is_empty()
    });
}

#[test]
fn threads_launch_new_and_loaded_kernels_at_the_same_time() {
    let machine = Machine::new();
    let (machine, is_over) = (&machine, &AtomicBool::new(false));
    thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                scope.spawn(move || {
                    let queue = machine.world.queue(0);
                    let of = |round: usize| (thread + 7 * round) % N_KERNELS;
                    let launch = |round| machine.launch(&queue, of(round), "kernel").unwrap().submit().unwrap();
                    (0..N_KERNELS).map(launch).collect::<Vec<_>>()
                })
            })
            .collect();
        let ender = scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                machine.world.recorder.complete_all();
                thread::yield_now();
            }
        });
        let nodes: Vec<Arc<Node>> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        eventually(|| nodes.iter().all(|node| node.has_succeeded()));
        is_over.store(true, Ordering::Relaxed);
        ender.join().unwrap();
    });
    assert!(machine.n_loads() <= N_KERNELS);
}

#[test]
fn a_call_that_loads_waits_and_others_go_on() {
    let machine = Machine::new();
    let (world, queue) = (&machine.world, machine.world.queue(0));
    queue.group().kernel("running");
    thread::scope(|scope| {
        let loading = scope.spawn(|| machine.programs[0].load_all(&world.devices[0]).unwrap());
        thread::sleep(LONG);
        assert!(!loading.is_finished() && machine.n_loads() == 0);
        let other = queue.group().kernel("other");
        eventually(|| world.has("other"));
        world.complete("other");
        eventually(|| other.has_succeeded());
        world.complete("running");
        assert_eq!(loading.join().unwrap(), 1);
    });
    world.recorder.set_mode(CompletionMode::AtOnce);
    let node = machine.launch(&queue, 0, "loaded").unwrap().submit().unwrap();
    // The thread that has loaded may still be about to let others go on.
    eventually(|| node.has_succeeded());
    assert_eq!(machine.n_loads(), 1);
}
