//! Allocations, boxes, and fills that the driver does not do itself.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use oxisycl_backend::{
    BackendError, Command, CopyCommand, Device, FillCommand, FillPattern, MemoryId, PitchedBox, UsmKind,
};
use oxisycl_backend_opencl::SharingKind;

use crate::support::{WAYS, devices, in_order, out_of_order, row, succeed};

crate::suite::tests![
    more_than_there_is_of_memory_is_an_error_that_says_how_much,
    kinds_of_memory_that_a_device_lacks_are_refused,
    boxes_of_many_rows_are_copied_whole,
    long_fills_with_odd_patterns_and_padding_are_whole,
];

/// A byte that kernels and the host see, zero at first.
pub(crate) struct HostByte {
    device: Arc<dyn Device>,
    byte: NonNull<u8>,
}

const BYTE: Layout = Layout::new::<u8>();

impl HostByte {
    pub(crate) fn new(device: &Arc<dyn Device>) -> Self {
        let byte = device.memory().allocate(UsmKind::Host, BYTE, true).expect("there is memory");
        Self { device: device.clone(), byte }
    }

    pub(crate) fn address(&self) -> usize {
        self.byte.as_ptr() as usize
    }

    pub(crate) fn open(&self) {
        // SAFETY: the byte lives as long as `self`; atomics may be shared with the device.
        unsafe { AtomicU8::from_ptr(self.byte.as_ptr()) }.store(1, Ordering::Release);
    }
}

impl Drop for HostByte {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`; the tests wait for the kernels that use it.
        unsafe { self.device.memory().free(self.byte, UsmKind::Host, BYTE) };
    }
}

fn more_than_there_is_of_memory_is_an_error_that_says_how_much() {
    for way in WAYS {
        for device in devices(way) {
            let layout = Layout::from_size_align(1 << 50, 64).expect("a layout");
            let error = device.memory().allocate(UsmKind::Device, layout, false).expect_err("nobody has so much");
            assert!(matches!(error, BackendError::OutOfMemory { requested, .. } if requested == 1 << 50), "{error}");
            // The device goes on.
            let small = Layout::new::<u64>();
            let pointer = device.memory().allocate(UsmKind::Device, small, true).expect("there is memory");
            // SAFETY: allocated above, and not used.
            unsafe { device.memory().free(pointer, UsmKind::Device, small) };
        }
    }
}

fn kinds_of_memory_that_a_device_lacks_are_refused() {
    for device in devices(SharingKind::CoarseSvm) {
        for kind in [UsmKind::Host, UsmKind::Shared] {
            let error = device.memory().allocate(kind, BYTE, false).expect_err("there is no such memory");
            assert!(matches!(error, BackendError::UnsupportedUsm { .. }), "{error}");
        }
    }
}

fn boxes_of_many_rows_are_copied_whole() {
    const ROWS: usize = 300;
    for way in WAYS {
        for device in devices(way) {
            for queue in [in_order(&device), out_of_order(&device)] {
                let layout = Layout::from_size_align(ROWS * 64, 64).expect("a layout");
                let pointer = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
                let mut bytes: Vec<u8> = (0..ROWS * 40).map(|i| (i % 251) as u8).collect();
                let host =
                    |pointer: *mut u8| PitchedBox { memory: MemoryId::HOST, pointer, row_pitch: 40, slice_pitch: 0 };
                let near = PitchedBox {
                    memory: device.info().memory.id,
                    pointer: pointer.as_ptr(),
                    row_pitch: 64,
                    slice_pitch: 0,
                };
                let extent = [1, ROWS, 33];
                succeed(&queue, Command::from(CopyCommand { source: host(bytes.as_mut_ptr()), target: near, extent }));
                let mut back = vec![0u8; ROWS * 40];
                succeed(&queue, Command::from(CopyCommand { source: near, target: host(back.as_mut_ptr()), extent }));
                for row in 0..ROWS {
                    assert_eq!(back[row * 40..][..33], bytes[row * 40..][..33], "row {row}");
                    assert_eq!(back[row * 40 + 33..(row + 1) * 40], [0; 7], "behind row {row}");
                }
                // SAFETY: allocated above; the commands have ended.
                unsafe { device.memory().free(pointer, UsmKind::Device, layout) };
            }
        }
    }
}

fn long_fills_with_odd_patterns_and_padding_are_whole() {
    /// Five bytes and three without a value.
    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Padded(u32, u8);
    const ELEMENTS: usize = 500_000;
    for way in WAYS {
        for device in devices(way) {
            let queue = out_of_order(&device);
            let layout = Layout::from_size_align(ELEMENTS * 8, 64).expect("a layout");
            let pointer = device.memory().allocate(UsmKind::Device, layout, true).expect("there is memory");
            let target = row(device.info().memory.id, pointer.as_ptr());
            let pattern = FillPattern::from_slice(&[1, 2, 3, 4, 5, 6, 7]);
            let fill = |pattern| Command::from(FillCommand { target, pattern, extent: [1, 1, ELEMENTS] });
            let mut back = vec![0u8; ELEMENTS * 8];
            let host = row(MemoryId::HOST, back.as_mut_ptr());
            let download = || CopyCommand { source: target, target: host, extent: [1, 1, ELEMENTS * 8] };
            succeed(&queue, fill(pattern));
            succeed(&queue, Command::from(download()));
            assert!(back[..ELEMENTS * 7].chunks_exact(7).all(|bytes| bytes == [1, 2, 3, 4, 5, 6, 7]));
            assert!(back[ELEMENTS * 7..].iter().all(|byte| *byte == 0));
            succeed(&queue, fill(FillPattern::of(&Padded(0x0403_0201, 5))));
            succeed(&queue, Command::from(download()));
            assert!(back.chunks_exact(8).all(|bytes| bytes[..5] == [1, 2, 3, 4, 5]));
            // SAFETY: allocated above; the commands have ended.
            unsafe { device.memory().free(pointer, UsmKind::Device, layout) };
        }
    }
}
