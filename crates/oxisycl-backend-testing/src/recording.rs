//! A backend for tests: it writes down every command it is given, and ends commands only when the test says so.
//!
//! A [`RecordingBackend`] has any number of devices with memories of their own, and a host device if asked for. All of them share one
//! [`Recorder`], through which a test sees commands in the order of their submission. The test also decides when, and how, each of them
//! ends. A command that ends well is carried out on the thread that ends it, so that data is where it should be. A command that the runtime
//! executes is counted and not recorded.
//!
//! Invariants:
//! - There are no threads. No lock is held while a completion or a kernel runs.
//! - A command ends after its dependencies. If one of kind `Data` has failed, it ends by itself, without having run, when the last of
//!   them has ended.
//!
//! Not meant for programs: every command is kept for as long as the backend lives.

mod faults;
mod images;
mod info;
mod memory;
mod recorded;
mod recorder;
mod shared;

use std::sync::Arc;

use oxisycl_image::{DeviceImage, ImageTarget};
use oxisycl_types::{Aspect, BackendKind};

use oxisycl_backend::{
    Backend, BackendError, Command, Completion, Dependency, Device, DeviceInfo, Event, EventDomain, Memory, MemoryId,
    Module, Outcome, Platform, PlatformInfo, Queue, QueueInfo, QueueOptions,
};

pub use images::RecordedLoad;
pub use recorded::{CommandKind, CommandState, Place, Recorded};
pub use recorder::Recorder;

use memory::RecordingMemory;
use shared::{Shared, Submission};

/// When commands end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CompletionMode {
    /// When the test calls the recorder.
    #[default]
    Manual,
    /// Before `issue` returns, or together with the last of their dependencies.
    AtOnce,
    /// One at a time, the oldest first, when a waiting thread helps its queue ([`Queue::help`]).
    WhenHelped,
}

/// What a [`RecordingBackend`] is like.
#[derive(Clone, Debug)]
pub struct RecordingConfig {
    n_devices: usize,
    has_host: bool,
    peer_copies: bool,
    mode: CompletionMode,
    image_targets: Vec<ImageTarget>,
    native_levels: &'static [ImageTarget],
    binary_key: Option<String>,
    load_waits: bool,
    lacking: Vec<Aspect>,
    waits_for_own_device_only: bool,
    traits: QueueTraits,
}

/// What the queues of a backend leave to the runtime, or do themselves.
#[derive(Clone, Copy, Default, Debug)]
struct QueueTraits {
    keeps_order: bool,
    /// [`QueueInfo::max_unfinished`], if there is a limit.
    max_unfinished: Option<usize>,
    executes_host_copies: bool,
    event_domain: EventDomain,
}

impl RecordingConfig {
    /// That many devices, which can copy to each other; no host device; commands end when the test says so.
    pub fn new(n_devices: usize) -> Self {
        Self {
            n_devices,
            has_host: false,
            peer_copies: true,
            mode: CompletionMode::Manual,
            image_targets: Vec::new(),
            native_levels: &[],
            binary_key: None,
            load_waits: false,
            lacking: Vec::new(),
            waits_for_own_device_only: false,
            traits: QueueTraits::default(),
        }
    }

    /// In-order queues keep the order of their commands themselves ([`QueueInfo::keeps_order`]).
    #[must_use]
    pub fn keeping_order(mut self) -> Self {
        self.traits.keeps_order = true;
        self
    }

    /// Queues take so many unfinished commands ([`QueueInfo::max_unfinished`]).
    #[must_use]
    pub fn taking(mut self, max_unfinished: usize) -> Self {
        self.traits.max_unfinished = Some(max_unfinished);
        self
    }

    /// Copies from memory of the host to memory of the host are left to the runtime ([`Queue::is_executed`]).
    #[must_use]
    pub fn executing_host_copies(mut self) -> Self {
        self.traits.executes_host_copies = true;
        self
    }

    /// Queues cannot wait for events of other devices ([`QueueInfo::event_domain`]).
    #[must_use]
    pub fn waiting_for_own_device_only(mut self) -> Self {
        self.waits_for_own_device_only = true;
        self
    }

    /// Also a host device, which comes first and whose memory is [`MemoryId::HOST`]. The backend is then of kind `Host`.
    #[must_use]
    pub fn with_host(mut self) -> Self {
        self.has_host = true;
        self
    }

    /// The devices can only copy between their own memory and the host's.
    #[must_use]
    pub fn without_peer_copies(mut self) -> Self {
        self.peer_copies = false;
        self
    }

    /// The devices beside the host device take images for these targets, best first. Their kernels still run as native code.
    #[must_use]
    pub fn with_images(mut self, targets: &[ImageTarget]) -> Self {
        self.image_targets = targets.to_vec();
        self
    }

    /// The devices take native code of the device compiler for these targets, best first. To be used only with entries that this processor runs.
    #[must_use]
    pub fn with_native_levels(mut self, targets: &'static [ImageTarget]) -> Self {
        self.native_levels = targets;
        self
    }

    /// Modules have binaries, which devices with the same key can load.
    #[must_use]
    pub fn with_binaries(mut self, key: &str) -> Self {
        self.binary_key = Some(key.to_owned());
        self
    }

    /// The devices beside the host device would wait for running kernels when they load an image ([`DeviceInfo::load_waits`]). To
    /// load one while a kernel, a fill or a native command of the device is pending is a violation. So is to issue one meanwhile.
    #[must_use]
    pub fn with_waiting_loads(mut self) -> Self {
        self.load_waits = true;
        self
    }

    /// The devices beside the host device lack an aspect.
    #[must_use]
    pub fn without(mut self, aspect: Aspect) -> Self {
        self.lacking.push(aspect);
        self
    }

    /// When commands end, until the recorder is set otherwise.
    #[must_use]
    pub fn mode(mut self, mode: CompletionMode) -> Self {
        self.mode = mode;
        self
    }
}

/// The backend that records: its devices, and the host device if it has one.
pub struct RecordingBackend {
    platform: Arc<Platform>,
    recorder: Recorder,
}

impl RecordingBackend {
    /// Makes the devices.
    pub fn new(config: RecordingConfig) -> Self {
        let shared = Arc::new(Shared::new(config.mode));
        let kind = if config.has_host { BackendKind::Host } else { BackendKind::Simulated };
        let n_hosts = usize::from(config.has_host);
        let info_of = |index| {
            let is_host = index < n_hosts;
            let name = if is_host { "recording host".to_owned() } else { format!("recording device {index}") };
            let mut info = info::recording_info(name, is_host);
            info.backend = kind;
            if !is_host {
                info.aspects.retain(|aspect| !config.lacking.contains(aspect));
                info.image_targets.clone_from(&config.image_targets);
                info.binary_key.clone_from(&config.binary_key);
                info.load_waits = config.load_waits;
            }
            info
        };
        let mut infos: Vec<DeviceInfo> = (0..n_hosts + config.n_devices).map(info_of).collect();
        let memories: Vec<MemoryId> = infos[n_hosts..].iter().map(|info| info.memory.id).collect();
        if config.peer_copies {
            infos[n_hosts..].iter_mut().for_each(|info| info.peer_memories.clone_from(&memories));
        }
        let device = |(index, info): (usize, DeviceInfo)| -> Arc<dyn Device> {
            let event_domain =
                if config.waits_for_own_device_only { EventDomain::unique() } else { EventDomain::PLATFORM };
            let memory = Arc::new(RecordingMemory::new(info.memory.id, info.name.clone(), shared.clone()));
            let traits = QueueTraits { event_domain, ..config.traits };
            let native_levels = config.native_levels;
            Arc::new(RecordingDevice { index, memory, info, native_levels, traits, shared: shared.clone() })
        };
        let devices = infos.into_iter().enumerate().map(device).collect();
        let info = PlatformInfo {
            backend: kind,
            name: "OxiSYCL recording".to_owned(),
            vendor: "OxiSYCL".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let platform = Arc::new(Platform::new(info, devices));
        Self { platform, recorder: Recorder::new(shared) }
    }

    /// What was recorded, and the control over it.
    pub fn recorder(&self) -> Recorder {
        self.recorder.clone()
    }

    /// All devices, the host device first if there is one.
    pub fn devices(&self) -> Vec<Arc<dyn Device>> {
        self.platform.devices()
    }
}

impl Backend for RecordingBackend {
    fn platforms(&self) -> Result<Vec<Arc<Platform>>, BackendError> {
        Ok(vec![self.platform.clone()])
    }
}

struct RecordingDevice {
    index: usize,
    memory: Arc<dyn Memory>,
    info: DeviceInfo,
    native_levels: &'static [ImageTarget],
    traits: QueueTraits,
    shared: Arc<Shared>,
}

// SAFETY: one memory for each device; images have no code, and their kernels are those of the image. A test that asks for levels of native code
// promises that the processor runs its entries.
unsafe impl Device for RecordingDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn native_levels(&self) -> &'static [ImageTarget] {
        self.native_levels
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        Ok(Arc::new(RecordingQueue {
            number: self.shared.add_queue(options),
            device: self.index,
            device_name: self.info.name.clone(),
            options: *options,
            traits: self.traits,
            shared: self.shared.clone(),
        }))
    }

    unsafe fn load(&self, image: &DeviceImage, binary: Option<&[u8]>) -> Result<Arc<dyn Module>, BackendError> {
        if let Some(binary) = binary {
            self.shared.images.check_binary(image, binary)?;
        }
        let _loading = self.info.load_waits.then(|| self.shared.begin_load(self.index));
        self.shared.images.load(self.index, image, binary.is_some(), self.info.binary_key.is_some())
    }
}

struct RecordingQueue {
    number: usize,
    device: usize,
    device_name: String,
    options: QueueOptions,
    traits: QueueTraits,
    shared: Arc<Shared>,
}

impl RecordingQueue {
    fn keeps_order(&self) -> bool {
        self.options.in_order && self.traits.keeps_order
    }
}

// SAFETY: commands are carried out within their boxes, once nothing that they wait for is left, and end afterwards.
unsafe impl Queue for RecordingQueue {
    unsafe fn issue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        let submission = Submission {
            device: self.device,
            device_name: &self.device_name,
            queue: self.number,
            profiling: self.options.profiling,
            keeps_order: self.keeps_order(),
            command,
            dependencies,
            completion,
        };
        self.shared.submit(submission)
    }

    fn info(&self) -> QueueInfo {
        QueueInfo {
            keeps_order: self.keeps_order(),
            max_unfinished: self.traits.max_unfinished.unwrap_or(usize::MAX),
            event_domain: self.traits.event_domain,
            ..QueueInfo::default()
        }
    }

    fn is_executed(&self, command: &Command) -> Result<bool, BackendError> {
        let Command::Copy(copy) = command else { return Ok(false) };
        let is_of_host = [copy.source.memory, copy.target.memory] == [MemoryId::HOST; 2];
        Ok(self.traits.executes_host_copies && is_of_host)
    }

    unsafe fn execute(&self, command: &Command) -> Outcome {
        self.shared.execute(command, &self.device_name)
    }

    fn help(&self, goes_on: &mut dyn FnMut(bool) -> bool) {
        let mut has_helped = false;
        while goes_on(has_helped) {
            has_helped = self.shared.help();
        }
    }
}
