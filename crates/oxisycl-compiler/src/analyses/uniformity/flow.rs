//! The points where paths through a function diverge and reconverge.

use rustc_hash::FxHashMap;

use crate::llvm::{Block, Opcode, Value};

/// The blocks of a function, by number, with their successors on paths to a return.
///
/// A block from which no way leads to a return ends the work-item: a panic is there, or a loop without end.
pub(crate) struct Flow<'c> {
    pub(crate) blocks: Vec<Block<'c>>,
    numbers: FxHashMap<Block<'c>, usize>,
    successors: Vec<Vec<usize>>,
    /// Whether a path leads from the block to a return.
    returns: Vec<bool>,
    /// The immediate post-dominator of the block on paths to a return. `None` if that is the function's end, or if there is no such path.
    meets: Vec<Option<usize>>,
}

impl<'c> Flow<'c> {
    pub(crate) fn of(function: Value<'c>) -> Self {
        let blocks = function.blocks();
        let numbers: FxHashMap<Block<'c>, usize> = blocks.iter().enumerate().map(|(n, block)| (*block, n)).collect();
        let successors: Vec<Vec<usize>> =
            blocks.iter().map(|block| block.successors().iter().map(|next| numbers[next]).collect()).collect();
        let (returns, meets) = meeting_blocks(&blocks, &successors);
        Self { blocks, numbers, successors, returns, meets }
    }

    /// The number of a block.
    pub(crate) fn number(&self, block: Block<'c>) -> usize {
        self.numbers[&block]
    }

    /// The blocks that may run next after a block.
    pub(crate) fn successors(&self, block: usize) -> &[usize] {
        &self.successors[block]
    }

    /// The blocks that may run next before a block.
    pub(crate) fn predecessors(&self, block: usize) -> impl Iterator<Item = usize> {
        (0..self.blocks.len()).filter(move |before| self.successors[*before].contains(&block))
    }

    /// Whether a path leads from the block to a return.
    pub(crate) fn returns(&self, block: usize) -> bool {
        self.returns[block]
    }

    /// Whether the block has more than one successor.
    pub(crate) fn has_several_successors(&self, block: usize) -> bool {
        let next = &self.successors[block];
        next.iter().any(|other| *other != next[0])
    }

    /// The block where paths from the end of a block reconverge, if two or more of them lead to a return.
    pub(crate) fn meeting(&self, block: usize) -> Option<usize> {
        let mut next = self.successors[block].iter().filter(|next| self.returns[**next]);
        let first = next.next();
        self.meets[block].filter(|_| next.any(|other| Some(other) != first))
    }

    /// The blocks that may run after a block before its paths reconverge. The block itself is among them if a path leads back to it.
    pub(crate) fn between(&self, block: usize) -> Vec<usize> {
        self.behind_until(block, self.meets[block])
    }

    /// The blocks that may run after a block. The block itself is among them if a path leads back to it.
    pub(crate) fn behind(&self, block: usize) -> Vec<usize> {
        self.behind_until(block, None)
    }

    fn behind_until(&self, block: usize, end: Option<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        let mut is_found = vec![false; self.blocks.len()];
        let mut queue: Vec<usize> = self.successors[block].clone();
        while let Some(at) = queue.pop() {
            if Some(at) != end && !std::mem::replace(&mut is_found[at], true) {
                found.push(at);
                queue.extend(&self.successors[at]);
            }
        }
        found
    }
}

/// The blocks from which a path leads to a return, and their immediate post-dominators over these blocks alone. The algorithm is Cooper,
/// Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
fn meeting_blocks(blocks: &[Block<'_>], successors: &[Vec<usize>]) -> (Vec<bool>, Vec<Option<usize>>) {
    let exit = blocks.len();
    let mut predecessors = vec![Vec::new(); blocks.len()];
    for (block, next) in successors.iter().enumerate() {
        next.iter().for_each(|next| predecessors[*next].push(block));
    }
    // From the returns backwards, in the order in which a walk leaves the blocks.
    let mut order = Vec::new();
    let mut is_seen = vec![false; blocks.len()];
    for (number, block) in blocks.iter().enumerate() {
        if !block.end().is(Opcode::RET) {
            continue;
        }
        is_seen[number] = true;
        let mut stack = vec![(number, 0)];
        while let Some((at, next)) = stack.pop() {
            match predecessors[at].get(next) {
                Some(&before) => {
                    stack.push((at, next + 1));
                    if !std::mem::replace(&mut is_seen[before], true) {
                        stack.push((before, 0));
                    }
                }
                None => order.push(at),
            }
        }
    }
    let mut place = vec![0; exit + 1];
    order.iter().enumerate().for_each(|(n, block)| place[*block] = n);
    place[exit] = order.len();
    let mut meets = vec![None; exit + 1];
    meets[exit] = Some(exit);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in order.iter().rev() {
            let is_return = successors[block].is_empty();
            let known = successors[block].iter().copied().filter(|next| is_seen[*next] && meets[*next].is_some());
            let meeting = known.chain(is_return.then_some(exit)).reduce(|mut a, mut b| {
                while a != b {
                    while place[a] < place[b] {
                        a = meets[a].unwrap_or(exit);
                    }
                    while place[b] < place[a] {
                        b = meets[b].unwrap_or(exit);
                    }
                }
                a
            });
            if meeting.is_some() && meets[block] != meeting {
                meets[block] = meeting;
                changed = true;
            }
        }
    }
    meets.truncate(exit);
    (is_seen, meets.into_iter().map(|meeting| meeting.filter(|meeting| *meeting != exit)).collect())
}
