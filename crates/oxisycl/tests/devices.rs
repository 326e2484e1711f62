//! Platforms, devices, selectors, contexts, and what devices say of themselves (A1 to A10, B3 to B7, J9, J10, L3).

use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};

use oxisycl::prelude::*;
use oxisycl::selector::{accelerator_selector, aspect_selector, cpu_selector, default_selector, gpu_selector};
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::usm::UsmPointer;
use oxisycl::{BackendKind, FpConfig, MemoryOrder, MemoryScope};

fn simulator(device_type: DeviceType, n_devices: usize) -> Simulator {
    Simulator::new(SimulatedConfig::new(n_devices).device_type(device_type)).unwrap()
}

fn host() -> Device {
    Device::select(cpu_selector).unwrap()
}

#[test]
fn platforms_and_devices_are_the_same_in_the_same_order_at_every_call() {
    assert_eq!(Platform::all().unwrap(), Platform::all().unwrap());
    assert_eq!(Device::all().unwrap(), Device::all().unwrap());
    assert!(Platform::all().unwrap().iter().any(|platform| platform.backend() == BackendKind::Host));
    let listed: Vec<Device> = Platform::all().unwrap().iter().flat_map(Platform::devices).collect();
    assert_eq!(Device::all().unwrap(), listed);
    let cpus = Device::all_of(DeviceType::Cpu).unwrap();
    // There may be drivers that show the CPU once more.
    assert!(cpus.contains(&host()) && cpus.iter().all(Device::is_cpu));
    assert!(Platform::default().unwrap().devices().contains(&Device::default().unwrap()));
}

#[test]
fn a_platform_has_an_aspect_if_all_its_devices_have_it() {
    let simulator = simulator(DeviceType::Gpu, 2);
    let platform = simulator.platform();
    assert!(platform.has(Aspect::Gpu) && platform.has(Aspect::Emulated));
    assert!(!platform.has(Aspect::Cpu));
    assert_eq!(platform.devices_of(DeviceType::Gpu).len(), 2);
    assert_eq!(platform.devices_of(DeviceType::Cpu), []);
    assert_eq!(platform.backend(), BackendKind::Simulated);
    assert!(!platform.info().name.is_empty() && !platform.info().version.is_empty());
}

#[test]
fn the_default_is_a_real_device_rather_than_a_simulated_one() {
    for device_type in [DeviceType::Cpu, DeviceType::Gpu, DeviceType::Accelerator] {
        let simulator = simulator(device_type, 1);
        assert!(default_selector(&host()) > default_selector(&simulator.devices()[0]), "{device_type}");
        assert!(default_selector(&simulator.devices()[0]) >= 0);
    }
    assert!(!Device::default().unwrap().has(Aspect::Emulated));
}

#[test]
fn selectors_by_type_take_no_other_type() {
    let (gpu, accelerator) = (simulator(DeviceType::Gpu, 1), simulator(DeviceType::Accelerator, 1));
    let (gpu, accelerator, cpu) = (&gpu.devices()[0], &accelerator.devices()[0], &host());
    let takes = |selector: fn(&Device) -> i32| [cpu, gpu, accelerator].map(|device| selector(device) >= 0);
    assert_eq!(takes(cpu_selector), [true, false, false]);
    assert_eq!(takes(gpu_selector), [false, true, false]);
    assert_eq!(takes(accelerator_selector), [false, false, true]);
    assert!(cpu.is_cpu() && gpu.is_gpu() && accelerator.is_accelerator());
}

#[test]
fn an_aspect_selector_wants_all_of_one_list_and_none_of_the_other() {
    let simulator = simulator(DeviceType::Gpu, 1);
    let (gpu, cpu) = (&simulator.devices()[0], &host());
    let wanted = aspect_selector(&[Aspect::Fp64, Aspect::Cpu], &[Aspect::Emulated]);
    assert!(wanted(cpu) >= 0 && wanted(gpu) < 0);
    let denied = aspect_selector(&[Aspect::Fp64], &[Aspect::Cpu]);
    assert!(denied(cpu) < 0);
    assert_eq!(aspect_selector(&[], &[])(cpu), default_selector(cpu));
    let none = Device::select(aspect_selector(&[Aspect::Custom], &[])).unwrap_err();
    assert_eq!(none.code(), ErrorCode::Runtime);
}

#[test]
fn a_selector_is_asked_about_every_device_and_the_highest_number_wins() {
    let mut asked = Vec::new();
    let asked_cell = std::cell::RefCell::new(&mut asked);
    let chosen = Device::select(|device| {
        asked_cell.borrow_mut().push(device.clone());
        if device.is_cpu() { 7 } else { 3 }
    });
    assert!(chosen.unwrap().is_cpu());
    assert_eq!(asked, Device::all().unwrap());
    assert_eq!(Device::select(|_| -1).unwrap_err().code(), ErrorCode::Runtime);
}

#[test]
fn of_equally_good_devices_the_first_is_chosen_and_the_host_device_comes_first() {
    let all = Device::all().unwrap();
    assert_eq!(all[0].backend(), BackendKind::Host);
    for score in [0, 5] {
        assert_eq!(Device::select(|_| score).unwrap(), all[0]);
    }
    // Drivers may show the processor once more, and the program may have images for it.
    let best = all.iter().filter(|device| device.is_cpu()).map(default_selector).max().unwrap();
    assert_eq!((default_selector(&all[0]), host()), (best, all[0].clone()));
    // In a list of a context's devices as well.
    let simulator = simulator(DeviceType::Cpu, 2);
    let context = Context::new(&simulator.devices()).unwrap();
    assert_eq!(*Queue::builder().context(&context).build().unwrap().device(), simulator.devices()[0]);
}

#[test]
fn queues_without_a_context_share_the_platforms_default_context() {
    let simulator = simulator(DeviceType::Accelerator, 2);
    let devices = simulator.devices();
    let (a, b) = (Queue::new(&devices[0]).unwrap(), Queue::new(&devices[1]).unwrap());
    assert_eq!(a.context(), b.context());
    assert_eq!(*a.context(), simulator.platform().default_context().unwrap());
    assert_eq!(a.context().devices(), devices);
    assert_eq!(a.context().platform(), simulator.platform());
    let own = Context::new(&devices).unwrap();
    assert_ne!(own, *a.context());
    assert!(own.contains(&devices[1]) && !own.contains(&host()));
}

#[test]
fn copies_of_handles_are_equal_and_hash_alike() {
    fn check<T: Clone + Eq + Hash>(one: &T, other: &T) {
        let copy = one.clone();
        // Equality is symmetric, and agrees with the hash.
        let handles = [one, &copy, other];
        for (i, a) in handles.iter().enumerate() {
            for (j, b) in handles.iter().enumerate() {
                assert_eq!(a == b, (i == 2) == (j == 2));
            }
        }
        assert_eq!(hash_of(one), hash_of(&copy));
        assert_eq!(HashSet::from([one.clone(), copy, other.clone()]).len(), 2);
    }
    fn hash_of(value: &impl Hash) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    }
    let (one, other) = (simulator(DeviceType::Gpu, 2), simulator(DeviceType::Gpu, 2));
    check(&one.platform(), &other.platform());
    check(&one.devices()[0], &one.devices()[1]);
    check(&Context::new(&one.devices()).unwrap(), &Context::new(&one.devices()).unwrap());
    check(&Queue::new(&one.devices()[0]).unwrap(), &Queue::new(&one.devices()[0]).unwrap());
    // Asked for again, a device is the same one.
    assert_eq!(one.devices()[1], one.devices()[1]);

    let queue = Queue::new(&one.devices()[0]).unwrap();
    let (first, second) = (queue.single_task(|_| {}).unwrap(), queue.single_task(|_| {}).unwrap());
    check(&first, &second);
    check(&first, &Event::default());
    Event::wait_all([&first, &second]).unwrap();
    check(&first, &second);

    let buffer = Buffer::from_vec(vec![0u32; 64]).unwrap();
    check(&buffer, &Buffer::from_vec(vec![0u32; 64]).unwrap());
    check(&buffer, &buffer.sub_buffer(0, 32).unwrap());
    check(&buffer, &buffer.sub_buffer(0, 64).unwrap());
    check(&buffer.sub_buffer(0, 32).unwrap(), &buffer.sub_buffer(32, 32).unwrap());
    assert_eq!(buffer.sub_buffer(8, 8).unwrap(), buffer.sub_buffer(8, 8).unwrap());
    check(&buffer.reinterpret::<i32, 2>([8, 8]).unwrap(), &buffer.reinterpret::<i32, 2>([4, 16]).unwrap());
    check(&buffer.placeholder(Read), &buffer.placeholder_range(Read, 0, 32));
    check(&buffer.placeholder_range(Write, 2, 1), &buffer.placeholder_range(Write, 3, 1));

    let submitted = queue.submit(|cg| {
        let placeholder = buffer.placeholder_range(Read, 8, 8);
        let (whole, part) = (cg.access(&buffer, Read), cg.require(&placeholder));
        check(&whole, &part);
        check(&part, &cg.access_range(&buffer, Read, 16, 8));
        check(&cg.access_range(&buffer, Read, 3, 0), &cg.access_range(&buffer, Read, 4, 0));
        assert!(part == cg.require(&placeholder));
        // Also where the kernel runs.
        cg.single_task(move |_| {
            let copy = whole;
            assert!(copy == whole && whole != part);
        })
    });
    submitted.unwrap().wait().unwrap();
}

#[test]
fn devices_describe_at_least_what_the_specification_demands() {
    let simulator = simulator(DeviceType::Gpu, 1);
    for device in [&host(), &simulator.devices()[0]] {
        let info = device.info();
        for config in [FpConfig::RoundToNearest, FpConfig::InfNan] {
            assert!(info.single_fp_config.contains(&config), "{config:?}");
        }
        let double = [
            FpConfig::Fma,
            FpConfig::RoundToNearest,
            FpConfig::RoundToZero,
            FpConfig::RoundToInf,
            FpConfig::InfNan,
            FpConfig::Denorm,
        ];
        assert_eq!(device.has(Aspect::Fp64), double.iter().all(|config| info.double_fp_config.contains(config)));
        assert_eq!(device.has(Aspect::Fp64), info.native_vector_width.double > 0);
        assert_eq!(device.has(Aspect::Fp16), info.native_vector_width.half > 0);
        assert!(info.native_vector_width.int > 0 && info.preferred_vector_width.float > 0);
        assert!(info.atomic_memory_order_capabilities.contains(&MemoryOrder::Relaxed));
        for order in [MemoryOrder::Relaxed, MemoryOrder::Acquire, MemoryOrder::Release, MemoryOrder::AcqRel] {
            assert!(info.atomic_fence_order_capabilities.contains(&order), "{order:?}");
        }
        for scope in [MemoryScope::SubGroup, MemoryScope::WorkGroup] {
            assert!(info.atomic_memory_scope_capabilities.contains(&scope), "{scope:?}");
        }
        assert!(info.atomic_fence_scope_capabilities.contains(&MemoryScope::WorkItem));
        assert!(!info.driver_version.is_empty() && !info.backend_version.is_empty() && info.is_available);
        assert!(info.max_parameter_size >= 1024 && [32, 64].contains(&info.address_bits));
    }
}

#[test]
fn an_accessor_is_no_larger_than_its_pointer_and_three_index_values_per_dimension() {
    assert_eq!(size_of::<Accessor<'static, f32, 1, Read>>(), 4 * size_of::<usize>());
    assert_eq!(size_of::<Accessor<'static, f32, 2, ReadWrite>>(), 7 * size_of::<usize>());
    assert_eq!(size_of::<Accessor<'static, f64, 3, Atomic>>(), 10 * size_of::<usize>());
}

/// Atomics of the host and of a kernel on one element, at the same time.
fn count_together(queue: &Queue, pointer: UsmPointer<u32>) -> u32 {
    const N: u32 = if cfg!(miri) { 200 } else { 20_000 };
    let event = queue.parallel_for(N as usize, move |_| {
        // SAFETY: the element is aligned, alive until the wait below, and only accessed atomically.
        unsafe { AtomicU32::from_ptr(pointer.as_ptr()) }.fetch_add(1, Ordering::Relaxed);
    });
    for _ in 0..N {
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(pointer.as_ptr()) }.fetch_add(1, Ordering::Relaxed);
    }
    event.unwrap().wait().unwrap();
    // SAFETY: nobody else accesses the element any more.
    let total = unsafe { pointer.read(0) };
    total - 2 * N
}

#[test]
fn host_and_kernel_count_together_in_host_and_shared_allocations() {
    let queue = Queue::new(&host()).unwrap();
    assert!(queue.device().has(Aspect::UsmAtomicHostAllocations));
    assert!(queue.device().has(Aspect::UsmAtomicSharedAllocations));
    let in_host = queue.malloc_host::<u32>(1).unwrap();
    let in_shared = queue.malloc_shared::<u32>(1).unwrap();
    assert_eq!(count_together(&queue, in_host.pointer()), 0);
    assert_eq!(count_together(&queue, in_shared.pointer()), 0);
}

#[test]
fn kernels_use_any_memory_of_the_process_where_the_device_says_so() {
    let queue = Queue::new(&host()).unwrap();
    assert!(queue.device().has(Aspect::UsmSystemAllocations));
    let mut data = vec![1u32; 1000];
    let pointer = UsmPointer::new(data.as_mut_ptr());
    // SAFETY: the vector lives until the wait, and each work-item uses its own element.
    let event =
        queue.parallel_for(1000, move |item| unsafe { pointer.write(item.index(), pointer.read(item.index()) + 41) });
    event.unwrap().wait().unwrap();
    assert_eq!(data, vec![42; 1000]);
}

#[test]
fn a_host_task_sees_native_memory_of_its_own_group_only() {
    let queue = Queue::new(&host()).unwrap();
    let buffer = Buffer::from_vec(vec![5u32; 4]).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let event = queue.submit(|cg| {
        let data = cg.access(&buffer, Read);
        cg.host_task(move |scope| {
            let interop = scope.interop();
            let native = interop.native_memory(data).map(|pointer| pointer as usize);
            let queue = interop.native_queue().map_err(|error| error.code());
            sender
                .send((native, queue.is_err_and(|code| code == ErrorCode::BackendMismatch), interop.backend()))
                .unwrap();
            assert!(interop.device().is_cpu());
        })
    });
    event.unwrap().wait().unwrap();
    let (native, has_no_native_queue, backend) = receiver.recv().unwrap();
    assert_eq!(native.unwrap(), buffer.usm_pointer(queue.device()).unwrap() as usize);
    assert!(has_no_native_queue && backend == BackendKind::Host);
}

#[test]
fn what_is_known_of_all_devices_at_compile_time_is_what_devices_have() {
    use oxisycl::{all_devices_have, any_device_has};
    const { assert!(any_device_has(Aspect::Fp64) && all_devices_have(Aspect::Image)) };
    let mut devices = Device::all().unwrap();
    for device_type in [DeviceType::Cpu, DeviceType::Gpu, DeviceType::Accelerator, DeviceType::Custom] {
        let bare = SimulatedConfig::new(1).profiling(false).usm(&[]).fp16(false).fp64(false).atomic64(false);
        devices.extend(Simulator::new(bare.device_type(device_type)).unwrap().devices());
    }
    let only_of_real_devices = [Aspect::ExtOxisyclFloatAtomics];
    // Where no OpenCL device is, all devices have it.
    let not_of_all_devices = [Aspect::ExtOxisyclAtomic128];
    for &aspect in Aspect::ALL {
        let having = devices.iter().filter(|device| device.has(aspect)).count();
        let expected = having > 0 || only_of_real_devices.contains(&aspect);
        assert_eq!(any_device_has(aspect), expected, "{having} of {} devices have {aspect}", devices.len());
        let expected = having == devices.len() && !not_of_all_devices.contains(&aspect);
        assert_eq!(all_devices_have(aspect), expected, "{having} of {} devices have {aspect}", devices.len());
    }
}
