//! The kernels of the tests as native code, and the test of how kernels are run.

use std::any::TypeId;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_types::{HostChunk, HostEntry, LaunchRange};

use super::subject::{DeviceBytes, Subject, bytes_of, line, numbers_of, run};

/// The arguments of the kernel `affine`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Affine {
    /// As many numbers in memory of the device as the launch has items.
    pub values: *mut u32,
    /// See [`affine_entry`].
    pub factor: u32,
    /// See [`affine_entry`].
    pub summand: u32,
}

// SAFETY: an address, which is only used on the device.
unsafe impl Send for Affine {}
// SAFETY: as above.
unsafe impl Sync for Affine {}

/// Replaces the number with the linear index `i` of each item by `number * factor + summand + i`, wrapping around.
///
/// # Safety
/// The arguments are an [`Affine`] whose numbers are valid and used by nobody else.
pub unsafe fn affine_entry(arguments: *const u8, _launch: &LaunchRange, chunk: &HostChunk) {
    // SAFETY: by the contract of this function.
    let Affine { values, factor, summand } = unsafe { *arguments.cast::<Affine>() };
    for index in chunk.begin..chunk.end {
        // SAFETY: as above; each item has a number of its own.
        let value = unsafe { &mut *values.add(index) };
        *value = value.wrapping_mul(factor).wrapping_add(summand).wrapping_add(index as u32);
    }
}

/// Panics. The launch has one item.
///
/// # Safety
/// None; it is `unsafe` to be a [`HostEntry`].
pub unsafe fn failing_entry(_arguments: *const u8, _launch: &LaunchRange, _chunk: &HostChunk) {
    panic!("this kernel always fails");
}

/// What the kernel `gate` waits for.
#[derive(Debug, Default)]
pub struct Gate {
    is_open: AtomicBool,
}

/// The address of a [`Gate`], the argument of the kernel `gate`.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateAddress(*const Gate);

// SAFETY: the address of a value that is `Sync`.
unsafe impl Send for GateAddress {}
// SAFETY: as above.
unsafe impl Sync for GateAddress {}

impl Gate {
    /// A closed gate.
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(super) fn address(gate: &Arc<Self>) -> GateAddress {
        GateAddress(Arc::as_ptr(gate))
    }

    /// Lets kernels end.
    pub(super) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}

/// Runs until the gate is open.
///
/// # Safety
/// The arguments are the address of a [`Gate`] that outlives the launch.
pub unsafe fn gate_entry(arguments: *const u8, _launch: &LaunchRange, _chunk: &HostChunk) {
    // SAFETY: by the contract of this function.
    let gate = unsafe { &*arguments.cast::<GateAddress>().read().0 };
    while !gate.is_open.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
}

/// Descriptors of [`affine_entry`], [`failing_entry`] and [`gate_entry`].
pub fn native() -> [KernelDescriptor; 3] {
    [
        descriptor::<Affine>("affine", affine_entry),
        descriptor::<()>("failing", failing_entry),
        descriptor::<GateAddress>("gate", gate_entry),
    ]
}

fn descriptor<K: 'static>(name: &'static str, host_entry: HostEntry) -> KernelDescriptor {
    KernelDescriptor {
        id: KernelId { type_id: TypeId::of::<K>(), form: Form::Range(1) },
        type_name: name,
        name: Some(name),
        location: Location::caller(),
        parameters: ParameterLayout { size: size_of::<K>(), align: align_of::<K>() },
        host_entry,
    }
}

/// A launch of any size and number of dimensions, with and without an offset, runs each of its items exactly once.
pub fn kernels_run_every_item_once(subject: &Subject) {
    let queue = subject.queue();
    let launches = [
        LaunchRange::SINGLE,
        line(1),
        line(1000),
        line(70_001),
        LaunchRange { dimensions: 2, extent: [1, 7, 13], offset: [0; 3] },
        LaunchRange { dimensions: 3, extent: [5, 3, 11], offset: [2, 1, 4] },
    ];
    for range in launches {
        let memory = DeviceBytes::upload(subject.device(), &queue, &bytes_of(&vec![7; range.size()]));
        run(&queue, subject.affine(Affine { values: memory.as_ptr().cast(), factor: 3, summand: 5 }, range));
        let expected: Vec<u32> = (0..range.size() as u32).map(|index| 26 + index).collect();
        assert!(numbers_of(&memory.download(&queue)) == expected, "wrong items of {range:?}");
    }
}
