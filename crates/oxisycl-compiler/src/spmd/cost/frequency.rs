//! How often the blocks of a body run: for one item, and for a vector of items.
//!
//! Frequencies are multiples of [`ONE`], the run of the body. They follow from the probabilities of edges, which are guesses by the form of conditions, and
//! from the lengths of loops. A masked node behind a branch runs for a vector if one of the lanes runs it.

use rustc_hash::FxHashMap;

use crate::llvm::predicate::{EQUAL, UNEQUAL, UNSIGNED_GREATER, UNSIGNED_NOT_GREATER};
use crate::llvm::{Opcode, Value};
use crate::spmd::borders::{self, is_question};
use crate::spmd::cfg::{BlockIdx, Edge, Graph, LoopIdx, Node, Region};
use crate::spmd::plan::{Guard, guard, has_all_lanes, wants_copy};
use crate::spmd::shape::{Shape, Shapes, Status};

/// The frequency of the body, and the probability of what is certain.
pub(super) const ONE: u64 = 1 << 20;
/// No block runs more often than that.
const MOST: u64 = ONE << 20;
/// The iterations of a loop of which nothing is known.
const UNKNOWN_TRIPS: u64 = 16;
/// Conditions inside of conditions that are followed.
const DEPTH: u32 = 4;

/// The frequencies of blocks, by their positions.
pub(super) struct Frequencies {
    /// For one item.
    pub(super) scalar: Vec<u64>,
    /// For all items of a vector together.
    pub(super) vector: Vec<u64>,
    /// The part of a vector's runs, of [`ONE`], in which all lanes run the block without a mask.
    pub(super) whole: Vec<u64>,
}

/// The probability that a condition holds, and whether it is a border: it differs at the ends of a row, and hardly within a vector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Chance {
    yes: u64,
    is_border: bool,
}

impl Frequencies {
    pub(super) fn of(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, lanes: u32) -> Self {
        let n_blocks = graph.blocks().count();
        let mut scalar = vec![0; n_blocks];
        let mut entries = vec![0; graph.loops().count()];
        scalar[graph.entry().index()] = ONE;
        for region in graph.regions() {
            let nodes = graph.nodes(region);
            let first = graph.node_blocks(&nodes[0])[0];
            let mut flow = FxHashMap::from_iter([(nodes[0], scalar[first.index()])]);
            for node in nodes {
                let arriving = flow.get(node).copied().unwrap_or(0);
                let leaving = match *node {
                    Node::Block(block) => {
                        scalar[block.index()] = arriving;
                        edges(graph, shapes, block)
                    }
                    Node::Loop(of) => {
                        entries[of.index()] = arriving;
                        scalar[graph.header(of).index()] = repeated(arriving, trips(graph, of));
                        let mut exits = graph.exits(of);
                        exits.retain(|(_, to)| graph.contains(region, *to) && *to != first);
                        let share = ONE / exits.len().max(1) as u64;
                        exits.into_iter().map(|edge| (edge, share)).collect()
                    }
                };
                for ((_, to), probability) in leaving {
                    if graph.contains(region, to) && to != first {
                        *flow.entry(graph.node_of(to, region)).or_default() += part(arriving, probability);
                    }
                }
            }
        }
        let mut all = Self { scalar, vector: vec![0; n_blocks], whole: vec![0; n_blocks] };
        all.vector[graph.entry().index()] = ONE;
        for region in graph.regions() {
            all.of_vectors(graph, shapes, (region, lanes), &entries);
        }
        all
    }

    /// The frequencies of a region's nodes for a vector. That of the region's first block is known.
    fn of_vectors(
        &mut self,
        graph: &Graph<'_>,
        shapes: &Shapes<'_, '_>,
        (region, lanes): (Region, u32),
        entries: &[u64],
    ) {
        let nodes = graph.nodes(region);
        let first = graph.node_blocks(&nodes[0])[0].index();
        let (of_item, of_vector) = (self.scalar[first], self.vector[first]);
        let has_all_lanes = has_all_lanes(graph, shapes, region);
        let mut borders = FxHashMap::default();
        for &node in nodes {
            let own = match node {
                Node::Block(block) => self.scalar[block.index()],
                Node::Loop(of) => entries[of.index()],
            };
            let chance = (own * ONE).checked_div(of_item).unwrap_or(ONE).min(ONE);
            let is_border = node != nodes[0] && is_behind_a_border(graph, shapes, (node, region), &borders);
            borders.insert(node, is_border);
            let by_some = match shapes.status(node) {
                Status::Full => ONE,
                Status::Guard => chance,
                Status::Masked if guard(graph, shapes, node) == Guard::None => ONE,
                Status::Masked if is_border => chance,
                Status::Masked => ONE - power(ONE - chance, lanes),
            };
            // Lanes come from somewhere: behind a branch that few vectors take, few have any.
            let frequency = part(of_vector, by_some).min(self.arrivals(graph, (node, region)));
            match node {
                Node::Block(block) => {
                    self.vector[block.index()] = frequency;
                    self.whole[block.index()] = match shapes.status(node) {
                        Status::Full | Status::Guard => {
                            if has_all_lanes {
                                ONE
                            } else {
                                0
                            }
                        }
                        Status::Masked if !wants_copy(graph, shapes, node) => 0,
                        Status::Masked if is_border && chance >= ONE / 2 => ONE / 8 * 7,
                        Status::Masked if has_all_lanes && chance >= ONE / 64 * 63 => power(chance, lanes),
                        Status::Masked => ONE / 4,
                    };
                }
                Node::Loop(of) => {
                    // As long as the longest of the lanes, unless that is the most that a lane may take.
                    let grows = shapes.is_divergent(of) && known_trips(graph, of).is_none();
                    let trips = if grows { trips(graph, of) * 3 / 2 } else { trips(graph, of) };
                    self.vector[graph.header(of).index()] = repeated(frequency, trips);
                }
            }
        }
    }
}

impl Frequencies {
    /// How often a vector takes one of the edges into a node of a region, at most. The frequencies of the nodes before it are known.
    pub(super) fn arrivals(&self, graph: &Graph<'_>, (node, region): (Node, Region)) -> u64 {
        let runs = self.vector[graph.node_blocks(&graph.nodes(region)[0])[0].index()];
        // What loops inside do is part of their nodes.
        let of = |from: BlockIdx| if graph.innermost(from) == region { self.vector[from.index()] } else { runs };
        let edges = graph.in_edges(node);
        if edges.is_empty() { runs } else { edges.into_iter().map(|(from, _)| of(from)).sum::<u64>().min(runs) }
    }
}

/// A part of a frequency.
pub(super) fn part(frequency: u64, probability: u64) -> u64 {
    // Rounded up: what may run is not free.
    (frequency * probability).div_ceil(ONE)
}

fn repeated(frequency: u64, trips: u64) -> u64 {
    frequency.saturating_mul(trips).min(MOST)
}

fn power(of: u64, exponent: u32) -> u64 {
    (0..exponent).fold(ONE, |product, _| product * of / ONE)
}

/// The live edges at a block's end, with their probabilities.
fn edges(graph: &Graph<'_>, shapes: &Shapes<'_, '_>, block: BlockIdx) -> Vec<(Edge, u64)> {
    let next: Vec<_> = graph.live_successors(block).collect();
    let [yes, no] = next[..] else { return next.into_iter().map(|to| ((block, to), ONE)).collect() };
    let region = graph.innermost(block);
    let leaves = |to| region.is_some() && !graph.contains(region, to);
    let chance = match region {
        Some(of) if leaves(yes) != leaves(no) => {
            let exit = ONE / (trips(graph, of) * graph.exits(of).len() as u64);
            if leaves(yes) { exit } else { ONE - exit }
        }
        // Of such items, some are at the border.
        _ if borders::is_other_way(graph, block) => ONE / 2,
        _ => chance(shapes, graph.block(block).end().operand(0), DEPTH).yes,
    };
    vec![((block, yes), chance), ((block, no), ONE - chance)]
}

/// The iterations of a loop, if it is entered.
fn trips(graph: &Graph<'_>, of: LoopIdx) -> u64 {
    known_trips(graph, of).unwrap_or(UNKNOWN_TRIPS)
}

/// The constant that the number of a loop's iterations is, or that it never exceeds.
fn known_trips(graph: &Graph<'_>, of: LoopIdx) -> Option<u64> {
    let ends = graph.exits(of).into_iter().map(|(from, _)| graph.block(from).end());
    let known = ends.filter(|end| end.operands().len() > 1).filter_map(|end| counted(graph, of, end.operand(0)));
    known.min()
}

/// The iterations until a condition ends a loop, if it compares a number that grows by a constant with a constant.
fn counted<'c>(graph: &Graph<'c>, of: LoopIdx, condition: Value<'c>) -> Option<u64> {
    if !condition.is(Opcode::INTEGER_COMPARISON) {
        return None;
    }
    let end = condition.operand(1).signed()?;
    let mut counter = condition.operand(0);
    if counter.is(Opcode::ADD) {
        counter = counter.operand(0);
    }
    if !counter.is(Opcode::PHI) || graph.headed(graph.index(counter.block())) != Some(of) {
        return None;
    }
    let latch = graph.block(graph.latch(of));
    let (mut begin, mut step) = (None, None);
    for (value, from) in counter.incoming() {
        if from != latch {
            begin = value.signed();
        } else if value.is(Opcode::ADD) && value.operand(0) == counter {
            step = value.operand(1).signed();
        }
    }
    let trips = end.wrapping_sub(begin?).unsigned_abs().checked_div(step?.unsigned_abs())?;
    Some(trips.clamp(1, ONE))
}

/// The probability of a condition.
fn chance(shapes: &Shapes<'_, '_>, condition: Value<'_>, depth: u32) -> Chance {
    let is = |index: u32, bit| condition.operand(index).integer() == Some(bit);
    if shapes.shape(condition) == Shape::Varying
        && let Some(holds) = borders::usual_way(shapes, condition)
    {
        return Chance { yes: if holds { ONE / 16 * 15 } else { ONE / 16 }, is_border: true };
    }
    let both = match condition.opcode() {
        _ if depth == 0 => None,
        Some(Opcode::AND) => Some((0, 1)),
        Some(Opcode::SELECT) if is(2, 0) => Some((0, 1)),
        _ => None,
    };
    if let Some((first, second)) = both {
        let halves = [first, second].map(|index| condition.operand(index));
        let [first, second] = halves.map(|half| chance(shapes, half, depth - 1));
        // What all lanes share divides no vector.
        let is_border =
            halves.iter().zip([first, second]).all(|(half, chance)| chance.is_border || shapes.is_uniform(*half));
        return Chance { yes: part(first.yes, second.yes), is_border };
    }
    if is_question(condition) {
        return Chance { yes: ONE / 16 * 15, is_border: false };
    }
    if !condition.is(Opcode::INTEGER_COMPARISON) {
        return Chance { yes: ONE / 2, is_border: false };
    }
    let shapes_of = [0, 1].map(|index| shapes.shape(condition.operand(index)));
    let is_border = matches!(shapes_of, [Shape::Affine(_), Shape::Uniform] | [Shape::Uniform, Shape::Affine(_)]);
    let is_of_rows = shapes_of == [Shape::Uniform; 2];
    let yes = match (condition.predicate(), is_border) {
        (EQUAL, true) => ONE / 16,
        // Those of the middle of a row, as is their more usual form.
        (_, true) => ONE / 16 * 15,
        // And of the middle of all rows.
        (UNSIGNED_GREATER..=UNSIGNED_NOT_GREATER, false) if is_of_rows => ONE / 16 * 15,
        (UNEQUAL, false) if is_of_rows => ONE / 8 * 7,
        (EQUAL, false) => ONE / 4,
        (UNEQUAL, false) => ONE / 4 * 3,
        _ => ONE / 2,
    };
    Chance { yes, is_border }
}

/// Whether all edges into a node begin at borders, or in nodes of which that is known.
fn is_behind_a_border(
    graph: &Graph<'_>,
    shapes: &Shapes<'_, '_>,
    (node, region): (Node, Region),
    borders: &FxHashMap<Node, bool>,
) -> bool {
    graph.in_edges(node).into_iter().all(|(from, _)| {
        if shapes.diverges(from) {
            return chance(shapes, graph.block(from).end().operand(0), DEPTH).is_border;
        }
        borders.get(&graph.node_of(from, region)).copied().unwrap_or(false)
    })
}

#[cfg(test)]
mod tests;
