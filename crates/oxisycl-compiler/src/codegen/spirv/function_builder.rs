//! The code of one function under construction: blocks, and the few ways in which instructions are made.
//!
//! Instructions are appended to the last block. Variables, and addresses of globals, go to the start of the function, where they are
//! available to all of it. One instruction of LLVM may become several blocks.

use rspirv::dr::{Block, Function, Instruction, Operand};
use rspirv::spirv::{Decoration, FunctionControl, MemoryAccess, Op, StorageClass, Word};
use rustc_hash::FxHashMap;

use super::module_builder::{ModuleBuilder, Needs, Scalar};

pub(super) use rspirv::spirv::OpenclStd100Op as Std;

/// An instruction that has only ids as operands.
fn plain(op: Op, result_type: Option<Word>, id: Option<Word>, operands: &[Word]) -> Instruction {
    Instruction::new(op, result_type, id, operands.iter().map(|&id| Operand::IdRef(id)).collect())
}

pub(super) struct Code<'w> {
    pub(super) writer: &'w mut ModuleBuilder,
    pub(super) needs: Needs,
    id: Word,
    control: FunctionControl,
    signature: Word,
    result: Word,
    parameters: Vec<Instruction>,
    variables: Vec<Instruction>,
    prelude: Vec<Instruction>,
    blocks: Vec<Block>,
    is_at_start: bool,
    /// Block and position of each phi.
    phis: FxHashMap<Word, (usize, usize)>,
}

impl<'w> Code<'w> {
    pub(super) fn new(writer: &'w mut ModuleBuilder, id: Word) -> Self {
        Self {
            writer,
            needs: Needs::default(),
            id,
            control: FunctionControl::NONE,
            signature: 0,
            result: 0,
            parameters: Vec::new(),
            variables: Vec::new(),
            prelude: Vec::new(),
            blocks: Vec::new(),
            is_at_start: false,
            phis: FxHashMap::default(),
        }
    }

    /// Asks drivers not to inline the function.
    pub(super) fn keep_apart(&mut self) {
        self.control = FunctionControl::DONT_INLINE;
    }

    /// Sets the type of the function, and returns its parameters.
    pub(super) fn declare(&mut self, result: Word, parameters: &[Word]) -> Vec<Word> {
        self.result = result;
        self.signature = self.writer.signature(result, parameters);
        let mut ids = Vec::new();
        for &parameter in parameters {
            let id = self.writer.id();
            self.parameters.push(plain(Op::FunctionParameter, Some(parameter), Some(id), &[]));
            ids.push(id);
        }
        ids
    }

    /// Adds the finished function to the module.
    pub(super) fn finish(mut self) {
        let control = vec![Operand::FunctionControl(self.control), Operand::IdRef(self.signature)];
        let first = &mut self.blocks[0].instructions;
        first.splice(0..0, self.variables.into_iter().chain(self.prelude));
        let function = Function {
            def: Some(Instruction::new(Op::Function, Some(self.result), Some(self.id), control)),
            end: Some(Instruction::new(Op::FunctionEnd, None, None, Vec::new())),
            parameters: self.parameters,
            blocks: self.blocks,
        };
        self.writer.add_function(function, self.needs);
    }

    pub(super) fn id(&mut self) -> Word {
        self.writer.id()
    }

    // Blocks.

    /// Begins a block; the one before it has ended.
    pub(super) fn begin(&mut self, label: Word) {
        let label = Instruction::new(Op::Label, None, Some(label), Vec::new());
        self.blocks.push(Block { label: Some(label), instructions: Vec::new() });
    }

    /// The label of the block that is being written.
    pub(super) fn label(&self) -> Word {
        self.blocks.last().and_then(Block::label_id).expect("a block was begun")
    }

    pub(super) fn push(&mut self, instruction: Instruction) {
        if self.is_at_start {
            self.prelude.push(instruction);
        } else {
            self.blocks.last_mut().expect("a block was begun").instructions.push(instruction);
        }
    }

    /// Sets whether instructions go to the start of the function or to the last block. Returns the previous setting.
    pub(super) fn go_to_start(&mut self, is_at_start: bool) -> bool {
        std::mem::replace(&mut self.is_at_start, is_at_start)
    }

    /// Adds a cast of an address at the end of a finished block.
    pub(super) fn cast_at_end(&mut self, address: Word, class: StorageClass, label: Word) -> Word {
        let result = self.writer.scalar(Scalar::Address(class));
        let id = self.id();
        let op = if class == StorageClass::Generic { Op::PtrCastToGeneric } else { Op::GenericCastToPtr };
        let cast = plain(op, Some(result), Some(id), &[address]);
        let block = self.blocks.iter_mut().find(|block| block.label_id() == Some(label)).expect("a finished block");
        block.instructions.insert(block.instructions.len() - 1, cast);
        id
    }

    pub(super) fn branch(&mut self, target: Word) {
        self.push(plain(Op::Branch, None, None, &[target]));
    }

    pub(super) fn branch_if(&mut self, condition: Word, yes: Word, no: Word) {
        self.push(plain(Op::BranchConditional, None, None, &[condition, yes, no]));
    }

    /// A phi whose values are given later by [`set_phi`](Self::set_phi).
    pub(super) fn phi(&mut self, of: Scalar) -> Word {
        let phi = self.op(Op::Phi, of, &[]);
        let block = self.blocks.len() - 1;
        self.phis.insert(phi, (block, self.blocks[block].instructions.len() - 1));
        phi
    }

    /// Gives the values of a phi, with the labels of the blocks that they come from.
    pub(super) fn set_phi(&mut self, phi: Word, incoming: &[(Word, Word)]) {
        let &(block, position) = self.phis.get(&phi).expect("the phi was made before");
        let found = &mut self.blocks[block].instructions[position];
        let ids = incoming.iter().flat_map(|&(value, label)| [value, label]);
        found.operands = ids.map(Operand::IdRef).collect();
    }

    // Instructions.

    /// An instruction with a scalar result.
    pub(super) fn op(&mut self, op: Op, result: Scalar, operands: &[Word]) -> Word {
        let result = self.writer.scalar(result);
        self.op_of(op, result, operands)
    }

    /// An instruction with a result of any type, which is given by its id.
    pub(super) fn op_of(&mut self, op: Op, result: Word, operands: &[Word]) -> Word {
        let id = self.id();
        self.push(plain(op, Some(result), Some(id), operands));
        id
    }

    /// An instruction without a result.
    pub(super) fn effect(&mut self, op: Op, operands: &[Word]) {
        self.push(plain(op, None, None, operands));
    }

    /// An instruction at the start of the function.
    pub(super) fn op_at_start(&mut self, op: Op, result: Scalar, operands: &[Word]) -> Word {
        let before = self.go_to_start(true);
        let id = self.op(op, result, operands);
        self.go_to_start(before);
        id
    }

    /// An instruction of `OpenCL.std`.
    pub(super) fn extended(&mut self, instruction: Std, result: Scalar, operands: &[Word]) -> Word {
        let (result, id, set) = (self.writer.scalar(result), self.id(), self.writer.extended());
        let operands = [Operand::IdRef(set), Operand::LiteralExtInstInteger(instruction as u32)]
            .into_iter()
            .chain(operands.iter().map(|&id| Operand::IdRef(id)))
            .collect();
        self.push(Instruction::new(Op::ExtInst, Some(result), Some(id), operands));
        id
    }

    pub(super) fn integer(&mut self, width: u32, value: u64) -> Word {
        self.writer.integer(width, value)
    }

    pub(super) fn boolean(&mut self, value: bool) -> Word {
        self.writer.boolean(value)
    }

    pub(super) fn select(&mut self, of: Scalar, condition: Word, yes: Word, no: Word) -> Word {
        self.op(Op::Select, of, &[condition, yes, no])
    }

    /// An operation on integers of the given width that has such a result.
    pub(super) fn int(&mut self, op: Op, width: u32, operands: &[Word]) -> Word {
        self.op(op, Scalar::Int(width), operands)
    }

    /// A comparison.
    pub(super) fn test(&mut self, op: Op, operands: &[Word]) -> Word {
        self.op(op, Scalar::Bool, operands)
    }

    /// The generic address cast to `class`, or null if it points to other memory.
    pub(super) fn cast_if(&mut self, address: Word, class: StorageClass) -> Word {
        let (result, id) = (self.writer.scalar(Scalar::Address(class)), self.id());
        let operands = vec![Operand::IdRef(address), Operand::StorageClass(class)];
        self.push(Instruction::new(Op::GenericCastToPtrExplicit, Some(result), Some(id), operands));
        id
    }

    // Memory.

    /// A local variable of `size` bytes, as the address of its bytes.
    pub(super) fn variable(&mut self, size: u64, alignment: u32) -> Word {
        let held = self.writer.bytes(size.max(1));
        let pointer = self.writer.pointer_to(StorageClass::Function, held);
        let id = self.id();
        let class = vec![Operand::StorageClass(StorageClass::Function)];
        self.variables.push(Instruction::new(Op::Variable, Some(pointer), Some(id), class));
        self.writer.decorate(id, Decoration::Alignment, [Operand::LiteralBit32(alignment)]);
        self.op_at_start(Op::Bitcast, Scalar::Address(StorageClass::Function), &[id])
    }

    /// Casts the address of bytes to that of a scalar.
    pub(super) fn pointer(&mut self, address: Word, class: StorageClass, pointee: Scalar) -> Word {
        if pointee == Scalar::Int(8) {
            return address;
        }
        let pointer = self.writer.pointer(class, pointee);
        self.op_of(Op::Bitcast, pointer, &[address])
    }

    pub(super) fn load(&mut self, of: Scalar, (address, class): (Word, StorageClass), access: Access) -> Word {
        let pointer = self.pointer(address, class, of);
        let (result, id) = (self.writer.scalar(of), self.id());
        let operands = [Operand::IdRef(pointer)].into_iter().chain(access.operands()).collect();
        self.push(Instruction::new(Op::Load, Some(result), Some(id), operands));
        id
    }

    pub(super) fn store(&mut self, of: Scalar, value: Word, (address, class): (Word, StorageClass), access: Access) {
        let pointer = self.pointer(address, class, of);
        let operands = [Operand::IdRef(pointer), Operand::IdRef(value)].into_iter().chain(access.operands()).collect();
        self.push(Instruction::new(Op::Store, None, None, operands));
    }

    /// Loads a variable that the driver provides.
    pub(super) fn load_vector(&mut self, vector: Word, variable: Word) -> Word {
        let id = self.id();
        let access = Access { alignment: 32, is_volatile: false };
        let operands = [Operand::IdRef(variable)].into_iter().chain(access.operands()).collect();
        self.push(Instruction::new(Op::Load, Some(vector), Some(id), operands));
        id
    }

    /// An element of a vector.
    pub(super) fn extract(&mut self, of: Scalar, vector: Word, position: u32) -> Word {
        let (result, id) = (self.writer.scalar(of), self.id());
        let operands = vec![Operand::IdRef(vector), Operand::LiteralBit32(position)];
        self.push(Instruction::new(Op::CompositeExtract, Some(result), Some(id), operands));
        id
    }

    /// The address that is a number of scalars further. Drivers that vectorise recognise neighbours by this form, better than by a product
    /// of bytes.
    pub(super) fn element(
        &mut self,
        (address, class): (Word, StorageClass),
        of: Scalar,
        index: Word,
        in_bounds: bool,
    ) -> Word {
        let op = if in_bounds { Op::InBoundsPtrAccessChain } else { Op::PtrAccessChain };
        let (first, pointer) = (self.pointer(address, class, of), self.writer.pointer(class, of));
        let element = self.op_of(op, pointer, &[first, index]);
        self.op(Op::Bitcast, Scalar::Address(class), &[element])
    }

    /// The address that is `bytes` further.
    pub(super) fn offset(&mut self, address: Word, class: StorageClass, bytes: Word, in_bounds: bool) -> Word {
        let op = if in_bounds { Op::InBoundsPtrAccessChain } else { Op::PtrAccessChain };
        self.op(op, Scalar::Address(class), &[address, bytes])
    }
}

/// The properties of a memory access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The alignment in bytes, a power of two.
    pub(super) alignment: u32,
    pub(super) is_volatile: bool,
}

impl Access {
    /// The properties of the access `offset` bytes further.
    pub(super) fn at(self, offset: u64) -> Self {
        let alignment =
            if offset == 0 { self.alignment } else { self.alignment.min(1 << offset.trailing_zeros().min(30)) };
        Self { alignment, ..self }
    }

    fn operands(self) -> [Operand; 2] {
        let volatile = if self.is_volatile { MemoryAccess::VOLATILE } else { MemoryAccess::NONE };
        [Operand::MemoryAccess(MemoryAccess::ALIGNED | volatile), Operand::LiteralBit32(self.alignment)]
    }
}
