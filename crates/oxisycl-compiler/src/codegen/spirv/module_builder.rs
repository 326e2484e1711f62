//! A SPIR-V module under construction: ids, and parts that exist once per module.
//!
//! `rspirv`'s builder makes the instructions outside of functions, and finds types again. Constants, scalars and pointers are in tables
//! here: the builder adds a constant at each call, and compares a type with all instructions so far. Everything is made on first use, so
//! that the same input gives the same bytes. There is one pointer type per storage class for addresses, with bytes as its pointee. Pointers
//! to other scalars exist only between an address and the access that it is for.

use std::collections::{BTreeMap, BTreeSet};

use oxisycl_types::GroupSize;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Function, Module, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionParameterAttribute,
    MemoryModel, StorageClass, Word,
};
use rustc_hash::FxHashMap;

/// The optional extensions that a module may use.
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

/// The parts of the module that a function's code needs.
#[derive(Clone, Default, Debug)]
pub(super) struct Needs {
    /// Variables that the driver provides.
    pub(super) inputs: BTreeSet<Word>,
    /// Functions that it calls.
    pub(super) calls: BTreeSet<Word>,
}

/// A module under construction.
pub(super) struct ModuleBuilder {
    builder: Builder,
    scalars: FxHashMap<Scalar, Word>,
    pointers: FxHashMap<(StorageClass, Scalar), Word>,
    /// By type and bits.
    constants: FxHashMap<(Word, u64), Word>,
    inputs: BTreeMap<u32, Word>,
    extended: Word,
    capabilities: BTreeSet<Capability>,
    extensions: Extensions,
    used_extensions: BTreeSet<&'static str>,
    needs: BTreeMap<Word, Needs>,
    /// Whether the module uses a feature of SPIR-V 1.3.
    needs_1_3: bool,
}

impl ModuleBuilder {
    pub(super) fn new(extensions: Extensions) -> Self {
        let mut builder = Builder::new();
        Self {
            extended: builder.ext_inst_import("OpenCL.std"),
            builder,
            scalars: FxHashMap::default(),
            pointers: FxHashMap::default(),
            constants: FxHashMap::default(),
            inputs: BTreeMap::new(),
            capabilities: [Capability::Addresses, Capability::Kernel, Capability::Int8, Capability::Int64].into(),
            extensions,
            used_extensions: BTreeSet::new(),
            needs: BTreeMap::new(),
            needs_1_3: false,
        }
    }

    /// A new id.
    pub(super) fn id(&mut self) -> Word {
        self.builder.id()
    }

    /// The id of the instructions of `OpenCL.std`.
    pub(super) fn extended(&self) -> Word {
        self.extended
    }

    pub(super) fn require(&mut self, capability: Capability) {
        self.capabilities.insert(capability);
    }

    /// The extensions that the module may use.
    pub(super) fn extensions(&self) -> Extensions {
        self.extensions
    }

    /// Declares that the module uses an extension of SPIR-V.
    pub(super) fn extend(&mut self, name: &'static str) {
        self.used_extensions.insert(name);
    }

    /// Declares that the module uses a feature of SPIR-V 1.3.
    pub(super) fn require_1_3(&mut self) {
        self.needs_1_3 = true;
    }

    pub(super) fn capabilities(&self) -> &BTreeSet<Capability> {
        &self.capabilities
    }

    pub(super) fn decorate(&mut self, id: Word, decoration: Decoration, values: impl IntoIterator<Item = Operand>) {
        self.builder.decorate(id, decoration, values);
    }

    /// Gives an id a name, which means nothing to drivers.
    pub(super) fn name(&mut self, id: Word, name: &str) {
        self.builder.name(id, name);
    }

    pub(super) fn scalar(&mut self, scalar: Scalar) -> Word {
        if let Some(&id) = self.scalars.get(&scalar) {
            return id;
        }
        let id = match scalar {
            Scalar::Bool => self.builder.type_bool(),
            Scalar::Int(width) => {
                if width == 16 {
                    self.require(Capability::Int16);
                }
                self.builder.type_int(width, 0)
            }
            Scalar::Float(width) => {
                match width {
                    16 => self.require(Capability::Float16),
                    64 => self.require(Capability::Float64),
                    _ => {}
                }
                self.builder.type_float(width, None)
            }
            Scalar::Address(class) => self.pointer(class, Scalar::Int(8)),
        };
        self.scalars.insert(scalar, id);
        id
    }

    pub(super) fn void(&mut self) -> Word {
        self.builder.type_void()
    }

    /// A pointer to a scalar.
    pub(super) fn pointer(&mut self, class: StorageClass, pointee: Scalar) -> Word {
        if let Some(&id) = self.pointers.get(&(class, pointee)) {
            return id;
        }
        let of = self.scalar(pointee);
        let id = self.pointer_to(class, of);
        self.pointers.insert((class, pointee), id);
        id
    }

    /// A pointer to a type that is no scalar.
    pub(super) fn pointer_to(&mut self, class: StorageClass, pointee: Word) -> Word {
        if class == StorageClass::Generic {
            self.require(Capability::GenericPointer);
        }
        self.builder.type_pointer(None, class, pointee)
    }

    /// An array type of `count` bytes.
    pub(super) fn bytes(&mut self, count: u64) -> Word {
        let (byte, count) = (self.scalar(Scalar::Int(8)), self.integer(64, count));
        self.builder.type_array(byte, count)
    }

    /// A struct type of `count` bytes, which a by-value parameter points to.
    pub(super) fn blob(&mut self, count: u64) -> Word {
        let bytes = self.bytes(count);
        self.structure(&[bytes])
    }

    /// A struct type for several results of a function.
    pub(super) fn structure(&mut self, members: &[Word]) -> Word {
        self.builder.type_struct(members.iter().copied())
    }

    pub(super) fn signature(&mut self, result: Word, parameters: &[Word]) -> Word {
        self.builder.type_function(result, parameters.iter().copied())
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
        self.constant(of, bits, |builder| match width {
            64 => builder.constant_bit64(of, bits),
            _ => builder.constant_bit32(of, bits as u32),
        })
    }

    pub(super) fn boolean(&mut self, value: bool) -> Word {
        let of = self.scalar(Scalar::Bool);
        self.constant(of, u64::from(value), |builder| match value {
            true => builder.constant_true(of),
            false => builder.constant_false(of),
        })
    }

    /// Zero, false or the null address.
    pub(super) fn null(&mut self, scalar: Scalar) -> Word {
        match scalar {
            Scalar::Bool => self.boolean(false),
            Scalar::Int(width) => self.integer(width, 0),
            Scalar::Float(width) => self.float(width, 0),
            Scalar::Address(_) => {
                let of = self.scalar(scalar);
                self.constant(of, 0, |builder| builder.constant_null(of))
            }
        }
    }

    /// The constant of a type with these bits.
    fn constant(&mut self, of: Word, bits: u64, add: impl FnOnce(&mut Builder) -> Word) -> Word {
        *self.constants.entry((of, bits)).or_insert_with(|| add(&mut self.builder))
    }

    /// A variable of the module that holds bytes.
    pub(super) fn variable(&mut self, class: StorageClass, size: u64, alignment: u32, initial: Option<&[u8]>) -> Word {
        let held = self.bytes(size);
        let pointer = self.pointer_to(class, held);
        let value = initial.map(|bytes| {
            if bytes.iter().all(|&byte| byte == 0) {
                return self.builder.constant_null(held);
            }
            let elements: Vec<Word> = bytes.iter().map(|&byte| self.integer(8, u64::from(byte))).collect();
            self.builder.constant_composite(held, elements)
        });
        let id = self.builder.variable(pointer, None, class, value);
        self.decorate(id, Decoration::Alignment, [Operand::LiteralBit32(alignment)]);
        if initial.is_some() {
            self.decorate(id, Decoration::Constant, []);
        }
        id
    }

    /// A variable that the driver provides, with three 64-bit numbers. Returns the variable and the vector's type.
    pub(super) fn input(&mut self, what: BuiltIn) -> (Word, Word) {
        let word = self.scalar(Scalar::Int(64));
        let vector = self.builder.type_vector(word, 3);
        if let Some(&id) = self.inputs.get(&(what as u32)) {
            return (id, vector);
        }
        let pointer = self.pointer_to(StorageClass::Input, vector);
        let id = self.builder.variable(pointer, None, StorageClass::Input, None);
        self.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(what)]);
        self.decorate(id, Decoration::Constant, []);
        self.inputs.insert(what as u32, id);
        (id, vector)
    }

    /// Marks a parameter as passed by value at the launch.
    pub(super) fn pass_by_value(&mut self, parameter: Word, alignment: u32) {
        let by_value = Operand::FunctionParameterAttribute(FunctionParameterAttribute::ByVal);
        self.decorate(parameter, Decoration::FuncParamAttr, [by_value]);
        self.decorate(parameter, Decoration::Alignment, [Operand::LiteralBit32(alignment)]);
    }

    /// Sets the alignment of a parameter that is the address of a group's local memory.
    pub(super) fn align_local_memory(&mut self, parameter: Word) {
        self.decorate(parameter, Decoration::Alignment, [Operand::LiteralBit32(GroupSize::ALIGNMENT as u32)]);
    }

    /// Adds a finished function.
    pub(super) fn add_function(&mut self, function: Function, needs: Needs) {
        let id = function.def_id().expect("a function has an id");
        self.needs.insert(id, needs);
        self.builder.module_mut().functions.push(function);
    }

    /// Declares a finished function as a kernel. `group` is the number of work-items of its groups along `x`, `y` and `z`, if that is
    /// fixed, and `sub_group` that of its sub-groups.
    pub(super) fn add_kernel(&mut self, function: Word, name: &str, group: Option<[u32; 3]>, sub_group: Option<u32>) {
        let mut inputs = BTreeSet::new();
        let mut reached = BTreeSet::new();
        let mut queue = vec![function];
        while let Some(function) = queue.pop() {
            if let Some(needs) = self.needs.get(&function).filter(|_| reached.insert(function)) {
                inputs.extend(&needs.inputs);
                queue.extend(&needs.calls);
            }
        }
        let inputs: Vec<Word> = inputs.into_iter().collect();
        self.builder.entry_point(ExecutionModel::Kernel, function, name, inputs);
        // Where a product and a sum may become one operation, the code says so itself.
        self.builder.execution_mode(function, ExecutionMode::ContractionOff, []);
        if let Some(group) = group {
            self.builder.execution_mode(function, ExecutionMode::LocalSize, group);
        }
        if let Some(size) = sub_group {
            self.require(Capability::SubgroupDispatch);
            self.builder.execution_mode(function, ExecutionMode::SubgroupSize, [size]);
        }
    }

    /// The finished module.
    pub(super) fn finish(mut self) -> Module {
        self.builder.set_version(1, if self.needs_1_3 { 3 } else { 2 });
        self.capabilities.iter().for_each(|&capability| self.builder.capability(capability));
        self.used_extensions.iter().for_each(|&name| self.builder.extension(name));
        self.builder.memory_model(AddressingModel::Physical64, MemoryModel::OpenCL);
        self.builder.module()
    }
}

/// The bytes of a module, for drivers.
pub(super) fn to_bytes(module: &Module) -> Vec<u8> {
    module.assemble().into_iter().flat_map(u32::to_le_bytes).collect()
}
