//! OpenCL's own handles.

use oxisycl_backend::NativeHandle;
use oxisycl_backend_opencl::{
    SharingKind, native_context, native_device, native_events, native_platform, native_queue,
};

use crate::support::{devices, in_order, issue, kernels, launch};

crate::suite::tests![
    handles_of_devices_queues_and_events_are_given_out,
    handles_of_other_backends_are_not_taken_for_opencl_s,
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
