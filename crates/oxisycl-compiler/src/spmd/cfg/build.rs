//! The making of a [`Graph`], and the checks that its invariants hold.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{BlockIdx, Graph, Loop, LoopIdx, MAX_BLOCKS, MAX_NESTED_LOOPS, Node, Reason, Refusal, Region};
use crate::llvm::{Block, Opcode, Value, ValueKind};

/// Reads the control flow of a function.
pub(super) fn graph(function: Value<'_>) -> Result<Graph<'_>, Refusal<'_>> {
    let blocks = function.blocks();
    let indices: FxHashMap<Block<'_>, BlockIdx> =
        blocks.iter().enumerate().map(|(index, block)| (*block, BlockIdx(index))).collect();
    let successors: Vec<Vec<BlockIdx>> = blocks
        .iter()
        .map(|block| {
            let mut next: Vec<BlockIdx> = Vec::new();
            for to in block.successors() {
                let to = indices[&to];
                if !next.contains(&to) {
                    next.push(to);
                }
            }
            next
        })
        .collect();
    let (returns, exit) = live(&blocks, &successors)?;
    ends_are_known(&blocks, &returns)?;
    let mut predecessors = vec![Vec::new(); blocks.len()];
    for (from, next) in successors.iter().enumerate().filter(|(from, _)| returns[*from]) {
        next.iter().for_each(|to| predecessors[to.0].push(BlockIdx(from)));
    }
    let order =
        reverse_post_order(BlockIdx(0), |at| successors[at.0].iter().copied().filter(|next| returns[next.0]).collect());
    if order.len() > MAX_BLOCKS {
        return Err(Refusal { reason: Reason::TooManyBlocks(order.len()), at: None });
    }
    let mut graph = Graph {
        function,
        indices,
        successors,
        predecessors,
        returns,
        exit,
        loops: Vec::new(),
        innermost: vec![None; blocks.len()],
        nodes: Vec::new(),
        order,
        blocks,
    };
    find_loops(&mut graph)?;
    loops_are_closed(&graph)?;
    graph.nodes = graph.regions().map(|region| nodes(&graph, region)).collect();
    Ok(graph)
}

/// Which blocks are live, and which one returns.
fn live<'c>(blocks: &[Block<'c>], successors: &[Vec<BlockIdx>]) -> Result<(Vec<bool>, BlockIdx), Refusal<'c>> {
    let reached = reverse_post_order(BlockIdx(0), |at| successors[at.0].clone());
    let exits: Vec<BlockIdx> = reached.iter().copied().filter(|block| blocks[block.0].end().is(Opcode::RET)).collect();
    let exit = match exits[..] {
        [] => return Err(Refusal { reason: Reason::NeverReturns, at: None }),
        [exit] => exit,
        [_, second, ..] => {
            return Err(Refusal { reason: Reason::SeveralReturns, at: Some(blocks[second.0].end()) });
        }
    };
    let mut before = vec![Vec::new(); blocks.len()];
    for from in &reached {
        successors[from.0].iter().for_each(|to| before[to.0].push(*from));
    }
    let mut returns = vec![false; blocks.len()];
    reverse_post_order(exit, |at| before[at.0].clone()).iter().for_each(|block| returns[block.0] = true);
    Ok((returns, exit))
}

/// Refuses ends of blocks that the vectoriser does not know.
fn ends_are_known<'c>(blocks: &[Block<'c>], returns: &[bool]) -> Result<(), Refusal<'c>> {
    for (index, block) in blocks.iter().enumerate() {
        let end = block.end();
        let reason = match end.opcode() {
            Some(Opcode::INDIRECT_BRANCH | Opcode::CALL_BRANCH) => Reason::ComputedJump,
            // Dead blocks are copied as they are.
            _ if !returns[index] => continue,
            Some(Opcode::BRANCH | Opcode::RET) => continue,
            Some(Opcode::INVOKE) => continue,
            Some(Opcode::SWITCH) => Reason::Switch,
            _ => Reason::CaughtPanic,
        };
        return Err(Refusal { reason, at: Some(end) });
    }
    let pads = blocks.iter().zip(returns).filter(|(_, returns)| **returns).flat_map(|(block, _)| block.instructions());
    match pads.into_iter().find(|instruction| instruction.is(Opcode::LANDING_PAD)) {
        Some(pad) => Err(Refusal { reason: Reason::CaughtPanic, at: Some(pad) }),
        None => Ok(()),
    }
}

/// What is reached from `first`, each element before what is reached from it, but for cycles.
fn reverse_post_order<T: Copy + Eq + std::hash::Hash>(first: T, next: impl Fn(T) -> Vec<T>) -> Vec<T> {
    let mut order = Vec::new();
    let mut seen = FxHashSet::from_iter([first]);
    let mut stack = vec![(first, next(first).into_iter())];
    while let Some((at, rest)) = stack.last_mut() {
        match rest.next() {
            Some(to) => {
                if seen.insert(to) {
                    stack.push((to, next(to).into_iter()));
                }
            }
            None => {
                order.push(*at);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Finds the loops. Sets `loops` and `innermost`.
fn find_loops<'c>(graph: &mut Graph<'c>) -> Result<(), Refusal<'c>> {
    let mut place = vec![usize::MAX; graph.blocks.len()];
    graph.order.iter().enumerate().for_each(|(position, block)| place[block.0] = position);
    let dominators = dominators(graph, &place);
    for &header in &graph.order {
        let (back, entering): (Vec<_>, Vec<_>) =
            graph.predecessors(header).iter().copied().partition(|from| place[from.0] >= place[header.0]);
        let refuse = |reason| Err(Refusal { reason, at: Some(graph.block(header).end()) });
        if back.iter().any(|from| !dominates(&dominators, header, *from)) {
            return refuse(Reason::Irreducible);
        }
        let latch = match (&back[..], &entering[..]) {
            ([], _) => continue,
            ([latch], [_]) => *latch,
            _ => return refuse(Reason::LoopForm),
        };
        let mut inside = FxHashSet::from_iter([header]);
        let mut queue = vec![latch];
        while let Some(block) = queue.pop() {
            if inside.insert(block) {
                queue.extend(graph.predecessors(block));
            }
        }
        let blocks: Vec<BlockIdx> = graph.order.iter().copied().filter(|block| inside.contains(block)).collect();
        // Headers of outer loops come first in this order.
        let parent = graph.innermost[header.0];
        // A loop whose exit is the header of another one would have its edge in neither region.
        if entering.iter().any(|from| graph.innermost[from.0] != parent) {
            return refuse(Reason::LoopForm);
        }
        let index = LoopIdx(graph.loops.len());
        blocks.iter().for_each(|block| graph.innermost[block.0] = Some(index));
        graph.loops.push(Loop { header, latch, parent, blocks });
        let depth = std::iter::successors(Some(index), |of| graph.parent(*of)).count();
        if depth > MAX_NESTED_LOOPS {
            return Err(Refusal { reason: Reason::TooManyNestedLoops(depth), at: Some(graph.block(header).end()) });
        }
    }
    Ok(())
}

/// The immediate dominators of live blocks; the entry's is itself. The algorithm is Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm.
fn dominators(graph: &Graph<'_>, place: &[usize]) -> Vec<Option<BlockIdx>> {
    let mut dominators = vec![None; graph.blocks.len()];
    let entry = graph.entry();
    dominators[entry.0] = Some(entry);
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &graph.order[1..] {
            let known = graph.predecessors(block).iter().copied().filter(|from| dominators[from.0].is_some());
            let common = known.reduce(|mut a, mut b| {
                while a != b {
                    let later = if place[a.0] > place[b.0] { &mut a } else { &mut b };
                    *later = dominators[later.0].expect("its dominator was found before");
                }
                a
            });
            if dominators[block.0] != common {
                dominators[block.0] = common;
                changed = true;
            }
        }
    }
    dominators
}

fn dominates(dominators: &[Option<BlockIdx>], first: BlockIdx, block: BlockIdx) -> bool {
    let above = |at: &BlockIdx| dominators[at.0].filter(|next| next != at);
    std::iter::successors(Some(block), above).any(|at| at == first)
}

/// Refuses values that are used outside of their loop without a phi. Lanes that left earlier would use what later iterations computed. A dead block
/// uses values where its trap edges begin.
fn loops_are_closed<'c>(graph: &Graph<'c>) -> Result<(), Refusal<'c>> {
    let places = places_of_use(graph);
    for block in graph.blocks() {
        for user in graph.block(block).instructions() {
            let uses: Vec<(Value<'c>, BlockIdx)> = if user.is(Opcode::PHI) {
                user.incoming().into_iter().map(|(value, from)| (value, graph.index(from))).collect()
            } else {
                user.operands().into_iter().map(|value| (value, block)).collect()
            };
            let is_open = |(value, used): &(Value<'c>, BlockIdx)| {
                let region = (value.kind() == ValueKind::Instruction)
                    .then(|| graph.innermost(graph.index(value.block())))
                    .flatten();
                region.is_some() && !places[used.0].iter().all(|place| graph.contains(region, *place))
            };
            if uses.iter().any(is_open) {
                return Err(Refusal { reason: Reason::OpenLoop, at: Some(user) });
            }
        }
    }
    Ok(())
}

/// The live blocks in which values are used that a block uses: the block itself, or all from which trap edges lead to it.
fn places_of_use(graph: &Graph<'_>) -> Vec<Vec<BlockIdx>> {
    let mut places = vec![Vec::new(); graph.blocks.len()];
    for &from in &graph.order {
        places[from.0].push(from);
        let mut queue: Vec<BlockIdx> = graph.traps(from).collect();
        while let Some(dead) = queue.pop() {
            if places[dead.0].last() != Some(&from) {
                places[dead.0].push(from);
                queue.extend(graph.successors(dead));
            }
        }
    }
    places
}

/// The nodes of a region in topological order.
fn nodes(graph: &Graph<'_>, region: Region) -> Vec<Node> {
    let first = region.map_or(graph.entry(), |of| graph.header(of));
    let behind = |node: Node| {
        let leaving = graph.node_blocks(&node).iter().flat_map(|from| graph.live_successors(*from));
        let stays = leaving.filter(|to| graph.contains(region, *to) && *to != first);
        stays.map(|to| graph.node_of(to, region)).filter(|next| *next != node).collect()
    };
    reverse_post_order(graph.node_of(first, region), behind)
}
