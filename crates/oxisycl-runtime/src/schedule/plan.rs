//! What a requirement means for the state of its buffer: dependencies, missing bytes, and the state after the command.

use std::sync::Arc;

use oxisycl_backend::DependencyKind;
use smallvec::SmallVec;

use super::requirement::Requirement;
use crate::graph::{Dependency, Node};
use crate::memory::BufferState;
use crate::state::{AllocationIdx, AllocationSet, Region};

/// The dependencies of one command.
pub(super) type Dependencies = SmallVec<[Dependency; 6]>;

/// A piece of a buffer that must be copied to where a command needs it.
pub(super) struct Missing {
    pub(super) region: Region,
    /// Allocations it can come from.
    pub(super) sources: AllocationSet,
    pub(super) writer: Option<Arc<Node>>,
    /// Copies that make sources current.
    pub(super) arrivals: SmallVec<[(AllocationIdx, Arc<Node>); 1]>,
}

fn add(dependencies: &mut Dependencies, node: &Arc<Node>, kind: DependencyKind) {
    if node.has_succeeded() || (kind == DependencyKind::Order && node.is_complete()) {
        return;
    }
    // Repetitions next to each other are common (one command that used many regions); others do no harm.
    if let Some(last) = dependencies.last_mut()
        && Arc::ptr_eq(&last.node, node)
    {
        if kind == DependencyKind::Data {
            last.kind = kind;
        }
        return;
    }
    dependencies.push(Dependency { node: node.clone(), kind });
}

/// Adds what `requirement` depends on and which bytes it misses. Changes nothing.
pub(super) fn plan(
    requirement: &Requirement,
    state: &BufferState,
    dependencies: &mut Dependencies,
    missing: &mut Vec<Missing>,
) {
    // What failed matters to commands that use the old contents.
    let kind = if requirement.no_init { DependencyKind::Order } else { DependencyKind::Data };
    for pages in &requirement.pages {
        state.map.for_each(pages, |region, page| {
            // Looked at once, since the writer may end meanwhile: if it did not run, neither it nor copies of what it was to write
            // matter.
            let untouched = page.untouched();
            let writer = page.writer.as_ref().filter(|_| untouched.is_none());
            let arrivals = if untouched.is_none() { &page.arrivals[..] } else { &[] };
            if let Some(writer) = writer {
                add(dependencies, writer, kind);
            }
            if let Some(neighbour) = &page.neighbour {
                add(dependencies, neighbour, DependencyKind::Order);
            }
            for (allocation, copy) in arrivals {
                if *allocation == requirement.allocation {
                    // A failed copy left the page outdated, which `effective_current` knows.
                    if !copy.has_failed() {
                        add(dependencies, copy, kind);
                    }
                }
            }
            if requirement.mode.writes() {
                for reader in &page.readers {
                    add(dependencies, reader, DependencyKind::Order);
                }
            }
            let current = untouched.unwrap_or_else(|| page.effective_current());
            if !requirement.no_init && !current.is_empty() && !current.contains(requirement.allocation) {
                missing.push(Missing {
                    region: *region,
                    sources: current,
                    writer: writer.cloned(),
                    arrivals: arrivals.into(),
                });
            }
        });
    }
}

/// Records that `copy` makes `region` of the allocation current.
pub(super) fn commit_copy(state: &mut BufferState, region: &Region, allocation: AllocationIdx, copy: &Arc<Node>) {
    state.map.update(region, |_, page| {
        page.refresh();
        // The allocation may be current by now. If the writer turned out not to have run, the region is as it was before. The copy depends
        // on the writer and does not run either. Its failure must not count against what is there.
        if !page.current.contains(allocation) {
            page.current = page.current.with(allocation);
            page.arrivals.push((allocation, copy.clone()));
        }
        // A command that overwrites the source comes after the copy.
        page.readers.push(copy.clone());
    });
}

/// Records the use of the buffer by `node`. From now on the buffer's pointers stay because of it.
pub(super) fn commit(requirement: &Requirement, state: &mut BufferState, node: &Arc<Node>) {
    let current = AllocationSet::of(requirement.allocation);
    for pages in &requirement.pages {
        if !requirement.mode.writes() {
            state.map.update(pages, |_, page| {
                page.refresh();
                let is_known = page.readers.last().is_some_and(|reader| Arc::ptr_eq(reader, node))
                    || page.writer.as_ref().is_some_and(|writer| Arc::ptr_eq(writer, node));
                if !is_known {
                    page.readers.push(node.clone());
                }
            });
        } else if requirement.no_init {
            // The command is ordered by pages, but replaces only the bytes that it names. The rest of a partly covered page stays current
            // where it was, and keeps its writer with its failure.
            state.map.update(pages, |_, page| page.order_after(node));
        } else {
            state.map.update(pages, |_, page| page.overwrite(node, current));
        }
    }
    if requirement.no_init {
        for bytes in &requirement.bytes {
            state.map.update(bytes, |_, page| page.overwrite(node, current));
        }
    }
}
