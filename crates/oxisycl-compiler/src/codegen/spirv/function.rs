//! The translation of one function: its blocks in an order that SPIR-V accepts, its parameters, and its instructions by their kinds.

use rspirv::spirv::{Op, StorageClass, Word};
use rustc_hash::{FxHashMap, FxHashSet};

use super::call_graph::{Callable, DEEPEST, Within};
use super::divergent_loops::blocks_of_divergent_loops;
use super::function_builder::Code;
use super::function_pointers::has_depth;
use super::implicit_parameters::ImplicitValues;
use super::module::{Called, Globals};
use super::module_builder::Scalar;
use super::names::ends_work_item;
use super::quirks::MASKED_CALLS;
use super::storage_classes::{Classes, Known};
use super::value::{Shape, Translated, container};
use crate::codegen::entry;
use crate::codegen::quirks::is_worked_around;
use crate::llvm::{Attribute, Block, Context, Layout, Opcode, Type, TypeKind, Value};
use crate::refused::Refused;

/// The translation of one function.
pub(super) struct FunctionTranslator<'w, 'm, 'c> {
    pub(super) code: Code<'w>,
    pub(super) globals: &'w mut Globals<'c>,
    pub(super) context: &'c Context,
    pub(super) layout: Layout<'m>,
    pub(super) is_kernel: bool,
    pub(super) function: Value<'c>,
    classes: Classes<'c>,
    values: FxHashMap<Value<'c>, Translated>,
    pub(super) constants: FxHashMap<Value<'c>, Translated>,
    /// The first label of each block, and the label of the block that it ends in.
    pub(super) labels: FxHashMap<Block<'c>, (Word, Word)>,
    /// Products that were fused into sums.
    pub(super) fused: FxHashSet<Value<'c>>,
    /// The implicit parameters of the function.
    pub(super) implicit: ImplicitValues,
    /// The depth in a cycle of formatting functions.
    pub(super) depth: u32,
    /// The kind of message that the function formats values for.
    within: Within,
}

impl<'w, 'm, 'c> FunctionTranslator<'w, 'm, 'c> {
    /// Translates a function with a body: a kernel, or a function in the context of its call.
    pub(super) fn translate(
        code: Code<'w>,
        globals: &'w mut Globals<'c>,
        (context, layout): (&'c Context, Layout<'m>),
        function: Value<'c>,
        called: Option<&Called<'c>>,
    ) -> Result<(), Refused> {
        let is_kernel = called.is_none();
        // The parameters of a kernel are the launch's arguments.
        let of_kernel = || {
            let class = |parameter: Value<'c>| match parameter.value_type().kind() {
                TypeKind::Pointer(entry::GLOBAL) => StorageClass::CrossWorkgroup,
                _ => StorageClass::Function,
            };
            let known = |parameter| Some(Known { class: class(parameter), is_arguments: true });
            function.parameters().into_iter().map(known).collect()
        };
        let parameters = called.map_or_else(of_kernel, |called| called.parameters.clone());
        let blocks = in_dominance_order(function);
        let instructions: Vec<_> = blocks.iter().flat_map(|block| block.instructions()).collect();
        let mut translator = Self {
            code,
            globals,
            context,
            layout,
            is_kernel,
            function,
            classes: Classes::of(function, &instructions, &parameters),
            values: FxHashMap::default(),
            constants: FxHashMap::default(),
            labels: FxHashMap::default(),
            fused: FxHashSet::default(),
            implicit: ImplicitValues::default(),
            depth: called.map_or(0, |called| called.depth),
            within: called.map_or(Within::NoMessage, |called| called.of.within),
        };
        // Such as the record of a panic. Inlined, its loops would keep drivers for CPUs from executing several work-items as one vector.
        if !is_kernel && function.has_attribute(Attribute::FUNCTION, "noinline") {
            translator.code.keep_apart();
        }
        translator.declare(&parameters)?;
        if translator.depth > DEEPEST && has_depth(function) {
            translator.end_formatting()?;
            translator.code.finish();
            return Ok(());
        }
        let keeps_sums = is_kernel && is_worked_around(&MASKED_CALLS);
        let divergent = if keeps_sums { blocks_of_divergent_loops(&blocks) } else { FxHashSet::default() };
        translator.find_fused(&instructions, &divergent);
        for &block in &blocks {
            let label = translator.code.id();
            translator.labels.insert(block, (label, label));
        }
        for &block in &blocks {
            translator.block(block)?;
        }
        translator.finish_phis(&instructions)?;
        translator.code.finish();
        Ok(())
    }

    /// The function with the context of its call.
    pub(super) fn this(&self) -> Callable<'c> {
        Callable { function: self.function, within: self.within }
    }

    /// Declares the parameters. A kernel's are bytes by value, and local memory; those of other functions are scalars.
    fn declare(&mut self, known: &[Option<Known>]) -> Result<(), Refused> {
        let parameters = self.function.parameters();
        if !self.is_kernel {
            return self.declare_plain(&parameters, known);
        }
        let mut types = Vec::new();
        let mut alignments = Vec::new();
        for (index, parameter) in (1..).zip(&parameters) {
            if parameter.value_type().kind() == TypeKind::Pointer(entry::GLOBAL) {
                // A number, since drivers take addresses of their own objects only where a parameter is an address.
                types.push(self.code.writer.scalar(Scalar::Int(64)));
                alignments.push(None);
                continue;
            }
            let held = self.function.type_attribute(index, "byval");
            let held = held.ok_or_else(|| Refused::new("a kernel's parameter that is not passed by value"))?;
            let blob = self.code.writer.blob(self.layout.size(held));
            types.push(self.code.writer.pointer_to(StorageClass::Function, blob));
            alignments.push(Some(self.function.number_attribute(index, "align").unwrap_or(1) as u32));
        }
        let uses_local_memory = self.globals.components.implicit_parameters(self.this()).local_memory;
        if uses_local_memory {
            types.push(self.code.writer.scalar(Scalar::Address(StorageClass::Workgroup)));
        }
        let void = self.code.writer.void();
        let ids = self.code.declare(void, &types);
        for ((&parameter, &id), alignment) in parameters.iter().zip(&ids).zip(alignments) {
            let (op, class) = match alignment {
                Some(alignment) => {
                    self.code.writer.pass_by_value(id, alignment);
                    (Op::Bitcast, StorageClass::Function)
                }
                None => (Op::ConvertUToPtr, StorageClass::CrossWorkgroup),
            };
            let address = self.code.op_at_start(op, Scalar::Address(class), &[id]);
            self.values.insert(parameter, Translated::Address(address, class));
        }
        self.implicit.local_memory = if uses_local_memory { ids.last().copied() } else { None };
        if let Some(local_memory) = self.implicit.local_memory {
            self.code.writer.align_local_memory(local_memory);
        }
        Ok(())
    }

    fn declare_plain(&mut self, parameters: &[Value<'c>], known: &[Option<Known>]) -> Result<(), Refused> {
        // `by_value` made a copy of each, which nothing here would.
        if (1..=parameters.len() as u32).any(|index| self.function.type_attribute(index, "byval").is_some()) {
            return Err(Refused::new("a parameter of a function that is passed by value"));
        }
        let shapes =
            parameters.iter().map(|parameter| Shape::of(parameter.value_type())).collect::<Result<Vec<_>, _>>()?;
        let scalars = shapes.iter().zip(known).flat_map(|(shape, known)| match known {
            Some(known) => vec![Scalar::Address(known.class)],
            None => shape.scalars(),
        });
        let implicit = self.globals.components.implicit_parameters(self.this());
        let scalars = implicit.scalars().into_iter().chain(scalars);
        let types: Vec<_> = scalars.map(|scalar| self.code.writer.scalar(scalar)).collect();
        let result = self.result_type(self.function.held_type().result())?;
        let mut ids = self.code.declare(result, &types).into_iter();
        self.implicit = ImplicitValues::of(implicit, &mut ids);
        for ((&parameter, shape), known) in parameters.iter().zip(&shapes).zip(known) {
            let value = match (assemble(shape, &mut ids), known) {
                (Translated::Address(id, _), Some(known)) => Translated::Address(id, known.class),
                (value, _) => value,
            };
            self.values.insert(parameter, value);
        }
        Ok(())
    }

    /// The result type of a function that was not inlined.
    pub(super) fn result_type(&mut self, result: Type<'c>) -> Result<Word, Refused> {
        let types: Vec<_> =
            Shape::of(result)?.scalars().into_iter().map(|scalar| self.code.writer.scalar(scalar)).collect();
        Ok(match types[..] {
            [] => self.code.writer.void(),
            [scalar] => scalar,
            _ => self.code.writer.structure(&types),
        })
    }

    /// Ends a function with a value of its type.
    pub(super) fn return_value(&mut self, value: Translated) -> Result<(), Refused> {
        let mut ids = Vec::new();
        leaves(&self.with_generic_addresses(value), &mut ids);
        match ids[..] {
            [] => self.code.effect(Op::Return, &[]),
            [id] => self.code.effect(Op::ReturnValue, &[id]),
            _ => {
                let of = self.result_type(self.function.held_type().result())?;
                let all = self.code.op_of(Op::CompositeConstruct, of, &ids);
                self.code.effect(Op::ReturnValue, &[all]);
            }
        }
        Ok(())
    }

    // Values.

    /// The storage class of an address.
    pub(super) fn class(&self, value: Value<'c>) -> StorageClass {
        self.classes.class(value)
    }

    /// The facts about a value that is an address.
    pub(super) fn known(&self, value: Value<'c>) -> Option<Known> {
        self.classes.known(value)
    }

    /// The translation of an operand.
    pub(super) fn value(&mut self, value: Value<'c>) -> Result<Translated, Refused> {
        if let Some(translated) = self.values.get(&value) {
            return Ok(translated.clone());
        }
        self.constant(value)
    }

    pub(super) fn operand(&mut self, instruction: Value<'c>, index: u32) -> Result<Translated, Refused> {
        self.value(instruction.operand(index))
    }

    /// The translation of an operand that is one scalar.
    pub(super) fn scalar(&mut self, instruction: Value<'c>, index: u32) -> Result<Word, Refused> {
        Ok(self.operand(instruction, index)?.scalar())
    }

    /// Casts the address to another storage class, which is the generic one or the same.
    pub(super) fn cast(&mut self, (address, class): (Word, StorageClass), to: StorageClass) -> Word {
        if class == to {
            address
        } else if to == StorageClass::Generic {
            self.code.op(Op::PtrCastToGeneric, Scalar::Address(to), &[address])
        } else {
            let generic = self.cast((address, class), StorageClass::Generic);
            self.code.op(Op::GenericCastToPtr, Scalar::Address(to), &[generic])
        }
    }

    /// The address as a generic one.
    pub(super) fn generic(&mut self, address: (Word, StorageClass)) -> Word {
        self.cast(address, StorageClass::Generic)
    }

    // Blocks.

    fn block(&mut self, block: Block<'c>) -> Result<(), Refused> {
        let (label, _) = self.labels[&block];
        self.code.begin(label);
        let mut ended = false;
        for instruction in block.instructions() {
            let result = self.instruction(block, instruction)?;
            if let Some(result) = result {
                self.values.insert(instruction, result);
            }
            ended = ends_work_item(instruction);
            if ended {
                break;
            }
        }
        if ended {
            self.end_work_item()?;
        }
        self.labels.insert(block, (label, self.code.label()));
        Ok(())
    }

    fn phi(&mut self, phi: Value<'c>, shape: &Shape) -> Translated {
        match shape {
            Shape::Nothing => Translated::Nothing,
            Shape::Bool => Translated::Scalar(self.code.phi(Scalar::Bool)),
            Shape::Int(width) => Translated::Scalar(self.code.phi(Scalar::Int(container(*width)))),
            Shape::Float(width) => Translated::Scalar(self.code.phi(Scalar::Float(*width))),
            Shape::Wide(_) => Translated::Wide(self.code.phi(Scalar::Int(64)), self.code.phi(Scalar::Int(64))),
            Shape::Address => {
                let class = self.class(phi);
                Translated::Address(self.code.phi(Scalar::Address(class)), class)
            }
            Shape::Parts(parts) => Translated::Parts(parts.iter().map(|part| self.phi(phi, part)).collect()),
        }
    }

    fn finish_phis(&mut self, instructions: &[Value<'c>]) -> Result<(), Refused> {
        for &phi in instructions.iter().filter(|instruction| instruction.is(Opcode::PHI)) {
            let shape = Shape::of(phi.value_type())?;
            let result = self.values[&phi].clone();
            let mut incoming: Vec<(Vec<Word>, Word)> = Vec::new();
            // What comes from code that is never reached does not count.
            let label = |(value, from)| Some((value, self.labels.get(&from)?.1));
            let mut ways: Vec<(Value<'c>, Word)> = phi.incoming().into_iter().filter_map(label).collect();
            // LLVM's order may follow addresses, which are others in each run.
            ways.sort_by_key(|(_, label)| *label);
            for (value, label) in ways {
                if incoming.iter().any(|(_, known)| *known == label) {
                    continue;
                }
                let value = self.value(value)?;
                let mut ids = Vec::new();
                self.leaves_before(&result, &value, label, &mut ids);
                incoming.push((ids, label));
            }
            let mut targets = Vec::new();
            leaves(&result, &mut targets);
            debug_assert_eq!(targets.len(), shape.scalars().len());
            for (position, &target) in targets.iter().enumerate() {
                let values: Vec<_> = incoming.iter().map(|(ids, label)| (ids[position], *label)).collect();
                self.code.set_phi(target, &values);
            }
        }
        Ok(())
    }

    /// Adds the ids of a phi's incoming value. Addresses are cast to the phi's class at the end of the block that they come from.
    fn leaves_before(&mut self, phi: &Translated, value: &Translated, label: Word, ids: &mut Vec<Word>) {
        match (phi, value) {
            (Translated::Address(_, to), Translated::Address(id, class)) => {
                let id = if to == class { *id } else { self.code.cast_at_end(*id, *to, label) };
                ids.push(id);
            }
            (Translated::Parts(phis), Translated::Parts(values)) => {
                for (phi, value) in phis.iter().zip(values) {
                    self.leaves_before(phi, value, label, ids);
                }
            }
            (_, value) => leaves(value, ids),
        }
    }

    /// Translates an instruction. `None` for instructions without a result.
    fn instruction(&mut self, block: Block<'c>, instruction: Value<'c>) -> Result<Option<Translated>, Refused> {
        let opcode = instruction.opcode().expect("blocks hold instructions");
        Ok(match opcode {
            Opcode::PHI => {
                let shape = Shape::of(instruction.value_type())?;
                Some(self.phi(instruction, &shape))
            }
            Opcode::RET | Opcode::BRANCH | Opcode::SWITCH | Opcode::UNREACHABLE => {
                self.terminator(block, instruction, opcode)?;
                None
            }
            Opcode::CALL => self.call(instruction)?,
            Opcode::FREEZE => Some(self.operand(instruction, 0)?),
            Opcode::SELECT => Some(self.select(instruction)?),
            Opcode::ALLOCA => Some(self.alloca(instruction)?),
            Opcode::LOAD => Some(self.load(instruction)?),
            Opcode::STORE => {
                self.store(instruction)?;
                None
            }
            Opcode::GET_ELEMENT_PTR => Some(self.address_computation(instruction)?),
            Opcode::FENCE => {
                self.fence(instruction);
                None
            }
            Opcode::ATOMIC_CMP_XCHG => Some(self.compare_exchange(instruction)?),
            Opcode::ATOMIC_RMW => Some(self.read_modify_write(instruction)?),
            Opcode::EXTRACT_ELEMENT | Opcode::INSERT_ELEMENT | Opcode::SHUFFLE_VECTOR => {
                Some(self.vector(instruction, opcode)?)
            }
            Opcode::EXTRACT_VALUE | Opcode::INSERT_VALUE => Some(self.aggregate(instruction, opcode)?),
            Opcode::INTEGER_COMPARISON => Some(self.compare_integers(instruction)?),
            Opcode::FCMP => Some(self.compare_floats(instruction)?),
            Opcode::FADD | Opcode::FSUB | Opcode::FMUL | Opcode::FDIV | Opcode::FREM | Opcode::FNEG => {
                Some(self.float_arithmetic(instruction, opcode)?)
            }
            _ if opcode.is_cast() => Some(self.conversion(instruction, opcode)?),
            _ if opcode.is_integer_arithmetic() => Some(self.integer_arithmetic(instruction, opcode)?),
            _ => return Err(Refused::new(format!("an instruction that is not translated:{}", instruction.print()))),
        })
    }
}

/// The reachable blocks, each after those that dominate it.
fn in_dominance_order(function: Value<'_>) -> Vec<Block<'_>> {
    let entry = function.blocks()[0];
    let mut seen = FxHashSet::from_iter([entry]);
    let mut order = Vec::new();
    let mut stack = vec![(entry, entry.successors())];
    // Depth first without recursion; the reverse order of leaving has the property.
    while let Some((block, rest)) = stack.last_mut() {
        match rest.pop() {
            Some(next) if seen.insert(next) => stack.push((next, next.successors())),
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// Makes a value of the shape from successive ids.
pub(super) fn assemble(shape: &Shape, ids: &mut dyn Iterator<Item = Word>) -> Translated {
    let mut next = || ids.next().expect("as many ids as the shape has scalars");
    match shape {
        Shape::Nothing => Translated::Nothing,
        Shape::Bool | Shape::Int(_) | Shape::Float(_) => Translated::Scalar(next()),
        Shape::Wide(_) => {
            let low = next();
            Translated::Wide(low, next())
        }
        Shape::Address => Translated::Address(next(), StorageClass::Generic),
        Shape::Parts(parts) => Translated::Parts(parts.iter().map(|part| assemble(part, ids)).collect()),
    }
}

/// Adds the ids of a value to a list.
pub(super) fn leaves(value: &Translated, ids: &mut Vec<Word>) {
    match value {
        Translated::Nothing => {}
        Translated::Scalar(id) | Translated::Address(id, _) => ids.push(*id),
        Translated::Wide(low, high) => ids.extend([*low, *high]),
        Translated::Parts(parts) => parts.iter().for_each(|part| leaves(part, ids)),
    }
}
