//! The run of one item, as far as random functions need it.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::llvm::{Layout, Opcode, TypeKind, Value, ValueKind};
use crate::spmd::cfg::{BlockIdx, Graph};

/// Blocks that an item runs at most.
const FUEL: usize = 4000;
/// The address of what all items read.
const SHARED: u64 = 0x1357_9000;
/// The addresses of the items' own variables, so many bytes for each.
const PRIVATE: u64 = 0x0765_4321_1234_0000;
const PRIVATE_SIZE: u64 = 16;
const PRIVATE_END: u64 = PRIVATE + 64 * PRIVATE_SIZE;

/// A block in certain iterations of the loops around it, outer ones first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub(super) block: BlockIdx,
    pub(super) iterations: Vec<u32>,
}

/// What an item does at a place.
pub(super) struct Visit<'c> {
    pub(super) values: Vec<(Value<'c>, u64)>,
    pub(super) next: Option<BlockIdx>,
}

/// What an item does.
pub(super) struct Item<'c> {
    pub(super) visits: BTreeMap<Place, Visit<'c>>,
}

fn width(value: Value<'_>) -> u32 {
    match value.value_type().kind() {
        TypeKind::Integer(width) => width,
        _ => 64,
    }
}

/// The bits that a value of that type keeps.
pub(super) fn cut(value: Value<'_>, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - width(value)))
}

/// The number that the bits of a value are with a sign.
fn signed(value: Value<'_>, bits: u64) -> i64 {
    let unused = 64 - width(value);
    (bits << unused) as i64 >> unused
}

/// Any number that depends on these.
fn mixed(first: u64, second: u64) -> u64 {
    let mixed = (first ^ second.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

struct Machine<'g, 'c> {
    layout: Layout<'g>,
    values: FxHashMap<Value<'c>, u64>,
    memory: FxHashMap<u64, u64>,
    lane: u64,
    /// Counts what differs each time.
    turn: u64,
}

/// Runs an item. `None` if it takes a trap edge. The error says that it does not end.
pub(super) fn run<'c>(
    graph: &Graph<'c>,
    layout: Layout<'_>,
    captured: u64,
    item: u64,
    lane: u64,
) -> Result<Option<Item<'c>>, String> {
    let parameters = graph.function().parameters();
    let values = parameters.into_iter().zip([SHARED, captured, item]).collect();
    let mut machine = Machine { layout, values, memory: FxHashMap::default(), lane, turn: 0 };
    let mut visits = BTreeMap::new();
    let mut iterations: Vec<u32> = graph.loops().map(|_| 0).collect();
    let (mut at, mut from) = (graph.entry(), None);
    for _ in 0..FUEL {
        if !graph.returns(at) {
            return Ok(None);
        }
        let mut around: Vec<u32> = std::iter::successors(graph.innermost(at), |of| graph.parent(*of))
            .map(|of| iterations[of.index()])
            .collect();
        around.reverse();
        let (values, next) = machine.block(graph, at, from);
        let before = visits.insert(Place { block: at, iterations: around }, Visit { values, next });
        assert!(before.is_none(), "a place is visited twice");
        let Some(next) = next else { return Ok(Some(Item { visits })) };
        if let Some(of) = graph.headed(next) {
            let again = graph.contains(Some(of), at);
            iterations[of.index()] = if again { iterations[of.index()] + 1 } else { 0 };
        }
        (from, at) = (Some(at), next);
    }
    Err(format!("item {item} does not end"))
}

impl<'c> Machine<'_, 'c> {
    fn of(&self, value: Value<'c>) -> u64 {
        match value.kind() {
            ValueKind::Instruction | ValueKind::Argument => self.values[&value],
            _ => cut(value, value.integer().unwrap_or(0)),
        }
    }

    /// Runs a block. Returns the values that it computes, and the next block.
    fn block(
        &mut self,
        graph: &Graph<'c>,
        at: BlockIdx,
        from: Option<BlockIdx>,
    ) -> (Vec<(Value<'c>, u64)>, Option<BlockIdx>) {
        let instructions = graph.block(at).instructions();
        let n_phis = instructions.iter().take_while(|instruction| instruction.is(Opcode::PHI)).count();
        let (phis, rest) = instructions.split_at(n_phis);
        // All phis choose by what was before the block.
        let chosen = |phi: &Value<'c>| {
            let incoming = phi.incoming().into_iter().find(|(_, block)| Some(graph.index(*block)) == from);
            (*phi, self.of(incoming.expect("the block before").0))
        };
        let mut results: Vec<(Value<'c>, u64)> = phis.iter().map(chosen).collect();
        self.values.extend(results.iter().copied());
        for &instruction in rest {
            if let Some(bits) = self.instruction(instruction) {
                let bits = cut(instruction, bits);
                self.values.insert(instruction, bits);
                results.push((instruction, bits));
            }
        }
        let end = graph.block(at).end();
        let next = graph.block(at).successors();
        let taken = usize::from(next.len() > 1 && self.of(end.operand(0)) == 0);
        (results, next.get(taken).map(|next| graph.index(*next)))
    }

    /// The result of an instruction.
    fn instruction(&mut self, instruction: Value<'c>) -> Option<u64> {
        let operands = instruction.operands();
        let of = |index: usize| self.of(operands[index]);
        Some(match instruction.opcode().expect("an instruction") {
            Opcode::ADD => of(0).wrapping_add(of(1)),
            Opcode::SUB => of(0).wrapping_sub(of(1)),
            Opcode::MUL => of(0).wrapping_mul(of(1)),
            Opcode::SHL => of(0) << of(1),
            Opcode::LSHR => of(0) >> of(1),
            Opcode::AND => of(0) & of(1),
            Opcode::OR => of(0) | of(1),
            Opcode::XOR => of(0) ^ of(1),
            Opcode::ZEXT | Opcode::TRUNC | Opcode::FREEZE | Opcode::PTR_TO_INT => of(0),
            Opcode::SEXT => signed(operands[0], of(0)) as u64,
            Opcode::SELECT => of(if of(0) == 1 { 1 } else { 2 }),
            Opcode::INTEGER_COMPARISON => {
                let [a, b] = [of(0), of(1)];
                let [sa, sb] = [signed(operands[0], a), signed(operands[1], b)];
                u64::from(match instruction.predicate() {
                    32 => a == b,
                    33 => a != b,
                    34 => a > b,
                    35 => a >= b,
                    36 => a < b,
                    37 => a <= b,
                    38 => sa > sb,
                    39 => sa >= sb,
                    40 => sa < sb,
                    _ => sa <= sb,
                })
            }
            Opcode::GET_ELEMENT_PTR => {
                assert_eq!(operands.len(), 2, "no other addresses are made");
                let index = signed(operands[1], of(1)) as u64;
                of(0).wrapping_add(index.wrapping_mul(self.layout.size(instruction.gep_type())))
            }
            Opcode::ALLOCA => PRIVATE + self.lane * PRIVATE_SIZE,
            Opcode::LOAD if instruction.is_volatile() => self.any(),
            Opcode::ATOMIC_RMW => self.any(),
            Opcode::LOAD if (PRIVATE..PRIVATE_END).contains(&of(0)) => {
                self.memory.get(&of(0)).copied().unwrap_or(mixed(of(0), self.lane))
            }
            Opcode::LOAD => mixed(of(0), 0),
            Opcode::CALL if operands.len() == 3 => of(0).min(of(1)),
            Opcode::CALL => self.any(),
            Opcode::STORE => {
                let [value, address] = [of(0), of(1)];
                self.memory.insert(address, value);
                return None;
            }
            Opcode::BRANCH | Opcode::RET => return None,
            other => panic!("{other:?} is not made"),
        })
    }

    /// A number that each item gets differently, each time.
    fn any(&mut self) -> u64 {
        self.turn += 1;
        mixed(self.lane + 1, self.turn)
    }
}
