//! Launches: order, panics, output, and limits.

use std::alloc::Layout;
use std::sync::Arc;

use oxisycl_backend::{
    BackendError, Command, Completion, CopyCommand, Dependency, DependencyKind, EventStatus, FailureKind, MemoryId,
    Queue, QueueOptions, UsmKind,
};
use oxisycl_backend_opencl::SharingKind;
use oxisycl_backend_testing::contract::Affine;
use oxisycl_backend_testing::harness::create_queue;
use oxisycl_backend_testing::probe::Printed;

use crate::support::{
    Probe, WAYS, devices, devices_with_host_memory, in_order, issue, kernels, launch, launch_with, out_of_order, row,
    run, succeed,
};

crate::suite::tests![
    a_panic_is_told_with_message_place_and_item,
    many_launches_that_panic_have_a_record_each_and_records_are_used_again,
    what_kernels_print_comes_with_the_completion,
    more_launches_than_there_are_print_buffers_lose_nothing,
    what_finds_no_room_is_counted,
    a_marker_without_dependencies_waits_for_nothing_on_a_queue_without_order,
    queues_cannot_wait_for_events_of_another_device_and_go_on_when_those_have_ended,
    arguments_beyond_the_device_s_limit_are_refused_before_the_launch,
    arguments_of_another_size_than_the_image_s_are_refused,
    launches_of_one_kernel_over_other_ranges_reach_the_work_items_of_their_own,
    other_memory_comes_and_goes_while_kernels_run,
];

fn a_panic_is_told_with_message_place_and_item() {
    for way in WAYS {
        for device in devices(way) {
            let [failing] = kernels(&device, ["failing"]);
            for queue in [in_order(&device), out_of_order(&device)] {
                let failure = run(&queue, launch(&failing, "failing", 1000)).result.expect_err("the kernel panics");
                let FailureKind::Panic { message, location, item } = failure.kind() else { panic!("{failure}") };
                assert_eq!(message, "this kernel always fails");
                assert_eq!(location.as_deref(), Some("kernels.spvasm:7:1"));
                assert!(matches!(item, Some((1, [0, 0, 0..1000]))), "{item:?}");
            }
        }
    }
}

fn many_launches_that_panic_have_a_record_each_and_records_are_used_again() {
    for way in WAYS {
        for device in devices(way) {
            let [failing, empty] = kernels(&device, ["failing", "empty"]);
            let queue = out_of_order(&device);
            for _ in 0..3 {
                let probes: Vec<_> = (0..200).map(|_| issue(&queue, launch(&failing, "failing", 3), &[]).1).collect();
                assert!(probes.iter().all(|probe| probe.wait().result.is_err()));
                succeed(&queue, launch(&empty, "empty", 3));
            }
        }
    }
}

fn what_kernels_print_comes_with_the_completion() {
    for way in WAYS {
        for device in devices(way) {
            let [printing] = kernels(&device, ["printing"]);
            for queue in [in_order(&device), out_of_order(&device)] {
                let (_, probe) = issue(&queue, launch(&printing, "printing", 100), &[]);
                let expected = Printed { text: "printed\n".repeat(100), ..Printed::default() };
                assert_eq!(probe.printed(), expected);
            }
        }
    }
}

fn more_launches_than_there_are_print_buffers_lose_nothing() {
    for device in devices(SharingKind::Best) {
        let [printing] = kernels(&device, ["printing"]);
        for queue in [in_order(&device), out_of_order(&device)] {
            let probes: Vec<_> = (0..100).map(|_| issue(&queue, launch(&printing, "printing", 3), &[]).1).collect();
            for probe in probes {
                let expected = Printed { text: "printed\n".repeat(3), ..Printed::default() };
                assert_eq!(probe.printed(), expected);
            }
        }
    }
}

fn what_finds_no_room_is_counted() {
    for device in devices(SharingKind::Best) {
        let [printing] = kernels(&device, ["printing"]);
        let options = QueueOptions { print_buffer: 64, ..QueueOptions::default() };
        let queue = create_queue(&device, &options).expect("a queue");
        let (_, probe) = issue(&queue, launch(&printing, "printing", 10), &[]);
        let expected = Printed { text: "printed\n".repeat(4), lost: Some((6, 64)), unreadable: 0 };
        assert_eq!(probe.printed(), expected);
    }
}

fn a_marker_without_dependencies_waits_for_nothing_on_a_queue_without_order() {
    for device in devices_with_host_memory() {
        let [gate] = kernels(&device, ["gate"]);
        let byte = crate::memory::HostByte::new(&device);
        let queue = out_of_order(&device);
        let (blocked, end) = issue(&queue, launch_with(&gate, "gate", &byte.address(), 1), &[]);
        // A chain of markers behind nothing, which the host waits for before it lets the kernel end.
        let mut last = None;
        for _ in 0..10 {
            let before: Vec<Dependency> =
                last.take().map(|event| Dependency { event, kind: DependencyKind::Data }).into_iter().collect();
            let (event, probe) = issue(&queue, Command::Marker, &before);
            probe.wait().result.expect("a marker succeeds");
            last = Some(event);
        }
        assert_ne!(blocked.status(), EventStatus::Complete);
        byte.open();
        end.wait().result.expect("the gate is open");
        assert_eq!(blocked.status(), EventStatus::Complete);
    }
}

fn queues_cannot_wait_for_events_of_another_device_and_go_on_when_those_have_ended() {
    for device in devices_with_host_memory() {
        // A second opening of the driver has contexts of its own, as another device would.
        for other in devices(SharingKind::Best) {
            let [gate] = kernels(&device, ["gate"]);
            let byte = crate::memory::HostByte::new(&device);
            let (first, end) = issue(&in_order(&device), launch_with(&gate, "gate", &byte.address(), 1), &[]);
            let queue = in_order(&other);
            let domain = |queue: &Arc<dyn Queue>| queue.info().event_domain;
            assert!(
                domain(&in_order(&device)) == domain(&in_order(&device))
                    && domain(&in_order(&device)) != domain(&queue)
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_ne!(first.status(), EventStatus::Complete);
            byte.open();
            // As the runtime does.
            end.wait().result.expect("the gate is open");
            let [empty] = kernels(&other, ["empty"]);
            let before = [Dependency { event: first.clone(), kind: DependencyKind::Data }];
            let (second, behind) = issue(&queue, launch(&empty, "empty", 1), &before);
            let before = [Dependency { event: second, kind: DependencyKind::Data }];
            let (_, last) = issue(&queue, launch(&empty, "empty", 1), &before);
            for probe in [behind, last] {
                probe.wait().result.expect("the gate is open");
            }
        }
    }
}

fn arguments_beyond_the_device_s_limit_are_refused_before_the_launch() {
    for device in devices(SharingKind::Best) {
        let limit = device.info().max_parameter_size;
        let mut image = crate::support::image();
        for kernel in &mut image.kernels {
            if kernel.symbol == "gate" {
                kernel.parameters.size = 1 << 20;
            }
        }
        // SAFETY: the code of this test.
        let module = unsafe { device.load(&image, None) }.expect("the driver takes the image");
        let gate = module.kernel("gate").expect("the image has the kernel");
        let command = launch_with(&gate, "gate", &[0u64; 1 << 17], 1);
        // SAFETY: the command is refused.
        let refused = unsafe { in_order(&device).issue(command, &[], Arc::new(Probe::default())) };
        let error = refused.err().expect("no device takes a megabyte of arguments").to_string();
        assert!(error.contains("kernel \"gate\"") && error.contains(&limit.to_string()), "{error}");
        assert!(error.contains(&device.info().name) && error.contains(&(1 << 20).to_string()), "{error}");
    }
}

fn arguments_of_another_size_than_the_image_s_are_refused() {
    for device in devices(SharingKind::Best) {
        let [affine] = kernels(&device, ["affine"]);
        let completion: Arc<dyn Completion> = Arc::new(Probe::default());
        let command = launch_with(&affine, "affine", &0u32, 1);
        // SAFETY: the command is refused.
        let error = unsafe { in_order(&device).issue(command, &[], completion) }.err().expect("the sizes differ");
        assert!(matches!(error, BackendError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("its argument is 4 bytes, but 16 in the image"), "{error}");
    }
}

fn launches_of_one_kernel_over_other_ranges_reach_the_work_items_of_their_own() {
    const LEN: usize = 100;
    for way in WAYS {
        for device in devices(way) {
            let [affine] = kernels(&device, ["affine"]);
            let queue = in_order(&device);
            let layout = Layout::array::<u32>(LEN).expect("a layout");
            let memory = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
            let add = |summand: u32| Affine { values: memory.as_ptr().cast(), factor: 1, summand };
            let ranges = [10, 10, 90, 10, 90, 90, 100, 10];
            for (step, n) in ranges.into_iter().enumerate() {
                succeed(&queue, launch_with(&affine, "affine", &add(1 << step), n));
            }
            let mut found = [0u32; LEN];
            let (near, host) =
                (row(device.info().memory.id, memory.as_ptr()), row(MemoryId::HOST, found.as_mut_ptr().cast()));
            succeed(&queue, Command::from(CopyCommand { source: near, target: host, extent: [1, 1, layout.size()] }));
            for (i, found) in found.into_iter().enumerate() {
                let steps = (0..).zip(ranges).filter(|(_, n)| i < *n);
                assert_eq!(found, steps.map(|(step, _)| (1 << step) + i as u32).sum::<u32>(), "work-item {i}");
            }
            // SAFETY: allocated above; the commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, layout) };
        }
    }
}

fn other_memory_comes_and_goes_while_kernels_run() {
    const LEN: usize = 10_000;
    for way in WAYS {
        for device in devices(way) {
            let [affine] = kernels(&device, ["affine"]);
            let queue = in_order(&device);
            let layout = Layout::array::<u32>(LEN).expect("a layout");
            let allocate = || device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
            let memory = allocate();
            let add = Affine { values: memory.as_ptr().cast(), factor: 1, summand: 1 };
            let mut probes = Vec::new();
            for _ in 0..50 {
                let other = allocate();
                probes.push(issue(&queue, launch_with(&affine, "affine", &add, LEN), &[]).1);
                // SAFETY: allocated above, and no command uses it.
                unsafe { device.memory().free(other, UsmKind::Device, layout) };
            }
            probes.iter().for_each(|probe| probe.wait().result.expect("the kernel runs"));
            let mut found = vec![0u32; LEN];
            let (near, host) =
                (row(device.info().memory.id, memory.as_ptr()), row(MemoryId::HOST, found.as_mut_ptr().cast()));
            succeed(&queue, Command::from(CopyCommand { source: near, target: host, extent: [1, 1, layout.size()] }));
            assert!((0..).zip(&found).all(|(i, found)| *found == 50 * (i + 1)), "{found:?}");
            // SAFETY: allocated above; the commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, layout) };
        }
    }
}
