//! What the emitter decides of a body: which masked nodes stand behind a branch, which have a copy for all lanes.
//!
//! These are functions of graph and shapes alone.

use super::cfg::{Graph, Node, Region};
use super::shape::{Shape, Shapes, Status};
use super::singly::is_made_singly;
use super::widen::{is_division, is_note};
use crate::llvm::{Opcode, Value};

/// Masked nodes with more instructions than that stand behind a branch.
const MANY: usize = 25;
/// Masked blocks with at most so many instructions get a copy for all lanes, if they access memory.
const FEW: usize = 150;

/// Whether a masked node stands behind a branch, which is taken if some lane runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guard {
    None,
    /// A node that had better not run without a lane: a long one, a loop, or one that leads to a trap.
    Useful,
    /// A node that must not run without a lane, by its memory accesses, scalar divisions or scalar branches.
    Needed,
}

/// The branch in front of a masked node.
pub(super) fn guard<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, node: Node) -> Guard {
    let Node::Block(block) = node else { return Guard::Useful };
    let instructions = graph.block(block).instructions();
    if instructions.len() > MANY || graph.traps(block).next().is_some() {
        return Guard::Useful;
    }
    let needs_lanes = |instruction: &Value<'c>| match instruction.opcode() {
        Some(Opcode::LOAD | Opcode::STORE | Opcode::ATOMIC_RMW) => true,
        Some(Opcode::CALL) => !is_note(*instruction),
        Some(Opcode::FDIV) => true,
        Some(opcode) if is_division(opcode) => true,
        Some(Opcode::BRANCH) => instruction.operands().len() > 1 && shapes.is_uniform(instruction.operand(0)),
        _ => false,
    };
    if instructions.iter().any(needs_lanes) { Guard::Needed } else { Guard::None }
}

/// Whether a masked node is worth a copy for the case that all lanes run it. Masked accesses are slower, and some become branches. Calls become a loop.
pub(super) fn wants_copy<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, node: Node) -> bool {
    let Node::Block(block) = node else { return false };
    let instructions = graph.block(block).instructions();
    let accesses = |instruction: &Value<'c>| match instruction.opcode() {
        Some(Opcode::LOAD) => shapes.shape(instruction.operand(0)) != Shape::Uniform,
        Some(Opcode::STORE) => true,
        _ => is_made_singly(*instruction),
    };
    instructions.len() <= FEW && instructions.iter().any(accesses)
}

/// How many of these nodes stand together behind one branch: no lane runs them if none runs the first. The nodes follow each other in a region. At most 1
/// where that is not worth a branch of its own.
pub(super) fn run<'c>(graph: &Graph<'c>, shapes: &Shapes<'_, 'c>, region: Region, nodes: &[Node]) -> usize {
    let is_full = |node: &Node| shapes.status(*node) == Status::Full;
    let Some(first) = nodes.first().filter(|node| !is_full(node)) else { return 0 };
    // A node belongs to the run if all ways into it come from the run.
    let belongs = |length: usize| {
        let ways = graph.in_edges(nodes[length]);
        !is_full(&nodes[length]) && ways.iter().all(|(from, _)| nodes[..length].contains(&graph.node_of(*from, region)))
    };
    let length = (1..nodes.len()).find(|length| !belongs(*length)).unwrap_or(nodes.len());
    // A node that all lanes run or none has its branch anyhow.
    let has_branch = |node: &&Node| match shapes.status(**node) {
        Status::Masked => guard(graph, shapes, **node) != Guard::None,
        _ => true,
    };
    let n_branches = nodes[..length].iter().filter(has_branch).count();
    if shapes.status(*first) == Status::Guard || n_branches > 1 { length } else { 1 }
}

/// Whether all lanes run the blocks of a region that all of its lanes pass. Elsewhere such blocks have the region's mask.
pub(super) fn has_all_lanes(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, region: Region) -> bool {
    let mut at = region;
    while let Some(of) = at {
        if shapes.is_divergent(of) || shapes.status(Node::Loop(of)) == Status::Masked {
            return false;
        }
        at = graph.parent(of);
    }
    true
}
