//! What is known of one region of a buffer: the commands that use it, and which allocations hold its newest bytes.
//!
//! Starts and copies nothing.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::graph::Node;
use crate::state::{AllocationIdx, AllocationSet};

/// The commands that use a region, and where its newest bytes are.
#[derive(Clone, Default)]
pub struct PageState {
    /// The last command that wrote.
    pub writer: Option<Arc<Node>>,
    /// The last command since then that wrote to another part of this page with `no_init`. Later commands are ordered
    /// behind it, and its failure does not concern them.
    pub neighbour: Option<Arc<Node>>,
    /// Commands that read since both of them, copies included.
    pub readers: SmallVec<[Arc<Node>; 1]>,
    /// Allocations with the newest bytes. None: nothing was ever written.
    pub current: AllocationSet,
    /// Copies under way that make an allocation current.
    pub arrivals: SmallVec<[(AllocationIdx, Arc<Node>); 1]>,
    /// What was before `writer`, which is what is if it never runs.
    pub before: Before,
}

/// The state of a region before its last writer.
#[derive(Clone, Default)]
pub struct Before {
    /// The writer before, if it had not ended.
    writer: Option<Arc<Node>>,
    /// The allocations with the newest bytes if that ended well.
    current: AllocationSet,
    /// The allocations with the newest bytes if that never ran, where known.
    earlier: Option<AllocationSet>,
}

impl Before {
    /// The allocations with the newest bytes if the last writer did nothing; `None` if the bytes are lost, or it is not known.
    fn current(&self) -> Option<AllocationSet> {
        match &self.writer {
            None => Some(self.current),
            Some(writer) if writer.has_succeeded() => Some(self.current),
            Some(writer) if writer.did_not_run() => self.earlier,
            Some(_) => None,
        }
    }
}

impl PartialEq for PageState {
    fn eq(&self, other: &Self) -> bool {
        let same_node = |a: &Option<Arc<Node>>, b: &Option<Arc<Node>>| match (a, b) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (None, None) => true,
            _ => false,
        };
        self.current == other.current
            && same_node(&self.before.writer, &other.before.writer)
            && self.before.current == other.before.current
            && self.before.earlier == other.before.earlier
            && same_node(&self.writer, &other.writer)
            && same_node(&self.neighbour, &other.neighbour)
            && self.readers.len() == other.readers.len()
            && self.readers.iter().zip(&other.readers).all(|(a, b)| Arc::ptr_eq(a, b))
            && self.arrivals.len() == other.arrivals.len()
            && self.arrivals.iter().zip(&other.arrivals).all(|(a, b)| a.0 == b.0 && Arc::ptr_eq(&a.1, &b.1))
    }
}

impl PageState {
    /// Forgets commands that have ended well; an allocation whose copy failed is not current any more.
    pub fn refresh(&mut self) {
        if let Some(writer) = &self.writer
            && writer.is_complete()
        {
            if writer.has_succeeded() {
                self.writer = None;
                self.before = Before::default();
            } else if let Some(before) = self.untouched() {
                let (neighbour, readers) = (self.neighbour.take(), std::mem::take(&mut self.readers));
                *self = Self { current: before, neighbour, readers, ..Self::default() };
            }
        }
        if self.neighbour.as_ref().is_some_and(|neighbour| neighbour.is_complete()) {
            self.neighbour = None;
        }
        if !self.arrivals.is_empty() {
            let mut current = self.current;
            self.arrivals.retain(|(allocation, copy)| {
                // Once it has ended it stays so. It may fail between two questions in the other order, and would count as a copy that arrived.
                let has_ended = copy.is_complete();
                if has_ended && copy.has_failed() {
                    current = current.without(*allocation);
                }
                !has_ended
            });
            self.current = current;
        }
        if self.readers.len() > 1 || self.readers.first().is_some_and(|reader| reader.is_complete()) {
            // Amortised: long lists are looked through only when they would grow.
            if self.readers.len() <= 4 || self.readers.len() == self.readers.capacity() {
                self.readers.retain(|reader| !reader.is_complete());
            }
        }
    }

    /// The allocations with the newest bytes if the last writer failed without having run, so that all is as it was before.
    pub fn untouched(&self) -> Option<AllocationSet> {
        if self.writer.as_ref().is_some_and(|writer| writer.did_not_run()) { self.before.current() } else { None }
    }

    /// Orders what comes later behind `neighbour`, which writes to another part of the page. Everything else stays as it was.
    pub fn order_after(&mut self, neighbour: &Arc<Node>) {
        self.refresh();
        self.neighbour = Some(neighbour.clone());
        // They end before it does.
        self.readers.clear();
    }

    /// Makes `writer` the last command that wrote, to the allocations of `current` only.
    pub fn overwrite(&mut self, writer: &Arc<Node>, current: AllocationSet) {
        self.refresh();
        if !self.writer.as_ref().is_some_and(|known| Arc::ptr_eq(known, writer)) {
            // Copies under way may be this command's own, and may be what fails.
            let arriving =
                self.arrivals.iter().fold(AllocationSet::EMPTY, |set, (allocation, _)| set.with(*allocation));
            let earlier = self.writer.as_ref().and_then(|_| self.before.current());
            if let Some(before) = self.before.writer.take() {
                Node::release(before);
            }
            self.before = Before { writer: self.writer.take(), current: self.current.minus(arriving), earlier };
        }
        self.writer = Some(writer.clone());
        self.neighbour = None;
        self.current = current;
        // Mostly there are none, and to look costs less than to clear.
        if !self.readers.is_empty() {
            self.readers.clear();
        }
        if !self.arrivals.is_empty() {
            self.arrivals.clear();
        }
    }

    /// The allocation is going: another one may take its place.
    pub(super) fn forget(&mut self, allocation: AllocationIdx) {
        self.refresh();
        self.current = self.current.without(allocation);
        self.before.current = self.before.current.without(allocation);
        self.before.earlier = self.before.earlier.map(|current| current.without(allocation));
        self.arrivals.retain(|(other, _)| *other != allocation);
    }

    /// Which allocations hold the newest bytes, or will when the copies under way are done.
    pub fn effective_current(&self) -> AllocationSet {
        if let Some(before) = self.untouched() {
            return before;
        }
        let failed = self.arrivals.iter().filter(|(_, copy)| copy.has_failed());
        failed.fold(self.current, |current, (allocation, _)| current.without(*allocation))
    }
}
