//! A simulated device and its queues.
//!
//! Both keep the device's engine open; when the last of them is gone, the engine ends once its commands have ended.

use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Command, Completion, Dependency, Device, DeviceInfo, Event, FpConfig, Memory, MemoryInfo, Module,
    Queue, QueueOptions, UsmKind, VectorWidths,
};
use oxisycl_image::{DeviceImage, ImageTarget};
use oxisycl_types::{Aspect, BackendKind, DeviceType};

use super::config::SimulatedConfig;
use super::engine::Engine;
use super::module::SimulatedModule;
use crate::info::{Processor, host_info};
use crate::task::{ExecutorRef, HostTask, TaskOptions};

/// An engine that ends when this is dropped.
pub(crate) struct EngineHandle(pub(crate) Arc<Engine>);

impl Drop for EngineHandle {
    fn drop(&mut self) {
        self.0.close();
    }
}

pub(crate) struct SimulatedDevice {
    pub(crate) engine: Arc<EngineHandle>,
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) info: DeviceInfo,
}

/// The description of a device with that configuration and memory.
pub(crate) fn simulated_info(config: &SimulatedConfig, name: String, memory: MemoryInfo) -> DeviceInfo {
    let mut aspects = vec![Aspect::Emulated, Aspect::ExtOxisyclAtomic128];
    let switches = [
        (Aspect::Fp16, config.fp16),
        (Aspect::Fp64, config.fp64),
        (Aspect::Atomic64, config.atomic64),
        (Aspect::Image, config.images),
        (Aspect::OnlineCompiler, !config.native_kernels),
        (Aspect::OnlineLinker, !config.native_kernels),
        (Aspect::QueueProfiling, config.profiling),
    ];
    aspects.extend(switches.into_iter().filter_map(|(aspect, has)| has.then_some(aspect)));
    aspects.push(match config.device_type {
        DeviceType::Cpu => Aspect::Cpu,
        DeviceType::Gpu => Aspect::Gpu,
        DeviceType::Custom => Aspect::Custom,
        _ => Aspect::Accelerator,
    });
    for kind in &config.usm {
        aspects.push(match kind {
            UsmKind::Device => Aspect::UsmDeviceAllocations,
            UsmKind::Host => Aspect::UsmHostAllocations,
            UsmKind::Shared => Aspect::UsmSharedAllocations,
        });
    }
    let host = host_info(&Processor::default(), 1);
    let with = |has: bool, values: &[FpConfig]| if has { values.to_vec() } else { Vec::new() };
    let widths = |widths: VectorWidths| VectorWidths {
        half: if config.fp16 { widths.half } else { 0 },
        double: if config.fp64 { widths.double } else { 0 },
        ..widths
    };
    DeviceInfo {
        backend: BackendKind::Simulated,
        image_targets: image_targets(config),
        load_waits: config.waiting_loads,
        memory,
        device_type: config.device_type,
        half_fp_config: with(config.fp16, &host.half_fp_config),
        double_fp_config: with(config.fp64, &host.double_fp_config),
        preferred_vector_width: widths(host.preferred_vector_width),
        native_vector_width: widths(host.native_vector_width),
        name,
        vendor: "OxiSYCL".to_owned(),
        vendor_id: 0,
        aspects,
        max_mem_alloc_size: config.memory,
        global_mem_size: config.memory,
        global_mem_cache_type: oxisycl_backend::CacheType::None,
        global_mem_cache_size: 0,
        partition_max_sub_devices: 0,
        ..host
    }
}

/// The image targets of a device with that configuration. Their triple is that of no real host.
fn image_targets(config: &SimulatedConfig) -> Vec<ImageTarget> {
    if config.native_kernels {
        Vec::new()
    } else {
        vec![ImageTarget::Host { triple: "simulated".to_owned(), level: None }]
    }
}

// SAFETY: one memory for each device, and queues that copy and fill in the process's own memory.
unsafe impl Device for SimulatedDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn memory(&self) -> &Arc<dyn Memory> {
        &self.memory
    }

    fn create_queue(&self, options: &QueueOptions) -> Result<Arc<dyn Queue>, BackendError> {
        let options = TaskOptions {
            priority: options.priority,
            profiling: options.profiling && self.info.has(Aspect::QueueProfiling),
            max_threads: 1,
            sequence: 0,
            instant_hints: false,
        };
        Ok(Arc::new(SimulatedQueue { engine: Arc::clone(&self.engine), options }))
    }

    unsafe fn load(&self, image: &DeviceImage, _binary: Option<&[u8]>) -> Result<Arc<dyn Module>, BackendError> {
        if self.info.image_targets.contains(&image.target) {
            self.engine.0.load(self.info.load_waits);
            return Ok(Arc::new(SimulatedModule::new(image)));
        }
        let (device, what) = (self.info.name.clone(), format!("images for {}", image.target));
        Err(BackendError::Unsupported { device, what })
    }
}

struct SimulatedQueue {
    engine: Arc<EngineHandle>,
    options: TaskOptions,
}

// SAFETY: a command becomes ready when the last of its dependencies ends, and ends when its engine has carried it out.
unsafe impl Queue for SimulatedQueue {
    unsafe fn issue(
        &self,
        command: Command,
        dependencies: &[Dependency],
        completion: Arc<dyn Completion>,
    ) -> Result<Arc<dyn Event>, BackendError> {
        let engine = &self.engine.0;
        let sequence = engine.expect_command()?;
        let executor = ExecutorRef::Device(engine.clone());
        match HostTask::submit(
            None,
            command,
            dependencies,
            completion,
            executor,
            TaskOptions { sequence, ..self.options },
        ) {
            Ok(task) => Ok(task),
            Err(error) => {
                engine.forget_command();
                Err(error)
            }
        }
    }
}
