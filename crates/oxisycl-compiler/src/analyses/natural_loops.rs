//! The natural loops of a function, by a depth-first search.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::llvm::{Block, Value};

/// A natural loop.
pub(crate) struct Loop<'c> {
    pub(crate) blocks: FxHashSet<Block<'c>>,
    /// The branches back to the header.
    pub(crate) ends: Vec<Value<'c>>,
}

impl<'c> Loop<'c> {
    /// The loops of a function, by its back edges.
    pub(crate) fn all(blocks: &[Block<'c>]) -> Vec<Self> {
        let mut predecessors: FxHashMap<Block<'c>, Vec<Block<'c>>> = FxHashMap::default();
        for &block in blocks {
            for successor in block.successors() {
                predecessors.entry(successor).or_default().push(block);
            }
        }
        let mut loops = Vec::new();
        for (head, latches) in edges_back(blocks[0]) {
            let mut inside = FxHashSet::from_iter([head]);
            let mut queue = latches.clone();
            while let Some(block) = queue.pop() {
                if inside.insert(block) {
                    queue.extend(predecessors.get(&block).into_iter().flatten());
                }
            }
            // A way into the middle of a loop leads to the function's beginning. Such a loop has more than one head.
            if head == blocks[0] || !inside.contains(&blocks[0]) {
                loops.push(Loop { blocks: inside, ends: latches.into_iter().map(Block::end).collect() });
            }
        }
        loops
    }

    /// The innermost loop around a block, if no other is within it.
    pub(crate) fn around(block: Block<'c>) -> Option<Self> {
        Self::innermost(&block.end().function().blocks()).into_iter().find(|found| found.blocks.contains(&block))
    }

    /// The loops of a function that no other is within.
    pub(crate) fn innermost(blocks: &[Block<'c>]) -> Vec<Self> {
        let loops = Self::all(blocks);
        let is_within = |inner: &Self, outer: &Self| {
            inner.blocks.len() < outer.blocks.len() && inner.blocks.is_subset(&outer.blocks)
        };
        let has_other: Vec<bool> =
            loops.iter().map(|outer| loops.iter().any(|inner| is_within(inner, outer))).collect();
        loops.into_iter().zip(has_other).filter_map(|(found, has_other)| (!has_other).then_some(found)).collect()
    }

    /// The branch back to the header, if there is one.
    pub(crate) fn end(&self) -> Option<Value<'c>> {
        if let &[end] = self.ends.as_slice() { Some(end) } else { None }
    }

    /// The loop's instructions, in no order.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = Value<'c>> {
        self.blocks.iter().flat_map(|block| block.instructions())
    }

    pub(crate) fn n_instructions(&self) -> usize {
        self.instructions().count()
    }
}

/// The targets of back edges, with their sources, by a depth-first search.
fn edges_back(first: Block<'_>) -> Vec<(Block<'_>, Vec<Block<'_>>)> {
    let (mut seen, mut open) = (FxHashSet::from_iter([first]), FxHashSet::from_iter([first]));
    let mut way = vec![(first, first.successors())];
    let mut found: Vec<(Block<'_>, Vec<Block<'_>>)> = Vec::new();
    while let Some((block, left)) = way.last_mut() {
        let block = *block;
        let Some(next) = left.pop() else {
            open.remove(&block);
            way.pop();
            continue;
        };
        if seen.insert(next) {
            open.insert(next);
            way.push((next, next.successors()));
        } else if open.contains(&next) {
            match found.iter_mut().find(|(head, _)| *head == next) {
                Some((_, latches)) if latches.contains(&block) => {}
                Some((_, latches)) => latches.push(block),
                None => found.push((next, vec![block])),
            }
        }
    }
    found
}
