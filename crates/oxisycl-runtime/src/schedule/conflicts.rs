//! Which accessors of one command group cannot stand beside each other.
//!
//! Two accessors conflict if both name a byte and one of them writes. They also conflict if both write to one page in
//! different memories, of which only one could hold the page afterwards. Groups of a few accessors are compared in
//! pairs. In larger groups the uses of each buffer are kept by region, so that `n` disjoint accessors cost `n log n`.
//! Does not know whose requirements they are, and orders nothing.

use std::collections::BTreeMap;

use oxisycl_backend::MemoryId;

use super::requirement::Requirement;
use crate::ids::BufferId;
use crate::state::RegionMap;

/// Up to so many accessors are compared with each other, which needs no memory.
const FEW: usize = 8;

/// What the accessors of a command group do, by buffer and region.
#[derive(Default)]
pub struct Conflicts {
    buffers: BTreeMap<BufferId, Uses>,
    /// How many of the group's requirements are in there.
    n_known: usize,
}

struct Uses {
    bytes: RegionMap<Use>,
    written_pages: RegionMap<Written>,
}

/// What is done with a byte, and the position of a requirement that does it.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    None,
    Read(usize),
    Write(usize),
}

/// Where a page is written, and the position of a requirement that does it.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    Nowhere,
    In(MemoryId, usize),
    /// Only accessors that may overlap do that.
    InSeveral(usize),
}

impl Conflicts {
    /// The position of a requirement of the group that conflicts with `new`, which is not among them yet. `of_group` is made for groups
    /// with more than a few accessors.
    pub fn find(of_group: &mut Option<Box<Self>>, group: &[Requirement], new: &Requirement) -> Option<usize> {
        if group.len() <= FEW {
            return group.iter().position(|known| known.conflicts_in_group(new));
        }
        let conflicts = of_group.get_or_insert_default();
        while let Some(next) = group.get(conflicts.n_known) {
            conflicts.add(next, conflicts.n_known);
            conflicts.n_known += 1;
        }
        conflicts.buffers.get(&new.core().id)?.conflicting(new)
    }

    fn add(&mut self, requirement: &Requirement, position: usize) {
        let core = requirement.core();
        let uses = self.buffers.entry(core.id).or_insert_with(|| Uses {
            bytes: RegionMap::new(core.extent, Use::None),
            written_pages: RegionMap::new(core.extent, Written::Nowhere),
        });
        let writes = requirement.mode.writes();
        for bytes in &requirement.bytes {
            uses.bytes.update(bytes, |_, used| match used {
                Use::Write(_) => {}
                _ if writes => *used = Use::Write(position),
                Use::None => *used = Use::Read(position),
                Use::Read(_) => {}
            });
        }
        for pages in requirement.pages.iter().filter(|_| writes) {
            uses.written_pages.update(pages, |_, written| match *written {
                Written::Nowhere => *written = Written::In(requirement.memory, position),
                Written::In(memory, first) if memory != requirement.memory => *written = Written::InSeveral(first),
                _ => {}
            });
        }
    }
}

impl Uses {
    fn conflicting(&self, new: &Requirement) -> Option<usize> {
        let writes = new.mode.writes();
        let mut found = None;
        for bytes in &new.bytes {
            self.bytes.for_each(bytes, |_, used| match *used {
                Use::Write(position) => found = Some(position),
                Use::Read(position) if writes => found = Some(position),
                _ => {}
            });
        }
        for pages in new.pages.iter().filter(|_| writes) {
            self.written_pages.for_each(pages, |_, written| match *written {
                Written::In(memory, position) if memory != new.memory => found = Some(position),
                Written::InSeveral(position) => found = Some(position),
                _ => {}
            });
        }
        found
    }
}
