//! How much each value differs between lanes, and which nodes all lanes pass together.
//!
//! Shapes, statuses and divergence depend on each other. The analysis begins with the best of each and makes it worse until nothing changes. The
//! documentation of `spmd` has the reasons for the rules.

use rustc_hash::{FxHashMap, FxHashSet};

use super::cfg::{BlockIdx, Graph, LoopIdx, Node, Region};
use crate::llvm::{Layout, Opcode, Value, ValueKind};

/// How much a value differs between the lanes that are active where it is defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Not computed yet. At the end, only values of code that never runs have this shape.
    Unknown,
    /// Equal in all lanes.
    Uniform,
    /// A lane's value is that of the lane before plus this number, modulo the size of the type. Bytes for pointers; never 0.
    ///
    /// One scalar stands for the value: that of lane 0, computed from the scalars of the operands by the same operation. Lane 0 may be inactive,
    /// so an operation on affine operands has no flags as a scalar, also where its result is uniform.
    Affine(i64),
    /// Any values.
    Varying,
}

impl Shape {
    /// The shape of a value that is of one shape or of another one, the same choice for all lanes.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, shape) | (shape, Self::Unknown) => shape,
            (first, second) if first == second => first,
            _ => Self::Varying,
        }
    }
}

/// Which lanes of its region pass a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Status {
    /// All active lanes of the region, unless all have left the region before.
    Full,
    /// All active lanes of the region, or none: those that take the uniform edge that enters it.
    Guard,
    /// Any of them.
    Masked,
}

/// The rules that tests leave out, to see that the lack is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// Phis vary where lanes meet over different edges.
    Joins,
    /// Lanes leave a divergent loop at different times.
    DivergentExits,
    /// Edges from a masked block are no uniform edges.
    MaskedBlocks,
    /// Edges from a masked loop are no uniform edges.
    MaskedLoops,
    /// Lanes that have left a divergent loop do not pass the rest of its body.
    LeftLanes,
    /// A wider integer does not wrap where the narrower one does.
    Extensions,
    /// A varying condition selects different values.
    Selections,
    /// The sum of two strides is the stride of the sum.
    Strides,
    /// Each lane has its own variables.
    Variables,
    /// An index of an address is extended before it is scaled.
    NarrowIndices,
}

impl Rule {
    #[cfg(test)]
    pub(super) const ALL: [Self; 10] = [
        Self::Joins,
        Self::DivergentExits,
        Self::MaskedBlocks,
        Self::MaskedLoops,
        Self::LeftLanes,
        Self::Extensions,
        Self::Selections,
        Self::Strides,
        Self::Variables,
        Self::NarrowIndices,
    ];
}

/// What the analysis finds.
pub(crate) struct Shapes<'g, 'c> {
    graph: &'g Graph<'c>,
    layout: Layout<'g>,
    shapes: FxHashMap<Value<'c>, Shape>,
    /// By block.
    statuses: Vec<Status>,
    /// By loop.
    loop_statuses: Vec<Status>,
    /// By loop.
    divergent: Vec<bool>,
    /// The rule that a test leaves out.
    without: Option<Rule>,
}

impl<'g, 'c> Shapes<'g, 'c> {
    /// Analyses an item function, whose last parameter is the item's number. The layout is that of its module.
    pub(crate) fn of(graph: &'g Graph<'c>, layout: Layout<'g>) -> Self {
        Self::without(graph, layout, None)
    }

    /// As [`of`](Self::of), without a rule.
    pub(super) fn without(graph: &'g Graph<'c>, layout: Layout<'g>, without: Option<Rule>) -> Self {
        let mut shapes = FxHashMap::default();
        let mut parameters = graph.function().parameters();
        if let Some(item) = parameters.pop() {
            shapes.insert(item, transfer::affine(item, 1));
        }
        shapes.extend(parameters.into_iter().map(|captured| (captured, Shape::Uniform)));
        let n_loops = graph.loops().count();
        let mut analysis = Self {
            graph,
            layout,
            shapes,
            statuses: vec![Status::Full; graph.blocks().count()],
            loop_statuses: vec![Status::Full; n_loops],
            divergent: vec![false; n_loops],
            without,
        };
        // Each step makes something worse, and that ends.
        while analysis.step() {}
        analysis
    }

    /// The shape of a constant, a parameter, or an instruction in a live block.
    pub(crate) fn shape(&self, value: Value<'c>) -> Shape {
        match value.kind() {
            ValueKind::Instruction | ValueKind::Argument => self.shapes.get(&value).copied().unwrap_or(Shape::Unknown),
            _ => transfer::of_constant(value),
        }
    }

    pub(crate) fn is_uniform(&self, value: Value<'c>) -> bool {
        self.shape(value) == Shape::Uniform
    }

    /// The status of a node in its region: the innermost loop of a block, or the parent of a loop.
    pub(crate) fn status(&self, node: Node) -> Status {
        match node {
            Node::Block(block) => self.statuses[block.index()],
            Node::Loop(of) => self.loop_statuses[of.index()],
        }
    }

    /// Whether lanes may leave a loop in different iterations or over different edges.
    pub(crate) fn is_divergent(&self, of: LoopIdx) -> bool {
        self.divergent[of.index()]
    }

    /// Whether all active lanes of a region take a live edge, or none. The edge begins in the region, or in a loop inside.
    pub(crate) fn is_uniform_edge(&self, from: BlockIdx, to: BlockIdx, region: Region) -> bool {
        debug_assert!(self.graph.successors(from).contains(&to) && self.graph.returns(to), "a live edge");
        if self.diverges(from) || (self.statuses[from.index()] == Status::Masked && self.has(Rule::MaskedBlocks)) {
            return false;
        }
        let mut at = self.graph.innermost(from);
        while at != region {
            let Some(of) = at else { panic!("block {from:?} is not in the region {region:?}") };
            let is_masked = self.loop_statuses[of.index()] == Status::Masked && self.has(Rule::MaskedLoops);
            if is_masked || (self.is_divergent(of) && self.has(Rule::DivergentExits)) {
                return false;
            }
            at = self.graph.parent(of);
        }
        true
    }

    /// Whether lanes may take different live edges at the end of a block.
    pub(crate) fn diverges(&self, block: BlockIdx) -> bool {
        let mut next = self.graph.live_successors(block);
        let is_branch = next.next().is_some() && next.next().is_some();
        let end = self.graph.block(block).end();
        is_branch && !(end.is(Opcode::BRANCH) && matches!(self.shape(end.operand(0)), Shape::Unknown | Shape::Uniform))
    }

    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// Applies all rules once. Returns whether something became worse.
    fn step(&mut self) -> bool {
        let mut worse = false;
        for of in self.graph.loops() {
            let exits = self.graph.exits(of);
            if !self.is_divergent(of) && !exits.iter().all(|(from, to)| self.is_uniform_edge(*from, *to, Some(of))) {
                self.divergent[of.index()] = true;
                worse = true;
            }
        }
        for region in self.graph.regions() {
            for &node in self.graph.nodes(region) {
                let before = self.status(node);
                let status = self.next_status(node, region).max(before);
                match node {
                    Node::Block(block) => self.statuses[block.index()] = status,
                    Node::Loop(of) => self.loop_statuses[of.index()] = status,
                }
                worse |= status != before;
            }
        }
        for &block in self.graph.order() {
            for instruction in self.graph.block(block).instructions() {
                let before = self.shape(instruction);
                let shape = before.or(self.result(instruction, block));
                if shape != before {
                    self.shapes.insert(instruction, shape);
                    worse = true;
                }
            }
        }
        worse
    }

    fn next_status(&self, node: Node, region: Region) -> Status {
        let before = self.status(node);
        if before == Status::Full && self.is_passed_by_all(node, region) {
            return Status::Full;
        }
        let edges = self.graph.in_edges(node);
        let is_uniform = edges.iter().all(|(from, to)| self.is_uniform_edge(*from, *to, region));
        if before != Status::Masked && is_uniform { Status::Guard } else { Status::Masked }
    }

    /// Whether each way through the region passes the node: each path from its first node to its end. Lanes leave a loop that is not divergent all
    /// at once and by a branch, so its exits do not count.
    fn is_passed_by_all(&self, node: Node, region: Region) -> bool {
        let first = self.graph.nodes(region)[0];
        if node == first {
            return true;
        }
        let exits_count = region.is_some_and(|of| self.is_divergent(of) && self.has(Rule::LeftLanes));
        let header = region.map(|of| self.graph.header(of));
        let (mut seen, mut queue) = (FxHashSet::from_iter([first]), vec![first]);
        while let Some(at) = queue.pop() {
            for &from in self.graph.node_blocks(&at) {
                if from == self.graph.exit() {
                    return false;
                }
                for to in self.graph.live_successors(from) {
                    if Some(to) == header {
                        return false;
                    }
                    if !self.graph.contains(region, to) {
                        if exits_count {
                            return false;
                        }
                        continue;
                    }
                    let behind = self.graph.node_of(to, region);
                    if behind != node && seen.insert(behind) {
                        queue.push(behind);
                    }
                }
            }
        }
        true
    }
}

mod transfer;

#[cfg(test)]
pub(super) use transfer::PURE;

#[cfg(test)]
mod tests;
