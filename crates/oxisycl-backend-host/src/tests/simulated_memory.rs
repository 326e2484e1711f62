//! Memory of simulated devices: poison, limits, faults, counts.

use std::alloc::Layout;

use oxisycl_backend::{Backend, BackendError, Operation, UsmKind};

use super::simulated_commands::devices;
use crate::{Fault, SimulatedBackend, SimulatedConfig};

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 16).expect("a layout")
}

#[test]
fn fresh_memory_is_poisoned_unless_zeroes_are_asked_for() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let memory = devices(&backend)[0].memory().clone();
    for size in [100, if cfg!(miri) { 5000 } else { 5 << 20 }] {
        for (zeroed, expected) in [(false, 0xA5), (true, 0)] {
            let pointer = memory.allocate(UsmKind::Device, layout(size), zeroed).expect("memory");
            // SAFETY: just allocated with this size.
            let bytes = unsafe { std::slice::from_raw_parts(pointer.as_ptr(), size) };
            assert!(bytes.iter().all(|byte| *byte == expected));
            // SAFETY: allocated above.
            unsafe { memory.free(pointer, UsmKind::Device, layout(size)) };
        }
    }
}

#[test]
fn the_limit_holds_per_device_and_counts_what_is_live() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(2).memory(1000));
    let devices = devices(&backend);
    let control = backend.control();
    let memory = devices[0].memory();
    let first = memory.allocate(UsmKind::Device, layout(600), false).expect("memory");
    let error = memory.allocate(UsmKind::Shared, layout(500), false).expect_err("too much");
    let expected =
        BackendError::OutOfMemory { device: "simulated device 0".to_owned(), requested: 500, available: Some(400) };
    assert_eq!(error, expected);
    // Host memory is the host's.
    let host = memory.allocate(UsmKind::Host, layout(5000), false).expect("memory");
    let other = devices[1].memory().allocate(UsmKind::Device, layout(1000), false).expect("memory");
    assert_eq!((control.live_allocations(0), control.allocated_bytes(0)), (2, 5600));
    assert_eq!((control.live_allocations(1), control.allocated_bytes(1)), (1, 1000));
    // SAFETY: all allocated above with these kinds and layouts.
    unsafe {
        memory.free(first, UsmKind::Device, layout(600));
        memory.free(host, UsmKind::Host, layout(5000));
        devices[1].memory().free(other, UsmKind::Device, layout(1000));
    }
    assert_eq!((control.live_allocations(0), control.allocated_bytes(0)), (0, 0));
    let again = memory.allocate(UsmKind::Device, layout(1000), false).expect("all of it");
    // SAFETY: as above.
    unsafe { memory.free(again, UsmKind::Device, layout(1000)) };
}

#[test]
fn a_kind_that_is_not_there_is_an_error_and_device_memory_is_always_there() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1).usm(&[]));
    let memory = devices(&backend)[0].memory().clone();
    for kind in [UsmKind::Host, UsmKind::Shared] {
        let error = memory.allocate(kind, layout(8), false).expect_err("no such kind");
        assert_eq!(error, BackendError::UnsupportedUsm { device: "simulated device 0".to_owned(), kind });
    }
    let pointer = memory.allocate(UsmKind::Device, layout(8), false).expect("memory");
    // SAFETY: allocated above.
    unsafe { memory.free(pointer, UsmKind::Device, layout(8)) };
}

#[test]
fn allocations_fail_on_request() {
    let fault = Fault { operation: Operation::Allocate, count: 1, device: None };
    let backend = SimulatedBackend::new(SimulatedConfig::new(1).fault(fault));
    let control = backend.control();
    let memory = devices(&backend)[0].memory().clone();
    let error = memory.allocate(UsmKind::Device, layout(8), false).expect_err("injected");
    assert!(matches!(error, BackendError::InjectedFault { operation: Operation::Allocate, count: 1, .. }));
    let pointer = memory.allocate(UsmKind::Device, layout(8), false).expect("memory");
    control.fail_next(0, Operation::Allocate, 1);
    assert!(memory.allocate(UsmKind::Device, layout(8), false).is_err());
    assert_eq!(control.attempts(0, Operation::Allocate), 3);
    // SAFETY: allocated above.
    unsafe { memory.free(pointer, UsmKind::Device, layout(8)) };
}

#[test]
fn an_index_that_does_not_exist_is_harmless() {
    let backend = SimulatedBackend::new(SimulatedConfig::new(1));
    let control = backend.control();
    control.fail_next(7, Operation::Copy, 1);
    control.pause(7);
    control.resume(7);
    assert_eq!((control.attempts(7, Operation::Copy), control.live_allocations(7)), (0, 0));
    assert_eq!(control.n_devices(), 1);
    assert_eq!(backend.platforms().expect("a platform")[0].info().vendor, "OxiSYCL");
}
