//! OpenCL's own handles.

use std::alloc::Layout;
use std::ptr;

use oxisycl_backend::{
    BackendError, Command, CopyCommand, Dependency, DependencyKind, MemoryId, NativeCommand, NativeHandle, NativeQueue,
    UsmKind,
};
use oxisycl_backend_opencl::{
    SharingKind, native_context, native_device, native_events, native_platform, native_queue,
};

use oxisycl_backend_opencl::sys::Functions;
use oxisycl_backend_testing::contract::Affine;

use crate::support::{devices, in_order, issue, kernels, launch, launch_with, out_of_order, row, succeed};

crate::suite::tests![
    handles_of_devices_queues_and_events_are_given_out,
    handles_of_other_backends_are_not_taken_for_opencl_s,
    native_work_comes_between_the_kernels_before_and_after_it,
    native_work_that_fails_fails_its_command_alone,
];

fn handles_of_devices_queues_and_events_are_given_out() {
    for device in devices(SharingKind::Best) {
        let handles = [native_platform(&*device), native_device(&*device), native_context(&*device)];
        assert!(handles.iter().all(|handle| handle.is_some_and(|handle| !handle.is_null())));
        let queue = in_order(&device);
        assert!(native_queue(&*queue).is_some_and(|queue| !queue.is_null()));
        let kinds = [NativeHandle::Queue, NativeHandle::Device, NativeHandle::Context];
        let of_queue = kinds.map(|kind| queue.native_handle(kind));
        assert_eq!(of_queue, [native_queue(&*queue), handles[1], handles[2]]);
        let [empty] = kernels(&device, ["empty"]);
        let (event, probe) = issue(&queue, launch(&empty, "empty", 1), &[]);
        let events = native_events(&*event).expect("an event of OpenCL");
        assert!(events.len() == 1 && !events[0].is_null());
        probe.wait().result.expect("an empty kernel succeeds");
    }
}

fn handles_of_other_backends_are_not_taken_for_opencl_s() {
    let other = oxisycl_backend_testing::recording::RecordingBackend::new(
        oxisycl_backend_testing::recording::RecordingConfig::new(1),
    );
    for device in other.devices() {
        assert!(native_device(&*device).is_none() && native_context(&*device).is_none());
        assert!(native_queue(&*in_order(&device)).is_none());
    }
}

fn native(work: impl FnOnce(NativeQueue) -> Result<(), BackendError> + Send + 'static) -> Command {
    Command::Native(Box::new(NativeCommand::new("fill".to_owned(), Box::new(work))))
}

fn native_work_comes_between_the_kernels_before_and_after_it() {
    const LEN: usize = 100_000;
    // The calls for shared virtual memory need no extension.
    for device in devices(SharingKind::Svm) {
        let [affine] = kernels(&device, ["affine"]);
        for queue in [in_order(&device), out_of_order(&device)] {
            assert!(queue.info().takes_native);
            let layout = Layout::array::<u32>(LEN).expect("a layout");
            let memory = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
            let kernel = |factor, summand| {
                let arguments = Affine { values: memory.as_ptr().cast(), factor, summand };
                launch_with(&affine, "affine", &arguments, LEN)
            };
            let target = memory.as_ptr() as usize;
            let fill = |value: u32| {
                native(move |native| {
                    // SAFETY: the loader that the backend has loaded, a live queue, and memory of its context. The pattern is copied.
                    let code = unsafe {
                        let functions = Functions::load(None).expect("the loader");
                        let (target, pattern) = (ptr::with_exposed_provenance_mut(target), (&raw const value).cast());
                        (functions.clEnqueueSVMMemFill)(
                            native.queue,
                            target,
                            pattern,
                            4,
                            4 * LEN,
                            0,
                            ptr::null(),
                            ptr::null_mut(),
                        )
                    };
                    assert_eq!(code, 0);
                    Ok(())
                })
            };
            let mut before: Vec<Dependency> = Vec::new();
            let mut probes = Vec::new();
            for round in 0..20 {
                for command in [kernel(5, round), fill(100 + round), kernel(3, 7)] {
                    let (event, probe) = issue(&queue, command, &before);
                    before = vec![Dependency { event, kind: DependencyKind::Data }];
                    probes.push(probe);
                }
            }
            probes.iter().for_each(|probe| probe.wait().result.expect("the command runs"));
            let mut found = vec![0u32; LEN];
            let (near, host) =
                (row(device.info().memory.id, memory.as_ptr()), row(MemoryId::HOST, found.as_mut_ptr().cast()));
            succeed(&queue, Command::from(CopyCommand { source: near, target: host, extent: [1, 1, layout.size()] }));
            // Any other order gives other numbers.
            assert!((0..).zip(&found).all(|(i, found)| *found == 3 * 119 + 7 + i), "{:?}", &found[..8]);
            // SAFETY: allocated above; the commands have ended.
            unsafe { device.memory().free(memory, UsmKind::Device, layout) };
        }
    }
}

fn native_work_that_fails_fails_its_command_alone() {
    for device in devices(SharingKind::Best) {
        let [empty] = kernels(&device, ["empty"]);
        for queue in [in_order(&device), out_of_order(&device)] {
            let fails = native(|_| Err(BackendError::NotCompiled { reason: "no handle".to_owned() }));
            let (_, probe) = issue(&queue, fails, &[]);
            let failure = probe.wait().result.expect_err("the work fails");
            assert!(failure.to_string().contains("no handle"), "{failure}");
            succeed(&queue, launch(&empty, "empty", 1));
        }
    }
}
