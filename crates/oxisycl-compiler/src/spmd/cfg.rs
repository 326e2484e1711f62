//! The control flow of an item function as regions: the function, and the body of each loop, each a list of nodes without cycles.
//!
//! Blocks from which no path leads to a return are *dead*: calls of panic functions, their landing pads, loops without end. An edge from a live
//! block to a dead one is a *trap edge*. Dead blocks are taken out before all else, so loops, orders and edges below are those of live blocks.
//!
//! Invariants of a [`Graph`]:
//! - Flow is reducible. A loop has one header, one latch, and one edge that enters it. One block returns.
//! - A live block ends with a branch, a return, or an invoke whose landing pad is dead.
//! - A value that is used outside of its loop is used by a phi at the exit.
//! - A loop is live as a whole, since all of its blocks reach its header.

use std::fmt;

use rustc_hash::FxHashMap;

use crate::llvm::{Block, Value};

/// The position of a block in its function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BlockIdx(usize);

/// The position of a loop in the list of loops, in which outer loops stand before inner ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LoopIdx(usize);

impl BlockIdx {
    /// The position as a number, for tables with an entry for each block of the function.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

impl LoopIdx {
    /// The position as a number, for tables with an entry for each loop.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// The body of a loop, or the whole function.
pub(crate) type Region = Option<LoopIdx>;

/// From a block to a successor.
pub(crate) type Edge = (BlockIdx, BlockIdx);

/// A part of a region: a block whose innermost loop is the region's, or a loop whose parent is the region's loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Node {
    Block(BlockIdx),
    Loop(LoopIdx),
}

/// Why a function is not vectorised, with the instruction that is the reason, if there is one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal<'c> {
    pub(crate) reason: Reason,
    pub(crate) at: Option<Value<'c>>,
}

/// The kinds of reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// No path leads from the entry to a return.
    NeverReturns,
    /// Several blocks return; LLVM's `mergereturn` makes them one.
    SeveralReturns,
    /// A cycle can be entered at several blocks.
    Irreducible,
    /// A loop has several latches or several edges that enter it; LLVM's `loop-simplify` makes them one.
    LoopForm,
    /// A value is used outside of its loop without a phi at the exit, which LLVM's `lcssa` adds.
    OpenLoop,
    /// A switch; LLVM's `lower-switch` makes branches of it.
    Switch,
    /// A jump to a computed address, or by inline assembly.
    ComputedJump,
    /// A panic is caught, so that a lane that panics goes on.
    CaughtPanic,
    /// An operation may wait for another item: it acquires, exchanges conditionally, or gives a branch an atomic access's result.
    Waits,
    /// A variable of the program or of a thread is reached.
    ThreadMemory,
    /// A function is called of which nothing is known.
    UnknownCall,
    /// A destructor runs when it panics.
    Cleanup,
    TooManyBlocks(usize),
    TooManyNestedLoops(usize),
}

/// Live blocks at most.
pub(crate) const MAX_BLOCKS: usize = 400;
/// Loops inside each other at most.
pub(crate) const MAX_NESTED_LOOPS: usize = 8;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverReturns => f.write_str("it never returns"),
            Self::SeveralReturns => f.write_str("it returns from several places"),
            Self::Irreducible => f.write_str("a cycle of its control flow has several entries"),
            Self::LoopForm => f.write_str("a loop is entered or repeated from several places"),
            Self::OpenLoop => f.write_str("a value is used outside of its loop without a phi"),
            Self::Switch => f.write_str("a switch was not lowered to branches"),
            Self::ComputedJump => f.write_str("it jumps to a computed address"),
            Self::CaughtPanic => f.write_str("it catches panics"),
            Self::Waits => f.write_str("it may wait for another work-item"),
            Self::ThreadMemory => f.write_str("it uses a variable of the program"),
            Self::UnknownCall => f.write_str("it calls a function that may wait, or that uses memory of its thread"),
            Self::Cleanup => f.write_str("a destructor runs if it panics"),
            Self::TooManyBlocks(count) => write!(f, "it has {count} blocks, supported are {MAX_BLOCKS}"),
            Self::TooManyNestedLoops(count) => {
                write!(f, "{count} loops are inside each other, supported are {MAX_NESTED_LOOPS}")
            }
        }
    }
}

/// A natural loop.
struct Loop {
    header: BlockIdx,
    latch: BlockIdx,
    parent: Region,
    /// In reverse post-order, so the header is the first.
    blocks: Vec<BlockIdx>,
}

/// The control flow of a function.
pub(crate) struct Graph<'c> {
    function: Value<'c>,
    blocks: Vec<Block<'c>>,
    indices: FxHashMap<Block<'c>, BlockIdx>,
    successors: Vec<Vec<BlockIdx>>,
    predecessors: Vec<Vec<BlockIdx>>,
    returns: Vec<bool>,
    exit: BlockIdx,
    /// The live blocks in reverse post-order.
    order: Vec<BlockIdx>,
    loops: Vec<Loop>,
    innermost: Vec<Region>,
    /// The nodes of the function, and then those of each loop.
    nodes: Vec<Vec<Node>>,
}

impl<'c> Graph<'c> {
    /// Reads the control flow of a function. The error says why the function is not vectorised.
    ///
    /// The passes of [`PREPARE`](super::PREPARE) have run, and nothing after them.
    pub(crate) fn of(function: Value<'c>) -> Result<Self, Refusal<'c>> {
        build::graph(function)
    }

    pub(crate) fn function(&self) -> Value<'c> {
        self.function
    }

    pub(crate) fn block(&self, block: BlockIdx) -> Block<'c> {
        self.blocks[block.0]
    }

    /// All blocks, also dead ones, in the order of the function.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = BlockIdx> {
        (0..self.blocks.len()).map(BlockIdx)
    }

    /// The position of a block of the function.
    pub(crate) fn index(&self, block: Block<'c>) -> BlockIdx {
        self.indices[&block]
    }

    pub(crate) fn entry(&self) -> BlockIdx {
        BlockIdx(0)
    }

    /// The block that returns.
    pub(crate) fn exit(&self) -> BlockIdx {
        self.exit
    }

    /// Whether a block is live: it is reached, and a path leads from it to the return.
    pub(crate) fn returns(&self, block: BlockIdx) -> bool {
        self.returns[block.0]
    }

    /// The live blocks in reverse post-order, which is a topological order but for the edges from latches to headers.
    pub(crate) fn order(&self) -> &[BlockIdx] {
        &self.order
    }

    /// The successors of a block, live and dead ones, each once.
    pub(crate) fn successors(&self, block: BlockIdx) -> &[BlockIdx] {
        &self.successors[block.0]
    }

    /// The live successors of a block.
    pub(crate) fn live_successors(&self, block: BlockIdx) -> impl Iterator<Item = BlockIdx> {
        self.successors[block.0].iter().copied().filter(|next| self.returns(*next))
    }

    /// The dead successors of a live block.
    pub(crate) fn traps(&self, block: BlockIdx) -> impl Iterator<Item = BlockIdx> {
        self.successors[block.0].iter().copied().filter(|next| !self.returns(*next))
    }

    /// The live predecessors of a block, each once.
    pub(crate) fn predecessors(&self, block: BlockIdx) -> &[BlockIdx] {
        &self.predecessors[block.0]
    }

    /// The loops, outer ones before inner ones.
    pub(crate) fn loops(&self) -> impl Iterator<Item = LoopIdx> + use<> {
        (0..self.loops.len()).map(LoopIdx)
    }

    /// The function and the loops, outer ones before inner ones.
    pub(crate) fn regions(&self) -> impl Iterator<Item = Region> + use<> {
        std::iter::once(None).chain(self.loops().map(Some))
    }

    pub(crate) fn header(&self, of: LoopIdx) -> BlockIdx {
        self.loops[of.0].header
    }

    /// The block of a loop from which the header is reached again.
    pub(crate) fn latch(&self, of: LoopIdx) -> BlockIdx {
        self.loops[of.0].latch
    }

    /// The region that the loop is a node of.
    pub(crate) fn parent(&self, of: LoopIdx) -> Region {
        self.loops[of.0].parent
    }

    /// The blocks of a loop with those of the loops inside, in reverse post-order.
    pub(crate) fn loop_blocks(&self, of: LoopIdx) -> &[BlockIdx] {
        &self.loops[of.0].blocks
    }

    /// The innermost loop that contains a block.
    pub(crate) fn innermost(&self, block: BlockIdx) -> Region {
        self.innermost[block.0]
    }

    /// The loop that a block is the header of.
    pub(crate) fn headed(&self, block: BlockIdx) -> Option<LoopIdx> {
        self.innermost(block).filter(|inside| self.header(*inside) == block)
    }

    /// Whether a live block is in a region, or in a loop inside.
    pub(crate) fn contains(&self, region: Region, block: BlockIdx) -> bool {
        let Some(of) = region else { return self.returns(block) };
        let mut at = self.innermost(block);
        while let Some(inside) = at.filter(|inside| *inside != of) {
            at = self.parent(inside);
        }
        at.is_some()
    }

    /// The node of a region that a block of the region is in.
    pub(crate) fn node_of(&self, block: BlockIdx, region: Region) -> Node {
        let mut at = self.innermost(block);
        if at == region {
            return Node::Block(block);
        }
        while let Some(inside) = at {
            at = self.parent(inside);
            if at == region {
                return Node::Loop(inside);
            }
        }
        panic!("block {block:?} is not in the region {region:?}")
    }

    /// The nodes of a region in topological order. The first one is entered first.
    pub(crate) fn nodes(&self, region: Region) -> &[Node] {
        &self.nodes[region.map_or(0, |of| of.0 + 1)]
    }

    /// The blocks of a node. The first one is entered first.
    pub(crate) fn node_blocks<'g>(&'g self, node: &'g Node) -> &'g [BlockIdx] {
        match node {
            Node::Block(block) => std::slice::from_ref(block),
            Node::Loop(of) => self.loop_blocks(*of),
        }
    }

    /// The live edges that enter a node from outside.
    pub(crate) fn in_edges(&self, node: Node) -> Vec<Edge> {
        let first = self.node_blocks(&node)[0];
        let is_inside = |block| matches!(node, Node::Loop(of) if self.contains(Some(of), block));
        self.predecessors(first).iter().filter(|from| !is_inside(**from)).map(|from| (*from, first)).collect()
    }

    /// The live edges that leave a loop, in the order of its blocks.
    pub(crate) fn exits(&self, of: LoopIdx) -> Vec<Edge> {
        let leaving = |from: BlockIdx| {
            self.live_successors(from).filter(move |to| !self.contains(Some(of), *to)).map(move |to| (from, to))
        };
        self.loop_blocks(of).iter().flat_map(|from| leaving(*from)).collect()
    }
}

mod build;
#[cfg(test)]
mod tests;
