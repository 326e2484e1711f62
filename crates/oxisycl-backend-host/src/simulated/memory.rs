//! The separate memories of simulated devices.
//!
//! [`Registry`] owns the list of all live allocations of one backend's devices, so that each address has at most one
//! owner. A command that uses a wrong address is found out. Fresh memory holds the byte `0xA5` unless zeroes were asked
//! for, freed memory `0xDD`. Invariant: an allocation is on the list from before its address is returned until it is
//! overwritten and released.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use oxisycl_backend::{BackendError, Memory, Operation, UsmKind};
use parking_lot::Mutex;

use super::fault::Attempts;
use crate::memory::{allocate, free};

const FRESH: u8 = 0xA5;
const FREED: u8 = 0xDD;

/// One live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    size: usize,
    /// The index of the device that allocated it.
    device: usize,
    kind: UsmKind,
}

/// The live allocations of a backend, by address.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    allocations: Mutex<BTreeMap<usize, Allocation>>,
}

/// The kind of memory that a range of addresses lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In memory of the host.
    Host,
    /// In a host or shared allocation.
    Usm,
    /// In one device allocation of the device with that index.
    Device(usize),
    /// Partly in a device allocation.
    Torn,
}

impl Registry {
    /// The kind of memory that `size` bytes from `address` lie in.
    pub(crate) fn place(&self, address: usize, size: usize) -> Place {
        let end = address.saturating_add(size);
        let allocations = self.allocations.lock();
        let before = allocations.range(..end).next_back();
        let Some((start, allocation)) = before.filter(|(start, found)| **start + found.size > address) else {
            return Place::Host;
        };
        if allocation.kind != UsmKind::Device {
            Place::Usm
        } else if *start <= address && end <= *start + allocation.size {
            Place::Device(allocation.device)
        } else {
            Place::Torn
        }
    }

    /// The number of a device's live allocations, and their bytes.
    pub(crate) fn live(&self, device: usize) -> (usize, u64) {
        let allocations = self.allocations.lock();
        let of_device = allocations.values().filter(|allocation| allocation.device == device);
        of_device.fold((0, 0), |(count, bytes), allocation| (count + 1, bytes + allocation.size as u64))
    }
}

/// The memory of one simulated device.
pub(crate) struct SimulatedMemory {
    device: usize,
    device_name: String,
    usm: Vec<UsmKind>,
    limit: u64,
    registry: Arc<Registry>,
    attempts: Arc<Mutex<Attempts>>,
    /// The bytes in device and shared allocations.
    used: Mutex<u64>,
}

impl SimulatedMemory {
    pub(crate) fn new(
        device: usize,
        device_name: String,
        usm: Vec<UsmKind>,
        limit: u64,
        registry: Arc<Registry>,
        attempts: Arc<Mutex<Attempts>>,
    ) -> Self {
        let used = Mutex::new(0);
        Self { device, device_name, usm, limit, registry, attempts, used }
    }

    /// Subtracts `size` bytes from the device's free memory. An error if there are not as many.
    fn reserve(&self, size: usize) -> Result<(), BackendError> {
        let mut used = self.used.lock();
        let available = self.limit.saturating_sub(*used);
        if size as u64 > available {
            return Err(self.out_of_memory(size, usize::try_from(available).unwrap_or(usize::MAX)));
        }
        *used += size as u64;
        Ok(())
    }

    /// Reverts `reserve`.
    fn give_back(&self, size: usize) {
        let mut used = self.used.lock();
        *used = used.saturating_sub(size as u64);
    }

    fn out_of_memory(&self, requested: usize, available: usize) -> BackendError {
        BackendError::OutOfMemory { device: self.device_name.clone(), requested, available: Some(available) }
    }
}

// SAFETY: blocks of the host's allocator, filled.
unsafe impl Memory for SimulatedMemory {
    fn allocate(&self, kind: UsmKind, layout: Layout, zeroed: bool) -> Result<NonNull<u8>, BackendError> {
        if let Some(count) = self.attempts.lock().attempt(Operation::Allocate) {
            let (device, operation) = (self.device_name.clone(), Operation::Allocate);
            return Err(BackendError::InjectedFault { device, operation, count });
        }
        // Buffers need device memory also where users cannot ask for it.
        if kind != UsmKind::Device && !self.usm.contains(&kind) {
            return Err(BackendError::UnsupportedUsm { device: self.device_name.clone(), kind });
        }
        let limited = kind != UsmKind::Host;
        if limited {
            self.reserve(layout.size())?;
        }
        let Some(pointer) = allocate(layout) else {
            if limited {
                self.give_back(layout.size());
            }
            return Err(self.out_of_memory(layout.size(), 0));
        };
        if !zeroed {
            // SAFETY: just allocated with at least this size, and not yet known to anyone else.
            unsafe { ptr::write_bytes(pointer.as_ptr(), FRESH, layout.size()) };
        }
        let allocation = Allocation { size: layout.size(), device: self.device, kind };
        self.registry.allocations.lock().insert(pointer.as_ptr() as usize, allocation);
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: NonNull<u8>, kind: UsmKind, layout: Layout) {
        // SAFETY: the caller promises that the allocation is live and no longer used by any command.
        unsafe { ptr::write_bytes(pointer.as_ptr(), FREED, layout.size()) };
        self.registry.allocations.lock().remove(&(pointer.as_ptr() as usize));
        if kind != UsmKind::Host {
            self.give_back(layout.size());
        }
        // SAFETY: as above; `allocate` used the same layout.
        unsafe { free(pointer, layout) };
    }
}
