//! The kernels of the tests as native code, and the test of how kernels are run.

use std::alloc::Layout;
use std::any::TypeId;
use std::panic::Location;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oxisycl_image::{Form, KernelDescriptor, KernelId, ParameterLayout};
use oxisycl_types::{Aspect, HostChunk, HostEntry, LaunchRange};

use super::subject::{DeviceBytes, Subject, bytes_of, line, numbers_of, run};
use oxisycl_backend::{Memory, UsmKind};

/// The arguments of the kernel `affine`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Affine {
    /// Numbers in memory of the device: one for each work-item of the launch.
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
/// The arguments are an [`Affine`] whose numbers are valid, and which no other code uses.
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

/// What the kernel `gate` waits for: a byte that is not zero, in memory that both the host and the device reach.
pub struct Gate {
    is_open: NonNull<AtomicBool>,
    /// Where the byte was allocated, if it is not the program's own memory.
    memory: Option<Arc<dyn Memory>>,
}

// SAFETY: owns an atomic, which threads may share.
unsafe impl Send for Gate {}
// SAFETY: as above.
unsafe impl Sync for Gate {}

/// The address of a [`Gate`]'s byte, the argument of the kernel `gate`.
#[derive(Clone, Copy, Debug)]
pub(super) struct GateAddress(*const AtomicBool);

// SAFETY: the address of a value that is `Sync`.
unsafe impl Send for GateAddress {}
// SAFETY: as above.
unsafe impl Sync for GateAddress {}

const GATE_LAYOUT: Layout = Layout::new::<AtomicBool>();

impl Gate {
    /// A closed gate for a device: in a host allocation if it has such.
    pub(super) fn new(subject: &Subject) -> Arc<Self> {
        let device = subject.device();
        let memory = device.info().has(Aspect::UsmHostAllocations).then(|| device.memory().clone());
        let is_open = match &memory {
            Some(memory) => {
                let allocated = memory.allocate(UsmKind::Host, GATE_LAYOUT, true);
                allocated.expect("a device has some memory").cast::<AtomicBool>()
            }
            None => NonNull::from(Box::leak(Box::new(AtomicBool::new(false)))),
        };
        Arc::new(Self { is_open, memory })
    }

    pub(super) fn address(gate: &Arc<Self>) -> GateAddress {
        GateAddress(gate.is_open.as_ptr())
    }

    /// Lets kernels end.
    pub(super) fn open(&self) {
        // SAFETY: the byte lives as long as `self`, and zero is a value of it.
        unsafe { self.is_open.as_ref() }.store(true, Ordering::Release);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        match &self.memory {
            // SAFETY: allocated in `new` with these arguments; the tests see the kernel complete before they drop the gate.
            Some(memory) => unsafe { memory.free(self.is_open.cast(), UsmKind::Host, GATE_LAYOUT) },
            // SAFETY: leaked in `new`.
            None => drop(unsafe { Box::from_raw(self.is_open.as_ptr()) }),
        }
    }
}

/// Runs until the gate is open.
///
/// # Safety
/// The arguments are the address of the byte of a [`Gate`] that outlives the launch.
pub unsafe fn gate_entry(arguments: *const u8, _launch: &LaunchRange, _chunk: &HostChunk) {
    // SAFETY: by the contract of this function.
    let gate = unsafe { &*arguments.cast::<GateAddress>().read().0 };
    while !gate.load(Ordering::Acquire) {
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
        arguments: None,
        stated: oxisycl_image::StatedNeeds::NONE,
        host_entry,
    }
}

/// A launch of any size and number of dimensions, with and without an offset, runs each of its items exactly once.
pub fn kernels_run_every_item_once(subject: &Subject) {
    let queue = subject.queue();
    let launches = [
        LaunchRange::SINGLE,
        line(1),
        line(if cfg!(miri) { 100 } else { 1000 }),
        line(if cfg!(miri) { 501 } else { 70_001 }),
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
