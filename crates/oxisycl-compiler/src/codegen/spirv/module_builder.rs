//! A SPIR-V module under construction: ids, and what exists once per module.
//!
//! Types and constants are made on first use and found again later, in the order of first use, so that the same input gives the same
//! bytes. There is one pointer type per storage class for addresses, with bytes as what it points to; pointers to other scalars exist
//! only between an address and the access that it is for.

use std::collections::{BTreeMap, BTreeSet};

use rspirv::binary::Assemble;
use rspirv::dr::{Function, Instruction, Module, ModuleHeader, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionParameterAttribute,
    MemoryModel, Op, StorageClass, Word,
};
use rustc_hash::FxHashMap;

/// What a module may use beyond what it needs.
#[derive(Clone, Copy, Default)]
pub(super) struct Extensions {
    /// Atomic sums of floats (`SPV_EXT_shader_atomic_float_add`).
    pub(super) float_atomics: bool,
}

/// A type that a value in a register can have.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Scalar {
    Bool,
    /// 8, 16, 32 or 64 bits.
    Int(u32),
    /// 16, 32 or 64 bits.
    Float(u32),
    /// The address of bytes.
    Address(StorageClass),
}

/// Types beside the scalars.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Compound {
    Void,
    Pointer(StorageClass, Word),
    Vector(Word, u32),
    Array(Word, Word),
    /// A struct with one member.
    Struct(Word),
}

/// What the code of a function needs beside itself.
#[derive(Clone, Default, Debug)]
pub(super) struct Needs {
    /// Variables that the driver fills in.
    pub(super) inputs: BTreeSet<Word>,
    /// Functions that it calls.
    pub(super) calls: BTreeSet<Word>,
}

/// A module under construction.
pub(super) struct Writer {
    module: Module,
    last_id: Word,
    scalars: FxHashMap<Scalar, Word>,
    compounds: FxHashMap<Compound, Word>,
    signatures: FxHashMap<Vec<Word>, Word>,
    structures: FxHashMap<Vec<Word>, Word>,
    constants: FxHashMap<(Word, u64), Word>,
    nulls: FxHashMap<Word, Word>,
    inputs: BTreeMap<u32, Word>,
    extended: Word,
    capabilities: BTreeSet<Capability>,
    extensions: Extensions,
    used_extensions: BTreeSet<&'static str>,
    needs: BTreeMap<Word, Needs>,
    /// Whether something of SPIR-V 1.3 is used.
    needs_1_3: bool,
}

impl Writer {
    pub(super) fn new(extensions: Extensions) -> Self {
        let mut writer = Self {
            module: Module::new(),
            last_id: 0,
            scalars: FxHashMap::default(),
            compounds: FxHashMap::default(),
            signatures: FxHashMap::default(),
            structures: FxHashMap::default(),
            constants: FxHashMap::default(),
            nulls: FxHashMap::default(),
            inputs: BTreeMap::new(),
            extended: 0,
            capabilities: BTreeSet::new(),
            extensions,
            used_extensions: BTreeSet::new(),
            needs: BTreeMap::new(),
            needs_1_3: false,
        };
        for capability in [Capability::Addresses, Capability::Kernel, Capability::Int8, Capability::Int64] {
            writer.require(capability);
        }
        writer.extended = writer.id();
        let import = Operand::LiteralString("OpenCL.std".to_owned());
        let import = Instruction::new(Op::ExtInstImport, None, Some(writer.extended), vec![import]);
        writer.module.ext_inst_imports.push(import);
        writer
    }

    /// A new id.
    pub(super) fn id(&mut self) -> Word {
        self.last_id += 1;
        self.last_id
    }

    /// The id of the instructions of `OpenCL.std`.
    pub(super) fn extended(&self) -> Word {
        self.extended
    }

    pub(super) fn require(&mut self, capability: Capability) {
        self.capabilities.insert(capability);
    }

    /// What the module may use.
    pub(super) fn extensions(&self) -> Extensions {
        self.extensions
    }

    /// Says that the module uses an extension of SPIR-V.
    pub(super) fn extend(&mut self, name: &'static str) {
        self.used_extensions.insert(name);
    }

    /// Says that the module uses something of SPIR-V 1.3.
    pub(super) fn require_1_3(&mut self) {
        self.needs_1_3 = true;
    }

    pub(super) fn capabilities(&self) -> &BTreeSet<Capability> {
        &self.capabilities
    }

    fn global(&mut self, op: Op, result_type: Option<Word>, operands: Vec<Operand>) -> Word {
        let id = self.id();
        self.module.types_global_values.push(Instruction::new(op, result_type, Some(id), operands));
        id
    }

    pub(super) fn decorate(&mut self, id: Word, decoration: Decoration, values: impl IntoIterator<Item = Operand>) {
        let operands = [Operand::IdRef(id), Operand::Decoration(decoration)].into_iter().chain(values).collect();
        self.module.annotations.push(Instruction::new(Op::Decorate, None, None, operands));
    }

    pub(super) fn scalar(&mut self, scalar: Scalar) -> Word {
        if let Some(&id) = self.scalars.get(&scalar) {
            return id;
        }
        let id = match scalar {
            Scalar::Bool => self.global(Op::TypeBool, None, Vec::new()),
            Scalar::Int(width) => {
                if width == 16 {
                    self.require(Capability::Int16);
                }
                self.global(Op::TypeInt, None, vec![Operand::LiteralBit32(width), Operand::LiteralBit32(0)])
            }
            Scalar::Float(width) => {
                match width {
                    16 => self.require(Capability::Float16),
                    64 => self.require(Capability::Float64),
                    _ => {}
                }
                self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(width)])
            }
            Scalar::Address(class) => self.pointer(class, Scalar::Int(8)),
        };
        self.scalars.insert(scalar, id);
        id
    }

    fn compound(&mut self, compound: Compound) -> Word {
        if let Some(&id) = self.compounds.get(&compound) {
            return id;
        }
        let id = match compound {
            Compound::Void => self.global(Op::TypeVoid, None, Vec::new()),
            Compound::Pointer(class, pointee) => {
                if class == StorageClass::Generic {
                    self.require(Capability::GenericPointer);
                }
                let operands = vec![Operand::StorageClass(class), Operand::IdRef(pointee)];
                self.global(Op::TypePointer, None, operands)
            }
            Compound::Vector(element, count) => {
                self.global(Op::TypeVector, None, vec![Operand::IdRef(element), Operand::LiteralBit32(count)])
            }
            Compound::Array(element, count) => {
                self.global(Op::TypeArray, None, vec![Operand::IdRef(element), Operand::IdRef(count)])
            }
            Compound::Struct(member) => self.global(Op::TypeStruct, None, vec![Operand::IdRef(member)]),
        };
        self.compounds.insert(compound, id);
        id
    }

    pub(super) fn void(&mut self) -> Word {
        self.compound(Compound::Void)
    }

    /// A pointer to a scalar.
    pub(super) fn pointer(&mut self, class: StorageClass, pointee: Scalar) -> Word {
        let pointee = self.scalar(pointee);
        self.compound(Compound::Pointer(class, pointee))
    }

    /// A pointer to a type that is no scalar.
    pub(super) fn pointer_to(&mut self, class: StorageClass, pointee: Word) -> Word {
        self.compound(Compound::Pointer(class, pointee))
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Word {
        let (byte, count) = (self.scalar(Scalar::Int(8)), self.integer(64, count));
        self.compound(Compound::Array(byte, count))
    }

    /// A struct of so many bytes: what a parameter by value points to.
    pub(super) fn blob(&mut self, count: u64) -> Word {
        let bytes = self.bytes(count);
        self.compound(Compound::Struct(bytes))
    }

    /// Several values that a function returns.
    pub(super) fn structure(&mut self, members: &[Word]) -> Word {
        if let Some(&id) = self.structures.get(members) {
            return id;
        }
        let id = self.global(Op::TypeStruct, None, members.iter().map(|&id| Operand::IdRef(id)).collect());
        self.structures.insert(members.to_vec(), id);
        id
    }

    pub(super) fn signature(&mut self, result: Word, parameters: &[Word]) -> Word {
        let key: Vec<Word> = [result].into_iter().chain(parameters.iter().copied()).collect();
        if let Some(&id) = self.signatures.get(&key) {
            return id;
        }
        let id = self.global(Op::TypeFunction, None, key.iter().map(|&id| Operand::IdRef(id)).collect());
        self.signatures.insert(key, id);
        id
    }

    /// An integer constant; bits above its width are ignored.
    pub(super) fn integer(&mut self, width: u32, value: u64) -> Word {
        let value = if width == 64 { value } else { value & ((1 << width) - 1) };
        let scalar = self.scalar(Scalar::Int(width));
        self.number(scalar, width, value)
    }

    /// A floating-point constant, by its bits.
    pub(super) fn float(&mut self, width: u32, bits: u64) -> Word {
        let scalar = self.scalar(Scalar::Float(width));
        self.number(scalar, width, bits)
    }

    fn number(&mut self, of: Word, width: u32, bits: u64) -> Word {
        if let Some(&id) = self.constants.get(&(of, bits)) {
            return id;
        }
        let literal = if width == 64 { Operand::LiteralBit64(bits) } else { Operand::LiteralBit32(bits as u32) };
        let id = self.global(Op::Constant, Some(of), vec![literal]);
        self.constants.insert((of, bits), id);
        id
    }

    pub(super) fn boolean(&mut self, value: bool) -> Word {
        let scalar = self.scalar(Scalar::Bool);
        if let Some(&id) = self.constants.get(&(scalar, u64::from(value))) {
            return id;
        }
        let op = if value { Op::ConstantTrue } else { Op::ConstantFalse };
        let id = self.global(op, Some(scalar), Vec::new());
        self.constants.insert((scalar, u64::from(value)), id);
        id
    }

    /// Zero, false or the null address.
    pub(super) fn null(&mut self, scalar: Scalar) -> Word {
        match scalar {
            Scalar::Bool => self.boolean(false),
            Scalar::Int(width) => self.integer(width, 0),
            Scalar::Float(width) => self.float(width, 0),
            Scalar::Address(_) => {
                let of = self.scalar(scalar);
                if let Some(&id) = self.nulls.get(&of) {
                    return id;
                }
                let id = self.global(Op::ConstantNull, Some(of), Vec::new());
                self.nulls.insert(of, id);
                id
            }
        }
    }

    /// A variable of the module that holds bytes.
    pub(super) fn variable(&mut self, class: StorageClass, size: u64, alignment: u32, initial: Option<&[u8]>) -> Word {
        let held = self.bytes(size);
        let pointer = self.pointer_to(class, held);
        let mut operands = vec![Operand::StorageClass(class)];
        if let Some(bytes) = initial {
            let value = if bytes.iter().all(|&byte| byte == 0) {
                self.global(Op::ConstantNull, Some(held), Vec::new())
            } else {
                let elements = bytes.iter().map(|&byte| Operand::IdRef(self.integer(8, u64::from(byte)))).collect();
                self.global(Op::ConstantComposite, Some(held), elements)
            };
            operands.push(Operand::IdRef(value));
        }
        let id = self.global(Op::Variable, Some(pointer), operands);
        self.decorate(id, Decoration::Alignment, [Operand::LiteralBit32(alignment)]);
        if initial.is_some() {
            self.decorate(id, Decoration::Constant, []);
        }
        id
    }

    /// A vector of three 64-bit numbers that the driver fills in: the variable, and the vector's type.
    pub(super) fn input(&mut self, what: BuiltIn) -> (Word, Word) {
        let word = self.scalar(Scalar::Int(64));
        let vector = self.compound(Compound::Vector(word, 3));
        if let Some(&id) = self.inputs.get(&(what as u32)) {
            return (id, vector);
        }
        let pointer = self.pointer_to(StorageClass::Input, vector);
        let id = self.global(Op::Variable, Some(pointer), vec![Operand::StorageClass(StorageClass::Input)]);
        self.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(what)]);
        self.decorate(id, Decoration::Constant, []);
        self.inputs.insert(what as u32, id);
        (id, vector)
    }

    /// Marks a parameter as one whose bytes the launch passes.
    pub(super) fn pass_by_value(&mut self, parameter: Word, alignment: u32) {
        let by_value = Operand::FunctionParameterAttribute(FunctionParameterAttribute::ByVal);
        self.decorate(parameter, Decoration::FuncParamAttr, [by_value]);
        self.decorate(parameter, Decoration::Alignment, [Operand::LiteralBit32(alignment)]);
    }

    /// Adds a finished function.
    pub(super) fn add_function(&mut self, function: Function, needs: Needs) {
        let id = function.def_id().expect("a function has an id");
        self.needs.insert(id, needs);
        self.module.functions.push(function);
    }

    /// Makes a finished function one that can be launched.
    pub(super) fn add_kernel(&mut self, function: Word, name: &str) {
        let mut inputs = BTreeSet::new();
        let mut reached = BTreeSet::new();
        let mut queue = vec![function];
        while let Some(function) = queue.pop() {
            if let Some(needs) = self.needs.get(&function).filter(|_| reached.insert(function)) {
                inputs.extend(&needs.inputs);
                queue.extend(&needs.calls);
            }
        }
        let mut operands =
            vec![Operand::ExecutionModel(ExecutionModel::Kernel), Operand::IdRef(function), Operand::from(name)];
        operands.extend(inputs.into_iter().map(Operand::IdRef));
        self.module.entry_points.push(Instruction::new(Op::EntryPoint, None, None, operands));
        // Where a product and a sum may become one operation, the code says so itself.
        let mode = vec![Operand::IdRef(function), Operand::ExecutionMode(ExecutionMode::ContractionOff)];
        self.module.execution_modes.push(Instruction::new(Op::ExecutionMode, None, None, mode));
    }

    /// The finished module.
    pub(super) fn finish(mut self) -> Module {
        let mut header = ModuleHeader::new(self.last_id + 1);
        header.set_version(1, if self.needs_1_3 { 3 } else { 2 });
        self.module.header = Some(header);
        let capability =
            |&capability| Instruction::new(Op::Capability, None, None, vec![Operand::Capability(capability)]);
        self.module.capabilities = self.capabilities.iter().map(capability).collect();
        let extension = |&name: &&str| Instruction::new(Op::Extension, None, None, vec![Operand::from(name)]);
        self.module.extensions = self.used_extensions.iter().map(extension).collect();
        let model =
            vec![Operand::AddressingModel(AddressingModel::Physical64), Operand::MemoryModel(MemoryModel::OpenCL)];
        self.module.memory_model = Some(Instruction::new(Op::MemoryModel, None, None, model));
        self.module
    }
}

/// The bytes of a module, as drivers take them.
pub(super) fn to_bytes(module: &Module) -> Vec<u8> {
    module.assemble().into_iter().flat_map(u32::to_le_bytes).collect()
}
