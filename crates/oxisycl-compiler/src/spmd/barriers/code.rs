//! The code of a work-item in pieces between barriers, and what is alive at them.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::llvm::{Block, Opcode, Value, ValueKind};

/// Instructions of one block that follow each other, up to a barrier or to the block's end.
pub(super) struct Piece<'c> {
    pub(super) block: Block<'c>,
    pub(super) instructions: Vec<Value<'c>>,
    /// The barrier behind it. `None` if the block's end is its last instruction.
    pub(super) barrier: Option<usize>,
}

/// What is behind a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Exit {
    Barrier(usize),
    /// The work-item has ended.
    End,
}

/// A body in pieces.
pub(super) struct Code<'c> {
    pub(super) body: Value<'c>,
    pub(super) pieces: Vec<Piece<'c>>,
    /// The piece that a block begins with.
    first: FxHashMap<Block<'c>, usize>,
    /// The piece behind each barrier.
    behind: Vec<usize>,
    /// The piece of an instruction. Barriers are in none.
    piece_of: FxHashMap<Value<'c>, usize>,
}

impl<'c> Code<'c> {
    pub(super) fn of(body: Value<'c>, barriers: &[Value<'c>]) -> Self {
        let (mut pieces, mut first, mut behind) = (Vec::new(), FxHashMap::default(), Vec::new());
        for block in body.blocks() {
            first.insert(block, pieces.len());
            let mut piece = Piece { block, instructions: Vec::new(), barrier: None };
            for instruction in block.instructions() {
                if barriers.contains(&instruction) {
                    piece.barrier = Some(behind.len());
                    pieces
                        .push(std::mem::replace(&mut piece, Piece { block, instructions: Vec::new(), barrier: None }));
                    behind.push(pieces.len());
                } else {
                    piece.instructions.push(instruction);
                }
            }
            pieces.push(piece);
        }
        let numbered = pieces.iter().enumerate();
        let piece_of = numbered.flat_map(|(n, piece)| piece.instructions.iter().map(move |of| (*of, n))).collect();
        Self { body, pieces, first, behind, piece_of }
    }

    /// How many regions there are: one from the begin, and one from each barrier.
    pub(super) fn n_regions(&self) -> usize {
        self.behind.len() + 1
    }

    /// The piece that a region begins with. The region behind barrier `n` is number `n + 1`.
    pub(super) fn begin(&self, region: usize) -> usize {
        region.checked_sub(1).map_or(0, |barrier| self.behind[barrier])
    }

    /// The piece of an instruction.
    pub(super) fn piece(&self, instruction: Value<'c>) -> Option<usize> {
        self.piece_of.get(&instruction).copied()
    }

    /// The piece that a block begins with.
    pub(super) fn of_block(&self, block: Block<'c>) -> usize {
        self.first[&block]
    }

    /// The pieces that may follow a piece in its region.
    pub(super) fn next(&self, piece: usize) -> Vec<usize> {
        let Piece { block, barrier, .. } = &self.pieces[piece];
        if barrier.is_some() { Vec::new() } else { block.successors().iter().map(|next| self.first[next]).collect() }
    }

    /// The pieces of a region, its first one first.
    pub(super) fn region(&self, region: usize) -> Vec<usize> {
        let mut found = vec![self.begin(region)];
        let mut at = 0;
        while let Some(&piece) = found.get(at) {
            at += 1;
            for next in self.next(piece) {
                if !found.contains(&next) {
                    found.push(next);
                }
            }
        }
        found
    }

    /// Where a piece leaves its region, if it does: by a barrier, or by the return.
    pub(super) fn exit(&self, piece: usize) -> Option<Exit> {
        match self.pieces[piece].barrier {
            Some(barrier) => Some(Exit::Barrier(barrier)),
            None => self.pieces[piece].block.end().is(Opcode::RET).then_some(Exit::End),
        }
    }

    /// Where a region may be left, each way once.
    pub(super) fn exits(&self, region: usize) -> Vec<Exit> {
        let mut exits: Vec<_> = self.region(region).into_iter().filter_map(|piece| self.exit(piece)).collect();
        exits.sort_unstable();
        exits.dedup();
        exits
    }

    /// The instructions whose values are used behind the begin of each piece, before they are computed again. `also` are read at the
    /// begins of pieces in addition.
    pub(super) fn alive(&self, also: &FxHashMap<usize, FxHashSet<Value<'c>>>) -> Vec<FxHashSet<Value<'c>>> {
        let mut alive: Vec<FxHashSet<Value<'c>>> = vec![FxHashSet::default(); self.pieces.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for number in (0..self.pieces.len()).rev() {
                let piece = &self.pieces[number];
                let mut here = match piece.barrier {
                    Some(barrier) => alive[self.behind[barrier]].clone(),
                    None => FxHashSet::default(),
                };
                for next in self.next(number) {
                    here.extend(&alive[next]);
                    // A phi reads where it comes from.
                    let phis = self.pieces[next].instructions.iter().take_while(|phi| phi.is(Opcode::PHI));
                    let read = phis.flat_map(|phi| phi.incoming()).filter(|(_, from)| *from == piece.block);
                    here.extend(read.map(|(value, _)| value).filter(is_instruction));
                }
                for instruction in piece.instructions.iter().rev() {
                    here.remove(instruction);
                    if !instruction.is(Opcode::PHI) {
                        here.extend(instruction.operands().into_iter().filter(is_instruction));
                    }
                }
                here.extend(also.get(&number).into_iter().flatten());
                if here != alive[number] {
                    alive[number] = here;
                    changed = true;
                }
            }
        }
        alive
    }
}

pub(super) fn is_instruction(value: &Value<'_>) -> bool {
    !value.is_block() && value.kind() == ValueKind::Instruction
}
