//! What the graph tests share: devices that only record, buffers, and command groups in few words.

#[path = "watchdog.rs"]
pub(crate) mod watchdog;

use std::any::{Any, TypeId};
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oxisycl_backend::{
    ArgumentBlock, Command, DependencyKind, Device, KernelCommand, LoadedKernel, MemoryId, QueueOptions,
};
use oxisycl_backend_testing::recording::{
    CommandKind, CompletionMode, Recorded, Recorder, RecordingBackend, RecordingConfig,
};
use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_runtime::graph::{AsyncErrors, KeptAlive, Node};
use oxisycl_runtime::memory::BufferCore;
use oxisycl_runtime::runtime::{Runtime, Wiring, get_or_init};
use oxisycl_runtime::schedule::{BufferView, CommandGroup, Context, HostAccess, Queue};
use oxisycl_runtime::state::Region;
use oxisycl_runtime::{Error, Result};
use oxisycl_types::AccessMode::{Read, ReadWrite, Write};
use oxisycl_types::{AccessMode, BackendKind, HostChunk, LaunchRange};

/// Nothing may take longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 1800 } else { 60 });
/// Long enough for something that must not happen.
pub(crate) const A_WHILE: Duration = Duration::from_millis(20);

/// The runtime of the process. Its host device only lends its memory.
pub(crate) fn runtime() -> &'static Runtime {
    let wiring = || {
        let host = RecordingBackend::new(RecordingConfig::new(0).with_host().mode(CompletionMode::AtOnce));
        Ok(Wiring { backends: vec![(BackendKind::Host, Box::new(host))], in_kernel: || false })
    };
    // SAFETY: no kernels run in these tests, and the device's memory is the host's.
    unsafe { get_or_init(wiring) }.expect("the environment of the tests is in order")
}

/// Devices, a context and a recorder of a test's own.
pub(crate) struct World {
    pub(crate) recorder: Recorder,
    pub(crate) devices: Vec<Arc<dyn Device>>,
    pub(crate) context: Arc<Context>,
    _watchdog: watchdog::Watchdog,
}

impl World {
    /// That many devices, which can copy to each other.
    pub(crate) fn new(n_devices: usize) -> Self {
        Self::with(RecordingConfig::new(n_devices))
    }

    pub(crate) fn with(config: RecordingConfig) -> Self {
        runtime();
        let backend = RecordingBackend::new(config);
        let devices = backend.devices();
        let context = Context::new(devices.clone(), None);
        Self { _watchdog: watchdog::start(backend.recorder()), recorder: backend.recorder(), devices, context }
    }

    /// Another context of the same devices.
    pub(crate) fn other_context(&self) -> Arc<Context> {
        Context::new(self.devices.clone(), None)
    }

    pub(crate) fn queue(&self, device: usize) -> TestQueue {
        self.queue_in(&self.context, device, QueueOptions::default())
    }

    pub(crate) fn in_order_queue(&self, device: usize) -> TestQueue {
        self.queue_in(&self.context, device, QueueOptions { in_order: true, ..QueueOptions::default() })
    }

    pub(crate) fn queue_in(&self, context: &Arc<Context>, device: usize, options: QueueOptions) -> TestQueue {
        let device = self.devices[device].clone();
        // A handler that throws the errors away keeps them from standard error.
        let errors = AsyncErrors::new(Some(Arc::new(|_| {})));
        let queue = Queue::new(context, &device, options, errors).expect("a recording device makes queues");
        TestQueue { queue, device }
    }

    pub(crate) fn memory(&self, device: usize) -> MemoryId {
        self.devices[device].info().memory.id
    }

    /// The position of the only command of that name.
    #[track_caller]
    pub(crate) fn find(&self, label: &str) -> usize {
        let commands = self.recorder.commands();
        let mut found = (0..commands.len()).filter(|&index| commands[index].label == label);
        match (found.next(), found.next()) {
            (Some(index), None) => index,
            _ => panic!("not one command \"{label}\" in {:?}", labels(&commands)),
        }
    }

    /// Whether a command of that name was handed over.
    pub(crate) fn has(&self, label: &str) -> bool {
        self.recorder.commands().iter().any(|command| command.label == label)
    }

    /// The names of the commands that the command of that name waits for, sorted.
    #[track_caller]
    pub(crate) fn waits(&self, label: &str) -> Vec<String> {
        let commands = self.recorder.commands();
        let list = commands[self.find(label)].waits_for();
        let mut names: Vec<String> = list.into_iter().map(|index| commands[index].label.clone()).collect();
        names.sort();
        names
    }

    /// How the command of that name depends on another one; `None` if not.
    #[track_caller]
    pub(crate) fn edge(&self, earlier: &str, later: &str) -> Option<DependencyKind> {
        let earlier = self.find(earlier);
        let later = self.recorder.command(self.find(later));
        later.dependencies.iter().find(|(index, _)| *index == earlier).map(|(_, kind)| *kind)
    }

    /// All copies so far with their positions.
    pub(crate) fn copies(&self) -> Vec<(usize, Recorded)> {
        let commands = self.recorder.commands().into_iter().enumerate();
        commands.filter(|(_, command)| command.kind == CommandKind::Copy).collect()
    }

    /// Ends the command of that name.
    #[track_caller]
    pub(crate) fn complete(&self, label: &str) {
        self.recorder.complete(self.find(label));
    }

    /// Makes the command of that name fail.
    #[track_caller]
    pub(crate) fn lose(&self, label: &str) {
        self.recorder.lose(self.find(label));
    }

    /// Does something that needs the devices to answer.
    pub(crate) fn at_once<R>(&self, f: impl FnOnce() -> R) -> R {
        self.recorder.complete_all();
        self.recorder.set_mode(CompletionMode::AtOnce);
        let result = f();
        self.recorder.set_mode(CompletionMode::Manual);
        result
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What is pending holds buffers and queues, which hold the recorder.
        self.recorder.complete_all();
        if !std::thread::panicking() {
            assert_eq!(self.recorder.violations(), [""; 0], "commands used memory that they must not");
            self.recorder.assert_reported();
        }
    }
}

fn labels(commands: &[Recorded]) -> Vec<&str> {
    commands.iter().map(|command| command.label.as_str()).collect()
}

/// A buffer or a view of it.
#[derive(Clone)]
pub(crate) struct Buffer(pub(crate) BufferView);

/// A box of elements of a buffer.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) view: BufferView,
    pub(crate) region: Region,
}

impl From<&Buffer> for Part {
    fn from(buffer: &Buffer) -> Self {
        Self { view: buffer.0.clone(), region: Region::whole(buffer.0.extent) }
    }
}

impl Buffer {
    /// Numbers that nobody has written; one page.
    pub(crate) fn new(n: usize) -> Self {
        Self::with([1, 1, n], None)
    }

    /// Numbers that nobody has written, in pages.
    pub(crate) fn paged(n: usize, page: usize) -> Self {
        Self::with([1, 1, n], Some([1, 1, page]))
    }

    /// An extent and a page size in elements of four bytes.
    pub(crate) fn with(extent: [usize; 3], page: Option<[usize; 3]>) -> Self {
        let in_bytes = |[x, y, z]: [usize; 3]| [x, y, z * 4];
        // SAFETY: the tests look at the buffer's state, and leave changing it to the runtime.
        let core = unsafe { BufferCore::new(in_bytes(extent), page.map(in_bytes), 64) }.expect("a small buffer");
        Self(BufferView::whole(core, extent, 4))
    }

    /// The buffer with the numbers 0, 1, 2 and so on, which lie on the host.
    pub(crate) fn initialized(self) -> Self {
        let core = &self.0.core;
        let n = core.layout.size() / 4;
        let mut numbers: Vec<u64> = vec![0; n.div_ceil(2)];
        let pointer = NonNull::new(numbers.as_mut_ptr()).expect("a vector's pointer").cast::<u8>();
        for index in 0..n {
            // SAFETY: the vector has room for `n` numbers of four bytes.
            unsafe { pointer.cast::<u32>().add(index).write(index as u32) };
        }
        let host = runtime().host();
        // SAFETY: the vector owns memory of the buffer's size, which lives as long as the owner and is used by nobody else.
        unsafe { core.lock().adopt(core, host, MemoryId::HOST, pointer, Box::new(numbers), true) }.expect("room");
        self
    }

    /// The elements from `begin` to `end` of a one-dimensional buffer.
    pub(crate) fn part(&self, begin: usize, end: usize) -> Part {
        self.region(Region::new([0, 0, begin], [1, 1, end]))
    }

    pub(crate) fn region(&self, region: Region) -> Part {
        Part { view: self.0.clone(), region }
    }

    /// The bytes from `first` on as a view of its own, with elements of that size.
    pub(crate) fn reinterpret(&self, first: usize, extent: [usize; 3], element_size: usize) -> Self {
        let mut view = self.0.clone();
        (view.byte_offset, view.extent, view.element_size) = (self.0.byte_offset + first, extent, element_size);
        Self(view)
    }

    /// A sub-buffer of the elements from `begin` to `end` of a one-dimensional buffer.
    pub(crate) fn sub_buffer(&self, begin: usize, end: usize) -> Self {
        let size = self.0.element_size;
        let mut sub = self.reinterpret(begin * size, [1, 1, end - begin], size);
        sub.0.sub_buffer = Some(sub.0.bytes_of(&Region::whole(sub.0.extent)).0);
        sub
    }

    /// The numbers as the host sees them, once the devices answer.
    pub(crate) fn read(&self, world: &World) -> Vec<u32> {
        world.at_once(|| {
            let access = host(self, Read).expect("the data is there");
            let n = self.0.extent.iter().product();
            let numbers = access.pointer().cast::<u32>();
            // SAFETY: the accessor covers the whole buffer, which is dense.
            (0..n).map(|index| unsafe { numbers.add(index).read() }).collect()
        })
    }
}

/// A host accessor on this thread.
pub(crate) fn host(part: impl Into<Part>, mode: AccessMode) -> Result<HostAccess> {
    let part = part.into();
    HostAccess::new(&part.view, &part.region, mode, false)
}

/// A host accessor on a thread of its own, which may have to wait for it.
pub(crate) struct HostThread {
    granted: Receiver<Result<()>>,
    release: Sender<()>,
    thread: JoinHandle<()>,
}

impl HostThread {
    pub(crate) fn start(part: impl Into<Part>, mode: AccessMode) -> Self {
        let part = part.into();
        let (tell, granted) = channel();
        let (release, released) = channel();
        let thread = std::thread::spawn(move || {
            let access = HostAccess::new(&part.view, &part.region, mode, false);
            tell.send(access.as_ref().map(|_| ()).map_err(Error::clone)).expect("the test listens");
            let _ = released.recv();
        });
        Self { granted, release, thread }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.granted.recv_timeout(A_WHILE).is_err()
    }

    pub(crate) fn granted(&self) -> Result<()> {
        self.granted.recv_timeout(PATIENCE).expect("a host accessor that is granted or fails")
    }

    pub(crate) fn release(self) {
        let _ = self.release.send(());
        self.thread.join().expect("no panic on the thread of a host accessor");
    }
}

pub(crate) struct TestQueue {
    pub(crate) queue: Arc<Queue>,
    pub(crate) device: Arc<dyn Device>,
}

/// A command group that is being made.
pub(crate) struct Group<'a> {
    queue: &'a TestQueue,
    pub(crate) group: CommandGroup,
    failed: Option<Error>,
    touched: Vec<Touch>,
}

impl TestQueue {
    pub(crate) fn group(&self) -> Group<'_> {
        Group { queue: self, group: CommandGroup::default(), failed: None, touched: Vec::new() }
    }

    /// Shorthands for groups with one accessor.
    pub(crate) fn read(&self, name: &'static str, part: impl Into<Part>) -> Arc<Node> {
        self.group().read(part).kernel(name)
    }

    /// Reads and writes.
    pub(crate) fn update(&self, name: &'static str, part: impl Into<Part>) -> Arc<Node> {
        self.group().update(part).kernel(name)
    }

    /// Writes without a need for the old contents.
    pub(crate) fn discard(&self, name: &'static str, part: impl Into<Part>) -> Arc<Node> {
        self.group().discard(part).kernel(name)
    }
}

impl Group<'_> {
    pub(crate) fn read(self, part: impl Into<Part>) -> Self {
        self.access(part, Read, false, Change::Nothing)
    }

    pub(crate) fn write(self, part: impl Into<Part>) -> Self {
        self.access(part, Write, false, Change::Nothing)
    }

    pub(crate) fn update(self, part: impl Into<Part>) -> Self {
        self.access(part, ReadWrite, false, Change::Nothing)
    }

    pub(crate) fn discard(self, part: impl Into<Part>) -> Self {
        self.access(part, Write, true, Change::Nothing)
    }

    /// An accessor, and what the kernel really does with its elements.
    pub(crate) fn access(mut self, part: impl Into<Part>, mode: AccessMode, no_init: bool, change: Change) -> Self {
        let Part { view, region } = part.into();
        match view.require(&region, mode, no_init, &self.queue.device) {
            Ok(requirement) => {
                let base = view.core.lock().allocation(requirement.allocation).pointer.as_ptr();
                self.group.requirements.push(requirement);
                self.touched.push(Touch::new(&view, &region, base, change));
            }
            Err(error) => drop(self.failed.get_or_insert(error)),
        }
        self
    }

    pub(crate) fn after(mut self, node: &Arc<Node>) -> Self {
        self.group.depends_on.push(node.clone());
        self
    }

    /// Keeps a value until the command has ended.
    pub(crate) fn hold(mut self, value: impl Any + Send) -> Self {
        self.group.kept_alive.push(KeptAlive::Other(Box::new(value)));
        self
    }

    pub(crate) fn command(mut self, command: Command) -> Self {
        self.group.commands.push(command);
        self
    }

    pub(crate) fn submit(mut self) -> Result<Arc<Node>> {
        match self.failed {
            Some(error) => Err(error),
            // SAFETY: the recording backend runs nothing.
            None => unsafe { self.queue.queue.submit(&mut self.group) },
        }
    }

    #[track_caller]
    pub(crate) fn kernel(self, name: &'static str) -> Arc<Node> {
        self.try_kernel(name).expect("an accepted command group")
    }

    pub(crate) fn try_kernel(mut self, name: &'static str) -> Result<Arc<Node>> {
        let touched = std::mem::take(&mut self.touched);
        let mut arguments = [Touch::NONE; 3];
        arguments[..touched.len()].copy_from_slice(&touched);
        self.command(kernel_of(name, &arguments, None)).submit()
    }

    #[track_caller]
    pub(crate) fn host_task(mut self, work: impl FnOnce() + Send + 'static) -> Arc<Node> {
        self.group.host_task = Some(Box::new(work));
        self.submit().expect("an accepted command group")
    }
}

/// What a kernel does with the elements of an accessor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Change {
    Nothing,
    Set(u32),
    Add(u32),
}

/// Elements of four bytes that a kernel changes.
#[derive(Clone, Copy)]
struct Touch {
    first: *mut u8,
    extent: [usize; 3],
    pitch: [usize; 2],
    change: Change,
}

// SAFETY: an address, which only the kernel uses.
unsafe impl Send for Touch {}
// SAFETY: as above.
unsafe impl Sync for Touch {}

impl Touch {
    const NONE: Self = Self { first: std::ptr::null_mut(), extent: [0; 3], pitch: [0; 2], change: Change::Nothing };

    fn new(view: &BufferView, region: &Region, base: *mut u8, change: Change) -> Self {
        let [_, rows, columns] = view.extent;
        let row = columns * view.element_size;
        let first = region.begin[0] * rows * row + region.begin[1] * row + region.begin[2] * view.element_size;
        let first = base.wrapping_add(view.byte_offset + first);
        Self { first, extent: region.extent(), pitch: [row * rows, row], change }
    }
}

/// Applies up to three changes.
///
/// # Safety
/// The arguments are three of [`Touch`], whose elements are valid and used by nobody else.
unsafe fn touch_entry(arguments: *const u8, _launch: &LaunchRange, _chunk: &HostChunk) {
    // SAFETY: by the contract of this function.
    let touched = unsafe { arguments.cast::<[Touch; 3]>().read() };
    for Touch { first, extent, pitch, change } in touched {
        if change == Change::Nothing {
            continue;
        }
        for x in 0..extent[0] {
            for y in 0..extent[1] {
                for z in 0..extent[2] {
                    let element = first.wrapping_add(x * pitch[0] + y * pitch[1] + z * 4).cast::<u32>();
                    // SAFETY: an element of the accessor's box.
                    let element = unsafe { &mut *element };
                    *element = match change {
                        Change::Nothing => *element,
                        Change::Set(value) => value,
                        Change::Add(value) => element.wrapping_add(value),
                    };
                }
            }
        }
    }
}

/// A launch of code of the test's own.
pub(crate) fn loaded_kernel(name: &'static str, code: Arc<dyn LoadedKernel>) -> Command {
    kernel_of(name, &[Touch::NONE; 3], Some(code))
}

fn kernel_of(name: &'static str, arguments: &[Touch; 3], code: Option<Arc<dyn LoadedKernel>>) -> Command {
    Command::from(KernelCommand {
        descriptor: KernelDescriptor {
            id: KernelId { type_id: TypeId::of::<()>(), form: Form::Single },
            type_name: "tests::touch",
            name: Some(name),
            location: Location::caller(),
            parameters: ParameterLayout { size: size_of::<[Touch; 3]>(), align: align_of::<[Touch; 3]>() },
            arguments: None,
            stated: oxisycl_image::StatedNeeds::NONE,
            host_entry: touch_entry,
        },
        code,
        native: None,
        arguments: ArgumentBlock::new(arguments),
        range: LaunchRange::SINGLE,
        group: None,
    })
}

/// Waits until something holds that another thread brings about.
#[track_caller]
pub(crate) fn eventually(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < PATIENCE, "it never came true");
        std::thread::sleep(Duration::from_micros(200));
    }
}
