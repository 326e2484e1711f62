//! What vectors cost that have no register at the place of their use: one more store and load for each run of a region.

use rustc_hash::FxHashSet;

use super::table::{Table, bits, registers};
use crate::llvm::{Opcode, TypeKind, Value};
use crate::spmd::cfg::{BlockIdx, Graph, Node};
use crate::spmd::shape::{Shape, Shapes};

/// A store and a load of a register.
const SPILL: u64 = 12;

/// The values that differ between lanes, as far as they are needed later.
struct Live<'a, 'c> {
    graph: &'a Graph<'c>,
    shapes: &'a Shapes<'a, 'c>,
    /// What is needed at the beginning of each block, without its phis.
    before: Vec<FxHashSet<Value<'c>>>,
}

/// The cost of all regions together, with the frequencies of blocks in vectors.
pub(super) fn spills<'c>(
    graph: &Graph<'c>,
    shapes: &Shapes<'_, 'c>,
    (table, lanes): (Table, u32),
    frequencies: &[u64],
) -> u64 {
    let mut live = Live { graph, shapes, before: vec![FxHashSet::default(); graph.blocks().count()] };
    let mut grows = true;
    while grows {
        grows = false;
        for &block in graph.order().iter().rev() {
            let before = live.through(block, |_| {});
            grows |= before.len() > live.before[block.index()].len();
            live.before[block.index()] = before;
        }
    }
    let mut cost = 0_u64;
    for region in graph.regions() {
        let nodes = graph.nodes(region);
        let mut most = 0_u64;
        for node in nodes {
            let Node::Block(block) = *node else { continue };
            live.through(block, |values| {
                let of = |value: &Value<'c>| registers(bits(value.value_type()), lanes);
                most = most.max(values.iter().map(of).sum::<u64>());
            });
        }
        let runs = frequencies[graph.node_blocks(&nodes[0])[0].index()];
        cost = cost.saturating_add(most.saturating_sub(table.registers()) * SPILL * runs);
    }
    cost
}

impl<'c> Live<'_, 'c> {
    /// Goes from the end of a block to its beginning, and visits what is needed behind each instruction. The result is what is needed before all of them.
    fn through(&self, block: BlockIdx, mut visit: impl FnMut(&FxHashSet<Value<'c>>)) -> FxHashSet<Value<'c>> {
        let mut values = FxHashSet::default();
        for next in self.graph.live_successors(block) {
            values.extend(&self.before[next.index()]);
            let phis = self.graph.block(next).instructions().into_iter().take_while(|phi| phi.is(Opcode::PHI));
            for (value, _) in phis.flat_map(Value::incoming).filter(|(_, from)| self.graph.index(*from) == block) {
                values.extend(Some(value).filter(|value| self.varies(*value)));
            }
        }
        for instruction in self.graph.block(block).instructions().into_iter().rev() {
            visit(&values);
            values.remove(&instruction);
            if !instruction.is(Opcode::PHI) {
                values.extend(instruction.operands().into_iter().filter(|operand| self.varies(*operand)));
            }
        }
        values
    }

    fn varies(&self, value: Value<'c>) -> bool {
        value.opcode().is_some()
            && self.shapes.shape(value) == Shape::Varying
            && value.value_type().kind() != TypeKind::Void
    }
}
