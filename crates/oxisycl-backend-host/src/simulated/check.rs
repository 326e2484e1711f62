//! Checks that a command of a simulated device uses only memory that the device can reach, and counts what copies move.
//!
//! A wrong address is a defect of the code that planned the command. The command then fails and touches nothing. The arguments of a kernel are
//! opaque and cannot be checked.

use std::sync::Arc;

use oxisycl_backend::{BackendError, Command, CopyCommand, MemoryId, PitchedBox};
use parking_lot::Mutex;

use super::memory::{Place, Registry};
use crate::transfer;

/// The direction of a copy, as seen from the device whose queue executes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From the host to the device.
    HostToDevice,
    /// From the device to the host.
    DeviceToHost,
    /// Within the device.
    WithinDevice,
    /// From another device, or to another device, or between two others.
    Peer,
    /// From the host to the host.
    HostToHost,
}

/// The copies in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransferCount {
    /// Number of copies.
    pub copies: u64,
    /// Bytes moved.
    pub bytes: u64,
}

/// Number of copies and bytes per direction.
pub(crate) type Transfers = Arc<Mutex<[TransferCount; 5]>>;

pub(crate) struct Checker {
    /// The device's own index.
    pub(crate) device: usize,
    pub(crate) peer_copies: bool,
    /// The memory of each device of the backend.
    pub(crate) memories: Arc<[MemoryId]>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) transfers: Transfers,
}

/// Position of a direction in [`Transfers`].
pub(crate) const fn slot(direction: Direction) -> usize {
    match direction {
        Direction::HostToDevice => 0,
        Direction::DeviceToHost => 1,
        Direction::WithinDevice => 2,
        Direction::Peer => 3,
        Direction::HostToHost => 4,
    }
}

impl Checker {
    /// Checks the addresses of a command, and counts a valid copy. The error names the wrong address.
    pub(crate) fn check(&self, command: &Command, device_name: &str) -> Result<(), BackendError> {
        let refused = |what: String| BackendError::Unsupported { device: device_name.to_owned(), what };
        match command {
            Command::Copy(copy) => {
                let bytes =
                    transfer::units(&copy.extent).ok_or_else(|| refused("a copy that exceeds memory".into()))?;
                self.pitched("copy source", &copy.source, copy.extent).map_err(refused)?;
                self.pitched("copy target", &copy.target, copy.extent).map_err(refused)?;
                self.count(copy, bytes);
            }
            Command::Fill(fill) => {
                let [slices, rows, elements] = fill.extent;
                let bytes = elements.checked_mul(fill.pattern.len());
                let bytes = bytes.ok_or_else(|| refused("a fill that exceeds memory".into()))?;
                self.pitched("fill target", &fill.target, [slices, rows, bytes]).map_err(refused)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks the bytes from the first to the last of a box.
    fn pitched(&self, role: &str, pitched: &PitchedBox, extent: [usize; 3]) -> Result<(), String> {
        let Some(size) = span(pitched, extent) else { return Err(format!("a {role} that exceeds memory")) };
        if size == 0 {
            return Ok(());
        }
        let expected = self.expected_place(role, pitched.memory)?;
        let address = pitched.pointer as usize;
        let found = self.registry.place(address, size);
        // Host and shared allocations may be named by either memory.
        if found == expected || found == Place::Usm {
            return Ok(());
        }
        Err(format!(
            "a {role} of {size} bytes at {address:#x} in memory {} (found: {found:?}, expected: {expected:?})",
            pitched.memory.number()
        ))
    }

    fn expected_place(&self, role: &str, memory: MemoryId) -> Result<Place, String> {
        if memory == MemoryId::HOST {
            return Ok(Place::Host);
        }
        match self.memories.iter().position(|other| *other == memory) {
            Some(device) if device == self.device || self.peer_copies => Ok(Place::Device(device)),
            _ => Err(format!("a {role} in memory {}, which the device cannot reach", memory.number())),
        }
    }

    fn count(&self, copy: &CopyCommand, bytes: usize) {
        let own = self.memories[self.device];
        let direction = match (copy.source.memory, copy.target.memory) {
            (MemoryId::HOST, MemoryId::HOST) => Direction::HostToHost,
            (MemoryId::HOST, target) if target == own => Direction::HostToDevice,
            (source, MemoryId::HOST) if source == own => Direction::DeviceToHost,
            (source, target) if source == own && target == own => Direction::WithinDevice,
            _ => Direction::Peer,
        };
        let count = &mut self.transfers.lock()[slot(direction)];
        count.copies += 1;
        count.bytes += bytes as u64;
    }
}

/// Bytes from the first to one past the last of a box; `None` if that overflows.
fn span(pitched: &PitchedBox, extent: [usize; 3]) -> Option<usize> {
    let [slices, rows, bytes] = extent;
    if slices == 0 || rows == 0 || bytes == 0 {
        return Some(0);
    }
    let slices = (slices - 1).checked_mul(pitched.slice_pitch)?;
    let rows = (rows - 1).checked_mul(pitched.row_pitch)?;
    slices.checked_add(rows)?.checked_add(bytes)
}
