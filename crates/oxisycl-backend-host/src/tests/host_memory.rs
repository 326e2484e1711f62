//! Allocations of the host device.

use std::alloc::Layout;

use oxisycl_backend::{BackendError, MemoryInfo, UsmKind};

use super::support::*;

#[test]
fn every_byte_is_defined_and_aligned_whatever_the_size() {
    let device = device(1);
    let memory = device.memory();
    assert_eq!(device.info().memory, MemoryInfo::HOST);
    let zeroes = vec![0u8; 9 << 20];
    for size in [1, 63, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 9 << 20] {
        for align in [1, 64, 4096, 2 << 20, 4 << 20] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            for zeroed in [false, true] {
                let pointer = memory.allocate(UsmKind::Shared, layout, zeroed).expect("memory");
                assert!((pointer.as_ptr() as usize).is_multiple_of(align.max(64)));
                // SAFETY: allocated with this size, and every byte is defined.
                let bytes = unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), size) };
                assert!(*bytes == zeroes[..size]);
                bytes.fill(0xFF);
                // SAFETY: allocated above with the same kind and layout.
                unsafe { memory.free(pointer, UsmKind::Shared, layout) };
            }
        }
    }
}

#[test]
fn more_than_there_is_is_an_error_that_names_the_device() {
    let device = device(1);
    for size in [isize::MAX as usize - (1 << 20), 1 << 50] {
        let layout = Layout::from_size_align(size, 64).expect("a layout");
        let error = device.memory().allocate(UsmKind::Device, layout, true).expect_err("too much");
        let expected = BackendError::OutOfMemory { device: "test CPU".to_owned(), requested: size, available: None };
        assert_eq!(error, expected);
    }
}
