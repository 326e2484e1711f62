//! Moving bytes between the allocations of a buffer: from which source, over which queue, in as few copies as possible.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use oxisycl_backend::{
    Batching, Command, CopyCommand, DependencyKind, Device, MemoryId, Operation, PitchedBox, QueueOptions,
};
use oxisycl_types::ErrorCode;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::plan::{Dependencies, Missing, commit_copy};
use super::queue::remove_repetitions;
use crate::graph::{AsyncErrors, Dependency, Epoch, KeptAlive, Node, NodeKind, QueueShared, Work, start};
use crate::ids::DomainId;
use crate::memory::{BufferCore, BufferState};
use crate::observe::{counters, graph_dump, trace};
use crate::state::{AllocationIdx, AllocationSet, Region, RegionMap, coalesce};
use crate::{Error, Result};

/// A queue of the runtime's own for copies of a device, shared by all buffers.
pub(super) fn transfer_queue(device: &Arc<dyn Device>) -> Result<Arc<QueueShared>> {
    static QUEUES: LazyLock<Mutex<HashMap<MemoryId, Weak<QueueShared>>>> = LazyLock::new(Mutex::default);
    thread_local! {
        // Keeps the host's queue alive without a search per host accessor.
        static HOST: std::cell::OnceCell<Arc<QueueShared>> = const { std::cell::OnceCell::new() };
    }
    let memory = device.info().memory.id;
    if memory == MemoryId::HOST
        && let Ok(Some(queue)) = HOST.try_with(|host| host.get().cloned())
    {
        return Ok(queue);
    }
    let mut queues = QUEUES.lock();
    let shared = match queues.get(&memory).and_then(Weak::upgrade) {
        Some(shared) => shared,
        None => {
            queues.retain(|_, queue| queue.strong_count() > 0);
            // It gets no kernels.
            let batching = Batching::Off;
            let options = QueueOptions { profiling: trace().is_on(), batching, ..QueueOptions::default() };
            let queue = QueueShared::create_queue(&**device, &options)?;
            // What fails here also fails the command that needs it, which tells its own queue.
            let errors = AsyncErrors::silent();
            let shared = QueueShared::new(DomainId::unique(), device.clone(), queue, options, errors);
            queues.insert(memory, Arc::downgrade(&shared));
            shared
        }
    };
    if memory == MemoryId::HOST {
        let _ = HOST.try_with(|host| host.set(shared.clone()));
    }
    Ok(shared)
}

/// Who asks for bytes.
pub(super) struct Requester<'a> {
    /// The queue of the command that needs the bytes, preferred for copies.
    pub(super) shared: &'a Arc<QueueShared>,
    pub(super) epoch: Option<&'a Arc<Epoch>>,
}

/// Makes everything in `missing` current at `target`, and adds the copies to `dependencies`.
///
/// On an error, copies that were already enqueued stay: they only make more data current.
pub(super) fn bring(
    requester: &Requester<'_>,
    core: &Arc<BufferCore>,
    state: &mut BufferState,
    target: AllocationIdx,
    missing: Vec<Missing>,
    dependencies: &mut Dependencies,
) -> Result {
    // One group per source, so that neighbouring pieces become one copy.
    let mut groups: SmallVec<[(AllocationIdx, Vec<Missing>); 2]> = SmallVec::new();
    for piece in missing {
        let source = best_source(state, piece.sources, target);
        match groups.iter_mut().find(|(known, _)| *known == source) {
            Some((_, pieces)) => pieces.push(piece),
            None => groups.push((source, vec![piece])),
        }
    }
    for (source, pieces) in groups {
        let mut regions: Vec<Region> = pieces.iter().map(|piece| piece.region).collect();
        coalesce(&mut regions);
        let pieces_of = by_region(core, &regions, &pieces);
        for (region, pieces) in regions.into_iter().zip(pieces_of) {
            let mut before = Dependencies::new();
            for piece in pieces {
                let arrivals = piece.arrivals.iter().filter(|(at, _)| *at == source).map(|(_, copy)| copy);
                for node in piece.writer.iter().chain(arrivals) {
                    if !node.has_succeeded() {
                        before.push(Dependency { node: node.clone(), kind: DependencyKind::Data });
                    }
                }
            }
            remove_repetitions(&mut before);
            let copy = copy_region(requester, core, state, &region, source, target, before)?;
            dependencies.push(Dependency { node: copy, kind: DependencyKind::Data });
        }
    }
    Ok(())
}

/// The pieces of which each of `regions` was joined. Every piece lies in exactly one of them.
fn by_region<'a>(core: &BufferCore, regions: &[Region], pieces: &'a [Missing]) -> Vec<Vec<&'a Missing>> {
    if let [_] = regions {
        return vec![pieces.iter().collect()];
    }
    let mut numbers = RegionMap::new(core.extent, usize::MAX);
    for (number, region) in regions.iter().enumerate() {
        numbers.update(region, |_, known| *known = number);
    }
    let mut found = vec![Vec::new(); regions.len()];
    for piece in pieces {
        if let Some(of_region) = numbers.get(piece.region.begin).and_then(|&number| found.get_mut(number)) {
            of_region.push(piece);
        }
    }
    found
}

/// Prefers a source that can be copied directly, device memory before host memory (a peer copy is the faster one).
fn best_source(state: &BufferState, sources: AllocationSet, target: AllocationIdx) -> AllocationIdx {
    let to = state.allocation(target);
    let candidates = || state.allocations().filter(|(index, _)| sources.contains(*index));
    let direct = |from: &crate::memory::Allocation| {
        to.device.info().can_copy(from.memory, to.memory) || from.device.info().can_copy(from.memory, to.memory)
    };
    candidates()
        .filter(|(_, from)| from.memory != MemoryId::HOST && direct(from))
        .chain(candidates().filter(|(_, from)| from.memory == MemoryId::HOST))
        .chain(candidates())
        .map(|(index, _)| index)
        .next()
        .unwrap_or(target)
}

fn copy_region(
    requester: &Requester<'_>,
    core: &Arc<BufferCore>,
    state: &mut BufferState,
    region: &Region,
    source: AllocationIdx,
    target: AllocationIdx,
    before: Dependencies,
) -> Result<Arc<Node>> {
    let (from, to) = (state.allocation(source).memory, state.allocation(target).memory);
    if let Some(shared) = queue_for(requester, state, source, target)? {
        let command = CopyCommand {
            source: pitched(core, state, source, region),
            target: pitched(core, state, target, region),
            extent: extent(core, region),
        };
        let kept_alive = SmallVec::from_iter([KeptAlive::Buffer(core.clone())]);
        let kind = NodeKind::Command(Operation::Copy);
        let node = Node::new(kind, "transfer", shared, requester.epoch.cloned(), kept_alive);
        record(&node, &before);
        // SAFETY: both allocations live as long as the buffer, which the node holds, and `before` has all that conflicts with the copy.
        unsafe { start(&node, Work::Command(Command::from(command)), &before) }?;
        count(from, to, command.bytes());
        commit_copy(state, region, target, &node);
        return Ok(node);
    }
    if from == MemoryId::HOST || to == MemoryId::HOST {
        return Err(Error::new(
            ErrorCode::FeatureNotSupported,
            format!("no device can copy from memory {} to memory {}", from.number(), to.number()),
        ));
    }
    // No direct way: over the host.
    let host = crate::runtime::get().ok_or_else(|| Error::invalid("the runtime was not initialised"))?.host();
    let via = state.ensure(core, host)?;
    let first = copy_region(requester, core, state, region, source, via, before)?;
    let second = SmallVec::from_iter([Dependency { node: first, kind: DependencyKind::Data }]);
    copy_region(requester, core, state, region, via, target, second)
}

/// The queue that makes a copy: the requester's if its device can, else one of the devices involved.
fn queue_for(
    requester: &Requester<'_>,
    state: &BufferState,
    source: AllocationIdx,
    target: AllocationIdx,
) -> Result<Option<Arc<QueueShared>>> {
    let (from, to) = (state.allocation(source), state.allocation(target));
    if requester.shared.device.info().can_copy(from.memory, to.memory) {
        return Ok(Some(requester.shared.clone()));
    }
    for device in [&from.device, &to.device] {
        if device.info().can_copy(from.memory, to.memory) {
            return transfer_queue(device).map(Some);
        }
    }
    Ok(None)
}

/// The box `region` of one allocation.
pub(super) fn pitched(core: &BufferCore, state: &BufferState, index: AllocationIdx, region: &Region) -> PitchedBox {
    let allocation = state.allocation(index);
    let [_, rows, row] = core.extent;
    let offset = (region.begin[0] * rows + region.begin[1]) * row + region.begin[2];
    PitchedBox {
        memory: allocation.memory,
        pointer: allocation.pointer.as_ptr().wrapping_add(offset),
        row_pitch: row,
        slice_pitch: row * rows,
    }
}

/// Slices, rows and bytes of `region`; one row if it is contiguous.
pub(super) fn extent(core: &BufferCore, region: &Region) -> [usize; 3] {
    match region.contiguous_interval(core.extent) {
        Some((begin, end)) => [1, 1, end - begin],
        None => region.extent(),
    }
}

pub(super) fn count(from: MemoryId, to: MemoryId, bytes: usize) {
    let counters = counters();
    let (transfers, moved) = if from == to {
        (&counters.copies_within_memory, &counters.bytes_within_memory)
    } else if from == MemoryId::HOST {
        (&counters.transfers_to_device, &counters.bytes_to_device)
    } else if to == MemoryId::HOST {
        (&counters.transfers_to_host, &counters.bytes_to_host)
    } else {
        (&counters.transfers_between_devices, &counters.bytes_between_devices)
    };
    transfers.add(1);
    moved.add(bytes as u64);
}

/// Adds a node to the graph dump, if it is on.
pub(super) fn record(node: &Node, dependencies: &[Dependency]) {
    if graph_dump().is_on() {
        let earlier = dependencies.iter().map(|dependency| dependency.node.id);
        graph_dump().record(node.id, node.title.name(), node.shared.device_name(), earlier);
    }
}
