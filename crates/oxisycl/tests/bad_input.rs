//! Values that no program should pass: each is refused with its code, by name, before anything is enqueued.

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use oxisycl::prelude::*;
use oxisycl::simulated::{SimulatedConfig, Simulator};
use oxisycl::{AffinityDomain, BufferOptions, UsmKind};

use support::{assert_error, refused, simulated, watchdog};

fn filled(n_elements: usize) -> Buffer<i32, 1> {
    Buffer::from_vec(vec![7; n_elements]).unwrap()
}

#[test]
fn an_accessor_beyond_its_buffer_is_refused_and_nothing_runs() {
    static RAN: AtomicBool = AtomicBool::new(false);
    let _watchdog = watchdog();
    let queue = Queue::default().unwrap();
    let buffer = filled(10);
    let id = format!("buffer {}", buffer.id());
    for (range, offset) in
        [(11, 0), (6, 5), (1, 10), (0, 11), (1, usize::MAX), (usize::MAX, 1), (usize::MAX, usize::MAX)]
    {
        let submitted = queue.submit(|cg| {
            let _out = cg.access_range(&buffer, ReadWrite, offset, range);
            cg.single_task(|_| RAN.store(true, Ordering::SeqCst))
        });
        let (range_text, offset_text) = (range.to_string(), offset.to_string());
        refused(submitted, ErrorCode::Invalid, &[&id, "range [10]", &range_text, &offset_text]);
        let host = buffer.host_access_range(Read, offset, range);
        refused(host, ErrorCode::Invalid, &[&id, "range [10]", &offset_text]);
        let task = queue.submit(|cg| {
            let _out = cg.access_host_range(&buffer, Read, offset, range);
            cg.host_task(|_| RAN.store(true, Ordering::SeqCst))
        });
        refused(task, ErrorCode::Invalid, &[&id, "range [10]"]);
        let placeholder = buffer.placeholder_range(Read, offset, range);
        let required = queue.submit(|cg| {
            let _out = cg.require(&placeholder);
            cg.single_task(|_| RAN.store(true, Ordering::SeqCst))
        });
        refused(required, ErrorCode::Invalid, &[&id]);
    }
    queue.wait().unwrap();
    assert!(!RAN.load(Ordering::SeqCst), "a refused command group ran");
    assert_eq!(buffer.into_vec().unwrap(), [7; 10]);
}

#[test]
fn an_accessor_is_refused_if_one_of_three_dimensions_is_beyond_the_buffer() {
    let queue = Queue::default().unwrap();
    let buffer = Buffer::from_vec_nd(vec![0u8; 24], [2, 3, 4]).unwrap();
    for (range, offset) in
        [([3, 1, 1], [0, 0, 0]), ([1, 3, 1], [0, 1, 0]), ([1, 1, 2], [0, 0, 3]), ([1, 12, 2], [0, 0, 0])]
    {
        let submitted = queue.submit(|cg| {
            cg.access_range(&buffer, Read, offset, range);
            cg.single_task(|_| {})
        });
        let parts = [format!("{range:?}"), format!("{offset:?}"), "[2, 3, 4]".to_owned()];
        refused(submitted, ErrorCode::Invalid, &[&parts[0], &parts[1], &parts[2]]);
    }
}

#[test]
fn a_failed_access_is_returned_even_if_the_closure_forgets_it() {
    let queue = Queue::default().unwrap();
    let buffer = filled(4);
    let submitted = queue.submit(|cg| {
        cg.access_range(&buffer, Read, 0, 5);
        Ok(())
    });
    refused(submitted, ErrorCode::Invalid, &["outside"]);
    let submitted = queue.submit(|cg| {
        cg.access_range(&buffer, Read, 0, 5);
        let ignored = cg.single_task(|_| {});
        assert!(ignored.is_err());
        Ok(())
    });
    refused(submitted, ErrorCode::Invalid, &["outside"]);
}

#[test]
fn buffers_whose_size_overflows_are_refused() {
    refused(Buffer::<u8, 3>::uninit([usize::MAX, 2, 1]), ErrorCode::Invalid, &["overflow", &usize::MAX.to_string()]);
    refused(Buffer::<u64, 1>::uninit(usize::MAX / 4), ErrorCode::Invalid, &[&(usize::MAX / 4).to_string()]);
    refused(Buffer::<u8, 2>::uninit([1 << 40, 1 << 40]), ErrorCode::Invalid, &["overflow"]);
    refused(Buffer::<u8, 1>::uninit(usize::MAX), ErrorCode::Invalid, &["larger than memory can be"]);
    let range = [usize::MAX, 2];
    refused(Buffer::from_vec_nd(vec![0u8; 4], range), ErrorCode::Invalid, &["4 elements", "[18446744073709551615, 2]"]);
    // A zero extent makes the product zero, whatever the others are.
    let empty = Buffer::<u8, 3>::uninit([usize::MAX, 0, 1]);
    assert!(empty.is_ok_and(|buffer| buffer.is_empty()));
}

#[test]
fn launches_whose_size_overflows_name_kernel_and_device() {
    static RAN: AtomicBool = AtomicBool::new(false);
    let queue = Queue::default().unwrap();
    let device = queue.device().name().to_owned();
    for range in [[usize::MAX, 2], [1 << 40, 1 << 40], [usize::MAX, 1]] {
        let submitted = queue.submit(|cg| {
            cg.name("too many");
            cg.parallel_for(range, |_| RAN.store(true, Ordering::SeqCst))
        });
        let range = format!("{range:?}");
        refused(submitted, ErrorCode::NdRange, &["kernel \"too many\"", &device, &range]);
    }
    let submitted = queue.submit(|cg| cg.parallel_for_offset(usize::MAX, 2, |_| RAN.store(true, Ordering::SeqCst)));
    refused(submitted, ErrorCode::NdRange, &[&device, &usize::MAX.to_string()]);
    refused(queue.parallel_for([usize::MAX, 2], |_| {}), ErrorCode::NdRange, &[&device]);
    queue.wait().unwrap();
    assert!(!RAN.load(Ordering::SeqCst));
}

#[test]
fn a_page_size_of_zero_is_refused() {
    refused(BufferOptions::new().page_size(0).uninit::<i32>(8), ErrorCode::Invalid, &["page size [0]"]);
    let pages = BufferOptions::new().page_size([2, 0]);
    refused(pages.from_vec_nd(vec![0; 4], [2, 2]), ErrorCode::Invalid, &["page size [2, 0]"]);
    // Larger than the buffer is one page.
    assert!(BufferOptions::new().page_size(usize::MAX).uninit::<i32>(8).is_ok());
}

#[test]
fn blocks_of_zero_elements_are_refused() {
    let queue = Queue::default().unwrap();
    let buffer = filled(8);
    let submitted = queue.submit(|cg| {
        let blocks = cg.access_chunks(&buffer, ReadWrite, 0);
        cg.parallel_for(8, move |item| blocks.block(item).fill(1))
    });
    refused(submitted, ErrorCode::Invalid, &["[0]"]);
}

#[test]
fn a_misaligned_reinterpretation_is_refused() {
    let bytes = Buffer::<u8, 1>::uninit(64).unwrap();
    assert!(bytes.reinterpret::<u64, 1>(8).is_ok());
    let odd = bytes.sub_buffer(1, 8).unwrap();
    let id = format!("buffer {}", bytes.id());
    refused(odd.reinterpret::<u32, 1>(2), ErrorCode::Invalid, &[&id, "u32", "offset 1", "4 are needed"]);
    let pairs = bytes.sub_buffer(2, 8).unwrap();
    assert!(pairs.reinterpret::<u16, 1>(4).is_ok());
    refused(pairs.reinterpret::<u64, 1>(1), ErrorCode::Invalid, &["offset 2", "8 are needed"]);
}

#[test]
fn a_reinterpretation_of_another_size_is_refused() {
    let bytes = Buffer::<u8, 1>::uninit(12).unwrap();
    refused(bytes.reinterpret::<u64, 1>(2), ErrorCode::Invalid, &["12 bytes", "[2]", "8-byte"]);
    refused(bytes.reinterpret::<u32, 2>([2, 2]), ErrorCode::Invalid, &["12 bytes", "[2, 2]"]);
    refused(bytes.reinterpret::<u32, 2>([usize::MAX, 3]), ErrorCode::Invalid, &["12 bytes"]);
    assert!(bytes.reinterpret::<[u8; 3], 2>([2, 2]).is_ok());
}

#[test]
fn sub_buffers_must_lie_inside_be_contiguous_and_not_be_nested() {
    let buffer = Buffer::<u8, 2>::uninit([4, 8]).unwrap();
    refused(buffer.sub_buffer([3, 0], [2, 8]), ErrorCode::Invalid, &["[2, 8]", "[3, 0]", "[4, 8]", "not inside"]);
    refused(buffer.sub_buffer([usize::MAX, 0], [2, 8]), ErrorCode::Invalid, &["not inside"]);
    refused(buffer.sub_buffer([0, 0], [2, 4]), ErrorCode::Invalid, &["not contiguous"]);
    let part = buffer.sub_buffer([1, 0], [2, 8]).unwrap();
    refused(part.sub_buffer([0, 0], [1, 8]), ErrorCode::Invalid, &["sub-buffer itself"]);
}

#[test]
fn an_accessor_to_a_sub_buffer_that_the_device_cannot_address_is_refused() {
    let queue = Queue::default().unwrap();
    let align = queue.device().info().mem_base_addr_align as usize / 8;
    let buffer = Buffer::<u8, 1>::uninit(4 * align).unwrap();
    let odd = buffer.sub_buffer(1, align).unwrap();
    let submitted = queue.submit(|cg| {
        cg.access(&odd, ReadWrite);
        cg.single_task(|_| {})
    });
    let multiple = format!("multiple of {align} bytes");
    refused(submitted, ErrorCode::Invalid, &["sub-buffer", "byte 1,", queue.device().name(), &multiple]);
    let even = buffer.sub_buffer(align, align).unwrap();
    let submitted = queue.submit(|cg| {
        let out = cg.access(&even, ReadWrite);
        cg.parallel_for(align, move |item| out.set(item, 3))
    });
    submitted.unwrap().wait().unwrap();
}

#[test]
fn a_wrong_number_of_elements_is_refused() {
    refused(Buffer::from_vec_nd(vec![1, 2, 3], 4), ErrorCode::Invalid, &["[4]", "3 elements"]);
    refused(Buffer::from_slice_nd(&[1, 2, 3], [2, 1]), ErrorCode::Invalid, &["[2, 1]", "3 elements"]);
    refused(Buffer::from_shared_nd(vec![1u8; 3].into(), 2), ErrorCode::Invalid, &["[2]", "3 elements"]);
    let mut data = [0; 5];
    refused(Buffer::from_slice_mut_nd(&mut data, 6), ErrorCode::Invalid, &["[6]", "5 elements"]);
    let queue = Queue::default().unwrap();
    let usm = queue.malloc_device::<i32>(3).unwrap();
    refused(BufferOptions::new().from_usm_nd(usm, 4), ErrorCode::Invalid, &["[4]", "3 elements"]);
    let mut usm = queue.malloc_device::<i32>(3).unwrap();
    refused(usm.copy_from_slice(&queue, &[1, 2]), ErrorCode::Invalid, &["2 elements to 3 elements"]);
}

#[test]
fn copies_that_do_not_fit_are_refused() {
    let queue = Queue::default().unwrap();
    let (small, large) = (filled(3), filled(4));
    refused(queue.copy(&large, &small), ErrorCode::Invalid, &["3 elements", "4"]);
    refused(queue.copy_from_host(vec![0; 3], &large).map(drop), ErrorCode::Invalid, &["4", "3"]);
    refused(queue.copy_to_host(&large, vec![0; 3]).map(drop), ErrorCode::Invalid, &["3 elements", "4"]);
    queue.wait().unwrap();
    assert_eq!((small.into_vec().unwrap(), large.into_vec().unwrap()), (vec![7; 3], vec![7; 4]));
}

#[test]
fn captures_beyond_the_devices_limit_name_size_and_limit() {
    static RAN: AtomicBool = AtomicBool::new(false);
    const SIZE: usize = 100 << 10;
    let (simulated, _control) = simulated(1);
    for device in [Device::default().unwrap(), simulated[0].clone()] {
        let queue = Queue::new(&device).unwrap();
        let limit = device.info().max_parameter_size;
        assert!(limit < SIZE, "the test needs larger captures than {limit} bytes");
        let captured = [1u8; SIZE];
        let submitted = queue.submit(|cg| {
            cg.name("heavy");
            cg.parallel_for(1, move |item| RAN.store(captured[item.index()] == 1, Ordering::SeqCst))
        });
        let parts = ["kernel \"heavy\"", device.name(), &SIZE.to_string(), &limit.to_string()];
        refused(submitted, ErrorCode::KernelArgument, &parts);
        let submitted = queue.single_task(move |_| RAN.store(captured[0] == 1, Ordering::SeqCst));
        refused(submitted, ErrorCode::KernelArgument, &[device.name()]);
        queue.wait().unwrap();
    }
    assert!(!RAN.load(Ordering::SeqCst));
}

#[test]
fn exhausted_device_memory_names_device_and_sizes_and_leaves_the_device_usable() {
    let _watchdog = watchdog();
    let simulator = Simulator::new(SimulatedConfig::new(2).memory(4096)).unwrap();
    let (devices, control) = (simulator.devices(), simulator.control());
    let queue = Queue::new(&devices[0]).unwrap();
    let large = Buffer::from_vec(vec![1u8; 4097]).unwrap();
    let fill = queue.fill(&large, 3);
    let parts = [devices[0].name(), "out of memory", "4097", "4096"];
    refused(fill, ErrorCode::MemoryAllocation, &parts);
    refused(large.reserve(&devices[0]), ErrorCode::MemoryAllocation, &parts);
    for kind in [UsmKind::Device, UsmKind::Shared] {
        refused(queue.malloc::<u8>(kind, 4097), ErrorCode::MemoryAllocation, &[devices[0].name(), "4097"]);
    }
    // The buffer is as it was, and what fits still works.
    assert_eq!(large.into_vec().unwrap(), vec![1; 4097]);
    let (first, second) = (Buffer::<u8, 1>::uninit(4000).unwrap(), Buffer::<u8, 1>::uninit(4000).unwrap());
    queue.fill(&first, 5).unwrap();
    refused(queue.fill(&second, 6), ErrorCode::MemoryAllocation, &[devices[0].name(), "4000"]);
    assert_eq!(first.to_vec().unwrap(), vec![5; 4000]);
    first.release(&devices[0]).unwrap();
    queue.fill(&second, 6).unwrap();
    assert_eq!((second.to_vec().unwrap(), first.to_vec().unwrap()), (vec![6; 4000], vec![5; 4000]));
    drop((first, second));
    assert_eq!((control.live_allocations(0), control.allocated_bytes(1)), (0, 0));
}

#[test]
fn usm_sizes_that_overflow_and_kinds_that_are_missing_are_refused() {
    let queue = Queue::default().unwrap();
    refused(queue.malloc_device::<u64>(usize::MAX / 2), ErrorCode::Invalid, &["8 bytes"]);
    refused(queue.aligned_alloc::<u8>(UsmKind::Device, 8, 3), ErrorCode::Invalid, &["aligned to 3"]);
    let simulator = Simulator::new(SimulatedConfig::new(1).usm(&[UsmKind::Device])).unwrap();
    let device = &simulator.devices()[0];
    let queue = Queue::new(device).unwrap();
    refused(queue.malloc_shared::<u8>(8), ErrorCode::FeatureNotSupported, &[device.name(), "shared"]);
    refused(queue.malloc_host::<u8>(8), ErrorCode::FeatureNotSupported, &[device.name(), "host"]);
    let device_only = queue.malloc_device::<u8>(8).unwrap();
    // SAFETY: no command uses the allocation.
    refused(unsafe { device_only.as_slice() }, ErrorCode::Invalid, &[device.name(), "device allocation"]);
}

#[test]
fn contexts_need_devices_of_one_platform() {
    refused(Context::new(&[]), ErrorCode::Invalid, &["at least one device"]);
    let (simulated, _control) = simulated(1);
    let host = Device::default().unwrap();
    let mixed = Context::new(&[host.clone(), simulated[0].clone()]);
    refused(mixed, ErrorCode::Invalid, &[host.name(), simulated[0].name(), "different platforms"]);
}

#[test]
fn a_queue_on_a_device_outside_its_context_is_refused() {
    let (devices, _control) = simulated(2);
    let context = Context::new(&devices[..1]).unwrap();
    let queue = Queue::builder().device(&devices[1]).context(&context).build();
    refused(queue, ErrorCode::Invalid, &[devices[1].name(), "not in the context"]);
    let layout = std::alloc::Layout::new::<u64>();
    let raw = oxisycl::usm::malloc_raw(UsmKind::Device, layout, &devices[1], &context);
    refused(raw, ErrorCode::Invalid, &[devices[1].name(), "not in the context"]);
    assert!(Queue::builder().device(&devices[0]).context(&context).build().is_ok());
}

#[test]
fn a_part_of_a_device_is_in_the_devices_context() {
    let host = Device::default().unwrap();
    let part = host.partition_equally(1).unwrap().remove(0);
    let context = Context::new(&[host]).unwrap();
    let queue = Queue::builder().device(&part).context(&context).build().unwrap();
    queue.single_task(|_| {}).unwrap().wait().unwrap();
}

#[test]
fn wrong_partitions_are_refused() {
    let host = Device::default().unwrap();
    let units = host.info().max_compute_units as usize;
    let name = host.name();
    refused(host.partition_equally(0), ErrorCode::Invalid, &[name, "parts of 0"]);
    refused(host.partition_equally(units + 1), ErrorCode::Invalid, &[name, &(units + 1).to_string()]);
    refused(host.partition_by_counts(&[units, 1]), ErrorCode::Invalid, &[name, &(units + 1).to_string()]);
    refused(host.partition_by_counts(&[usize::MAX, 2]), ErrorCode::Invalid, &[name]);
    refused(host.partition_by_counts(&vec![1; units + 1]), ErrorCode::Invalid, &[name]);
    for none in [&[][..], &[0], &[0, 0]] {
        refused(host.partition_by_counts(none), ErrorCode::Invalid, &[name, "no parts"]);
    }
    let parts = host.partition_by_counts(&[0, 1, 0]).unwrap();
    assert_eq!(parts.len(), 1, "zero counts are left out");
    refused(host.parent(), ErrorCode::Invalid, &[name, "root device"]);
    assert_eq!(parts[0].parent().unwrap(), host);
    let (simulated, _control) = simulated(1);
    let name = simulated[0].name();
    refused(simulated[0].partition_equally(1), ErrorCode::FeatureNotSupported, &[name, "partition_equally"]);
    refused(simulated[0].partition_by_counts(&[1]), ErrorCode::FeatureNotSupported, &[name, "partition_by_counts"]);
    let domain = simulated[0].partition_by_affinity_domain(AffinityDomain::Numa);
    refused(domain, ErrorCode::FeatureNotSupported, &[name, "partition_by_affinity_domain"]);
}

#[test]
fn a_selector_that_excludes_every_device_is_an_error_that_lists_them() {
    let error = Device::select(|_| -1).unwrap_err();
    assert_error(&error, ErrorCode::Runtime, &["none of the devices", Device::default().unwrap().name()]);
    let impossible = oxisycl::selector::aspect_selector(&[Aspect::Cpu, Aspect::Gpu], &[]);
    refused(Queue::select(&impossible), ErrorCode::Runtime, &["none of the devices"]);
    refused(oxisycl::Platform::select(&impossible), ErrorCode::Runtime, &["none of the devices"]);
    refused(Device::select(|_| i32::MIN), ErrorCode::Runtime, &[]);
}

#[test]
fn a_profiling_queue_on_a_device_without_profiling_is_refused() {
    let simulator = Simulator::new(SimulatedConfig::new(1).profiling(false)).unwrap();
    let device = &simulator.devices()[0];
    assert!(!device.has(Aspect::QueueProfiling));
    let queue = Queue::builder().device(device).profiling().build();
    refused(queue, ErrorCode::FeatureNotSupported, &[device.name(), "queue_profiling"]);
    let context = Context::new(std::slice::from_ref(device)).unwrap();
    let queue = Queue::builder().context(&context).in_order().profiling().build();
    refused(queue, ErrorCode::FeatureNotSupported, &[device.name(), "queue_profiling"]);
    let queue = Queue::builder().device(device).build().unwrap();
    assert!(!queue.has_profiling());
    let event = queue.single_task(|_| {}).unwrap();
    event.wait().unwrap();
    refused(event.profile(), ErrorCode::Invalid, &["without profiling"]);
}

#[test]
fn a_kernel_for_a_device_that_has_no_code_of_it_is_refused() {
    static RAN: AtomicBool = AtomicBool::new(false);
    let simulator = Simulator::new(SimulatedConfig::new(1).native_kernels(false)).unwrap();
    let device = &simulator.devices()[0];
    let queue = Queue::new(device).unwrap();
    let buffer = filled(4);
    let submitted = queue.submit(|cg| {
        cg.name("nowhere compiled");
        let data = cg.access(&buffer, ReadWrite);
        cg.parallel_for(4, move |item| {
            RAN.store(true, Ordering::SeqCst);
            data.set(item, 0);
        })
    });
    refused(submitted, ErrorCode::KernelNotSupported, &["kernel \"nowhere compiled\"", device.name()]);
    refused(queue.single_task(|_| {}), ErrorCode::KernelNotSupported, &[device.name()]);
    refused(queue.parallel_for(0, |_| {}), ErrorCode::KernelNotSupported, &[device.name()]);
    // What is not a kernel works, and the buffer is as it was.
    queue.wait().unwrap();
    let copy = filled(4);
    queue.fill(&copy, 1).unwrap();
    queue.copy(&buffer, &copy).unwrap();
    assert_eq!((copy.into_vec().unwrap(), buffer.into_vec().unwrap()), (vec![7; 4], vec![7; 4]));
    assert!(!RAN.load(Ordering::SeqCst));
}

#[test]
fn a_native_queue_of_a_backend_without_one_is_a_mismatch() {
    let (devices, _control) = simulated(1);
    for device in [Device::default().unwrap(), devices[0].clone()] {
        let (sender, receiver) = std::sync::mpsc::channel();
        let queue = Queue::new(&device).unwrap();
        let task =
            queue.submit(|cg| cg.host_task(move |scope| sender.send(scope.interop().native_queue().err()).unwrap()));
        task.unwrap().wait().unwrap();
        let error = receiver.recv().unwrap().expect("there is no native queue");
        assert_error(&error, ErrorCode::BackendMismatch, &["native queue", device.backend().name()]);
    }
}

#[test]
fn profiling_of_a_queue_without_profiling_is_refused() {
    let queue = Queue::default().unwrap();
    let event = queue.single_task(|_| {}).unwrap();
    refused(event.profile(), ErrorCode::Invalid, &["without profiling"]);
    refused(Event::default().profile(), ErrorCode::Invalid, &["without a command"]);
}

#[test]
fn an_error_in_the_closure_is_what_submit_returns_and_nothing_is_enqueued() {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let queue = Queue::default().unwrap();
    let buffer = filled(1);
    let submitted = queue.submit(|cg| -> oxisycl::Result {
        cg.access(&buffer, ReadWrite);
        cg.single_task(|_| _ = RUNS.fetch_add(1, Ordering::SeqCst))?;
        Err(Error::new(ErrorCode::Build, "my own reason"))
    });
    refused(submitted, ErrorCode::Build, &["my own reason"]);
    queue.wait().unwrap();
    assert_eq!(RUNS.load(Ordering::SeqCst), 0);
    // The buffer is not held by what was given up.
    assert_eq!(buffer.into_vec().unwrap(), [7]);
}
